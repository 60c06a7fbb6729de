//! Folders of `mysqldump --tab`: a statement in `table.sql`, and its rows in `table.txt`, as
//! tab-separated text with backslash escapes.

use std::path::Path;

use crate::source::ddl::read_ddl;
use crate::source::declared::{DataForm, DeclaredTable};
use crate::source::error::SourceError;
use crate::source::file_name::format_of_name;
use crate::source::input_path::InputPath;
use crate::source::systems::foreign_table::ForeignTable;
use crate::source::systems::listing::{ListedFile, Listing};

/// Programs that name themselves in the first lines of their statements.
const WRITERS: [&str; 2] = ["-- MySQL dump", "-- MariaDB dump"];

/// Returns the tables of a folder; empty if it is not such a dump.
///
/// # Errors
/// [`SourceError`] if a statement cannot be read.
pub(in crate::source) fn tables(listing: &Listing) -> Result<Vec<ForeignTable>, SourceError> {
    let is_other = |file: &ListedFile| format_of_name(Path::new(&file.path)).is_some();
    if listing.files.iter().any(is_other) {
        return Ok(Vec::new());
    }
    let pair = |statement: &'_ ListedFile| {
        let rows = format!("{}.txt", statement.path.strip_suffix(".sql")?);
        listing.files.iter().find(|file| file.path == rows)
    };
    let pairs = listing.files.iter().filter_map(|file| Some((file, pair(file)?)));
    let table = |(statement, rows): (&ListedFile, &ListedFile)| {
        let declared = declared_in(&statement.text()?, statement)?;
        Ok(ForeignTable { declared, files: vec![rows.input.clone()], checksums: Vec::new() })
    };
    pairs.map(table).collect()
}

fn declared_in(text: &str, statement: &ListedFile) -> Result<DeclaredTable, SourceError> {
    let file = statement.input.name();
    let declared = read_ddl(text, &file, None).map_err(|error| SourceError::Refused {
        file,
        problem: format!("cannot be read as the statement of a table: {error}"),
        advice: "give the statement with --ddl, and name a copy of the .txt file in another folder"
            .to_owned(),
    })?;
    Ok(DeclaredTable { form: DataForm::Escaped, ..declared })
}

/// Whether an input may be the rows of such a dump.
pub(in crate::source) fn is_data_file(input: &InputPath) -> bool {
    matches!(input, InputPath::File(_) | InputPath::Remote(_)) && input.name().ends_with(".txt")
}

/// Returns the table of the rows in a file, if a dump wrote its statement next to it; `folder`
/// lists the files of its folder.
///
/// # Errors
/// As for [`tables`].
pub(in crate::source) fn table_of_file(
    input: &InputPath,
    folder: &Listing,
) -> Result<Option<DeclaredTable>, SourceError> {
    let name = input.file_name();
    let Some(stem) = name.strip_suffix(".txt") else { return Ok(None) };
    let statement = format!("{stem}.sql");
    let Some(statement) = folder.directly_in("").find(|file| file.parts().1 == statement) else {
        return Ok(None);
    };
    let text = statement.text()?;
    // Other SQL files are unrelated to a text file of the same name.
    let is_of_dump = text.lines().take(5).any(|line| WRITERS.iter().any(|writer| line.contains(writer)));
    if is_of_dump { declared_in(&text, statement).map(Some) } else { Ok(None) }
}
