//! Advice derived from the figures: good practices and anti-patterns of Spanner's schema design,
//! each with its measurement.

use crate::simulate::result::{IndexReport, ReadKind, Simulation, StrategyReport};
use crate::simulate::splits::{DatabaseOutcome, HeatPattern, Obstacle};
use crate::simulate::strategy::{Strategy, StrategyName};
use evenkeel_model::finding::{Finding, FindingCode, Severity, Subject};

/// Share of the rows in the hottest split of their window above which a key sends all writes to one
/// place.
const ONE_PLACE: f64 = 0.9;
/// Size of an index, relative to the table, above which it is reported.
const LARGE_INDEX: f64 = 0.5;
/// Share of transactions that commit in several splits above which it is reported.
const OFTEN: f64 = 0.5;

/// Largest share of the rows that may go to hot splits that dividing does not cool.
pub const HARMLESS: f64 = 0.02;
/// Largest ratio to the lowest hottest-split share of any strategy that counts as equally good.
pub const AS_GOOD: f64 = 3.0;

/// Returns the recommended strategy: among the strategies that spread writes at any rate, the one
/// that changes the declared key least, so that its reads stay cheap. Ties are resolved by the
/// order of the options.
pub(super) fn recommend(simulation: &Simulation) -> Option<StrategyName> {
    if simulation.unsure.is_some() {
        return None;
    }
    // Indexes are judged separately; children are rows like their parents.
    let stuck = |report: &StrategyReport| -> f64 {
        let of_table =
            report.outcome.stuck.iter().filter(|stuck| stuck.space == 0 || report.strategy.is_of_children());
        let rows: u64 = of_table.map(|stuck| stuck.rows).sum();
        rows as f64 / simulation.rows.max(1) as f64
    };
    let range = || simulation.strategies.iter().filter(|report| report.is_range);
    let best = range().map(share_of_table).min_by(f64::total_cmp)?;
    let is_quiet = range().all(|report| report.outcome.relief.hot_windows == 0);
    // A split that is hot to the end and never divided is no better than one reported as
    // indivisible.
    let is_divided = |report: &StrategyReport| {
        let DatabaseOutcome { relief, whole, .. } = &report.outcome;
        relief.hot_windows == 0 || relief.relieved_after.is_some() || whole.by_load > 0
    };
    let spreads = |report: &&StrategyReport| {
        // At a low rate no split is hot, although a key that follows time sends all writes to one
        // place. Children are stored after their parents, whose key is given.
        is_quiet && (report.strategy.is_of_children() || !moves(report, 0))
            || !is_quiet
                && stuck(report) <= HARMLESS
                && share_of_table(report) <= best * AS_GOOD
                && is_divided(report)
    };
    // The cost of a change is mainly reads that have to scan everything.
    let cost = |report: &&StrategyReport| {
        let through_all = report.reads.iter().filter(|read| read.ranges.is_none()).count();
        let declared = usize::from(report.strategy != StrategyName::Table(Strategy::Declared));
        let splits: usize = report.reads.iter().map(|read| read.splits).sum();
        (through_all, declared, splits)
    };
    range().filter(spreads).min_by_key(cost).map(|report| report.strategy)
}

/// Returns the findings of a simulation, most severe first.
pub(super) fn advise(simulation: &Simulation) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(reason) = &simulation.unsure {
        findings.push(Finding {
            code: FindingCode::TooFewRows,
            severity: Severity::Warning,
            subject: Subject::from(simulation.inputs.first().cloned().unwrap_or_default()),
            message: format!("load is not judged: {reason}"),
            measured: simulation.parameters.hot_rows(),
            threshold: 20.0,
            advice: "The figures of reads and of bytes hold nevertheless.".to_owned(),
        });
    }
    for report in simulation.strategies.iter().filter(|report| report.is_range) {
        // Only the declared key is judged; the other strategies are alternatives to it.
        let judged = simulation.judged();
        if report.strategy == judged || report.strategy.is_of_children() {
            one_place(simulation, report, &mut findings);
            single_row(simulation, report, &mut findings);
            order_of_history(simulation, report, &mut findings);
            two_phases(report, &mut findings);
        }
        if report.strategy == judged {
            report.indexes.iter().for_each(|index| judge_index(simulation, report, index, &mut findings));
        }
    }
    for (column, version) in &simulation.timed_uuids {
        let leads = simulation.primary_key.first().is_some_and(|part| part.column == *column);
        findings.push(Finding {
            code: FindingCode::TimeOrderedUuid,
            // After another column they do no harm.
            severity: if leads { Severity::Warning } else { Severity::Note },
            subject: Subject::from(column.clone()),
            message: format!("its values are UUIDs of version {version}, which begin with the time"),
            measured: f64::from(*version),
            threshold: 4.0,
            advice: "Generate UUIDs of version 4 (GENERATE_UUID()), or do not let this column lead a key."
                .to_owned(),
        });
    }
    findings.sort_by_key(|finding| finding.severity);
    findings
}

