//! Clauses in unusual forms, and what is wrong with its place.

use proptest::prelude::{prop_assert, proptest};

use super::*;

/// Parses a table with one column and these options.
fn with_options(options: &str) -> Result<CreateTable, DdlError> {
    parse_create_table(&format!("CREATE TABLE t (a Int64, PRIMARY KEY (a)) WITH ({options})"))
}

#[test]
fn of_null_and_not_null_the_last_counts_and_names_may_be_keywords() {
    let text = "CREATE TABLE t (a Int64, b Int64 NOT NULL, c Int64 NOT NULL NULL, d Int64 NULL NOT NULL, \
                primary Int64, `index` Int64, family Utf8, `from here` Utf8, PRIMARY KEY (primary, index))";
    let definition = parse_create_table(text).unwrap().definition;
    let columns: Vec<(&str, bool)> =
        definition.columns.iter().map(|column| (column.name.as_str(), column.nullable)).collect();
    let expected = [
        ("a", true),
        ("b", false),
        ("c", true),
        ("d", false),
        ("primary", true),
        ("index", true),
        ("family", true),
        ("from here", true),
    ];
    assert_eq!(columns, expected);
    assert_eq!(definition.primary_key, ["primary", "index"]);
}

#[test]
fn commas_at_ends_spaces_comments_and_capitals_make_no_difference() {
    let plain = parse_create_table(
        "CREATE TABLE t (a Int64 NOT NULL, b Decimal(10,2), PRIMARY KEY (a, b)) PARTITION BY HASH(b) \
         WITH (STORE = COLUMN, AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 7)",
    );
    let other = parse_create_table(
        "create -- the table\n table if not exists `t`\n(\ta Int64 not null, /* money */ b \
         Decimal ( 10 , 2 ), primary key (a, b,),) partition by hash ( b, ) with ( store = column, \
         auto_partitioning_min_partitions_count = 7, );;",
    );
    assert!(plain.as_ref().unwrap().notes.is_empty());
    assert_eq!(other, plain);
}

#[test]
fn options_without_effect_are_noted_whatever_their_values_are() {
    let create = with_options("A = 'x', STORE = COLUMN, B = f(1, g(2, 3), '}'), `C d` = 1 + 2").unwrap();
    let option = |name: &str| DdlNote::Option { name: name.to_owned() };
    assert_eq!(create.notes, [option("A"), option("B"), option("C d"), DdlNote::PartitionsAssumed]);
    assert_eq!(with_options("").unwrap().notes, [DdlNote::StoreAssumed, DdlNote::PartitionsAssumed]);
    // Only the last of two numbers of partitions counts.
    let count = |number| format!("STORE = COLUMN, {PARTITIONS_OPTION} = {number}");
    let twice = with_options(&format!("{}, {}", count(5), count(6))).unwrap();
    assert_eq!((twice.definition.partitions.get(), twice.notes), (6, Vec::new()));
}

#[test]
fn families_of_the_table_and_of_columns_are_noted() {
    let text = "CREATE TABLE t (a Int64 FAMILY x NOT NULL, FAMILY `x` (DATA = 'a', B = (1, 2)), \
                PRIMARY KEY (a))";
    let create = parse_create_table(text).unwrap();
    let family =
        |column: Option<&str>| DdlNote::Family { family: "x".to_owned(), column: column.map(str::to_owned) };
    assert_eq!(create.notes[..2], [family(Some("a")), family(None)]);
    assert_eq!(create.definition.columns, [Column::required("a", ColumnType::Int64)]);
}

#[test]
fn what_is_wrong_is_located_in_its_line() {
    for (text, line, column) in [
        ("CREATE TABLE t (\n  a Int64,\n  b Nope\n)", 3, 5),
        ("CREATE TABLE t (\n  PRIMARY KEY (a),\n PRIMARY KEY (a))", 3, 2),
        ("CREATE TABLE t (a Int64,\n INDEX i GLOBAL ON (a))", 2, 2),
        ("CREATE TABLE t (a Int64) WITH (\nSTORE = ROW)", 2, 9),
        ("CREATE TABLE t (a Int64 NOT)", 1, 28),
        ("CREATE TABLE t (a Decimal(x))", 1, 27),
        ("CREATE TABLE IF EXISTS t (a Int64)", 1, 17),
        ("CREATE TABLE t (a Int64)\nSELECT", 2, 1),
    ] {
        let error = parse_create_table(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line {line}, column {column}: ")), "{text}: {error}");
    }
    for count in ["0", "100001", "99999999999999999999999"] {
        let error = with_options(&format!("{PARTITIONS_OPTION} = {count}")).unwrap_err();
        assert!(matches!(error, DdlError::Partitions { line: 1, .. }), "{count}: {error}");
    }
    for options in ["A = (1", "A", "STORE COLUMN", "STORE = COLUMN B = 1"] {
        let error = with_options(options).unwrap_err();
        assert!(matches!(error, DdlError::Unexpected { .. }), "{options}: {error}");
    }
}

const PIECES: [&str; 24] = [
    "PRIMARY",
    "KEY",
    "INDEX",
    "FAMILY",
    "NOT",
    "NULL",
    "a",
    "b",
    "Int64",
    "Decimal",
    "(",
    ")",
    ",",
    "1",
    "=",
    "PARTITION",
    "BY",
    "HASH",
    "WITH",
    "STORE",
    "COLUMN",
    "TTL",
    "Interval",
    "'P1D'",
];

proptest! {
    #[test]
    fn any_pieces_are_a_table_or_an_error_in_the_first_line(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES.to_vec()), 0..24),
    ) {
        if let Err(error) = parse_create_table(&format!("CREATE TABLE t ( {}", pieces.join(" "))) {
            prop_assert!(error.to_string().starts_with("line 1, column "), "{}", error);
        }
    }
}
