//! Reports in HTML files.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use evenkeel::sink::PartFile;

use crate::cli::{Failure, Output};

const BEGINNING: &str = "<!doctype html";

/// Refuses a path that no report can be written to, before rows are read.
///
/// # Errors
/// Wrong usage if there is no such folder, or if the file is something other than a report.
pub(crate) fn check(path: &Path) -> Result<(), Failure> {
    if let Some(folder) = path.parent()
        && !folder.as_os_str().is_empty()
        && !folder.is_dir()
    {
        return Err(Failure::wrong_usage(format!("--html: there is no folder {}", folder.display())));
    }
    if path.is_dir() {
        return Err(Failure::wrong_usage(format!("--html: {} is a folder", path.display())));
    }
    if is_other_file(path) {
        return Err(Failure::wrong_usage(format!(
            "--html: {} is not a report in HTML and would be replaced; name another file, or remove it first",
            path.display()
        )));
    }
    Ok(())
}

/// Whether there is a file with other content than HTML.
fn is_other_file(path: &Path) -> bool {
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() > 0);
    let mut beginning = [0; BEGINNING.len()];
    let mut read = || File::open(path)?.read_exact(&mut beginning);
    is_file && !(read().is_ok() && beginning.eq_ignore_ascii_case(BEGINNING.as_bytes()))
}

/// Writes a report, which replaces an earlier one as a whole.
///
/// # Errors
/// As [`check`], or if the file cannot be written.
pub(crate) fn write(path: &Path, html: &str, out: &Output) -> Result<(), Failure> {
    check(path)?;
    let written = match path.exists() && !path.is_file() {
        // A pipe or a terminal.
        true => std::fs::write(path, html),
        false => PartFile::create(path).and_then(|file| {
            file.file().write_all(html.as_bytes())?;
            file.publish()
        }),
    };
    written.map_err(|error| anyhow::anyhow!("{}: cannot write: {error}", path.display()))?;
    out.note(&format!("the report is in {}", path.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reports_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str, content: &str| {
            std::fs::write(dir.path().join(name), content).unwrap();
            dir.path().join(name)
        };
        for replaced in [path("a", ""), path("b", "<!DOCTYPE html>\n"), dir.path().join("new")] {
            assert!(check(&replaced).is_ok(), "{}", replaced.display());
        }
        for kept in [path("c.csv", "id,n\n1,2\n"), path("d", "<!"), dir.path().to_owned()] {
            assert!(check(&kept).is_err(), "{}", kept.display());
        }
        assert!(check(&dir.path().join("none/report.html")).is_err());
    }
}
