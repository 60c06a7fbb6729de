//! From arguments to inputs: files, folders, globs and standard input.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::source::{InputFormat, SourceError};

/// One input to read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InputPath {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

/// The inputs that the arguments name, in order: each argument is a file, a folder (all files below it with a known
/// ending, sorted, hidden ones left out), a glob pattern or `-` for standard input. A file that is named twice is read
/// once.
///
/// # Errors
/// [`SourceError`] where an argument names nothing.
pub fn find_inputs(arguments: &[String]) -> Result<Vec<InputPath>, SourceError> {
    let mut seen = HashSet::new();
    let mut inputs = Vec::new();
    for argument in arguments {
        for input in expand(argument)? {
            let new = seen.insert(input.clone());
            match (new, input) {
                (true, input) => inputs.push(input),
                (false, InputPath::Stdin) => return Err(SourceError::StdinTwice),
                (false, InputPath::File(_)) => {}
            }
        }
    }
    Ok(inputs)
}

fn expand(argument: &str) -> Result<Vec<InputPath>, SourceError> {
    if argument == "-" {
        return Ok(vec![InputPath::Stdin]);
    }
    let path = Path::new(argument);
    if path.is_dir() {
        let mut files = Vec::new();
        walk(path, &mut files)?;
        if files.is_empty() {
            return Err(SourceError::EmptyFolder { path: argument.to_owned() });
        }
        files.sort();
        return Ok(files.into_iter().map(InputPath::File).collect());
    }
    if path.exists() {
        return Ok(vec![InputPath::File(path.to_owned())]);
    }
    if argument.contains(['*', '?', '[']) {
        return expand_glob(argument);
    }
    Err(SourceError::NotFound { path: argument.to_owned() })
}

fn expand_glob(pattern: &str) -> Result<Vec<InputPath>, SourceError> {
    let matches = glob::glob(pattern)
        .map_err(|error| SourceError::Pattern { pattern: pattern.to_owned(), reason: error.to_string() })?;
    let mut inputs = Vec::new();
    for found in matches {
        let path = found.map_err(|error| SourceError::Read {
            file: error.path().display().to_string(),
            source: error.into(),
        })?;
        if path.is_file() {
            inputs.push(InputPath::File(path));
        }
    }
    if inputs.is_empty() { Err(SourceError::NoMatch { pattern: pattern.to_owned() }) } else { Ok(inputs) }
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), SourceError> {
    let error = |source| SourceError::Read { file: folder.display().to_string(), source };
    for entry in std::fs::read_dir(folder).map_err(error)? {
        let path = entry.map_err(error)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']));
        if hidden {
            continue;
        }
        if path.is_dir() {
            walk(&path, files)?;
        } else if format_of_name(&path).is_some() {
            files.push(path);
        }
    }
    Ok(())
}

/// The format that a file's ending stands for, with `.gz` and `.zst` taken off.
pub(super) fn format_of_name(path: &Path) -> Option<InputFormat> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let name = [".gz", ".zst", ".zstd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    match name.rsplit_once('.')?.1 {
        "parquet" | "pq" => Some(InputFormat::Parquet),
        "csv" | "tsv" => Some(InputFormat::Csv),
        "ndjson" | "jsonl" | "json" => Some(InputFormat::Ndjson),
        "arrow" | "ipc" | "arrows" | "feather" => Some(InputFormat::Arrow),
        _ => None,
    }
}

/// Whether a file's ending says that its fields are separated by tabs.
pub(super) fn is_tab_separated(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    name.split('.').skip(1).any(|part| part == "tsv")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("b/_log")).unwrap();
        for file in ["z.csv", "b/a.parquet", "b/notes.txt", "b/.c.csv", "b/_log/x.json", "y.NDJSON.gz"] {
            std::fs::write(folder.path().join(file), "x").unwrap();
        }
        folder
    }

    fn names(arguments: &[String]) -> Vec<String> {
        find_inputs(arguments)
            .unwrap()
            .into_iter()
            .map(|input| match input {
                InputPath::File(path) => path.file_name().unwrap().to_string_lossy().into_owned(),
                InputPath::Stdin => "-".to_owned(),
            })
            .collect()
    }

    #[test]
    fn folders_give_known_files_sorted_and_nothing_hidden() {
        let folder = folder();
        assert_eq!(names(&[folder.path().display().to_string()]), ["a.parquet", "y.NDJSON.gz", "z.csv"]);
    }

    #[test]
    fn globs_files_and_stdin_keep_their_order_and_come_once() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name).display().to_string();
        assert_eq!(
            names(&[at("z.csv"), "-".into(), at("*.csv"), at("b/notes.txt")]),
            ["z.csv", "-", "notes.txt"]
        );
    }

    #[test]
    fn an_argument_that_names_nothing_is_refused() {
        let folder = folder();
        let at = |name: &str| vec![folder.path().join(name).display().to_string()];
        assert!(matches!(find_inputs(&at("nope.csv")), Err(SourceError::NotFound { .. })));
        assert!(matches!(find_inputs(&at("*.nope")), Err(SourceError::NoMatch { .. })));
        assert!(matches!(find_inputs(&["-".into(), "-".into()]), Err(SourceError::StdinTwice)));
    }

    #[test]
    fn endings_tell_formats() {
        for (name, format) in [
            ("a.parquet", Some(InputFormat::Parquet)),
            ("a.CSV.gz", Some(InputFormat::Csv)),
            ("a.tsv.zst", Some(InputFormat::Csv)),
            ("a.jsonl", Some(InputFormat::Ndjson)),
            ("a.feather", Some(InputFormat::Arrow)),
            ("a.gz", None),
            ("csv", None),
        ] {
            assert_eq!(format_of_name(Path::new(name)), format, "{name}");
        }
        assert!(is_tab_separated(Path::new("x/a.tsv.gz")));
        assert!(!is_tab_separated(Path::new("x.tsv/a.csv")));
    }
}
