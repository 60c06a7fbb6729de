//! Files of other systems: recognised by the names in a folder and by the first bytes of a file,
//! and either read or refused by name.

mod listing;
mod refused;
mod shards;
mod spanner;
pub(super) mod ydb;

pub(super) use crate::source::systems::shards::check as check_shards;
pub(super) use crate::source::systems::spanner::table_of_file as spanner_table;

pub(super) use crate::source::systems::listing::{Listed, Listing};
pub(super) use crate::source::systems::refused::{refused_content, refused_table};

use crate::source::declared::DeclaredTable;
use crate::source::discover::InputPath;
use crate::source::error::SourceError;
use crate::source::systems::refused::refused_folder;
use evenkeel_model::units::ByteSize;

/// A table of another system: its declaration and its data files.
pub(super) struct ForeignTable {
    pub(super) declared: DeclaredTable,
    pub(super) files: Vec<InputPath>,
    /// MD5 of files in Base64, to be checked before they are read.
    pub(super) checksums: Vec<(InputPath, String)>,
}

/// Finds the table in a folder that another system wrote; `None` if the folder holds plain files.
/// If it holds several tables, `table` names one of them.
///
/// # Errors
/// [`SourceError`] if the folder cannot be read as what it is, or if it does not hold one table.
pub(super) fn table_in(listing: &Listing, table: Option<&str>) -> Result<Option<ForeignTable>, SourceError> {
    refused_folder(listing)?;
    let mut tables = ydb::tables(listing)?;
    tables.extend(spanner::tables(listing)?);
    let found = choose(listing, tables, table)?;
    if let Some(table) = &found {
        spanner::check(&table.checksums)?;
    }
    Ok(found)
}

/// Returns the table that is meant.
fn choose(
    listing: &Listing,
    mut tables: Vec<ForeignTable>,
    table: Option<&str>,
) -> Result<Option<ForeignTable>, SourceError> {
    let Some(wanted) = table else {
        return match tables.len() {
            0 => Ok(None),
            1 => Ok(tables.pop()),
            _ => Err(SourceError::SeveralTables {
                path: listing.name.clone(),
                tables: tables.iter().map(described).collect(),
            }),
        };
    };
    let found: Vec<String> = tables.iter().map(described).collect();
    let is_wanted = |table: &ForeignTable| table.declared.is_named(wanted.trim_matches('/'));
    tables.into_iter().find(is_wanted).map(Some).ok_or_else(|| SourceError::NoSuchTable {
        path: listing.name.clone(),
        table: wanted.to_owned(),
        found,
    })
}

/// Describes a table in a list: `ads/events (column table, 4.1 GiB)`.
fn described(table: &ForeignTable) -> String {
    let bytes = table.files.iter().map(InputPath::stored_bytes).sum();
    format!("{} ({}, {})", table.declared.name, table.declared.layout, ByteSize(bytes))
}

/// Whether a file of this name describes other files, and holds no rows itself.
pub(super) fn is_metadata(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "metadata.json" | "prelude.json" | "spanner-export.json" | "manifest.json")
        || [".metadata.json", "-manifest.json"].iter().any(|ending| name.ends_with(ending))
}
