//! Which keys to choose: a ranking by quantities that mean something, and the reasons in order.

use serde::Serialize;

use crate::evaluate::assess::AssessOptions;
use crate::evaluate::evaluator::Evaluation;
use crate::evaluate::fan_out::{Reach, StatementReport};
use crate::evaluate::key::Candidate;
use crate::evaluate::partition_key::PartitionKeyReport;
use crate::evaluate::primary_key::PrimaryKeyReport;
use crate::skew::Verdict;
use crate::source::Export;
use crate::table::{Column, PlacementFunction, TableDefinition, TableSpec, write_create_table};
use crate::units::{ByteRate, PartitionCount};

/// Keys whose sustained rate is at least this part of the best one's count as equally even.
const AS_EVEN: f64 = 0.9;
/// Distinct values that YDB advises per partition, at least.
pub(super) const FEWEST_KEYS_PER_PARTITION: u64 = 100;
/// Partitions that YDB advises for streams that do not need more, at most.
const MOST_FOR_SMALL_STREAMS: u32 = 128;

/// How many partitions, and which rule decides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sizing {
    pub(super) partitions: PartitionCount,
    pub(super) reasons: Vec<String>,
}

/// A candidate for the partition key among the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedKey {
    /// The key.
    pub partition_key: Vec<String>,
    /// The judgement of its balance.
    pub verdict: Verdict,
    /// Inserts that the table sustains, in bytes per second.
    pub sustained_rate: f64,
    /// The same if all partitions were equally busy.
    pub rate_if_even: f64,
    /// Partitions that a statement visits, on average; none without statements.
    pub mean_partitions_read: Option<f64>,
    /// Statements that visit all partitions.
    pub statements_on_all: usize,
    /// Why a table of this export cannot have it as it is; none where it can.
    pub obstacle: Option<String>,
}

/// What to choose, and why.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Recommendation {
    /// The partition key; empty where no candidate can serve.
    pub partition_key: Vec<String>,
    /// The primary key; empty where none can serve.
    pub primary_key: Vec<String>,
    /// The number of partitions.
    pub partitions: u32,
    /// Why, the weightiest first.
    pub reasons: Vec<String>,
    /// What another choice would give and cost.
    pub trade_offs: Vec<String>,
    /// The YQL of the table.
    pub ddl: Option<String>,
    /// Commands that make it and fill it, in YDB and here.
    pub commands: Vec<String>,
}

impl Sizing {
    /// The smallest of the numbers that were evaluated that takes the rate of inserts, within the other rules.
    pub(super) fn of(evaluation: &Evaluation, options: &AssessOptions) -> Self {
        let mut counts: Vec<PartitionCount> = options.evaluate.partitions.clone();
        counts.sort_unstable_by_key(|count| count.get());
        counts.dedup();
        let (Some(smallest), Some(largest)) = (counts.first().copied(), counts.last().copied()) else {
            return Self { partitions: PartitionCount::ONE, reasons: Vec::new() };
        };
        let mut reasons = Vec::new();
        let per_partition = options.evaluate.partition_rate;
        let rate = options.ingest_rate.or_else(|| rate_of(evaluation));
        let needed = rate.map_or(1.0, |rate| (rate / per_partition).ceil().max(1.0));
        let enough = counts.iter().copied().find(|count| f64::from(count.get()) >= needed).unwrap_or(largest);
        match rate {
            Some(rate) => {
                let whose =
                    if options.ingest_rate.is_some() { "the rate given" } else { "the export's own rate" };
                reasons.push(format!(
                    "{whose} of {} needs {needed} partition{} at {} each",
                    ByteRate(rate),
                    if needed > 1.0 { "s" } else { "" },
                    ByteRate(per_partition)
                ));
            }
            None => reasons.push("the rate of inserts is not known; give it with --ingest-rate".to_owned()),
        }
        let node = |count: PartitionCount| {
            options.nodes.iter().find(|nodes| PartitionCount::for_nodes(**nodes).ok() == Some(count))
        };
        let mut chosen = enough;
        let most_keys = evaluation.candidates.iter().map(|key| key.distinct.estimate).max().unwrap_or(0);
        let by_keys = |count: PartitionCount| most_keys / u64::from(count.get()) >= FEWEST_KEYS_PER_PARTITION;
        if !by_keys(chosen) {
            let fewer = counts.iter().copied().rev().find(|count| *count <= chosen && by_keys(*count));
            let fewer = fewer.unwrap_or(smallest);
            if fewer < chosen {
                reasons.push(format!(
                    "{chosen} partitions would leave fewer than {FEWEST_KEYS_PER_PARTITION} of the {most_keys} distinct keys to each, so {fewer}"
                ));
                chosen = fewer;
            }
        }
        let small = needed <= f64::from(MOST_FOR_SMALL_STREAMS);
        if small && chosen.get() > MOST_FOR_SMALL_STREAMS {
            let fewer = counts.iter().copied().rev().find(|count| count.get() <= MOST_FOR_SMALL_STREAMS);
            if let Some(fewer) = fewer {
                reasons
                    .push(format!("a stream this small takes at most {MOST_FOR_SMALL_STREAMS} partitions"));
                chosen = fewer;
            } else {
                reasons.push(format!(
                    "YDB advises at most {MOST_FOR_SMALL_STREAMS} partitions for a stream this small"
                ));
            }
        }
        if f64::from(chosen.get()) < needed {
            reasons.push(format!(
                "{chosen} is the largest number that was evaluated; evaluate larger ones with --partitions"
            ));
        } else if let Some(nodes) = node(chosen) {
            reasons
                .push(format!("{chosen} partitions are 4 for each of {nodes} nodes, the rule that decides"));
        } else {
            reasons.push(format!("{chosen} is the smallest number evaluated that the rules allow"));
        }
        Self { partitions: chosen, reasons }
    }
}

