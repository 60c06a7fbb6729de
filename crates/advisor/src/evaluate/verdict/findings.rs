//! Findings: problems to look out for.

use crate::evaluate::candidates::workload::{FanOut, Reach, StatementReport};
use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::over_time::Pattern;
use crate::evaluate::figures::partition_key::{PartitionKeyReport, PlacementReport};
use crate::evaluate::figures::primary_key::{DuplicateExample, PrimaryKeyReport};
use crate::evaluate::figures::recommendation::{RankedKey, Recommendation};
use crate::evaluate::figures::uniqueness::{UniqueBy, Uniqueness};
use crate::evaluate::verdict::FEWEST_KEYS_PER_PARTITION;
use crate::evaluate::verdict::ranking::unique_words;
use evenkeel_model::finding::{Finding, FindingCode, Severity};
use evenkeel_model::units::Micros;
use evenkeel_model::units::{ByteRate, PartitionCount};
use evenkeel_placement::placement::systems::system;
use evenkeel_stats::skew::Verdict;

/// Rank correlation from which MongoDB `analyzeShardKey` calls a key monotonic.
const MONOTONIC: f64 = 0.7;
/// Minimum fraction of the rows in key order for a primary key to count as appended to.
const APPENDS: f64 = 0.9;
/// Write amplification above which merging is a cost.
const AMPLIFICATION: f64 = 2.0;
/// Max/mean above which an uneven key is a problem: the fullest partition has half as much again as
/// its share.
const PROBLEM_MAX_OVER_MEAN: f64 = 1.5;
/// Max/mean up to which a key is even, whatever the reason.
const EVEN_MAX_OVER_MEAN: f64 = 1.15;
/// Expected repeats from which finding none is evidence of an identifier.
const MOST_BY_CHANCE: f64 = 5.0;
/// Rows per partition below which a key is not judged; some keys need more.
const FEWEST_ROWS_PER_PARTITION: f64 = 10.0;
/// Sample size below which a sample says little.
const FEWEST_SAMPLED: u64 = 10_000;
/// Fraction of rows out of time order from which they are reported.
const UNORDERED: f64 = 0.01;

