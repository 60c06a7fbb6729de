//! Profiles: saved evaluations that can be merged.
//!
//! ```text
//! rows of a day --advise_and_save--> AdvisorReport, Profile: counts of all keys, roles, candidates
//! Profiles      --advise_merged----> AdvisorReport of all days, Profile of all days
//! ```
//! Figures of merged profiles equal those of one pass over all rows, with these exceptions: a batch
//! of the simulated ingest ends with each profile; late rows have bounds if profiles overlap in
//! time or key; and figures from samples of more than 100,000 rows come from a different sample.

mod check;
mod common_keys;
mod error;
mod file;
mod merge;
mod save;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::evaluate::candidates::considered::ConsideredCandidate;
use crate::evaluate::figures::primary_key::DuplicateExample;
use crate::evaluate::options::{AdvisorOptions, AlsoCounted, EvaluateOptions};
use crate::evaluate::pass::partition_key::FoundKey;
use crate::evaluate::roles::RoleReport;
use evenkeel_input::source::Extent;
use evenkeel_model::table::{Candidate, Column, Ttl};

pub use error::ProfileError;
pub use merge::advise_merged;
pub use save::advise_and_save;

/// Default limit of the size of a profile, in bytes.
pub const DEFAULT_PROFILE_BYTES: u64 = 64 << 20;

/// Counts of an evaluation, and facts inferred from its rows.
#[derive(Debug, Clone)]
pub struct Profile {
    /// File that it was read from, or the rows that it was made from; for messages.
    name: String,
    header: Header,
    /// Heavy keys that the counts do not know.
    values: Vec<FoundKey>,
    /// Counts of all keys, if they are not in a file.
    state: Option<Vec<u8>>,
    /// File that has them.
    path: Option<PathBuf>,
}

/// Description of the counts of a profile.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Header {
    columns: Vec<Column>,
    /// Columns that a dump or statements declare.
    declared: Option<Vec<Column>>,
    options: EvaluateOptions,
    find_primary_keys: bool,
    nodes: Vec<u64>,
    nodes_given: bool,
    table: String,
    current_partition_key: Option<Candidate>,
    current_primary_key: Option<Candidate>,
    ttl: Option<Ttl>,
    /// Whether distinct values are estimated, for each partition key.
    estimated: Vec<bool>,
    /// Repeats, for each primary key.
    repeats: Vec<SavedRepeats>,
    look: SavedLook,
    rows: u64,
    /// First and last point in time, in microseconds since 1970.
    times: Option<(i64, i64)>,
    rows_without_time: u64,
    input_bytes: u64,
    unreadable_rows: u64,
    /// Notes on the rows, without values.
    notes: Vec<String>,
    /// Evaluations that were merged, or this one alone.
    parts: Vec<Part>,
}

/// Rows that were evaluated together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Part {
    /// Checksum of their counts, to find rows that are merged twice.
    checksum: u64,
    rows: u64,
    /// First of the inputs, and the number of all.
    first_input: String,
    inputs: usize,
}

/// Repeats of a primary key.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedRepeats {
    /// Whether the state has the keys of all rows.
    has_rows: bool,
    distinct_keys: u64,
    duplicate_rows: u64,
    identical_rows: u64,
    conflicting_rows: u64,
    examples: Vec<DuplicateExample>,
}

/// Inferences from sampled rows.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SavedLook {
    considered: Vec<ConsideredCandidate>,
    considered_from: Option<Extent>,
    roles: Vec<RoleReport>,
    natural_key: Vec<String>,
    identifying: Vec<String>,
    sorted_by: Option<String>,
}

impl Profile {
    /// Number of rows that were evaluated.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.header.rows
    }

    /// Name of the table.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.header.table
    }

    /// Columns of the rows.
    #[must_use]
    pub fn columns(&self) -> &[Column] {
        &self.header.columns
    }

    /// Options of the evaluation, with the keys that it counts.
    #[must_use]
    pub fn options(&self) -> &EvaluateOptions {
        &self.header.options
    }

    /// Returns options to count rows as in the profile, with `options` for the rest.
    #[must_use]
    pub fn options_like(&self, options: AdvisorOptions) -> AdvisorOptions {
        let Header { options: own, nodes, nodes_given, .. } = &self.header;
        AdvisorOptions {
            evaluate: EvaluateOptions { memory: options.evaluate.memory, ..own.clone() },
            also_counted: AlsoCounted::Keys(own.also_counted.clone()),
            find_primary_keys: !own.primary_keys.is_empty(),
            nodes: nodes.clone(),
            nodes_given: *nodes_given,
            ..options
        }
    }

    /// Name for messages: the file that it was read from.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Partition keys whose distinct values are estimates because the profile had to be small, and
    /// primary keys that are kept only as sums.
    #[must_use]
    pub fn reduced_keys(&self) -> Vec<String> {
        let Header { options, estimated, repeats, .. } = &self.header;
        let partition_keys = options.partition_keys.iter().chain(&options.also_counted);
        let partition_keys = partition_keys.zip(estimated).filter(|(_, estimated)| **estimated);
        let partition_keys = partition_keys.map(|(key, _)| format!("HASH({key})"));
        let primary_keys = options.primary_keys.iter().zip(repeats).filter(|(_, repeats)| !repeats.has_rows);
        partition_keys.chain(primary_keys.map(|(key, _)| format!("PRIMARY KEY ({key})"))).collect()
    }
}

#[cfg(test)]
mod tests;
