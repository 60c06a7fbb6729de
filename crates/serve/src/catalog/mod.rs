//! `pg_catalog` and `information_schema`: information about tables for clients.
//!
//! ```text
//! Opened ── objects: tables, columns, keys ── tables: rows of the catalog
//!                                          └─ functions: pg_get_constraintdef(...), ...
//! SQL of a client ── PostgresCompatibilityParser (rewrites) ── DataFusion on these tables
//! ```
//!
//! The rewrites change the meaning of some queries, such as subqueries among the columns of a
//! result. They suit the catalog queries of clients, and are never used for queries on tables.

mod functions;
mod objects;
mod rewrites;
mod tables;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::DataType;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, SchemaProvider, TableProvider};
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::{DataFusionError, ParamValues, ScalarValue};
use datafusion::datasource::MemTable;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::{SessionConfig, SessionContext};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::Statement as Ast;
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::setup_pg_catalog;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use evenkeel_engine::query::{QueryDescription, QueryEnvironment};
use evenkeel_sql::{plan_statement, side_effect};

pub(crate) use self::functions::Caller;
use self::functions::functions;
use self::objects::{Relation, relations};
use self::tables::{DATABASE, DYNAMIC, INFORMATION};
use crate::failure::{Failure, SqlState};
use crate::parameters::Parameter;
use crate::tables::OpenTables;

/// Values of parameters by name.
type Values = HashMap<String, ScalarAndMetadata>;

/// The parts of the catalog that all connections share.
pub(crate) struct Catalog {
    template: SessionContext,
    library: Arc<dyn SchemaProvider>,
    parser: PostgresCompatibilityParser,
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Catalog").finish_non_exhaustive()
    }
}

/// The catalog as one connection sees it.
pub(crate) struct CatalogSession {
    catalog: Arc<Catalog>,
    context: SessionContext,
}

impl Catalog {
    /// Loads the tables that every server of PostgreSQL has.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub(crate) fn new(environment: &QueryEnvironment) -> Result<Self, DataFusionError> {
        let config = SessionConfig::new().with_default_catalog_and_schema(DATABASE, "public");
        let state = SessionStateBuilder::new()
            .with_config(config.with_create_default_catalog_and_schema(true).with_target_partitions(1))
            .with_runtime_env(environment.runtime())
            .with_default_features()
            .build();
        let template = SessionContext::new_with_state(state);
        setup_pg_catalog(&template, DATABASE, EmptyContextProvider).map_err(|error| *error)?;
        let library = template.catalog(DATABASE).and_then(|catalog| catalog.schema("pg_catalog"));
        let missing = || DataFusionError::Internal("pg_catalog is not registered".to_owned());
        let library = library.ok_or_else(missing)?;
        Ok(Self { template, library, parser: PostgresCompatibilityParser::new() })
    }

    /// Opens the catalog for a connection.
    pub(crate) async fn session(
        self: &Arc<Self>,
        opened: &OpenTables,
        caller: Caller,
    ) -> Result<CatalogSession, Failure> {
        let relations = Arc::new(relations(opened).await?);
        // A separate list of catalogs, so that the template stays unchanged.
        let database = Arc::new(MemoryCatalogProvider::new());
        let state = SessionStateBuilder::new_from_existing(self.template.state())
            .with_catalog_list(Arc::new(datafusion::catalog::MemoryCatalogProviderList::new()))
            .build();
        let context = SessionContext::new_with_state(state);
        functions(&relations, &caller).into_iter().for_each(|function| context.register_udf(function));
        let public = datafusion::catalog::MemorySchemaProvider::new();
        database.register_schema("public", Arc::new(public))?;
        let own =
            OwnCatalog { library: Arc::clone(&self.library), relations: Arc::clone(&relations), caller };
        database.register_schema("pg_catalog", Arc::new(own))?;
        database.register_schema("information_schema", Arc::new(InformationSchema { relations }))?;
        context.register_catalog(DATABASE, database);
        Ok(CatalogSession { catalog: Arc::clone(self), context })
    }
}

/// The tables of `pg_catalog`: our own about the served tables, and the library's.
#[derive(Debug)]
struct OwnCatalog {
    library: Arc<dyn SchemaProvider>,
    relations: Arc<Vec<Relation>>,
    caller: Caller,
}

#[async_trait]
impl SchemaProvider for OwnCatalog {
    fn table_names(&self) -> Vec<String> {
        let mut names = self.library.table_names();
        names.extend(DYNAMIC.map(str::to_owned));
        names.sort_unstable();
        names.dedup();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let known = self.library.table(name).await?;
        if !DYNAMIC.contains(&name) {
            return Ok(known);
        }
        let schema = known.map(|table| table.schema());
        let rows = tables::rows(name, schema, &self.relations, &self.caller)?;
        Ok(Some(Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows]])?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        DYNAMIC.contains(&name) || self.library.table_exist(name)
    }
}

