//! A handle of a table.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::FFI_TableProvider;
use evenkeel::cli::Progress;
use evenkeel::compact::CompactionOptions;
use evenkeel::ingest::{IngestError, IngestMode, IngestOptions, IngestReport};
use evenkeel::query::{QueryLimits, default_memory};
use evenkeel::source::Deletes;
use evenkeel::table::{ColumnType, write_create_table};
use evenkeel::units::{ByteSize, Version};
use evenkeel::{Table, TableError};
use futures::stream;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3_arrow::input::AnyRecordBatch;
use tokio::sync::{Notify, mpsc};

use crate::errors::{of_query, of_table, usage};
use crate::params::params;
use crate::provider::OwnTable;
use crate::query::Rows;
use crate::source::Plain;
use crate::waiting::{Droppable, Flagged, Work, runtime, wait};

/// Batches of a stream that wait for the ingest.
const WAITING: usize = 2;

/// A table at its newest version, or at a given one.
#[pyclass(frozen, module = "evenkeel")]
pub(crate) struct NativeTable {
    table: Mutex<Table>,
    is_pinned: bool,
}

impl NativeTable {
    fn current(&self) -> Table {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn replace(&self, table: Table) {
        *self.table.lock().unwrap_or_else(PoisonError::into_inner) = table;
    }
}

#[pymethods]
impl NativeTable {
    /// Opens a table.
    #[staticmethod]
    #[pyo3(signature = (place, version=None))]
    fn open(py: Python<'_>, place: PathBuf, version: Option<u64>) -> PyResult<Self> {
        let opened = wait(py, &Droppable, None, move || async move {
            match version {
                Some(version) => Table::open_version(&place, Version(version)).await,
                None => Table::open(&place).await,
            }
        })?;
        let table = opened.map_err(|error| of_table(py, error))?;
        Ok(Self { table: Mutex::new(table), is_pinned: version.is_some() })
    }

    /// Moves to the newest version, unless the handle stays at a given one.
    fn refresh(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_pinned {
            runtime(py)?;
            return Ok(());
        }
        let mut table = self.current();
        let refreshed =
            wait(py, &Droppable, None, move || async move { table.refresh().await.map(|()| table) })?;
        self.replace(refreshed.map_err(|error| of_table(py, error))?);
        Ok(())
    }

    /// Version that is read.
    #[getter]
    fn version(&self) -> u64 {
        self.current().snapshot().version().0
    }

    /// Whether the handle stays at its version.
    #[getter]
    fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// Name, type and nullability of the columns.
    #[getter]
    fn columns(&self) -> Vec<(String, String, bool)> {
        let table = self.current();
        let column = |column: &evenkeel::table::Column| {
            (column.name.clone(), ColumnType::to_string(&column.column_type), column.nullable)
        };
        table.spec().columns().iter().map(column).collect()
    }

    /// Name, primary key, partition key, number of partitions and placement function.
    #[getter]
    fn declaration(&self) -> (String, Vec<String>, Vec<String>, u32, String) {
        let table = self.current();
        let definition = table.spec().definition();
        let placement = table.placement();
        (
            definition.name.clone(),
            definition.primary_key.clone(),
            definition.partition_key.clone(),
            placement.partitions().get(),
            placement.function().to_string(),
        )
    }

    /// YQL statement that declares the table.
    fn ddl(&self) -> String {
        write_create_table(self.current().spec())
    }

