//! Text of other systems: spellings of NULL and quotes, headers, and values that a type would
//! change.

use serde_json::Value;

use crate::common::{done, json, run};
use crate::exports::{types, write};

#[test]
fn numbers_that_would_lose_characters_are_refused_further_on() {
    let dir = tempfile::tempdir().unwrap();
    let rows = |n: &str| (0..120_000).map(|id| format!("{id},{}{n}\n", id + 10_000)).collect::<String>();
    let cases = [("", "01234"), ("", "+1234"), ("", "-07"), (".5", "00.5"), (".5", "9007199254740993")];
    for (form, odd) in cases {
        write(dir.path(), "a.csv", format!("id,zip\n{}120000,{odd}\n", rows(form)));
        let refused = run(dir.path(), "evaluate {}/a.csv");
        let message = refused.stderr.lines().find(|line| line.starts_with("error: ")).unwrap_or_default();
        let place = "a.csv, line 120002, column 'zip'";
        assert!(message.contains(place) && message.contains("--type zip:utf8"), "{odd}: {}", refused.stderr);
        let number = if form.is_empty() { "int64" } else { "double" };
        for kept in ["utf8", number] {
            let report = json(dir.path(), &format!("evaluate {{}}/a.csv --type zip:{kept} --format json"));
            assert_eq!(report["rows"], 120_001, "{odd} {kept}");
        }
        let report = json(dir.path(), "evaluate {}/a.csv --on-error skip --format json");
        assert_eq!(report["rows"], 120_000, "{odd}");
    }
    // The type of a column without a value in the first file comes from rows further on, of which a
    // sample is read.
    write(&dir.path().join("in"), "1.csv", "id,zip\n1,\n2,\n");
    write(&dir.path().join("in"), "2.csv", format!("id,zip\n{}9,07\n{}", rows(""), rows("").repeat(2)));
    let found = run(dir.path(), "evaluate {}/in --format json");
    match found.code {
        0 => {
            let report: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
            assert_eq!(report["columns"][1]["type"], "Utf8", "{}", report["columns"]);
        }
        _ => assert!(found.stderr.contains("2.csv, line 120002, column 'zip'"), "{}", found.stderr),
    }
}

#[test]
fn columns_that_only_some_rows_have_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    let notes = |command: &str| json(dir.path(), &format!("{command} --format json"))["notes"].take();
    let has = |notes: Value, code: &str, parts: &[&str]| {
        let is_it = |note: &&Value| {
            note["code"] == code && parts.iter().all(|part| note["text"].as_str().unwrap().contains(part))
        };
        assert_eq!(notes.as_array().unwrap().iter().filter(is_it).count(), 1, "{code}, {parts:?}: {notes}");
    };
    let rows: String = (0..120_000).map(|id| format!("{{\"id\":{id}}}\n")).collect();
    write(dir.path(), "late.ndjson", format!("{rows}{{\"id\":120000,\"late\":1}}\n"));
    has(notes("evaluate {}/late.ndjson"), "unknown_columns", &["late of", "late.ndjson"]);
    let folder = dir.path().join("csv");
    write(&folder, "1.csv", "id,n\n1,a\n2,b\n");
    write(&folder, "2.csv", "id,other\n3,c\n4,d\n");
    has(notes("evaluate {}/csv"), "unknown_columns", &["other of", "2.csv"]);
    has(notes("evaluate {}/csv"), "missing_columns", &["2.csv", ": n"]);
    write(dir.path(), "nameless.csv", ",id,,n\n0,1,x,a\n1,2,y,b\n");
    has(notes("evaluate {}/nameless.csv"), "nameless_columns", &["1, 3"]);
    // The same rows as Parquet and in equal files have no such note.
    write(&folder, "2.csv", "n,id\nc,3\nd,4\n");
    let plain = notes("evaluate {}/csv");
    assert!(!plain.to_string().contains("columns"), "{plain}");
}

