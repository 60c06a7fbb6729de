//! Decisions of a connection that need no socket.

use arrow::datatypes::{DataType, Field, Schema};
use pgwire::messages::startup::SecretKey;
use pgwire::messages::{copy, extendedquery, simplequery, terminate};

use super::*;
use crate::connections::Connections;

fn commands_with_rows() -> [(Command, &'static str); 4] {
    let sql = || "SELECT 1".to_owned();
    [
        (Command::Query(sql()), "SELECT"),
        (Command::Catalog(sql()), "SELECT"),
        (Command::Show("timezone".to_owned()), "SHOW"),
        (Command::Fetch("c".to_owned(), None), "FETCH"),
    ]
}

#[test]
fn after_an_error_only_messages_of_the_extended_protocol_wait_for_a_sync() {
    let none = || None::<String>;
    for message in [
        PgWireFrontendMessage::Parse(extendedquery::Parse::new(none(), "SELECT 1".to_owned(), Vec::new())),
        PgWireFrontendMessage::Bind(extendedquery::Bind::new(
            none(),
            none(),
            Vec::new(),
            Vec::new(),
            Vec::new(),
        )),
        PgWireFrontendMessage::Describe(extendedquery::Describe::new(b'S', none())),
        PgWireFrontendMessage::Execute(extendedquery::Execute::new(none(), 0)),
        PgWireFrontendMessage::Close(extendedquery::Close::new(b'S', none())),
        PgWireFrontendMessage::Flush(extendedquery::Flush::new()),
    ] {
        assert!(is_extended(&message) && !is_end(&message), "{message:?}");
    }
    for message in [
        PgWireFrontendMessage::Query(simplequery::Query::new("SELECT 1".to_owned())),
        PgWireFrontendMessage::Sync(extendedquery::Sync::new()),
        PgWireFrontendMessage::CopyData(copy::CopyData::default()),
    ] {
        assert!(!is_extended(&message) && !is_end(&message), "{message:?}");
    }
    let end = PgWireFrontendMessage::Terminate(terminate::Terminate::new());
    assert!(is_end(&end) && !is_extended(&end));
}

#[test]
fn a_query_can_be_cancelled_until_it_is_answered() {
    let connections = Arc::new(Connections::default());
    let activity = Activity::new("ada", "psql", ([127, 0, 0, 1], 4000).into());
    let registered = connections.add(7, SecretKey::I32(1), activity);
    assert_eq!(connections.running(), 0);
    let ending = Ending::begin(&registered.running);
    assert_eq!(connections.running(), 1);
    drop(ending);
    assert_eq!(connections.running(), 0);
}

#[test]
fn an_error_is_located_in_the_whole_text_of_its_statement() {
    let text = "SELECT 'ü';\nSELECT x";
    let pieces = split(text).unwrap();
    let failure = Failure { place: Some((1, 8)), ..Failure::new(SqlState::SYNTAX, "no x") };
    let Problem::Failed(failure) = located(Problem::Failed(failure), &pieces[1]) else { panic!() };
    let before = text.chars().take_while(|character| *character != 'x').count();
    assert_eq!(failure.position, Some(before + 1));
    let gone = Problem::Gone(io::Error::from(io::ErrorKind::BrokenPipe));
    assert!(matches!(located(gone, &pieces[0]), Problem::Gone(_)));
}

#[test]
fn statements_with_rows_are_answered_with_their_word() {
    for (command, word) in commands_with_rows() {
        assert!(returns_rows(&command), "{command:?}");
        assert_eq!(tag(&command), word, "{command:?}");
    }
    let declared = Command::Declare("c".to_owned(), Box::new(Command::Query("SELECT 1".to_owned())));
    for command in [declared, Command::Begin { isolation: None }, Command::Commit, Command::ResetAll] {
        assert!(!returns_rows(&command), "{command:?}");
    }
}

#[test]
fn only_columns_of_queries_get_the_names_that_clients_expect() {
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("count(*)", DataType::Int64, false)]));
    let name = |command: &Command| named(command, &schema).field(0).name().clone();
    let sql = || "SELECT count(*) FROM t".to_owned();
    for query in [Command::Query(sql()), Command::Catalog(sql())] {
        assert_eq!(name(&query), "count");
    }
    assert_eq!(name(&Command::Show(sql())), "count(*)");
}
