//! Failures of an evaluation that are wrong usage.

use evenkeel::evaluate::{EvaluateError, ProfileError};
use evenkeel::placement::PlacementError;

use crate::cli::Failure;

/// Distinguishes wrong usage from other errors.
pub(crate) fn failure(error: EvaluateError) -> Failure {
    if is_usage(&error) { Failure::usage(error) } else { Failure::from(error) }
}

/// Whether the options are wrong rather than the rows.
pub(super) fn is_usage(error: &EvaluateError) -> bool {
    matches!(
        error,
        EvaluateError::UnknownColumn { .. }
            | EvaluateError::NotTime { .. }
            | EvaluateError::Time { .. }
            | EvaluateError::UnknownTime { .. }
            | EvaluateError::UnknownRoleColumn { .. }
            | EvaluateError::Memory { .. }
            | EvaluateError::TooManyWindows { .. }
            | EvaluateError::Placement { source: PlacementError::System { .. }, .. }
    )
}

/// Distinguishes incompatible profiles from unusable ones.
pub(super) fn profile_failure(error: ProfileError) -> Failure {
    match error {
        ProfileError::Evaluate(error) => failure(error),
        ProfileError::Columns { .. }
        | ProfileError::Options { .. }
        | ProfileError::Twice { .. }
        | ProfileError::NoCommonKey { .. }
        | ProfileError::Occupied { .. }
        | ProfileError::None => Failure::usage(error),
        other => Failure::from(other),
    }
}