/// Returns the findings, the most severe first.
///
/// `wants_primary_key` says whether a primary key was searched for or named.
pub(crate) fn find_findings(
    evaluation: &Evaluation,
    statements: &[StatementReport],
    ranking: &[RankedKey],
    recommendation: &Recommendation,
    wants_primary_key: bool,
    sorted_by: Option<&str>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let partitions = PartitionCount::new(u64::from(recommendation.partitions)).ok();
    no_key(evaluation, recommendation, wants_primary_key, &mut findings);
    findings.extend(partitions.and_then(|partitions| few_rows(evaluation, partitions)));
    for key in &evaluation.candidates {
        if let Some(placement) = partitions.and_then(|count| key.over(count)) {
            balance(key, placement, &mut findings);
        }
        values(key, evaluation.rows, &mut findings);
        defects(key, &mut findings);
    }
    dealing(evaluation, &mut findings);
    for key in &evaluation.primary_keys {
        rows_lost(key, &mut findings);
        unique_by_chance(key, recommendation, &mut findings);
        append(key, &mut findings);
    }
    if let Some(placement) = chosen_placement(evaluation, recommendation) {
        peak(placement, evaluation, recommendation, &mut findings);
    }
    reach(statements, evaluation, ranking, &mut findings);
    time(evaluation, sorted_by, &mut findings);
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// Adds a finding for each wanted kind of key that has no usable candidate.
fn no_key(
    evaluation: &Evaluation,
    recommendation: &Recommendation,
    wants_primary_key: bool,
    findings: &mut Vec<Finding>,
) {
    let mut add = |code, what: &str, tried: usize, advice: &str| {
        findings.push(Finding {
            code,
            severity: Severity::Problem,
            subject: "the export".to_owned(),
            message: match tried {
                0 => format!("no column can be in a {what}"),
                _ => format!("none of {tried} candidates can be a {what}"),
            },
            measured: 0.0,
            threshold: 1.0,
            advice: advice.to_owned(),
        });
    };
    if recommendation.partition_key.is_empty() {
        let advice = "Key columns have no NULL and a type that keys take. Name candidates with --partition-key, or export an id.";
        add(FindingCode::NoUsablePartitionKey, "partition key", evaluation.candidates.len(), advice);
    }
    let usable =
        evaluation.primary_keys.iter().any(|key| key.obstacles.is_empty() && key.candidate.is_plain());
    if wants_primary_key && !usable {
        let advice = "Key columns have no NULL and a type that keys take. Name candidates with --primary-key, or export an id.";
        add(FindingCode::NoUsablePrimaryKey, "primary key", evaluation.primary_keys.len(), advice);
    }
}

/// Reports too few rows to judge partition keys: all keys, or only those with about as many values
/// as rows.
fn few_rows(evaluation: &Evaluation, partitions: PartitionCount) -> Option<Finding> {
    let placements = evaluation.candidates.iter().filter_map(|key| key.over(partitions));
    let withheld = placements.clone().filter(|placement| placement.verdict == Verdict::FewRows).count();
    let all = placements.count();
    let each = evaluation.rows as f64 / partitions.len() as f64;
    (withheld > 0).then(|| Finding {
        code: FindingCode::FewRows,
        severity: if withheld == all { Severity::Problem } else { Severity::Warning },
        subject: "the export".to_owned(),
        message: format!(
            "{} rows are too few to judge {withheld} of {all} partition keys over {partitions} partitions: {each:.1} rows for each",
            evaluation.rows
        ),
        measured: each,
        threshold: FEWEST_ROWS_PER_PARTITION,
        advice: "Evaluate more rows, or fewer partitions. Nothing is said of the balance of these keys until then.".to_owned(),
    })
}

/// Returns the recommended placement.
fn chosen_placement<'a>(
    evaluation: &'a Evaluation,
    recommendation: &Recommendation,
) -> Option<&'a PlacementReport> {
    let mut keys = evaluation.candidates.iter();
    let key = keys.find(|key| key.partition_key == recommendation.partition_key)?;
    key.over(PartitionCount::new(u64::from(recommendation.partitions)).ok()?)
}

/// Compares the load of the busiest partition with the capacity of a partition.
fn peak(
    placement: &PlacementReport,
    evaluation: &Evaluation,
    recommendation: &Recommendation,
    findings: &mut Vec<Finding>,
) {
    let Some(time) = &placement.over_time else { return };
    let read =
        evaluation.sample.map_or(1.0, |sample| sample.rows_read as f64 / evaluation.rows.max(1) as f64);
    let row_bytes = evaluation.bytes as f64 / evaluation.rows.max(1) as f64;
    let rate = time.peak.rows_per_second_of_fullest * row_bytes * read;
    let capacity = placement.capacity.per_partition;
    if rate > capacity {
        findings.push(Finding {
            code: FindingCode::PeakRate,
            severity: Severity::Warning,
            subject: format!("HASH({})", recommendation.partition_key.join(", ")),
            message: format!(
                "in the busiest window of {} one partition would have to take {}, where it takes {}",
                time.window_micros,
                ByteRate(rate),
                ByteRate(capacity)
            ),
            measured: rate,
            threshold: capacity,
            advice: "Take more partitions, or buffer the peak.".to_owned(),
        });
    }
}

/// Adds a finding if the weights do not divide the partitions.
fn dealing(evaluation: &Evaluation, findings: &mut Vec<Finding>) {
    let mut seen = Vec::new();
    for placement in evaluation.candidates.iter().flat_map(|key| &key.placements) {
        let Some(nodes) = placement.nodes.as_ref() else { continue };
        let partitions = placement.skew.partitions;
        let sum: f64 = nodes.weights.iter().sum();
        let off = nodes.weights.iter().zip(&nodes.partitions).map(|(weight, dealt)| {
            let due = partitions as f64 * weight / sum;
            (*dealt as f64 / due - 1.0).abs()
        });
        let off = off.fold(0.0, f64::max);
        if off < 1e-9 || seen.contains(&partitions) {
            continue;
        }
        seen.push(partitions);
        findings.push(Finding {
            code: FindingCode::WeightsDoNotDivide,
            severity: Severity::Warning,
            subject: format!("{partitions} partitions"),
            message: format!("a node has {} more or fewer of them than its weight stands for", percent(off)),
            measured: off,
            threshold: 0.0,
            advice: "Take a number of partitions that the sum of the weights divides.".to_owned(),
        });
    }
}