/// Share of the rows in the hottest split of the table in their window; for a parent and its
/// children, in the hottest split of all.
fn share_of_table(report: &StrategyReport) -> f64 {
    if report.strategy.is_of_children() {
        let whole = &report.outcome.whole;
        return whole.hottest_rows as f64 / whole.rows.max(1) as f64;
    }
    report.outcome.spaces.first().map_or(0.0, |space| space.hottest_share)
}

impl Simulation {
    /// Returns the strategy whose key is judged; the others are alternatives to it.
    #[must_use]
    pub fn judged(&self) -> StrategyName {
        StrategyName::Table(self.judged.unwrap_or(Strategy::Declared))
    }

    /// Whether the writes of the table move with time under every strategy, and never make a split
    /// hot.
    #[must_use]
    pub fn is_quiet_and_moves(&self) -> bool {
        let mut range = self.strategies.iter().filter(|report| report.is_range);
        range.all(|report| report.outcome.relief.hot_windows == 0 && moves(report, 0))
    }

    /// Returns a sentence on the declared key if another one is recommended although the declared
    /// key makes no split hot at this rate.
    #[must_use]
    pub fn harmless_declared(&self) -> Option<String> {
        let name = self.judged();
        let declared = self.strategies.iter().find(|report| report.strategy == name)?;
        let is_other = self.recommended.is_some_and(|recommended| recommended != name);
        let whole = &declared.outcome.whole;
        (is_other && declared.outcome.relief.hot_windows == 0 && moves(declared, 0)).then(|| {
            format!(
                "{name} does no harm at this rate: its hottest split gets {} of the {} rows per second \
                    that a split handles. However, all of its writes go to the end of the keys, so no division can ever relieve that split",
                few_digits(self.parameters.rows_per_second(whole.highest_score)),
                few_digits(self.parameters.split_rate)
            )
        })
    }
}

/// Whether the writes of a key space move with time, according to its hot splits or to the
/// heat map.
fn moves(report: &StrategyReport, space: usize) -> bool {
    let rows = report.outcome.spaces.get(space).map_or(0, |figures| figures.rows);
    let of_space = report.outcome.stuck.iter().filter(|stuck| stuck.space == space);
    let moving: u64 =
        of_space.filter(|stuck| stuck.obstacle == Obstacle::MovingHotspot).map(|stuck| stuck.rows).sum();
    moving as f64 >= 0.5 * rows as f64
        || report.outcome.heat.patterns.get(space) == Some(&HeatPattern::MonotonicKeys)
}

/// Severity of writes to a single place: a problem only if they exceed its capacity.
fn gravity(simulation: &Simulation, report: &StrategyReport) -> Severity {
    if report.outcome.relief.hot_windows > 0 && simulation.unsure.is_none() {
        Severity::Problem
    } else {
        Severity::Note
    }
}

fn one_place(simulation: &Simulation, report: &StrategyReport, findings: &mut Vec<Finding>) {
    let share = share_of_table(report);
    let first = simulation.primary_key.first().map_or("", |part| part.column.as_str());
    // If a time column leads and all writes go to one of several splits, they follow time, whatever
    // the order of the export.
    let is_time = simulation.time.as_deref() == Some(first) && report.outcome.whole.splits > 1;
    if share < ONE_PLACE || !(moves(report, 0) || is_time) {
        return;
    }
    let (severity, parameters) = (gravity(simulation, report), &simulation.parameters);
    let message = format!(
        "{:.1} % of the rows go to one split at that time, because {first} rises or falls with time; it \
            gets {} of the {} rows per second that a split handles (score {:.0}){}",
        share * 100.0,
        few_digits(parameters.rows_per_second(report.outcome.whole.highest_score)),
        few_digits(parameters.split_rate),
        report.outcome.whole.highest_score,
        match severity {
            Severity::Problem => ", and dividing splits does not help".to_owned(),
            _ if simulation.unsure.is_some() => String::new(),
            _ => format!(", below the {:.0} of a hot split: at this rate it does no harm", parameters.hot),
        }
    );
    findings.push(Finding {
        code: FindingCode::MonotonicKey,
        severity,
        subject: Subject::from(first.to_owned()),
        message,
        measured: share,
        threshold: ONE_PLACE,
        advice: "Do not begin the key with a column that follows time: put another column (swapped) or a \
            hash of the key (shard-N) first, or replace it with a UUID of version 4 or a bit-reversed sequence."
            .to_owned(),
    });
}

