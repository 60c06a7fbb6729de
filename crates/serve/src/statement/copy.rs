//! `COPY ... TO STDOUT` and its options.

use datafusion::sql::sqlparser::ast::{
    CopyLegacyCsvOption, CopyLegacyOption, CopyOption, CopySource, CopyTarget, Statement,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::copy::{CopyFormat, CopyOptions};
use crate::failure::{Failure, SqlState};
use crate::statement::routing::query;
use crate::statement::{Command, KnownNames, Piece};

impl Piece {
    /// Reads `COPY {table | (query)} TO STDOUT` with its options.
    pub(super) fn copy(&self, known: &KnownNames) -> Result<Command, Failure> {
        let parsed = Parser::parse_sql(&PostgreSqlDialect {}, &self.sql).map_err(|error| {
            Failure::from(datafusion::common::DataFusionError::from(error)).located(&self.sql, self.before)
        })?;
        let Some(Statement::Copy { source, to, target, options, legacy_options, .. }) =
            parsed.into_iter().next()
        else {
            return Err(self.syntax("COPY"));
        };
        if !to {
            return Err(Failure::new(
                SqlState::READ_ONLY,
                "cannot execute COPY FROM: this server only reads",
            ));
        }
        if target != CopyTarget::Stdout {
            return Err(Failure::new(
                SqlState("42501"),
                "COPY writes to STDOUT only: no statement writes files or runs programs on the server",
            ));
        }
        let sql = match source {
            CopySource::Table { table_name, columns } => {
                let names: Vec<String> = columns.iter().map(ToString::to_string).collect();
                let columns = if names.is_empty() { "*".to_owned() } else { names.join(", ") };
                format!("SELECT {columns} FROM {table_name}")
            }
            CopySource::Query(query) => query.to_string(),
        };
        Ok(Command::Copy(Box::new(query(&sql, known)?), copy_options(&options, &legacy_options)?))
    }
}

fn copy_options(options: &[CopyOption], legacy: &[CopyLegacyOption]) -> Result<CopyOptions, Failure> {
    let mut parsed = CopyOptions::default();
    let mut is_csv = false;
    for option in options {
        match option {
            CopyOption::Format(name) => match name.value.to_ascii_lowercase().as_str() {
                "text" => {}
                "csv" => is_csv = true,
                "binary" => parsed.format = CopyFormat::Binary,
                other => {
                    let message = format!("COPY format \"{other}\" not recognized; use text, csv or binary");
                    return Err(Failure::new(SqlState::INVALID_PARAMETER, message));
                }
            },
            CopyOption::Delimiter(delimiter) => parsed.delimiter = Some(*delimiter),
            CopyOption::Null(null) => parsed.null = Some(null.clone()),
            CopyOption::Header(has_header) => parsed.has_header = *has_header,
            CopyOption::Quote(quote) => parsed.quote = *quote,
            CopyOption::Escape(escape) => parsed.escape = Some(*escape),
            CopyOption::Encoding(encoding) if is_utf8(encoding) => {}
            other => return Err(refused(other)),
        }
    }
    for option in legacy {
        match option {
            CopyLegacyOption::Binary => parsed.format = CopyFormat::Binary,
            CopyLegacyOption::Delimiter(delimiter) => parsed.delimiter = Some(*delimiter),
            CopyLegacyOption::Null(null) => parsed.null = Some(null.clone()),
            CopyLegacyOption::Header => parsed.has_header = true,
            CopyLegacyOption::Csv(csv) => {
                is_csv = true;
                for option in csv {
                    match option {
                        CopyLegacyCsvOption::Header => parsed.has_header = true,
                        CopyLegacyCsvOption::Quote(quote) => parsed.quote = *quote,
                        CopyLegacyCsvOption::Escape(escape) => parsed.escape = Some(*escape),
                        other => return Err(refused(other)),
                    }
                }
            }
            other => return Err(refused(other)),
        }
    }
    if is_csv {
        parsed.format = CopyFormat::Csv;
    }
    Ok(parsed)
}

fn refused(option: impl std::fmt::Display) -> Failure {
    Failure::new(SqlState::NOT_SUPPORTED, format!("the COPY option {option} is not supported"))
}

pub(crate) fn is_utf8(encoding: &str) -> bool {
    let plain: String = encoding.chars().filter(char::is_ascii_alphanumeric).collect();
    ["utf8", "unicode"].contains(&plain.to_ascii_lowercase().as_str())
}
