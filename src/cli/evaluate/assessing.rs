//! The evaluation itself, in a thread of its own, here or on a cluster.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use evenkeel::evaluate::{AdvisorOptions, AdvisorReport, EvaluateError, advise};
use evenkeel::placement::{Function, PlacementError};
use evenkeel::source::Export;
use indicatif::ProgressBar;

use crate::cli::{Failure, Output};

/// Machine or cluster that counts the rows.
pub(super) enum Assessing {
    Here,
    #[cfg(feature = "cluster")]
    OnCluster(Box<evenkeel::cluster::Cluster>, tokio::runtime::Handle),
}

impl Assessing {
    fn advise_once(
        &self,
        export: &Export,
        plan: AdvisorOptions,
        progress: &(dyn Fn(u64) + Sync),
        stop: &AtomicBool,
    ) -> Result<AdvisorReport, EvaluateError> {
        match self {
            Self::Here => advise(export, plan, progress, stop),
            #[cfg(feature = "cluster")]
            Self::OnCluster(cluster, runtime) => {
                evenkeel::cluster::advise(cluster, runtime, export, plan, stop)
            }
        }
    }

    /// Evaluates; if a number is too large for some systems, with the others.
    pub(super) fn advise(
        &self,
        export: &Export,
        mut plan: AdvisorOptions,
        progress: &(dyn Fn(u64) + Sync),
        stop: &AtomicBool,
    ) -> Result<AdvisorReport, EvaluateError> {
        loop {
            let error = match self.advise_once(export, plan.clone(), progress, stop) {
                Err(error) => error,
                assessment => return assessment,
            };
            if !error.is_too_large() {
                return Err(error);
            }
            let before = plan.evaluate.placements.len();
            plan.evaluate.placements.retain(|function| match function {
                Function::System(system) => system.about().unsigned,
                Function::Ydb(_) => true,
            });
            if plan.evaluate.placements.is_empty() || plan.evaluate.placements.len() == before {
                return Err(error);
            }
            plan.left_out.push(format!("{error}; likewise all systems without unsigned integers"));
        }
    }
}

/// Evaluates in a thread that Ctrl-C stops.
pub(super) async fn assess_in_background(
    export: Arc<Export>,
    plan: AdvisorOptions,
    assessing: Assessing,
    masked: bool,
    out: &Output,
) -> Result<AdvisorReport, Failure> {
    let work = move |bar: &ProgressBar, stop: &AtomicBool| {
        assessing.advise(&export, plan, &|rows| bar.set_position(rows), stop)
    };
    let assessed = out.in_background(work).await?;
    assessed.map_err(|error| failure(if masked { error.masked() } else { error }))
}

/// Tells wrong usage from other errors.
fn failure(error: EvaluateError) -> Failure {
    if is_usage(&error) { Failure::usage(error) } else { Failure::from(error) }
}

/// Whether the options are wrong rather than the rows.
pub(super) fn is_usage(error: &EvaluateError) -> bool {
    matches!(
        error,
        EvaluateError::UnknownColumn { .. }
            | EvaluateError::NotTime { .. }
            | EvaluateError::UnknownTime { .. }
            | EvaluateError::UnknownRoleColumn { .. }
            | EvaluateError::Memory { .. }
            | EvaluateError::TooManyWindows { .. }
            | EvaluateError::Placement { source: PlacementError::System { .. }, .. }
    )
}
