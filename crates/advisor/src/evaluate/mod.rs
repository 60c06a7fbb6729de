//! Judges keys on an export before any table exists.
//!
//! ```text
//! batches -> KeyedBatch (hash input, identities, row bytes, windows; once for all keys)
//!              -> PartitionKeyCounter per candidate: rows and bytes per partition, per window,
//!                 distinct and heavy keys
//!              -> PrimaryKeyCounter per candidate: repeated keys, order of arrival,
//!                 simulated portions
//!         -> Evaluation: figures -> findings -> ranking -> recommendation
//! ```
//! One pass over the data serves all candidates. The modules here work on arrays and figures; they
//! never see a stored table.
//!
//! A verdict is decided in three places: `pass/cells.rs` has `stats::skew` judge each placement by
//! its counts (`crates/stats/src/skew/verdict.rs`); `figures/pattern.rs` says how rows are spread
//! at any moment, which enters that verdict; and `verdict/*` judges the keys against each other and
//! against the options of the user.

mod advice;
mod candidates;
mod figures;
mod look;
mod mask;
mod measured;
mod nulls;
mod options;
mod partition_rows;
mod partition_stats;
mod pass;
mod profiles;
mod roles;
mod unfit_systems;
mod verdict;
mod widening;

use arrow::error::ArrowError;
use thiserror::Error;

pub use advice::{AdvisorReport, ColumnReport, CountRows, advise, advise_with};
pub use candidates::considered::{ConsideredCandidate, Purpose};
pub use candidates::workload::{FanOut, Reach, StatementReport};
pub use figures::evaluation::{Evaluation, SampleReport};
pub use figures::interval::{Interval, Intervals};
pub use figures::judged_windows::WindowFigures;
pub use figures::layout::{LayoutReport, MERGE_FAN_IN};
pub use figures::loads::{KeyLoads, LoadWindow, Loads};
pub use figures::merged_profile::MergedProfile;
pub use figures::moment::Examined;
pub use figures::over_time::{OverTime, Spread};
pub use figures::partition_key::{HeavyHitter, PartitionKeyReport, PerBatch, PlacementReport, SkewCauses};
pub use figures::pattern::{Evidence, Pattern};
pub use figures::primary_key::{DuplicateExample, LateReach, LateRows, PrimaryKeyReport, Pruning};
pub use figures::recommendation::{Alternative, AlternativeKind, RankedKey, Recommendation};
pub use figures::uniqueness::{UniqueBy, Uniqueness};
pub use figures::weights::NodeLoads;
pub use mask::mask_source;
pub use measured::{ComputedDistribution, MeasuredDistribution, MeasuredIn};
pub use options::{
    AdvisorOptions, AlsoCounted, DEFAULT_BATCH_ROWS, DEFAULT_MEMORY, EvaluateOptions, JoinedColumn,
};
pub use partition_rows::PartitionRows;
pub use partition_stats::{PartitionStatsError, read_partition_stats};
pub use pass::evaluator::{Evaluator, ROWS_PER_PARTITION_OF_WINDOW};
pub use pass::loads::count_loads;
pub use pass::shards::{assemble, count_share, spans, whole_shares};
pub use pass::share::Share;
pub use profiles::{DEFAULT_PROFILE_BYTES, Profile, ProfileError, advise_and_save, advise_merged};
pub use roles::carried_times::CarriedTimes;
pub(crate) use roles::is_identifier;
pub use roles::{Role, RoleError, RoleReport};
pub use unfit_systems::without_unfit_systems;
pub use verdict::drift::{BaselineError, Drift, compare};
pub use verdict::threshold::{Crossing, Threshold, ThresholdError};

use evenkeel_model::bounded::quote;
pub use evenkeel_model::table::{Candidate, CandidateError, KeyPart, Transform};
pub use evenkeel_model::values::derived_column;
pub use evenkeel_stats::throughput::{Capacity, DEFAULT_PARTITION_RATE};
pub use evenkeel_stats::windows::{TimeRange, Window};

use evenkeel_input::source::SourceError;
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::Micros;
use evenkeel_model::wire::WireError;
use evenkeel_placement::placement::PlacementError;
use evenkeel_stats::sketch::SpillError;

/// Reason why keys cannot be evaluated.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum EvaluateError {
    #[error("key ({key}): there is no column '{column}'; there are: {}", few(known), key = quote(key), column = quote(column))]
    UnknownColumn { key: String, column: String, known: Vec<String> },
    #[error("key ({key}): column '{column}' of type {column_type} is not a point in time", key = quote(key), column = quote(column))]
    NotTime { key: String, column: String, column_type: ColumnType },
    #[error("key ({key}): {source}", key = quote(key))]
    Placement { key: String, source: PlacementError },
    #[error("key ({key}) cannot be sorted: {source}", key = quote(key))]
    Sort { key: String, source: ArrowError },
    #[error("there is no column '{column}' to give a role to; there are: {}", few(known), column = quote(column))]
    UnknownRoleColumn { column: String, known: Vec<String> },
    #[error("there is no time column '{column}'; there are: {}", few(known), column = quote(column))]
    UnknownTime { column: String, known: Vec<String> },
    #[error("column '{column}' cannot be read as points in time", column = quote(column))]
    Time { column: String },
    #[error(
        "windows of {length} are too short: there would be more than {most}; omit --window or make it longer"
    )]
    TooManyWindows { length: Micros, most: usize },
    #[error("there are no rows to evaluate")]
    NoRows,
    #[error("a memory budget of {found} is too small; these keys and partitions need at least {least}")]
    Memory { found: evenkeel_model::units::ByteSize, least: evenkeel_model::units::ByteSize },
    #[error(transparent)]
    Spill(#[from] SpillError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("only evaluations of the same keys, counted in the same way, can be merged")]
    NotMergeable,
    #[error("{reason}")]
    Elsewhere { reason: String, too_large: bool },
    #[error("the parts of an evaluation cannot be merged: {reason}")]
    KeyParts { reason: String },
    #[error("interrupted")]
    Interrupted,
}

impl EvaluateError {
    /// Whether a number in a key exceeds what a system without unsigned integers can hold; other
    /// systems may accept it.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        use evenkeel_placement::placement::PlacementError::TooLarge;
        matches!(
            self,
            Self::Placement { source: TooLarge { .. }, .. } | Self::Elsewhere { too_large: true, .. }
        )
    }
}

impl From<WireError> for EvaluateError {
    fn from(WireError(reason): WireError) -> Self {
        Self::KeyParts { reason: format!("the counts of a part cannot be decoded: {reason}") }
    }
}

/// Joins names, and abbreviates a long list.
fn few(names: &[String]) -> String {
    const MOST: usize = 40;
    let shown = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown} and {} more", names.len() - MOST) } else { shown }
}