/// Bytes per second of the export over the time it spans; none without time.
fn rate_of(evaluation: &Evaluation) -> Option<f64> {
    let range = evaluation.time_range.as_ref()?;
    let seconds = (range.latest_micros - range.earliest_micros) as f64 / 1e6;
    let read =
        evaluation.sample.map_or(1.0, |sample| sample.rows_read as f64 / evaluation.rows.max(1) as f64);
    (seconds > 0.0).then(|| evaluation.bytes as f64 * read / seconds)
}

/// Ranks the candidates and proposes a table.
pub(super) fn recommend(
    evaluation: &Evaluation,
    statements: &[StatementReport],
    export: &Export,
    options: &AssessOptions,
    sizing: &Sizing,
) -> (Vec<RankedKey>, Recommendation) {
    let mut ranking: Vec<RankedKey> = evaluation
        .candidates
        .iter()
        .filter_map(|key| rank(key, evaluation.rows, statements, sizing.partitions))
        .collect();
    let best = |keys: &[RankedKey]| {
        keys.iter().filter(|key| key.obstacle.is_none()).map(|key| key.sustained_rate).fold(0.0, f64::max)
    };
    let best = best(&ranking);
    ranking.sort_by(|a, b| order(a, best).partial_cmp(&order(b, best)).unwrap_or(std::cmp::Ordering::Equal));
    let chosen = ranking.first().filter(|key| key.obstacle.is_none());
    let Some(chosen) = chosen else {
        let reasons =
            vec!["no candidate can be a partition key; name others with --partition-key".to_owned()];
        return (
            ranking,
            Recommendation { partitions: sizing.partitions.get(), reasons, ..Recommendation::default() },
        );
    };
    let partition_key = Candidate::of_columns(&chosen.partition_key);
    let mut reasons = reasons_for(chosen, statements, best);
    let primary_key = choose_primary_key(&evaluation.primary_keys, &partition_key, &mut reasons);
    reasons.extend(sizing.reasons.iter().cloned());
    let mut recommendation = Recommendation {
        partition_key: chosen.partition_key.clone(),
        primary_key: primary_key.as_ref().map(Candidate::part_names).unwrap_or_default(),
        partitions: sizing.partitions.get(),
        reasons,
        trade_offs: trade_offs(chosen, &ranking, statements),
        ddl: None,
        commands: Vec::new(),
    };
    if let Some(primary_key) = primary_key {
        propose_table(&mut recommendation, &primary_key, export, options, sizing.partitions);
    }
    (ranking, recommendation)
}

