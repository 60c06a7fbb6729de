//! Location of files: a path on this machine, or a URL of an object store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::path::Path as StorePath;
use url::Url;

use crate::error::StorageError;

/// Location named by an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Path on this machine, given plainly or as a `file://` URL.
    Local(PathBuf),
    /// Prefix in an object store.
    Remote(Url),
}

/// URL schemes of object stores.
const SCHEMES: [&str; 8] = ["s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss"];

impl Place {
    /// Parses an argument. An argument without a scheme is a path.
    ///
    /// # Errors
    /// [`StorageError::Url`] if the URL is invalid, has an unsupported scheme or no bucket, or
    /// contains credentials, a query or a fragment.
    pub fn parse(argument: &Path) -> Result<Self, StorageError> {
        let Some(text) = argument.to_str().filter(|text| text.contains("://")) else {
            return Ok(Self::Local(argument.to_owned()));
        };
        let wrong = |reason: String| StorageError::Url { url: without_secrets(text), reason };
        let url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        if url.scheme() == "file" {
            let path =
                url.to_file_path().map_err(|()| wrong("it is not a path of this machine".to_owned()))?;
            return Ok(Self::Local(path));
        }
        if !SCHEMES.contains(&url.scheme()) {
            let reason = "stores are s3://BUCKET/, gs://BUCKET/ and az://CONTAINER/; paths are given plainly";
            return Err(wrong(reason.to_owned()));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(wrong(format!("the bucket is missing: {}://BUCKET/PREFIX", url.scheme())));
        }
        // Credentials in a URL would leak into messages, plans and logs of jobs.
        let in_azure = matches!(url.scheme(), "abfs" | "abfss");
        if url.password().is_some() || (!url.username().is_empty() && !in_azure) {
            return Err(wrong(
                "credentials do not belong in a URL; set the environment variables".to_owned(),
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong(
                "it has a '?' or '#'; write %3F and %23 if they belong to the name".to_owned(),
            ));
        }
        Ok(Self::Remote(url))
    }
}

/// Returns a URL as it may be shown: without credentials, query and fragment.
fn without_secrets(text: &str) -> String {
    // The query may contain a signature.
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://...@{rest}"),
        _ => text.to_owned(),
    }
}

/// Returns the store of a URL and the path in it. A process has one client per bucket, so that
/// connections are reused.
///
/// # Errors
/// [`StorageError`] if this build has no object stores, or the environment does not fully configure
/// this one.
pub fn remote_store(url: &Url) -> Result<(Arc<dyn ObjectStore>, StorePath), StorageError> {
    #[cfg(feature = "cloud")]
    return crate::remote::store_of(url);
    #[cfg(not(feature = "cloud"))]
    return Err(StorageError::NoCloud { url: url.to_string() });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Place, StorageError> {
        Place::parse(Path::new(text))
    }

    #[test]
    fn paths_and_urls_are_told_apart() {
        assert_eq!(parse("a/b").unwrap(), Place::Local("a/b".into()));
        assert_eq!(parse("s3").unwrap(), Place::Local("s3".into()));
        assert_eq!(parse("file:///a/b%20c").unwrap(), Place::Local("/a/b c".into()));
        for url in [
            "s3://bucket/a/b",
            "gs://bucket/t",
            "az://container/t",
            "abfss://c@account.dfs.core.windows.net/t",
        ] {
            assert_eq!(parse(url).unwrap(), Place::Remote(Url::parse(url).unwrap()));
        }
    }

    #[test]
    fn what_is_no_place_is_refused_without_repeating_secrets() {
        for url in [
            "http://host/t",
            "ftp://host/t",
            "s3:///t",
            "s3://key:secret@bucket/t",
            "s3://bucket/t?sig=secret",
            "s3://a b/",
        ] {
            let message = parse(url).unwrap_err().to_string();
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
