//! Scale of a simulation, and whether the rows suffice to judge load.

use crate::simulate::result::SimulateOptions;
use crate::simulate::splits::ModelParameters;

/// Number of full splits that the whole export makes if no scale is given.
const USUAL_SPLITS: f64 = 16.0;
/// Smallest number of rows of the export that should be needed to make a split hot in a window;
/// fewer come together by chance.
pub(super) const FEWEST_HOT_ROWS: f64 = 20.0;
/// Fewest windows that show the effect of a load: the split is watched, divided after the delay,
/// and seen again.
const FEWEST_WINDOWS: f64 = 5.0;

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
            let most = round_to_two_digits(parameters.hot_rows() / FEWEST_HOT_ROWS);
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
    (rows < 0.9 * FEWEST_HOT_ROWS).then(|| {
        format!(
            "a split is hot from {rows:.1} rows of the export in one window on, and so few come together by chance: give more rows, a longer \
             --window or a smaller --scale"
        )
    })
}

/// Returns the reason why load cannot be judged, if there are too few rows or too few windows.
pub(super) fn unsure(parameters: &ModelParameters, span: f64) -> Option<String> {
    let windows = span / parameters.window.get() as f64;
    few_rows(parameters).or_else(|| {
        (windows < FEWEST_WINDOWS).then(|| {
            format!(
                "all rows come within {windows:.1} windows of {}, too few to see splits divide: give more rows, a shorter --window or a lower --rate",
                parameters.window
            )
        })
    })
}
