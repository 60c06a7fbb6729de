use datafusion::logical_expr::{Expr, col, lit};
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;

use super::*;
use crate::testing::{Score, latest, overlapping_commits, rows, scores};

#[tokio::test]
async fn conditions_together_select_the_rows_that_each_of_them_selects() {
    let commits = vec![overlapping_commits().concat()];
    let (_folder, table) = scores(&commits).await;
    let all = latest(&commits);
    let context = SessionContext::new();
    context.register_table("t", table.provider().unwrap()).unwrap();
    let middle = |value: fn(&Score) -> i64| all.get(all.len() / 2).map(value).unwrap();
    let (game, points) = (middle(|score| score.1), middle(|score| score.2));
    type Matches = Box<dyn Fn(&Score) -> bool>;
    let cases: Vec<(Expr, Matches)> = vec![
        (
            col("points").gt_eq(lit(points)).and(col("game").lt(lit(game + 2))),
            Box::new(move |score| score.2 >= points && score.1 < game + 2),
        ),
        (
            col("points").not_eq(lit(points)).and(col("game").gt(lit(game))).and(col("player").gt(lit(1i64))),
            Box::new(move |score| score.2 != points && score.1 > game && score.0 > 1),
        ),
        (col("points").lt(lit(-5i64)).and(col("game").gt(lit(game))), Box::new(|_| false)),
    ];
    for (condition, matches) in cases {
        let frame = context.table("t").await.unwrap().filter(condition.clone()).unwrap();
        let plan = frame.clone().create_physical_plan().await.unwrap();
        let text = datafusion::physical_plan::displayable(plan.as_ref()).indent(false).to_string();
        assert!(text.contains("predicate=together("), "{text}");
        let mut found = rows(&collect(plan, context.task_ctx()).await.unwrap());
        found.sort_unstable();
        let mut expected = all.clone();
        expected.retain(|score| matches(score));
        assert_eq!(found, expected, "{condition}");
    }
}

#[tokio::test]
async fn a_condition_that_can_fail_sees_only_the_rows_that_others_keep() {
    // Files with one value or several in a column, and guards that read fewer or more bytes
    // than the guarded condition.
    for games in [1, 3] {
        let row = |(row, points)| (row, row % games, points);
        let commits = vec![(1..).zip([0, 10, 0, 1000, 3]).map(row).collect()];
        let (_folder, table) = scores(&commits).await;
        let session = table.session().unwrap();
        for conditions in [
            "points <> 0 AND 100 / points >= 10",
            "points <> 0 AND 100 / points >= 10 AND game < 9",
            "100 / points >= 10 AND game < 9 AND points <> 0 AND player < 9",
            "(points > 0 OR points < 0) AND game < 9 AND cast(100 / points AS text) IN ('10', '33')",
            "game IN (0, 1, 2, 3) AND points IS DISTINCT FROM 0 AND 100 % points >= 0 AND 100 / points >= 10",
        ] {
            let sql = format!("SELECT * FROM t WHERE {conditions}");
            let batches = session.collect(&sql, &evenkeel_sql::Params::default()).await;
            let batches = batches.unwrap_or_else(|error| panic!("{conditions}: {error}"));
            assert_eq!(rows(&batches).len(), 2, "{conditions}");
        }
    }
}

#[test]
fn arranging_twice_changes_nothing() {
    use arrow::datatypes::Field;
    use datafusion::logical_expr::Operator::{And, Gt, Lt};
    use datafusion::physical_expr::expressions::{binary, col, lit};

    let schema = Schema::new(vec![
        Field::new("a", DataType::Int64, true),
        Field::new("b", DataType::Float64, true),
        Field::new("text", DataType::Utf8View, true),
    ]);
    let above = |name, value| binary(col(name, &schema).unwrap(), Gt, value, &schema).unwrap();
    let both = binary(above("a", lit(1i64)), And, above("b", lit(2.0)), &schema).unwrap();
    let text =
        binary(col("text", &schema).unwrap(), Lt, lit(ScalarValue::Utf8View(Some("x".into()))), &schema);
    let all = binary(both, And, text.unwrap(), &schema).unwrap();
    let once = arranged(&all, &schema).unwrap();
    let parts: Vec<String> = split_conjunction(&once).into_iter().map(ToString::to_string).collect();
    assert_eq!(parts.len(), 4, "{parts:?}");
    assert!(parts.iter().filter(|part| part.starts_with("pages(")).count() == 2, "{parts:?}");
    assert_eq!(arranged(&once, &schema).unwrap().to_string(), once.to_string());
}
