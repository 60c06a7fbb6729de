//! Choice of keys: a ranking by meaningful quantities, and the reasons in order.

use std::cmp::Ordering;

use crate::evaluate::candidates::workload::{Reach, StatementReport, fan_out};
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::partition_key::{PartitionKeyReport, PlacementReport};
use crate::evaluate::figures::recommendation::{RankedKey, Recommendation};
use crate::evaluate::nulls::can_be_filled_in;
use crate::evaluate::options::AdvisorOptions;
use crate::evaluate::verdict::FEWEST_KEYS_PER_PARTITION;
use crate::evaluate::verdict::alternatives::Recommended;
use crate::evaluate::verdict::ddl::{Proposed, propose_table};
use crate::evaluate::verdict::primary_key::{choose_primary_key, has_unique_part, of_current_keys};
use crate::evaluate::verdict::reasons::reasons_for;
pub(crate) use crate::evaluate::verdict::workload_cost::Knowledge;
use crate::evaluate::verdict::workload_cost::Workload;
use evenkeel_input::source::Export;
use evenkeel_model::table::Candidate;
use evenkeel_model::time_reading::TimeReading;
use evenkeel_model::units::{ByteRate, PartitionCount};
use evenkeel_model::workload::PlannedStatement;
use evenkeel_stats::skew::Verdict;

/// Multiple of the required rate from which an even key suffices.
const HEADROOM: f64 = 2.0;
/// Max/mean up to which a key is even enough.
const TOLERABLE: f64 = 1.5;
/// Values for each partition from which chance spreads them well enough for a thing that is read.
const FEW_KEYS_PER_PARTITION: u64 = 6;
/// Values for each partition from which a thing needs no second column.
const FEWEST_VALUES_PER_PARTITION: u64 = 4;
/// Values for each partition from which unevenness is not that of a few values.
const SEVERAL_KEYS_PER_PARTITION: u64 = 20;
/// Max/mean up to which a key is even enough if several values share each partition.
const TOLERABLE_OF_SEVERAL: f64 = 2.0;
/// Max/mean up to which a key is even enough if many values share each partition.
const TOLERABLE_OF_MANY: f64 = 2.5;
/// Max/mean up to which an uneven key is better than one with a time in it.
const BEARABLE: f64 = 3.0;
/// Difference in cost below which two keys are as good.
const SAME_COST: f64 = 0.01;
/// Difference of rates, as a share of that of an even key, below which the cheaper of two uneven
/// keys is better.
const SAME_RATE: f64 = 0.05;
/// Cost of a key in which rows have NULL, as a share of the partitions: what loads them must give
/// them a value.
const FILLING_IN: f64 = 0.03;
/// Maximum number of partitions that YDB advises for streams that do not need more.
const MOST_FOR_SMALL_STREAMS: u32 = 128;

/// Insert rate that the table must sustain.
#[derive(Debug, Clone, PartialEq)]
struct Needed {
    /// Rate in bytes per second; `None` if neither the user nor the data give one.
    rate: Option<f64>,
    words: String,
}

/// Ranking over one number of partitions.
struct Ranked {
    partitions: PartitionCount,
    keys: Vec<RankedKey>,
    /// Kind of the best key; `None` if no key can be used.
    best: Option<Class>,
}

