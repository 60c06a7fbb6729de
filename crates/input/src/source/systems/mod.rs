//! Files of other systems: recognised by the names in a folder and by the first bytes of a file,
//! and either read or refused by name.

mod checksums;
mod foreign_table;
mod greenplum;
mod listing;
pub(super) mod mysql;
mod pg_lines;
pub(super) mod postgres;
mod refused;
mod shards;
mod spanner;
mod spanner_text;
pub(super) mod ydb;

pub(super) use crate::source::systems::checksums::check as check_checksums;
pub(super) use crate::source::systems::shards::check as check_shards;
pub(super) use crate::source::systems::spanner::table_of_files as spanner_table;

pub(super) use crate::source::systems::listing::{ListedFile, Listing};
pub(super) use crate::source::systems::refused::{refused_content, refused_table};

use std::path::Path;

use crate::source::declared::{DataForm, DeclaredTable};
use crate::source::error::SourceError;
use crate::source::file_name::format_of_name;
use crate::source::input_path::InputPath;
use crate::source::stored::{HEAD_BYTES, open_decompressed};
use crate::source::stream::peek;
use crate::source::systems::foreign_table::ForeignTable;
use crate::source::systems::refused::refused_folder;
use evenkeel_model::units::ByteSize;

/// Finds the table in a folder that another system wrote; `None` if the folder holds plain files.
/// If it holds several tables, `table` names one of them.
///
/// # Errors
/// [`SourceError`] if the folder cannot be read as an export of its system, or if it does not hold
/// one table.
pub(super) fn table_in(listing: &Listing, table: Option<&str>) -> Result<Option<ForeignTable>, SourceError> {
    refused_folder(listing)?;
    let mut tables = ydb::tables(listing)?;
    tables.extend(spanner::tables(listing)?);
    tables.extend(spanner_text::tables(listing)?);
    tables.extend(greenplum::tables(listing)?);
    tables.extend(mysql::tables(listing)?);
    let chosen = choose(&listing.name, tables, table)?;
    if let Some(table) = &chosen {
        check_checksums(&table.checksums)?;
    }
    Ok(chosen)
}

/// Returns the requested table of a dump of PostgreSQL; `None` if the file is not such a dump.
///
/// # Errors
/// [`SourceError`] if the dump cannot be read, or if it does not hold one such table.
pub(super) fn pg_dump_table(
    input: &InputPath,
    table: Option<&str>,
) -> Result<Option<DeclaredTable>, SourceError> {
    if !input.is_regular() || format_of_name(Path::new(&input.name())).is_some() {
        return Ok(None);
    }
    // An input that cannot be read is reported when its rows are.
    let Ok(stream) = open_decompressed(input) else { return Ok(None) };
    let (head, _) =
        peek(stream, HEAD_BYTES).map_err(|source| SourceError::Read { file: input.name(), source })?;
    if !postgres::is_dump(&head) {
        return Ok(None);
    }
    let declared = postgres::tables(input)?;
    let tables = declared.into_iter().map(|declared| ForeignTable {
        declared,
        files: Vec::new(),
        checksums: Vec::new(),
    });
    let chosen = choose(&input.name(), tables.collect(), table)?;
    match chosen {
        Some(table) if table.declared.has_other_rows => Err(SourceError::Foreign {
            file: input.name(),
            what: format!("a pg_dump with INSERT statements for {}", table.declared.name),
            advice: "dump without --inserts, --column-inserts and --rows-per-insert; rows are then in COPY sections"
                .to_owned(),
        }),
        Some(table) => Ok(Some(table.declared)),
        None => Err(SourceError::Refused {
            file: input.name(),
            problem: "the pg_dump has no tables".to_owned(),
            advice: "dump a table: pg_dump --table NAME".to_owned(),
        }),
    }
}

/// Returns the requested table at `path`.
fn choose(
    path: &str,
    mut tables: Vec<ForeignTable>,
    table: Option<&str>,
) -> Result<Option<ForeignTable>, SourceError> {
    let Some(wanted) = table else {
        return match tables.len() {
            0 => Ok(None),
            1 => Ok(tables.pop()),
            _ => Err(SourceError::SeveralTables {
                path: path.to_owned(),
                tables: tables.iter().map(described).collect(),
            }),
        };
    };
    let descriptions: Vec<String> = tables.iter().map(described).collect();
    let name = wanted.trim_matches('/').replace('"', "");
    let name = name.as_str();
    let exact = tables.iter().position(|table| table.declared.name == name);
    let named: Vec<usize> = tables
        .iter()
        .enumerate()
        .filter(|(_, table)| table.declared.is_named(name))
        .map(|(position, _)| position)
        .collect();
    if exact.is_none() && named.len() > 1 {
        let tables = named.iter().filter_map(|position| tables.get(*position)).map(described).collect();
        return Err(SourceError::SeveralTables { path: path.to_owned(), tables });
    }
    match exact.or(named.first().copied()) {
        Some(position) => Ok(Some(tables.swap_remove(position))),
        None => Err(SourceError::NoSuchTable {
            path: path.to_owned(),
            table: wanted.to_owned(),
            found: descriptions,
        }),
    }
}

/// Describes a table in a list: `ads/events (column table, 4.1 GiB)`.
fn described(table: &ForeignTable) -> String {
    let DeclaredTable { name, layout, .. } = &table.declared;
    let bytes: u64 = table.files.iter().map(InputPath::stored_bytes).sum();
    match table.files.is_empty() && table.declared.form == DataForm::Section {
        true => name.clone(),
        false => format!("{name} ({layout}, {})", ByteSize(bytes)),
    }
}

/// Whether a file of this name lists the files of an export of Spanner.
pub(super) fn is_list_of_spanner(name: &str) -> bool {
    name.ends_with("spanner-export.json") || name.ends_with("-manifest.json")
}

/// Whether a file of this name describes other files, and holds no rows itself.
pub(super) fn is_metadata(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(name.as_str(), "metadata.json" | "prelude.json" | "spanner-export.json" | "manifest.json")
        || [".metadata.json", "-manifest.json"].iter().any(|ending| name.ends_with(ending))
}