fn of_ydb(placement: &PlacementReport) -> bool {
    system(&placement.function).is_none()
}

/// Adds a finding for each function of another system that leaves partitions empty that chance
/// would fill.
fn defects(key: &PartitionKeyReport, findings: &mut Vec<Finding>) {
    let of_systems = key.placements.iter().filter(|placement| system(&placement.function).is_some());
    for placement in of_systems.filter(|placement| placement.leaves_empty()) {
        let (empty, partitions) = (placement.skew.empty_partitions, placement.skew.partitions);
        findings.push(Finding {
            code: FindingCode::HashDefect,
            severity: Severity::Problem,
            subject: format!("{} by {} over {partitions}", hash(key), placement.function),
            message: format!(
                "{empty} of {partitions} partitions have no key, where chance leaves {:.0} empty",
                placement.empty_by_chance
            ),
            measured: empty as f64,
            threshold: placement.empty_by_chance,
            advice: match key.candidate.is_plain() {
                true => format!(
                    "'evenkeel lint FILE --key {} --placement {} --partitions {partitions}', with the same --type, finds a number of partitions or a type \
                     that does not.",
                    key.partition_key.join(","),
                    placement.function
                ),
                false => "Take another number of partitions, or another key.".to_owned(),
            },
        });
    }
}

fn hash(key: &PartitionKeyReport) -> String {
    format!("HASH({})", key.partition_key.join(", "))
}

fn percent(fraction: f64) -> String {
    format!("{:.1} %", fraction * 100.0)
}

/// Adds the problems of how a key spreads rows. They follow the verdict: an even key has notes at
/// most, and any other key has a reason.
fn balance(key: &PartitionKeyReport, placement: &PlacementReport, findings: &mut Vec<Finding>) {
    // Too few rows are reported once, for all keys.
    if matches!(placement.verdict, Verdict::Empty | Verdict::FewRows) {
        return;
    }
    let before = findings.len();
    hotspot(key, placement, findings);
    few_keys(key, placement, findings);
    heavy_key(key, placement, findings);
    beyond_chance(key, placement, findings);
    let explained = findings.iter().skip(before).any(|finding| finding.severity != Severity::Note)
        || is_defect_of_system(placement);
    if placement.verdict != Verdict::Even && !explained {
        findings.push(uneven(key, placement));
    }
}

/// Severity of an uneven key, by how far it is off.
fn severity(placement: &PlacementReport) -> Severity {
    if placement.skew.max_over_mean > PROBLEM_MAX_OVER_MEAN { Severity::Problem } else { Severity::Warning }
}

fn hotspot(key: &PartitionKeyReport, placement: &PlacementReport, findings: &mut Vec<Finding>) {
    let Some(time) = &placement.over_time else { return };
    let (code, how, advice) = match time.pattern {
        Pattern::Even => return,
        Pattern::Sequential => (
            FindingCode::MovingHotspot,
            ", others each time",
            "The key follows time. Hash a column with many values at any moment instead, or add one to the key.",
        ),
        Pattern::Periodic => (
            FindingCode::PeriodicHotspot,
            ", and they return",
            "The key follows the clock. Hash a column with many values at any moment instead, or add one to the key.",
        ),
        Pattern::Concentrated => (
            FindingCode::ConstantHotspot,
            ", always the same",
            "A few values take most rows. Add a column to the key that splits them.",
        ),
    };
    let partitions = placement.skew.partitions;
    findings.push(Finding {
        code,
        severity: Severity::Problem,
        subject: hash(key),
        message: format!(
            "at a time ({}) {:.1} of {partitions} partitions are at work, and the fullest takes {} of the rows{how}",
            time.examined_words(),
            time.lasting_effective_partitions.median,
            percent(time.lasting_share_of_fullest.median),
        ),
        measured: time.lasting_effective_partitions.median,
        threshold: 1.0 + (partitions as f64 - 1.0) / 2.0,
        advice: advice.to_owned(),
    });
}

