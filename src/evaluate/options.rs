//! What is to be evaluated.

use crate::evaluate::capacity::DEFAULT_PARTITION_RATE;
use crate::placement::Function;
use crate::table::Candidate;
use crate::units::Micros;
use crate::units::{ByteSize, PartitionCount};

/// Rows of a batch of the simulated ingest.
pub const DEFAULT_BATCH_ROWS: u64 = 20_000;
/// Memory of an evaluation where none is given.
pub const DEFAULT_MEMORY: ByteSize = ByteSize::mib(2048);

/// What is to be evaluated, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct EvaluateOptions {
    /// Candidates for the partition key.
    pub partition_keys: Vec<Candidate>,
    /// Candidates for the primary key.
    pub primary_keys: Vec<Candidate>,
    /// Placement functions.
    pub placements: Vec<Function>,
    /// Numbers of partitions.
    pub partitions: Vec<PartitionCount>,
    /// Weights of nodes that partitions are dealt to; none where they are not looked at.
    pub weights: Vec<f64>,
    /// The time column.
    pub time: Option<String>,
    /// Length of windows; found from the data where it is not given.
    pub window: Option<Micros>,
    /// Rows of a batch of the simulated ingest.
    pub batch_rows: u64,
    /// Inserts that one partition takes, in bytes per second.
    pub partition_rate: f64,
    /// Columns that queries fix to a value; what that leaves unread is tried for primary keys that have them.
    pub equality_columns: Vec<String>,
    /// Memory of the whole process.
    pub memory: ByteSize,
    /// The share of the rows that is read, where that is not all.
    pub sample: Option<f64>,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        Self {
            partition_keys: Vec::new(),
            primary_keys: Vec::new(),
            placements: vec![Function::default()],
            partitions: Vec::new(),
            weights: Vec::new(),
            time: None,
            window: None,
            batch_rows: DEFAULT_BATCH_ROWS,
            partition_rate: DEFAULT_PARTITION_RATE,
            equality_columns: Vec::new(),
            memory: DEFAULT_MEMORY,
            sample: None,
        }
    }
}
