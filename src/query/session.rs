//! SQL on one table, with its system tables and parameters.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, TableProvider};
use datafusion::common::{ScalarValue, TableReference};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::MemTable;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::execution::{SendableRecordBatchStream, SessionState, SessionStateBuilder};
use datafusion::optimizer::Analyzer;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
#[cfg(feature = "cluster")]
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::displayable;
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::{DFParser, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::Statement;
use futures::TryStreamExt;

use crate::query::QueryError;
use crate::query::partition_aware::PartitionAware;
use crate::query::provider::{ScanSummary, SnapshotTable};
use crate::query::pruning::scalar;
use crate::query::system::{partition_stats, portion_stats};
use crate::query::window_frames::FramesWithoutOffsets;
use crate::sql::{NOW, Params, parameters_of, read_times_in_microseconds, side_effect};
use crate::table::KeyValue;

/// The name under which every table goes.
const TABLE_ALIAS: &str = "t";

/// A DataFusion session with one table, called `t` and by its own name, and its system tables `sys.partition_stats` and
/// `sys.primary_index_portion_stats` (also `"t/.sys/partition_stats"` and so on, as in YDB).
pub struct TableSession {
    context: SessionContext,
    table: Arc<SnapshotTable>,
    /// Names that a query can read from.
    tables: Vec<String>,
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

/// Bytes of ends of files that are kept in memory: those of 10,000 portions, about.
const FOOTER_CACHE_BYTES: usize = 256 << 20;

/// An environment for the sessions of a table, which keeps the ends of files that they read.
///
/// # Errors
/// None that a caller can cause.
pub fn shared_runtime() -> Result<Arc<RuntimeEnv>, QueryError> {
    Ok(RuntimeEnvBuilder::new().with_metadata_cache_limit(FOOTER_CACHE_BYTES).build_arc()?)
}

impl TableSession {
    /// A session on a table. Names of tables and columns are case-sensitive, as in YQL.
    ///
    /// # Errors
    /// [`QueryError`] where a table cannot be registered.
    pub fn new(table: Arc<SnapshotTable>) -> Result<Self, QueryError> {
        Self::on(table, shared_runtime()?)
    }

    /// The same in an environment that several sessions share: what one reads of the ends of files, the others need not read
    /// again.
    ///
    /// # Errors
    /// As for [`TableSession::new`].
    pub fn on(table: Arc<SnapshotTable>, runtime: Arc<RuntimeEnv>) -> Result<Self, QueryError> {
        let mut config = SessionConfig::new().with_information_schema(true);
        config.options_mut().sql_parser.enable_ident_normalization = false;
        config.options_mut().execution.parquet.pushdown_filters = true;
        let mut rules = PhysicalOptimizer::new().rules;
        rules.insert(0, Arc::new(PartitionAware::new(vec![Arc::clone(&table)])));
        let state = SessionStateBuilder::new()
            .with_config(config)
            .with_runtime_env(runtime)
            .with_default_features()
            .with_physical_optimizer_rules(rules)
            .build();
        let provider = Arc::clone(&table);
        Self::with_provider(state, table, provider)
    }

    /// The same in a given state. `provider` is what queries scan as the table.
    pub(crate) fn with_provider(
        state: SessionState,
        table: Arc<SnapshotTable>,
        provider: Arc<dyn TableProvider>,
    ) -> Result<Self, QueryError> {
        let mut rules = Analyzer::new().rules;
        rules.insert(0, Arc::new(FramesWithoutOffsets));
        let state = SessionStateBuilder::new_from_existing(state).with_analyzer_rules(rules).build();
        let context = SessionContext::new_with_state(state);
        crate::query::functions::functions().for_each(|function| context.register_udf(function));
        crate::query::float_extremes::aggregates().for_each(|function| context.register_udaf(function));
        let tables = register_tables(&context, &table, &provider)?;
        Ok(Self { context, table, tables })
    }

    /// The physical plan of one query.
    #[cfg(feature = "cluster")]
    pub(crate) async fn physical_plan(
        &self,
        sql: &str,
        params: &Params,
    ) -> Result<Arc<dyn ExecutionPlan>, QueryError> {
        Ok(self.plan(sql, params).await?.create_physical_plan().await?)
    }

    /// The DataFusion session below.
    #[must_use]
    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// Runs one query.
    ///
    /// # Errors
    /// [`QueryError`] where the SQL is not a query, its parameters do not fit or it fails.
    pub async fn query(&self, sql: &str, params: &Params) -> Result<QueryResult, QueryError> {
        let batches = self.plan(sql, params).await?.execute_stream().await?;
        Ok(QueryResult { schema: batches.schema(), batches })
    }

    /// Runs one query and gives all its rows.
    ///
    /// # Errors
    /// As for [`TableSession::query`].
    pub async fn collect(&self, sql: &str, params: &Params) -> Result<Vec<RecordBatch>, QueryError> {
        Ok(self.query(sql, params).await?.batches.try_collect().await?)
    }

    /// What a query would read, and its physical plan as text. Nothing is run.
    ///
    /// # Errors
    /// As for [`TableSession::query`].
    pub async fn explain(
        &self,
        sql: &str,
        params: &Params,
    ) -> Result<(Vec<ScanSummary>, String), QueryError> {
        let frame = self.plan(sql, params).await?;
        let _ = self.table.take_scans();
        let plan = frame.create_physical_plan().await?;
        Ok((self.table.take_scans(), displayable(plan.as_ref()).indent(false).to_string()))
    }

    async fn plan(&self, sql: &str, params: &Params) -> Result<DataFrame, QueryError> {
        if sql.trim().is_empty() {
            return Err(QueryError::Empty);
        }
        let state = self.context.state();
        let mut statements = DFParser::parse_sql(sql)?;
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

    /// The newest point in time in the table; NULL where it has no rows, none where it has no times.
    async fn newest_time(&self) -> Result<Option<ScalarValue>, QueryError> {
        let snapshot = self.table.snapshot();
        let spec = snapshot.spec();
        let Some(column) = spec.time_column() else { return Ok(None) };
        let micros = DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, None);
        let in_key = spec.primary_key().iter().position(|index| *index == column);
        if let Some(position) = in_key {
            // The newest row of a key has the same key as the rows it replaced: the ranges are exact.
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

/// What a statement that names tables which need not exist would do; none of others, whose plan tells.
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

/// Registers the table and its system tables; gives the names that people use.
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
