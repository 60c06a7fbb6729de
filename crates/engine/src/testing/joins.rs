//! Random joins of tables that all have the same columns.

use std::sync::Arc;

use arrow::util::pretty::pretty_format_batches;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::displayable;
use datafusion::prelude::SessionContext;
use rand::RngExt;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;
use tempfile::TempDir;

use crate::testing::{Score, scores};

const COLUMNS: [&str; 3] = ["player", "game", "points"];

/// The tables `big`, `middle` and `small`, in a session of the store and in one of plain
/// DataFusion.
pub(crate) struct Tables {
    pub(crate) ours: SessionContext,
    pub(crate) plain: SessionContext,
    _folders: Vec<TempDir>,
}

/// Creates tables of 240, 40 and 6 rows.
pub(crate) async fn tables() -> Tables {
    let some =
        |rows: i64| -> Vec<Score> { (0..rows).map(|row| (row, row * 7 % 13, row * row % 11 - 3)).collect() };
    let (mut folders, mut opened) = (Vec::new(), Vec::new());
    for rows in [240, 40, 6] {
        let (folder, table) = scores(&[some(rows)]).await;
        folders.push(folder);
        opened.push(table);
    }
    let ours = opened[0].session().unwrap().context().clone();
    let plain = SessionContext::new();
    for (name, table) in ["big", "middle", "small"].into_iter().zip(&opened) {
        for context in [&ours, &plain] {
            context.register_table(name, table.provider().unwrap()).unwrap();
        }
    }
    Tables { ours, plain, _folders: folders }
}

/// Returns the same session with DataFusion's own physical rule in place of the one with its name.
pub(crate) fn with_own_rule(
    context: &SessionContext,
    own: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
) -> SessionContext {
    let state = context.state();
    let rules = state.physical_optimizers().iter();
    let rules = rules.map(|rule| Arc::clone(if rule.name() == own.name() { &own } else { rule })).collect();
    let state = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(rules);
    SessionContext::new_with_state(state.build())
}

/// Returns the same session without one of its physical rules.
pub(crate) fn without_rule(context: &SessionContext, name: &str) -> SessionContext {
    let state = context.state();
    let others = state.physical_optimizers().iter().filter(|rule| rule.name() != name).cloned().collect();
    let state = SessionStateBuilder::new_from_existing(state).with_physical_optimizer_rules(others);
    SessionContext::new_with_state(state.build())
}

pub(crate) async fn answer(context: &SessionContext, sql: &str) -> String {
    let batches = context.sql(sql).await.unwrap().collect().await;
    pretty_format_batches(&batches.unwrap_or_else(|error| panic!("{sql}: {error}"))).unwrap().to_string()
}

pub(crate) async fn plan(context: &SessionContext, sql: &str) -> String {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    displayable(plan.as_ref()).indent(false).to_string()
}

/// Names of the columns of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Names {
    /// As in the tables, which share them.
    Shared,
    /// Each by a name that no other has.
    Distinct,
}

/// A column of a table, which has a number within the statement.
type Column = (usize, &'static str);

/// A join of two to five tables, with conditions on one or two of them.
pub(crate) struct Statement {
    tables: Vec<&'static str>,
    joins: Vec<Join>,
    conditions: Vec<Condition>,
    /// A table below a UNION, with the columns in another order.
    union: Option<(&'static str, [&'static str; 3])>,
    limit: Option<usize>,
    order: Column,
}

struct Join {
    kind: &'static str,
    keys: (Column, Column),
    condition: Option<Condition>,
}

enum Condition {
    Less(Column, i64),
    NullOrGreater(Column, Column),
    Coalesced(Column, Column),
    Distinct(Column, Column),
    In(Column, &'static str, &'static str),
    Exists(Column, &'static str, &'static str),
}

