//! Arguments that name files and folders of this machine.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use clap::builder::{PathBufValueParser, TryMapValueParser, TypedValueParser, ValueParserFactory};
use evenkeel::storage::Place;

/// A path of this machine, given plainly or as a `file://` URL. Other URLs are refused: as a path, `s3://bucket/x` would be a folder
/// named `s3:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalPath(PathBuf);

impl LocalPath {
    fn new(argument: PathBuf) -> Result<Self, String> {
        match Place::parse(&argument) {
            Ok(Place::Local(path)) => Ok(Self(path)),
            Err(error) if argument.to_string_lossy().starts_with("file:") => Err(error.to_string()),
            Ok(Place::Remote(_)) | Err(_) => {
                Err("it is a URL, and this takes a path of this machine; read or write the file here, \
                                                  and copy it from or to the store"
                    .to_owned())
            }
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

impl ValueParserFactory for LocalPath {
    type Parser = TryMapValueParser<PathBufValueParser, fn(PathBuf) -> Result<LocalPath, String>>;

    fn value_parser() -> Self::Parser {
        PathBufValueParser::new().try_map(Self::new)
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
            assert!(parse(url).unwrap_err().contains("takes a path of this machine"), "{url}");
        }
        assert!(parse("file://host/x").unwrap_err().contains("names no path of this machine"));
    }
}
