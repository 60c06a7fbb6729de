//! `IS TRUE`, `IS FALSE` and their opposites, as functions that return no NULL.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::query::analysis::expression_schema::rewrite_expressions;

/// Replaces truth tests by functions.
///
/// DataFusion 55 considers a truth test never NULL in logical plans and possibly NULL in physical
/// ones. A statement with the same test twice computes it in a separate projection, and fails
/// because the two do not agree. Tests that are conjuncts of a filter are kept: they turn outer
/// joins into inner ones, and no result contains them.
#[derive(Debug)]
pub(in crate::query) struct TruthTests;

fn rewritten(expr: Expr) -> Transformed<Expr> {
    let (test, condition) = match expr {
        Expr::IsTrue(condition) => (TruthTest::True, condition),
        Expr::IsNotTrue(condition) => (TruthTest::NotTrue, condition),
        Expr::IsFalse(condition) => (TruthTest::False, condition),
        Expr::IsNotFalse(condition) => (TruthTest::NotFalse, condition),
        Expr::IsUnknown(condition) => return Transformed::yes(Expr::IsNull(condition)),
        Expr::IsNotUnknown(condition) => return Transformed::yes(Expr::IsNotNull(condition)),
        other => return Transformed::no(other),
    };
    Transformed::yes(ScalarUDF::new_from_impl(TruthFunction::new(test)).call(vec![*condition]))
}

/// Rewrites a condition of a filter below the tests that it consists of.
fn rewritten_below(condition: Expr) -> Result<Transformed<Expr>> {
    let rewrite = |expr: Expr| expr.transform_up(|expr| Ok(rewritten(expr)));
    match condition {
        test @ (Expr::IsTrue(_) | Expr::IsNotTrue(_) | Expr::IsFalse(_) | Expr::IsNotFalse(_)) => {
            test.map_children(rewrite)
        }
        other => rewrite(other),
    }
}

impl OptimizerRule for TruthTests {
    fn name(&self) -> &'static str {
        "TruthTests"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(mut filter) = plan else {
            return rewrite_expressions(plan, |expr| Ok(rewritten(expr)));
        };
        let mut changes = false;
        let conditions = split_conjunction_owned(filter.predicate.clone())
            .into_iter()
            .map(|condition| {
                let rewritten = rewritten_below(condition)?;
                changes |= rewritten.transformed;
                Ok(rewritten.data)
            })
            .collect::<Result<Vec<_>>>()?;
        if changes && let Some(predicate) = conjunction(conditions) {
            filter.predicate = predicate;
        }
        Ok(Transformed::new_transformed(LogicalPlan::Filter(filter), changes))
    }
}

/// A test of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum TruthTest {
    True,
    NotTrue,
    False,
    NotFalse,
}

impl TruthTest {
    const ALL: [Self; 4] = [Self::True, Self::NotTrue, Self::False, Self::NotFalse];

    fn name(self) -> &'static str {
        match self {
            Self::True => "is_true",
            Self::NotTrue => "is_not_true",
            Self::False => "is_false",
            Self::NotFalse => "is_not_false",
        }
    }

    fn holds(self, truth: Option<bool>) -> bool {
        match self {
            Self::True => truth == Some(true),
            Self::NotTrue => truth != Some(true),
            Self::False => truth == Some(false),
            Self::NotFalse => truth != Some(false),
        }
    }
}

/// A test as a function of a condition.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TruthFunction {
    test: TruthTest,
    signature: Signature,
}

impl TruthFunction {
    fn new(test: TruthTest) -> Self {
        Self { test, signature: Signature::exact(vec![DataType::Boolean], Volatility::Immutable) }
    }
}

/// Functions that [`TruthTests`] inserts.
pub(in crate::query) fn truth_functions() -> impl Iterator<Item = ScalarUDF> {
    TruthTest::ALL.into_iter().map(|test| ScalarUDF::new_from_impl(TruthFunction::new(test)))
}

impl ScalarUDFImpl for TruthFunction {
    fn name(&self) -> &str {
        self.test.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.name(), DataType::Boolean, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [condition] = args.args.as_slice() else {
            return internal_err!("{} has one argument", self.name());
        };
        let conditions = condition.to_array(args.number_rows)?;
        let held: BooleanArray =
            conditions.as_boolean().iter().map(|truth| Some(self.test.holds(truth))).collect();
        Ok(ColumnarValue::Array(Arc::new(held) as ArrayRef))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;

    use crate::query::Params;
    use crate::testing::{Score, scores};

    /// Whether a condition passes a test.
    type Test = fn(Option<bool>) -> bool;

    #[tokio::test]
    async fn a_statement_has_the_same_test_several_times() {
        let values: Vec<Score> = (0..50).map(|row| (row, 0, row * row % 11)).collect();
        let (_folder, table) = scores(std::slice::from_ref(&values)).await;
        let session = table.session().unwrap();
        // NULL for every fourth number.
        let condition = |points: i64| (points % 4 != 0).then_some(points % 3 == 1);
        let tests: [(&str, Test); 6] = [
            ("IS TRUE", |truth| truth == Some(true)),
            ("IS NOT TRUE", |truth| truth != Some(true)),
            ("IS FALSE", |truth| truth == Some(false)),
            ("IS NOT FALSE", |truth| truth != Some(false)),
            ("IS UNKNOWN", |truth| truth.is_none()),
            ("IS NOT UNKNOWN", |truth| truth.is_some()),
        ];
        for (test, holds) in tests {
            let sql = format!(
                "SELECT count(*) FILTER (WHERE c {test}), sum(player) FILTER (WHERE c {test}), \
                 count(*) FILTER (WHERE NOT (c {test})), sum(CASE WHEN c {test} THEN 1 ELSE 0 END) \
                 FROM (SELECT player, nullif(points, CASE WHEN points % 4 = 0 THEN points END) % 3 = 1 AS c FROM t)"
            );
            let batches = session.collect(&sql, &Params::default()).await.unwrap();
            let counts: Vec<i64> =
                (0..4).map(|column| batches[0].column(column).as_primitive::<Int64Type>().value(0)).collect();
            let held: Vec<i64> =
                values.iter().filter(|score| holds(condition(score.2))).map(|score| score.0).collect();
            let count = i64::try_from(held.len()).unwrap();
            assert_eq!(counts, [count, held.iter().sum(), 50 - count, count], "{test}");
            let sql =
                format!("SELECT count(*) FROM t WHERE (points % 3 = 1) {test} AND (points % 3 = 1) {test}");
            session.collect(&sql, &Params::default()).await.unwrap();
        }
        let refused = session.collect("SELECT count(*) FROM t WHERE 'a' IS TRUE", &Params::default()).await;
        assert!(refused.is_err());
        // In the inputs of a union and in the recursive part of a query, whose columns have one
        // type.
        for sql in [
            "SELECT x, count(*) FROM (SELECT (points = 1) IS TRUE AS x FROM t UNION ALL \
             SELECT (points = 3) IS NOT FALSE FROM t) s GROUP BY x ORDER BY x",
            "WITH RECURSIVE r AS (SELECT 1 AS k, true AS f UNION ALL \
             SELECT k + 1, (nullif(k, 2) > 1) IS TRUE FROM r WHERE k < 4) SELECT f, k FROM r ORDER BY k",
            "SELECT CASE WHEN points > 3 THEN true ELSE false END AS x, count(*) FILTER (WHERE (points > 3) IS TRUE) \
             FROM t GROUP BY x ORDER BY x",
        ] {
            session.collect(sql, &Params::default()).await.unwrap();
        }
    }
}
