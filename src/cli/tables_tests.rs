//! Places of tables and exports, and the names that these get.

use clap::Parser;
use evenkeel::source::InputOptions;
use evenkeel::table::{Column, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::PartitionCount;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    exports: ExportArgs,
}

fn export_args(words: &[&str]) -> ExportArgs {
    Command::try_parse_from([&["query"], words].concat()).unwrap().exports
}

fn output() -> Output {
    Output::captured(Arc::default(), Arc::default())
}

/// The message about arguments that are wrong usage.
fn refusal<T>(result: Result<T, Failure>) -> String {
    match result {
        Err(Failure::Usage(error)) => error.to_string(),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it is accepted"),
    }
}

/// Creates a table whose own name is `rows`.
async fn create(place: &Path) {
    let spec = TableSpec::new(TableDefinition {
        name: "rows".into(),
        columns: vec![Column::required("id", ColumnType::Int64)],
        primary_key: vec!["id".into()],
        partition_key: vec![],
        partitions: PartitionCount::new(1).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    });
    Table::create(place, &spec.unwrap()).await.unwrap();
}

fn place(name: Option<&str>, place: impl Into<PathBuf>) -> NamedPlace {
    NamedPlace { name: name.map(str::to_owned), place: place.into() }
}

async fn opened(places: &[NamedPlace]) -> Result<Tables, Failure> {
    Tables::open(places, &export_args(&[]), &output()).await
}

fn names(tables: &Tables) -> Vec<Vec<String>> {
    tables.named().map(|(names, _)| names).collect()
}

#[test]
fn a_named_place_has_a_name_and_a_place() {
    let places = named_places(&["a=b".to_owned(), "c=d=e".to_owned()]).unwrap();
    let read: Vec<(Option<&str>, &Path)> =
        places.iter().map(|place| (place.name.as_deref(), place.place.as_path())).collect();
    assert_eq!(read, [(Some("a"), Path::new("b")), (Some("c"), Path::new("d=e"))]);
    for wrong in ["a", "=b", "a=", "="] {
        let message = refusal(named_places(&[wrong.to_owned()]));
        assert_eq!(message, format!("--table {wrong}: write --table NAME=PLACE"));
    }
}

#[test]
fn what_exists_under_the_whole_text_is_a_place_without_a_name() {
    let folder = tempfile::tempdir().unwrap();
    let existing = folder.path().join("day=1");
    std::fs::create_dir(&existing).unwrap();
    let parsed = NamedPlace::parse(existing.to_str().unwrap());
    assert_eq!((parsed.name, parsed.place), (None, existing));
    let parsed = NamedPlace::parse("day=there/is/none");
    assert_eq!((parsed.name.as_deref(), parsed.place), (Some("day"), PathBuf::from("there/is/none")));
    let parsed = NamedPlace::parse("plain");
    assert_eq!((parsed.name, parsed.place), (None, PathBuf::from("plain")));
}

#[test]
fn types_are_of_the_export_that_they_name_or_of_the_only_one() {
    let types = |words: &[&str], exports: &[&str]| export_args(words).types_by_export(exports);
    let of = |export: &str, column: &str| {
        BTreeMap::from([(export.to_owned(), BTreeMap::from([(column.to_owned(), ColumnType::Utf8)]))])
    };
    assert_eq!(types(&["--type", "id:utf8"], &["users"]).unwrap(), of("users", "id"));
    assert_eq!(types(&["--type", "users.id:utf8"], &["users"]).unwrap(), of("users", "id"));
    assert_eq!(types(&["--type", "users.id:utf8"], &["visits", "users"]).unwrap(), of("users", "id"));
    // Other names of columns may have points, too.
    assert_eq!(types(&["--type", "other.id:utf8"], &["users"]).unwrap(), of("users", "other.id"));
    for exports in [&["visits", "users"] as &[&str], &[]] {
        let message = refusal(types(&["--type", "id:utf8"], exports));
        assert!(message.starts_with("--type id:utf8: names no export"), "{message}");
    }
    refusal(types(&["--type", "id"], &["users"]));
}

#[test]
fn only_a_name_that_needs_no_quotes_is_taken_from_a_place() {
    for (place, name) in [
        ("data/events_2", Some("events_2")),
        ("data/events/", Some("events")),
        ("data/Events", None),
        ("data/2events", None),
        ("data/my-events", None),
        ("..", None),
        ("/", None),
    ] {
        assert_eq!(name_of_place(Path::new(place)).as_deref(), name, "{place}");
    }
}

