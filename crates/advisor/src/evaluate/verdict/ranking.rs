//! Choice of keys: a ranking by meaningful quantities, and the reasons in order.

use std::cmp::Ordering;

use crate::evaluate::candidates::workload::{StatementReport, fan_out};
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::partition_key::PartitionKeyReport;
use crate::evaluate::figures::recommendation::{RankedKey, Recommendation};
use crate::evaluate::options::AdvisorOptions;
use crate::evaluate::verdict::alternatives::Recommended;
use crate::evaluate::verdict::ddl::{Proposed, propose_table};
pub(crate) use crate::evaluate::verdict::knowledge::Knowledge;
use crate::evaluate::verdict::primary_key::{
    choose_primary_key, has_unique_part, judge_current_keys, loses_most_rows,
};
use crate::evaluate::verdict::qualification::{qualifies, rank};
use crate::evaluate::verdict::reasons::{few_values, identifies_nothing, no_identity, reasons_for};
use crate::evaluate::verdict::sizing::{Needed, Rule};
use crate::evaluate::verdict::workload_cost::Workload;
use evenkeel_input::source::Export;
use evenkeel_model::table::Candidate;
use evenkeel_model::time_reading::TimeReading;
use evenkeel_model::units::PartitionCount;
use evenkeel_model::workload::PlannedStatement;
use evenkeel_stats::skew::{MIN_KEYS_PER_PARTITION, Verdict};

/// Smallest number of values per partition with which an entity needs no second column.
const MIN_VALUES_PER_PARTITION: u64 = 4;
/// Number of values per partition below which an uneven key cannot be called a good one.
const FEW_VALUES_PER_PARTITION: u64 = 2;
/// Largest max/mean of an uneven key that is better than a key containing a time.
const BEARABLE: f64 = 3.0;
/// Difference in cost below which two keys are as good.
const SAME_COST: f64 = 0.01;
/// Difference of rates, as a share of an even key's rate, below which the cheaper of two uneven
/// keys is better.
const SAME_RATE: f64 = 0.05;

/// Number of rows up to which they are too few to tell that a key is uneven.
const FEW_ROWS: u64 = 1_000;
/// Largest share of the rows with one value, in partitions, with which a few rows may be even.
const MAX_HEAVIEST: f64 = 1.0;

/// Ranking over one number of partitions.
struct Ranked {
    partitions: PartitionCount,
    keys: Vec<RankedKey>,
    /// Kind of the best key; `None` if no key can be used.
    best: Option<Class>,
    /// Things that need no second column.
    sufficient: Vec<Vec<String>>,
}

/// Whether a key adds columns to one of `sufficient`.
fn is_wider(sufficient: &[Vec<String>], key: &RankedKey) -> bool {
    sufficient.iter().any(|other| {
        key.partition_key.len() > other.len() && other.iter().all(|column| key.partition_key.contains(column))
    })
}