fn rank(
    key: &PartitionKeyReport,
    rows: u64,
    statements: &[StatementReport],
    partitions: PartitionCount,
) -> Option<RankedKey> {
    let placement = key.over(partitions)?;
    let visits: Vec<_> =
        statements.iter().filter_map(|statement| statement.under(&key.partition_key)).collect();
    let read: usize = visits.iter().map(|visit| visit.partitions_read).sum();
    let obstacle = if !key.candidate.is_plain() {
        Some("it has a derived part; the export has no such column".to_owned())
    } else if key.null_rows > 0 {
        Some(format!("{} of {rows} rows have NULL in it", key.null_rows))
    } else {
        key.type_obstacle.clone()
    };
    Some(RankedKey {
        partition_key: key.partition_key.clone(),
        verdict: placement.verdict,
        sustained_rate: placement.capacity.sustained,
        rate_if_even: placement.capacity.if_even,
        mean_partitions_read: (!visits.is_empty()).then(|| read as f64 / visits.len() as f64),
        statements_on_all: visits.iter().filter(|visit| visit.reach == Reach::All).count(),
        obstacle,
    })
}

/// What keys are ordered by, the first that differs: whether they can serve; whether they are as even as the best, within 10 %;
/// of those, how many partitions statements visit and how many columns they have; their rate.
fn order(key: &RankedKey, best: f64) -> (bool, bool, f64, usize, f64) {
    let uneven = key.sustained_rate < AS_EVEN * best;
    let visits = if uneven { 0.0 } else { key.mean_partitions_read.unwrap_or(0.0) };
    let width = if uneven { 0 } else { key.partition_key.len() };
    (key.obstacle.is_some(), uneven, visits, width, -key.sustained_rate)
}

fn name(key: &[String]) -> String {
    format!("HASH({})", key.join(", "))
}

fn reasons_for(chosen: &RankedKey, statements: &[StatementReport], best: f64) -> Vec<String> {
    let mut reasons = vec![format!(
        "{} sustains {} of inserts, of {} if all partitions were equally busy",
        name(&chosen.partition_key),
        ByteRate(chosen.sustained_rate),
        ByteRate(chosen.rate_if_even),
    )];
    if chosen.sustained_rate < best {
        reasons.push(format!(
            "the evenest candidate sustains {}, no more than a tenth more, and is worse otherwise",
            ByteRate(best)
        ));
    }
    let on_one = statements.iter().filter(|statement| {
        statement.under(&chosen.partition_key).is_some_and(|visit| visit.reach == Reach::One)
    });
    let on_one: Vec<&str> = on_one.map(|statement| statement.statement.as_str()).collect();
    if !on_one.is_empty() {
        reasons.push(format!("one partition answers {}", on_one.join(", ")));
    }
    reasons
}

/// What the other keys would give, where that is a real choice.
fn trade_offs(chosen: &RankedKey, ranking: &[RankedKey], statements: &[StatementReport]) -> Vec<String> {
    let mut trade_offs = Vec::new();
    let others =
        ranking.iter().filter(|key| key.partition_key != chosen.partition_key && key.obstacle.is_none());
    for other in others {
        let better: Vec<&str> = statements
            .iter()
            .filter(|statement| {
                let (Some(own), Some(others)) =
                    (statement.under(&chosen.partition_key), statement.under(&other.partition_key))
                else {
                    return false;
                };
                others.reach < own.reach
            })
            .map(|statement| statement.statement.as_str())
            .collect();
        let faster = other.sustained_rate / chosen.sustained_rate.max(f64::MIN_POSITIVE);
        if !better.is_empty() {
            trade_offs.push(format!(
                "{} would answer {} from fewer partitions, but sustains {} where {} sustains {}",
                name(&other.partition_key),
                better.join(", "),
                ByteRate(other.sustained_rate),
                name(&chosen.partition_key),
                ByteRate(chosen.sustained_rate),
            ));
        } else if faster > 1.02 {
            let worse = match (other.mean_partitions_read, chosen.mean_partitions_read) {
                (Some(others), Some(own)) if others > own => {
                    format!("statements visit {others:.1} partitions on average instead of {own:.1}")
                }
                _ => "it has more columns".to_owned(),
            };
            trade_offs.push(format!(
                "{} would sustain {}, {:.0} % more; but {worse}",
                name(&other.partition_key),
                ByteRate(other.sustained_rate),
                (faster - 1.0) * 100.0,
            ));
        }
    }
    trade_offs
}

