//! The evaluation itself, in a separate thread, on this machine or on a cluster.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use evenkeel::evaluate::{
    AdvisorOptions, AdvisorReport, CountRows, EvaluateError, Profile, ProfileError, advise, advise_and_save,
    advise_merged, advise_with, without_unfit_systems,
};
use evenkeel::source::Export;
use indicatif::ProgressBar;

use crate::cli::evaluate::failures::{failure, profile_failure};
use crate::cli::{Failure, Output};

/// Where the rows of an evaluation are counted.
pub(super) struct Assessing {
    /// Machines that count the rows; if `None`, this one does.
    pub(super) counter: Option<Box<dyn CountRows>>,
}

/// Rows and profiles to evaluate.
pub(super) struct Work {
    /// Export with new rows, if there are any.
    pub(super) export: Option<Arc<Export>>,
    pub(super) plan: AdvisorOptions,
    /// Profiles to merge with these rows, or with each other.
    pub(super) profiles: Vec<Profile>,
    /// Size of the profile to save, if one is wanted.
    pub(super) save: Option<u64>,
}

impl Assessing {
    fn advise_once(
        &self,
        export: &Export,
        plan: AdvisorOptions,
        save: Option<u64>,
        progress: &(dyn Fn(u64) + Sync),
        stop: &AtomicBool,
    ) -> Result<(AdvisorReport, Option<Profile>), EvaluateError> {
        let report = match (&self.counter, save) {
            (None, Some(bytes)) => {
                let (report, profile) = advise_and_save(export, plan, bytes, progress, stop)?;
                return Ok((report, Some(profile)));
            }
            (None, None) => advise(export, plan, progress, stop)?,
            (Some(counter), _) => advise_with(export, plan, counter.as_ref(), stop)?,
        };
        Ok((report, None))
    }

    /// Evaluates; retries without systems that cannot hold a number.
    pub(super) fn advise(
        &self,
        export: &Export,
        plan: AdvisorOptions,
        save: Option<u64>,
        progress: &(dyn Fn(u64) + Sync),
        stop: &AtomicBool,
    ) -> Result<(AdvisorReport, Option<Profile>), EvaluateError> {
        without_unfit_systems(plan, |plan| self.advise_once(export, plan, save, progress, stop))
    }

    /// Evaluates new rows, and merges profiles with them.
    fn work(
        &self,
        work: Work,
        progress: &(dyn Fn(u64) + Sync),
        stop: &AtomicBool,
    ) -> Result<(AdvisorReport, Option<Profile>), ProfileError> {
        let Work { export, plan, mut profiles, save } = work;
        if let Some(export) = export {
            let is_merged = !profiles.is_empty();
            // Merged counts are reduced only once, if memory allows.
            let memory = plan.evaluate.memory.0 / 4;
            let size = if is_merged { Some(save.unwrap_or(0).max(memory)) } else { save };
            match self.advise(&export, plan.clone(), size, progress, stop) {
                // A day may have no rows.
                Err(EvaluateError::NoRows) if is_merged => {}
                advised if is_merged => profiles.extend(advised?.1),
                advised => return Ok(advised?),
            }
        }
        advise_merged(profiles, plan, save, stop)
    }
}

/// Works in a thread that Ctrl-C stops.
pub(super) async fn assess_in_background(
    work: Work,
    assessing: Assessing,
    masked: bool,
    out: &Output,
) -> Result<(AdvisorReport, Option<Profile>), Failure> {
    let reading = work.export.as_ref().and_then(|export| export.reading());
    let work = move |bar: &ProgressBar, stop: &AtomicBool| {
        assessing.work(work, &|rows| bar.set_position(rows), stop)
    };
    let assessed = out.in_background(reading, work).await?;
    assessed.map_err(|error| match error {
        ProfileError::Evaluate(error) => failure(if masked { error.masked() } else { error }),
        other => profile_failure(other),
    })
}
