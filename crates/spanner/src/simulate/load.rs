//! Load of the real table, and notes on the times of its rows.

use crate::simulate::result::{Load, RateSource};
use crate::simulate::splits::ModelParameters;
use crate::simulate::survey::{Order, Survey};
use evenkeel_model::remark::Remark;

/// Returns the load of the real table.
pub(super) fn load(survey: &Survey, parameters: &ModelParameters, rate: Option<f64>, order: Order) -> Load {
    let measured = (survey.span() > 0).then(|| survey.with_time as f64 * 1e6 / survey.span() as f64);
    let rows_per_second = rate.or(measured.map(|rows| rows * parameters.load_scale));
    Load {
        rows_per_second,
        bytes_per_second: rows_per_second.map(|rows| rows * survey.bytes as f64 / survey.rows.max(1) as f64),
        source: match rate {
            Some(_) => RateSource::Given,
            None if parameters.load_scale == 1.0 => RateSource::Measured,
            None => RateSource::Scaled,
        },
        span_micros: survey.span(),
        is_sorted_by_time: order == Order::Time,
    }
}

/// Returns the reason why load cannot be judged, if the arrival order of the rows is unknown.
pub(super) fn unknown_order(order: Order) -> Option<String> {
    (order == Order::Unknown).then(|| {
        "the export is not in the order of its times, and too large to sort here: sort it by time, or use \
            a part of it"
            .to_owned()
    })
}

/// Returns notes on the times of the rows.
pub(super) fn notes_on_time(survey: &Survey, order: Order, time: &str, is_clocked: bool) -> Vec<Remark> {
    let mut notes = Vec::new();
    if order == Order::Time {
        let text = format!(
            "the export is not in the order of {time}: {:.0} % of its rows follow a later one. They are \
                replayed in the order of their times",
            100.0 * survey.out_of_order as f64 / survey.rows.max(1) as f64
        );
        notes.push(Remark::new("not_in_time_order", text));
    }
    if is_clocked && survey.without_time > 0 {
        let text = format!(
            "{} rows have no time: they arrive with the row before them, or before all \
            others if there is none",
            survey.without_time
        );
        notes.push(Remark::new("rows_without_time", text));
    }
    notes
}