    /// Runs a query on the version of the handle.
    #[pyo3(signature = (query, params_given=None, memory=None, timeout=None))]
    fn sql(
        &self,
        py: Python<'_>,
        query: String,
        params_given: Option<Bound<'_, PyDict>>,
        memory: Option<u64>,
        timeout: Option<f64>,
    ) -> PyResult<Rows> {
        let params = params(params_given.as_ref())?;
        let timeout =
            timeout.map(Duration::try_from_secs_f64).transpose().map_err(|error| usage(py, error))?;
        let memory = memory.map_or_else(default_memory, ByteSize);
        if memory < evenkeel::query::LEAST_QUERY_MEMORY {
            let least = evenkeel::query::LEAST_QUERY_MEMORY;
            return Err(usage(py, format!("a memory of {memory} is too small; the least is {least}")));
        }
        let limits = QueryLimits { memory, spill: None, timeout };
        let table = self.current();
        let session = table.session_with(&limits).map_err(|error| of_table(py, error))?;
        let rows = wait(py, &Droppable, None, move || async move { session.query(&query, &params).await })?;
        Ok(Rows::new(rows.map_err(|error| of_query(py, error))?))
    }

    /// Ingests the batches of an Arrow object with one commit, and returns the report as JSON.
    #[expect(clippy::too_many_arguments, reason = "one for each keyword in Python")]
    #[pyo3(signature = (source, mode, deletes, delete_column, memory, compact, progress=None))]
    fn ingest(
        &self,
        py: Python<'_>,
        source: AnyRecordBatch,
        mode: &str,
        deletes: bool,
        delete_column: Option<(String, String)>,
        memory: u64,
        compact: bool,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let mode = match (mode, deletes) {
            (_, true) => IngestMode::Delete,
            ("upsert", false) => IngestMode::Upsert,
            ("insert", false) => IngestMode::Insert,
            (other, false) => return Err(usage(py, format!("mode is 'upsert' or 'insert', not '{other}'"))),
        };
        let deletes = match delete_column {
            _ if deletes => Deletes::All,
            Some((column, value)) => Deletes::Where { column, value },
            None => Deletes::None,
        };
        if self.is_pinned {
            return Err(usage(py, "this table was opened at a version; open it without one to change it"));
        }
        let batches = Plain::new(source.into_reader()?);
        let notes = notes(&self.current(), &batches, &deletes);
        let ingest = StreamIngest {
            batches,
            notes,
            deletes,
            options: IngestOptions { mode, memory: ByteSize(memory) },
            compact,
            counting: Counting::default(),
        };
        let counting = ingest.counting.clone();
        let mut table = self.current();
        let done = wait(py, &counting, progress.as_ref(), move || async move {
            table.refresh().await?;
            let report = ingest.run(&mut table).await?;
            Ok((table, report))
        })?;
        let (table, report) = done.map_err(|error| of_table(py, error))?;
        self.replace(table);
        serde_json::to_string(&report).map_err(|error| crate::errors::failed(py, error.into()))
    }

    /// Deletes the rows that meet a condition with one commit, and returns how many they are and
    /// the version, if any.
    #[pyo3(signature = (condition, params_given=None, memory=None))]
    fn delete(
        &self,
        py: Python<'_>,
        condition: String,
        params_given: Option<Bound<'_, PyDict>>,
        memory: Option<u64>,
    ) -> PyResult<(u64, Option<u64>)> {
        if self.is_pinned {
            return Err(usage(py, "this table was opened at a version; open it without one to change it"));
        }
        let params = params(params_given.as_ref())?;
        let limits =
            QueryLimits { memory: memory.map_or_else(default_memory, ByteSize), ..QueryLimits::default() };
        let mut table = self.current();
        let done = wait(py, &Droppable, None, move || async move {
            let options = IngestOptions::default();
            let committed = table.delete_where(&condition, &params, &limits, &options).await?;
            Ok((table, committed.map(|committed| (committed.rows, committed.version.0))))
        })?;
        let (table, committed) = done.map_err(|error| of_table(py, error))?;
        self.replace(table);
        Ok(committed.map_or((0, None), |(rows, version)| (rows, Some(version))))
    }

