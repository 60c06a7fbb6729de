//! Backups by gpbackup, which exports Greenplum: statements, a list of the tables with data, and
//! one file of rows per table and segment, as CSV without a header.
//!
//! ```text
//! gpbackup_20260131100000_metadata.sql    CREATE TABLE ... DISTRIBUTED BY (user_id);
//! gpbackup_20260131100000_toc.yaml        dataentries: schema, name, oid, attributestring
//! gpbackup_0_20260131100000_16385.gz      rows of segment 0 of the table with oid 16385
//! ```

use crate::source::ddl::{read_copy, read_tables};
use crate::source::declared::{DataForm, DeclaredColumn, DeclaredTable, TableLayout};
use crate::source::error::SourceError;
use crate::source::systems::foreign_table::ForeignTable;
use crate::source::systems::listing::{ListedFile, Listing};

/// A table with rows, from the list.
#[derive(Debug, Default, PartialEq, Eq)]
struct Entry {
    schema: String,
    name: String,
    oid: String,
    /// Columns in the order of the files: `(id,user_id)`.
    attributes: String,
    /// Whether each segment has all rows.
    is_replicated: bool,
}

/// Returns the tables of a backup, sorted by name; empty if the folder is not one.
///
/// # Errors
/// [`SourceError`] if parts are missing or cannot be read.
pub(in crate::source) fn tables(listing: &Listing) -> Result<Vec<ForeignTable>, SourceError> {
    let Some(backup) = Backup::open(listing)? else { return Ok(Vec::new()) };
    let entries = entries(&backup.list.text()?);
    let tables: Result<Vec<_>, _> = entries.iter().map(|entry| backup.table(entry)).collect();
    let mut tables = tables?;
    tables.sort_by(|a, b| a.declared.name.cmp(&b.declared.name));
    Ok(tables)
}

/// A folder with one backup.
struct Backup<'a> {
    listing: &'a Listing,
    /// The list of its tables.
    list: &'a ListedFile,
    /// Name of the file of its statements.
    statements: String,
    declared: Vec<DeclaredTable>,
    /// Number of segments, if the configuration gives it. Without it, the last segments could be
    /// missing unnoticed, but only for all tables at once.
    segment_count: Option<u64>,
}

impl<'a> Backup<'a> {
    /// Returns `None` if the folder holds no backup.
    fn open(listing: &'a Listing) -> Result<Option<Self>, SourceError> {
        let with_ending = |ending: &'static str| {
            listing.files.iter().filter(move |file| {
                let (_, name) = file.parts();
                name.starts_with("gpbackup_") && name.ends_with(ending)
            })
        };
        let lists: Vec<&ListedFile> = with_ending("_toc.yaml").collect();
        if let [first, second, ..] = lists.as_slice() {
            let problem = format!("holds several backups by gpbackup: {} and {}", first.path, second.path);
            return Err(refused(listing, &problem, "put the files of one into a separate folder"));
        }
        let (list, statements) = match (lists.first(), with_ending("_metadata.sql").next()) {
            (None, None) => return Ok(None),
            (Some(list), Some(statements)) => (*list, statements),
            _ => {
                return Err(refused(
                    listing,
                    "holds only a part of a backup by gpbackup",
                    "put the files of the coordinator (_toc.yaml, _metadata.sql) and those of all segments into \
                     one folder",
                ));
            }
        };
        let declared = read_tables(&statements.text()?).map_err(|reason| SourceError::Refused {
            file: statements.input.name(),
            problem: format!("its statements cannot be read: {reason}"),
            advice: "write the table as CSV: COPY table TO 'table.csv' CSV HEADER".to_owned(),
        })?;
        let configuration = with_ending("_config.yaml").next().map(|file| file.text()).transpose()?;
        let segment_count = configuration.as_deref().and_then(segment_count_of);
        Ok(Some(Self { listing, list, statements: statements.input.name(), declared, segment_count }))
    }

    /// Returns a table with the files of all its segments.
    fn table(&self, entry: &Entry) -> Result<ForeignTable, SourceError> {
        let name = format!("{}.{}", entry.schema, entry.name);
        let declared = self.declared.iter().find(|table| table.name == name);
        let is_replicated = entry.is_replicated || declared.is_some_and(|table| table.is_replicated);
        let (files, segments) = self.files(entry, is_replicated)?;
        let declared = declared.cloned().unwrap_or_default();
        // The list of columns has the form of a COPY statement.
        let copy = read_copy(&format!("COPY t {} FROM stdin;", entry.attributes));
        let attributes = copy.map(|copy| copy.columns).unwrap_or_default();
        let column = |attribute: &String| {
            let column = declared.columns.iter().find(|column| column.name == *attribute);
            column.cloned().unwrap_or_else(|| DeclaredColumn::untyped(attribute))
        };
        let declared = DeclaredTable {
            file: self.statements.clone(),
            name,
            layout: TableLayout::Unknown,
            columns: attributes.iter().map(column).collect(),
            partitions: Some(segments).filter(|_| !is_replicated),
            has_file_per_partition: segments > 1 && !is_replicated,
            form: DataForm::OrderedQuoted,
            ..declared
        };
        let files = files.into_iter().map(|file| file.input.clone()).collect();
        Ok(ForeignTable { declared, files, checksums: Vec::new() })
    }

    /// Returns the files with the rows of a table, and the number of segments.
    fn files(&self, entry: &Entry, is_replicated: bool) -> Result<(Vec<&'a ListedFile>, u64), SourceError> {
        let of_table = |file: &'a ListedFile| Some((segment_of(file.parts().1, &entry.oid)?, file));
        let mut files: Vec<(u64, &ListedFile)> = self.listing.files.iter().filter_map(of_table).collect();
        files.sort_by_key(|(segment, _)| *segment);
        let Some((last, _)) = files.last() else {
            return Err(refused(
                self.listing,
                &format!("the backup by gpbackup has no files of {}.{}", entry.schema, entry.name),
                "copy the files of all segments here; a backup with --single-data-file is not read: make it \
                 without",
            ));
        };
        let segments = self.segment_count.unwrap_or(0).max(last + 1);
        if is_replicated {
            files.truncate(1);
        }
        let has = |segment: &u64| files.iter().any(|(number, _)| number == segment);
        if let Some(missing) = (0..segments).find(|segment| !is_replicated && !has(segment)) {
            return Err(refused(
                self.listing,
                &format!(
                    "the backup by gpbackup has no file of segment {missing} of {}.{}",
                    entry.schema, entry.name
                ),
                "copy the files of all segments here",
            ));
        }
        Ok((files.into_iter().map(|(_, file)| file).collect(), segments))
    }
}

