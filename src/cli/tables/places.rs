//! Places of tables and exports, and their names.

use std::path::{Path, PathBuf};

use crate::cli::Failure;

/// A place and the name of its table; without a name, the place determines it.
#[derive(Debug, Clone)]
pub(crate) struct NamedPlace {
    pub(super) name: Option<String>,
    pub(super) place: PathBuf,
}

/// Reads the values of `--table`.
pub(super) fn named_places(named: &[String]) -> Result<Vec<NamedPlace>, Failure> {
    let place = |named: &String| {
        let written = format!("--table {named}: write --table NAME=PLACE");
        NamedPlace::with_name(named).ok_or_else(|| Failure::wrong_usage(written))
    };
    named.iter().map(place).collect()
}

impl NamedPlace {
    /// Reads NAME=PLACE.
    pub(super) fn with_name(text: &str) -> Option<Self> {
        let (name, place) = text.split_once('=')?;
        let is_whole = !name.is_empty() && !place.is_empty();
        is_whole.then(|| Self { name: Some(name.to_owned()), place: place.into() })
    }

    /// Reads PLACE or NAME=PLACE. What exists under the whole text is a place.
    pub(crate) fn parse(text: &str) -> Self {
        let whole = || Self { name: None, place: text.into() };
        if Path::new(text).exists() { whole() } else { Self::with_name(text).unwrap_or_else(whole) }
    }
}

/// Returns the name of the directory at a place, if it can be written without quotes.
pub(super) fn name_of_place(place: &Path) -> Option<String> {
    let name = place.file_name()?.to_str()?;
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    (is_plain && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| name.to_owned())
}

/// Whether a place is a file or standard input.
pub(super) fn is_export(place: &Path) -> bool {
    place.as_os_str() == "-" || place.is_file()
}
