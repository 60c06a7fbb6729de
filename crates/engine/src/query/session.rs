//! SQL on one table, with its system tables and parameters.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{ScalarValue, TableReference};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder};
use datafusion::optimizer::Analyzer;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::displayable;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::Statement;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::sync::{mpsc, oneshot};

use crate::query::QueryError;
use crate::query::checked::CheckedArithmetic;
use crate::query::limits::{LimitExceeded, QueryLimits, QueryMemory, Running, Watch, default_memory};
use crate::query::optimizer_rules::corrected_rules;
use crate::query::partition_aware::PartitionAware;
use crate::query::provider::{ScanSummary, SnapshotTable};
use crate::query::pruning::scalar;
use crate::query::system::{partition_stats, portion_stats};
use crate::query::window_frames::FramesWithoutOffsets;
use crate::query::yielding::YieldingJoins;
use crate::sql::limits::parse_within_limits;
use crate::sql::{NOW, Params, parameters_of, read_times_in_microseconds, side_effect};
use evenkeel_model::table::KeyValue;

/// Name under which every table is available.
const TABLE_ALIAS: &str = "t";

/// A DataFusion session with one table, available as `t` and under its own name, and its system
/// tables `sys.partition_stats` and `sys.primary_index_portion_stats` (also
/// `"t/.sys/partition_stats"` and so on, as in YDB).
#[derive(Clone)]
pub struct TableSession {
    context: SessionContext,
    table: Arc<SnapshotTable>,
    /// Names that a query can read from.
    tables: Vec<String>,
    /// Time limit of a query; `None` for no limit.
    timeout: Option<Duration>,
}

/// The result of a query, batch by batch.
pub struct QueryResult {
    /// Columns of the result.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: SendableRecordBatchStream,
}

impl std::fmt::Debug for TableSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableSession").field("table", &self.table).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for QueryResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryResult").field("schema", &self.schema).finish_non_exhaustive()
    }
}

/// Bytes of file footers cached in memory: those of about 10,000 portions.
const FOOTER_CACHE_BYTES: usize = 256 << 20;

/// Stack of a thread that plans, in bytes. Only the used part of it takes memory.
const PLANNING_STACK: usize = 64 << 20;

/// Returns an environment for the sessions of a table, which caches the footers of the files that
/// they read. Their queries share the memory of [`default_memory`].
///
/// # Errors
/// None that a caller can cause.
pub fn shared_runtime() -> Result<Arc<RuntimeEnv>, QueryError> {
    let memory = default_memory();
    // Footers are not reserved: they get a part of the memory that operators leave.
    let cache = FOOTER_CACHE_BYTES.min(memory.as_usize() / 8);
    let runtime = RuntimeEnvBuilder::new().with_metadata_cache_limit(cache);
    Ok(runtime.with_memory_pool(Arc::new(QueryMemory::new(memory))).build_arc()?)
}

/// Derives an environment for one session whose queries have limits of their own.
///
/// # Errors
/// [`QueryError`] if the directory to spill to cannot be used.
pub fn runtime_within(shared: &Arc<RuntimeEnv>, limits: &QueryLimits) -> Result<Arc<RuntimeEnv>, QueryError> {
    let runtime = RuntimeEnvBuilder::from_runtime_env(shared)
        .with_memory_pool(Arc::new(QueryMemory::new(limits.memory)));
    let runtime = match &limits.spill {
        Some(directory) => {
            let mode = DiskManagerMode::Directories(vec![directory.clone()]);
            runtime.with_disk_manager_builder(DiskManagerBuilder::default().with_mode(mode))
        }
        None => runtime,
    };
    Ok(runtime.build_arc()?)
}

impl TableSession {
    /// Creates a session on a table. Names of tables and columns are case-sensitive, as in YQL.
    ///
    /// # Errors
    /// [`QueryError`] if a table cannot be registered.
    pub fn new(table: Arc<SnapshotTable>) -> Result<Self, QueryError> {
        Self::on(table, shared_runtime()?)
    }

