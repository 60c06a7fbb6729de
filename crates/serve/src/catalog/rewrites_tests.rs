//! Statements before and after each rewrite.

use super::*;

fn rewritten(sql: &str, rewrite: fn(&mut Statement)) -> String {
    let mut statements = Parser::parse_sql(&PostgreSqlDialect {}, sql).unwrap();
    let mut statement = statements.remove(0);
    rewrite(&mut statement);
    statement.to_string()
}

/// Checks pairs of statements: before a rewrite and after.
fn check(rewrite: fn(&mut Statement), pairs: &[(&str, &str)]) {
    pairs.iter().for_each(|(sql, expected)| assert_eq!(rewritten(sql, rewrite), *expected, "{sql}"));
}

/// Checks statements that a rewrite leaves as they are.
fn check_kept(rewrite: fn(&mut Statement), kept: &[&str]) {
    kept.iter().for_each(|sql| assert_eq!(rewritten(sql, rewrite), *sql));
}

#[test]
fn parameters_that_are_compared_with_all_elements_hold_lists() {
    let lists = list_parameters(
        "SELECT $5 FROM c WHERE a = ANY($1) AND b = ANY($2::oid[]) AND c <> ALL(($3::int[])) AND d = $4",
    );
    assert_eq!(lists.keys().collect::<Vec<_>>(), ["1", "2", "3"]);
    assert_eq!(lists["1"].data_type(), &DataType::Utf8);
    assert_eq!(lists["2"], oid_element());
    assert_eq!(lists["3"].data_type(), &DataType::Int64);
    for (list, data_type) in [("pg_catalog.int8[]", DataType::Int64), ("VARCHAR[]", DataType::Utf8)] {
        assert_eq!(element_of(list).data_type(), &data_type, "{list}");
    }
    assert!(list_parameters("not SQL = ANY($1)").is_empty());
}

#[test]
fn subqueries_for_one_value_have_one_row() {
    check(
        give_subqueries_one_row,
        &[
            ("SELECT (SELECT a FROM t) FROM u", "SELECT (SELECT max(a) FROM t) FROM u"),
            (
                "SELECT a FROM u WHERE b = (SELECT c AS d FROM t)",
                "SELECT a FROM u WHERE b = (SELECT max(c) AS d FROM t)",
            ),
        ],
    );
    check_kept(
        give_subqueries_one_row,
        &[
            "SELECT (SELECT count(*) FROM t) FROM u",
            "SELECT (SELECT a FROM t LIMIT 1) FROM u",
            "SELECT (SELECT a FROM t GROUP BY a) FROM u",
            "SELECT (SELECT DISTINCT a FROM t) FROM u",
            "SELECT a FROM u WHERE b IN (SELECT c FROM t)",
            "SELECT a FROM (SELECT b FROM t) AS u",
        ],
    );
}

#[test]
fn columns_get_names_of_their_own_and_lists_of_a_table_become_its_rows() {
    check(
        give_subqueries_one_row,
        &[
            ("SELECT a, b, a, a AS c FROM t", "SELECT a, b, a AS column3, a AS c FROM t"),
            (
                "SELECT * FROM t CROSS JOIN UNNEST(t.list) AS e",
                "SELECT * FROM (SELECT *, unnest(t.list) AS e FROM t AS t) AS t",
            ),
            (
                "SELECT * FROM t AS c CROSS JOIN UNNEST(c.list) AS e JOIN u ON c.a = u.a",
                "SELECT * FROM (SELECT *, unnest(c.list) AS e FROM t AS c) AS c JOIN u ON c.a = u.a",
            ),
            (
                "SELECT 1 FROM t WHERE typinput = 'array_in'::regproc",
                "SELECT 1 FROM t WHERE typinput = 'array_in'",
            ),
        ],
    );
    check_kept(give_subqueries_one_row, &["SELECT * FROM t CROSS JOIN u"]);
}

#[test]
fn cases_lose_their_subqueries_and_nothing_else_does() {
    check(
        drop_subqueries_of_cases,
        &[(
            "SELECT CASE WHEN a THEN (SELECT 1) WHEN b = (SELECT 2) THEN 2 ELSE 1 + (SELECT 3) END, (SELECT 4)",
            "SELECT CASE WHEN a THEN NULL WHEN false THEN 2 ELSE NULL END, (SELECT 4)",
        )],
    );
    check_kept(drop_subqueries_of_cases, &["SELECT CASE WHEN a THEN 1 ELSE b END FROM (SELECT 1) AS t"]);
}

#[test]
fn what_the_engine_lacks_is_written_in_its_functions() {
    check(
        complete,
        &[
            ("SELECT 1 FROM pg_class", "SELECT 1 FROM pg_catalog.pg_class"),
            ("SELECT 1 FROM t WHERE t.typinput <> 0", "SELECT 1 FROM t WHERE t.typinput <> '-'"),
            ("SELECT ARRAY(SELECT a FROM t)", "SELECT NULL"),
            (
                "SELECT information_schema._pg_expandarray(a) FROM t",
                "SELECT unnest(numbered_elements(a)) FROM t",
            ),
            ("SELECT generate_subscripts(a, 1) FROM t", "SELECT unnest(element_numbers(a)) FROM t"),
        ],
    );
    check_kept(
        complete,
        &[
            "SELECT 1 FROM information_schema.pg_class",
            "SELECT 1 FROM pg_type WHERE typinput = 1 AND typlen = 0",
        ],
    );
    let field = rewritten("SELECT (t.c).n FROM t", complete);
    assert!(field.contains("get_field(") && field.contains("'n')"), "{field}");
}
