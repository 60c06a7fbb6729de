//! Renders a simulation as one HTML file.

use std::fmt::Write as _;

use crate::grid::{Layout, count, number, percent};
use crate::html::heat_map::{key_heat_map, legend};
use crate::html::page::{END, begin, escape, list, table};
use crate::simulation::{
    against_hash, assumptions, cost_of_change, hottest_share, patterns, sentence,
    simulation as simulation_text,
};
use crate::values::instant;
use evenkeel_spanner::simulate::splits::{Period, Timeline};
use evenkeel_spanner::simulate::{Simulation, StrategyReport};

/// Renders the whole report: for each strategy a heat map of keys against time, next to its
/// figures.
#[must_use]
pub fn simulation_html(simulation: &Simulation) -> String {
    let mut page = String::new();
    let input = simulation.inputs.first().map_or("an export", String::as_str);
    begin(&mut page, &escape(&format!("Range splits for {input}: a model")));
    list(&mut page, &assumptions(simulation).lines().map(str::to_owned).collect::<Vec<_>>());
    page.push_str("<section class=\"card long\">\n<h2>Strategies</h2>\n");
    let headings = [
        "strategy",
        "#hottest split",
        "#rows in hot splits",
        "#splits",
        "#newest rows",
        "#one owner",
        "if the choice is wrong",
    ];
    table(&mut page, &headings, against_hash(simulation).into_iter());
    let _ = writeln!(page, "<p class=\"lead\">{}</p>", escape(&cost_of_change(simulation)));
    page.push_str("</section>\n");
    if let Some(strategy) = &simulation.recommended {
        let _ = writeln!(page, "<p class=\"answer\">recommended: {}</p>", escape(&strategy.to_string()));
    }
    for finding in &simulation.findings {
        let word = finding.severity.word();
        let _ = writeln!(
            page,
            "<div class=\"finding {word}\"><strong>{word}</strong> {}: <p>{}</p><p>{}</p></div>",
            escape(&finding.subject.to_string()),
            escape(&finding.message),
            escape(&finding.advice)
        );
    }
    page.push_str("<h2>Where writes land</h2>\n<p class=\"lead\">Keys from the first at the top, time from left to right.</p>\n");
    page.push_str(&legend());
    simulation.strategies.iter().for_each(|report| strategy(&mut page, simulation, report));
    page.push_str("<h2>All figures</h2>\n");
    let _ = writeln!(page, "<pre>{}</pre>", escape(&simulation_text(simulation, Layout::Plain)));
    page.push_str(END);
    page
}

/// Returns some of the keys that ranges begin with, from the first to the last.
fn labels(keys: &[String]) -> Vec<String> {
    const LABELS: usize = 5;
    const MAX_CHARACTERS: usize = 26;
    let last = keys.len().saturating_sub(1);
    let shown = LABELS.min(keys.len());
    let at = |label: usize| keys.get(label * last / shown.saturating_sub(1).max(1));
    let short = |key: &String| match key.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}…", key.get(..end).unwrap_or_default()),
        None => key.clone(),
    };
    (0..shown).filter_map(at).map(short).collect()
}

/// Draws the share of the hottest split and the number of live splits over time.
fn lines(timeline: &Timeline) -> String {
    const WIDTH: f64 = 960.0;
    const HEIGHT: f64 = 80.0;
    let periods = &timeline.periods;
    let most = periods.iter().map(|period| period.splits).max().unwrap_or(1).max(1);
    let line = |class: &str, value: &dyn Fn(&Period) -> f64| {
        let points = periods.iter().enumerate().map(|(number, period)| {
            let x = (number as f64 + 0.5) / periods.len() as f64 * WIDTH;
            format!("{x:.1},{:.1}", HEIGHT - value(period).clamp(0.0, 1.0) * HEIGHT)
        });
        format!("<polyline class=\"{class}\" points=\"{}\"/>\n", points.collect::<Vec<_>>().join(" "))
    };
    format!(
        "<figure>\n<svg viewBox=\"0 -2 {WIDTH} {:.0}\" role=\"img\" aria-label=\"hottest split and live splits\">\n{}{}</svg>\n\
         <figcaption>over time: share of the hottest split, 0 to 100 % (line), and live splits, 0 to {most} (dashes); {} {} for each point\
         </figcaption>\n</figure>\n",
        HEIGHT + 4.0,
        line("line", &Period::hottest_share),
        line("dashes", &|period| period.splits as f64 / most as f64),
        timeline.windows_of_period,
        if timeline.windows_of_period == 1 { "window" } else { "windows" },
    )
}

fn strategy(page: &mut String, simulation: &Simulation, report: &StrategyReport) {
    let (whole, heat) = (&report.outcome.whole, &report.outcome.heat);
    let _ = writeln!(
        page,
        "<section class=\"card\">\n<h2>{}</h2>\n<p class=\"lead\">{}</p>",
        escape(&report.strategy.to_string()),
        escape(&sentence(simulation, report))
    );
    page.push_str("<figure>\n");
    page.push_str("<div class=\"keys\">\n<ol>\n");
    for key in labels(&heat.starts_at) {
        let _ = writeln!(page, "<li>{}</li>", escape(&key));
    }
    page.push_str("</ol>\n");
    page.push_str(&key_heat_map(&heat.cells));
    page.push_str("</div>\n");
    let names: Vec<&str> = report.outcome.spaces.iter().map(|space| space.name.as_str()).collect();
    let mut captions = patterns(&report.outcome);
    if names.len() > 1 {
        captions = format!("from the top {}: {captions}", names.join(", "));
    }
    let at = |window: i64| instant(window.saturating_mul(simulation.parameters.window.get()));
    let _ = writeln!(
        page,
        "<figcaption>{}; {} to {}</figcaption>\n</figure>",
        escape(&captions),
        at(heat.windows.0),
        at(heat.windows.1.saturating_add(1))
    );
    let figures = [
        ("hottest split", percent(hottest_share(&report.outcome))),
        ("highest score", number(whole.highest_score)),
        ("hot windows", count(report.outcome.relief.hot_windows)),
        ("splits", count(whole.splits as u64)),
        ("made by size", count(whole.by_size)),
        ("made by load", count(whole.by_load)),
        ("joined again", count(whole.merges)),
        ("servers busy", format!("{:.1}", whole.busy_servers)),
        ("even servers", format!("{:.1}", whole.effective_servers)),
        ("splits per transaction", format!("{:.1}", report.outcome.splits_per_transaction)),
    ];
    page.push_str(&lines(&report.outcome.timeline));
    page.push_str("<dl>\n");
    for (name, value) in figures {
        let _ = writeln!(page, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    page.push_str("</dl>\n</section>\n");
}

#[cfg(test)]
#[path = "simulation_tests.rs"]
mod tests;
