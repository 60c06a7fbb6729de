//! Types of columns that are inferred from whole files, and notes on them.

use std::collections::BTreeMap;

use evenkeel_model::text_value::{TextFormat, TimestampFormat};

use super::*;
use crate::source::export::{Export, OnUnreadable};

fn inferred(name: &str, content: &str) -> Result<Vec<(String, String)>, SourceError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let columns = infer_columns(&path, &InputOptions::default())?;
    Ok(columns.columns.into_iter().map(|c| (c.name, c.column_type.to_string())).collect())
}

fn types(columns: &[(String, String)]) -> Vec<&str> {
    columns.iter().map(|(_, t)| t.as_str()).collect()
}

#[test]
fn csv_columns_get_the_most_special_type_that_fits_all_values() {
    let columns = inferred(
        "a.csv",
        "i,u,f,b,d,t,s,zip,none,1or2\n1,1,1,true,2026-01-31,2026-01-31T10:00:00Z,x,00123,,1\n\
             -2,18446744073709551615,1.5,FALSE,2026-02-01,2026-01-31,2026-01-31,10001,,two\n",
    )
    .unwrap();
    let expected = ["Int64", "Uint64", "Double", "Bool", "Date", "Timestamp", "Utf8", "Utf8", "Utf8", "Utf8"];
    assert_eq!(types(&columns), expected);
}

#[test]
fn names_longer_than_any_system_takes_are_refused_in_every_format() {
    let name = "k".repeat(LONGEST_NAME + 1);
    for (file, text) in [
        ("a.csv", format!("{name},u\n1,2\n")),
        ("a.tsv", format!("u\t{name}\n1\t2\n")),
        ("a.ndjson", format!("{{\"{name}\":1}}\n")),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(file);
        std::fs::write(&path, text).unwrap();
        let refused = infer_columns(&path, &InputOptions::default()).unwrap_err().to_string();
        assert!(refused.contains(file) && refused.contains("a name of 4097 bytes"), "{refused}");
        assert!(refused.len() < 1_000, "{refused}");
    }
}

#[test]
fn no_type_is_guessed_that_would_lose_digits_or_years() {
    let columns = inferred(
        "a.csv",
        "big,old,instant\n123456789012345678901234567890,1950-01-01,1950-01-01T00:00:00Z\n",
    );
    assert_eq!(types(&columns.unwrap()), ["Utf8", "Date32", "Timestamp64"]);
    let columns =
        inferred("a.jsonl", "{\"a\": 18446744073709551615, \"b\": 99999999999999999999, \"c\": 1.5}\n");
    assert_eq!(types(&columns.unwrap()), ["Uint64", "Utf8", "Double"]);
    let columns = inferred("a.csv", "skipped,kept\n9007199254740993.0,9007199254740994.0\n1.5,1.5\n");
    assert_eq!(types(&columns.unwrap()), ["Utf8", "Double"]);
}

#[test]
fn a_time_and_a_serial_number_are_no_number() {
    let rows = |fraction: fn(u32) -> String| -> String {
        (0..200).map(|row| format!("16647655{:02}.{}\n", row / 4, fraction(row))).collect()
    };
    let calls = format!("id\n{}", rows(|row| (91_000 + row * 7).to_string()));
    assert_eq!(types(&inferred("a.csv", &calls).unwrap()), ["Utf8"]);
    let times = format!("ts\n{}", rows(|row| format!("{:06}", row * 4_871 % 1_000_000)));
    assert_eq!(types(&inferred("a.csv", &times).unwrap()), ["Double"]);
}

#[test]
fn a_first_row_is_no_header_even_if_it_does_not_fit_the_type_of_the_others() {
    for text in [
        "10,1.5\n20,2\n30,3\n",
        "10.5,x\n20,y\n30,z\n",
        "1e3,a\n5,b\n",
        "99999999999999999999,5\n2,6\n3,7\n",
        "10,2026-01-01 10:00:00\n20,2026-01-02\n",
    ] {
        assert!(matches!(inferred("a.csv", text), Err(SourceError::HeaderLikeRow { .. })), "{text}");
    }
    assert!(inferred("a.csv", "1a,2b\n1,2\n").is_ok());
}