/// The tables of `information_schema`.
#[derive(Debug)]
struct InformationSchema {
    relations: Arc<Vec<Relation>>,
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        INFORMATION.map(str::to_owned).to_vec()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if !self.table_exist(name) {
            return Ok(None);
        }
        let rows = tables::information(name, &self.relations)?;
        Ok(Some(Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows]])?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        INFORMATION.contains(&name)
    }
}

impl CatalogSession {
    /// Plans a query. `values` gives its parameters their values, which may be NULL.
    async fn plan(
        &self,
        sql: &str,
        values: &(dyn Fn(&LogicalPlan) -> Result<Values, DataFusionError> + Sync),
    ) -> Result<Arc<dyn ExecutionPlan>, Failure> {
        let parsed = Parser::parse_sql(&PostgreSqlDialect {}, sql).map_err(DataFusionError::from)?;
        let first = |parsed: Vec<Ast>| {
            let first = parsed.into_iter().next();
            first.ok_or_else(|| Failure::new(SqlState::SYNTAX, "there is no statement"))
        };
        let statement = first(parsed)?;
        let mut whole = statement.clone();
        rewrites::give_subqueries_one_row(&mut whole);
        let failure = match self.plan_statement(self.catalog.parser.rewrite(whole), values).await {
            Ok(plan) => return Ok(plan),
            Err(failure) => failure,
        };
        // Without correlated subqueries, which describe features that no table here has: defaults,
        // identities and collations of columns.
        let mut reduced = statement;
        rewrites::drop_subqueries_of_cases(&mut reduced);
        if let Ok(plan) = self.plan_statement(self.catalog.parser.rewrite(reduced), values).await {
            return Ok(plan);
        }
        // The library knows some questions of clients as a whole, and answers others in their
        // place.
        let known = self.catalog.parser.parse(sql).map_err(DataFusionError::from)?;
        self.plan_statement(first(known)?, values).await.map_err(|_| failure)
    }

    async fn plan_statement(
        &self,
        mut statement: Ast,
        values: &(dyn Fn(&LogicalPlan) -> Result<Values, DataFusionError> + Sync),
    ) -> Result<Arc<dyn ExecutionPlan>, Failure> {
        rewrites::complete(&mut statement);
        let state = self.context.state();
        let plan = plan_statement(&state, Statement::Statement(Box::new(statement))).await?;
        if let Some(action) = side_effect(&plan)? {
            return Err(Failure::new(
                SqlState::READ_ONLY,
                format!("only queries are run; this would {action}"),
            ));
        }
        let values = values(&plan)?;
        let plan = if values.is_empty() { plan } else { plan.with_param_values(ParamValues::Map(values))? };
        Ok(state.create_physical_plan(&plan).await?)
    }

    /// Returns the parameters and the columns of a query.
    pub(crate) async fn describe(
        &self,
        sql: &str,
        types: &HashMap<String, DataType>,
    ) -> Result<QueryDescription, Failure> {
        let lists = rewrites::list_parameters(sql);
        let parameters = Mutex::new(BTreeMap::new());
        let values = |plan: &LogicalPlan| {
            let mut values = Values::new();
            let mut parameter_types = BTreeMap::new();
            for (placeholder, inferred) in plan.get_parameter_types()? {
                let name = placeholder.trim_start_matches('$').to_owned();
                let list = lists.get(&name).map(|element| DataType::List(Arc::new(element.clone())));
                let inferred = list.or(inferred);
                let known = types.get(&name).or(inferred.as_ref()).unwrap_or(&DataType::Utf8).clone();
                values.insert(name.clone(), ScalarValue::try_from(&known)?.into());
                parameter_types.insert(name, Some(known));
            }
            *parameters.lock().unwrap_or_else(PoisonError::into_inner) = parameter_types;
            Ok(values)
        };
        let schema = self.plan(sql, &values).await?.schema();
        let parameters = parameters.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(QueryDescription { parameters, casts: BTreeMap::new(), schema })
    }

    /// Runs a query.
    pub(crate) async fn query(
        &self,
        sql: &str,
        parameters: &[Option<Parameter>],
    ) -> Result<SendableRecordBatchStream, Failure> {
        let values = |_: &LogicalPlan| {
            let value = |(number, parameter): (usize, &Option<Parameter>)| {
                let value = match parameter.as_ref()? {
                    Parameter::Text(text) => ScalarValue::Utf8(Some(text.clone())),
                    Parameter::Value(value) => value.clone(),
                };
                Some((number.to_string(), value.into()))
            };
            Ok((1..).zip(parameters).filter_map(value).collect())
        };
        let plan = self.plan(sql, &values).await?;
        Ok(execute_stream(plan, self.context.task_ctx())?)
    }
}
