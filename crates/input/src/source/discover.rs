//! Resolves arguments to inputs: files, folders, globs and standard input.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::source::error::SourceError;
use crate::source::file_name::format_of_name;
use crate::source::remote::{self, RemoteFile};
use evenkeel_storage::Place;

/// One input to read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputPath {
    /// A file.
    File(PathBuf),
    /// A file in an object store.
    Remote(RemoteFile),
    /// Standard input.
    Stdin,
    /// A copy of something that can be read only once, under the name of the original.
    Copy {
        /// Path of the copy.
        path: PathBuf,
        /// Name of the original.
        name: String,
    },
}

impl InputPath {
    /// Returns the name of the input in messages.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Remote(file) => file.url.clone(),
            Self::Stdin => "standard input".to_owned(),
            Self::Copy { name, .. } => name.clone(),
        }
    }

    /// Returns the stored size of the input in bytes; 0 if it is not a file.
    pub(super) fn stored_bytes(&self) -> u64 {
        match self {
            Self::File(path) | Self::Copy { path, .. } => {
                std::fs::metadata(path).map_or(0, |metadata| metadata.len())
            }
            Self::Remote(file) => file.bytes,
            Self::Stdin => 0,
        }
    }
}

/// Inputs named by the arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Inputs in the order of the arguments; an input that is named twice is read once.
    pub paths: Vec<InputPath>,
    /// Notes on files that were left out, one sentence each.
    pub notes: Vec<String>,
}

/// Finds the inputs that the arguments name. Each argument is a file, a folder (all files below it
/// with a known ending, sorted, without hidden ones), a glob pattern of files and folders, a URL of
/// an object store for any of these, or `-` for standard input.
///
/// # Errors
/// [`SourceError`] if an argument names nothing.
pub fn find_inputs(arguments: &[String]) -> Result<Inputs, SourceError> {
    let mut inputs = Inputs::default();
    let mut seen = HashSet::new();
    for argument in arguments {
        for path in expand(argument, &mut inputs.notes)? {
            if seen.insert(path.clone()) {
                inputs.paths.push(path);
            } else if path == InputPath::Stdin {
                return Err(SourceError::StdinTwice);
            }
        }
    }
    Ok(inputs)
}

fn expand(argument: &str, notes: &mut Vec<String>) -> Result<Vec<InputPath>, SourceError> {
    if argument == "-" {
        return Ok(vec![InputPath::Stdin]);
    }
    let path = match Place::parse(Path::new(argument))? {
        Place::Local(path) => path,
        Place::Remote(url) => {
            let (files, unknown) = remote::find(argument, &url)?;
            notes.extend(left_out(&unknown));
            return Ok(files.into_iter().map(InputPath::Remote).collect());
        }
    };
    let found = if path.exists() {
        vec![path.clone()]
    } else if let Some(pattern) = path.to_str().filter(|text| text.contains(['*', '?', '['])) {
        expand_glob(pattern)?
    } else {
        return Err(SourceError::NotFound { path: argument.to_owned() });
    };
    let mut files = Vec::new();
    for path in found {
        if path.is_dir() {
            files.extend(files_of_folder(&path, notes)?);
        } else {
            files.push(path);
        }
    }
    if files.is_empty() {
        return Err(SourceError::EmptyFolder { path: argument.to_owned() });
    }
    Ok(files.into_iter().map(InputPath::File).collect())
}

fn expand_glob(pattern: &str) -> Result<Vec<PathBuf>, SourceError> {
    let matches = glob::glob(pattern)
        .map_err(|error| SourceError::Pattern { pattern: pattern.to_owned(), reason: error.to_string() })?;
    let found: Vec<PathBuf> = matches
        .map(|found| {
            found.map_err(|error| SourceError::Read {
                file: error.path().display().to_string(),
                source: error.into(),
            })
        })
        .collect::<Result<_, _>>()?;
    if found.is_empty() { Err(SourceError::NoMatch { pattern: pattern.to_owned() }) } else { Ok(found) }
}

fn files_of_folder(folder: &Path, notes: &mut Vec<String>) -> Result<Vec<PathBuf>, SourceError> {
    let mut walk = Walk::default();
    walk.folder(folder)?;
    walk.files.sort();
    walk.unknown.sort();
    let unknown: Vec<String> = walk.unknown.iter().map(|path| path.display().to_string()).collect();
    notes.extend(left_out(&unknown));
    Ok(walk.files)
}

/// Returns a note on files that are not inputs, if there are any.
fn left_out(unknown: &[String]) -> Option<String> {
    let first: Vec<&str> = unknown.iter().take(3).map(String::as_str).collect();
    let more = if unknown.len() > 3 { ", ..." } else { "" };
    let files = if unknown.len() == 1 { "file" } else { "files" };
    let note =
        || format!("{} {files} with unknown extensions left out: {}{more}", unknown.len(), first.join(", "));
    (!unknown.is_empty()).then(note)
}

/// The files below a folder.
#[derive(Default)]
struct Walk {
    files: Vec<PathBuf>,
    unknown: Vec<PathBuf>,
    /// Visited folders, with links resolved, because links may form a cycle.
    seen: HashSet<PathBuf>,
}

impl Walk {
    fn folder(&mut self, folder: &Path) -> Result<(), SourceError> {
        let error = |source| SourceError::Read { file: folder.display().to_string(), source };
        if !self.seen.insert(folder.canonicalize().map_err(error)?) {
            return Ok(());
        }
        // The portions of a table also hold superseded rows; only its log knows which rows are
        // visible.
        if folder.join("_log").is_dir() {
            return Err(SourceError::Table { path: folder.display().to_string() });
        }
        for entry in std::fs::read_dir(folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']));
            if hidden {
                continue;
            }
            if path.is_dir() {
                self.folder(&path)?;
            } else if format_of_name(&path).is_some() {
                self.files.push(path);
            } else {
                self.unknown.push(path);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::file_name::is_tab_separated;
    use crate::source::options::InputFormat;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("b/_old")).unwrap();
        for file in ["z.csv", "b/a.parquet", "b/notes.txt", "b/.c.csv", "b/_old/x.json", "y.NDJSON.gz"] {
            std::fs::write(folder.path().join(file), "x").unwrap();
        }
        folder
    }

    fn names(arguments: &[String]) -> Vec<String> {
        find_inputs(arguments)
            .unwrap()
            .paths
            .into_iter()
            .map(|input| match input {
                InputPath::File(path) => path.file_name().unwrap().to_string_lossy().into_owned(),
                _ => "-".to_owned(),
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
    fn what_is_left_out_is_noted_and_links_in_a_circle_end() {
        let folder = folder();
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("b/up")).unwrap();
        let found = find_inputs(&[folder.path().join("*").display().to_string()]).unwrap();
        assert!(found.notes[0].contains("1 file with unknown extensions left out"), "{:?}", found.notes);
        assert!(found.paths.iter().any(|p| matches!(p, InputPath::File(p) if p.ends_with("b/a.parquet"))));
        assert!(found.paths.len() < 10, "{:?}", found.paths);
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

    #[test]
    fn a_table_is_no_input_and_neither_is_an_address() {
        let folder = folder();
        std::fs::create_dir_all(folder.path().join("b/_log")).unwrap();
        let at = vec![folder.path().display().to_string()];
        assert!(matches!(find_inputs(&at), Err(SourceError::Table { .. })));
        assert!(matches!(find_inputs(&["http://b/x.parquet".to_owned()]), Err(SourceError::Storage { .. })));
    }
}