#[test]
fn long_and_empty_headings_do_not_shift_types() {
    let long = "x".repeat(70);
    let columns = inferred("a.csv", &format!("k,{long},,b\n1,text,,2026-01-31\n")).unwrap();
    assert_eq!(columns[1].0, long);
    assert_eq!(types(&columns), ["Int64", "Utf8", "Date"]);
}

#[test]
fn numbers_that_lose_digits_are_noted() {
    let note = |text: &str| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, format!("n\n1.5\n{text}\n")).unwrap();
        infer_columns(&path, &InputOptions::default()).unwrap().notes
    };
    let lost = [Note::DigitsLost { column: "n".to_owned() }];
    assert_eq!(note("12345678901234567890.123456789"), lost);
    assert_eq!(note("-0.1234567890123456789"), lost);
    for kept in ["0.12345678901234567", "0.000000000000000000001", "1.5e300", "1234567890.1234567"] {
        assert!(note(kept).is_empty(), "{kept}");
    }
}

#[test]
fn what_an_option_would_read_is_noted_and_the_option_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let text = "id;net;gross;day;at;until;code\n\
            1;1.234,50;9,99;31.01.2026;1/31/2026 9:30 PM;2/28/2026 10:00 PM;1,2,3\n\
            2;7;10,5;01.02.2026;2/1/2026 12:05 AM;3/1/2026 1:00 AM;4,5\n";
    std::fs::write(&path, text).unwrap();
    let options = InputOptions { delimiter: Some(b';'), ..InputOptions::default() };
    let inferred = infer_columns(&path, &options).unwrap();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let expected = [
        Note::DecimalCommas { columns: names(&["net", "gross"]) },
        Note::LocalTimes { columns: names(&["day"]), formats: names(&["%d.%m.%Y"]) },
        Note::LocalTimes { columns: names(&["at", "until"]), formats: names(&["%m/%d/%Y %I:%M %p"]) },
    ];
    assert_eq!(inferred.notes, expected);

    let column_timestamps = inferred.notes.iter().filter_map(|note| match note {
        Note::LocalTimes { columns, formats } => Some((columns, formats.first()?)),
        _ => None,
    });
    let column_timestamps = column_timestamps.flat_map(|(columns, format)| {
        columns.iter().map(move |column| (column.clone(), TimestampFormat::Strftime(format.clone())))
    });
    let options = InputOptions {
        column_timestamps: column_timestamps.collect(),
        text: TextFormat { decimal_comma: true, ..TextFormat::default() },
        ..options
    };
    let read = infer_columns(&path, &options).unwrap();
    assert_eq!(read.notes, []);
    let types: Vec<String> = read.columns.iter().map(|column| column.column_type.to_string()).collect();
    assert_eq!(types, ["Int64", "Double", "Double", "Date", "Timestamp", "Timestamp", "Utf8"]);
}

