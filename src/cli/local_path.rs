//! Arguments that name local files and folders.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TypedValueParser, ValueParserFactory};
use clap::error::ErrorKind;
use clap::{Arg, Command, Error};
use evenkeel::storage::Place;

/// Local path, given plainly or as a `file://` URL. Other URLs are refused: as a path,
/// `s3://bucket/x` would be a folder named `s3:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalPath(PathBuf);

const NOT_A_URL: &str = "accepts a path on this machine, not a URL; read or write the file here, and copy it from or to the store";

impl LocalPath {
    fn new(argument: PathBuf) -> Result<Self, String> {
        match Place::parse(&argument) {
            Ok(Place::Local(path)) => Ok(Self(path)),
            Err(error) if argument.to_string_lossy().starts_with("file:") => {
                Err(format!("is wrong: {error}"))
            }
            Ok(Place::Remote(_)) | Err(_) => Err(NOT_A_URL.to_owned()),
        }
    }
}

impl Deref for LocalPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl From<LocalPath> for PathBuf {
    fn from(path: LocalPath) -> Self {
        path.0
    }
}

/// Parses [`LocalPath`]. A URL may hold secrets, so errors do not repeat it.
#[derive(Debug, Clone)]
pub(crate) struct LocalPathParser;

impl TypedValueParser for LocalPathParser {
    type Value = LocalPath;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<LocalPath, Error> {
        let path = PathBufValueParser::new().parse_ref(command, arg, value)?;
        let name = arg.map_or_else(|| "this".to_owned(), ToString::to_string);
        let error = |reason: String| {
            Error::raw(ErrorKind::ValueValidation, format!("{name} {reason}\n")).with_cmd(command)
        };
        LocalPath::new(path).map_err(error)
    }
}

impl ValueParserFactory for LocalPath {
    type Parser = LocalPathParser;

    fn value_parser() -> LocalPathParser {
        LocalPathParser
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_and_urls_of_stores_refused() {
        let parse = |text: &str| LocalPath::new(text.into());
        assert_eq!(parse("a/b").unwrap().to_str(), Some("a/b"));
        assert_eq!(parse("file:///a/b%20c").unwrap().to_str(), Some("/a/b c"));
        for url in
            ["s3://bucket/x", "S3://bucket", "gs://bucket/x", "az://container/x", "https://host/x", "s3://"]
        {
            assert!(parse(url).unwrap_err().contains("accepts a path on this machine"), "{url}");
        }
        assert!(parse("file://host/x").unwrap_err().contains("is not a path of this machine"));
    }
}
