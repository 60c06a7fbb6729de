//! Choice of the primary key.

use crate::evaluate::figures::primary_key::PrimaryKeyReport;
use crate::evaluate::figures::uniqueness::UniqueBy;
use crate::evaluate::options::AdvisorOptions;
use crate::evaluate::roles::Role;
use crate::evaluate::verdict::knowledge::Knowledge;
use crate::evaluate::verdict::reasons::{name, unique_words};
use evenkeel_model::table::Candidate;
use evenkeel_model::units::{count, counted};

/// Returns the condition under which a key of an entity and a time is unique by nature.
fn question(key: &Candidate, knowledge: &Knowledge<'_>) -> String {
    let columns = key.part_names();
    let entity = columns.iter().find(|column| knowledge.role(column) == Some(Role::Entity));
    match entity.filter(|_| knowledge.has_time(&columns)) {
        Some(entity) => {
            format!("; if one {entity} never has two rows at one moment, it is a key nevertheless")
        }
        None => String::new(),
    }
}

/// Cost of a primary key; its parts are compared in this order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    lost: u64,
    is_outside: bool,
    is_by_chance: bool,
    null_rows: u64,
    needless: usize,
    amplification: u64,
    depth: u64,
    late_tenths: u64,
    parts: usize,
}

impl Cost {
    /// Computes the cost of a key. `shortest` has the columns of the shortest key that is unique;
    /// it is empty if no key is unique.
    fn new(
        key: &PrimaryKeyReport,
        partition_key: &Candidate,
        shortest: &[String],
        knowledge: &Knowledge<'_>,
    ) -> Self {
        let placed = partition_key.part_names();
        // In addition to a unique key, only the partition key and a time to sort by are useful.
        let is_needless = |column: &&String| {
            !shortest.is_empty()
                && !shortest.contains(column)
                && !placed.contains(column)
                && knowledge.role(column) != Some(Role::Time)
        };
        // If every key loses rows, one that loses a few less is no better key.
        let lost = match shortest {
            [] => u64::from((key.conflicting_rows + 1).ilog2()),
            _ => key.conflicting_rows,
        };
        Self {
            lost,
            is_outside: !key.candidate.contains(partition_key),
            is_by_chance: is_by_chance(key),
            null_rows: key.null_rows,
            needless: key.columns.iter().filter(is_needless).count(),
            amplification: (key.layout.write_amplification * 10.0).round() as u64,
            // If there are too few batches to merge, the depth of their overlap predicts the cost
            // of merging.
            depth: key.layout.depth.average_depth.round() as u64,
            late_tenths: ((1.0 - key.in_order_fraction) * 10.0).round() as u64,
            parts: key.candidate.parts().len(),
        }
    }
}

fn is_by_chance(key: &PrimaryKeyReport) -> bool {
    key.uniqueness.is_some_and(|unique| unique.by == UniqueBy::Chance)
}

/// Chooses the primary key that loses and costs the least, with the partition key in it.
pub(super) fn choose_primary_key(
    keys: &[PrimaryKeyReport],
    partition_key: &Candidate,
    knowledge: &Knowledge<'_>,
    reasons: &mut Vec<String>,
) -> Option<Candidate> {
    let unique = keys.iter().filter(|key| key.unique && key.obstacles.is_empty());
    let shortest = unique.min_by_key(|key| (is_by_chance(key), key.columns.len()));
    let shortest: &[String] = shortest.map_or(&[], |key| key.columns.as_slice());
    let usable = keys.iter().filter(|key| key.obstacles.is_empty() && key.candidate.is_plain());
    let best = usable.min_by_key(|key| Cost::new(key, partition_key, shortest, knowledge))?;
    let key = best.candidate.with(partition_key);
    let uniqueness = uniqueness_in_words(best, &key, knowledge);
    // Lost rows weigh more than how they spread.
    match best.duplicate_rows {
        0 => reasons.push(uniqueness),
        _ => reasons.insert(reasons.len().min(1), uniqueness),
    }
    reasons.push(order_in_words(best));
    if key != best.candidate {
        reasons.push(format!(
            "({key}) adds the partition key, which must be part of the primary key; a longer key keeps unique and in order"
        ));
    }
    Some(key)
}

