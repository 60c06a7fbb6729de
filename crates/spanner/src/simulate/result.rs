//! What is asked of a simulation, and what it gives.

use serde::Serialize;

use crate::schema::SchemaKey;
use crate::simulate::index::IndexSpec;
use crate::simulate::splits::{ModelParameters, Outcome};
use crate::simulate::{Strategy, StrategyName};
use evenkeel_input::source::OnUnreadable;
use evenkeel_model::finding::Finding;
use evenkeel_model::units::Micros;

/// A column of the primary key, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyOrder {
    /// The column.
    pub column: String,
    /// Whether it descends.
    pub descending: bool,
}

impl From<&SchemaKey> for KeyOrder {
    fn from(part: &SchemaKey) -> Self {
        Self { column: part.column.clone(), descending: part.descending }
    }
}

/// What is simulated.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// The declared primary key.
    pub primary_key: Vec<KeyOrder>,
    /// Columns that hash partitions hash; where there are none, those of the primary key.
    pub partition_key: Vec<String>,
    /// Indexes of the table, whatever the strategy.
    pub indexes: Vec<IndexSpec>,
    /// The strategies.
    pub strategies: Vec<Strategy>,
    /// The model. Its scale counts only where it is not to be found.
    pub parameters: ModelParameters,
    /// The strategy that stands for the key as declared; `declared` where none is named.
    pub judged: Option<Strategy>,
    /// Columns that the shard of the judged strategy is made of, where it has one; those of the strategy's own definition where none are
    /// named.
    pub shard_columns: Vec<String>,
    /// Whether the scale is found, so that the export makes sixteen full splits.
    pub find_scale: bool,
    /// Rows of the real table per second, instead of the times of the export.
    pub rate: Option<f64>,
    /// The column of time; the only one where none is named.
    pub time: Option<String>,
    /// The column whose history is read; the first of the key that is no time where none is named.
    pub owner: Option<String>,
    /// Boundaries from the beginning, from the keys of the first rows.
    pub presplits: usize,
    /// Rows of a transaction.
    pub transaction_rows: u64,
    /// What is done with rows that cannot be read.
    pub on_unreadable: OnUnreadable,
}

/// What a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadKind {
    /// The rows of the newest stretch of time.
    TimeRange,
    /// The rows of one owner.
    History,
    /// One row by its declared key.
    Row,
    /// A row of the parent, and all of its children.
    ParentWithChildren,
}

/// What a read costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadReport {
    /// What it asks for.
    pub kind: ReadKind,
    /// Splits that it touches.
    pub splits: usize,
    /// Ranges of keys that it visits; none where it has to look through all.
    pub ranges: Option<usize>,
    /// Rows that it finds, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Whether the newest rows come first, or last; none where they are in no order.
    pub newest_first: Option<bool>,
}

/// What an index costs and gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IndexReport {
    /// Its name.
    pub name: String,
    /// Whether its entries stand among the rows of the table.
    pub interleaved: bool,
    /// Its entries.
    pub entries: u64,
    /// Share of the entries that went to the hottest split of their window; of an interleaved index, that of the table.
    pub hottest_share: f64,
    /// Bytes of its entries.
    pub bytes: u64,
    /// Splits that a read of its first column touches: the newest stretch where that is the column of time, else one value.
    pub splits: usize,
    /// Rows that such a read finds.
    pub found: u64,
    /// Rows that it has to look up in the table for the columns that the index does not hold.
    pub back_joins: u64,
}

/// What became of one strategy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StrategyReport {
    /// Its name.
    pub strategy: StrategyName,
    /// In words.
    pub words: String,
    /// Whether it models Spanner; else it is what this store does.
    pub is_range: bool,
    /// What writes did.
    pub outcome: Outcome,
    /// What reads cost in the end.
    pub reads: Vec<ReadReport>,
    /// Its indexes.
    pub indexes: Vec<IndexReport>,
}

/// Where a rate is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RateSource {
    /// Rows of the export over the span of their times.
    Measured,
    /// The same, times the scale that was given.
    Scaled,
    /// It was given.
    Given,
}

/// What comes to the real table in a second, on average.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Load {
    /// Rows; none if all come at one moment.
    pub rows_per_second: Option<f64>,
    /// Bytes of values.
    pub bytes_per_second: Option<f64>,
    /// Where that is from.
    pub source: RateSource,
    /// From the first time of the export to the last.
    pub span_micros: i64,
    /// Whether rows are replayed in the order of their times, because the export is in another.
    pub is_sorted_by_time: bool,
}

/// A simulation: a model, not a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulation {
    /// Always true: the figures are those of a model.
    pub model: bool,
    /// The inputs.
    pub inputs: Vec<String>,
    /// Rows.
    pub rows: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// The declared key.
    pub primary_key: Vec<KeyOrder>,
    /// The column of time.
    pub time: Option<String>,
    /// Rows of the real table per second, where that was given.
    #[serde(rename = "rate_rows_per_second")]
    pub rate: Option<f64>,
    /// What comes to the real table.
    pub load: Load,
    /// Rows that came more than one window after a later one.
    pub late_rows: u64,
    /// Length of the stretch of time that is read.
    #[serde(rename = "read_length_micros")]
    pub read_length: Option<Micros>,
    /// The column whose history is read.
    pub owner: Option<String>,
    /// Rows of a transaction.
    pub transaction_rows: u64,
    /// Boundaries from the beginning.
    pub presplits: usize,
    /// What is assumed.
    pub parameters: ModelParameters,
    /// Whether the scale of the size was found, not given.
    #[serde(rename = "scale_is_assumed")]
    pub is_scale_found: bool,
    /// The strategies.
    pub strategies: Vec<StrategyReport>,
    /// The strategy that is judged; `declared` where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Strategy>,
    /// Columns of keys that are NULL in some rows.
    pub nullable: Vec<String>,
    /// Columns of the key that hold UUIDs which begin with the time, and their version.
    pub timed_uuids: Vec<(String, u8)>,
    /// Why nothing can be said of load, where that is so: then none is recommended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsure: Option<String>,
    /// The strategy that the figures recommend; none where none of them cools its hot splits.
    pub recommended: Option<StrategyName>,
    /// What the figures advise, the gravest first.
    pub findings: Vec<Finding>,
    /// What else is worth knowing, one sentence each.
    pub notes: Vec<String>,
    /// Seconds that it took.
    pub seconds: f64,
}
