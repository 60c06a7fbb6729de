//! Statements of a query log, planned against the columns of an export. Nothing is read; only the
//! conditions are extracted.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::TableReference;
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::prelude::{SessionConfig, SessionContext};
use thiserror::Error;

use crate::conditions::scan_condition;
use crate::limits::{check_tables, check_text, parse_within_limits};
use crate::messages::plain_message;
use crate::params::{Params, Untyped, parameters_of};
use crate::planning::plan_statement;
use crate::side_effects::side_effect;
use crate::time_literals::read_times_in_microseconds;
use evenkeel_input::source::SourceError;
use evenkeel_model::bounded::{ReadError, SQL, quote_path, read_text};
use evenkeel_model::workload::{PlannedStatement, ScanCondition};

/// Maximum size of all files in a folder, in bytes. All statements are kept in memory, and each is
/// planned.
const LARGEST_WORKLOAD: usize = 4 * SQL.bytes as usize;

/// Error of reading statements.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum StatementsError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(
        "{path}: its files of SQL have more than {} MiB together; name a folder with fewer of them",
        LARGEST_WORKLOAD >> 20, path = quote_path(path)
    )]
    TooLarge { path: PathBuf },
    #[error("{path}: there is no file that ends in .sql", path = quote_path(path))]
    Nothing { path: PathBuf },
    #[error("{}", no_text(path, found))]
    NoText { path: PathBuf, found: Vec<String> },
    #[error("{path}: is not a readable query log: {source}", path = quote_path(path))]
    Log { path: PathBuf, source: Box<SourceError> },
}

/// A statement with a name that shows its origin.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Name of its file without the extension; of several in one file, with their number.
    pub name: String,
    /// Text of the statement.
    pub sql: String,
    /// Number of times that it runs; 1 if that is unknown.
    pub runs: f64,
}