    /// Creates a session in an environment that several sessions share: file footers that one
    /// session reads need not be read again by the others.
    ///
    /// # Errors
    /// As for [`TableSession::new`].
    pub fn on(table: Arc<SnapshotTable>, runtime: Arc<RuntimeEnv>) -> Result<Self, QueryError> {
        let mut config = SessionConfig::new().with_information_schema(true);
        config.options_mut().sql_parser.enable_ident_normalization = false;
        config.options_mut().execution.parquet.pushdown_filters = true;
        let mut rules = corrected_rules(PhysicalOptimizer::new().rules);
        rules.insert(0, Arc::new(PartitionAware::new(vec![Arc::clone(&table)])));
        rules.push(Arc::new(YieldingJoins));
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_physical_optimizer_rules(rules)
            .build();
        let provider = Arc::clone(&table);
        Self::with_provider(state, table, provider)
    }

    /// Creates a session in a given state. Queries scan `provider` as the table.
    pub fn with_provider(
        state: SessionState,
        table: Arc<SnapshotTable>,
        provider: Arc<dyn TableProvider>,
    ) -> Result<Self, QueryError> {
        let mut rules = Analyzer::new().rules;
        rules.insert(0, Arc::new(FramesWithoutOffsets));
        let state = SessionStateBuilder::new_from_existing(state).with_analyzer_rules(rules).build();
        let context = SessionContext::new_with_state(state);
        crate::query::functions::functions().for_each(|function| context.register_udf(function));
        crate::query::functions::aggregates().for_each(|function| context.register_udaf(function));
        context.add_analyzer_rule(Arc::new(CheckedArithmetic::new()));
        let tables = register_tables(&context, &table, &provider)?;
        Ok(Self { context, table, tables, timeout: None })
    }

    /// Returns the session with a limit on the time of each query, from its planning to its last
    /// row.
    #[must_use]
    pub fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// Returns the physical plan of one query.
    pub async fn physical_plan(
        &self,
        sql: &str,
        params: &Params,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let plan = |session: Self, sql: String, params: Params| async move {
            Ok(session.plan(&sql, &params).await?.create_physical_plan().await?)
        };
        self.planned(None, plan(self.clone(), sql.to_owned(), params.clone())).await
    }

    /// Underlying DataFusion session.
    #[must_use]
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Runs one query in a task of its own: on a runtime with several threads, the caller is free
    /// to stop waiting, whatever the query does.
    ///
    /// # Errors
    /// [`QueryError`] if the SQL is not a query, its parameters do not fit, or it fails or exceeds
    /// a limit.
    pub async fn query(&self, sql: &str, params: &Params) -> Result<QueryResult, QueryError> {
        let watch = self.timeout.map(|timeout| Watch::start(Some(timeout), None, None));
        let start = |session: Self, sql: String, params: Params| async move {
            Ok(session.plan(&sql, &params).await?.execute_stream().await?)
        };
        let started = start(self.clone(), sql.to_owned(), params.clone());
        let batches = self.planned(watch.as_ref(), started).await?;
        let pool = Arc::clone(&self.context.runtime_env().memory_pool);
        let batches = driven_in_task(batches, watch, pool);
        Ok(QueryResult { schema: batches.schema(), batches })
    }

