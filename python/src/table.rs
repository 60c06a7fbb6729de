//! A handle of a table.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::catalog::TableProvider;
use datafusion_ffi::proto::logical_extension_codec::FFI_LogicalExtensionCodec;
use datafusion_ffi::table_provider::FFI_TableProvider;
use evenkeel::Table;
use evenkeel::ingest::{IngestMode, IngestOptions};
use evenkeel::query::{MIN_QUERY_MEMORY, QueryLimits, default_memory};
use evenkeel::source::Deletes;
use evenkeel::table::{ColumnType, write_create_table};
use evenkeel::units::{ByteSize, Version};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3_arrow::input::AnyRecordBatch;

use crate::errors::{of_query, of_table, usage};
use crate::ingest::{Counting, StreamIngest, notes};
use crate::params::params;
use crate::provider::OwnTable;
use crate::query::Rows;
use crate::source::Plain;
use crate::waiting::{Droppable, runtime, wait};

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

    /// Moves to a later version; another thread may be ahead.
    fn move_to(&self, table: Table) {
        let mut current = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if current.snapshot().version() <= table.snapshot().version() {
            *current = table;
        }
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
        self.move_to(refreshed.map_err(|error| of_table(py, error))?);
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
        memory: Option<&str>,
        timeout: Option<f64>,
    ) -> PyResult<Rows> {
        let params = params(params_given.as_ref())?;
        let timeout =
            timeout.map(Duration::try_from_secs_f64).transpose().map_err(|error| usage(py, error))?;
        let memory = memory.map_or_else(|| Ok(default_memory()), |text| size(py, text))?;
        if memory < MIN_QUERY_MEMORY {
            let least = MIN_QUERY_MEMORY;
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
        memory: &str,
        compact: bool,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        if deletes && delete_column.is_some() {
            return Err(usage(py, "deletes makes all rows delete; delete_column marks some"));
        }
        let mode = match (mode, deletes) {
            ("upsert", true) => IngestMode::Delete,
            ("upsert", false) => IngestMode::Upsert,
            ("insert", false) => IngestMode::Insert,
            ("insert", true) => return Err(usage(py, "rows that delete are not inserted; leave mode out")),
            (other, _) => return Err(usage(py, format!("mode is 'upsert' or 'insert', not '{other}'"))),
        };
        let deletes = match delete_column {
            _ if deletes => Deletes::All,
            Some((column, value)) => Deletes::Where { column, value },
            None => Deletes::None,
        };
        let batches = Plain::new(source.into_reader()?);
        let notes = notes(&self.current(), &batches, &deletes);
        let ingest = StreamIngest {
            batches,
            notes,
            deletes,
            options: IngestOptions { mode, memory: size(py, memory)? },
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
        self.move_to(table);
        serde_json::to_string(&report).map_err(|error| crate::errors::failed(py, error.into()))
    }

    /// Deletes the rows that meet a condition with one commit, and returns how many they are and
    /// the version, if any.
    #[pyo3(signature = (condition, params_given=None))]
    fn delete(
        &self,
        py: Python<'_>,
        condition: String,
        params_given: Option<Bound<'_, PyDict>>,
    ) -> PyResult<(u64, Option<u64>)> {
        let params = params(params_given.as_ref())?;
        let limits = QueryLimits::default();
        let mut table = self.current();
        let done = wait(py, &Droppable, None, move || async move {
            let options = IngestOptions::default();
            let committed = table.delete_where(&condition, &params, &limits, &options).await?;
            Ok((table, committed.map(|committed| (committed.rows, committed.version.0))))
        })?;
        let (table, committed) = done.map_err(|error| of_table(py, error))?;
        self.move_to(table);
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

/// Parses a size, such as `2GiB`.
fn size(py: Python<'_>, text: &str) -> PyResult<ByteSize> {
    text.parse().map_err(|error| usage(py, error))
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