impl Statement {
    pub(crate) fn new(random: &mut ChaCha8Rng) -> Self {
        let count = random.random_range(2..=5);
        let mut tables = vec![pick(random, &["big", "middle", "small"])];
        let mut joins = Vec::new();
        for at in 1..count {
            let choice: &[_] =
                if at == 1 { &["big", "middle", "small"] } else { &["middle", "small", "small"] };
            tables.push(pick(random, choice));
            let other = random.random_range(0..at);
            let keys = ((other, pick(random, &COLUMNS[..2])), (at, pick(random, &COLUMNS[..2])));
            let kind = pick(random, &["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
            let condition = (kind != "FULL JOIN" && random.random_bool(0.2))
                .then(|| Condition::Distinct(column(random, at + 1), (at, pick(random, &COLUMNS))));
            joins.push(Join { kind, keys, condition });
        }
        let conditions = (0..random.random_range(0..3)).map(|_| Condition::new(random, count)).collect();
        let orders =
            [["player", "game", "points"], ["points", "player", "game"], ["game", "points", "player"]];
        let union = random.random_bool(0.2).then(|| (pick(random, &["big", "small"]), pick(random, &orders)));
        let limit = random.random_bool(0.5).then(|| random.random_range(1..8));
        Self { tables, joins, conditions, union, limit, order: column(random, count) }
    }

    /// Mostly inner joins, of tables with their own conditions.
    pub(crate) fn with_inner_joins(random: &mut ChaCha8Rng) -> Self {
        let mut statement = Self::new(random);
        for join in &mut statement.joins {
            join.kind = if random.random_bool(0.1) { "LEFT JOIN" } else { "JOIN" };
        }
        for at in 0..statement.tables.len() {
            if random.random_bool(0.5) {
                let selects = Condition::Less((at, pick(random, &COLUMNS)), random.random_range(0..9));
                statement.conditions.push(selects);
            }
        }
        statement
    }

    /// Returns the statement, which either sorts and limits all rows or aggregates them.
    pub(crate) fn sql(&self, names: Names) -> String {
        let table = |at: usize| self.table(at, names);
        let mut from = table(0);
        for (at, join) in self.joins.iter().enumerate() {
            let (left, right) = (name(join.keys.0, names), name(join.keys.1, names));
            let also =
                join.condition.as_ref().map_or(String::new(), |also| format!(" AND {}", also.sql(names)));
            from.push_str(&format!(" {} {} ON {left} = {right}{also}", join.kind, table(at + 1)));
        }
        let conditions: Vec<_> =
            self.conditions.iter().map(|condition| format!("({})", condition.sql(names))).collect();
        let conditions = if conditions.is_empty() { "true".to_owned() } else { conditions.join(" AND ") };
        let columns = (0..self.tables.len()).flat_map(|at| COLUMNS.map(|column| name((at, column), names)));
        match self.limit {
            Some(limit) => {
                let columns: Vec<_> = columns.collect();
                let (listed, order) = (columns.join(", "), name(self.order, names));
                let aliased: Vec<_> =
                    columns.iter().zip(0..).map(|(name, at)| format!("{name} AS c{at}")).collect();
                format!(
                    "SELECT {} FROM {from} WHERE {conditions} ORDER BY {order}, {listed} LIMIT {limit}",
                    aliased.join(", ")
                )
            }
            None => {
                let sums: Vec<_> =
                    columns.zip(0..).map(|(name, at)| format!("sum({name}) AS s{at}")).collect();
                format!("SELECT count(*) AS n, {} FROM {from} WHERE {conditions}", sums.join(", "))
            }
        }
    }

    fn table(&self, at: usize, names: Names) -> String {
        let listed = |columns: [&str; 3]| match names {
            Names::Shared => columns.join(", "),
            Names::Distinct => {
                let pairs = columns.iter().zip(COLUMNS);
                pairs
                    .map(|(column, output)| format!("{column} AS {output}{at}"))
                    .collect::<Vec<_>>()
                    .join(", ")
            }
        };
        let table = self.tables[at];
        match self.union.filter(|_| at == 0) {
            Some((other, columns)) => format!(
                "(SELECT {} FROM {table} UNION ALL SELECT {} FROM {other}) AS t{at}",
                listed(COLUMNS),
                listed(columns)
            ),
            None => format!("(SELECT {} FROM {table}) AS t{at}", listed(COLUMNS)),
        }
    }
}

impl Condition {
    fn new(random: &mut ChaCha8Rng, tables: usize) -> Self {
        let (first, second) = (column(random, tables), column(random, tables));
        let (table, key) = (pick(random, &["middle", "small"]), pick(random, &COLUMNS));
        match random.random_range(0..6) {
            0 => Self::Less(first, random.random_range(0..9)),
            1 => Self::NullOrGreater(first, second),
            2 => Self::Coalesced(first, second),
            3 => Self::Distinct(first, second),
            4 => Self::In(first, table, key),
            _ => Self::Exists(first, table, key),
        }
    }

    fn sql(&self, names: Names) -> String {
        let name = |column: &Column| name(*column, names);
        match self {
            Self::Less(column, value) => format!("{} < {value}", name(column)),
            Self::NullOrGreater(first, second) => {
                let first = name(first);
                format!("{first} IS NULL OR {first} > {}", name(second))
            }
            Self::Coalesced(first, second) => format!("coalesce({}, 0) >= {}", name(first), name(second)),
            Self::Distinct(first, second) => format!("{} IS DISTINCT FROM {}", name(first), name(second)),
            Self::In(column, table, key) => format!("{} IN (SELECT {key} FROM {table})", name(column)),
            Self::Exists(column, table, key) => {
                format!("NOT EXISTS (SELECT * FROM {table} AS x WHERE x.{key} = {})", name(column))
            }
        }
    }
}

fn name((at, column): Column, names: Names) -> String {
    match names {
        Names::Shared => format!("t{at}.{column}"),
        Names::Distinct => format!("t{at}.{column}{at}"),
    }
}

fn column(random: &mut ChaCha8Rng, tables: usize) -> Column {
    (random.random_range(0..tables), pick(random, &COLUMNS))
}

fn pick<T: Copy>(random: &mut ChaCha8Rng, choices: &[T]) -> T {
    *choices.choose(random).expect("the choices are not empty")
}
