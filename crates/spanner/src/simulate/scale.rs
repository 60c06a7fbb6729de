//! Scale of a simulation, and whether the rows suffice to judge load.

use crate::simulate::result::SimulateOptions;
use crate::simulate::splits::ModelParameters;

/// Number of full splits that the whole export makes if no scale is given.
const USUAL_SPLITS: f64 = 16.0;
/// Smallest number of rows of the export that should be needed to make a split hot in a window;
/// fewer may coincide by chance.
pub(super) const MIN_HOT_ROWS: f64 = 20.0;
/// Fewest windows that show the effect of a load: the split is watched, divided after the delay,
/// and seen again.
const MIN_WINDOWS: f64 = 5.0;

/// Returns the parameters with the given scale, or with the one that makes the usual number of
/// splits of `bytes` bytes.
pub(super) fn scaled(options: &SimulateOptions, bytes: u64) -> ModelParameters {
    let mut parameters = options.parameters.clone();
    if options.find_scale {
        let scale = USUAL_SPLITS * parameters.split_size.0 as f64 / bytes.max(1) as f64;
        parameters.scale = round_to_two_digits(scale);
        parameters.load_scale = 1.0;
        // The measured load is not scaled. Only at a given rate may each row represent several, up
        // to a limit: with fewer rows in a window, hot splits would arise by chance.
        if options.rate.is_some() {
            let most = round_to_two_digits(parameters.hot_rows() / MIN_HOT_ROWS);
            parameters.load_scale = parameters.scale.min(most);
        }
    } else {
        parameters.load_scale = parameters.scale;
    }
    parameters
}

fn round_to_two_digits(number: f64) -> f64 {
    if number <= 0.0 || !number.is_finite() {
        return 1.0;
    }
    let unit = 10f64.powf(number.log10().floor() - 1.0);
    (number / unit).round() * unit
}

/// Returns a warning if the scale is so large that a few rows of the export make a split hot.
fn few_rows(parameters: &ModelParameters) -> Option<String> {
    let rows = parameters.hot_rows();
    // Rounding may lower the number slightly.
    (rows < 0.9 * MIN_HOT_ROWS).then(|| {
        format!(
            "a split is hot from {rows:.1} rows of the export in a window on, which this few rows reach by \
                chance: use more rows, a longer --window or a smaller --scale"
        )
    })
}

/// Returns the reason why load cannot be judged, if there are too few rows or too few windows.
pub(super) fn unsure(parameters: &ModelParameters, span: f64) -> Option<String> {
    let windows = span / parameters.window.get() as f64;
    few_rows(parameters).or_else(|| {
        (windows < MIN_WINDOWS).then(|| {
            format!(
                "all rows arrive within {windows:.1} windows of {}, too few to see splits divide: use \
                    more rows, a shorter --window or a lower --rate",
                parameters.window
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_input::source::OnUnreadable;
    use evenkeel_model::units::Micros;

    fn options(find_scale: bool, rate: Option<f64>, parameters: ModelParameters) -> SimulateOptions {
        SimulateOptions {
            primary_key: Vec::new(),
            partition_key: Vec::new(),
            indexes: Vec::new(),
            strategies: Vec::new(),
            parameters,
            judged: None,
            shard_columns: Vec::new(),
            find_scale,
            rate,
            time: None,
            owner: None,
            presplits: 0,
            transaction_rows: 1,
            on_unreadable: OnUnreadable::Fail,
        }
    }

    #[test]
    fn a_scale_that_is_found_makes_sixteen_full_splits() {
        for bytes in [1, 1000, 123_456_789, 1 << 50] {
            let scaled = scaled(&options(true, None, ModelParameters::default()), bytes);
            let splits = bytes as f64 / scaled.scaled_size();
            assert!((splits / 16.0 - 1.0).abs() <= 0.05, "{bytes}: {splits}");
            assert_eq!(scaled.load_scale, 1.0, "the times of the rows are the load");
        }
        assert!(scaled(&options(true, None, ModelParameters::default()), 0).scale.is_finite());
    }

    #[test]
    fn a_given_scale_is_kept_and_multiplies_the_load() {
        let given = ModelParameters { scale: 7.0, ..ModelParameters::default() };
        let kept = scaled(&options(false, Some(10.0), given), 5);
        assert_eq!((kept.scale, kept.load_scale), (7.0, 7.0));
    }

    #[test]
    fn at_a_given_rate_a_hot_split_has_at_least_twenty_rows() {
        for bytes in [1, 1 << 20, 1 << 45] {
            let scaled = scaled(&options(true, Some(5000.0), ModelParameters::default()), bytes);
            // The rows of a hot window are the rows of the real table divided by the rows that each
            // row of the export represents.
            let rows = scaled.split_rate * scaled.window.seconds() / scaled.load_scale;
            assert!(rows >= 0.9 * MIN_HOT_ROWS && scaled.load_scale <= scaled.scale, "{rows}");
            assert_eq!(unsure(&scaled, 1e15), None);
        }
    }

    #[test]
    fn few_rows_or_windows_are_reported() {
        let parameters = |split_rate| ModelParameters {
            split_rate,
            window: Micros::new(1_000_000),
            ..ModelParameters::default()
        };
        // From 18 rows on, as rounding lowers 20 slightly.
        assert!(unsure(&parameters(17.9), 1e9).is_some_and(|reason| reason.contains("17.9 rows")));
        assert_eq!(unsure(&parameters(18.0), 1e9), None);
        assert!(unsure(&parameters(18.0), 4.9e6).is_some_and(|reason| reason.contains("within 4.9 windows")));
        assert_eq!(unsure(&parameters(18.0), 5e6), None);
    }

    #[test]
    fn rounding_keeps_two_digits() {
        for (number, rounded) in
            [(0.012_34, 0.012), (9.96, 10.0), (1234.0, 1200.0), (f64::NAN, 1.0), (-3.0, 1.0)]
        {
            assert!((round_to_two_digits(number) - rounded).abs() <= 1e-9 * rounded, "{number}");
        }
    }
}
