//! Columns of joins by name (`USING`, `NATURAL`).

use datafusion::sql::parser::DFParserBuilder;

use super::*;

#[test]
fn columns_of_using_come_from_the_table_that_has_them() {
    let resolved = |sql: &str| {
        let mut statements = DFParserBuilder::new(sql).build().unwrap().parse_statements().unwrap();
        let mut statement = statements.pop_front().unwrap();
        resolve_using(&mut statement);
        statement.to_string()
    };
    for (sql, expected) in [
        (
            "SELECT k, n FROM a JOIN b USING (k) WHERE k > 1 AND n IN (SELECT k FROM c) ORDER BY k",
            "SELECT k, n FROM a JOIN b USING(k) WHERE a.k > 1 AND n IN (SELECT k FROM c) ORDER BY k",
        ),
        (
            "SELECT k, n FROM x.a LEFT JOIN b AS y USING (k) WHERE k > 1 GROUP BY k, n ORDER BY k, -k",
            "SELECT a.k AS k, n FROM x.a LEFT JOIN b AS y ON a.k = y.k WHERE a.k > 1 GROUP BY a.k, n ORDER BY k, -a.k",
        ),
        (
            "SELECT * FROM a RIGHT JOIN b USING (k, j)",
            "SELECT b.k AS k, b.j AS j, a.* EXCLUDE (k, j), b.* EXCLUDE (k, j) FROM a RIGHT JOIN b \
                ON a.k = b.k AND a.j = b.j",
        ),
        (
            "SELECT k, count(*) FROM a FULL JOIN b USING (k) LEFT JOIN c USING (k) GROUP BY k",
            "SELECT coalesce(a.k, b.k) AS k, count(*) FROM a FULL JOIN b ON a.k = b.k \
                LEFT JOIN c ON coalesce(a.k, b.k) = c.k GROUP BY coalesce(a.k, b.k)",
        ),
        (
            "SELECT * FROM (SELECT * FROM a LEFT JOIN b USING (k)) AS s JOIN c USING (k) WHERE k = 1",
            "SELECT * FROM (SELECT a.k AS k, a.* EXCLUDE (k), b.* EXCLUDE (k) FROM a LEFT JOIN b ON a.k = b.k) AS s \
                JOIN c USING(k) WHERE s.k = 1",
        ),
    ] {
        assert_eq!(resolved(sql), expected);
    }
    for unchanged in [
        "SELECT * FROM a NATURAL LEFT JOIN b",
        "SELECT k FROM a JOIN b ON a.x = b.y LEFT JOIN c USING(k)",
        "SELECT * FROM (a LEFT JOIN b USING(k)) JOIN c USING(k)",
        "SELECT a.k FROM a LEFT JOIN b ON a.k = b.k WHERE a.k > 1",
    ] {
        assert_eq!(resolved(unchanged), unchanged);
    }
}

#[test]
fn outer_joins_by_name_are_found_wherever_they_stand() {
    let detects = |sql: &str| {
        let mut statements = DFParserBuilder::new(sql).build().unwrap().parse_statements().unwrap();
        has_outer_join_by_name(&statements.pop_front().unwrap())
    };
    for sql in [
        "SELECT * FROM a LEFT JOIN b USING (k)",
        "SELECT * FROM a NATURAL FULL JOIN b",
        "SELECT * FROM c, (a RIGHT OUTER JOIN b USING (k))",
        "SELECT 1 WHERE EXISTS (SELECT * FROM a JOIN c USING (k) LEFT JOIN b USING (k))",
        "WITH x AS (SELECT * FROM a FULL JOIN b USING (k)) SELECT * FROM x",
        "SELECT 1 UNION ALL SELECT 1 FROM a LEFT JOIN b USING (k)",
    ] {
        assert!(detects(sql), "{sql}");
    }
    for sql in [
        "SELECT * FROM a JOIN b USING (k)",
        "SELECT * FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT * FROM a NATURAL JOIN b",
    ] {
        assert!(!detects(sql), "{sql}");
    }
}
