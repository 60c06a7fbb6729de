//! Conditions that may fail: they see only the rows that the other conditions keep.

use arrow::array::{Array, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Field};
use datafusion::physical_expr::expressions::{binary, col, is_null, not};
use proptest::prelude::*;

use super::*;
use crate::testing::scores;

/// A condition, with a value computed row by row.
#[derive(Debug, Clone)]
enum Condition {
    IsZero(usize),
    IsNull(usize),
    /// Fails if the column is 0.
    Divides(usize, i64),
    Not(Box<Condition>),
    And(Vec<Condition>),
    Or(Vec<Condition>),
}

const COLUMNS: [&str; 3] = ["a", "b", "c"];

impl Condition {
    fn can_fail(&self) -> bool {
        match self {
            Self::IsZero(_) | Self::IsNull(_) => false,
            Self::Divides(..) => true,
            Self::Not(inner) => inner.can_fail(),
            Self::And(parts) | Self::Or(parts) => parts.iter().any(Self::can_fail),
        }
    }

    fn expression(&self, schema: &Schema) -> Expr {
        let column_of = |index: &usize| col(COLUMNS[*index], schema).unwrap();
        let joined = |parts: &[Self], operator| {
            let parts = parts.iter().map(|part| part.expression(schema));
            parts.reduce(|left, right| binary(left, operator, right, schema).unwrap()).unwrap()
        };
        match self {
            Self::IsZero(index) => binary(column_of(index), Operator::Eq, lit(0i64), schema).unwrap(),
            Self::IsNull(index) => is_null(column_of(index)).unwrap(),
            Self::Divides(index, value) => {
                let divided = binary(lit(*value), Operator::Divide, column_of(index), schema).unwrap();
                binary(divided, Operator::Gt, lit(1i64), schema).unwrap()
            }
            Self::Not(inner) => not(inner.expression(schema)).unwrap(),
            Self::And(parts) => joined(parts, Operator::And),
            Self::Or(parts) => joined(parts, Operator::Or),
        }
    }

    /// Parts of a chain of one connective, those that cannot fail first.
    fn in_order(parts: &[Self], is_and: bool) -> Vec<&Self> {
        fn add<'a>(part: &'a Condition, is_and: bool, parts: &mut Vec<&'a Condition>) {
            match part {
                Condition::And(inner) if is_and => inner.iter().for_each(|part| add(part, is_and, parts)),
                Condition::Or(inner) if !is_and => inner.iter().for_each(|part| add(part, is_and, parts)),
                other => parts.push(other),
            }
        }
        let mut chain = Vec::new();
        parts.iter().for_each(|part| add(part, is_and, &mut chain));
        chain.sort_by_key(|part| part.can_fail());
        chain
    }

    /// Value in one row; an error if a part fails on which the value depends. `selects` if NULL
    /// decides a conjunction as false does.
    fn value(&self, row: &[Option<i64>], selects: bool) -> Result<Option<bool>, ()> {
        let decided = |parts: &[Self], deciding: bool| {
            let mut result = Some(!deciding);
            let parts = Self::in_order(parts, !deciding);
            let (failing, safe): (Vec<&Self>, Vec<&Self>) = parts.iter().partition(|part| part.can_fail());
            let is_decided = |part: &&&Self| part.value(row, selects) == Ok(Some(deciding));
            // Parts that can fail guard each other only if NULL is as good as false.
            if !selects && !safe.iter().any(|part| is_decided(&part)) {
                for part in failing {
                    part.value(row, selects)?;
                }
            }
            for part in parts {
                match part.value(row, selects)? {
                    Some(value) if value == deciding => return Ok(Some(deciding)),
                    Some(_) => {}
                    None if selects && !deciding => return Ok(None),
                    None => result = None,
                }
            }
            Ok(result)
        };
        match self {
            Self::IsZero(index) => Ok(row[*index].map(|value| value == 0)),
            Self::IsNull(index) => Ok(Some(row[*index].is_none())),
            Self::Divides(index, value) => match row[*index] {
                Some(0) => Err(()),
                divisor => Ok(divisor.map(|divisor| value / divisor > 1)),
            },
            Self::Not(inner) => Ok(inner.value(row, false)?.map(|value| !value)),
            Self::And(parts) => decided(parts, false),
            Self::Or(parts) => decided(parts, true),
        }
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let column = 0..COLUMNS.len();
    let leaf = prop_oneof![
        column.clone().prop_map(Condition::IsZero),
        column.clone().prop_map(Condition::IsNull),
        (column, -9..9i64).prop_map(|(index, value)| Condition::Divides(index, value)),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| Condition::Not(Box::new(inner))),
            prop::collection::vec(inner.clone(), 2..5).prop_map(Condition::And),
            prop::collection::vec(inner, 2..5).prop_map(Condition::Or),
        ]
    })
}

