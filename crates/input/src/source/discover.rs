//! Resolves arguments to inputs: files, folders, globs and standard input.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::source::declared::DeclaredTable;
use crate::source::error::SourceError;
use crate::source::file_name::format_of_name;
use crate::source::input_path::InputPath;
use crate::source::options::InputOptions;
use crate::source::remote_listing::{self, RemotePlace};
use crate::source::systems::{self, ListedFile, Listing, mysql, ydb};
use evenkeel_model::remark::Remark;
use evenkeel_storage::{Place, is_table};

/// Inputs named by the arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// Inputs in the order of the arguments; an input that is named twice is read once.
    pub paths: Vec<InputPath>,
    /// Notes on files that were left out, one sentence each.
    pub notes: Vec<Remark>,
    /// Table that the inputs are a dump of, if they declare one.
    pub declared: Option<DeclaredTable>,
}

impl Inputs {
    /// Adds the table that some of the inputs declare; all must declare the same columns.
    fn declare(&mut self, declared: DeclaredTable) -> Result<(), SourceError> {
        match &self.declared {
            None => self.declared = Some(declared),
            Some(first) if first.columns != declared.columns || first.form != declared.form => {
                return Err(SourceError::OtherTable { first: first.file.clone(), other: declared.file });
            }
            Some(_) => {
                // Each dump names the partitions that it has.
                let sections = self.declared.iter_mut().map(|first| &mut first.sections);
                sections.for_each(|sections| sections.extend(declared.sections.iter().cloned()));
            }
        }
        Ok(())
    }

    /// Returns the options for reading these inputs: a declared table gives the columns and the
    /// spelling of values.
    #[must_use]
    pub fn options(&self, options: InputOptions) -> InputOptions {
        match &self.declared {
            Some(declared) => options.for_table(declared),
            None => options,
        }
    }
}

/// Finds the inputs that the arguments name. Each argument is a file, a folder (all files below it
/// with a known ending, sorted, without hidden ones), a dump of another system, a glob pattern of
/// files and folders, a URL of an object store for any of these, or `-` for standard input. `table`
/// names one of the tables of a dump.
///
/// # Errors
/// [`SourceError`] if an argument names nothing, or a dump that cannot be read.
pub fn find_inputs(arguments: &[String], table: Option<&str>) -> Result<Inputs, SourceError> {
    let mut inputs = Inputs::default();
    let mut seen = HashSet::new();
    // Inputs without a declared table.
    let mut plain = None;
    for argument in arguments {
        let expanded = expand(argument, table)?;
        inputs.notes.extend(expanded.notes);
        match expanded.declared {
            Some(declared) => inputs.declare(declared)?,
            None => plain = plain.or(expanded.paths.first().cloned()),
        }
        for path in expanded.paths {
            if seen.insert(path.clone()) {
                inputs.paths.push(path);
            } else if path == InputPath::Stdin {
                return Err(SourceError::StdinTwice);
            }
        }
    }
    match (&inputs.declared, plain, table) {
        (Some(declared), Some(plain), _) => {
            Err(SourceError::OtherTable { first: declared.file.clone(), other: plain.name() })
        }
        (None, _, Some(table)) => Err(SourceError::NotSeveralTables { table: table.to_owned() }),
        _ => Ok(inputs),
    }
}

