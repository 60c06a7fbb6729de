//! Random predicates over rows with NULL, against three-valued logic written out here: an engine's
//! rewriting of a predicate must keep what it says about NULL.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use evenkeel::Table;
use evenkeel::ingest::IngestOptions;
use evenkeel::query::Params;
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::rows;

/// A row: `id`, `x` and `y` with NULL, `z` without, and the text `s` with NULL.
#[derive(Clone, Copy)]
struct Row {
    x: Option<i64>,
    y: Option<i64>,
    z: i64,
    s: Option<&'static str>,
}

fn all_rows() -> Vec<Row> {
    let numbers = [None, Some(0), Some(1), Some(2)];
    let texts = [None, Some(""), Some("a"), Some("ab")];
    let mut rows = Vec::new();
    for x in numbers {
        for y in numbers {
            for z in 0..3 {
                rows.extend(texts.map(|s| Row { x, y, z, s }));
            }
        }
    }
    rows
}

#[derive(Clone, Copy)]
enum Operand {
    X,
    /// The same value in another type.
    CastX,
    /// The same value as a longer expression.
    SumX,
    Y,
    Z,
    S,
}

impl Operand {
    const ALL: [Self; 8] = [Self::X, Self::X, Self::X, Self::CastX, Self::SumX, Self::Y, Self::Z, Self::S];

    /// The value of a row as text, which orders one-digit numbers too.
    fn of(self, row: &Row) -> Option<String> {
        match self {
            Self::X | Self::CastX | Self::SumX => row.x.map(|x| x.to_string()),
            Self::Y => row.y.map(|y| y.to_string()),
            Self::Z => Some(row.z.to_string()),
            Self::S => row.s.map(str::to_owned),
        }
    }

    fn literal(self, rng: &mut ChaCha8Rng) -> Option<String> {
        if rng.random_bool(0.1) {
            return None;
        }
        Some(match self {
            Self::S => (*["", "a", "ab", "b"].choose(rng).unwrap()).to_owned(),
            _ => rng.random_range(0..4).to_string(),
        })
    }

    fn sql(self, value: Option<&String>) -> String {
        match (self, value) {
            (_, None) => "NULL".to_owned(),
            (Self::S, Some(text)) => format!("'{text}'"),
            (Self::Y, Some(number)) => format!("CAST('{number}' AS BIGINT)"),
            (_, Some(number)) => number.clone(),
        }
    }
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X => "x",
            Self::CastX => "CAST(x AS BIGINT)",
            Self::SumX => "(x + 0)",
            Self::Y => "y",
            Self::Z => "z",
            Self::S => "s",
        })
    }
}