#[tokio::test]
async fn conditions_above_scans_see_only_the_rows_that_others_keep() {
    let commits = vec![(1..).zip([0, 10, 0, 1000, 3]).map(|(row, points)| (row, row, points)).collect()];
    let (_folder, table) = scores(&commits).await;
    let session = table.session().unwrap();
    for (sql, count) in [
        ("SELECT game FROM t GROUP BY game HAVING sum(points) <> 0 AND 100 / sum(points) >= 10", 2),
        ("SELECT game FROM t GROUP BY game HAVING 100 / sum(points) < 10 OR sum(points) = 0", 3),
        ("SELECT game FROM t GROUP BY game HAVING NOT (100 / sum(points) >= 10 OR sum(points) = 0)", 1),
        (
            "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY game) AS n FROM t) \
                    WHERE 30 / (points * n) < 3 AND points <> 0",
            3,
        ),
        (
            "SELECT * FROM t AS a JOIN t AS b \
                    ON 100 / (a.points * b.points) >= 1 AND a.points <> 0 AND b.points <> 0",
            4,
        ),
        (
            "SELECT * FROM t AS a JOIN t AS b \
                    ON a.game = b.game AND (100 / (a.points * b.points) >= 1 OR a.points * b.points = 0)",
            4,
        ),
        ("SELECT * FROM t WHERE (100 / points >= 10 AND points <> 0) OR game = 4", 3),
        // The order of the window follows from the equality.
        (
            "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY game + 1, player) AS n \
                    FROM (SELECT * FROM t ORDER BY player LIMIT 100)) WHERE game + 1 = 3 AND points > 1",
            1,
        ),
        (
            "SELECT * FROM (SELECT *, row_number() OVER (ORDER BY game + 1, player) AS n \
                    FROM (SELECT * FROM t ORDER BY player LIMIT 100) WHERE game + 1 = 3 AND points > 1)",
            1,
        ),
        ("SELECT * FROM t WHERE points <> 0 AND (100 / points >= 10 OR game = 4)", 3),
    ] {
        let batches = session.collect(sql, &evenkeel_sql::Params::default()).await;
        let batches = batches.unwrap_or_else(|error| panic!("{sql}: {error}"));
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), count, "{sql}");
    }
}

#[test]
fn nested_conditions_stay_short() {
    let schema = Schema::new(COLUMNS.map(|name| Field::new(name, DataType::Int64, true)).to_vec());
    for null in ["", "not"] {
        let mut nested = Condition::Divides(0, 7);
        for level in 0..40 {
            let others = vec![nested, Condition::IsZero(1), Condition::Divides(2, 5)];
            nested = if level % 2 == 0 { Condition::And(others) } else { Condition::Or(others) };
        }
        let nested = if null.is_empty() { nested } else { Condition::Not(Box::new(nested)) };
        let plain = nested.expression(&schema);
        let guarded = guarded(&plain, Null::IsFalse).unwrap().unwrap();
        let length = |expression: &Expr| expression.to_string().len();
        assert!(length(&guarded) < 6 * length(&plain), "{}", length(&guarded));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn a_part_fails_only_in_rows_that_depend_on_it(
        condition in condition(),
        rows in prop::collection::vec(prop::collection::vec(prop::option::weighted(0.8, -3..4i64), 3), 1..40),
    ) {
        let fields = COLUMNS.map(|name| Field::new(name, DataType::Int64, true));
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let column = |index: usize| -> Arc<dyn Array> {
            Arc::new(rows.iter().map(|row| row[index]).collect::<Int64Array>())
        };
        let batch = RecordBatch::try_new(Arc::clone(&schema), (0..3).map(column).collect()).unwrap();
        let plain = condition.expression(&schema);
        for null in [Null::Counts, Null::IsFalse] {
            let expression = guarded(&plain, null).unwrap().unwrap_or_else(|| Arc::clone(&plain));
            let is_filter = null == Null::IsFalse;
            let expected = rows.iter().map(|row| condition.value(row, is_filter)).collect::<Result<Vec<_>, ()>>();
            // A failure may be avoided, but no value may differ.
            let Ok(expected) = expected else { continue };
            let found = expression.evaluate(&batch).unwrap().into_array(rows.len()).unwrap();
            let found = found.as_boolean();
            if is_filter {
                let selected = |values: &mut dyn Iterator<Item = Option<bool>>| {
                    values.map(|value| value == Some(true)).collect::<Vec<_>>()
                };
                prop_assert_eq!(selected(&mut found.iter()), selected(&mut expected.into_iter()));
            } else {
                prop_assert_eq!(found, &BooleanArray::from(expected));
            }
        }
    }
}