fn few_keys(key: &PartitionKeyReport, placement: &PlacementReport, findings: &mut Vec<Finding>) {
    let per_partition = placement.noise_floor.keys_per_partition;
    // If each row brings a new key, there are as few keys as rows.
    let follow_rows = placement.noise_floor.keys_follow_rows(placement.skew.rows);
    if per_partition >= FEWEST_KEYS_PER_PARTITION as f64 || follow_rows {
        return;
    }
    findings.push(Finding {
        code: FindingCode::FewDistinctKeys,
        severity: match placement.verdict {
            Verdict::Even => Severity::Note,
            _ if per_partition < 1.0 => Severity::Problem,
            _ => Severity::Warning,
        },
        subject: hash(key),
        message: format!(
            "{} distinct values for {} partitions, {per_partition:.1} for each",
            key.distinct.estimate, placement.skew.partitions
        ),
        measured: per_partition,
        threshold: FEWEST_KEYS_PER_PARTITION as f64,
        advice: match of_ydb(placement) {
            true => {
                "YDB advises 100 to 1000 distinct values for each partition. Add a column to the key, or take fewer partitions."
            }
            false => "So few values fill partitions unevenly by chance alone. Add a column to the key, or take fewer partitions.",
        }
        .to_owned(),
    });
}

fn heavy_key(key: &PartitionKeyReport, placement: &PlacementReport, findings: &mut Vec<Finding>) {
    let due = 1.0 / placement.skew.partitions as f64;
    let heaviest = placement.noise_floor.heaviest_key_share;
    if heaviest <= due || key.distinct.estimate < 2 {
        return;
    }
    findings.push(Finding {
        code: FindingCode::HeavyKey,
        severity: match placement.verdict {
            Verdict::Even => Severity::Note,
            _ if heaviest > 2.0 * due => Severity::Problem,
            _ => Severity::Warning,
        },
        subject: hash(key),
        message: format!(
            "one value has {} of the rows; its partition gets {}, where {} would be its share",
            percent(heaviest),
            percent(placement.share_of_heaviest_partition),
            percent(due)
        ),
        measured: heaviest,
        threshold: due,
        advice: "No number of partitions splits one value. Add a column to the key that does.".to_owned(),
    });
}

/// Whether [`defects`] reports the placement.
fn is_defect_of_system(placement: &PlacementReport) -> bool {
    !of_ydb(placement) && placement.leaves_empty()
}

fn beyond_chance(key: &PartitionKeyReport, placement: &PlacementReport, findings: &mut Vec<Finding>) {
    let leaves_empty = placement.leaves_empty();
    let is_even = placement.verdict == Verdict::Even;
    if is_even || is_defect_of_system(placement) || (placement.causes.hash_function <= 0.0 && !leaves_empty) {
        return;
    }
    let even_ranges = placement.has_even_ranges();
    findings.push(Finding {
        code: if even_ranges { FindingCode::HashDefect } else { FindingCode::UnevenRanges },
        severity: match (even_ranges, severity(placement)) {
            (true, _) => Severity::Problem,
            (false, Severity::Problem) => Severity::Warning,
            (false, _) => Severity::Note,
        },
        subject: hash(key),
        message: match leaves_empty {
            true => format!(
                "{} of {} partitions have no key, where chance leaves {:.0} empty",
                placement.skew.empty_partitions, placement.skew.partitions, placement.empty_by_chance
            ),
            false => format!(
                "the CV is {}, where these keys let expect {}",
                percent(placement.skew.cv),
                percent(placement.noise_floor.expected_cv_weighted)
            ),
        },
        measured: placement.skew.cv,
        threshold: placement.noise_floor.expected_cv_weighted,
        advice: if !even_ranges {
            "Its ranges are unequal, whatever the keys: take more tokens for each node, or let the system choose them."
        } else if placement.has_active_partitions() {
            "This function has few active partitions at a time, and spreads over all of them only as time goes on."
        } else {
            "The hash function itself sends these keys to few partitions. Decimal columns add nothing to the hash of YDB, and \
             text columns are joined without a separator; take another column or another number of partitions."
        }
        .to_owned(),
    });
}

