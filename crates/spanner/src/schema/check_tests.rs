//! Rules of Spanner that a schema must satisfy.

use proptest::prelude::{prop_assert_eq, proptest};

use crate::schema::error::SchemaError;
use crate::schema::parse::parse_schema;

/// Returns why a schema is refused, with its place.
fn refused(text: &str) -> Option<String> {
    match parse_schema(text) {
        Err(SchemaError::Refused { line, column, problem, .. }) => Some(format!("{line}:{column} {problem}")),
        other => other.err().map(|error| panic!("{text}: {error}")),
    }
}

/// A table in one line, with these key columns of INT64.
fn table(name: &str, key: &[String], parent: Option<&str>) -> String {
    let columns: String =
        key.iter().map(|column| format!("{} INT64, ", column.replace(" DESC", ""))).collect();
    let parent = parent.map(|parent| format!(", INTERLEAVE IN PARENT {parent}")).unwrap_or_default();
    format!("CREATE TABLE {name} ({columns}) PRIMARY KEY ({}){parent};\n", key.join(", "))
}

proptest! {
    #[test]
    fn a_table_is_below_at_most_six_others_and_never_below_itself(parents in proptest::collection::vec(0usize..14, 1..12)) {
        // Table n has the parent with that number; beyond the last, it has none.
        let parent = |table: usize| parents.get(table).copied().filter(|parent| *parent < parents.len());
        let key = ["a".to_owned()];
        let text: String = (0..parents.len())
            .map(|number| table(&format!("t{number}"), &key, parent(number).map(|parent| format!("t{parent}")).as_deref()))
            .collect();
        // Walking up from any table ends after at most seven tables, itself included.
        let ends = |table: usize| {
            let mut above = Some(table);
            (0..7).for_each(|_| above = above.and_then(parent));
            above.is_none()
        };
        let problem = refused(&text);
        prop_assert_eq!(problem.is_none(), (0..parents.len()).all(ends), "{}{:?}", text, problem);
    }

    #[test]
    fn the_key_of_a_child_begins_with_that_of_its_parent(
        parent in proptest::sample::subsequence(vec!["a", "b DESC", "c", "d DESC"], 1..4),
        child in proptest::sample::subsequence(vec!["a", "b", "b DESC", "c", "d DESC"], 1..5),
    ) {
        let [parent, child] = [parent, child].map(|key| key.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
        // A key that names a column twice is refused for that.
        let is_unique = !(child.contains(&"b".to_owned()) && child.contains(&"b DESC".to_owned()));
        let text = table("p", &parent, None) + &table("t", &child, Some("p"));
        prop_assert_eq!(refused(&text).is_none(), is_unique && child.starts_with(&parent), "{}", text);
    }
}

#[test]
fn a_key_has_at_most_sixteen_columns() {
    let columns = |count: usize| (0..count).map(|number| format!("c{number}")).collect::<Vec<_>>();
    assert_eq!(refused(&table("t", &columns(16), None)), None);
    let problem = refused(&table("t", &columns(17), None)).unwrap();
    assert!(problem.ends_with("the primary key has 17 columns"), "{problem}");
    // The place of the error is the seventeenth column.
    let text = table("t", &columns(17), None);
    let at = text.rfind("c16").unwrap() + 1;
    assert!(problem.starts_with(&format!("1:{at} ")), "{problem}");
}

#[test]
fn names_are_compared_without_case_and_listed_up_to_a_dozen() {
    let text = table("Users", &["Id".to_owned()], None);
    assert_eq!(refused(&format!("{text}CREATE INDEX i ON USERS(ID)")), None);
    let problem = refused(&format!("{text}CREATE INDEX users ON Users(Id)")).unwrap();
    assert_eq!(problem, "2:14 the name users is taken");
    let tables: String =
        (0..15).map(|number| table(&format!("t{number}"), &["a".to_owned()], None)).collect();
    let error = parse_schema(&format!("{tables}CREATE INDEX i ON u(a)")).unwrap_err().to_string();
    assert!(
        error.ends_with("declared are t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11 and 3 more"),
        "{error}"
    );
}