/// Reads the statements of a file, or of all `.sql` files in a folder, in the order of their names.
///
/// # Errors
/// [`StatementsError`] if there are no statements, or one cannot be read.
pub fn read_statements(path: &Path) -> std::result::Result<Vec<Statement>, StatementsError> {
    let error = |source| ReadError::Read { path: path.to_owned(), source };
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in std::fs::read_dir(path).map_err(error)? {
            let file = entry.map_err(error)?.path();
            if file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("sql")) {
                files.push(file);
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut statements = Vec::new();
    let mut left = LARGEST_WORKLOAD;
    for file in files {
        let text = read_text(&file, SQL)?;
        let too_large = || StatementsError::TooLarge { path: path.to_owned() };
        left = left.checked_sub(text.len()).ok_or_else(too_large)?;
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        // A text that cannot be parsed is reported when it is planned, along with the others.
        let Ok(parsed) = parse_within_limits::<DataFusionError>(&without_declarations(&text)) else {
            statements.push(Statement { name: stem, sql: text, runs: 1.0 });
            continue;
        };
        let several = parsed.len() > 1;
        for (number, statement) in (1..).zip(parsed) {
            let name = if several { format!("{stem}#{number}") } else { stem.clone() };
            statements.push(Statement { name, sql: statement.to_string(), runs: 1.0 });
        }
    }
    if statements.is_empty() {
        Err(StatementsError::Nothing { path: path.to_owned() })
    } else {
        Ok(statements)
    }
}

/// Returns the text without the declarations of YQL, `DECLARE $name AS Type;`, which only give
/// types to parameters.
fn without_declarations(text: &str) -> String {
    let is_declaration = |line: &&str| {
        let line = line.trim_start();
        line.get(..8).is_some_and(|word| word.eq_ignore_ascii_case("declare ")) && line.contains(';')
    };
    text.lines().filter(|line| !is_declaration(line)).collect::<Vec<_>>().join("\n")
}

/// Plans statements against a table with the columns of `schema`, whatever name a statement gives
/// its table.
pub async fn plan_statements(
    statements: &[Statement],
    schema: &SchemaRef,
    params: &Params,
) -> Vec<PlannedStatement> {
    let mut planned = Vec::new();
    for statement in statements {
        let mut scans = plan(&statement.sql, schema, params, Untyped::Numbers).await;
        if scans.is_err() {
            // A parameter next to an interval has no inherent type, and is not a number.
            scans = plan(&statement.sql, schema, params, Untyped::Times).await.or(scans);
        }
        let scans = scans.map_err(|error| plain_message(&error));
        planned.push(PlannedStatement { name: statement.name.clone(), runs: statement.runs, scans });
    }
    planned
}

async fn plan(
    sql: &str,
    schema: &SchemaRef,
    params: &Params,
    untyped: Untyped,
) -> Result<Vec<ScanCondition>> {
    let mut config = SessionConfig::new();
    config.options_mut().sql_parser.enable_ident_normalization = false;
    let context = SessionContext::new_with_config(config);
    let probe = Arc::new(Probe { schema: Arc::clone(schema), scans: Mutex::default() });
    let state = context.state();
    check_text(sql)?;
    let mut statement = state.sql_to_statement(sql, &state.config_options().sql_parser.dialect)?;
    check_tables(&statement)?;
    let tables: Vec<TableReference> = state.resolve_table_references(&statement)?;
    let mut names: Vec<&str> = tables.iter().map(TableReference::table).collect();
    names.sort_unstable();
    names.dedup();
    if let [first, second, ..] = names.as_slice() {
        let reason = format!("it reads several tables ({first}, {second}); an export is one");
        return Err(DataFusionError::Plan(reason));
    }
    for table in tables {
        // A schema such as `sys` does not belong to the export.
        if table.schema().is_none() {
            context.register_table(table, Arc::clone(&probe) as _)?;
        }
    }
    let state = context.state();
    read_times_in_microseconds(&mut statement);
    let plan = plan_statement(&state, statement).await?;
    if let Some(action) = side_effect(&plan)? {
        return Err(DataFusionError::Plan(format!("it is not a query: it would {action}")));
    }
    let types = parameters_of(&plan)?;
    let bound = params.only(&types).bind_or_invent(&types, untyped);
    let bound = bound.map_err(|error| DataFusionError::Plan(error.to_string()))?;
    let plan = if types.is_empty() { plan } else { plan.with_param_values(bound)? };
    context.execute_logical_plan(plan).await?.create_physical_plan().await?;
    let scans = std::mem::take(&mut *probe.scans.lock().unwrap_or_else(PoisonError::into_inner));
    scans.iter().map(|filters| scan_condition(&state, schema, filters)).collect()
}

/// A table without rows that records the conditions of its scans.
#[derive(Debug)]
struct Probe {
    schema: SchemaRef,
    scans: Mutex<Vec<Vec<Expr>>>,
}

#[async_trait]
impl TableProvider for Probe {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.scans.lock().unwrap_or_else(PoisonError::into_inner).push(filters.to_vec());
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        Ok(Arc::new(EmptyExec::new(schema)))
    }
}