impl Needed {
    fn new(evaluation: &Evaluation, options: &AdvisorOptions) -> Self {
        let row_bytes = evaluation.bytes as f64 / evaluation.rows.max(1) as f64;
        let each = ByteRate(options.evaluate.partition_rate);
        if let Some(rate) = options.ingest_rate {
            return Self {
                rate: Some(rate),
                words: format!("{} is to be ingested; a partition takes {each}", ByteRate(rate)),
            };
        }
        let Some(range) = &evaluation.time_range else {
            let words = "the rate of inserts is not known; give it with --ingest-rate".to_owned();
            return Self { rate: None, words };
        };
        let busy = range.busy_rows_per_second * row_bytes;
        let words = format!(
            "rows of the export arrive at {} on average and {} at busy times; a partition takes {each}",
            ByteRate(range.average_rows_per_second * row_bytes),
            ByteRate(busy),
        );
        Self { rate: Some(busy), words }
    }
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
            key.distinct.estimate / u64::from(ranked.partitions.get()) >= FEWEST_KEYS_PER_PARTITION
        })
    };
    // Rows that are too few to judge a larger number do not speak for it.
    let kind = |(ranked, _): &&(Ranked, Vec<StatementReport>)| {
        let too_few = ranked.keys.first().is_some_and(|key| key.verdict == Verdict::FewRows);
        (too_few, ranked.best)
    };
    // In this order: of the numbers that take the rate, the smallest whose best key is of the best
    // kind; the largest with enough keys; the smallest.
    let best = ranked.iter().filter(serves).min_by_key(kind);
    let (chosen, rule) = if let Some(found) = best {
        (Some(found), if has_keys(&found) { Rule::Suffices } else { Rule::FewKeys })
    } else if let Some(found) = ranked.iter().rev().find(has_keys) {
        (Some(found), Rule::TooSlow)
    } else {
        (ranked.first(), Rule::TooSlow)
    };
    let Some((ranked, statements)) = chosen else { return Choice::default() };
    let mut sizing = vec![needed.words.clone(), rule.words(ranked, options)];
    let small = f64::from(MOST_FOR_SMALL_STREAMS) * options.evaluate.partition_rate;
    if ranked.partitions.get() > MOST_FOR_SMALL_STREAMS && needed.rate.is_some_and(|rate| rate <= small) {
        sizing
            .push(format!("YDB advises at most {MOST_FOR_SMALL_STREAMS} partitions for a stream this small"));
    }
    Choice {
        partitions: Some(ranked.partitions),
        ranking: ranked.keys.clone(),
        statements: statements.clone(),
        recommendation: propose(evaluation, ranked, statements, sizing, export, options, knowledge),
    }
}

/// Rule that decided the number of partitions.
enum Rule {
    Suffices,
    FewKeys,
    TooSlow,
}

