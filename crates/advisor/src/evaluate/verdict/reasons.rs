//! Reasons for the recommended keys, in words.

use crate::evaluate::candidates::workload::{Reach, StatementReport, listed};
use crate::evaluate::figures::primary_key::PrimaryKeyReport;
use crate::evaluate::figures::recommendation::RankedKey;
use crate::evaluate::figures::uniqueness::{UniqueBy, Uniqueness};
use crate::evaluate::roles::{Role, RoleReport};
use crate::evaluate::verdict::knowledge::Knowledge;
use evenkeel_model::units::{ByteRate, PartitionCount, count, counted};
use evenkeel_stats::skew::Verdict;

pub(super) fn name(key: &[String]) -> String {
    format!("HASH({})", key.join(", "))
}

/// Explains the meaning of a key's columns, and its consequences for reads.
fn locality(chosen: &RankedKey, others: &[RankedKey], knowledge: &Knowledge<'_>) -> Option<String> {
    let roles: Vec<&RoleReport> =
        chosen.partition_key.iter().filter_map(|column| knowledge.report(column)).collect();
    match roles.as_slice() {
        [only] if only.role == Role::RowId => {
            let is_entity = |key: &&RankedKey| {
                let roles = key.partition_key.iter().map(|column| knowledge.role(column));
                key.qualifies
                    && roles.clone().count() == 1
                    && roles.flatten().all(|role| role == Role::Entity)
            };
            let alone = match others.iter().find(is_entity) {
                Some(_) => "",
                None => ", and no other column is both looked up and even enough",
            };
            Some(format!("{} identifies the row{alone}; reads of one row visit one partition", only.column))
        }
        [only] if only.role == Role::Entity => {
            let evidence = only.evidence.first().map(|evidence| format!(" ({evidence})")).unwrap_or_default();
            let role = only.role.words();
            let article = if role.starts_with('e') { "an" } else { "a" };
            Some(format!(
                "{} is {article} {role}{evidence}: reads, groups and joins by one value stay in one partition",
                only.column
            ))
        }
        [only] => Some(format!(
            "no good key was found: {} is a {}, and no column identifies anything; add such a column to the export",
            only.column,
            only.role.words()
        )),
        [_, _, ..] if identifies_nothing(&chosen.partition_key, knowledge) => {
            let columns: Vec<String> =
                roles.iter().map(|report| format!("{} ({})", report.column, report.role.words())).collect();
            Some(format!(
                "no good key was found: {}; no column identifies anything that reads would name; add such a column to the export",
                columns.join(", ")
            ))
        }
        [_, _, ..] if knowledge.has_count(&chosen.partition_key) => {
            let (counts, things): (Vec<&RoleReport>, Vec<&RoleReport>) =
                roles.iter().partition(|report| matches!(report.role, Role::Time | Role::LineNumber));
            let names = |reports: &[&RoleReport]| {
                reports.iter().map(|report| report.column.as_str()).collect::<Vec<_>>().join(" and ")
            };
            Some(format!(
                "a compromise: {things} alone cannot fill the partitions evenly, and {counts} spreads its rows, so that \
                 reads of one {things} visit all partitions",
                things = names(&things),
                counts = names(&counts),
            ))
        }
        [_, _, ..] => {
            let columns: Vec<&str> = roles.iter().map(|report| report.column.as_str()).collect();
            Some(format!("a read must name {} to visit one partition", columns.join(" and ")))
        }
        [] => None,
    }
}

/// Whether no column of a key identifies anything, alone or with the others.
pub(super) fn identifies_nothing(key: &[String], knowledge: &Knowledge<'_>) -> bool {
    let places_nothing = |role: Role| !role.can_place_rows() || role == Role::Dimension;
    let roles: Vec<Role> = key.iter().filter_map(|column| knowledge.role(column)).collect();
    !roles.is_empty()
        && (roles.len() == 1 || !knowledge.is_thing(key))
        && roles.into_iter().all(places_nothing)
}

/// Explains that most rows share all columns that might identify them.
pub(super) fn no_identity(key: &[String]) -> String {
    format!(
        "no good key was found: most rows equal others in {} and in every other column that might identify them; add \
         the id of the row, or of what it is about, to the export",
        key.join(" and ")
    )
}

/// Explains that a key has too few values for the partitions.
pub(super) fn few_values(key: &[String], values: u64, partitions: PartitionCount) -> String {
    format!(
        "no good key was found: {} has {} for {} partitions, so that some of them stay empty or nearly so; create \
         fewer, or add a column that identifies more things to the export",
        name(key),
        counted(values, "value"),
        partitions.get(),
    )
}