#[test]
fn text_of_clickhouse_postgresql_and_doris_is_read_with_its_nulls_escapes_and_types() {
    let rows = 1..=40;
    let with_types: String = "id\tat\tname\nUInt64\tNullable(DateTime)\tLowCardinality(String)\n".to_owned()
        + &rows.clone().map(|id| format!("{id}\t2026-01-02 03:04:05\ta\\tb\n")).collect::<String>();
    let expected = ["id Uint64", "at Datetime", "name Utf8"];
    for name in ["a.tsv", "a.txt", "a.csv"] {
        let (types, count) = types(name, &with_types, " --input-format tsv").unwrap();
        assert_eq!((types.as_slice(), count), (expected.map(str::to_owned).as_slice(), 40), "{name}");
    }
    let quoted = with_types
        .replace("a\\tb", "\"a, b\"")
        .replace('\t', ",")
        .replace("\nUInt64", "\nNullable(UInt64)")
        .replace("\n1,", "\n\\N,");
    let (found, count) = types("a.csv", &quoted, "").unwrap();
    assert_eq!((found.as_slice(), count), (expected.map(str::to_owned).as_slice(), 40));
    // COPY of PostgreSQL has no header; NULL and escapes show what it is.
    let copy: String =
        rows.clone().map(|id| format!("{id}\t\\N\tline\\nbreak\t2026-01-02 03:04:05+00\n")).collect();
    let (found, count) = types("a.copy", &(copy.clone() + "\\.\n"), " --names id,v,text,at").unwrap();
    let expected = ["id Int64", "v Utf8", "text Utf8", "at Timestamp"];
    assert_eq!((found.as_slice(), count), (expected.map(str::to_owned).as_slice(), 40));
    let error = types("a.copy", &copy, "").unwrap_err();
    assert!(error.contains("its first line looks like a row") && error.contains("--names"), "{error}");
    // Doris separates by tabs in files named .csv.
    let doris: String = rows.map(|id| format!("{id}\t{}\n", id * 7)).collect();
    let (found, count) = types("r_0.csv", &("id\tn\n".to_owned() + &doris), "").unwrap();
    assert_eq!((found.as_slice(), count), (["id Int64", "n Int64"].map(str::to_owned).as_slice(), 40));
    let (found, count) = types("r_0.csv", &doris, " --names id,n").unwrap();
    assert_eq!((found.as_slice(), count), (["id Int64", "n Int64"].map(str::to_owned).as_slice(), 40));
}

#[test]
fn a_header_that_looks_like_a_row_is_reported_and_names_that_are_numbers_are_not() {
    let rows = |row: &str| format!("{row}\n").repeat(30);
    for (header, row) in [
        ("17,u1,2026-01-02T03:04:05Z", "18,u2,2026-01-02T03:04:06Z"),
        ("2026-01-02T03:04:05Z,u1", "2026-01-02T03:04:06Z,u2"),
        ("1.5,-3", "2.5,-4"),
    ] {
        let text = format!("{header}\n{}", rows(row));
        let error = types("a.csv", &text, "").unwrap_err();
        assert!(error.contains("looks like a row") && error.contains("--header"), "{error}");
        let names: Vec<String> = (0..header.split(',').count()).map(|number| format!("c{number}")).collect();
        let (found, count) = types("a.csv", &text, &format!(" --names {}", names.join(","))).unwrap();
        assert_eq!((found.len(), count), (names.len(), 31));
        let (found, count) = types("a.csv", &text, " --header").unwrap();
        assert_eq!((found.len(), count), (names.len(), 30));
    }
    for (header, row) in [
        ("id,n", "1,2"),
        ("country,2019,2020,2021", "x,1,2,3"),
        ("0,1,2", "0.5,1.5,2.5"),
        (",0,1", "7,0.5,1.5"),
        ("id,17", "1,2"),
        ("a,b", "x,y"),
    ] {
        let found = types("a.csv", &format!("{header}\n{}", rows(row)), "");
        assert!(found.is_ok(), "{header}: {found:?}");
    }
}

