//! A measured warning with advice.

use std::fmt;

use serde::{Serialize, Serializer};

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The table breaks or rows are lost.
    Problem,
    /// Speed or space is wasted.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// Returns the severity as one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Subject of a finding, in JSON its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A partition key, by its parts.
    PartitionKey(Vec<String>),
    /// A partition key as one function places it over a number of partitions.
    Placement {
        /// Parts of the key.
        key: Vec<String>,
        /// Name of the function.
        function: String,
        /// Number of partitions.
        partitions: usize,
    },
    /// A primary key, by its columns.
    PrimaryKey(Vec<String>),
    /// Anything else: a column, a table, an option.
    Other(String),
}

impl Subject {
    /// Whether the finding is about one key rather than about the whole.
    #[must_use]
    pub fn is_key(&self) -> bool {
        !matches!(self, Self::Other(_))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PartitionKey(key) => write!(f, "HASH({})", key.join(", ")),
            Self::Placement { key, function, partitions } => {
                write!(f, "HASH({}) by {function} over {partitions}", key.join(", "))
            }
            Self::PrimaryKey(key) => write!(f, "PRIMARY KEY ({})", key.join(", ")),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl<T: Into<String>> From<T> for Subject {
    fn from(text: T) -> Self {
        Self::Other(text.into())
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Declares [`FindingCode`] with the name of each code, and the list of all codes.
macro_rules! finding_codes {
    ($($(#[doc = $doc:literal])+ $variant:ident => $name:literal,)+) => {
        /// Kind of a finding. Programs compare its name; the wording of a finding may change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum FindingCode {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl FindingCode {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the name, in snake case.
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
    /// A partition key has few distinct values for the number of partitions.
    FewDistinctKeys => "few_distinct_keys",
    /// One value of a partition key has a large share of the rows.
    HeavyKey => "heavy_key",
    /// At any moment a few partitions get the rows, and these change over time.
    MovingHotspot => "moving_hotspot",
    /// At any moment a few partitions get the rows, and the same ones return.
    PeriodicHotspot => "periodic_hotspot",
    /// The same few partitions get the rows at every moment.
    ConstantHotspot => "constant_hotspot",
    /// A hash function spreads the keys worse than chance would.
    HashDefect => "hash_defect",
    /// The ranges of hash values are not equally wide.
    UnevenRanges => "uneven_ranges",
    /// Partitions differ in rows for a reason that no other finding covers.
    UnevenPartitions => "uneven_partitions",
    /// The partitions cannot be divided by the weights of the nodes.
    WeightsDoNotDivide => "weights_do_not_divide",
    /// One partition gets more bytes per second than its capacity.
    PeakRate => "peak_rate",
    /// A key is an expression that the system does not store.
    DerivedKey => "derived_key",
    /// A key column contains NULL.
    NullKeys => "null_keys",
    /// A key column has a type that is not allowed in keys.
    KeyType => "key_type",
    /// No candidate can be a partition key.
    NoUsablePartitionKey => "no_usable_partition_key",

    // Primary keys.
    /// Rows share a primary key but differ.
    ConflictingRows => "conflicting_rows",
    /// Rows are repeated.
    IdenticalRows => "identical_rows",
    /// A column cannot be in a primary key.
    PrimaryKeyImpossible => "primary_key_impossible",
    /// A primary key is unique in these rows, but may not be in others.
    UniqueByChance => "unique_by_chance",
    /// Rows in the order of the export are spread over the whole table.
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
    /// A sample has too few rows.
    SmallSample => "small_sample",
    /// The export has no time column.
    NoTime => "no_time",
    /// Some rows have no time.
    TimeMissing => "time_missing",
    /// Rows arrive late.
    TimeUnordered => "time_unordered",
    /// Windows have too few rows to judge patterns over time.
    WindowsTooSmall => "windows_too_small",

    // Joins.
    /// Equal values of joined columns have different hashes.
    JoinTypes => "join_types",
    /// No value of one joined column is in the other.
    JoinFindsNothing => "join_finds_nothing",

    // Nodes.
    /// A design cannot keep up with the load.
    FallsBehind => "falls_behind",
    /// A design keeps up only while no node fails.
    NoFaultHeadroom => "no_fault_headroom",
    /// Some nodes have no partition.
    IdleNodes => "idle_nodes",
    /// The partitions cannot be divided evenly among the nodes.
    UnevenAssignment => "uneven_assignment",
    /// One partition has more rows than a node should have.
    HotPartition => "hot_partition",
    /// The capacity of nodes was not given.
    AssumedCapacity => "assumed_capacity",

    // Range splits.
    /// Too few rows or windows to recommend a key.
    TooFewRows => "too_few_rows",
    /// UUIDs ascend with time.
    TimeOrderedUuid => "time_ordered_uuid",
    /// Writes go to the end of the key range.
    MonotonicKey => "monotonic_key",
    /// Writes go to the end of an index.
    MonotonicIndex => "monotonic_index",
    /// One row gets more writes than a split can handle.
    HotRow => "hot_row",
    /// The rows of each leading value ascend with time.
    HistoryAscends => "history_ascends",
    /// Transactions span splits.
    TwoPhaseCommits => "two_phase_commits",
    /// An index is large compared with its table.
    LargeIndex => "large_index",

    // Placement functions.
    /// The partitions cannot be divided evenly among the workers.
    PartitionsDoNotDivide => "partitions_do_not_divide",
    /// Hashing again to choose a worker uses the same bits.
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

/// A measurement beyond its threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Kind of finding.
    pub code: FindingCode,
    /// Severity of the finding.
    pub severity: Severity,
    /// Key or column that the finding is about.
    pub subject: Subject,
    /// Measurement in words, with its unit.
    pub message: String,
    /// The measured figure.
    pub measured: f64,
    /// Threshold above which the figure matters.
    pub threshold: f64,
    /// Recommended next step.
    pub advice: String,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    fn key(parts: &[&str]) -> Vec<String> {
        parts.iter().map(|part| (*part).to_owned()).collect()
    }

    #[test]
    fn every_code_has_a_name_of_its_own_which_is_the_variant_in_snake_case() {
        let names: BTreeSet<&str> = FindingCode::ALL.iter().map(|code| code.name()).collect();
        assert_eq!(names.len(), FindingCode::ALL.len());
        for code in FindingCode::ALL {
            let mut snake = String::new();
            for character in format!("{code:?}").chars() {
                if character.is_ascii_uppercase() && !snake.is_empty() {
                    snake.push('_');
                }
                snake.push(character.to_ascii_lowercase());
            }
            assert_eq!((code.name(), code.to_string().as_str()), (snake.as_str(), snake.as_str()));
            assert_eq!(serde_json::to_value(code).unwrap(), json!(snake));
        }
    }

    #[test]
    fn problems_sort_before_warnings_and_these_before_notes() {
        let mut severities = [Severity::Note, Severity::Problem, Severity::Warning, Severity::Problem];
        severities.sort();
        assert_eq!(severities.map(Severity::word), ["problem", "problem", "warning", "note"]);
        for severity in severities {
            assert_eq!(serde_json::to_value(severity).unwrap(), json!(severity.word()));
        }
    }

    #[test]
    fn subjects_read_as_in_a_statement_and_are_their_text_in_json() {
        let placement =
            Subject::Placement { key: key(&["a", "date(b)"]), function: "ydb".to_owned(), partitions: 64 };
        for (subject, text, is_key) in [
            (Subject::PartitionKey(key(&["a", "date(b)"])), "HASH(a, date(b))", true),
            (placement, "HASH(a, date(b)) by ydb over 64", true),
            (Subject::PrimaryKey(key(&["at", "id"])), "PRIMARY KEY (at, id)", true),
            (Subject::from("--rate"), "--rate", false),
            (Subject::from("a column".to_owned()), "a column", false),
        ] {
            assert_eq!((subject.to_string().as_str(), subject.is_key()), (text, is_key));
            assert_eq!(serde_json::to_value(&subject).unwrap(), json!(text));
        }
    }

    #[test]
    fn a_finding_in_json_has_its_code_its_figures_and_its_words() {
        let finding = Finding {
            code: FindingCode::HeavyKey,
            severity: Severity::Warning,
            subject: Subject::PartitionKey(key(&["user"])),
            message: "a message".to_owned(),
            measured: 0.5,
            threshold: 0.25,
            advice: "some advice".to_owned(),
        };
        let expected = json!({
            "code": "heavy_key",
            "severity": "warning",
            "subject": "HASH(user)",
            "message": "a message",
            "measured": 0.5,
            "threshold": 0.25,
            "advice": "some advice",
        });
        assert_eq!(serde_json::to_value(&finding).unwrap(), expected);
    }
}
