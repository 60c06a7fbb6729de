//! Codes as in PostgreSQL's list of errors, and places in the text of a client.

use std::time::Duration;

use datafusion::prelude::SessionContext;
use evenkeel_engine::query::SqlLimitError;
use evenkeel_model::units::ByteSize;

use super::*;

#[test]
fn a_place_in_a_statement_is_one_in_the_text_that_the_client_sent() {
    for marked in ["^SELECT", "SELECT ^x", "SELECT '\u{e9}\u{1f600}', ^x", "\u{e9}\n\n  ^x\n", "a\r\nb\r\n^c"]
    {
        let at = marked.find('^').unwrap();
        let before = &marked[..at];
        let line = before.matches('\n').count() as u64 + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() as u64 + 1;
        let failure = Failure { place: Some((line, column)), ..Failure::new(SqlState::SYNTAX, "") };
        let located = failure.located(&marked.replace('^', ""), 100);
        assert_eq!(located.position, Some(100 + before.chars().count() + 1), "{marked}");
    }
}

#[test]
fn a_name_is_found_as_a_whole_word_unless_the_place_is_known() {
    let position = |statement: &str, place: Option<(u64, u64)>| {
        let name = Some("t".to_owned());
        let failure = Failure { place, name, ..Failure::new(SqlState::UNDEFINED_TABLE, "") };
        failure.located(statement, 10).position
    };
    assert_eq!(position("SELECT t", None), Some(10 + 8));
    assert_eq!(position("SELECT at, t_, t1, t\u{e9}, x.\"t\"", None), Some(10 + 27));
    assert_eq!(position("SELECT at FROM tt", None), None);
    assert_eq!(position("SELECT t", Some((1, 1))), Some(10 + 1));
    assert_eq!(Failure::new(SqlState::IO, "").located("SELECT t", 10).position, None);
}

#[test]
fn errors_of_queries_have_the_codes_of_postgres() {
    let (limit, demanded) = (ByteSize(1), ByteSize(2));
    let text = String::new;
    for (error, code) in [
        (QueryError::Empty, "42601"),
        (QueryError::Several { count: 2 }, "42601"),
        (QueryError::NotAQuery { action: "delete" }, "25006"),
        (QueryError::OuterJoinByName, "0A000"),
        (QueryError::CountedRows, "0A000"),
        (QueryError::Elsewhere { reason: text() }, "58030"),
        (QueryError::UnknownTable { name: "x".to_owned(), known: text() }, "42P01"),
        (ParamError::Missing { name: text() }.into(), "42P02"),
        (ParamError::NoTime.into(), "42P02"),
        (ParamError::Repeated { name: text() }.into(), "22P02"),
        (LimitExceeded::Time { limit: Duration::from_secs(1) }.into(), "57014"),
        (LimitExceeded::Allocation { limit, demanded }.into(), "53200"),
        (SqlLimitError::Tables.into(), "54001"),
    ] {
        let message = error.to_string();
        let failure = Failure::from(error);
        assert_eq!((failure.code.0, failure.message.as_str()), (code, message.as_str()));
        assert!(!failure.is_fatal && failure.place.is_none(), "{message}");
    }
    let unknown = QueryError::UnknownTable { name: "s.\"Orders\"".to_owned(), known: text() };
    assert_eq!(Failure::from(unknown).name.as_deref(), Some("Orders"));
    let number = SqlLimitError::Integer { number: "1".repeat(30), line: 3, column: 7 };
    let failure = Failure::from(QueryError::from(number));
    assert_eq!((failure.code, failure.place), (SqlState::OUT_OF_RANGE, Some((3, 7))));
}

