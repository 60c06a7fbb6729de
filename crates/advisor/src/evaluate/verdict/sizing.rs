//! The insert rate that a table must sustain, and the number of partitions that it asks for.

use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::options::AdvisorOptions;
use evenkeel_model::units::{ByteRate, PartitionCount};

/// Maximum number of partitions that YDB advises for streams that do not need more.
const MAX_FOR_SMALL_STREAMS: u32 = 128;

/// Insert rate that the table must sustain.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Needed {
    /// Rate in bytes per second; `None` if neither the user nor the data give one.
    pub(super) rate: Option<f64>,
    words: String,
}

impl Needed {
    pub(super) fn new(evaluation: &Evaluation, options: &AdvisorOptions) -> Self {
        let row_bytes = evaluation.bytes as f64 / evaluation.rows.max(1) as f64;
        let each = ByteRate(options.evaluate.partition_rate);
        if let Some(rate) = options.ingest_rate {
            return Self {
                rate: Some(rate),
                words: format!("{} is to be ingested; a partition handles {each}", ByteRate(rate)),
            };
        }
        let Some(range) = &evaluation.time_range else {
            let words = "the rate of inserts is not known; give it with --ingest-rate".to_owned();
            return Self { rate: None, words };
        };
        let busy = range.busy_rows_per_second * row_bytes;
        let words = format!(
            "rows of the export arrive at {} on average and {} at busy times; a partition handles {each}",
            ByteRate(range.average_rows_per_second * row_bytes),
            ByteRate(busy),
        );
        Self { rate: Some(busy), words }
    }
}

/// Rule that decided the number of partitions.
pub(super) enum Rule {
    Suffices,
    FewKeys,
    TooSlow,
}

impl Rule {
    /// Explains the number of partitions.
    pub(super) fn reasons(
        &self,
        needed: &Needed,
        partitions: PartitionCount,
        options: &AdvisorOptions,
    ) -> Vec<String> {
        let mut reasons = vec![needed.words.clone(), self.words(partitions, options)];
        let small = f64::from(MAX_FOR_SMALL_STREAMS) * options.evaluate.partition_rate;
        if partitions.get() > MAX_FOR_SMALL_STREAMS && needed.rate.is_some_and(|rate| rate <= small) {
            reasons.push(format!(
                "YDB advises at most {MAX_FOR_SMALL_STREAMS} partitions for a stream this small"
            ));
        }
        reasons
    }

    fn words(&self, partitions: PartitionCount, options: &AdvisorOptions) -> String {
        let nodes =
            options.nodes.iter().find(|nodes| PartitionCount::for_nodes(**nodes).ok() == Some(partitions));
        let whose = match nodes {
            Some(nodes) if options.nodes_given => {
                format!("{partitions} partitions, 4 for each of {nodes} nodes")
            }
            Some(nodes) => {
                format!("{partitions} partitions (4 for each of {nodes} nodes; give yours with --nodes)")
            }
            None => format!("{partitions} partitions"),
        };
        match self {
            Self::Suffices => {
                format!(
                    "{whose}: the smallest number evaluated that sustains this rate and has 100 or more keys for each"
                )
            }
            Self::FewKeys => {
                format!(
                    "{whose}: the smallest number evaluated that sustains this rate, with fewer than 100 keys for each"
                )
            }
            Self::TooSlow => {
                format!(
                    "{whose}: no number evaluated sustains this rate; evaluate larger ones, or other keys"
                )
            }
        }
    }
}
