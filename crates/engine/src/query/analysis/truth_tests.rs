//! `IS TRUE`, `IS FALSE`, `IS UNKNOWN` and their opposites, as comparisons.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::expression_schema::rewrite_expressions;

/// Compares a condition with a constant by `IS [NOT] DISTINCT FROM`, or with NULL.
///
/// DataFusion 55 computes truth tests in this way, too, but takes the result for never NULL in
/// logical plans and for possibly NULL in physical ones. A statement that has the same test twice
/// computes it in a projection of its own, and fails because the two do not agree. The rule must
/// run after types are coerced, which refuses tests of anything but conditions.
#[derive(Debug)]
pub(in crate::query) struct TruthTests;

impl AnalyzerRule for TruthTests {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let compared =
            plan.transform_up_with_subqueries(|plan| rewrite_expressions(plan, |expr| Ok(compared(expr))))?;
        Ok(compared.data)
    }

    fn name(&self) -> &'static str {
        "TruthTests"
    }
}

fn compared(expr: Expr) -> Transformed<Expr> {
    let (condition, operator, truth) = match expr {
        Expr::IsTrue(condition) => (condition, Operator::IsNotDistinctFrom, true),
        Expr::IsNotTrue(condition) => (condition, Operator::IsDistinctFrom, true),
        Expr::IsFalse(condition) => (condition, Operator::IsNotDistinctFrom, false),
        Expr::IsNotFalse(condition) => (condition, Operator::IsDistinctFrom, false),
        Expr::IsUnknown(condition) => return Transformed::yes(Expr::IsNull(condition)),
        Expr::IsNotUnknown(condition) => return Transformed::yes(Expr::IsNotNull(condition)),
        other => return Transformed::no(other),
    };
    Transformed::yes(binary_expr(*condition, operator, lit(truth)))
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
            let found: Vec<i64> =
                (0..4).map(|column| batches[0].column(column).as_primitive::<Int64Type>().value(0)).collect();
            let held: Vec<i64> =
                values.iter().filter(|score| holds(condition(score.2))).map(|score| score.0).collect();
            let count = i64::try_from(held.len()).unwrap();
            assert_eq!(found, [count, held.iter().sum(), 50 - count, count], "{test}");
            let sql =
                format!("SELECT count(*) FROM t WHERE (points % 3 = 1) {test} AND (points % 3 = 1) {test}");
            session.collect(&sql, &Params::default()).await.unwrap();
        }
        let refused = session.collect("SELECT count(*) FROM t WHERE 'a' IS TRUE", &Params::default()).await;
        assert!(refused.is_err());
    }
}