#[tokio::test]
async fn a_single_table_has_a_short_name_unless_it_got_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let (events, users) = (folder.path().join("events"), folder.path().join("users"));
    create(&events).await;
    create(&users).await;
    let alone = opened(&[place(None, &events)]).await.unwrap();
    assert_eq!(names(&alone), [["events", "t", "rows"]]);
    let with_name = opened(&[place(Some("e"), &events)]).await.unwrap();
    assert_eq!(names(&with_name), [["e"]]);
    let both = opened(&[place(None, &events), place(Some("u"), &users)]).await.unwrap();
    assert_eq!(names(&both), [["rows"], ["u"]]);
}

#[tokio::test]
async fn tables_of_a_folder_have_the_names_of_their_directories() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["users", "events", ".hidden", "_old"] {
        create(&folder.path().join(name)).await;
    }
    std::fs::create_dir(folder.path().join("no_table")).unwrap();
    let opened_all = opened(&[place(None, folder.path())]).await.unwrap();
    assert_eq!(names(&opened_all), [["events"], ["users"]]);
    let message = refusal(opened(&[place(Some("all"), folder.path())]).await);
    assert!(message.contains("is a folder of tables; name one of them: all="), "{message}");
}

#[tokio::test]
async fn files_are_exports_with_a_name_and_only_they_have_a_format() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("visits.csv");
    std::fs::write(&file, "id,user\n1,a\n2,b\n").unwrap();
    let exports = opened(&[place(None, &file), place(Some("v"), &file)]).await.unwrap();
    let given: Vec<&str> = exports.exports.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((given, exports.tables.len()), (vec!["visits", "v"], 0));

    let no_export = Tables::open(&[], &export_args(&["--header"]), &output()).await;
    assert!(refusal(no_export).contains("apply to exports, and none is named"));
    let twice = opened(&[place(Some("a"), "-"), place(Some("b"), "-")]).await;
    let error = match twice {
        Err(Failure::Failed(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(error.downcast_ref(), Some(SourceError::StdinTwice)), "{error}");
}

#[tokio::test]
async fn a_table_beside_another_one_has_a_name_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("visits.csv");
    std::fs::write(&file, "id,user\n1,a\n2,b\n").unwrap();
    let beside = async |name: &str| {
        let named = [format!("{name}={}", file.display())];
        Tables::beside("rows", &named, &export_args(&[]), &output()).await
    };
    for taken in ["rows", "t"] {
        let message = refusal(beside(taken).await);
        assert!(message.starts_with(&format!("--table {taken}=...: the table itself")), "{message}");
    }
    assert!(beside("visits").await.is_ok());
}

#[test]
fn a_result_is_written_neither_over_an_export_nor_into_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("visits.csv");
    std::fs::write(&file, "id,user\n1,a\n2,b\n").unwrap();
    let inputs = [InputPath::File(file.clone())];
    let export = Export::open(&inputs, InputOptions::default(), &BTreeMap::new()).unwrap();
    let tables = Tables { exports: vec![("visits".to_owned(), Arc::new(export))], ..Tables::default() };
    let below = folder.path().join("table/below");
    std::fs::create_dir_all(&below).unwrap();
    let log = folder.path().join("table/_log");
    std::fs::create_dir(&log).unwrap();
    std::fs::write(log.join("0.json"), "").unwrap();

    let over = refusal(tables.check_output(&folder.path().join("table/../visits.csv")));
    assert!(over.ends_with("is a file of the export visits; name another one"), "{over}");
    for inside in [below.join("x.csv"), folder.path().join("table/x.csv")] {
        let message = refusal(tables.check_output(&inside));
        assert!(message.contains(" lies in the table "), "{message}");
    }
    for fine in ["other.csv", "there/is/none.csv"] {
        assert!(tables.check_output(&folder.path().join(fine)).is_ok(), "{fine}");
    }
}

#[derive(Debug, Parser)]
struct Query {
    #[command(flatten)]
    tables: TablesArgs,
    sql: Option<String>,
}

#[test]
fn a_place_can_be_left_out_if_all_tables_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let spaced = dir.path().join("my events.csv").display().to_string();
    std::fs::write(&spaced, "a\n1\n").unwrap();
    for (words, sql, place) in [
        (vec!["--table", "a=b", "SELECT 1 FROM a"], Some("SELECT 1 FROM a"), None),
        // A place, also one with blanks.
        (vec!["--table", "a=b", "events"], None, Some("events")),
        (vec!["--table", "a=b", &spaced], None, Some(&*spaced)),
        // A place that does not exist, and a query.
        (vec!["SELECT 1 FROM a"], None, Some("SELECT 1 FROM a")),
        (vec!["--table", "a=b"], None, None),
    ] {
        let mut query = Query::try_parse_from([&["query"], words.as_slice()].concat()).unwrap();
        assert_eq!(query.tables.take_query().as_deref(), sql, "{words:?}");
        assert_eq!(query.tables.dir.as_deref(), place.map(Path::new), "{words:?}");
        assert_eq!(query.sql, None);
    }
    assert!(Query::try_parse_from(["query"]).is_err());
}