/// Returns the finding for an uneven key that nothing else explains.
fn uneven(key: &PartitionKeyReport, placement: &PlacementReport) -> Finding {
    Finding {
        code: FindingCode::UnevenPartitions,
        severity: severity(placement),
        subject: hash(key),
        message: format!(
            "the fullest partition has {:.2} times its share: {}",
            placement.skew.max_over_mean, placement.causes.words
        ),
        measured: placement.skew.max_over_mean,
        threshold: EVEN_MAX_OVER_MEAN,
        advice: match placement.verdict {
            Verdict::HeavyKeys => "Keys differ in rows. Add a column to the key that splits the heavy ones, or take fewer partitions.",
            Verdict::FewKeys => "So many partitions need more keys. Add a column to the key, or take fewer partitions.",
            _ => "Take another column, or another number of partitions.",
        }
        .to_owned(),
    }
}

fn values(key: &PartitionKeyReport, rows: u64, findings: &mut Vec<Finding>) {
    if !key.candidate.is_plain() {
        findings.push(Finding {
            code: FindingCode::DerivedKey,
            severity: Severity::Note,
            subject: hash(key),
            message: "a part of it is derived, and YDB hashes columns as they are".to_owned(),
            measured: 1.0,
            threshold: 0.0,
            advice: "To have it, store the derived value as a column of its own, and name that column in statements.".to_owned(),
        });
    }
    if key.null_rows > 0 {
        findings.push(Finding {
            code: FindingCode::NullKeys,
            severity: Severity::Problem,
            subject: hash(key),
            message: format!("{} of {rows} rows have NULL in the key", key.null_rows),
            measured: key.null_rows as f64,
            threshold: 0.0,
            advice: match key.placements.first().is_none_or(of_ydb) {
                true => "Key columns are NOT NULL: fill the values in, or leave the column out of the key.",
                false => "Many systems take no NULL in such a key: fill the values in, or leave the column out of it.",
            }
            .to_owned(),
        });
    }
    if let Some(obstacle) = &key.type_obstacle {
        findings.push(Finding {
            code: FindingCode::KeyType,
            severity: Severity::Problem,
            subject: hash(key),
            message: obstacle.clone(),
            measured: 1.0,
            threshold: 0.0,
            advice: "Take another column, or store it as a type that YDB takes in keys.".to_owned(),
        });
    }
}

/// Names two rows that share a key, by their places.
fn collision(key: &PrimaryKeyReport) -> String {
    let example = key.examples.iter().find(|example| !example.differs_in.is_empty());
    example.map_or(String::new(), |example| {
        let DuplicateExample { first, second, differs_in, .. } = example;
        let listed = differs_in.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
        let more = if differs_in.len() > 4 { " and others" } else { "" };
        format!("; {first} and {second} differ in {listed}{more}")
    })
}

fn rows_lost(key: &PrimaryKeyReport, findings: &mut Vec<Finding>) {
    let subject = format!("PRIMARY KEY ({})", key.columns.join(", "));
    if key.conflicting_rows > 0 {
        findings.push(Finding {
            code: FindingCode::ConflictingRows,
            severity: Severity::Problem,
            subject: subject.clone(),
            message: format!(
                "{} rows have the key of an earlier row and other values: an upsert would lose what they replace{}",
                key.conflicting_rows,
                collision(key)
            ),
            measured: key.conflicting_rows as f64,
            threshold: 0.0,
            advice: "If they are versions of one row, keep the newest: that is what an upsert does. If they are rows of \
                     their own, add what tells them apart: an id of the event, a sequence number of its source, or a finer time."
                .to_owned(),
        });
    }
    if key.identical_rows > 0 {
        findings.push(Finding {
            code: FindingCode::IdenticalRows,
            severity: Severity::Note,
            subject: subject.clone(),
            message: format!(
                "{} rows are copies of an earlier row: an upsert keeps one of each",
                key.identical_rows
            ),
            measured: key.identical_rows as f64,
            threshold: 0.0,
            advice: "Where they are deliveries of one event, load with upsert, which drops copies; where each is an event of its own, give them an id.".to_owned(),
        });
    }
    for obstacle in &key.obstacles {
        findings.push(Finding {
            code: FindingCode::PrimaryKeyImpossible,
            severity: Severity::Problem,
            subject: subject.clone(),
            message: obstacle.clone(),
            measured: 1.0,
            threshold: 0.0,
            advice: "Leave the column out, or make it fit.".to_owned(),
        });
    }
}