/// Ranks the candidates over every evaluated number of partitions, and proposes a table: with the
/// smallest number whose best key sustains the inserts and has enough distinct values.
pub(crate) fn recommend(
    evaluation: &Evaluation,
    planned: &[PlannedStatement],
    export: &Export,
    options: &AdvisorOptions,
    knowledge: &Knowledge<'_>,
) -> Choice {
    let needed = Needed::new(evaluation, options);
    let mut counts: Vec<PartitionCount> = options.evaluate.partitions.clone();
    counts.sort_unstable_by_key(|count| count.get());
    counts.dedup();
    let candidates: Vec<Candidate> =
        evaluation.candidates.iter().map(|report| report.candidate.clone()).collect();
    let function = options.evaluate.placements.first().copied().unwrap_or_default();
    let ranked: Vec<(Ranked, Vec<StatementReport>)> = counts
        .iter()
        .map(|partitions| {
            let statements = fan_out(planned, &candidates, export.columns(), function, *partitions);
            (rank_all(evaluation, &statements, *partitions, &needed, knowledge), statements)
        })
        .collect();
    let serves = |(ranked, _): &&(Ranked, Vec<StatementReport>)| {
        let best = ranked.keys.first().filter(|_| ranked.best.is_some());
        best.is_some_and(|best| needed.rate.is_none_or(|rate| best.sustained_rate >= rate))
    };
    let has_keys = |(ranked, _): &&(Ranked, Vec<StatementReport>)| {
        let best = ranked.keys.first().map(|key| &key.partition_key);
        let report = evaluation.candidates.iter().find(|report| Some(&report.partition_key) == best);
        report.is_some_and(|key| {
            key.distinct.estimate / u64::from(ranked.partitions.get()) >= MIN_KEYS_PER_PARTITION
        })
    };
    // Too few rows to judge a larger number are no evidence for it, nor is a second column that the
    // smallest number does without.
    let fewest = ranked.first().map_or([].as_slice(), |(ranked, _)| ranked.sufficient.as_slice());
    let kind = |(ranked, _): &&(Ranked, Vec<StatementReport>)| {
        let best = ranked.keys.first();
        let too_few = best.is_some_and(|key| key.verdict == Verdict::FewRows);
        let class = match best.is_some_and(|key| is_wider(fewest, key)) {
            true => ranked.best.max(Some(Class::SpreadByCount)),
            false => ranked.best,
        };
        (too_few, class)
    };
    // In this order: of the numbers that sustain the rate, the smallest whose best key is of the
    // best kind; the largest with enough keys; the smallest.
    let best = ranked.iter().filter(serves).min_by_key(kind);
    let (chosen, rule) = if let Some(key) = best {
        (Some(key), if has_keys(&key) { Rule::Suffices } else { Rule::FewKeys })
    } else if let Some(key) = ranked.iter().rev().find(has_keys) {
        (Some(key), Rule::TooSlow)
    } else {
        (ranked.first(), Rule::TooSlow)
    };
    let Some((ranked, statements)) = chosen else { return Choice::default() };
    let sizing = rule.reasons(&needed, ranked.partitions, options);
    Choice {
        partitions: Some(ranked.partitions),
        ranking: ranked.keys.clone(),
        statements: statements.clone(),
        recommendation: propose(evaluation, ranked, statements, sizing, export, options, knowledge),
    }
}

/// Chosen number of partitions, with its ranking and recommendation.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    pub(crate) partitions: Option<PartitionCount>,
    pub(crate) ranking: Vec<RankedKey>,
    pub(crate) statements: Vec<StatementReport>,
    pub(crate) recommendation: Recommendation,
}

/// Kinds of candidates, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    /// Even enough.
    Qualifies,
    /// Not even enough, but better than a time in the key, which no read of an entity knows.
    Bearable,
    /// Even enough only because the key contains a time, a line number or a possible amount.
    SpreadByCount,
    /// Kinds of things rather than things, such as a country and a status.
    Kinds,
    Uneven,
    /// Identifies nothing that reads would name.
    Makeshift,
}

impl Class {
    /// Returns the kind of a candidate. `is_needless` says whether one column suffices instead,
    /// `is_young` whether the rows are too few to tell that the key is uneven.
    fn new(
        key: &RankedKey,
        workload: &Workload<'_>,
        knowledge: &Knowledge<'_>,
        is_needless: impl Fn(&RankedKey) -> bool,
        is_young: impl Fn(&RankedKey) -> bool,
    ) -> Self {
        if workload.is_makeshift(&key.partition_key) {
            Self::Makeshift
        } else if knowledge.is_of_kinds(&key.partition_key) {
            if key.qualifies { Self::Kinds } else { Self::Uneven }
        } else if (key.qualifies || is_young(key))
            && !knowledge.has_count(&key.partition_key)
            && !knowledge.has_vague(&key.partition_key)
            && !is_needless(key)
        {
            Self::Qualifies
        } else if !key.qualifies
            && !knowledge.has_vague(&key.partition_key)
            && key.rate_if_even <= BEARABLE * key.sustained_rate
        {
            Self::Bearable
        } else if key.qualifies {
            Self::SpreadByCount
        } else {
            Self::Uneven
        }
    }
}