/// Describes the rows that share the columns of the best key, which is `key` including the
/// partition key.
fn uniqueness_in_words(best: &PrimaryKeyReport, key: &Candidate, knowledge: &Knowledge<'_>) -> String {
    let columns = best.columns.join(", ");
    match (best.duplicate_rows, best.conflicting_rows) {
        (0, _) if best.duplicate_rows_interval.is_some() => {
            format!(
                "({columns}) repeats in no row of the sample; only the whole export can tell whether it is unique"
            )
        }
        (0, _) => {
            let question = if is_by_chance(best) { question(key, knowledge) } else { String::new() };
            format!("({columns}) {}{question}", unique_words(best))
        }
        (repeated, 0) => {
            format!(
                "({columns}) repeats in {} that equal another in every column: an upsert keeps one of them; if they are separate \
                 events, they need an id",
                counted(repeated, "row")
            )
        }
        (_, conflicting) => {
            format!(
                "({columns}) loses the fewest rows of the candidates, {}; see the findings",
                count(conflicting)
            )
        }
    }
}

/// Describes how far rows arrive in the order of the best key, and the cost of merging.
fn order_in_words(best: &PrimaryKeyReport) -> String {
    let merging = match best.layout.known_amplification() {
        Some(writes) => format!("merging writes each row {writes:.1} times"),
        None => format!("{} batches are too few to tell the cost of merging", best.layout.batches),
    };
    format!(
        "{:.1} % of the rows arrive in key order within the partitions of {}, {:.1} batches overlap on average, and {merging}",
        best.in_order_fraction * 100.0,
        name(&best.partitioned_by),
        best.layout.depth.average_depth,
    )
}

/// Compares the recommended keys with those of the existing table; `None` if these are not known.
pub(super) fn judge_current_keys(
    partition_key: &Candidate,
    primary_key: Option<&Candidate>,
    judged: &[PrimaryKeyReport],
    options: &AdvisorOptions,
) -> Option<String> {
    let same_partition_key = options.current_partition_key.as_ref().map(|now| now == partition_key);
    let now = options.current_primary_key.as_ref();
    if now.is_none() || now == primary_key {
        return Some(match (same_partition_key?, now) {
            (true, Some(_)) => "these are the keys that the table has now: keep them".to_owned(),
            (true, None) => "this is the partition key that the table has now: keep it".to_owned(),
            (false, Some(_)) => "this is the primary key that the table has now".to_owned(),
            (false, None) => return None,
        });
    }
    let now = now?;
    let report = judged.iter().find(|key| key.candidate == *now)?;
    let partition_key = match same_partition_key {
        Some(true) => "the table has this partition key now, so keep it; ",
        Some(false) | None => "",
    };
    let key = now.columns().join(", ");
    let judgement = match report.duplicate_rows {
        0 => format!(
            "{}, so changing it is worth a rewrite only if merging is too costly",
            unique_words(report)
        ),
        repeated => format!("repeats in {}", counted(repeated, "row")),
    };
    Some(format!("{partition_key}its primary key now, ({key}), {judgement}"))
}

/// Share of rows with the key of another row and other values above which a table has no key.
const MOST_ROWS: f64 = 0.5;

/// Whether an upsert would lose most rows, whatever the primary key.
pub(super) fn loses_most_rows(judged: &[PrimaryKeyReport], rows: u64) -> bool {
    let fewest = judged.iter().map(|key| key.conflicting_rows).min();
    fewest.is_some_and(|fewest| fewest as f64 > MOST_ROWS * rows as f64)
}

/// Whether a key contains one that no two rows share.
pub(super) fn has_unique_part(judged: &[PrimaryKeyReport], key: &[String]) -> bool {
    let within = |part: &PrimaryKeyReport| part.columns.iter().all(|column| key.contains(column));
    judged.iter().any(|part| part.unique && !part.columns.is_empty() && within(part))
}
