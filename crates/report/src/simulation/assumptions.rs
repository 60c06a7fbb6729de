//! Load, size and parameters of a simulation, in sentences.

use crate::grid::{count, number, percent};
use crate::values::rate;
use evenkeel_model::units::{ByteSize, elapsed};
use evenkeel_spanner::simulate::splits::{ModelParameters, Sampling};
use evenkeel_spanner::simulate::{Load, RateSource, Simulation, few_digits};

/// Lists the assumptions of the model, one per line.
pub(crate) fn assumptions(simulation: &Simulation) -> String {
    let mut lines = vec![
        format!("{} rows, {} of values", count(simulation.rows), ByteSize(simulation.bytes)),
        rate_words(simulation),
        size(simulation),
    ];
    lines.extend(model(&simulation.parameters));
    if simulation.presplits > 0 {
        lines.push(format!(
            "{} initial boundaries, taken from the keys of the first rows",
            simulation.presplits
        ));
    }
    lines.join("\n") + "\n"
}

/// Describes the size of the modelled table.
fn size(simulation: &Simulation) -> String {
    let scale = simulation.parameters.scale;
    format!(
        "size: each row stands for {}, so that the table has {} of values{}",
        number(scale),
        ByteSize((simulation.bytes as f64 * scale) as u64),
        match simulation.is_scale_found {
            true => "; assumed, to show splits by size: enough for 16 full ones; set it with --scale",
            false => "",
        }
    )
}

/// Describes when splits divide, and when they do not.
fn model(parameters: &ModelParameters) -> [String; 3] {
    let Sampling { size_keys, load_keys, fewest_load_keys, root_share } = &parameters.sampling;
    [
        format!(
            "a split divides at {}, or by load at {} rows per second (score 100) over {}, {} windows later; \
             {} servers",
            parameters.split_size,
            number(parameters.split_rate),
            parameters.window,
            parameters.delay_windows,
            parameters.servers
        ),
        format!(
            "watched from score {}, hot from {}; not divided if one row has {} of the keys, or if {} lie \
             beyond all earlier ones; joined again after {} quiet windows; seed {}",
            number(parameters.warm),
            number(parameters.hot),
            percent(parameters.single_row_share),
            percent(parameters.moving_share),
            parameters.quiet_windows,
            parameters.seed
        ),
        format!(
            "boundaries come from at most {size_keys} sampled keys of a split, or from {fewest_load_keys} to \
             {load_keys} of a window; a boundary at a root leaves at least {} on either side",
            percent(*root_share)
        ),
    ]
}

/// Describes the rate of rows and its source.
fn rate_words(simulation: &Simulation) -> String {
    let Load { rows_per_second, bytes_per_second, source, span_micros, is_sorted_by_time } = &simulation.load;
    let time = simulation.time.as_deref().unwrap_or("time");
    let order = if *is_sorted_by_time { ", in whose order they are replayed" } else { "" };
    let (Some(rows), Some(bytes)) = (rows_per_second, bytes_per_second) else {
        return format!("rate: unknown, since all rows have one {time}");
    };
    let (per_second, span) =
        (format!("{} rows/s, {}", few_digits(*rows), rate(*bytes)), elapsed(*span_micros));
    let rows = count(simulation.rows);
    match source {
        RateSource::Measured => {
            format!("rate: {per_second}, as measured: {rows} rows over the {span} of {time}{order}")
        }
        RateSource::Scaled => format!(
            "rate: {per_second}, {} times the measured rate, as given by --scale: {rows} rows over the {span} of {time}{order}",
            number(simulation.parameters.load_scale)
        ),
        RateSource::Given => format!(
            "rate: {per_second}, as given by --rate; rows arrive evenly spaced, each standing for {} rows of the real table",
            number(simulation.parameters.load_scale)
        ),
    }
}