/// The primary key that loses the least and costs the least, with the partition key in it.
fn choose_primary_key(
    keys: &[PrimaryKeyReport],
    partition_key: &Candidate,
    reasons: &mut Vec<String>,
) -> Option<Candidate> {
    let cost = |key: &&PrimaryKeyReport| {
        let outside = !key.candidate.contains(partition_key);
        let amplification = (key.layout.write_amplification * 10.0).round() as u64;
        (key.conflicting_rows, outside, amplification, key.candidate.parts().len())
    };
    let usable = keys.iter().filter(|key| key.obstacles.is_empty() && key.candidate.is_plain());
    let best = usable.min_by_key(cost)?;
    let key = best.candidate.with(partition_key);
    let columns = best.columns.join(", ");
    reasons.push(match (best.duplicate_rows, best.conflicting_rows) {
        (0, _) if best.duplicate_rows_interval.is_some() => {
            format!("({columns}) repeats in no row of the sample; only the whole export can tell whether it is unique")
        }
        (0, _) => format!("({columns}) is unique: no row is lost"),
        (repeated, 0) => {
            format!("({columns}) repeats in {repeated} rows that are identical copies: no value is lost")
        }
        (_, conflicting) => {
            format!("({columns}) loses the fewest rows of the candidates, {conflicting}; see the findings")
        }
    });
    reasons.push(format!(
        "rows come in its order to {:.1} %, and merging writes each row {:.1} times",
        best.in_order_fraction * 100.0,
        best.layout.write_amplification,
    ));
    if key != best.candidate {
        reasons.push(format!(
            "({key}) adds the partition key, which must be part of the primary key; a longer key keeps unique and in order"
        ));
    }
    Some(key)
}

/// The YQL, and the commands that use it.
fn propose_table(
    recommendation: &mut Recommendation,
    primary_key: &Candidate,
    export: &Export,
    options: &AssessOptions,
    partitions: PartitionCount,
) {
    let in_key = |column: &Column| recommendation.primary_key.contains(&column.name);
    let columns =
        export.columns().iter().map(|column| Column { nullable: !in_key(column), ..column.clone() });
    let definition = TableDefinition {
        name: options.table.clone(),
        columns: columns.collect(),
        primary_key: primary_key.part_names(),
        partition_key: recommendation.partition_key.clone(),
        partitions,
        placement: PlacementFunction::Ydb,
    };
    let Ok(spec) = TableSpec::new(definition) else { return };
    recommendation.ddl = Some(write_create_table(&spec));
    let table = &options.table;
    let inputs = export.input_names();
    let quoted: Vec<String> = inputs.iter().map(|input| shell_word(input)).collect();
    let Some(first) = quoted.first() else { return };
    let types: String = options_types(export);
    recommendation.commands = vec![
        format!(
            "evenkeel create {table} --like {first}{types} --primary-key {} --partition-key {} --partitions {partitions}",
            shell_word(&recommendation.primary_key.join(",")),
            shell_word(&recommendation.partition_key.join(",")),
        ),
        format!("evenkeel ingest {table} {}", quoted.join(" ")),
        format!("ydb import file {} -p {table} {}", format_of(first), quoted.join(" ")),
    ];
}

/// Types that were changed by hand, as arguments.
fn options_types(export: &Export) -> String {
    export
        .changed_types()
        .iter()
        .map(|(name, t)| format!(" --column {}", shell_word(&format!("{name}:{t}"))))
        .collect()
}

/// The name of a format in `ydb import file`.
fn format_of(input: &str) -> &'static str {
    let name = input.to_ascii_lowercase();
    let has = |ending: &str| name.contains(ending);
    match () {
        () if has(".tsv") => "tsv",
        () if has(".csv") => "csv --header",
        () if has("json") => "json",
        () => "parquet",
    }
}

/// A word that a shell takes as one.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
