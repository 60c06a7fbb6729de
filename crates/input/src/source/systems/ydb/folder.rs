//! Folders of a YDB dump: which tables they hold, and which files hold the rows.

use crate::source::declared::DeclaredTable;
use crate::source::error::SourceError;
use crate::source::input_path::InputPath;
use crate::source::systems::checksums::{Checksum, check as check_checksums};
use crate::source::systems::foreign_table::ForeignTable;
use crate::source::systems::listing::{ListedFile, Listing};
use crate::source::systems::ydb::scheme;

const SCHEME: &str = "scheme.pb";
/// Left in a folder while it is written.
const UNFINISHED: [&str; 2] = ["incomplete", "incomplete.csv"];

/// Returns the tables of a dump, sorted by path; empty if the folder is not a dump.
///
/// # Errors
/// [`SourceError`] if the dump is encrypted or unfinished, or if a schema cannot be read.
pub(in crate::source) fn tables(listing: &Listing) -> Result<Vec<ForeignTable>, SourceError> {
    let is_encrypted =
        |name: &str| name.ends_with(".enc") && (name.starts_with("scheme.pb") || name.starts_with("data_"));
    if let Some(file) = listing.first_named(is_encrypted) {
        return Err(SourceError::Foreign {
            file: file.input.name(),
            what: "part of an encrypted YDB export".to_owned(),
            advice: "export it again without --encryption-algorithm, or import it and export it without encryption"
                .to_owned(),
        });
    }
    listing.named(SCHEME).map(|scheme| table(listing, scheme)).collect()
}

fn table(listing: &Listing, scheme: &ListedFile) -> Result<ForeignTable, SourceError> {
    let (folder, _) = scheme.parts();
    let files = || listing.directly_in(folder);
    if let Some(file) = files().find(|file| UNFINISHED.contains(&file.parts().1)) {
        return Err(SourceError::Foreign {
            file: file.input.name(),
            what: "a mark of a YDB dump that was not finished".to_owned(),
            advice: "dump the table again; rows are missing".to_owned(),
        });
    }
    let mut data: Vec<(u64, &ListedFile)> =
        files().filter_map(|file| Some((data_file_number(file.parts().1)?, file))).collect();
    data.sort_by_key(|(number, _)| *number);
    let numbers_missing = (0..).zip(&data).find(|(expected, (number, _))| expected != number);
    if let Some((missing, _)) = numbers_missing {
        return Err(SourceError::Foreign {
            file: scheme.input.name(),
            what: "the schema of a YDB dump whose data files are incomplete".to_owned(),
            advice: format!(
                "data file {missing:02} is missing, or another one is there twice; the folder must hold each of them once"
            ),
        });
    }
    let declared = declared_in(scheme, folder, files().any(|file| file.parts().1 == "metadata.json"))?;
    let data: Vec<&ListedFile> = data.into_iter().map(|(_, file)| file).collect();
    Ok(ForeignTable {
        declared,
        files: data.iter().map(|file| file.input.clone()).collect(),
        checksums: checksums(listing, folder, data.into_iter().chain([scheme])),
    })
}

fn declared_in(scheme: &ListedFile, folder: &str, is_export: bool) -> Result<DeclaredTable, SourceError> {
    let file = scheme.input.name();
    let mut declared = scheme::read_scheme(&scheme.text()?, &file, folder)
        .map_err(|source| SourceError::Scheme { file: file.clone(), source })?;
    declared.has_file_per_partition = is_export;
    Ok(declared)
}

/// Returns the files of a folder that have a checksum. The checksum, and the name of its file,
/// refer to the content before compression.
fn checksums<'a>(
    listing: &Listing,
    folder: &str,
    files: impl Iterator<Item = &'a ListedFile>,
) -> Vec<(InputPath, Checksum)> {
    let checksum = |file: &ListedFile| {
        let (_, name) = file.parts();
        let name = format!("{}.sha256", name.strip_suffix(".zst").unwrap_or(name));
        let beside = listing.directly_in(folder).find(|file| file.parts().1 == name)?;
        Some((file.input.clone(), Checksum::Sha256In(beside.input.clone())))
    };
    files.filter_map(checksum).collect()
}

/// Returns the table of data files of a dump, if the schema is next to them; `folder` lists the
/// files of their folder.
///
/// # Errors
/// As for [`tables`], and [`SourceError`] if a file does not have its checksum.
pub(in crate::source) fn table_of_files(
    files: &[InputPath],
    folder: &Listing,
) -> Result<Option<DeclaredTable>, SourceError> {
    let Some(scheme) = folder.directly_in("").find(|file| file.parts().1 == SCHEME) else { return Ok(None) };
    let named: Vec<String> = files.iter().map(InputPath::file_name).collect();
    let is_read = |file: &&ListedFile| std::ptr::eq(*file, scheme) || named.contains(&file.path);
    check_checksums(&checksums(folder, "", folder.directly_in("").filter(is_read)))?;
    // Some of the files do not show the distribution over all partitions.
    Ok(Some(declared_in(scheme, "", false)?))
}

/// Returns the number of a data file: 7 of `data_07.csv`, `data_07.csv.zst` and `data_07.parquet`.
fn data_file_number(name: &str) -> Option<u64> {
    let (number, ending) = name.strip_prefix("data_")?.split_once('.')?;
    let is_number = number.len() >= 2 && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_known = matches!(ending, "csv" | "csv.zst" | "parquet");
    if is_number && is_known { number.parse().ok() } else { None }
}

/// Whether an input has the name of a data file of a dump.
pub(in crate::source) fn is_data_file(input: &InputPath) -> bool {
    data_file_number(&input.file_name()).is_some()
}