fn refused(listing: &Listing, problem: &str, advice: &str) -> SourceError {
    SourceError::Refused {
        file: listing.name.clone(),
        problem: problem.to_owned(),
        advice: advice.to_owned(),
    }
}

/// Returns the number of segments in the configuration of a backup.
fn segment_count_of(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.trim().strip_prefix("segmentcount:")?.trim().parse().ok())
}

/// Returns the segment of a file of rows of a table: 3 of `gpbackup_3_20260131100000_16385.gz`.
fn segment_of(name: &str, oid: &str) -> Option<u64> {
    let rest = name.strip_prefix("gpbackup_")?;
    let rest = [".gz", ".zst"].iter().find_map(|ending| rest.strip_suffix(ending)).unwrap_or(rest);
    let (segment, rest) = rest.split_once('_')?;
    let (_, table_oid) = rest.split_once('_')?;
    (table_oid == oid).then(|| segment.parse().ok())?
}

/// Reads the entries with rows of a list. Each is a block of `key: value` lines, the first with a
/// dash.
fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut is_in_data = false;
    for line in text.lines() {
        if !line.starts_with([' ', '-']) {
            is_in_data = line.trim_end() == "dataentries:";
            continue;
        }
        if !is_in_data {
            continue;
        }
        let stripped = line.trim_start();
        let begins = stripped.starts_with("- ");
        if begins {
            entries.push(Entry::default());
        }
        let (Some(entry), Some((key, value))) =
            (entries.last_mut(), stripped.trim_start_matches("- ").split_once(':'))
        else {
            continue;
        };
        let value = value.trim().trim_matches(['"', '\'']).to_owned();
        match key.trim() {
            "schema" => entry.schema = value,
            "name" => entry.name = value,
            "oid" => entry.oid = value,
            "attributestring" => entry.attributes = value,
            "isreplicated" => entry.is_replicated = value == "true",
            _ => {}
        }
    }
    entries.retain(|entry| !entry.oid.is_empty() && entry.attributes.len() > 2);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_tables_and_files_their_segments() {
        let list = "globalentries:\n- schema: \"\"\n  name: x\ndataentries:\n- schema: public\n  name: events\n  oid: 16385\n  \
             attributestring: (id,\"User Id\")\n  rowscopied: 3\n- schema: s\n  name: t\n  oid: 9\n  attributestring: (a)\nstatistics: []\n";
        let tables = entries(list);
        assert_eq!(tables.len(), 2);
        assert_eq!((tables[0].name.as_str(), tables[0].attributes.as_str()), ("events", "(id,\"User Id\")"));
        assert_eq!(segment_of("gpbackup_3_20260131100000_16385.gz", "16385"), Some(3));
        for name in [
            "gpbackup_3_20260131100000_16386.gz",
            "gpbackup_20260131100000_toc.yaml",
            "x",
            "gpbackup_-1_2_16385",
        ] {
            assert_eq!(segment_of(name, "16385"), None, "{name}");
        }
    }
}