/// Describes a file in an error.
fn no_text(path: &Path, columns: &[String]) -> String {
    format!(
        "{}: no column has the text of statements; one called QueryText, query, TEXT, statement or sql is expected, and there \
         are: {}",
        quote_path(path),
        evenkeel_model::bounded::names(columns)
    )
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::{DataType, Field, Schema, TimeUnit, UInt64Type};

    use super::*;

    async fn planned(sql: &str) -> std::result::Result<Vec<ScanCondition>, String> {
        let schema = Arc::new(Schema::new(vec![
            Field::new("user", DataType::Utf8, true),
            Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true),
            Field::new("id", DataType::UInt64, true),
        ]));
        let statement = Statement { name: "s".into(), sql: sql.into(), runs: 1.0 };
        plan_statements(&[statement], &schema, &Params::default()).await.remove(0).scans
    }

    #[tokio::test]
    async fn conditions_are_those_that_reach_the_scan() {
        let scans = planned("SELECT count(*) FROM events WHERE user = $u AND id IN (7, 8) AND at > '2026-01-01' AND at <= '2026-01-02'")
            .await
            .unwrap();
        assert_eq!(scans.len(), 1);
        assert_eq!(scans[0].fixed_columns(), ["user", "id"]);
        let mut ids = scans[0].fixed_values("id").unwrap().as_primitive::<UInt64Type>().values().to_vec();
        ids.sort_unstable();
        assert_eq!(ids, [7, 8]);
        assert_eq!(scans[0].time_range("at"), Some((1_767_225_600_000_001, 1_767_312_000_000_000)));
        assert_eq!(scans[0].time_range("user"), None);
    }

    #[tokio::test]
    async fn parameters_that_bound_a_range_do_not_fix_its_column() {
        for sql in [
            "SELECT * FROM t WHERE at BETWEEN $a AND $b",
            "SELECT * FROM t WHERE at >= $x AND at < $y",
            "SELECT * FROM t WHERE at >= $day AND at < $day + INTERVAL '1 day'",
        ] {
            let scans = planned(sql).await.unwrap();
            assert!(scans[0].fixed_columns().is_empty(), "{sql}");
            let (low, high) = scans[0].time_range("at").unwrap();
            assert!(high - low >= 3_599_999_999, "{sql}: {low} {high}");
        }
    }

    #[tokio::test]
    async fn every_scan_of_a_statement_has_its_own_conditions() {
        let scans = planned(
            "SELECT * FROM t WHERE user = 'a' UNION ALL SELECT * FROM t WHERE at >= now() - INTERVAL '1 hour'",
        )
        .await
        .unwrap();
        assert_eq!(scans.len(), 2);
        let mut fixed: Vec<Vec<String>> = scans.iter().map(ScanCondition::fixed_columns).collect();
        fixed.sort();
        assert_eq!(fixed, [Vec::<String>::new(), vec!["user".to_owned()]]);
        assert!(scans.iter().all(|scan| scan.time_range("at").is_none()));
    }

    #[tokio::test]
    async fn a_statement_may_return_a_column_twice() {
        for sql in [
            "SELECT id, id FROM t WHERE id = 7",
            "SELECT *, id FROM t WHERE id = 7",
            "SELECT id + 1, id + 1, (SELECT count(*)), count(*) FROM t WHERE id = 7 GROUP BY id",
        ] {
            let scans = planned(sql).await.unwrap();
            assert_eq!(scans[0].fixed_columns(), ["id"], "{sql}");
        }
    }

    #[tokio::test]
    async fn a_statement_that_cannot_be_planned_gives_the_reason() {
        for (sql, reason) in [
            ("SELECT nope FROM t", "there is no column 'nope'"),
            ("SELECT 1 FROM a JOIN b ON true", "several tables"),
            ("DROP TABLE t", "not a query"),
            ("SELEC", "cannot read the SQL"),
            ("SELECT * FROM sys.partition_stats", "sys.partition_stats"),
        ] {
            let error = planned(sql).await.unwrap_err();
            assert!(error.contains(reason), "{sql}: {error}");
        }
    }

    #[test]
    fn statements_are_named_after_their_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("b.sql"), "-- two\nSELECT 1; SELECT 2;").unwrap();
        std::fs::write(folder.path().join("a.sql"), "SELECT 3").unwrap();
        std::fs::write(folder.path().join("c.txt"), "nothing").unwrap();
        let names: Vec<String> =
            read_statements(folder.path()).unwrap().into_iter().map(|statement| statement.name).collect();
        assert_eq!(names, ["a", "b#1", "b#2"]);
        std::fs::write(folder.path().join("d.sql"), "SELEC").unwrap();
        std::fs::write(folder.path().join("e.sql"), "DECLARE $x AS Utf8;\nSELECT $x").unwrap();
        let read = read_statements(folder.path()).unwrap();
        assert_eq!((read[3].sql.as_str(), read[4].sql.as_str()), ("SELEC", "SELECT $x"));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(read_statements(empty.path()), Err(StatementsError::Nothing { .. })));
    }
}
