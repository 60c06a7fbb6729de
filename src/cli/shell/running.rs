//! A query of the shell while it runs.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use evenkeel::query::{ParamError, Params, QueryError, QueryProgress};
use futures::FutureExt;
use indicatif::ProgressBar;
use thiserror::Error;
use tokio::sync::Notify;

use crate::cli::Failure;
use crate::cli::limits::watched;
use crate::cli::shell::Shell;
use crate::cli::shell::results::ResultHead;

/// Time after which the progress of a query is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// Interval at which the progress is updated.
const TICK: Duration = Duration::from_millis(200);

/// A query that was ended by Ctrl-C.
#[derive(Debug, Error)]
#[error("{0} was cancelled")]
struct Cancelled(&'static str);

/// Returns the failure of work that Ctrl-C has ended.
pub(super) fn cancelled(what: &'static str) -> Failure {
    anyhow::Error::from(Cancelled(what)).into()
}

/// Adapts the advice of an error to the shell.
fn in_shell(error: QueryError) -> Failure {
    match error {
        QueryError::Param(ParamError::Missing { name }) => Failure::wrong_usage(format!(
            "the query needs a value for ${name}; give it with \\set {name} VALUE"
        )),
        error => Failure::from_query(error),
    }
}

/// Forgets that Ctrl-C was pressed before.
pub(super) fn forget(interrupts: &Notify) {
    while interrupts.notified().now_or_never().is_some() {}
}

pub(super) fn is_cancelled(failure: &Failure) -> bool {
    matches!(failure, Failure::Failed(error) if error.is::<Cancelled>())
}

impl Shell<'_> {
    /// Runs a query until its end, its limits or Ctrl-C, and shows its rows. Returns the kept ones.
    pub(super) async fn answer(&mut self, sql: &str, params: &Params) -> Result<Option<ResultHead>, Failure> {
        forget(&self.interrupts);
        let progress: Arc<OnceLock<QueryProgress>> = Arc::default();
        let (started, known) = (Instant::now(), Arc::clone(&progress));
        let (engine, results) = (&self.engine, &mut self.results);
        let (session, sql, params) = (self.session.clone(), sql.to_owned(), params.clone());
        let work = async {
            let begun = engine.run(async move { session.query(&sql, &params).await }).await?;
            let mut result = begun.map_err(in_shell)?;
            if let Some(progress) = result.progress.take() {
                let _ = known.set(progress);
            }
            results.take(result).await
        };
        let mut work = Box::pin(watched(&self.limits, work));
        let mut ticks = tokio::time::interval(TICK);
        let mut bar: Option<ProgressBar> = None;
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                () = self.interrupts.notified() => break Err(cancelled("the query")),
                _ = ticks.tick() => {
                    if started.elapsed() < PATIENCE {
                        continue;
                    }
                    let Some(progress) = progress.get() else { continue };
                    let rows = Some(progress.rows_to_read()).filter(|rows| *rows > 0);
                    let bar = bar.get_or_insert_with(|| self.out.progress(rows, "rows read"));
                    bar.set_position(progress.rows_read());
                }
            }
        };
        // A query that is cancelled ends here.
        drop(work);
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        if done.is_err() {
            self.engine.restart()?;
        }
        let taken = done?;
        self.results.show(taken, self.out)
    }
}
