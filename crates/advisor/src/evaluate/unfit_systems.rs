//! Systems that cannot hold the numbers of an export.

use crate::evaluate::EvaluateError;
use crate::evaluate::options::AdvisorOptions;
use evenkeel_placement::placement::Function;

/// Evaluates by `run`. If a number is too large for systems without unsigned integers, it evaluates
/// again without these systems, and the options give the reason, which the report has as a note.
///
/// # Errors
/// The error of `run`, if it has another cause, or no other function is left.
pub fn without_unfit_systems<T>(
    mut options: AdvisorOptions,
    run: impl Fn(AdvisorOptions) -> Result<T, EvaluateError>,
) -> Result<T, EvaluateError> {
    loop {
        let error = match run(options.clone()) {
            Err(error) if error.is_too_large() => error,
            evaluated => return evaluated,
        };
        let placements = &mut options.evaluate.placements;
        let before = placements.len();
        placements.retain(|function| match function {
            Function::System(system) => system.about().unsigned,
            Function::Ydb(_) => true,
        });
        if placements.is_empty() || placements.len() == before {
            return Err(error);
        }
        options.left_out.push(format!("{error}; likewise all systems without unsigned integers"));
    }
}

#[cfg(test)]
#[path = "unfit_systems_tests.rs"]
mod tests;
