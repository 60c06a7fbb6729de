//! Inputs and options of an ingest of files, and its progress.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::ingest::error::IngestError;
use crate::ingest::options::IngestOptions;
use crate::ingest::rejects::RejectsFile;
use evenkeel_input::source::{InputOptions, InputPath};

/// Inputs and options of an ingest of files.
#[derive(Debug, Clone)]
pub struct IngestFiles {
    /// Inputs in order; of rows with the same primary key, the later one wins.
    pub inputs: Vec<InputPath>,
    /// Options for reading the inputs.
    pub input: InputOptions,
    /// Options for writing the rows.
    pub ingest: IngestOptions,
    /// File for rows that cannot be taken; if `None`, the first such row fails the ingest.
    pub rejects: Option<PathBuf>,
    /// Whether to ingest inputs again whose content was ingested before.
    pub again: bool,
    /// Stops the ingest before its commit when notified, even while it waits for input.
    pub interrupt: Arc<Notify>,
}

impl IngestFiles {
    /// Refuses a file for rejected rows that already exists, before anything is read.
    pub fn check_rejects(&self) -> Result<(), IngestError> {
        self.rejects.as_deref().map_or(Ok(()), |path| RejectsFile::new(path).map(drop))
    }
}

/// Progress of an ingest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestProgress {
    /// Input being read.
    pub input: String,
    /// Position of that input, from 1.
    pub number: usize,
    /// Number of inputs.
    pub inputs: usize,
    /// Rows taken so far, from all inputs.
    pub rows: u64,
}
