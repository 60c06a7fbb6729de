//! Versions at which a query reads tables.

use std::collections::BTreeSet;
use std::str::FromStr;

use evenkeel::TableError;
use evenkeel::units::Version;

use crate::cli::Failure;
use crate::cli::tables::Tables;

/// A version of the only table, or of the one with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableVersion {
    table: Option<String>,
    version: Version,
}

impl FromStr for TableVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (table, version) = match text.rsplit_once('=') {
            Some((table, version)) => (Some(table.trim().to_owned()), version),
            None => (None, text),
        };
        let version = version.trim().parse().map(Version).map_err(|_| "write N or NAME=N".to_owned())?;
        Ok(Self { table, version })
    }
}

/// Returns the version of the table with a name, or of the main table. A table is opened at it
/// directly, because its newest version may be damaged.
pub(super) fn version_of(versions: &[TableVersion], name: Option<&str>) -> Option<u64> {
    let own = versions.iter().find(|version| version.table.as_deref() == name);
    own.map(|own| own.version.0)
}

impl Tables {
    /// Moves tables to other versions. A version without a name is that of the main table, or else
    /// of the only one.
    pub(super) async fn move_to(&mut self, versions: &[TableVersion]) -> Result<(), Failure> {
        let names: Vec<Vec<String>> = self.named().map(|(names, _)| names).collect();
        let mut moved = BTreeSet::new();
        for TableVersion { table, version } in versions {
            let position = match table {
                None if self.has_main || names.len() == 1 => Some(0),
                None if names.is_empty() => {
                    return Err(Failure::wrong_usage("--version: exports have no versions; only tables do"));
                }
                None => {
                    return Err(Failure::wrong_usage(format!(
                        "--version {version}: there are several tables; write --version NAME={version}, \
                         with one of: {}",
                        own_names(&names)
                    )));
                }
                Some(table) => names.iter().position(|names| names.contains(table)),
            };
            let Some((position, (_, table))) =
                position.and_then(|position| Some((position, self.tables.get_mut(position)?)))
            else {
                let table = table.as_deref().unwrap_or_default();
                return Err(Failure::wrong_usage(format!(
                    "--version {table}={version}: there is no such table; there are: {}",
                    own_names(&names)
                )));
            };
            if !moved.insert(position) {
                let name = table.spec().name();
                return Err(Failure::wrong_usage(format!("--version: two versions of table {name}")));
            }
            if table.snapshot().version() != *version {
                table.move_to(table.log().at(*version).await.map_err(TableError::from)?);
            }
        }
        Ok(())
    }
}

/// Lists the tables by their own names.
fn own_names(names: &[Vec<String>]) -> String {
    names.iter().filter_map(|names| names.last()).cloned().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_numbers_with_or_without_the_name_of_a_table() {
        let version = |table: Option<&str>, version| {
            Ok(TableVersion { table: table.map(str::to_owned), version: Version(version) })
        };
        for (text, expected) in [
            ("7", version(None, 7)),
            ("users=0", version(Some("users"), 0)),
            (" users = 3 ", version(Some("users"), 3)),
            // Names may contain the sign, versions do not.
            ("a=b=3", version(Some("a=b"), 3)),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
        for wrong in ["", "x", "-1", "users=", "users=x", "users", "1.5", "99999999999999999999"] {
            assert!(wrong.parse::<TableVersion>().is_err(), "{wrong}");
        }
    }
}