enum Predicate {
    And(Box<Predicate>, Box<Predicate>),
    Or(Box<Predicate>, Box<Predicate>),
    Not(Box<Predicate>),
    Case(Box<Predicate>, Box<Predicate>, Box<Predicate>),
    IsNull(Operand, bool),
    Is(Box<Predicate>, Option<bool>, bool),
    Compare(Operand, &'static str, Option<String>),
    CompareColumns(Operand, &'static str, Operand),
    Between(Operand, Option<String>, Option<String>, bool),
    In(Operand, Vec<Option<String>>, bool),
    Like(&'static str, bool),
}

const OPERATORS: [&str; 8] = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"];

impl Predicate {
    fn random(rng: &mut ChaCha8Rng, depth: u32) -> Self {
        let mut inner = || Box::new(Self::random(rng, depth - 1));
        if depth > 0 {
            let (first, second, third) = (inner(), inner(), inner());
            match rng.random_range(0..12) {
                0..4 => return Self::And(first, second),
                4..8 => return Self::Or(first, second),
                8 => return Self::Not(first),
                9 => return Self::Case(first, second, third),
                10 => {
                    let truth = *[None, Some(true), Some(false)].choose(rng).unwrap();
                    return Self::Is(first, truth, rng.random_bool(0.5));
                }
                _ => {}
            }
        }
        let operand = *Operand::ALL.choose(rng).unwrap();
        let negated = rng.random_bool(0.5);
        match rng.random_range(0..14) {
            0..6 => {
                let count = rng.random_range(1..6);
                Self::In(operand, (0..count).map(|_| operand.literal(rng)).collect(), negated)
            }
            6..9 => Self::Compare(operand, OPERATORS.choose(rng).unwrap(), operand.literal(rng)),
            9 => Self::CompareColumns(Operand::X, OPERATORS.choose(rng).unwrap(), Operand::Y),
            10 => Self::Between(operand, operand.literal(rng), operand.literal(rng), negated),
            11 => Self::Like(["a%", "%", "a_", "%%b", ""].choose(rng).unwrap(), negated),
            _ => Self::IsNull(operand, negated),
        }
    }

    fn holds(&self, row: &Row) -> Option<bool> {
        match self {
            Self::And(left, right) => and(left.holds(row), right.holds(row)),
            Self::Or(left, right) => not(and(not(left.holds(row)), not(right.holds(row)))),
            Self::Not(inner) => not(inner.holds(row)),
            Self::Case(when, then, other) => {
                if when.holds(row) == Some(true) {
                    then.holds(row)
                } else {
                    other.holds(row)
                }
            }
            Self::IsNull(operand, negated) => Some(operand.of(row).is_none() != *negated),
            Self::Is(inner, truth, negated) => Some((inner.holds(row) == *truth) != *negated),
            Self::Compare(operand, operator, value) => compare(operand.of(row), operator, value.clone()),
            Self::CompareColumns(left, operator, right) => compare(left.of(row), operator, right.of(row)),
            Self::Between(operand, low, high, negated) => {
                let value = operand.of(row);
                let within =
                    and(compare(value.clone(), ">=", low.clone()), compare(value, "<=", high.clone()));
                if *negated { not(within) } else { within }
            }
            Self::In(operand, list, negated) => {
                let mut none = Some(true);
                for item in list {
                    none = and(none, not(compare(operand.of(row), "=", item.clone())));
                }
                let found = not(none);
                if *negated { not(found) } else { found }
            }
            Self::Like(pattern, negated) => {
                let text = row.s?;
                let matches = match *pattern {
                    "a%" => text.starts_with('a'),
                    "%" => true,
                    "a_" => text.len() == 2 && text.starts_with('a'),
                    "%%b" => text.ends_with('b'),
                    _ => text.is_empty(),
                };
                Some(matches != *negated)
            }
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let not = |negated: &bool| if *negated { "NOT " } else { "" };
        match self {
            Self::And(left, right) => write!(f, "({left} AND {right})"),
            Self::Or(left, right) => write!(f, "({left} OR {right})"),
            Self::Not(inner) => write!(f, "NOT ({inner})"),
            Self::Case(when, then, other) => write!(f, "CASE WHEN {when} THEN {then} ELSE {other} END"),
            Self::IsNull(operand, negated) => write!(f, "{operand} IS {}NULL", not(negated)),
            Self::Is(inner, truth, negated) => {
                let truth = truth.map_or("UNKNOWN", |truth| if truth { "TRUE" } else { "FALSE" });
                write!(f, "({inner}) IS {}{truth}", not(negated))
            }
            Self::Compare(operand, operator, value) => {
                write!(f, "{operand} {operator} {}", operand.sql(value.as_ref()))
            }
            Self::CompareColumns(left, operator, right) => write!(f, "{left} {operator} {right}"),
            Self::Between(operand, low, high, negated) => write!(
                f,
                "({operand} {}BETWEEN {} AND {})",
                not(negated),
                operand.sql(low.as_ref()),
                operand.sql(high.as_ref())
            ),
            Self::In(operand, list, negated) => {
                let list: Vec<String> = list.iter().map(|item| operand.sql(item.as_ref())).collect();
                write!(f, "{operand} {}IN ({})", not(negated), list.join(", "))
            }
            Self::Like(pattern, negated) => write!(f, "s {}LIKE '{pattern}'", not(negated)),
        }
    }
}

fn and(left: Option<bool>, right: Option<bool>) -> Option<bool> {
    match (left, right) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn not(value: Option<bool>) -> Option<bool> {
    value.map(|value| !value)
}

fn compare(left: Option<String>, operator: &str, right: Option<String>) -> Option<bool> {
    match operator {
        "IS DISTINCT FROM" => return Some(left != right),
        "IS NOT DISTINCT FROM" => return Some(left == right),
        _ => {}
    }
    let order = left?.cmp(&right?);
    Some(match operator {
        "=" => order.is_eq(),
        "<>" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    })
}

fn narrow(number: i64) -> i32 {
    i32::try_from(number).unwrap()
}

/// A table of all rows in a few overlapping portions.
async fn table(dir: &tempfile::TempDir, rows: &[Row]) -> Table {
    let spec = TableSpec::new(TableDefinition {
        name: "events".into(),
        columns: vec![
            Column::required("id", ColumnType::Int64),
            Column::nullable("x", ColumnType::Int32),
            Column::nullable("y", ColumnType::Int64),
            Column::required("z", ColumnType::Int64),
            Column::nullable("s", ColumnType::Utf8),
        ],
        primary_key: vec!["id".into()],
        partition_key: vec!["id".into()],
        partitions: PartitionCount::new(2).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap();
    let mut table = Table::create(dir.path().join("t"), &spec).await.unwrap();
    for portion in 0..3 {
        let numbered = || (0_i64..).zip(rows).filter(|(id, _)| id % 3 == portion);
        let column = |array: ArrayRef| array;
        let batch = RecordBatch::try_from_iter([
            ("id", column(Arc::new(Int64Array::from_iter_values(numbered().map(|(id, _)| id))))),
            ("x", column(Arc::new(numbered().map(|(_, row)| row.x.map(narrow)).collect::<Int32Array>()))),
            ("y", column(Arc::new(numbered().map(|(_, row)| row.y).collect::<Int64Array>()))),
            ("z", column(Arc::new(Int64Array::from_iter_values(numbered().map(|(_, row)| row.z))))),
            ("s", column(Arc::new(numbered().map(|(_, row)| row.s).collect::<StringArray>()))),
        ])
        .unwrap();
        let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch)]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    table
}

/// `EVENKEEL_PREDICATES` is how many predicates are tried.
#[tokio::test(flavor = "multi_thread")]
async fn conditions_and_values_of_predicates_follow_three_valued_logic() {
    let dir = tempfile::tempdir().unwrap();
    let data = all_rows();
    let session = table(&dir, &data).await.session().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut differences = Vec::new();
    let count = std::env::var("EVENKEEL_PREDICATES").map_or(600, |count| count.parse().unwrap());
    for number in 0..count {
        let predicate = Predicate::random(&mut rng, number % 4);
        let sql = match number % 3 {
            0 => format!("SELECT id FROM t WHERE {predicate} ORDER BY id"),
            1 => format!("SELECT id FROM (SELECT id, {predicate} AS p FROM t) WHERE p ORDER BY id"),
            _ => format!("SELECT id, {predicate} AS p FROM t ORDER BY id"),
        };
        let mut expected = Vec::new();
        for (id, row) in data.iter().enumerate() {
            match (number % 3, predicate.holds(row)) {
                (2, holds) => {
                    let value = holds.map_or("NULL".to_owned(), |holds| holds.to_string());
                    expected.push(vec![id.to_string(), value]);
                }
                (_, Some(true)) => expected.push(vec![id.to_string()]),
                _ => {}
            }
        }
        match session.collect(&sql, &Params::default()).await {
            Ok(batches) if rows(&batches) == expected => {}
            Ok(batches) => {
                differences.push(format!("{sql}\n  {} rows, not {}", rows(&batches).len(), expected.len()))
            }
            Err(error) => differences.push(format!("{sql}\n  {error}")),
        }
    }
    assert!(differences.is_empty(), "{} of {count}:\n{}", differences.len(), differences.join("\n"));
}
