//! SQL on tables, with their system tables and parameters.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::common::{ScalarValue, TableReference};
use datafusion::dataframe::DataFrame;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;

use evenkeel_model::note::Note;

use crate::query::computed_once::CtesComputedOnce;
use crate::query::error::QueryError;
use crate::query::limits::watch::Watch;
use crate::query::local_joins::{JoinSummary, Joins};
use crate::query::optimization::single_pass::with_passes_for;
use crate::query::scan::export_table::ExportTable;
use crate::query::scan::named_table::NamedTable;
use crate::query::scan::provider::SnapshotTable;
use crate::query::scan::scan_summary::ScanSummary;
use crate::query::session::catalog::register_tables;
use crate::query::session::explanation::Explanation;
use crate::query::session::newest_time::newest_time;
use crate::query::session::parsing::parse_query;
use crate::query::session::progress::QueryProgress;
use crate::query::session::session_state::{corrected_context, local_state};
use crate::query::session::stoppable::Consumer;
use crate::query::session::tasks::{plan_in_thread, run_in_task};
use evenkeel_sql::{
    NOW, Params, casts_of, list_parameters, mark_repeated_ctes, parameters_of, plan_statement,
    read_times_in_microseconds, side_effect, with_elements,
};

/// A DataFusion session with tables and their system tables `sys.partition_stats` and
/// `sys.primary_index_portion_stats` (also `"events/.sys/partition_stats"` and so on, as in YDB). A
/// single table is available as `t` and under its own name. If there are several, the tables of
/// schema `sys` have their names in a column `table`.
#[derive(Clone)]
pub struct TableSession {
    context: SessionContext,
    tables: Vec<NamedTable>,
    exports: Vec<Arc<ExportTable>>,
    /// Names that a query can read from.
    names: Vec<String>,
    /// Time limit of a query; `None` for no limit.
    timeout: Option<Duration>,
    /// Joins of the last query that was planned.
    joins: Joins,
}

/// The result of a query, batch by batch.
pub struct QueryResult {
    /// Columns of the result.
    pub schema: SchemaRef,
    /// The rows.
    pub batches: SendableRecordBatchStream,
    /// Progress of the query; `None` if it runs elsewhere.
    pub progress: Option<QueryProgress>,
}

/// The description of a query, available before it runs.
#[derive(Debug, Clone)]
pub struct QueryDescription {
    /// Parameters by name, without `$`, with their types if the query determines them.
    pub parameters: BTreeMap<String, Option<DataType>>,
    /// Types that parameters are cast to, as in `$1::int`.
    pub casts: BTreeMap<String, DataType>,
    /// Columns of the result.
    pub schema: SchemaRef,
}

impl fmt::Debug for TableSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSession").field("names", &self.names).finish_non_exhaustive()
    }
}