/// Ranks the candidates. Evenness is a constraint: a key qualifies if its hottest partition stays
/// within the limits of rate and headroom, in total and over time. Among the keys that qualify, the
/// expected share of the partitions that statements visit decides; among the others, the rate that
/// they sustain. Keys with times, measures or text, a last resort, rank last.
fn rank_all(
    evaluation: &Evaluation,
    statements: &[StatementReport],
    partitions: PartitionCount,
    needed: &Needed,
    knowledge: &Knowledge<'_>,
) -> Ranked {
    let workload = Workload::expected(knowledge, evaluation, partitions, |key| {
        key.over(partitions).is_some_and(|placement| qualifies(key, placement, needed))
    });
    let mut keys: Vec<RankedKey> = evaluation
        .candidates
        .iter()
        .filter_map(|key| rank(key, evaluation.rows, statements, partitions, needed, &workload))
        .collect();
    // A thing with few values spreads them by chance; a second column would only make reads of it
    // visit more partitions. One with a heavy value needs the second column.
    let has_values = |key: &RankedKey| {
        let values = values_of(evaluation, &key.partition_key);
        values.is_some_and(|values| values >= MIN_VALUES_PER_PARTITION * u64::from(partitions.get()))
    };
    let suffices = |key: &RankedKey| {
        key.partition_key.len() == 1
            && has_values(key)
            && key.obstacle.is_none()
            && matches!(key.verdict, Verdict::FewKeys | Verdict::Even)
            && key.rate_if_even <= BEARABLE * key.sustained_rate
            && workload.is_entity(&key.partition_key)
    };
    let sufficient: Vec<Vec<String>> =
        keys.iter().filter(|key| suffices(key)).map(|key| key.partition_key.clone()).collect();
    // If one column suffices, several are only better if they identify a thing together.
    let is_needless = |key: &RankedKey| {
        key.partition_key.len() > 1 && !sufficient.is_empty() && !workload.is_thing(&key.partition_key)
    };
    // A few documents are uneven by chance; others will follow.
    let is_young = |key: &RankedKey| {
        let report = evaluation.candidates.iter().find(|report| report.partition_key == key.partition_key);
        let heaviest =
            |report: &PartitionKeyReport| report.heavy_hitters.first().map_or(0, |heavy| heavy.rows);
        let is_light = |report: &PartitionKeyReport| {
            (heaviest(report) * u64::from(partitions.get())) as f64 <= MAX_HEAVIEST * evaluation.rows as f64
        };
        let values = values_of(evaluation, &key.partition_key).unwrap_or_default();
        evaluation.rows <= FEW_ROWS
            && key.obstacle.is_none()
            && key.partition_key.len() == 1
            && workload.is_entity(&key.partition_key)
            && values >= FEW_VALUES_PER_PARTITION * u64::from(partitions.get())
            && report.is_some_and(is_light)
    };
    let class = |key: &RankedKey| Class::new(key, &workload, knowledge, is_needless, is_young);
    let order = |key: &RankedKey| {
        let class = class(key);
        let is_by_cost = class <= Class::SpreadByCount;
        let cost = match class {
            _ if is_by_cost => (key.cost / SAME_COST).round(),
            Class::Kinds | Class::Makeshift => workload.rarely_fixed(&key.partition_key),
            _ => 0.0,
        };
        // Of the two ends of a way, the first names the row.
        let places = key.partition_key.iter().filter_map(|column| knowledge.position(column));
        let place = places.min().filter(|_| is_by_cost);
        let even = (key.sustained_rate / key.rate_if_even.max(f64::MIN_POSITIVE) / SAME_RATE).round();
        (key.obstacle.is_some(), class, cost, place, -even, key.cost, -key.sustained_rate)
    };
    keys.sort_by(|a, b| order(a).partial_cmp(&order(b)).unwrap_or(Ordering::Equal));
    let best = keys.first().filter(|key| key.obstacle.is_none()).map(class);
    Ranked { partitions, keys, best, sufficient }
}

/// Estimated number of values of a partition key that was evaluated.
fn values_of(evaluation: &Evaluation, key: &[String]) -> Option<u64> {
    let report = evaluation.candidates.iter().find(|report| report.partition_key == key)?;
    Some(report.distinct.estimate)
}

