//! Options of an evaluation.

use serde::{Deserialize, Serialize};

use crate::evaluate::partition_rows::PartitionRows;
use crate::evaluate::roles::Role;
use crate::targets::Target;
use evenkeel_input::source::OnUnreadable;
use evenkeel_model::table::{Candidate, Ttl, YdbVersion};
use evenkeel_model::time_reading::TimeReading;
use evenkeel_model::units::Micros;
use evenkeel_model::units::{ByteSize, PartitionCount};
use evenkeel_model::workload::PlannedStatement;
use evenkeel_placement::placement::Function;
use evenkeel_stats::throughput::DEFAULT_PARTITION_RATE;

/// Default number of rows per batch of the simulated ingest.
pub const DEFAULT_BATCH_ROWS: u64 = 20_000;
/// Default memory budget of an evaluation.
pub const DEFAULT_MEMORY: ByteSize = ByteSize::mib(1024);

/// Options of an evaluation, which survive a round trip through JSON exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvaluateOptions {
    /// Candidates for the partition key.
    pub partition_keys: Vec<Candidate>,
    /// Candidates for the primary key.
    pub primary_keys: Vec<Candidate>,
    /// Partition keys that are counted, but not judged.
    #[serde(default)]
    pub also_counted: Vec<Candidate>,
    /// Partition key in whose partitions the rows of each primary key are counted; empty to choose
    /// from the candidates.
    #[serde(default)]
    pub partitioned_by: Vec<Candidate>,
    /// Placement functions to compare; the first one determines the recommendation.
    pub placements: Vec<Function>,
    /// Numbers of partitions to compare.
    pub partitions: Vec<PartitionCount>,
    /// Weights of the nodes that partitions are assigned to; empty if nodes are not considered.
    #[serde(with = "bits")]
    pub weights: Vec<f64>,
    /// Name of the time column; `None` to evaluate without time.
    pub time: Option<String>,
    /// Way to read points in time from that column.
    pub time_reading: TimeReading,
    /// Length of windows; chosen from the data if not given.
    pub window: Option<Micros>,
    /// Rows of a batch of the simulated ingest.
    pub batch_rows: u64,
    /// Insert throughput of one partition, in bytes per second.
    #[serde(with = "bits")]
    pub partition_rate: f64,
    /// Columns that queries fix to a value; primary keys are tried with conditions on them.
    pub equality_columns: Vec<String>,
    /// Memory budget of the whole process.
    pub memory: ByteSize,
    /// Share of the rows to sample; `None` for all rows.
    #[serde(with = "bits")]
    pub sample: Option<f64>,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        Self {
            partition_keys: Vec::new(),
            primary_keys: Vec::new(),
            also_counted: Vec::new(),
            partitioned_by: Vec::new(),
            placements: vec![Function::default()],
            partitions: Vec::new(),
            weights: Vec::new(),
            time: None,
            time_reading: TimeReading::Native,
            window: None,
            batch_rows: DEFAULT_BATCH_ROWS,
            partition_rate: DEFAULT_PARTITION_RATE,
            equality_columns: Vec::new(),
            memory: DEFAULT_MEMORY,
            sample: None,
        }
    }
}

/// Serializes fractions by their bits: as decimal numbers, not all would survive a round trip.
mod bits {
    use serde::de::DeserializeOwned;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Value that consists of fractions.
    pub(crate) trait Fractions {
        type Bits: Serialize + DeserializeOwned;
        fn bits(&self) -> Self::Bits;
        fn from_bits(bits: Self::Bits) -> Self;
    }

    impl Fractions for f64 {
        type Bits = u64;
        fn bits(&self) -> u64 {
            self.to_bits()
        }
        fn from_bits(bits: u64) -> Self {
            Self::from_bits(bits)
        }
    }

    impl Fractions for Vec<f64> {
        type Bits = Vec<u64>;
        fn bits(&self) -> Vec<u64> {
            self.iter().map(|fraction| fraction.to_bits()).collect()
        }
        fn from_bits(bits: Vec<u64>) -> Self {
            bits.into_iter().map(f64::from_bits).collect()
        }
    }

    impl Fractions for Option<f64> {
        type Bits = Option<u64>;
        fn bits(&self) -> Option<u64> {
            self.map(f64::to_bits)
        }
        fn from_bits(bits: Option<u64>) -> Self {
            bits.map(f64::from_bits)
        }
    }

    pub(crate) fn serialize<F: Fractions, S: Serializer>(value: &F, to: S) -> Result<S::Ok, S::Error> {
        value.bits().serialize(to)
    }

    pub(crate) fn deserialize<'de, F: Fractions, D: Deserializer<'de>>(from: D) -> Result<F, D::Error> {
        F::Bits::deserialize(from).map(F::from_bits)
    }
}