pub(super) fn reasons_for(
    chosen: &RankedKey,
    others: &[RankedKey],
    statements: &[StatementReport],
    knowledge: &Knowledge<'_>,
) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut locality = locality(chosen, others, knowledge);
    let is_makeshift = identifies_nothing(&chosen.partition_key, knowledge);
    if is_makeshift {
        reasons.extend(locality.take());
    }
    if chosen.verdict == Verdict::FewRows {
        reasons
            .push("there are too few rows to tell how evenly they spread; evaluate more of them".to_owned());
    } else if !chosen.qualifies && !is_makeshift && others.iter().any(|other| other.qualifies) {
        reasons.push(format!(
            "it is not even ({}): inserts reach {:.0} % of the rate of an even key; that is the cost of \
             keeping related rows in one partition",
            chosen.verdict.word(),
            100.0 * chosen.sustained_rate / chosen.rate_if_even,
        ));
    } else if !chosen.qualifies {
        reasons.push(format!(
            "no candidate spreads rows evenly; this is the best of them, but not a good one: {}",
            chosen.verdict.word()
        ));
    }
    let joined = knowledge.joined.iter().filter(|join| chosen.partition_key == [join.column.as_str()]);
    let joined: Vec<&str> = joined.map(|join| join.with.as_str()).collect();
    if let (false, [column]) = (joined.is_empty(), chosen.partition_key.as_slice()) {
        reasons.push(format!(
            "{column} joins {}: with both partitioned by it, joined rows are in one partition",
            joined.join(" and ")
        ));
    }
    // The reason given for row ids is that rows are looked up by nothing else, which joins
    // disprove.
    let is_row = |column: &String| knowledge.role(column) == Some(Role::RowId);
    if joined.is_empty() || !chosen.partition_key.iter().any(is_row) {
        reasons.extend(locality);
    }
    reasons.push(format!(
        "{} sustains {} of inserts, of {} if all partitions were equally busy",
        name(&chosen.partition_key),
        ByteRate(chosen.sustained_rate),
        ByteRate(chosen.rate_if_even),
    ));
    let on_one = statements.iter().filter(|statement| {
        statement.under(&chosen.partition_key).is_some_and(|visit| visit.reach == Reach::One)
    });
    let on_one: Vec<String> = on_one.map(|statement| statement.statement.clone()).collect();
    if !on_one.is_empty() {
        reasons.push(format!("one partition answers {}", listed(&on_one)));
    }
    reasons
}

/// Repeats by chance below which their absence says nothing.
const MIN_REPEATS: f64 = 1.0;

/// Explains the significance of a key that no row repeats.
pub(crate) fn unique_words(key: &PrimaryKeyReport) -> String {
    let rows = counted(key.distinct_keys, "row");
    match key.uniqueness {
        Some(Uniqueness { by: UniqueBy::Chance, repeats_by_chance }) => {
            let expected = match repeats_by_chance {
                few if few < 0.5 => "with values combined at random none would repeat".to_owned(),
                some => format!("with values combined at random only about {some:.0} would repeat"),
            };
            format!(
                "is unique in these {rows} by chance, not by nature: {expected}. More rows may repeat a key, and an upsert would \
                 then lose a row"
            )
        }
        Some(Uniqueness { by: UniqueBy::Nature, repeats_by_chance }) if repeats_by_chance < MIN_REPEATS => {
            format!(
                "is unique in these {rows}: none is lost; they do not show whether it stays unique, as hardly any would \
                 repeat with values combined at random"
            )
        }
        Some(Uniqueness { by: UniqueBy::Nature, repeats_by_chance }) => {
            let expected = match repeats_by_chance {
                most if most >= 0.5 * key.distinct_keys as f64 => "most".to_owned(),
                some => format!("about {}", count(some.round() as u64)),
            };
            format!(
                "is unique in these {rows}, of which {expected} would repeat with values combined at random: it looks like an \
                 identifier, and no row is lost"
            )
        }
        Some(Uniqueness { by: UniqueBy::ManyValues, .. }) => format!(
            "is unique in these {rows}, and has enough possible values that 1000 times as many rows are unlikely to repeat one: no row \
             is lost"
        ),
        None => {
            format!("is unique in these {rows}: none is lost; they do not show whether it stays unique")
        }
    }
}
