//! A measured warning with advice.

use std::fmt;

use serde::{Serialize, Serializer};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It breaks the table or loses rows.
    Problem,
    /// It costs speed or room.
    Warning,
    /// It is worth knowing.
    Note,
}

impl Severity {
    /// One word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Declares [`FindingCode`] with the name of each code, and the list of all of them.
macro_rules! finding_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal,)+) => {
        /// Kind of a finding. Its name is what programs compare; the wording of a finding may change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingCode {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl FindingCode {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name, in snake case.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }
        }
    };
}

finding_codes! {
    // Partition keys.
    /// Too few rows to judge partition keys.
    FewRows => "few_rows",
    /// A partition key with few distinct values for the partitions.
    FewDistinctKeys => "few_distinct_keys",
    /// One value of a partition key has many of the rows.
    HeavyKey => "heavy_key",
    /// A few partitions take the rows of a moment, others each time.
    MovingHotspot => "moving_hotspot",
    /// A few partitions take the rows of a moment, and they return.
    PeriodicHotspot => "periodic_hotspot",
    /// The same few partitions take the rows of every moment.
    ConstantHotspot => "constant_hotspot",
    /// A hash function spreads the keys worse than chance would.
    HashDefect => "hash_defect",
    /// The ranges of hash values are not equally wide.
    UnevenRanges => "uneven_ranges",
    /// Partitions differ in rows for a reason that no other finding gives.
    UnevenPartitions => "uneven_partitions",
    /// The partitions do not divide by the weights of the nodes.
    WeightsDoNotDivide => "weights_do_not_divide",
    /// One partition gets more bytes a second than it takes.
    PeakRate => "peak_rate",
    /// A key is an expression that the system does not store.
    DerivedKey => "derived_key",
    /// A key column has NULL.
    NullKeys => "null_keys",
    /// A key column has a type that keys do not take.
    KeyType => "key_type",
    /// No candidate can be a partition key.
    NoUsablePartitionKey => "no_usable_partition_key",

    // Primary keys.
    /// Rows share a primary key and differ.
    ConflictingRows => "conflicting_rows",
    /// Rows come more than once.
    IdenticalRows => "identical_rows",
    /// A column cannot be in a primary key.
    PrimaryKeyImpossible => "primary_key_impossible",
    /// A primary key is unique in these rows, and need not be in others.
    UniqueByChance => "unique_by_chance",
    /// Rows in the order of the export fall into all of the table.
    Rewrites => "rewrites",
    /// The order of the rows differs from what their rank correlation suggests.
    RankCorrelationMisleads => "rank_correlation_misleads",
    /// No candidate can be a primary key.
    NoUsablePrimaryKey => "no_usable_primary_key",

    // The export and its statements.
    /// A statement reads all partitions.
    FanOut => "fan_out",
    /// None of the statements can be planned.
    NoStatementPlanned => "no_statement_planned",
    /// A statement cannot be planned.
    StatementNotPlanned => "statement_not_planned",
    /// A sample is too small for its intervals.
    SmallSample => "small_sample",
    /// The export has no time column.
    NoTime => "no_time",
    /// Rows have no time.
    TimeMissing => "time_missing",
    /// Rows come late.
    TimeUnordered => "time_unordered",
    /// Windows have too few rows to judge patterns over time.
    WindowsTooSmall => "windows_too_small",

    // Nodes.
    /// A design falls behind.
    FallsBehind => "falls_behind",
    /// A design keeps up only while no node fails.
    NoRoomForAFault => "no_room_for_a_fault",
    /// Nodes have no partition.
    IdleNodes => "idle_nodes",
    /// Partitions do not divide by the nodes.
    UnevenDeal => "uneven_deal",
    /// One partition gets more than a node takes.
    HotPartition => "hot_partition",
    /// The capacity of nodes was not given.
    AssumedCapacity => "assumed_capacity",

    // Range splits.
    /// Too few rows or windows to recommend a key.
    TooFewRows => "too_few_rows",
    /// UUIDs ascend with time.
    TimeOrderedUuid => "time_ordered_uuid",
    /// Writes go to the end of the keys.
    MonotonicKey => "monotonic_key",
    /// Writes go to the end of an index.
    MonotonicIndex => "monotonic_index",
    /// One row gets more writes than a split takes.
    HotRow => "hot_row",
    /// The rows of each leading value ascend with time.
    HistoryAscends => "history_ascends",
    /// Transactions span splits.
    TwoPhaseCommits => "two_phase_commits",
    /// Rows of an index value pass the size of a split.
    LargeIndex => "large_index",

    // Placement functions.
    /// The number of partitions does not divide the range of the hash.
    PartitionsDoNotDivide => "partitions_do_not_divide",
    /// Hashing again for workers meets the same bits.
    WorkersAlias => "workers_alias",
    /// Two stages use one hash function.
    SameHashTwice => "same_hash_twice",
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for FindingCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Something that was measured and lies beyond a threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Kind of finding.
    pub code: FindingCode,
    /// How much it matters.
    pub severity: Severity,
    /// The key or column that it is about.
    pub subject: String,
    /// What was measured, in words with its unit.
    pub message: String,
    /// The figure itself.
    pub measured: f64,
    /// Where it begins to matter.
    pub threshold: f64,
    /// What to try next.
    pub advice: String,
}
