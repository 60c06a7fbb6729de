//! Conclusions from a simulation: a sentence for each strategy, and the recommendation.

use std::fmt::Write as _;

use crate::grid::{number, percent};
use evenkeel_spanner::simulate::splits::{Obstacle, Stuck};
use evenkeel_spanner::simulate::{AS_GOOD, HARMLESS, Simulation, StrategyReport};

/// Explains the figures of a strategy.
pub(crate) fn sentence(simulation: &Simulation, report: &StrategyReport) -> String {
    let outcome = &report.outcome;
    let matters = |stuck: &&Stuck| stuck.rows as f64 > HARMLESS * simulation.rows as f64;
    let mut text = report.words.clone();
    for stuck in outcome.stuck.iter().filter(matters) {
        let why = match stuck.obstacle {
            Obstacle::SingleRow => "in which one key has nearly all rows: a row cannot be divided",
            Obstacle::MovingHotspot => "whose keys keep moving: a boundary leaves all new rows on one side",
        };
        let space = outcome.spaces.get(stuck.space).map_or("", |space| space.name.as_str());
        let space = if outcome.spaces.len() > 1 { format!(" of {space}") } else { String::new() };
        let share = percent(stuck.rows as f64 / simulation.rows.max(1) as f64);
        let _ = write!(text, "; {share} of the rows{space} went to hot splits {why}");
    }
    let is_hot = report.is_range && outcome.relief.first_hot.is_some();
    if is_hot && !outcome.stuck.iter().any(|stuck| matters(&stuck)) {
        text.push_str(match (outcome.whole.by_load > 0, outcome.relief.relieved_after.is_some()) {
            (true, true) => "; dividing helps",
            (true, false) => "; it was divided by load, but stayed hot to the end",
            (false, _) => "; it was hot, but was not divided by load",
        });
    }
    text
}

/// Names the recommended strategy and the rule that chose it, or the reason why no strategy is
/// recommended.
pub(super) fn recommendation(simulation: &Simulation) -> String {
    let Some(strategy) = &simulation.recommended else {
        return match &simulation.unsure {
            Some(reason) => format!("no recommendation: {reason}"),
            None if simulation.is_quiet_and_moves() => "no recommendation: under each strategy all writes \
                go to the end of the keys, but at this rate no split becomes hot; another column in front \
                of the key spreads them"
                .to_owned(),
            None => "no strategy cools its hot splits; try another column in front of the key".to_owned(),
        };
    };
    let rule = format!(
        "recommended: {strategy}\nthe strategy whose reads touch least and that changes the key \
         least, among those with at most {} of the rows in hot splits that dividing does not cool, with at \
         most {} times the best share in the hottest split, and whose writes do not all follow time",
        percent(HARMLESS),
        number(AS_GOOD)
    );
    match simulation.harmless_declared() {
        Some(words) => format!("{rule}\n{words}"),
        None => rule,
    }
}