/// Explains why the best key is not a good one, although reads may name it.
fn weakness(
    chosen: &RankedKey,
    evaluation: &Evaluation,
    partitions: PartitionCount,
    knowledge: &Knowledge<'_>,
) -> Option<String> {
    let key = &chosen.partition_key;
    if knowledge.is_weak(key)
        && !knowledge.is_thing(key)
        && loses_most_rows(&evaluation.primary_keys, evaluation.rows)
    {
        return Some(no_identity(key));
    }
    let values = values_of(evaluation, key)?;
    let is_few = values < FEW_VALUES_PER_PARTITION * u64::from(partitions.get());
    (!chosen.qualifies && chosen.verdict == Verdict::FewKeys && is_few)
        .then(|| few_values(key, values, partitions))
}

fn propose(
    evaluation: &Evaluation,
    ranked: &Ranked,
    statements: &[StatementReport],
    sizing: Vec<String>,
    export: &Export,
    options: &AdvisorOptions,
    knowledge: &Knowledge<'_>,
) -> Recommendation {
    let function = options.evaluate.placements.first().copied().unwrap_or_default();
    let chosen = ranked.keys.first().filter(|key| key.obstacle.is_none());
    if chosen.is_some_and(|key| key.verdict == Verdict::FewRows && knowledge.has_time(&key.partition_key)) {
        let reasons = vec![
            "there are too few rows to choose a partition key: no column has enough values to fill the partitions; evaluate more rows, or name a key with --partition-key".to_owned(),
        ];
        return Recommendation { partitions: ranked.partitions.get(), reasons, ..Recommendation::default() };
    }
    let Some(chosen) = chosen else {
        let reasons =
            vec!["no candidate can be a partition key; name others with --partition-key".to_owned()];
        return Recommendation { partitions: ranked.partitions.get(), reasons, ..Recommendation::default() };
    };
    let mut candidates = evaluation.candidates.iter().map(|report| &report.candidate);
    let Some(partition_key) = candidates.find(|key| key.part_names() == chosen.partition_key).cloned() else {
        return Recommendation::default();
    };
    let mut reasons = reasons_for(chosen, &ranked.keys, statements, knowledge);
    let identifies_nothing = identifies_nothing(&chosen.partition_key, knowledge);
    let weakness = weakness(chosen, evaluation, ranked.partitions, knowledge);
    if let (false, Some(weakness)) = (identifies_nothing, &weakness) {
        reasons.insert(0, weakness.clone());
    }
    let primary_key = choose_primary_key(&evaluation.primary_keys, &partition_key, knowledge, &mut reasons);
    if let Some(reason) =
        judge_current_keys(&partition_key, primary_key.as_ref(), &evaluation.primary_keys, options)
    {
        reasons.insert(0, reason);
    }
    reasons.extend(sizing);
    let current = options.current_partition_key.as_ref().map(Candidate::part_names);
    let alternatives = Recommended { key: chosen, partitions: ranked.partitions, statements, knowledge }
        .alternatives(&ranked.keys, current.as_deref());
    let mut recommendation = Recommendation {
        partition_key: chosen.partition_key.clone(),
        primary_key: primary_key.as_ref().map(Candidate::columns).unwrap_or_default(),
        makeshift: ranked.best == Some(Class::Makeshift)
            || weakness.is_some()
            || identifies_nothing
            || knowledge.is_of_kinds(&chosen.partition_key)
            || knowledge.has_count(&chosen.partition_key),
        partitions: ranked.partitions.get(),
        reasons,
        alternatives,
        ddl: None,
        language: "sql",
        commands: Vec::new(),
    };
    if primary_key.is_some() || function.ydb_function().is_none() {
        let key = evaluation.candidates.iter().find(|key| key.candidate == partition_key);
        let first = partition_key.columns().into_iter().next();
        let proposed = Proposed {
            is_unique: has_unique_part(&evaluation.primary_keys, &recommendation.primary_key),
            time: options.evaluate.time.as_deref().filter(|time| {
                let native = options.evaluate.time_reading == TimeReading::Native;
                native && knowledge.report(time).is_some_and(|report| report.null_share == 0.0)
            }),
            role: first.and_then(|first| knowledge.role(&first)),
            heaviest_rows: key.and_then(|key| key.heavy_hitters.first()).map(|heavy| heavy.rows),
        };
        propose_table(&mut recommendation, &partition_key, export, options, ranked.partitions, &proposed);
    }
    recommendation
}

#[cfg(test)]
#[path = "ranking_tests.rs"]
mod tests;
