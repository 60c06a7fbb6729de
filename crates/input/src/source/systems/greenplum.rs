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
use crate::source::systems::{ForeignTable, Listed, Listing};

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

/// Returns the tables of a backup, sorted by name; none if the folder is not one.
///
/// # Errors
/// [`SourceError`] if parts are missing or cannot be read.
pub(in crate::source) fn tables(listing: &Listing) -> Result<Vec<ForeignTable>, SourceError> {
    let named = |ending: &str| {
        listing.files.iter().find(|file| {
            let (_, name) = file.parts();
            name.starts_with("gpbackup_") && name.ends_with(ending)
        })
    };
    let (list, statements) = (named("_toc.yaml"), named("_metadata.sql"));
    let lists = listing.files.iter().filter(|file| {
        let (_, name) = file.parts();
        name.starts_with("gpbackup_") && name.ends_with("_toc.yaml")
    });
    let lists: Vec<&str> = lists.map(|file| file.path.as_str()).collect();
    let refused = |problem: &str, advice: &str| SourceError::Refused {
        file: listing.name.clone(),
        problem: problem.to_owned(),
        advice: advice.to_owned(),
    };
    if let [first, second, ..] = lists.as_slice() {
        let problem = format!("holds several backups by gpbackup: {first} and {second}");
        return Err(refused(&problem, "put the files of one into a folder of their own"));
    }
    let (list, statements) = match (list, statements) {
        (None, None) => return Ok(Vec::new()),
        (Some(list), Some(statements)) => (list, statements),
        _ => {
            return Err(refused(
                "holds only a part of a backup by gpbackup",
                "put the files of the coordinator (_toc.yaml, _metadata.sql) and those of all segments into one folder",
            ));
        }
    };
    let declared = read_tables(&statements.text()?).map_err(|reason| SourceError::Refused {
        file: statements.input.name(),
        problem: format!("its statements cannot be read: {reason}"),
        advice: "write the table as CSV: COPY table TO 'table.csv' CSV HEADER".to_owned(),
    })?;
    // Without the file of the configuration, the last segments could be missing unnoticed only
    // together.
    let segment_count = named("_config.yaml").map(|file| file.text()).transpose()?;
    let segment_count = segment_count.as_deref().and_then(segment_count_of);
    let mut tables = Vec::new();
    for entry in entries(&list.text()?) {
        let mut files: Vec<(u64, &Listed)> = listing
            .files
            .iter()
            .filter_map(|file| Some((segment_of(file.parts().1, &entry.oid)?, file)))
            .collect();
        files.sort_by_key(|(segment, _)| *segment);
        if files.is_empty() {
            return Err(refused(
                &format!("the backup by gpbackup has no files of {}.{}", entry.schema, entry.name),
                "copy the files of all segments here; a backup with --single-data-file is not read: make it without",
            ));
        }
        let segments = segment_count.unwrap_or(0).max(files.last().map_or(0, |(last, _)| last + 1));
        let is_replicated = entry.is_replicated
            || declared
                .iter()
                .any(|table| table.is_replicated && table.name == format!("{}.{}", entry.schema, entry.name));
        if is_replicated {
            files.truncate(1);
        }
        let has = |segment: &u64| files.iter().any(|(found, _)| found == segment);
        if let Some(missing) = (0..segments).find(|segment| !is_replicated && !has(segment)) {
            return Err(refused(
                &format!(
                    "the backup by gpbackup has no file of segment {missing} of {}.{}",
                    entry.schema, entry.name
                ),
                "copy the files of all segments here",
            ));
        }
        let name = format!("{}.{}", entry.schema, entry.name);
        let found = declared.iter().find(|table| table.name == name);
        let mut table = found.cloned().unwrap_or_default();
        // The list of columns is that of a COPY statement.
        let copy = read_copy(&format!("COPY t {} FROM stdin;", entry.attributes));
        let attributes = copy.map(|copy| copy.columns).unwrap_or_default();
        let column = |attribute: &String| {
            let declared = table.columns.iter().find(|column| column.name == *attribute);
            declared.cloned().unwrap_or_else(|| DeclaredColumn::untyped(attribute))
        };
        let columns = attributes.iter().map(column).collect();
        table = DeclaredTable {
            file: statements.input.name(),
            name,
            layout: TableLayout::Unknown,
            columns,
            partitions: Some(segments).filter(|_| !is_replicated),
            has_file_per_partition: segments > 1 && !is_replicated,
            form: DataForm::OrderedQuoted,
            ..table
        };
        tables.push(ForeignTable {
            declared: table,
            files: files.into_iter().map(|(_, file)| file.input.clone()).collect(),
            checksums: Vec::new(),
        });
    }
    tables.sort_by(|a, b| a.declared.name.cmp(&b.declared.name));
    Ok(tables)
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
    let (_, of) = rest.split_once('_')?;
    (of == oid).then(|| segment.parse().ok())?
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
        let found = entries(list);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].name.as_str(), found[0].attributes.as_str()), ("events", "(id,\"User Id\")"));
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