/// Formats a rate, with decimals if it is small.
#[must_use]
pub fn few_digits(rate: f64) -> String {
    match rate {
        small if small < 1.0 => format!("{small:.2}"),
        small if small < 100.0 => format!("{small:.1}"),
        large => format!("{large:.0}"),
    }
}

fn single_row(simulation: &Simulation, report: &StrategyReport, findings: &mut Vec<Finding>) {
    if simulation.unsure.is_some() {
        return;
    }
    let mut of_table = report.outcome.stuck.iter().filter(|stuck| stuck.space == 0);
    let stuck = of_table.find(|stuck| stuck.obstacle == Obstacle::SingleRow);
    let Some(stuck) = stuck else { return };
    let share = stuck.rows as f64 / simulation.rows.max(1) as f64;
    findings.push(Finding {
        code: FindingCode::HotRow,
        severity: Severity::Problem,
        subject: Subject::from(key_text(simulation)),
        message: format!(
            "{:.1} % of the rows go to a hot split in which one key has nearly all rows",
            share * 100.0
        ),
        measured: share,
        threshold: 0.0,
        advice: "A row cannot be divided: extend the key so that it distinguishes these rows, or combine \
            frequent writes and apply them at longer intervals."
            .to_owned(),
    });
}

fn order_of_history(simulation: &Simulation, report: &StrategyReport, findings: &mut Vec<Finding>) {
    let backwards = report.reads.iter().find(|read| {
        matches!(read.kind, ReadKind::History | ReadKind::ParentWithChildren)
            && read.newest_first == Some(false)
    });
    // Children in a separate table are not next to their parent.
    if backwards.is_none() || report.strategy == StrategyName::Apart {
        return;
    }
    findings.push(Finding {
        code: FindingCode::HistoryAscends,
        severity: Severity::Note,
        subject: Subject::from(simulation.time.clone().unwrap_or_default()),
        message: "the newest rows of an owner come after all older ones".to_owned(),
        measured: 1.0,
        threshold: 0.0,
        advice: "If the newest are read first, let the time descend (DESC): they then come first, next to \
            their parent."
            .to_owned(),
    });
}

fn two_phases(report: &StrategyReport, findings: &mut Vec<Finding>) {
    let share = report.outcome.two_phase_share;
    if share < OFTEN {
        return;
    }
    findings.push(Finding {
        code: FindingCode::TwoPhaseCommits,
        severity: Severity::Note,
        subject: Subject::from(report.strategy.to_string()),
        message: format!(
            "{:.0} % of the transactions touch more than one split, {:.1} on average",
            share * 100.0,
            report.outcome.splits_per_transaction
        ),
        measured: share,
        threshold: OFTEN,
        advice: "Such a commit takes two phases. If that matters, put rows with neighbouring keys in one \
            transaction, or interleave them."
            .to_owned(),
    });
}

fn judge_index(
    simulation: &Simulation,
    report: &StrategyReport,
    index: &IndexReport,
    findings: &mut Vec<Finding>,
) {
    let space = report.outcome.spaces.iter().position(|space| space.name == index.name);
    if let Some(space) = space.filter(|space| index.hottest_share >= ONE_PLACE && moves(report, *space)) {
        let is_hot =
            simulation.unsure.is_none() && report.outcome.stuck.iter().any(|stuck| stuck.space == space);
        findings.push(Finding {
            code: FindingCode::MonotonicIndex,
            severity: if is_hot { Severity::Problem } else { Severity::Note },
            subject: Subject::from(index.name.clone()),
            message: format!(
                "{:.1} % of its entries go to one split at that time: it begins with a column that follows time",
                index.hottest_share * 100.0
            ),
            measured: index.hottest_share,
            threshold: ONE_PLACE,
            advice: "Put a ShardId in front (shard-N), or begin with a column that the rows of a root \
                share and interleave the index; or drop it."
                .to_owned(),
        });
    }
    let share = index.bytes as f64 / simulation.bytes.max(1) as f64;
    if share >= LARGE_INDEX {
        findings.push(Finding {
            code: FindingCode::LargeIndex,
            severity: Severity::Note,
            subject: Subject::from(index.name.clone()),
            message: format!("it holds {:.0} % as many bytes as the table", share * 100.0),
            measured: share,
            threshold: LARGE_INDEX,
            advice: "STORING copies columns: store only those that reads by this index need, and index \
                only rows that matter (NULL_FILTERED)."
                .to_owned(),
        });
    }
}

fn key_text(simulation: &Simulation) -> String {
    simulation.primary_key.iter().map(|part| part.column.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
