//! Rows that several parts of a plan read.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arrow::array::{Array, ArrayData, RecordBatch};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::error::DataFusionError;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::spill_file::SpillFile;
use datafusion::physical_plan::metrics::SpillMetrics;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, SendableRecordBatchStream, SpillManager, execute_stream};
use futures::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::watch;

/// Size of a spill file, in bytes of memory.
const SPILLED_BYTES: usize = 32 << 20;

/// Divisor of the memory of all queries: rows in memory may use this part; further rows are
/// spilled.
const PART_OF_MEMORY: usize = 4;

/// The rows of a query, computed when they are first read in an execution of the plan.
#[derive(Debug)]
pub(super) struct SharedRows {
    input: Mutex<Arc<dyn ExecutionPlan>>,
    execution: Mutex<Option<Execution>>,
}

/// Rows of one execution.
#[derive(Debug)]
struct Execution {
    context: Weak<TaskContext>,
    rows: Arc<Rows>,
}

impl SharedRows {
    pub(super) fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        Self { input: Mutex::new(input), execution: Mutex::default() }
    }

    /// Returns the plan that computes the rows.
    pub(super) fn input(&self) -> Arc<dyn ExecutionPlan> {
        Arc::clone(&self.input.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the plan by one that computes the same rows.
    pub(super) fn replace_input(&self, input: Arc<dyn ExecutionPlan>) {
        *self.input.lock().unwrap_or_else(PoisonError::into_inner) = input;
    }

    /// Drops the rows, unless somebody reads them.
    pub(super) fn release(&self) {
        *self.execution.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns every `streams`-th part of the rows, from that with the number `stream` on.
    pub(super) fn read(
        &self,
        stream: usize,
        streams: usize,
        context: &Arc<TaskContext>,
        metrics: SpillMetrics,
    ) -> SendableRecordBatchStream {
        let input = self.input();
        let schema = input.schema();
        let rows = self.rows_in(context, || Rows::start(input, context, metrics));
        let parts = stream::try_unfold((rows.parts(), stream), move |(parts, number)| async move {
            let part = parts.part(number).await?;
            Ok::<_, DataFusionError>(part.map(|part| (part, (parts, number + streams))))
        });
        let batches = parts.map_ok(move |part| match part {
            Part::InMemory(batch) => stream::once(async { Ok(batch) }).boxed(),
            Part::Spilled(file) => match rows.spills.read_spill_as_stream(file, None) {
                Ok(batches) => batches,
                Err(error) => stream::once(async { Err(error) }).boxed(),
            },
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, batches.try_flatten()))
    }

    /// Returns the rows in an execution, which has one context for all of the plan.
    fn rows_in(&self, context: &Arc<TaskContext>, start: impl FnOnce() -> Rows) -> Arc<Rows> {
        let mut execution = self.execution.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(execution) = execution.as_ref()
            && Weak::as_ptr(&execution.context) == Arc::as_ptr(context)
        {
            return Arc::clone(&execution.rows);
        }
        let rows = Arc::new(start());
        *execution = Some(Execution { context: Arc::downgrade(context), rows: Arc::clone(&rows) });
        rows
    }
}

/// Rows that a task computes on demand.
struct Rows {
    computed: watch::Receiver<Computed>,
    wanted: Arc<watch::Sender<usize>>,
    spills: SpillManager,
    /// Ends with the last reader, once the rows are released.
    _task: SpawnedTask<()>,
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").finish_non_exhaustive()
    }
}

/// Parts that have been computed so far.
#[derive(Default)]
struct Computed {
    parts: Vec<Part>,
    end: Option<Result<(), Arc<DataFusionError>>>,
}

#[derive(Clone)]
enum Part {
    InMemory(RecordBatch),
    Spilled(Arc<dyn SpillFile>),
}

impl Rows {
    fn start(input: Arc<dyn ExecutionPlan>, context: &Arc<TaskContext>, metrics: SpillMetrics) -> Self {
        let (sender, computed) = watch::channel(Computed::default());
        let (wanted, demand) = watch::channel(0);
        let spills = SpillManager::new(context.runtime_env(), metrics, input.schema());
        let producer = Producer {
            computed: sender,
            demand,
            memory: Memory::new(context),
            spills: spills.clone(),
            ahead: context.session_config().target_partitions(),
        };
        let task = SpawnedTask::spawn(producer.run(input, Arc::clone(context)));
        Self { computed, wanted: Arc::new(wanted), spills, _task: task }
    }

    fn parts(&self) -> Parts {
        Parts { computed: self.computed.clone(), wanted: Arc::clone(&self.wanted) }
    }
}

/// A reader of [`Rows`].
struct Parts {
    computed: watch::Receiver<Computed>,
    wanted: Arc<watch::Sender<usize>>,
}

impl Parts {
    /// Waits for a part; `None` if there are fewer.
    async fn part(&self, number: usize) -> Result<Option<Part>> {
        self.wanted.send_if_modified(|wanted| {
            let is_more = *wanted <= number;
            *wanted = (*wanted).max(number + 1);
            is_more
        });
        let mut computed = self.computed.clone();
        let is_known = |computed: &Computed| computed.parts.len() > number || computed.end.is_some();
        let Ok(computed) = computed.wait_for(is_known).await else {
            return Err(internal_datafusion_err!("the rows of a query in WITH were not computed"));
        };
        match (computed.parts.get(number), &computed.end) {
            (Some(part), _) => Ok(Some(part.clone())),
            (None, Some(Err(error))) => Err(DataFusionError::Shared(Arc::clone(error))),
            (None, _) => Ok(None),
        }
    }
}

struct Producer {
    computed: watch::Sender<Computed>,
    demand: watch::Receiver<usize>,
    memory: Memory,
    spills: SpillManager,
    /// Number of parts that are computed before they are wanted.
    ahead: usize,
}

impl Producer {
    async fn run(mut self, input: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) {
        let end = self.compute(input, context).await.map_err(Arc::new);
        self.computed.send_modify(|computed| computed.end = Some(end));
        // The reservation lasts as long as the rows.
        let _ = self.computed.closed().await;
    }

    async fn compute(&mut self, input: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<()> {
        self.wanted().await;
        let mut batches = execute_stream(input, context)?;
        let mut spilled = None;
        loop {
            self.wanted().await;
            let Some(batch) = batches.next().await.transpose()? else { break };
            if batch.num_rows() == 0 {
                continue;
            }
            if spilled.is_none() && self.memory.holds(&batch) {
                self.publish(Part::InMemory(batch));
                continue;
            }
            let (mut file, mut bytes) = match spilled.take() {
                Some(spilled) => spilled,
                None => (self.spills.create_in_progress_file("rows of a query in WITH")?, 0),
            };
            bytes += file.append_batch(&batch)?;
            if bytes < SPILLED_BYTES {
                spilled = Some((file, bytes));
            } else if let Some(file) = file.finish()? {
                self.publish(Part::Spilled(file));
            }
        }
        if let Some((mut file, _)) = spilled
            && let Some(file) = file.finish()?
        {
            self.publish(Part::Spilled(file));
        }
        Ok(())
    }

    /// Waits until more parts are wanted.
    async fn wanted(&mut self) {
        let enough = self.computed.borrow().parts.len();
        let ahead = self.ahead;
        let _ = self.demand.wait_for(|wanted| *wanted > 0 && enough < *wanted + ahead).await;
    }

    fn publish(&self, part: Part) {
        self.computed.send_modify(|computed| computed.parts.push(part));
    }
}

/// Memory of batches, which may share buffers.
struct Memory {
    reservation: MemoryReservation,
    limit: usize,
    /// Addresses of buffers that are counted.
    buffers: HashSet<usize>,
}

impl Memory {
    fn new(context: &TaskContext) -> Self {
        let pool = context.memory_pool();
        let limit = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / PART_OF_MEMORY,
            _ => usize::MAX,
        };
        let reservation = MemoryConsumer::new("WITH").with_can_spill(true).register(pool);
        Self { reservation, limit, buffers: HashSet::new() }
    }

    /// Reserves the memory of a batch, if there is enough.
    fn holds(&mut self, batch: &RecordBatch) -> bool {
        let mut added = Vec::new();
        let bytes: usize =
            batch.columns().iter().map(|column| self.bytes_of(&column.to_data(), &mut added)).sum();
        if self.reservation.size().saturating_add(bytes) > self.limit
            || self.reservation.try_grow(bytes).is_err()
        {
            return false;
        }
        self.buffers.extend(added);
        true
    }

    /// Returns the bytes of buffers that no batch before has.
    fn bytes_of(&self, data: &ArrayData, added: &mut Vec<usize>) -> usize {
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        let mut bytes = 0;
        for buffer in data.buffers().iter().chain(nulls) {
            let start = buffer.data_ptr().addr().get();
            if !self.buffers.contains(&start) && !added.contains(&start) {
                added.push(start);
                bytes += buffer.capacity();
            }
        }
        bytes + data.child_data().iter().map(|child| self.bytes_of(child, added)).sum::<usize>()
    }
}