/// Options for judging the keys of an export.
#[derive(Debug, Clone)]
pub struct AdvisorOptions {
    /// Keys and evaluation parameters; candidates are searched for if no key is named.
    pub evaluate: EvaluateOptions,
    /// Whether to search for primary keys if none is named, and to judge them.
    pub find_primary_keys: bool,
    /// Partition keys that are counted in addition to those that are judged.
    pub also_counted: AlsoCounted,
    /// Roles of columns that the user gave, by name.
    pub roles: Vec<(String, Role)>,
    /// Partition key of the existing table, which is judged along with the others.
    pub current_partition_key: Option<Candidate>,
    /// Primary key of the existing table, which is judged along with the others.
    pub current_primary_key: Option<Candidate>,
    /// Time to live of the existing table; it is kept if the proposed primary key has its column.
    pub ttl: Option<Ttl>,
    /// Whether each input holds the rows of one partition of the existing table.
    pub has_file_per_partition: bool,
    /// Rows of each partition of the existing table, from the statistics of its database.
    pub partition_rows: Vec<PartitionRows>,
    /// Columns by which other tables are joined.
    pub joined: Vec<JoinedColumn>,
    /// Statements whose fan-out is computed.
    pub statements: Vec<PlannedStatement>,
    /// Handling of rows that cannot be read.
    pub on_unreadable: OnUnreadable,
    /// Insert rate that the table must sustain, in bytes per second; the rate of the export itself
    /// if not given.
    pub ingest_rate: Option<f64>,
    /// Numbers of nodes that the numbers of partitions were derived from, if any.
    pub nodes: Vec<u64>,
    /// Whether the user gave the numbers of nodes.
    pub nodes_given: bool,
    /// Inputs as the user named them, for the proposed commands.
    pub inputs: Vec<String>,
    /// Arguments for reading the inputs, for the proposed commands.
    pub reading: Vec<String>,
    /// Whether a statement of another system declares the columns, so that they differ from those
    /// of a sample.
    pub has_statement: bool,
    /// Name of the table in the proposal.
    pub table: String,
    /// System that the proposed statements are for.
    pub target: Target,
    /// YDB version that the proposed YQL is for.
    pub ydb_version: YdbVersion,
    /// Reasons why placement functions were left out.
    pub left_out: Vec<String>,
}

impl Default for AdvisorOptions {
    fn default() -> Self {
        Self {
            evaluate: EvaluateOptions::default(),
            find_primary_keys: true,
            also_counted: AlsoCounted::default(),
            roles: Vec::new(),
            current_partition_key: None,
            current_primary_key: None,
            ttl: None,
            has_file_per_partition: false,
            partition_rows: Vec::new(),
            joined: Vec::new(),
            statements: Vec::new(),
            on_unreadable: OnUnreadable::Fail,
            ingest_rate: None,
            nodes: Vec::new(),
            nodes_given: false,
            inputs: Vec::new(),
            reading: Vec::new(),
            has_statement: false,
            table: "t".to_owned(),
            target: Target::default(),
            ydb_version: YdbVersion::default(),
            left_out: Vec::new(),
        }
    }
}

/// Partition keys that are counted in addition to those that are judged, so that the counts have
/// keys in common with those of other rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AlsoCounted {
    /// No further keys.
    #[default]
    Nothing,
    /// Every column that may place rows, if keys are searched for.
    Columns,
    /// Exactly these keys.
    Keys(Vec<Candidate>),
}

/// Column by which another table is joined.
#[derive(Debug, Clone, PartialEq)]
pub struct JoinedColumn {
    /// Name of the column.
    pub column: String,
    /// Name of the other table.
    pub with: String,
    /// Weight of the join among the joins of the table: the bytes that it moves if it is not local.
    pub weight: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_model::table::PlacementFunction;

    #[test]
    fn options_come_back_from_json_exactly() {
        let cloud_logs = PlacementFunction::YdbCloudLogs { active: 7, period_micros: 569_999 };
        let options = EvaluateOptions {
            partition_keys: vec![
                "user_id, hour(at), trunc(at, 7s)".parse().unwrap(),
                Candidate::from_columns(&[" a, \"b`", ""]),
            ],
            primary_keys: vec!["date(at)".parse().unwrap()],
            placements: Function::all()
                .chain([cloud_logs.into(), PlacementFunction::YdbModulo.into()])
                .collect(),
            partitions: vec![PartitionCount::ONE, PartitionCount::new(100_000).unwrap()],
            weights: vec![0.1 + 0.2, f64::MIN_POSITIVE, 1e300, f64::INFINITY],
            time: Some("at".to_owned()),
            time_reading: TimeReading::Milliseconds,
            window: Some(Micros::new(1)),
            partition_rate: 1.0 / 3.0,
            equality_columns: vec!["é".to_owned()],
            memory: ByteSize(u64::MAX),
            sample: Some(0.123_456_789_012_345_68),
            ..EvaluateOptions::default()
        };
        for options in [options, EvaluateOptions::default()] {
            let text = serde_json::to_string(&options).unwrap();
            assert_eq!(serde_json::from_str::<EvaluateOptions>(&text).unwrap(), options, "{text}");
        }
    }
}