#[test]
fn no_option_is_named_that_would_misread_a_column() {
    let noted = |text: &str, batch_rows: usize| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        std::fs::write(&path, text).unwrap();
        let options = InputOptions { delimiter: Some(b';'), batch_rows, ..InputOptions::default() };
        let notes = infer_columns(&path, &options).unwrap().notes;
        notes.iter().map(|note| note.code().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(noted("a\n1,5\n2,25\n", 100), ["decimal_commas"]);
    for (what, text) in [
        ("thousands", "a\n140,991\n596,953\n"),
        ("points in another column", "a;b\n1,5;1.5\n2,5;45.123\n"),
        ("leading zeros", "a\n05,17\n1,5\n"),
        ("lists", "a\n1,5,7\n1,5\n"),
    ] {
        assert!(noted(text, 100).is_empty(), "{what}");
    }
    // All rows count, in any batches.
    let late = noted("a;b\n1,5;31.01.2026\nsoon;later\n", 1);
    assert!(!late.iter().any(|code| code == "decimal_commas" || code == "local_times"), "{late:?}");
}

#[test]
fn ndjson_keeps_the_types_of_json_and_finds_times_in_strings() {
    let columns = inferred(
            "a.jsonl",
            "{\"i\": 1, \"s\": \"1\", \"z\": \"01\", \"t\": \"2026-01-31T10:00:00Z\", \"l\": [1], \"b\": true}\n{\"i\": 2, \"f\": 1.5}\n",
        )
        .unwrap();
    let by_name: std::collections::BTreeMap<_, _> = columns.into_iter().collect();
    let expected = [
        ("b", "Bool"),
        ("f", "Double"),
        ("i", "Int64"),
        ("l", "Json"),
        ("s", "Int64"),
        ("t", "Timestamp"),
        ("z", "Utf8"),
    ];
    assert_eq!(by_name, expected.into_iter().map(|(n, t)| (n.to_owned(), t.to_owned())).collect());
}

#[test]
fn a_column_that_is_text_for_a_few_values_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let row = |row: usize| match row {
        150 => "soon,x,a\n".to_owned(),
        row => format!("2026-01-31T10:00:00Z,{row},{}\n", if row % 2 == 0 { "1" } else { "b" }),
    };
    std::fs::write(&path, format!("at,n,mixed\n{}", (0..300).map(row).collect::<String>())).unwrap();
    let sample = infer_columns(&path, &InputOptions::default()).unwrap();
    assert!(sample.columns.iter().all(|column| column.column_type == ColumnType::Utf8));
    assert_eq!(sample.notes.len(), 2, "{:?}", sample.notes);
    assert!(
        sample.notes[0].to_string().contains("'at'") && sample.notes[0].to_string().contains("'soon'"),
        "{:?}",
        sample.notes
    );
    assert!(
        sample.notes[1].to_string().contains("Int64") && sample.notes[1].to_string().contains("'x'"),
        "{:?}",
        sample.notes
    );
}

#[test]
fn a_file_without_records_is_refused() {
    assert!(matches!(inferred("a.csv", "a,b\n"), Err(SourceError::NoRecord { .. })));
    assert!(matches!(inferred("a.csv", ""), Err(SourceError::Empty { .. })));
}

/// Objects that name one of their folders, and objects that do not, which have the folder's value.
#[test]
fn a_column_of_objects_and_of_folders_has_a_type_that_fits_both() {
    for (files, expected) in [
        (vec![("month=12", "{\"month\": 3}\n{}\n")], "Int64"),
        (vec![("month=12", "{\"month\": 3}\n{}\n"), ("month=07", "{\"month\": 4}\n{}\n")], "Utf8"),
        (vec![("month=07", "{\"month\": 4}\n{}\n")], "Utf8"),
        (vec![("month=FI", "{\"month\": {\"a\": 1}}\n{}\n")], "Utf8"),
        (vec![("month=true", "{\"month\": false}\n{}\n")], "Bool"),
        (vec![("month=FI", "{\"month\": 3}\n{\"month\": 4}\n")], "Int64"),
        (vec![("month=__HIVE_DEFAULT_PARTITION__", "{\"month\": 4}\n{}\n")], "Int64"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let write = |(name, text): &(&str, &str)| {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            let path = folder.path().join(name).join("a.ndjson");
            std::fs::write(&path, text).unwrap();
            InputPath::File(path)
        };
        let inputs: Vec<InputPath> = files.iter().map(write).collect();
        let export = Export::open(&inputs, InputOptions::default(), &BTreeMap::new()).unwrap();
        let types: Vec<String> =
            export.columns().iter().map(|column| column.column_type.to_string()).collect();
        assert_eq!(types, [expected], "{files:?}");
        let mut rows = 0;
        let read = export.read(OnUnreadable::Fail, |_, batch| {
            rows += batch.num_rows();
            Ok::<bool, SourceError>(true)
        });
        read.unwrap();
        assert_eq!(rows, 2 * files.len(), "{files:?}");
    }
}