/// Adds a finding for a key that no row repeats but that more rows may repeat.
fn unique_by_chance(key: &PrimaryKeyReport, recommendation: &Recommendation, findings: &mut Vec<Finding>) {
    let Some(Uniqueness { by: UniqueBy::Chance, repeats_by_chance }) = key.uniqueness else { return };
    let is_chosen = key.columns.iter().all(|column| recommendation.primary_key.contains(column));
    findings.push(Finding {
        code: FindingCode::UniqueByChance,
        severity: if is_chosen { Severity::Warning } else { Severity::Note },
        subject: format!("PRIMARY KEY ({})", key.columns.join(", ")),
        message: unique_words(key),
        measured: repeats_by_chance,
        threshold: MOST_BY_CHANCE,
        advice: "Add a column that identifies a row, such as an id of the event, or evaluate more rows."
            .to_owned(),
    });
}

fn append(key: &PrimaryKeyReport, findings: &mut Vec<Finding>) {
    let subject = format!("PRIMARY KEY ({})", key.columns.join(", "));
    let amplification = key.layout.write_amplification;
    if amplification > AMPLIFICATION {
        findings.push(Finding {
            code: FindingCode::Rewrites,
            severity: Severity::Warning,
            subject: subject.clone(),
            message: format!(
                "only {} of the rows come in key order; batches of {} rows overlap {:.1} deep, and merging them writes each row \
                 {amplification:.1} times",
                percent(key.in_order_fraction),
                key.layout.batch_rows,
                key.layout.depth.average_depth,
            ),
            measured: amplification,
            threshold: AMPLIFICATION,
            advice: "Begin the primary key with what rows arrive in the order of, such as the time.".to_owned(),
        });
    }
    if let Some(correlation) = key.rank_correlation {
        let (says, is) = (correlation >= MONOTONIC, key.in_order_fraction >= APPENDS);
        if says != is {
            findings.push(Finding {
                code: FindingCode::RankCorrelationMisleads,
                severity: Severity::Note,
                subject,
                message: format!(
                    "the rank correlation of {correlation:.2} says {}, while {} of the rows come in key order",
                    if says { "monotonic" } else { "not monotonic" },
                    percent(key.in_order_fraction),
                ),
                measured: correlation,
                threshold: MONOTONIC,
                advice: "Trust the order and the overlap: the correlation does not see order within short stretches, nor runs \
                         that start over."
                    .to_owned(),
            });
        }
    }
}