    /// The table for the `datafusion` package, which gives the codec of its session.
    fn provider<'py>(&self, py: Python<'py>, session: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyCapsule>> {
        let runtime = runtime(py)?.handle().clone();
        let opened = self.current();
        let table = opened.provider().map_err(|error| of_table(py, error))?;
        let own = opened.session().map_err(|error| of_table(py, error))?;
        let codec = codec(&session)?;
        let provider: Arc<dyn TableProvider> = Arc::new(OwnTable { table, session: own });
        let provider = FFI_TableProvider::new_with_ffi_codec(provider, true, Some(runtime), codec);
        PyCapsule::new_with_value(py, provider, c"datafusion_table_provider")
    }
}

/// Returns the codec of a session, or the one in a capsule.
fn codec(session: &Bound<'_, PyAny>) -> PyResult<FFI_LogicalExtensionCodec> {
    const NAME: &std::ffi::CStr = c"datafusion_logical_extension_codec";
    let getter = "__datafusion_logical_extension_codec__";
    let capsule = match session.hasattr(getter)? {
        true => session.call_method0(getter)?,
        false => session.clone(),
    };
    let pointer =
        capsule.cast::<PyCapsule>()?.pointer_checked(Some(NAME))?.cast::<FFI_LogicalExtensionCodec>();
    // SAFETY: the capsule has the name that the datafusion package gives only to such a codec, its
    // caller has checked that the package is of our major version, and `capsule` keeps it alive.
    #[expect(unsafe_code, reason = "a capsule holds a pointer")]
    let codec = unsafe { pointer.as_ref() };
    Ok(codec.clone())
}

/// Returns notes on columns that a source has and the table lacks, or the other way round.
fn notes(table: &Table, batches: &Plain, deletes: &Deletes) -> Vec<String> {
    let schema = batches.schema();
    let given: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let columns: Vec<&str> = table.spec().columns().iter().map(|column| column.name.as_str()).collect();
    let marks = match deletes {
        Deletes::Where { column, .. } => Some(column.as_str()),
        // Only the key counts.
        Deletes::All => return Vec::new(),
        Deletes::None => None,
    };
    let unknown = given.iter().filter(|name| !columns.contains(name) && marks != Some(**name));
    let filled = columns.iter().filter(|name| !given.contains(name));
    let list =
        |names: Vec<&str>, what: &str| (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")));
    let notes = [
        list(unknown.copied().collect(), "columns that the table does not have were left out"),
        list(filled.copied().collect(), "columns that the source does not have are NULL"),
    ];
    notes.into_iter().flatten().collect()
}

/// Rows that an ingest has taken, and how to stop it.
#[derive(Debug, Clone, Default)]
struct Counting {
    rows: Arc<AtomicU64>,
    flag: Flagged,
    interrupt: Arc<Notify>,
}

impl Work for Counting {
    fn stop(&self) -> bool {
        self.interrupt.notify_one();
        self.flag.stop()
    }

    fn progress(&self) -> Option<Progress> {
        let done = self.rows.load(Ordering::Relaxed);
        Some(Progress { done, unit: "rows".to_owned(), share: None, message: String::new() })
    }
}

/// An ingest of the batches of an Arrow object.
struct StreamIngest {
    batches: Plain,
    notes: Vec<String>,
    deletes: Deletes,
    options: IngestOptions,
    compact: bool,
    counting: Counting,
}

impl StreamIngest {
    async fn run(self, table: &mut Table) -> Result<serde_json::Value, TableError> {
        let Self { batches, notes, deletes, options, compact, counting } = self;
        let started = Instant::now();
        let (sender, receiver) = mpsc::channel(WAITING);
        let counted = counting.clone();
        // Batches are made by other libraries, and possibly by Python, which may take its time.
        let producer = Producer::start();
        tokio::task::spawn_blocking(move || {
            send(batches, &sender, &counted);
            drop(producer);
        });
        let batches = stream::unfold(Some(receiver), |receiver| async move {
            let mut receiver = receiver?;
            match receiver.recv().await {
                Some(Sent::Batch(batch)) => Some((Ok(batch), Some(receiver))),
                Some(Sent::Failed(error)) => Some((Err(error), None)),
                Some(Sent::Done) => None,
                None => Some((Err("the source stopped in the middle of its rows".into()), None)),
            }
        });
        let interrupt = Arc::clone(&counting.interrupt);
        let committed = match table.ingest_changes(batches, deletes, &options, interrupt).await {
            Err(TableError::Stream(_)) if counting.flag.is_stopped() => {
                return Err(IngestError::Interrupted.into());
            }
            committed => committed?,
        };
        let partitions = table.placement().partitions();
        let seconds = started.elapsed().as_secs_f64();
        let mut report = IngestReport::of_stream(committed, options.mode, partitions, seconds);
        report.notes = notes;
        let mut compaction = None;
        if compact && report.version.is_some() {
            let options = CompactionOptions { memory: options.memory, ..CompactionOptions::default() };
            // The rows are committed: a failure of the compaction cannot undo that.
            match table.compact(&options, &|_| {}).await {
                Ok(done) => compaction = Some(done).filter(|done| !done.versions.is_empty()),
                Err(error) => {
                    report.notes.push(format!("the rows are committed, but not compacted: {error}"))
                }
            }
        }
        let mut report = serde_json::to_value(&report).unwrap_or_default();
        if let Some(fields) = report.as_object_mut() {
            fields.insert("compaction".to_owned(), serde_json::to_value(&compaction).unwrap_or_default());
        }
        Ok(report)
    }
}

/// What a source gives.
enum Sent {
    Batch(RecordBatch),
    Failed(Box<dyn std::error::Error + Send + Sync>),
    /// All rows were sent. Without it, the source broke off.
    Done,
}

/// Rows that are sent at a time; between them the ingest can be stopped.
const ROWS_AT_A_TIME: usize = 65_536;

/// Sends batches until the ingest ends or is to stop.
fn send(batches: Plain, sender: &mpsc::Sender<Sent>, counting: &Counting) {
    let is_stopped = || counting.flag.is_stopped() || Producer::is_exiting();
    for batch in batches {
        let batch = match batch {
            Ok(_) if is_stopped() => return,
            Ok(batch) => batch,
            Err(error) => {
                let _ = sender.blocking_send(Sent::Failed(error.into()));
                return;
            }
        };
        for start in (0..batch.num_rows()).step_by(ROWS_AT_A_TIME) {
            if is_stopped() {
                return;
            }
            let rows = ROWS_AT_A_TIME.min(batch.num_rows() - start);
            if sender.blocking_send(Sent::Batch(batch.slice(start, rows))).is_err() {
                return;
            }
            counting.rows.fetch_add(rows as u64, Ordering::Relaxed);
        }
    }
    let _ = sender.blocking_send(Sent::Done);
}

/// A thread that may call Python, which must have ended before the interpreter does.
struct Producer;

/// Number of such threads.
static PRODUCERS: AtomicU64 = AtomicU64::new(0);

/// Whether the interpreter ends.
static IS_EXITING: AtomicBool = AtomicBool::new(false);

/// Longest time that the end of the interpreter waits for a source.
const TIME_TO_END: Duration = Duration::from_secs(5);

impl Producer {
    fn start() -> Self {
        PRODUCERS.fetch_add(1, Ordering::SeqCst);
        Self
    }

    fn is_exiting() -> bool {
        IS_EXITING.load(Ordering::Relaxed)
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        PRODUCERS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Stops the ingests whose sources may call Python; to be called before the interpreter ends.
#[pyfunction]
pub(crate) fn stop_sources(py: Python<'_>) {
    IS_EXITING.store(true, Ordering::Relaxed);
    let started = Instant::now();
    py.detach(|| {
        while PRODUCERS.load(Ordering::SeqCst) > 0 && started.elapsed() < TIME_TO_END {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
}
