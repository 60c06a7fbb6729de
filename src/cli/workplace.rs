//! Directory that a command works in: kept if it was named, else temporary.

use std::path::{Path, PathBuf};

use crate::cli::Failure;

/// Working directory of a command.
pub(crate) enum Workplace {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Workplace {
    pub(crate) fn open(dir: Option<&Path>) -> Result<Self, Failure> {
        let Some(dir) = dir else { return Ok(Self::Temporary(tempfile::tempdir()?)) };
        let error = |error: std::io::Error| anyhow::anyhow!("{}: {error}", dir.display());
        std::fs::create_dir_all(dir).map_err(error)?;
        if std::fs::read_dir(dir).map_err(error)?.next().is_some() {
            let message = format!("{} is not empty; name a new directory", dir.display());
            return Err(anyhow::anyhow!(message).into());
        }
        Ok(Self::Kept(dir.to_owned()))
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(dir) => dir.path(),
        }
    }
}
