//! Exports of Spanner as text, as Dataflow writes them: CSV in parts without a header, and a file
//! `PREFIXschema` with the names and types of the columns.

use std::collections::BTreeMap;

use crate::source::ddl::read_ddl;
use crate::source::declared::{DataForm, DeclaredTable, TableLayout};
use crate::source::error::SourceError;
use crate::source::systems::foreign_table::ForeignTable;
use crate::source::systems::listing::{ListedFile, Listing};
use crate::source::systems::shards::{check as check_shards, part_of};

/// Returns the tables of a folder; empty if it has no such export.
///
/// # Errors
/// [`SourceError`] if parts are missing or the schema cannot be read.
pub(in crate::source) fn tables(listing: &Listing) -> Result<Vec<ForeignTable>, SourceError> {
    let mut tables = Vec::new();
    for schema in &listing.files {
        let Some(prefix) = schema.path.strip_suffix("schema") else { continue };
        // `T-schema` and `Tschema` are both next to `T-00000-of-00002.csv`.
        let is_part = |file: &&ListedFile| {
            part_of(&file.path).is_some_and(|(before, ..)| before == prefix.trim_end_matches('-'))
        };
        let parts: Vec<&ListedFile> = listing.files.iter().filter(is_part).collect();
        if parts.is_empty() {
            continue;
        }
        check_shards(parts.iter().copied())?;
        tables.push(ForeignTable {
            declared: declared(schema, prefix)?,
            files: parts.into_iter().map(|part| part.input.clone()).collect(),
            checksums: Vec::new(),
        });
    }
    Ok(tables)
}

fn declared(schema: &ListedFile, prefix: &str) -> Result<DeclaredTable, SourceError> {
    let file = schema.input.name();
    let wrong = |problem: String| SourceError::Refused {
        file: file.clone(),
        problem: format!("cannot be read as the schema of an export of Spanner as text: {problem}"),
        advice: "name the .csv files and give the columns with --names or --ddl".to_owned(),
    };
    let columns: Ordered = serde_json::from_str(&schema.text()?).map_err(|error| wrong(error.to_string()))?;
    let column = |(name, sql_type): &(String, String)| format!("`{}` {sql_type}", name.replace('`', ""));
    let list: Vec<String> = columns.0.iter().map(column).collect();
    let statement = format!("CREATE TABLE t ({})", list.join(", "));
    let table = read_ddl(&statement, &file, None).map_err(|error| wrong(error.to_string()))?;
    let name = prefix.rsplit('/').next().unwrap_or_default().trim_end_matches(['-', '_', '.']);
    Ok(DeclaredTable {
        name: name.to_owned(),
        layout: TableLayout::Row,
        form: DataForm::OrderedQuoted,
        ..table
    })
}

/// The members of an object, in their order.
struct Ordered(Vec<(String, String)>);

impl<'de> serde::Deserialize<'de> for Ordered {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> serde::de::Visitor<'de> for Members {
            type Value = Ordered;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of column names and types")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut members = Vec::new();
                let mut seen = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, String>()? {
                    if seen.insert(name.clone(), ()).is_some() {
                        return Err(serde::de::Error::custom(format!("it names '{name}' twice")));
                    }
                    members.push((name, value));
                }
                Ok(Ordered(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}
