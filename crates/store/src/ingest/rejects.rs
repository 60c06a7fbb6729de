//! Rejected rows, written to a file as NDJSON.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::ingest::error::IngestError;
use evenkeel_input::source::{Reject, RowPosition};
use evenkeel_storage::{Disk, SystemDisk};

/// A rejected row as a line of the file, with the reason as a sentence.
#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    #[serde(flatten)]
    position: RowPosition,
    column: Option<&'a str>,
    reason: String,
    record: &'a serde_json::Map<String, serde_json::Value>,
}

impl<'a> From<&'a Reject> for Line<'a> {
    fn from(reject: &'a Reject) -> Self {
        Self {
            file: &reject.file,
            position: reject.position,
            column: reject.column.as_deref(),
            reason: reject.reason.to_string(),
            record: &reject.record,
        }
    }
}

/// Writes rejected rows to a file, which is created with the first of them.
#[derive(Debug)]
pub(super) struct RejectsFile {
    path: PathBuf,
    writer: Option<BufWriter<File>>,
    count: u64,
    first: Option<Reject>,
}

impl RejectsFile {
    /// Prepares a file that must not exist yet.
    pub(super) fn new(path: &Path) -> Result<Self, IngestError> {
        if path.exists() {
            return Err(IngestError::RejectsExist { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), writer: None, count: 0, first: None })
    }

    pub(super) fn add(&mut self, reject: &Reject) -> Result<(), IngestError> {
        let path = self.path.clone();
        let failed = |source| IngestError::Rejects { path: path.clone(), source };
        let writer = match self.writer.as_mut() {
            Some(writer) => writer,
            None => {
                if let Some(folder) = self.path.parent() {
                    std::fs::create_dir_all(folder).map_err(failed)?;
                }
                let file = File::options().write(true).create_new(true).open(&self.path).map_err(failed)?;
                self.writer.insert(BufWriter::new(file))
            }
        };
        let line = serde_json::to_vec(&Line::from(reject)).map_err(|error| failed(error.into()))?;
        writer.write_all(&line).and_then(|()| writer.write_all(b"\n")).map_err(failed)?;
        self.count += 1;
        if self.first.is_none() {
            self.first = Some(reject.clone());
        }
        Ok(())
    }

    /// Returns the number of rejected rows and the first of them, if any.
    pub(super) fn first(&self) -> Option<(u64, &Reject)> {
        self.first.as_ref().map(|first| (self.count, first))
    }

    /// Syncs the rows and the name of the file to disk.
    pub(super) fn sync(&mut self) -> Result<(), IngestError> {
        let Some(writer) = self.writer.as_mut() else { return Ok(()) };
        let synced = writer.flush().and_then(|()| writer.get_ref().sync_all()).and_then(|()| {
            let directory = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            SystemDisk.sync_directory(directory.unwrap_or(Path::new(".")))
        });
        synced.map_err(|source| IngestError::Rejects { path: self.path.clone(), source })
    }

    /// Returns the number of rows and, if there are any, the path.
    pub(super) fn finish(self) -> (u64, Option<PathBuf>) {
        (self.count, self.writer.is_some().then_some(self.path))
    }

    /// Removes the file of an ingest that commits nothing. If that fails, the file stays but has no
    /// meaning.
    pub(super) fn remove(self) {
        if self.writer.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