/// Returns all rows of a file as CSV, as a table made from it has them.
fn through_a_table(name: &str, text: &str, options: &str) -> Result<String, String> {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), name, text);
    let created = run(
        dir.path(),
        &format!("create {{}}/t --like {{}}/{name} --primary-key id --partitions 1{options}"),
    );
    if created.code != 0 {
        return Err(created.stderr);
    }
    let ingested = run(dir.path(), &format!("ingest {{}}/t {{}}/{name}{options}"));
    if ingested.code != 0 {
        return Err(ingested.stderr);
    }
    write(dir.path(), "q.sql", "SELECT * FROM t ORDER BY id");
    Ok(done(dir.path(), "query {}/t --format ndjson -f {}/q.sql"))
}

#[test]
fn null_and_empty_text_are_told_apart_if_the_file_says_which_columns_take_null() {
    let text = "\"id\",\"a\",\"b\"\n\"UInt64\",\"String\",\"Nullable(String)\"\n1,\"\",\"\"\n2,\"\\N\",\\N\n";
    let rows = through_a_table("ch.csv", text, "").unwrap();
    assert_eq!(rows, "{\"id\":1,\"a\":\"\"}\n{\"id\":2,\"a\":\"\\\\N\"}\n");
    // mysql --batch writes NULL as a word.
    let text = "id\tn\ts\n1\tNULL\tNULL\n2\t5\tx\\ty\n";
    let rows = through_a_table("m.tsv", text, " --input-format tsv --null-value NULL").unwrap();
    assert_eq!(rows, "{\"id\":1}\n{\"id\":2,\"n\":5,\"s\":\"x\\ty\"}\n");
}

#[test]
fn a_spelling_that_was_guessed_wrong_is_refused_further_on() {
    let rows = |row: &str| (0..1000).map(|id| format!("{id}\t{row}\n")).collect::<String>();
    let header = "id\tnote\n";
    for (text, line) in [
        (format!("{header}{}1000\tC:\\Users\\q\n", rows("\\N")), "line 1002"),
        (format!("{header}{}1000\t\\N\n", rows("C:\\Users")), "line 1002"),
        (format!("{header}{}1000\t\\N\n", rows("\"plain text\"")), "line 1002"),
        // Empty text is NULL in CSV alone.
        (format!("{header}{}1000\t\\N\n", rows("")), "line 1002"),
        (
            format!("{header}{}1000\t\\N\n", rows("a\\\\b").replacen("a\\\\b", "\"say \"\"hi\"\"\"", 1)),
            "line 1002",
        ),
        (format!("{header}{}1000\ta\\\tb\n", rows("plain text")), "line 1002"),
    ] {
        let error = through_a_table("a.tsv", &text, "").unwrap_err();
        assert!(error.contains(line) && error.contains("--input-format tsv"), "{error}");
        assert!(through_a_table("a.tsv", &text, " --input-format tsv").is_ok());
    }
    // A NULL after lines without quotes and backslashes is the same in both spellings.
    let text = format!("{header}{}1000\t\\N\n", rows("plain text"));
    let read = through_a_table("a.tsv", &text, "").unwrap();
    assert!(read.ends_with("{\"id\":1000}\n"), "{read}");
    assert_eq!(through_a_table("a.tsv", &text, " --input-format tsv").unwrap(), read);
    let error = through_a_table("a.tsv", &text, " --null-value NA").unwrap_err();
    assert!(error.contains("line 1002"), "{error}");
    // Quotes that are doubled in quotes are those of CSV.
    let text =
        format!("{header}1\t\"say \"\"hi\"\"\"\n{}2000\t\\N\n", rows("x").split_off("0\tx\n1\tx\n".len()));
    let read = through_a_table("a.tsv", &text, "").unwrap();
    assert!(read.contains(r#"{"id":1,"note":"say \"hi\""}"#) && read.ends_with("{\"id\":2000}\n"), "{read}");
    // A quote that is not closed is text if NULL shows the spelling.
    let text = "id\tnote\n1\t\"hello\n2\t\\N\n3\tworld\" x\n4\tq\"q\n";
    assert_eq!(through_a_table("a.tsv", text, "").unwrap().lines().count(), 4);
}