    /// Plans a query in a thread of its own, with a stack for the deepest SQL: planning is
    /// recursive and does not yield.
    async fn planned<T: Send + 'static>(
        &self,
        watch: Option<&Watch>,
        work: impl Future<Output = Result<T, QueryError>> + Send + 'static,
    ) -> Result<T, QueryError> {
        let runtime = tokio::runtime::Handle::current();
        let running = Running::start();
        let (sender, receiver) = oneshot::channel();
        let plan = move || {
            let done = std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(work)));
            // The receiver is gone if a limit was exceeded.
            let _ = sender.send(done.unwrap_or_else(|panic| Err(of_panic(panic.as_ref()).into())));
            drop(running);
        };
        let thread = std::thread::Builder::new().name("query-plan".to_owned()).stack_size(PLANNING_STACK);
        thread.spawn(plan).map_err(DataFusionError::IoError)?;
        let done = tokio::select! {
            done = receiver => done.unwrap_or_else(|_| Err(of_panic(&"it ended without a plan").into())),
            exceeded = exceeded(watch) => return Err(exceeded.into()),
        };
        done.map_err(|error| match error {
            QueryError::DataFusion(error) => {
                QueryMemory::explained(&self.context.runtime_env().memory_pool, error).into()
            }
            other => other,
        })
    }

    /// Runs one query and returns all its rows.
    ///
    /// # Errors
    /// As for [`TableSession::query`].
    pub async fn collect(&self, sql: &str, params: &Params) -> Result<Vec<RecordBatch>, QueryError> {
        Ok(self.query(sql, params).await?.batches.try_collect().await?)
    }

    /// Returns the scans of a query, and its physical plan as text. Nothing is run.
    ///
    /// # Errors
    /// As for [`TableSession::query`].
    pub async fn explain(
        &self,
        sql: &str,
        params: &Params,
    ) -> Result<(Vec<ScanSummary>, String), QueryError> {
        let watch = self.timeout.map(|timeout| Watch::start(Some(timeout), None, None));
        let explain = |session: Self, sql: String, params: Params| async move {
            let frame = session.plan(&sql, &params).await?;
            let _ = session.table.take_scans();
            let plan = frame.create_physical_plan().await?;
            Ok((session.table.take_scans(), displayable(plan.as_ref()).indent(false).to_string()))
        };
        self.planned(watch.as_ref(), explain(self.clone(), sql.to_owned(), params.clone())).await
    }

    async fn plan(&self, sql: &str, params: &Params) -> Result<DataFrame, QueryError> {
        if sql.trim().is_empty() {
            return Err(QueryError::Empty);
        }
        let state = self.context.state();
        let mut statements = parse_within_limits::<QueryError>(sql)?;
        let count = statements.len();
        let Some(mut statement) = statements.pop_front() else { return Err(QueryError::Empty) };
        if count > 1 {
            return Err(QueryError::Several { count });
        }
        if let Some(action) = change_of(&statement) {
            return Err(QueryError::NotAQuery { action });
        }
        for table in state.resolve_table_references(&statement)? {
            if !self.context.table_exist(table.clone())? {
                return Err(QueryError::UnknownTable {
                    name: table.to_string(),
                    known: self.tables.join(", "),
                });
            }
        }
        read_times_in_microseconds(&mut statement);
        let plan = state.statement_to_plan(statement).await?;
        if let Some(action) = side_effect(&plan)? {
            return Err(QueryError::NotAQuery { action });
        }
        let types = parameters_of(&plan)?;
        let needs_now = types.contains_key(&format!("${NOW}")) && params.get(NOW).is_none();
        let now = if needs_now { self.newest_time().await? } else { None };
        let bound = params.bind(&types, now)?;
        let plan = if types.is_empty() { plan } else { plan.with_param_values(bound)? };
        Ok(self.context.execute_logical_plan(plan).await?)
    }

    /// Newest point in time in the table; NULL if the table has no rows, `None` if it has no times.
    async fn newest_time(&self) -> Result<Option<ScalarValue>, QueryError> {
        let snapshot = self.table.snapshot();
        let spec = snapshot.spec();
        let Some(column) = spec.time_column() else { return Ok(None) };
        let micros = DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None);
        let in_key = spec.primary_key().iter().position(|index| *index == column);
        if let Some(position) = in_key {
            // The newest row of a key has the same key as the rows it superseded: the ranges are
            // exact.
            let maxima = snapshot.portions();
            let newest: Option<KeyValue> = maxima
                .iter()
                .filter_map(|portion| portion.column_ranges.get(position)?.max.first().cloned())
                .max();
            let data_type = spec.schema().field(column).data_type().clone();
            let newest = newest.and_then(|value| scalar(&value, &data_type));
            let newest = newest.map_or_else(|| ScalarValue::try_from(&data_type), Ok)?;
            return Ok(Some(newest.cast_to(&micros)?));
        }
        let name = spec.schema().field(column).name().replace('"', "\"\"");
        let sql = format!("SELECT max(\"{name}\") FROM {TABLE_ALIAS}");
        let batches = self.context.sql(&sql).await?.collect().await?;
        let newest = batches.first().and_then(|batch| batch.columns().first());
        let newest = newest.map(|array| ScalarValue::try_from_array(array, 0)).transpose()?;
        Ok(newest.map(|newest| newest.cast_to(&micros)).transpose()?)
    }
}

