//! Times of jobs: when they were submitted, and when their clients last polled them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ballista_core::JobId;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::scheduler::{RESULTS_KEPT, Server};

/// Jobs that a scheduler runs.
pub(super) trait RunningJobs: Send + Sync {
    /// Returns their ids.
    fn ids(&self) -> Vec<JobId>;
    /// Cancels one of them. It may have ended in the meantime.
    fn cancel(&self, job: JobId) -> BoxFuture<'_, ()>;
}

impl RunningJobs for Server {
    fn ids(&self) -> Vec<JobId> {
        self.state.task_manager.get_running_job_cache().keys().cloned().collect()
    }

    fn cancel(&self, job: JobId) -> BoxFuture<'_, ()> {
        self.cancel_job(job).map(drop).boxed()
    }
}

/// Times of jobs that Ballista does not record.
#[derive(Debug, Clone, Default)]
pub(super) struct Jobs(Arc<Mutex<HashMap<String, JobTimes>>>);

#[derive(Debug, Clone, Copy)]
struct JobTimes {
    /// Time when the job was submitted, in milliseconds since 1970.
    submitted: u128,
    /// Time when its client last polled it.
    polled: Instant,
}

impl Jobs {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, JobTimes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a job was submitted at `submitted`, in milliseconds since 1970.
    pub(super) fn add(&self, job: &str, submitted: u128) {
        let mut jobs = self.lock();
        let oldest = now_millis().saturating_sub(24 * RESULTS_KEPT.as_millis());
        jobs.retain(|_, times| times.submitted > oldest);
        jobs.insert(job.to_owned(), JobTimes { submitted, polled: Instant::now() });
    }

    /// Records that the client of a job polled it.
    pub(super) fn poll(&self, job: &str) {
        if let Some(times) = self.lock().get_mut(job) {
            times.polled = Instant::now();
        }
    }

    /// Whether no client has polled a job for longer than `timeout`.
    pub(super) fn is_abandoned(&self, job: &str, timeout: Duration) -> bool {
        self.lock().get(job).is_some_and(|times| times.polled.elapsed() > timeout)
    }

    /// Whether an executor last heard of at `last_heard`, in milliseconds since 1970, can have
    /// worked on a job.
    pub(super) fn can_have_met(&self, job: &str, last_heard: Option<u128>) -> bool {
        let submitted = self.lock().get(job).map(|times| times.submitted);
        match (last_heard, submitted) {
            (Some(last_heard), Some(submitted)) => submitted <= last_heard,
            _ => true,
        }
    }
}

/// Cancels jobs whose clients disappeared without cancelling them.
pub(super) async fn cancel_abandoned(running: Arc<dyn RunningJobs>, jobs: Jobs, timeout: Duration) {
    loop {
        tokio::time::sleep(timeout / 6).await;
        for job in running.ids() {
            if jobs.is_abandoned(job.as_ref(), timeout) {
                log::warn!("no client has polled job {job} for {} s: cancelling it", timeout.as_secs());
                running.cancel(job).await;
            }
        }
    }
}

pub(super) fn now_millis() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_jobs_submitted_before_an_executor_was_last_heard_of_can_have_met_it() {
        let jobs = Jobs::default();
        let now = now_millis();
        jobs.add("job", now);
        assert!(jobs.can_have_met("job", Some(now)) && jobs.can_have_met("job", Some(now + 1)));
        assert!(!jobs.can_have_met("job", Some(now - 1)));
        // If either time is unknown, it may have.
        assert!(jobs.can_have_met("job", None) && jobs.can_have_met("other", Some(0)));
        // Times of old jobs are dropped a day later.
        jobs.add("old", now - 25 * RESULTS_KEPT.as_millis());
        jobs.add("new", now);
        assert!(jobs.can_have_met("old", Some(0)));
    }

    #[test]
    fn a_job_is_abandoned_when_nobody_polls_it() {
        let jobs = Jobs::default();
        jobs.add("job", 0);
        std::thread::sleep(Duration::from_millis(30));
        assert!(jobs.is_abandoned("job", Duration::from_millis(20)));
        assert!(!jobs.is_abandoned("other", Duration::ZERO));
        jobs.poll("job");
        assert!(!jobs.is_abandoned("job", Duration::from_secs(20)));
    }
}