impl fmt::Debug for QueryResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryResult").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl TableSession {
    /// Creates a session with one table in an environment that several sessions share: file footers
    /// read by one session are not read again by the others. Names of tables and columns are
    /// case-sensitive, as in YQL.
    ///
    /// # Errors
    /// [`QueryError`] if a table cannot be registered.
    pub(crate) fn on(table: Arc<SnapshotTable>, runtime: Arc<RuntimeEnv>) -> Result<Self, QueryError> {
        Self::on_all(vec![NamedTable::alone(table)], runtime)
    }

    /// Like [`TableSession::on`], with several tables.
    pub(in crate::query) fn on_all(
        tables: Vec<NamedTable>,
        runtime: Arc<RuntimeEnv>,
    ) -> Result<Self, QueryError> {
        let joins = Joins::default();
        let state = local_state(&tables, runtime, &joins);
        let scanned = |named: NamedTable| {
            let provider: Arc<dyn TableProvider> = Arc::clone(&named.table) as _;
            (named, provider)
        };
        let session = Self::with_providers(state, tables.into_iter().map(scanned).collect())?;
        session.context.add_analyzer_rule(Arc::new(CtesComputedOnce));
        Ok(Self { joins, ..session })
    }

    /// Creates a session in a given state. Queries scan `provider` as the table.
    pub fn with_provider(
        state: SessionState,
        table: Arc<SnapshotTable>,
        provider: Arc<dyn TableProvider>,
    ) -> Result<Self, QueryError> {
        Self::with_providers(state, vec![(NamedTable::alone(table), provider)])
    }

    fn with_providers(
        state: SessionState,
        tables: Vec<(NamedTable, Arc<dyn TableProvider>)>,
    ) -> Result<Self, QueryError> {
        let context = corrected_context(state);
        let names = register_tables(&context, &tables)?;
        let tables = tables.into_iter().map(|(named, _)| named).collect();
        let (exports, joins) = (Vec::new(), Joins::default());
        Ok(Self { context, tables, exports, names, timeout: None, joins })
    }

    /// Returns the session with a limit on the time of each query, from its planning to its last
    /// row.
    #[must_use]
    pub fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// Makes the errors of this session, and of sessions derived from it, state their place in the
    /// SQL.
    pub(in crate::query) fn locate_errors(&self) {
        let state = self.context.state_ref();
        state.write().config_mut().options_mut().sql_parser.collect_spans = true;
    }

    /// Returns the session with exports that queries can join, by name.
    ///
    /// # Errors
    /// [`QueryError`] if a name is taken.
    pub(in crate::query) fn with_exports(
        mut self,
        exports: &[(String, Arc<ExportTable>)],
    ) -> Result<Self, QueryError> {
        for (name, export) in exports {
            self.context.register_table(TableReference::bare(name.clone()), Arc::clone(export) as _)?;
        }
        self.names.splice(0..0, exports.iter().map(|(name, _)| name.clone()));
        self.exports = exports.iter().map(|(_, export)| Arc::clone(export)).collect();
        Ok(self)
    }

    /// Returns notes on the columns of exports that queries have left out or filled in so far.
    #[must_use]
    pub fn notes(&self) -> Vec<Note> {
        self.exports.iter().flat_map(|export| export.notes()).collect()
    }

    /// Returns the physical plan of one query.
    pub async fn physical_plan(
        &self,
        sql: &str,
        params: &Params,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        let (session, sql, params) = (self.clone(), sql.to_owned(), params.clone());
        let plan = async move { Ok(session.plan(&sql, &params).await?.create_physical_plan().await?) };
        plan_in_thread(None, &self.memory_pool(), plan).await
    }

    /// Returns the names that queries can read from: tables, exports and system tables.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the columns of a table or an export.
    ///
    /// # Errors
    /// [`QueryError`] if there is no such name.
    pub async fn schema_of(&self, name: &str) -> Result<SchemaRef, QueryError> {
        Ok(self.context.table_provider(TableReference::bare(name)).await?.schema())
    }

    /// Returns the columns of a system table, such as `partition_stats`.
    ///
    /// # Errors
    /// [`QueryError`] if there is no such name.
    pub async fn system_schema_of(&self, name: &str) -> Result<SchemaRef, QueryError> {
        Ok(self.context.table_provider(TableReference::partial("sys", name)).await?.schema())
    }

    /// Returns the names of the functions that queries can call, sorted.
    #[must_use]
    pub fn function_names(&self) -> Vec<String> {
        let state = self.context.state();
        let scalar = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let names: BTreeSet<&String> = scalar.chain(state.window_functions().keys()).collect();
        names.into_iter().cloned().collect()
    }

    /// Underlying DataFusion session.
    #[must_use]
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Runs one query in a separate task: on a runtime with several threads, the caller is free to
    /// stop waiting, whatever the query does.
    ///
    /// # Errors
    /// [`QueryError`] if the SQL is not a query, its parameters do not fit, or it fails or exceeds
    /// a limit.
    pub async fn query(&self, sql: &str, params: &Params) -> Result<QueryResult, QueryError> {
        let watch = self.watch();
        let (session, sql, params) = (self.clone(), sql.to_owned(), params.clone());
        let mut consumer = Consumer::default();
        let start = async move {
            let frame = session.plan(&sql, &params).await?;
            let _ = (session.take_scans(), session.take_joins());
            let context = Arc::new(frame.task_ctx());
            let plan = consumer.stoppable(frame.create_physical_plan().await?)?;
            let scans = session.take_scans();
            let batches = execute_stream(Arc::clone(&plan), context)?;
            Ok((batches, QueryProgress::new(plan, &scans), consumer))
        };
        let (batches, progress, consumer) =
            plan_in_thread(watch.as_ref(), &self.memory_pool(), start).await?;
        let batches = run_in_task(batches, watch, self.memory_pool(), consumer);
        Ok(QueryResult { schema: batches.schema(), batches, progress: Some(progress) })
    }

    /// Runs one query and returns all its rows.
    ///
    /// # Errors
    /// As for [`TableSession::query`].
    pub async fn collect(&self, sql: &str, params: &Params) -> Result<Vec<RecordBatch>, QueryError> {
        Ok(self.query(sql, params).await?.batches.try_collect().await?)
    }

    /// Returns the parameters of a query and the columns of its result, given the types of some
    /// parameters. Nothing is run.
    ///
    /// # Errors
    /// [`QueryError`] if the SQL is not a query.
    pub async fn describe(
        &self,
        sql: &str,
        types: &HashMap<String, DataType>,
    ) -> Result<QueryDescription, QueryError> {
        let (session, sql, types) = (self.clone(), sql.to_owned(), types.clone());
        let describe = async move {
            let state = session.context.state();
            let (plan, lists) = session.plan_with_parameters(&state, &sql).await?;
            let mut parameters = parameters_of(&plan)?;
            let casts = casts_of(&plan)?;
            let mut values = Params::default();
            for (placeholder, data_type) in &parameters {
                let name = placeholder.trim_start_matches('$');
                let declared = types.get(name).filter(|_| !lists.contains(name));
                let data_type = declared.or(data_type.as_ref()).unwrap_or(&DataType::Utf8);
                values = values.with_value(name, ScalarValue::try_from(data_type)?);
            }
            let bound = values.bind(&parameters, None)?;
            let plan = if parameters.is_empty() { plan } else { plan.with_param_values(bound)? };
            for (placeholder, data_type) in &mut parameters {
                if lists.contains(placeholder.trim_start_matches('$')) {
                    let element = data_type.take().unwrap_or(DataType::Utf8);
                    *data_type = Some(DataType::List(Arc::new(Field::new_list_field(element, true))));
                }
            }
            let frame = session.context.execute_logical_plan(plan).await?;
            let schema = frame.create_physical_plan().await?.schema();
            let _ = (session.take_scans(), session.take_joins());
            let named = |(name, data_type): (String, _)| (name.trim_start_matches('$').to_owned(), data_type);
            let casts = casts.into_iter().map(|(name, cast)| (name.trim_start_matches('$').to_owned(), cast));
            let parameters = parameters.into_iter().map(named).collect();
            Ok(QueryDescription { parameters, casts: casts.collect(), schema })
        };
        plan_in_thread(self.watch().as_ref(), &self.memory_pool(), describe).await
    }

    /// Returns the plan of a query, and the data that it would read. Nothing is run.
    ///
    /// # Errors
    /// As for [`TableSession::query`].
    pub async fn explain(&self, sql: &str, params: &Params) -> Result<Explanation, QueryError> {
        let (session, sql, params) = (self.clone(), sql.to_owned(), params.clone());
        let explain = async move {
            let frame = session.plan(&sql, &params).await?;
            let _ = (session.take_scans(), session.take_joins());
            let plan = frame.create_physical_plan().await?;
            let text = displayable(plan.as_ref()).indent(false).to_string();
            Ok(Explanation { scans: session.take_scans(), joins: session.take_joins(), plan: text })
        };
        plan_in_thread(self.watch().as_ref(), &self.memory_pool(), explain).await
    }

    /// Returns the summaries of the scans planned so far, and forgets them.
    fn take_scans(&self) -> Vec<ScanSummary> {
        let scans = |named: &NamedTable| {
            let named = named.clone();
            named
                .table
                .take_scans()
                .into_iter()
                .map(move |scan| ScanSummary { table: named.name().to_owned(), ..scan })
        };
        self.tables.iter().flat_map(scans).collect()
    }

    /// Returns the summaries of the joins planned so far, and forgets them.
    fn take_joins(&self) -> Vec<JoinSummary> {
        std::mem::take(&mut *self.joins.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn memory_pool(&self) -> Arc<dyn MemoryPool> {
        Arc::clone(&self.context.runtime_env().memory_pool)
    }

    /// Starts to watch the time of a query, if it is limited.
    fn watch(&self) -> Option<Watch> {
        self.timeout.map(|timeout| Watch::start(Some(timeout), None, None))
    }

    async fn plan(&self, sql: &str, params: &Params) -> Result<DataFrame, QueryError> {
        let state = self.context.state();
        let (plan, _) = self.plan_with_parameters(&state, sql).await?;
        let types = parameters_of(&plan)?;
        let needs_now = types.contains_key(&format!("${NOW}")) && !params.has(NOW);
        let now = if needs_now { newest_time(&self.tables, &self.context).await? } else { None };
        let bound = params.bind(&types, now)?;
        let plan = if types.is_empty() { plan } else { with_elements(plan.with_param_values(bound)?)? };
        Ok(DataFrame::new(with_passes_for(&plan, state), plan))
    }

    /// Plans a query whose parameters have no values yet. Also returns the names of parameters that
    /// hold lists.
    async fn plan_with_parameters(
        &self,
        state: &SessionState,
        sql: &str,
    ) -> Result<(LogicalPlan, BTreeSet<String>), QueryError> {
        let mut statement = parse_query(&self.context, state, &self.names, sql)?;
        let lists = list_parameters(&mut statement);
        mark_repeated_ctes(&mut statement);
        read_times_in_microseconds(&mut statement);
        let plan = plan_statement(state, statement).await?;
        if let Some(action) = side_effect(&plan)? {
            return Err(QueryError::NotAQuery { action });
        }
        if plan.schema().fields().is_empty() {
            return Err(QueryError::NoColumn);
        }
        Ok((plan, lists))
    }
}

#[cfg(test)]
#[path = "table_session_tests.rs"]
mod tests;
