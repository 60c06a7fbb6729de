//! Knowledge about the columns of an export from sampled rows.

use crate::evaluate::options::JoinedColumn;
use crate::evaluate::roles::names::{denotes_events, denotes_port_of_connection};
use crate::evaluate::roles::{Role, RoleReport};

/// Knowledge about the columns from sampled rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Knowledge<'a> {
    pub(crate) roles: &'a [RoleReport],
    /// Columns of the natural key, if it has several.
    pub(crate) natural_key: &'a [String],
    /// Columns of all natural keys that are as short.
    pub(crate) identifying: &'a [String],
    /// Columns by which other tables are joined.
    pub(crate) joined: &'a [JoinedColumn],
    /// Whether the name of the export indicates that its rows are events.
    pub(crate) of_events: bool,
}

impl<'a> Knowledge<'a> {
    pub(crate) fn report(&self, column: &str) -> Option<&'a RoleReport> {
        self.roles.iter().find(|report| report.column == column)
    }

    /// Whether the rows are events, by the name of the export or by the ids of rows about users or
    /// devices: event_id, click_id. The events of a calendar are about neither.
    pub(crate) fn has_events(&self) -> bool {
        let is_id = |report: &RoleReport| report.role == Role::RowId && denotes_events(&report.column);
        let recurs = |report: &RoleReport| report.role == Role::Entity && report.recurs;
        self.of_events || (self.roles.iter().any(is_id) && self.roles.iter().any(recurs))
    }

    /// Position of a column in the export; `None` for derived parts of a key.
    pub(crate) fn position(&self, column: &str) -> Option<usize> {
        self.roles.iter().position(|report| report.column == column)
    }

    /// Role of a column; `None` for derived parts of a key.
    pub(crate) fn role(&self, column: &str) -> Option<Role> {
        self.report(column).map(|report| report.role)
    }

    /// Whether the key has a time or a line number, which spread rows and serve no read.
    pub(crate) fn has_count(&self, key: &[String]) -> bool {
        key.iter().any(|column| matches!(self.role(column), Some(Role::Time | Role::LineNumber)))
    }

    /// Whether the key is the natural key without its time or its line: its columns identify the
    /// subject of a row, such as a pair of currencies, or the station of a series of readings.
    pub(crate) fn is_thing(&self, key: &[String]) -> bool {
        // The ports of a connection differ by chance.
        if key.iter().any(|column| denotes_port_of_connection(column)) {
            return false;
        }
        let counts = |column: &&String| !matches!(self.role(column), Some(Role::Time | Role::LineNumber));
        let parts: Vec<&String> = self.natural_key.iter().filter(counts).collect();
        let is_series = key.len() > 1 || self.has_time(self.natural_key);
        is_series && parts.len() == key.len() && key.iter().all(|column| parts.contains(&column))
    }

    /// Whether the key consists only of kinds of things, which together do not identify the subject
    /// of a row.
    pub(crate) fn is_of_kinds(&self, key: &[String]) -> bool {
        !self.is_thing(key) && key.iter().all(|column| self.role(column) == Some(Role::Dimension))
    }

    /// Whether the key has a column that may be an amount. Columns of the natural key are not.
    pub(crate) fn has_vague(&self, key: &[String]) -> bool {
        let is_vague = |column: &String| self.report(column).is_some_and(|report| report.is_vague);
        key.iter().any(|column| is_vague(column) && !self.natural_key.contains(column))
    }

    /// Whether the key has a time, which spreads rows and serves no read.
    pub(crate) fn has_time(&self, key: &[String]) -> bool {
        key.iter().any(|column| self.role(column) == Some(Role::Time))
    }

    /// Whether nothing but chance indicates that a column of the key identifies a thing, rather
    /// than a kind or an amount.
    pub(crate) fn is_weak(&self, key: &[String]) -> bool {
        let is_weak = |report: &RoleReport| match report.role {
            Role::Dimension => true,
            Role::Entity => (report.is_vague || report.is_obscure) && report.determines.is_empty(),
            _ => false,
        };
        key.iter().all(|column| self.report(column).is_some_and(|report| !report.given && is_weak(report)))
    }
}
