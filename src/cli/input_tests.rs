//! Arguments about inputs, and the options that they become.

use clap::Parser;
use evenkeel::text_value::TimestampFormat;

use super::*;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    reading: ReadingArgs,
}

fn reading(words: &[&str]) -> ReadingArgs {
    Command::try_parse_from([&["evaluate"], words].concat()).unwrap().reading
}

fn options(words: &[&str]) -> InputOptions {
    reading(words).options().unwrap()
}

/// The message about arguments that are wrong usage.
fn refusal<T>(result: Result<T, Failure>) -> String {
    match result {
        Err(Failure::Usage(error)) => error.to_string(),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it is accepted"),
    }
}

#[test]
fn arguments_are_written_as_they_are_read() {
    let no_words: [&str; 0] = [];
    assert_eq!(reading(&[]).words(), no_words);
    for words in [
        &["--input-format", "tsv", "--header"] as &[&str],
        &["--timestamp-format", "unix-ms", "--timestamp-format", "at=%d.%m.%Y", "--delimiter", ";"],
        &["--names", "a,b", "--null-value", "NA", "--null-value", "none"],
        &["--decimal-comma", "--escape", "\\", "--quoted-empty"],
        &["--table", "ads/events", "--ddl", "t.sql"],
    ] {
        assert_eq!(reading(words).words(), words);
    }
}

#[test]
fn a_header_needs_no_names_and_a_statement_neither() {
    for words in [
        &["--names", "a", "--header"] as &[&str],
        &["--ddl", "t.sql", "--header"],
        &["--ddl", "t.sql", "--names", "a"],
    ] {
        assert!(Command::try_parse_from([&["evaluate"], words].concat()).is_err(), "{words:?}");
    }
}

#[test]
fn a_delimiter_is_one_ascii_character_or_the_word_tab() {
    for (text, byte) in
        [(";", b';'), ("|", b'|'), ("\t", b'\t'), ("\\t", b'\t'), ("tab", b'\t'), ("TAB", b'\t')]
    {
        assert_eq!(options(&["--delimiter", text]).delimiter, Some(byte), "{text}");
    }
    assert_eq!(options(&[]).delimiter, None);
    for wrong in ["", ";;", "é", "\\n"] {
        let message = refusal(reading(&["--delimiter", wrong]).options());
        assert!(message.starts_with(&format!("--delimiter '{wrong}' is not one ASCII")), "{message}");
    }
}

#[test]
fn an_escape_is_one_ascii_character_other_than_a_quote() {
    for (text, byte) in [("\\", b'\\'), ("\\\\", b'\\'), ("!", b'!')] {
        assert_eq!(options(&["--escape", text]).escape, Some(byte), "{text}");
    }
    for wrong in ["", "\"", "ab", "é"] {
        let message = refusal(reading(&["--escape", wrong]).options());
        assert!(message.starts_with("--escape "), "{message}");
    }
}

#[test]
fn formats_of_times_are_for_all_columns_or_for_one() {
    let format = |text: &str| -> TimestampFormat { text.parse().unwrap() };
    let times = |formats: &[&str]| {
        let words: Vec<&str> = formats.iter().flat_map(|format| ["--timestamp-format", *format]).collect();
        reading(&words).options()
    };
    let read = times(&["unix-s", "at=%d.%m.%Y", "day=%Y=%m=%d"]).unwrap();
    assert_eq!(read.text.timestamps, format("unix-s"));
    let of_columns = [("at", "%d.%m.%Y"), ("day", "%Y=%m=%d")];
    let of_columns = of_columns.map(|(column, text)| (column.to_owned(), format(text)));
    assert_eq!(read.column_timestamps, BTreeMap::from(of_columns));
    // The sign may be part of the format.
    let signs = times(&["%Y=%m=%d"]).unwrap();
    assert_eq!((signs.text.timestamps, signs.column_timestamps.len()), (format("%Y=%m=%d"), 0));
    assert!(refusal(times(&["unix-s", "unix-ms"])).contains("is given twice for all columns"));
    for wrong in ["unix-years", "at=unix-years"] {
        assert!(refusal(times(&[wrong])).contains("unix-years"), "{wrong}");
    }
}

#[test]
fn options_that_are_not_given_are_the_defaults() {
    assert_eq!(options(&[]), InputOptions::default());
    let given = options(&["--null-value", "NA", "--names", " a , b", "--decimal-comma", "--quoted-empty"]);
    let expected = InputOptions {
        null_values: vec!["NA".to_owned()],
        names: vec!["a".to_owned(), "b".to_owned()],
        quoted_empty: true,
        text: TextFormat { decimal_comma: true, ..TextFormat::default() },
        ..InputOptions::default()
    };
    assert_eq!(given, expected);
    for (name, format) in [
        ("parquet", InputFormat::Parquet),
        ("csv", InputFormat::Csv),
        ("tsv", InputFormat::Tsv),
        ("ndjson", InputFormat::Ndjson),
        ("arrow", InputFormat::Arrow),
        ("avro", InputFormat::Avro),
        ("orc", InputFormat::Orc),
    ] {
        assert_eq!(options(&["--input-format", name]).format, Some(format), "{name}");
    }
}

#[test]
fn a_statement_declares_the_table_and_a_wrong_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.sql");
    let declared = |text: &str| {
        std::fs::write(&file, text).unwrap();
        reading(&["--ddl", file.to_str().unwrap()]).statement()
    };
    let table = declared("CREATE TABLE events (id BIGINT NOT NULL, at TIMESTAMP, PRIMARY KEY (id));")
        .unwrap()
        .unwrap();
    assert_eq!((table.name.as_str(), table.columns.len()), ("events", 2));
    assert_eq!(table.primary_key, ["id"]);
    for wrong in ["SELECT 1;", "{\"path\": 1}"] {
        let message = refusal(declared(wrong));
        assert!(message.starts_with(&format!("{}: ", file.display())), "{message}");
    }
    assert!(reading(&[]).statement().unwrap().is_none());
}