/// Adds findings for statements that a key makes worse than another candidate does.
fn reach(
    statements: &[StatementReport],
    evaluation: &Evaluation,
    ranking: &[RankedKey],
    findings: &mut Vec<Finding>,
) {
    // Answering from one partition does not speak for an overloaded key.
    let serves = |key: &[String]| {
        ranking.iter().any(|ranked| {
            ranked.partition_key == key && ranked.obstacle.is_none() && ranked.verdict == Verdict::Even
        })
    };
    // For a key that spreads badly, fan-out is no argument either way.
    for key in evaluation.candidates.iter().filter(|key| serves(&key.partition_key)) {
        let worse = statements.iter().filter_map(|statement| {
            let own = statement.under(&key.partition_key)?;
            let better = statement
                .fan_out
                .iter()
                .filter(|other| other.reach == Reach::One && serves(&other.partition_key));
            let best = better.min_by_key(|other| other.partition_key.len())?;
            (own.reach == Reach::All && own.partitions > 1).then_some((statement.statement.as_str(), best))
        });
        let worse: Vec<(&str, &FanOut)> = worse.collect();
        if worse.is_empty() {
            continue;
        }
        let words = worse.iter().map(|(statement, best)| {
            format!("{statement} (HASH({}) answers it from one)", best.partition_key.join(", "))
        });
        findings.push(Finding {
            code: FindingCode::FanOut,
            severity: Severity::Warning,
            subject: hash(key),
            message: format!("all partitions are visited by {}", words.collect::<Vec<_>>().join(", ")),
            measured: worse.len() as f64,
            threshold: 0.0,
            advice: "Statements visit one partition when they fix every column of the partition key. Weigh that against how evenly \
                     the shorter key spreads."
                .to_owned(),
        });
    }
    let planned = statements.iter().filter(|statement| statement.problem.is_none()).count();
    if planned == 0 && !statements.is_empty() {
        findings.push(Finding {
            code: FindingCode::NoStatementPlanned,
            severity: Severity::Warning,
            subject: "--queries".to_owned(),
            message: format!(
                "none of the {} statements can be planned, so none of them counts",
                statements.len()
            ),
            measured: 0.0,
            threshold: 1.0,
            advice: "Write them for the columns of this export.".to_owned(),
        });
    }
    for statement in statements {
        if let Some(problem) = &statement.problem {
            findings.push(Finding {
                code: FindingCode::StatementNotPlanned,
                severity: Severity::Note,
                subject: statement.statement.clone(),
                message: problem.clone(),
                measured: 1.0,
                threshold: 0.0,
                advice: "Its fan-out is not known; write it for the columns of this export.".to_owned(),
            });
        }
    }
}

fn time(evaluation: &Evaluation, sorted_by: Option<&str>, findings: &mut Vec<Finding>) {
    if let Some(sample) = evaluation.sample.filter(|sample| sample.rows_sampled < FEWEST_SAMPLED) {
        findings.push(Finding {
            code: FindingCode::SmallSample,
            severity: Severity::Problem,
            subject: "--sample".to_owned(),
            message: format!("the sample has {} of {} rows", sample.rows_sampled, sample.rows_read),
            measured: sample.rows_sampled as f64,
            threshold: FEWEST_SAMPLED as f64,
            advice: "Read a greater share: so few rows say little about keys.".to_owned(),
        });
    }
    let mut add = |code, message, measured, threshold, advice: &str| {
        findings.push(Finding {
            code,
            severity: Severity::Note,
            subject: evaluation.time.clone().unwrap_or_else(|| "time".to_owned()),
            message,
            measured,
            threshold,
            advice: advice.to_owned(),
        });
    };
    let Some(range) = &evaluation.time_range else {
        add(
            FindingCode::NoTime,
            "there is no time column: hotspots over time cannot be seen".to_owned(),
            0.0,
            1.0,
            "Name the column with --time; where there are several points in time, none is taken by itself.",
        );
        return;
    };
    if range.null_rows > 0 {
        add(
            FindingCode::TimeMissing,
            format!("{} of {} rows have no time and are in no window", range.null_rows, evaluation.rows),
            range.null_rows as f64,
            0.0,
            "Figures over time are those of the other rows.",
        );
    }
    let window = evaluation.candidates.iter().find_map(|key| Some(key.over_time.as_ref()?.window_micros));
    let window = window.unwrap_or(Micros::HOUR);
    let unordered = range.rows_late_for(window) as f64 / evaluation.rows.max(1) as f64;
    if unordered > UNORDERED {
        add(
            FindingCode::TimeUnordered,
            format!(
                "{} of the rows come after rows of a later window ({window}){}",
                percent(unordered),
                sorted_by.map_or(String::new(), |column| format!("; the export is sorted by {column}"))
            ),
            unordered,
            UNORDERED,
            "Windows follow the time in the rows; rows that arrive in another order load partitions in another order too.",
        );
    }
    let judged = evaluation.candidates.iter().any(|key| key.over_time.is_some());
    if !judged && !evaluation.candidates.is_empty() {
        add(
            FindingCode::WindowsTooSmall,
            "no window of time has 2 rows for each partition, so patterns over time are not judged"
                .to_owned(),
            0.0,
            2.0,
            "Evaluate more rows, fewer partitions, or a longer --window.",
        );
    }
}