#[test]
fn errors_of_the_engine_have_codes_by_their_kind() {
    let code = |error: DataFusionError| Failure::from(error).code.0;
    let parser = |text: &str| {
        let error = ParserError::ParserError(text.to_owned());
        Failure::from(DataFusionError::SQL(Box::new(error), None))
    };
    let placed = parser("Expected: an expression, found: FROM at Line: 3, Column: 12");
    assert_eq!((placed.code, placed.place), (SqlState::SYNTAX, Some((3, 12))));
    assert_eq!(parser("something without a place").place, None);
    assert_eq!(code(DataFusionError::SQL(Box::new(ParserError::RecursionLimitExceeded), None)), "54001");
    assert_eq!(code(DataFusionError::ResourcesExhausted(String::new())), "53200");
    assert_eq!(code(DataFusionError::NotImplemented("it".to_owned())), "0A000");
    // A limit may come through the engine.
    let limit = LimitExceeded::Time { limit: Duration::from_secs(1) };
    assert_eq!(code(DataFusionError::External(Box::new(limit))), "57014");
    let sum = OutOfRange::Sum(arrow::datatypes::DataType::Int64);
    assert_eq!(code(sum.into()), "22003");
    assert_eq!(code(DataFusionError::Execution("anything else".to_owned())), "22000");
    assert_eq!(code(DataFusionError::Plan("anything else".to_owned())), "42601");
    assert_eq!(code(DataFusionError::Internal("a bug".to_owned())), "XX000");
}

/// Only the texts of DataFusion and arrow distinguish some kinds of errors: the statements fail
/// here as they do for clients.
#[tokio::test]
async fn statements_that_the_engine_refuses_have_the_codes_of_postgres() {
    let context = SessionContext::new();
    let values = "FROM (VALUES (1, 'x'), (0, 'y')) AS t (n, s)";
    for (sql, expected) in [
        ("SELECT nothing(n)", "42883"),
        ("SELECT substr(n, 'x', 'y', 'z')", "42883"),
        ("SELECT s, count(*)", "42803"),
        ("SELECT n, count(*)", "42803"),
        ("SELECT n = (s = 'x')", "42804"),
        ("SELECT CAST(n AS geometry)", "0A000"),
        ("SELECT missing", "42703"),
        ("SELECT 1 / n", "22012"),
        ("SELECT arrow_cast(1, 'Decimal128(5, 2)') % arrow_cast(n, 'Decimal128(5, 2)')", "22012"),
        ("SELECT CAST(s AS BIGINT)", "22P02"),
        ("SELECT CAST(s AS DATE)", "22P02"),
        ("SELECT to_timestamp(s)", "22P02"),
        ("SELECT abs(arrow_cast(n - 9223372036854775807 - 2, 'Int64'))", "22003"),
    ] {
        let failed = match context.sql(&format!("{sql} {values}")).await {
            Ok(planned) => planned.collect().await.map(|_| ()),
            Err(error) => Err(error),
        };
        let error = failed.expect_err(sql);
        let message = error.to_string();
        assert_eq!(Failure::from(error).code.0, expected, "{sql}: {message}");
    }
}

#[test]
fn errors_of_the_protocol_end_the_connection_and_do_not_tell_users_apart() {
    let wrong = |user: &str| Failure::from(PgWireError::InvalidPassword(user.to_owned()));
    let (ann, bob) = (wrong("ann"), wrong("bob"));
    assert!(ann.is_fatal && ann.code == SqlState::INVALID_PASSWORD);
    assert_eq!(ann.message.replace("ann", "bob"), bob.message);
    let error = |code: &str| {
        let info = ErrorInfo::new("ERROR".to_owned(), code.to_owned(), "a message".to_owned());
        Failure::from(PgWireError::UserError(Box::new(info)))
    };
    assert_eq!((error("22021").code, error("42601").code), (SqlState("22021"), SqlState::PROTOCOL_VIOLATION));
    assert!(error("42601").is_fatal);
}

#[test]
fn a_message_of_the_protocol_has_severity_code_text_and_position() {
    let info = Failure { position: Some(7), ..Failure::new(SqlState::IO, "a message") }.into_info();
    let words = [info.severity.as_str(), info.code.as_str(), info.message.as_str()];
    assert_eq!(words, ["ERROR", "58030", "a message"]);
    assert_eq!(info.position.as_deref(), Some("7"));
    let fatal = Failure::fatal(SqlState::IDLE, "bye").into_info();
    assert_eq!((fatal.severity.as_str(), fatal.position), ("FATAL", None));
    assert_eq!(fatal.severity_nonlocalized.as_deref(), Some("FATAL"));
}
