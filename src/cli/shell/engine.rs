//! The threads that the queries of a shell run on.

use tokio::runtime::{Builder, Runtime};

use crate::cli::Failure;

/// Stack of a thread: expressions are evaluated recursively, as deep as the limits on SQL allow.
const STACK: usize = 16 << 20;

/// A runtime for queries. A join that does not yield keeps its threads after it is cancelled; later
/// queries get new ones.
pub(super) struct Engine {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
}

impl Engine {
    pub(super) fn start() -> Result<Self, Failure> {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) + 1;
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(threads).thread_stack_size(STACK).enable_all().build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Replaces the threads by new ones.
    pub(super) fn restart(&mut self) -> Result<(), Failure> {
        *self = Self::start()?;
        Ok(())
    }

    /// Runs work on the threads.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Failure> {
        match &self.runtime {
            Some(runtime) => Ok(runtime.spawn(work).await?),
            None => Err(anyhow::anyhow!("the shell is ending").into()),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Without waiting for tasks that do not yield.
            runtime.shutdown_background();
        }
    }
}