/// Returns the inputs named by one argument.
fn expand(argument: &str, table: Option<&str>) -> Result<Inputs, SourceError> {
    if argument == "-" {
        return Ok(Inputs { paths: vec![InputPath::Stdin], ..Inputs::default() });
    }
    let path = match Place::parse(Path::new(argument))? {
        Place::Local(path) => path,
        Place::Remote(url) => {
            return match remote_listing::find(argument, &url)? {
                RemotePlace::Files(files) => {
                    let files = files.into_iter().map(InputPath::Remote).collect();
                    inputs_of_files(files, table, remote_listing::beside)
                }
                RemotePlace::Folder(listing) => inputs_in_folder(&listing, table),
            };
        }
    };
    let paths = if path.exists() {
        vec![path.clone()]
    } else if let Some(pattern) = path.to_str().filter(|text| text.contains(['*', '?', '['])) {
        expand_glob(pattern)?
    } else {
        return Err(SourceError::NotFound { path: argument.to_owned() });
    };
    let mut inputs = Inputs::default();
    let mut files = Vec::new();
    let has_files = paths.iter().any(|path| !path.is_dir());
    for path in paths {
        if let Some(table) = table_around(&path) {
            return Err(SourceError::Table { path: table.display().to_string() });
        }
        if !path.is_dir() {
            files.push(InputPath::File(path));
            continue;
        }
        let listing = list_folder(&path)?;
        let in_folder = match inputs_in_folder(&listing, table) {
            // Other paths that match a pattern may hold files.
            Err(SourceError::EmptyFolder { .. }) if path.to_str() != Some(argument) => continue,
            inputs => inputs?,
        };
        inputs.notes.extend(in_folder.notes);
        in_folder.declared.map_or(Ok(()), |declared| inputs.declare(declared))?;
        inputs.paths.extend(in_folder.paths);
    }
    if has_files {
        let named = inputs_of_files(files, table, list_beside)?;
        inputs.notes.extend(named.notes);
        inputs.declared = inputs.declared.or(named.declared);
        inputs.paths.splice(0..0, named.paths);
    }
    if inputs.paths.is_empty() && inputs.declared.is_none() {
        return Err(SourceError::EmptyFolder { path: argument.to_owned(), other: None });
    }
    Ok(inputs)
}

/// Returns the table whose log or whose partitions a path is in.
fn table_around(path: &Path) -> Option<&Path> {
    path.ancestors().find_map(|folder| {
        let name = folder.file_name()?.to_str()?;
        let is_part = name == "_log" || name.starts_with("partition=");
        folder.parent().filter(|table| is_part && is_table(table))
    })
}

/// Returns files that were named directly; data files of a dump have a schema next to them, in the
/// folder listed by `beside`.
fn inputs_of_files(
    files: Vec<InputPath>,
    table: Option<&str>,
    beside: impl Fn(&InputPath) -> Result<Listing, SourceError>,
) -> Result<Inputs, SourceError> {
    if let Some(file) = files.iter().find(|file| systems::is_list_of_spanner(&file.name())) {
        return Err(SourceError::Refused {
            file: file.name(),
            problem: "is a list of the files of an export of Spanner".to_owned(),
            advice: "name its folder, and a table with --table".to_owned(),
        });
    }
    if let Some(declared) = systems::spanner_table(&files, table)? {
        return Ok(Inputs { paths: files, notes: declared.notes.clone(), declared: Some(declared) });
    }
    if let [only] = files.as_slice()
        && let Some(declared) = systems::pg_dump_table(only, table)?
    {
        return Ok(Inputs { paths: files, notes: declared.notes.clone(), declared: Some(declared) });
    }
    if let Some(file) = files.iter().find(|file| ydb::is_data_file(file))
        && let Some(declared) = ydb::table_of_files(&files, &beside(file)?)?
    {
        if let Some(other) = files.iter().find(|file| !ydb::is_data_file(file)) {
            return Err(SourceError::OtherTable { first: declared.file, other: other.name() });
        }
        return Ok(Inputs { paths: files, declared: Some(declared), notes: Vec::new() });
    }
    if let [only] = files.as_slice()
        && mysql::is_data_file(only)
        && let Some(declared) = mysql::table_of_file(only, &beside(only)?)?
    {
        return Ok(Inputs { paths: files, declared: Some(declared), notes: Vec::new() });
    }
    Ok(Inputs { paths: files, declared: None, notes: Vec::new() })
}

