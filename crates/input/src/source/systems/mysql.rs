//! Folders of `mysqldump --tab`: a statement in `table.sql`, and its rows in `table.txt`, as
//! tab-separated text with backslash escapes.

use std::path::Path;

use crate::source::ddl::read_ddl;
use crate::source::declared::{DataForm, DeclaredTable};
use crate::source::error::SourceError;
use crate::source::file_name::format_of_name;
use crate::source::systems::{ForeignTable, Listed, Listing};

/// Returns the tables of a folder; none if it is no such dump.
///
/// # Errors
/// [`SourceError`] if a statement cannot be read.
pub(in crate::source) fn tables(listing: &Listing) -> Result<Vec<ForeignTable>, SourceError> {
    let is_other = |file: &Listed| format_of_name(Path::new(&file.path)).is_some();
    if listing.files.iter().any(is_other) {
        return Ok(Vec::new());
    }
    let pair = |statement: &'_ Listed| {
        let rows = format!("{}.txt", statement.path.strip_suffix(".sql")?);
        listing.files.iter().find(|file| file.path == rows)
    };
    let pairs = listing.files.iter().filter_map(|file| Some((file, pair(file)?)));
    let mut tables = Vec::new();
    for (statement, rows) in pairs {
        let file = statement.input.name();
        let declared = read_ddl(&statement.text()?, &file, None).map_err(|error| SourceError::Refused {
            file,
            problem: format!("cannot be read as the statement of a table: {error}"),
            advice: "name the .txt file and give the statement with --ddl".to_owned(),
        })?;
        tables.push(ForeignTable {
            declared: DeclaredTable { form: DataForm::Escaped, ..declared },
            files: vec![rows.input.clone()],
            checksums: Vec::new(),
        });
    }
    Ok(tables)
}
