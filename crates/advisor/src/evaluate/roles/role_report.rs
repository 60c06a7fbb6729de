//! The report on the role of one column.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::evaluate::roles::carried_times::CarriedTimes;
use crate::evaluate::roles::names::is_id_of_record;
use crate::role::Role;

/// Role of a column, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoleReport {
    /// Name of the column.
    pub column: String,
    /// Role of the column.
    pub role: Role,
    /// Evidence that decided, the strongest first.
    pub evidence: Vec<String>,
    /// Earlier column that it is one-to-one with, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<String>,
    /// Column with mostly the same values, if it is an entity: both refer to the same things.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares_values_with: Option<String>,
    /// Other columns that it determines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub determines: Vec<String>,
    /// Columns within whose values it numbers the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts_within: Vec<String>,
    /// Whether the rows of a value are the parts of one thing that is read as a whole: they arrive
    /// consecutively, or the name says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub holds_parts: bool,
    /// Whether its name denotes the rows of the export: it is the id of a row, even if some rows
    /// share it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_rows: bool,
    /// Whether its name or its values suggest names of things, in addition to ids.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_label: bool,
    /// Whether its name denotes a kind or a place that rows belong to, rather than a thing: a city,
    /// a region.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_kind: bool,
    /// Whether its name denotes a thing that recurs, such as a user or a device.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recurs: bool,
    /// Whether its name denotes an e-mail address or a phone number.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_contact: bool,
    /// Whether its name denotes a reference to another row, such as the parent of a comment, or to
    /// the message that delivered the row.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_reference: bool,
    /// Whether the only evidence for an entity also holds for many amounts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_vague: bool,
    /// Whether neither its name nor the columns that it determines indicate that it identifies a
    /// thing, although the names of other columns are telling.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_obscure: bool,
    /// Whether its values are IP addresses or URLs, which many share and few are looked up by.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_address: bool,
    /// Whether its values are URLs of requested pages, rather than of who requested them, or places
    /// of stored files.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_page: bool,
    /// Whether its rows are read as parts of something larger: the author of messages in a channel,
    /// a span of a trace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_member: bool,
    /// Points in time that its values carry, if they are not of a type of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<CarriedTimes>,
    /// Rows with NULL, as a share of the sampled rows.
    pub null_share: f64,
    /// Whether the user gave the role.
    pub given: bool,
}

/// Weight of an entity that is known by a name, since others refer to its id if it has one; also of
/// a reference to another row.
const LABEL: f64 = 0.3;

/// Weight of an entity without evidence from its name or other columns.
const OBSCURE: f64 = 0.5;

/// Weight of an entity that is named as a kind or a place.
const KIND: f64 = 0.4;

/// Weight of an entity that may be an amount.
const VAGUE: f64 = 0.05;

/// Weight of an entity that is known by its address.
const ADDRESS: f64 = 0.1;

/// Share of rows without an id above which addresses are looked up instead.
const MAX_MISSING: f64 = 0.05;

impl RoleReport {
    /// Columns that together identify a thing of this column: the column itself, after those within
    /// which its things are numbered.
    pub(crate) fn thing(&self) -> Vec<String> {
        let parents = if self.role == Role::Entity { self.counts_within.as_slice() } else { &[] };
        [parents, std::slice::from_ref(&self.column)].concat()
    }

    /// Number of things that it determines, up to three, as a measure of its significance. Columns
    /// that are one-to-one with each other count as one thing.
    pub(crate) fn attributes(&self, columns: &[Self]) -> f64 {
        let first = |name: &String| {
            let report = columns.iter().find(|report| report.column == *name);
            report.and_then(|report| report.copy_of.clone()).unwrap_or_else(|| name.clone())
        };
        let things: BTreeSet<String> = self.determines.iter().map(first).collect();
        things.len().min(3) as f64
    }

    /// Whether the rows of one value of an entity are rarely read: an amount, an address, a name.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.weight(|| true) < 1.0
    }

    /// Weight of an entity among the columns of its export. Addresses are looked up if no entity
    /// has an id.
    pub(crate) fn identity(&self, columns: &[Self]) -> f64 {
        // Records with an id of their own are looked up by it, but not events.
        let is_id = |report: &Self| match report.role {
            Role::Entity => {
                !report.is_doubtful() && report.copy_of.is_none() && report.null_share <= MAX_MISSING
            }
            Role::RowId => is_id_of_record(&report.column),
            _ => false,
        };
        // Rows with an id are not looked up by the name that some of them share.
        if self.is_label && columns.iter().any(|report| report.role == Role::RowId) {
            return VAGUE;
        }
        self.weight(|| columns.iter().any(is_id))
    }

    fn weight(&self, has_ids: impl Fn() -> bool) -> f64 {
        if self.is_vague {
            VAGUE
        } else if self.is_address && has_ids() {
            ADDRESS
        } else if self.is_obscure {
            OBSCURE
        } else if self.is_label || self.is_reference || (self.is_contact && has_ids()) {
            LABEL
        } else if self.is_kind {
            KIND
        } else {
            1.0
        }
    }
}