impl Rule {
    fn words(&self, ranked: &Ranked, options: &AdvisorOptions) -> String {
        let partitions = ranked.partitions;
        let nodes =
            options.nodes.iter().find(|nodes| PartitionCount::for_nodes(**nodes).ok() == Some(partitions));
        let whose = match nodes {
            Some(nodes) if options.nodes_given => {
                format!("{partitions} partitions, 4 for each of {nodes} nodes")
            }
            Some(nodes) => {
                format!("{partitions} partitions (4 for each of {nodes} nodes; say yours with --nodes)")
            }
            None => format!("{partitions} partitions"),
        };
        match self {
            Self::Suffices => {
                format!(
                    "{whose}: the smallest number evaluated that takes that and has 100 or more keys for each"
                )
            }
            Self::FewKeys => {
                format!(
                    "{whose}: the smallest number evaluated that takes that, with fewer than 100 keys for each"
                )
            }
            Self::TooSlow => {
                format!("{whose}: no number evaluated takes that; evaluate larger ones, or other keys")
            }
        }
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
    /// Even enough only because a time, a line number or what may be an amount is in the key.
    SpreadByCount,
    /// Kinds of things rather than things, such as a country and a status.
    Kinds,
    Uneven,
    /// Nothing that identifies anything.
    Makeshift,
}

/// Ranks the candidates. Evenness is a constraint: a key qualifies if its hottest partition stays
/// within what the rate and the headroom allow, in total and over time. Among the keys that
/// qualify, the expected share of the partitions that statements visit decides; among the others,
/// the rate that they sustain.
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
        let counted = evaluation.candidates.iter().find(|other| other.partition_key == key.partition_key);
        counted.is_some_and(|counted| {
            counted.distinct.estimate >= FEWEST_VALUES_PER_PARTITION * u64::from(partitions.get())
        })
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
    let is_wider = |key: &RankedKey| {
        sufficient.iter().any(|other| {
            key.partition_key.len() > 1 && other.iter().all(|column| key.partition_key.contains(column))
        })
    };
    let class = |key: &RankedKey| {
        if workload.is_makeshift(&key.partition_key) {
            Class::Makeshift
        } else if knowledge.is_of_kinds(&key.partition_key) {
            if key.qualifies { Class::Kinds } else { Class::Uneven }
        } else if key.qualifies
            && !knowledge.has_count(&key.partition_key)
            && !knowledge.has_vague(&key.partition_key)
            && !is_wider(key)
        {
            Class::Qualifies
        } else if !key.qualifies && key.rate_if_even <= BEARABLE * key.sustained_rate {
            Class::Bearable
        } else if key.qualifies {
            Class::SpreadByCount
        } else {
            Class::Uneven
        }
    };
    let order = |key: &RankedKey| {
        let class = class(key);
        let is_by_cost = class <= Class::SpreadByCount;
        let cost = if is_by_cost { (key.cost / SAME_COST).round() } else { 0.0 };
        // Of the two ends of a way, the first names the row.
        let places = key.partition_key.iter().filter_map(|column| knowledge.position(column));
        let place = places.min().filter(|_| is_by_cost);
        let even = (key.sustained_rate / key.rate_if_even.max(f64::MIN_POSITIVE) / SAME_RATE).round();
        (key.obstacle.is_some(), class, cost, place, -even, key.cost, -key.sustained_rate)
    };
    keys.sort_by(|a, b| order(a).partial_cmp(&order(b)).unwrap_or(Ordering::Equal));
    let best = keys.first().filter(|key| key.obstacle.is_none()).map(class);
    Ranked { partitions, keys, best }
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
            "there are too few rows to choose a partition key: no column has values enough to fill the partitions; evaluate more rows, or name a key with --partition-key".to_owned(),
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
    let primary_key = choose_primary_key(&evaluation.primary_keys, &partition_key, knowledge, &mut reasons);
    if let Some(reason) =
        of_current_keys(&partition_key, primary_key.as_ref(), &evaluation.primary_keys, options)
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
        makeshift: ranked.best == Some(Class::Makeshift) || knowledge.is_of_kinds(&chosen.partition_key),
        partitions: ranked.partitions.get(),
        reasons,
        alternatives,
        ddl: None,
        language: "sql",
        commands: Vec::new(),
    };
    if primary_key.is_some() || function.of_ydb().is_none() {
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

fn rank(
    key: &PartitionKeyReport,
    rows: u64,
    statements: &[StatementReport],
    partitions: PartitionCount,
    needed: &Needed,
    workload: &Workload<'_>,
) -> Option<RankedKey> {
    let placement = key.over(partitions)?;
    let visits = || {
        let visit = |statement: &StatementReport| {
            Some((statement.runs, statement.under(&key.partition_key)?.clone()))
        };
        statements.iter().filter_map(visit)
    };
    let runs: f64 = visits().map(|(runs, _)| runs).sum();
    let read: f64 = visits().map(|(runs, visit)| runs * visit.partitions_read as f64).sum();
    let mean_partitions_read = (runs > 0.0).then(|| read / runs);
    let obstacle = if !key.candidate.is_plain() {
        Some("it has a derived part; the export has no such column".to_owned())
    } else if !can_be_filled_in(key.null_rows, rows) {
        Some(format!("{} of {rows} rows have NULL in it", key.null_rows))
    } else {
        key.type_obstacle.clone()
    };
    let observed = mean_partitions_read.map(|read| read / partitions.len() as f64);
    let filling_in = if key.null_rows > 0 { FILLING_IN } else { 0.0 };
    Some(RankedKey {
        qualifies: obstacle.is_none() && qualifies(key, placement, needed),
        cost: workload.cost(&key.partition_key, placement.skew.max_over_mean, observed) + filling_in,
        partition_key: key.partition_key.clone(),
        verdict: placement.verdict,
        sustained_rate: placement.capacity.sustained,
        rate_if_even: placement.capacity.if_even,
        mean_partitions_read,
        mean_key_bytes: key.mean_key_bytes,
        null_rows: key.null_rows,
        statements_on_all: visits().filter(|(_, visit)| visit.reach == Reach::All).count(),
        obstacle,
    })
}

/// Whether the hottest partition of a key stays within what the rate and the headroom allow.
fn qualifies(key: &PartitionKeyReport, placement: &PlacementReport, needed: &Needed) -> bool {
    let skew = &placement.skew;
    if needed.rate.is_some_and(|rate| placement.capacity.sustained < rate) {
        return false;
    }
    if matches!(placement.verdict, Verdict::FewRows | Verdict::Even) {
        return true;
    }
    let has_room = needed.rate.is_some_and(|rate| placement.capacity.sustained >= HEADROOM * rate);
    let moves = placement.verdict == Verdict::Moving && !has_room;
    let tolerable = match key.distinct.estimate / skew.partitions.max(1) as u64 {
        FEWEST_KEYS_PER_PARTITION.. => TOLERABLE_OF_MANY,
        SEVERAL_KEYS_PER_PARTITION.. => TOLERABLE_OF_SEVERAL,
        // Chance alone makes it uneven: none of its values is heavy.
        FEW_KEYS_PER_PARTITION.. if placement.verdict == Verdict::FewKeys => TOLERABLE_OF_SEVERAL,
        _ => TOLERABLE,
    };
    !moves && skew.max_over_mean <= tolerable && skew.empty_partitions == 0
}