/// Returns the inputs in a folder: the files of a dump, or all files with a known ending.
fn inputs_in_folder(listing: &Listing, table: Option<&str>) -> Result<Inputs, SourceError> {
    if let Some(table) = systems::table_in(listing, table)? {
        let notes = table.declared.notes.clone();
        return Ok(Inputs { paths: table.files, notes, declared: Some(table.declared) });
    }
    let mut inputs = Inputs::default();
    let (mut unknown, mut metadata) = (Vec::new(), Vec::new());
    for file in &listing.files {
        if systems::is_metadata(file.parts().1) {
            metadata.push(file.input.name());
        } else if format_of_name(Path::new(&file.path)).is_some() {
            inputs.paths.push(file.input.clone());
        } else {
            unknown.push(file.input.name());
        }
    }
    let is_input = |file: &&ListedFile| inputs.paths.contains(&file.input);
    systems::check_shards(listing.files.iter().filter(is_input))?;
    inputs.declared = systems::spanner_table(&inputs.paths, table)?;
    inputs.notes.extend(inputs.declared.iter().flat_map(|table| table.notes.clone()));
    inputs.notes.extend(left_out("with unknown extensions", &unknown));
    inputs.notes.extend(left_out("of metadata", &metadata));
    match (inputs.paths.is_empty(), listing.files.is_empty()) {
        (false, _) => Ok(inputs),
        (true, true) if listing.is_remote => Err(SourceError::NotFound { path: listing.name.clone() }),
        (true, _) => {
            let other = unknown.iter().find(|file| file.ends_with(".sql")).or(unknown.first()).cloned();
            Err(SourceError::EmptyFolder { path: listing.name.clone(), other })
        }
    }
}

fn expand_glob(pattern: &str) -> Result<Vec<PathBuf>, SourceError> {
    let matches = glob::glob(pattern)
        .map_err(|error| SourceError::Pattern { pattern: pattern.to_owned(), reason: error.to_string() })?;
    let paths: Vec<PathBuf> = matches
        .map(|path| {
            path.map_err(|error| SourceError::Read {
                file: error.path().display().to_string(),
                source: error.into(),
            })
        })
        .collect::<Result<_, _>>()?;
    if paths.is_empty() { Err(SourceError::NoMatch { pattern: pattern.to_owned() }) } else { Ok(paths) }
}

/// Lists the files below a folder.
fn list_folder(folder: &Path) -> Result<Listing, SourceError> {
    let mut walk = Walk::default();
    walk.folder(folder)?;
    walk.files.sort();
    let listed = |path: PathBuf| {
        let below = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        ListedFile { path: below, input: InputPath::File(path) }
    };
    let files = walk.files.into_iter().map(listed).collect();
    Ok(Listing { name: folder.display().to_string(), files, is_remote: false })
}

/// Lists the files in the folder of a file.
fn list_beside(input: &InputPath) -> Result<Listing, SourceError> {
    let mut files = Vec::new();
    if let InputPath::File(path) = input {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let error = |source| SourceError::Read { file: folder.display().to_string(), source };
        for entry in std::fs::read_dir(folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            files.push(ListedFile { path: name, input: InputPath::File(path) });
        }
    }
    Ok(Listing { name: input.name(), files, is_remote: false })
}

/// Returns a note on files that are not inputs, if there are any.
fn left_out(which: &str, files: &[String]) -> Option<Remark> {
    let first: Vec<&str> = files.iter().take(3).map(String::as_str).collect();
    let more = if files.len() > 3 { ", ..." } else { "" };
    let word = if files.len() == 1 { "file" } else { "files" };
    let note = || format!("{} {word} {which} left out: {}{more}", files.len(), first.join(", "));
    (!files.is_empty()).then(|| Remark::new("files_left_out", note()))
}

/// The files below a folder.
#[derive(Default)]
struct Walk {
    files: Vec<PathBuf>,
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
        if let Some(error) =
            systems::refused_table(&folder.display().to_string(), |name| folder.join(name).is_dir())
        {
            return Err(error);
        }
        for entry in std::fs::read_dir(folder).map_err(error)? {
            let path = entry.map_err(error)?.path();
            let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(['.', '_']));
            if hidden {
                continue;
            }
            if path.is_dir() { self.folder(&path)? } else { self.files.push(path) }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