/// Completes when a limit of the watch is exceeded.
async fn exceeded(watch: Option<&Watch>) -> LimitExceeded {
    match watch {
        Some(watch) => watch.exceeded().await,
        None => std::future::pending().await,
    }
}

/// Error of a query in which the engine panicked.
fn of_panic(panic: &(dyn Any + Send)) -> DataFusionError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked");
    DataFusionError::Execution(format!("the engine cannot run this query: {text}"))
}

/// The error of a task that ended without a result.
fn of_task(error: tokio::task::JoinError) -> DataFusionError {
    match error.try_into_panic() {
        Ok(panic) => of_panic(panic.as_ref()),
        Err(error) => of_panic(&error.to_string()),
    }
}

/// Returns the batches of a query, computed in a task of their own.
fn driven_in_task(
    mut batches: SendableRecordBatchStream,
    watch: Option<Watch>,
    pool: Arc<dyn MemoryPool>,
) -> SendableRecordBatchStream {
    let schema = batches.schema();
    // Two: one is computed while the other is read.
    let (sender, receiver) = mpsc::channel(2);
    let running = Running::start();
    let task = SpawnedTask::spawn(async move {
        while let Some(batch) = batches.next().await {
            let failed = batch.is_err();
            if sender.send(batch).await.is_err() || failed {
                break;
            }
        }
        drop(running);
    });
    let state = (receiver, Some(task), watch, pool);
    let received = stream::unfold(state, |(mut receiver, mut task, watch, pool)| async move {
        // Nothing follows an error.
        task.as_ref()?;
        let batch = tokio::select! {
            biased;
            exceeded = exceeded(watch.as_ref()) => Some(Err(DataFusionError::External(Box::new(exceeded)))),
            batch = receiver.recv() => batch,
        };
        let batch = match batch {
            Some(batch) => batch,
            None => match task.take()?.join().await {
                Ok(()) => return None,
                Err(error) => Err(of_task(error)),
            },
        };
        let batch = batch.map_err(|error| QueryMemory::explained(&pool, error));
        let task = task.filter(|_| batch.is_ok());
        Some((batch, (receiver, task, watch, pool)))
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, received))
}

/// Change that a statement would make, for kinds of statements that may name nonexistent tables;
/// `None` for all others, whose plans show it.
fn change_of(statement: &ParsedStatement) -> Option<&'static str> {
    let ParsedStatement::Statement(statement) = statement else { return None };
    match statement.as_ref() {
        Statement::CreateTable(_) | Statement::CreateView(_) | Statement::Drop { .. } => {
            Some("change what tables there are")
        }
        Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) => Some("change rows"),
        _ => None,
    }
}

/// Registers the table and its system tables; returns the names that users can query.
fn register_tables(
    context: &SessionContext,
    table: &Arc<SnapshotTable>,
    provider: &Arc<dyn TableProvider>,
) -> Result<Vec<String>, QueryError> {
    let snapshot = table.snapshot();
    let own_name = snapshot.spec().name().to_owned();
    let mut names = vec![TABLE_ALIAS.to_owned()];
    if own_name != TABLE_ALIAS {
        names.push(own_name);
    }
    let system = [
        ("partition_stats", partition_stats(snapshot)),
        ("primary_index_portion_stats", portion_stats(snapshot)),
    ];
    let schema = Arc::new(MemorySchemaProvider::new());
    for (system_name, batch) in system {
        let batch = batch.map_err(datafusion::error::DataFusionError::from)?;
        let view = Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]])?);
        schema.register_table(system_name.to_owned(), view.clone())?;
        for name in &names {
            context
                .register_table(TableReference::bare(format!("{name}/.sys/{system_name}")), view.clone())?;
        }
    }
    for name in &names {
        context.register_table(TableReference::bare(name.clone()), Arc::clone(provider))?;
    }
    let system_names = schema.table_names().into_iter().map(|name| format!("sys.{name}"));
    names.extend(system_names.collect::<std::collections::BTreeSet<_>>());
    if let Some(catalog) = context.catalog("datafusion") {
        catalog.register_schema("sys", schema)?;
    }
    Ok(names)
}
