//! `--mask-values`: no value of a row is in anything that is printed or written, whatever is found.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Date32Array, Decimal128Array, DurationMicrosecondArray, Float32Array, Int64Array,
    ListArray, RecordBatch, StringArray, TimestampNanosecondArray, UInt64Array,
};
use arrow::datatypes::Int32Type;
use evenkeel::finding::FindingCode;
use parquet::arrow::ArrowWriter;
use serde_json::Value;

use crate::common::{Run, run};

/// Part of every text, every number and every time in these exports.
const TEXT: &str = "canary";
const NUMBER: u64 = 918_273_000;
const YEAR: &str = "2041-";
/// Microseconds since 1970 of the year 2041.
const YEAR_MICROS: std::ops::Range<f64> = 2.24e15..2.28e15;

/// The time of second `second`.
fn time(second: u64) -> String {
    let (day, second) = (second / 86_400, second % 86_400);
    format!("2041-09-{:02}T{:02}:{:02}:{:02}Z", day + 1, second / 3600, second / 60 % 60, second % 60)
}

/// An export as CSV: rows of text, number, time and a fraction.
fn csv(rows: impl Iterator<Item = (String, u64, String)>) -> String {
    let mut text = "who,id,at,amount,flag,day\n".to_owned();
    for (number, (who, id, at)) in rows.enumerate() {
        let _ =
            writeln!(text, "{TEXT}-{who},{},{at},{}.25,true,2041-09-23", NUMBER + id, NUMBER + number as u64);
    }
    text
}

/// A number that looks random, from `at`.
fn mixed(at: u64) -> u64 {
    at.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 33
}

/// Numbers in JSON that are points in time of the year of the canaries.
fn times_in(value: &Value, found: &mut Vec<f64>) {
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(0.0);
            found.extend([1.0, 1e3, 1e6].map(|unit| number * unit).into_iter().filter(|n| {
                // Seconds and milliseconds too; a plain count of rows is not that large.
                number > 1e9 && YEAR_MICROS.contains(n)
            }));
        }
        Value::Array(values) => values.iter().for_each(|value| times_in(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| times_in(value, found)),
        _ => {}
    }
}

fn check(text: &str, what: &str) {
    for canary in [TEXT, "918273", "918,273", "918 273", "9.18273", YEAR, "63616e617279", "Y2FuYXJ5"] {
        // Of a number only the beginning counts: a figure may have any digits further on.
        let begins =
            |at: &usize| !text[..*at].ends_with(|before: char| before.is_ascii_digit() || before == '.');
        if let Some(at) = text.match_indices(canary).map(|(at, _)| at).find(begins) {
            let from = text[..at].char_indices().rev().nth(200).map_or(0, |(at, _)| at);
            panic!("{what} has '{canary}': ...{}", text[from..].chars().take(400).collect::<String>());
        }
    }
}

#[derive(Default)]
struct Seen {
    findings: BTreeSet<String>,
    notes: BTreeSet<String>,
}

/// Evaluates in every form; nothing may hold a canary. The options of the arguments themselves are
/// free of them.
fn evaluate(folder: &Path, arguments: &str, seen: &mut Seen) {
    // The path must hold no canary by chance.
    let pages = ["report.html", "report.users.html", "report.visits.html"].map(|page| folder.join(page));
    for format in ["json", "table", "markdown"] {
        let ran = run(
            folder,
            &format!("evaluate {arguments} --mask-values --html {{}}/report.html --format {format}"),
        );
        let Run { code, stdout, stderr } = ran;
        check(&stdout, &format!("{format} of {arguments}"));
        check(&stderr, &format!("stderr of {arguments}"));
        assert_eq!(code, 0, "{arguments}: {stderr}");
        for page in pages.iter().filter_map(|page| std::fs::read_to_string(page).ok()) {
            check(&page, &format!("HTML of {arguments}"));
        }
        if format == "json" {
            let value: Value = serde_json::from_str(&stdout).unwrap();
            let mut times = Vec::new();
            times_in(&value, &mut times);
            assert!(times.is_empty(), "{arguments}: {times:?}");
            let of_tables = value["tables"].as_array().into_iter().flatten();
            let findings = of_tables.chain([&value]).flat_map(|of| [&of["findings"], &of["join_findings"]]);
            for finding in findings.filter_map(Value::as_array).flatten() {
                seen.findings.insert(finding["code"].as_str().unwrap().to_owned());
            }
            for note in value["notes"].as_array().into_iter().flatten() {
                seen.notes.insert(note["code"].as_str().unwrap().to_owned());
            }
        }
    }
}

/// Codes of the findings of an evaluation: all but those of `lint` and of the simulations.
fn codes_of_findings() -> BTreeSet<String> {
    use FindingCode as F;
    let others = [
        F::FallsBehind,
        F::NoFaultHeadroom,
        F::IdleNodes,
        F::UnevenAssignment,
        F::HotPartition,
        F::AssumedCapacity,
        F::TooFewRows,
        F::TimeOrderedUuid,
        F::MonotonicKey,
        F::MonotonicIndex,
        F::HotRow,
        F::HistoryAscends,
        F::TwoPhaseCommits,
        F::LargeIndex,
        F::PartitionsDoNotDivide,
        F::WorkersAlias,
        F::SameHashTwice,
    ];
    let of_evaluate = F::ALL.iter().filter(|code| !others.contains(code));
    of_evaluate.map(ToString::to_string).collect()
}

#[test]
fn no_finding_and_no_note_holds_a_value() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    let mut seen = Seen::default();

    // Few values, one of them heavy all the time; rows that repeat, alike and with other values.
    let few = (0..6000u64).map(|row| {
        let who = if row % 10 < 8 { "heavy".to_owned() } else { format!("w{}", row % 7) };
        (who, row / 2, time(row * 40))
    });
    let mut text = csv(few);
    let line = text.lines().nth(5).unwrap().to_owned();
    let _ = writeln!(text, "{line}\n{line}");
    write("few.csv", &text);
    let few = "{}/few.csv --partition-key who --primary-key id --primary-key at,id --partitions 16";
    evaluate(folder, few, &mut seen);
    evaluate(folder, &format!("{few} --partition-rate 1B --weights 1,1,1 --window 1h"), &mut seen);
    evaluate(
        folder,
        "{}/few.csv --partition-key who --partitions 16 --sample 0.5 --no-primary-keys",
        &mut seen,
    );
    evaluate(
        folder,
        "{}/few.csv --partition-key amount,id --primary-key amount,id --partitions 4",
        &mut seen,
    );

    // Keys that follow the time, and the clock.
    let clock = (0..20_000u64).map(|row| (format!("h{}", row / 40 % 24), row, time(row * 90)));
    write("clock.csv", &csv(clock));
    evaluate(
        folder,
        "{}/clock.csv --partition-key date(at) --partition-key hour(at) --partition-key who --primary-key at,id --partitions 8 --window 1h",
        &mut seen,
    );

    // Functions with defects and with unequal ranges, on consecutive numbers.
    let consecutive = (0..4096u64).map(|row| (format!("w{row}"), row, time(row)));
    write("numbers.csv", &csv(consecutive));
    for (function, partitions) in [("doris", 512), ("cassandra-vnodes", 12), ("all", 12)] {
        evaluate(
            folder,
            &format!(
                "{{}}/numbers.csv --partition-key id --no-primary-keys --placement {function} --partitions {partitions}"
            ),
            &mut seen,
        );
    }

    let peak = "{}/numbers.csv --partition-key id --primary-key at,id --partition-rate 1B --partitions 4 --window 5m";
    evaluate(folder, peak, &mut seen);

    // Out of order; without times here and there; with NULL in the key.
    let shuffled = (0..20_000u64).map(|row| {
        let at = if row % 50 == 0 { String::new() } else { time(mixed(row) % 400_000) };
        (format!("w{}", mixed(row)), mixed(row) % 100_000, at)
    });
    let text = csv(shuffled).replace(&format!("{TEXT}-w{},", mixed(77)), ",");
    write("shuffled.csv", &text);
    evaluate(
        folder,
        "{}/shuffled.csv --partition-key who --primary-key id,who --batch 100 --partitions 4 --window 1h",
        &mut seen,
    );
    // In order within each of many runs: the correlation is small, and rows are appended all the
    // same.
    let runs = (0..20_000u64).map(|row| (format!("w{row}"), row % 100, time(row)));
    write("runs.csv", &csv(runs));
    evaluate(folder, "{}/runs.csv --partition-key who --primary-key id,who --partitions 1", &mut seen);
    evaluate(
        folder,
        "{}/runs.csv --partition-key id --primary-key who,id --batch 500 --partitions 1",
        &mut seen,
    );

    // In order but for neighbours: the correlation is 1, and half of the rows come late.
    let swapped = (0..20_000u64).map(|row| (format!("w{row}"), row ^ 1, time(row)));
    write("swapped.csv", &csv(swapped));
    evaluate(folder, "{}/swapped.csv --partition-key who --primary-key id,who --partitions 1", &mut seen);

    // Few rows; no time.
    write("small.csv", &csv((0..40).map(|row| (format!("w{row}"), row, time(row * 1000)))));
    evaluate(folder, "{}/small.csv --partitions 8", &mut seen);
    let timeless: String = (0..3000).map(|row| format!("{TEXT}-{row},{}\n", NUMBER + row)).collect();
    write("timeless.csv", &format!("who,id\n{timeless}"));
    evaluate(folder, "{}/timeless.csv --partitions 4", &mut seen);

    // Statements with literals: planned, not planned, and none of them planned.
    std::fs::create_dir_all(folder.join("queries")).unwrap();
    std::fs::create_dir_all(folder.join("wrong")).unwrap();
    write("queries/of_one.sql", &format!("SELECT * FROM t WHERE who = '{TEXT}-w5'"));
    write(
        "queries/of_number.sql",
        &format!("SELECT * FROM t WHERE id = {NUMBER} AND at > '2041-09-23T00:00:00Z'"),
    );
    write("queries/cast.sql", &format!("SELECT * FROM t WHERE at > CAST('{TEXT}' AS TIMESTAMP)"));
    write("wrong/column.sql", &format!("SELECT * FROM t WHERE \"{TEXT}\" = 1"));
    write("wrong/text.sql", &format!("SELECT '{TEXT} FROM t"));
    for queries in ["queries", "wrong"] {
        evaluate(
            folder,
            &format!(
                "{{}}/numbers.csv --partition-key who --partition-key id --primary-key at,id,who --partitions 8 --queries {{}}/{queries}"
            ),
            &mut seen,
        );
    }

    // Columns that are nearly of a type, for each type that is found in text.
    let odd = |row: u64, value: String| if row == 700 { format!("{TEXT}.secret@example.com") } else { value };
    let mut text = "i,u,f,d,t,id\n".to_owned();
    for row in 0..3000u64 {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{}",
            odd(row, (NUMBER + row).to_string()),
            odd(row, format!("1844674407{}", NUMBER + row)),
            odd(row, format!("{}.5", NUMBER + row)),
            odd(row, "2041-09-23".to_owned()),
            odd(row, time(row)),
            NUMBER + row
        );
    }
    write("nearly.csv", &text);
    evaluate(folder, "{}/nearly.csv --partitions 4", &mut seen);
    let types = [
        "i:int64",
        "u:uint64",
        "f:double",
        "d:date",
        "t:timestamp",
        "i:json",
        "i:decimal(22,9)",
        "i:bool",
        "i:uuid",
    ];
    for column in types {
        let arguments = format!("{{}}/nearly.csv --partitions 4 --partition-key id --type {column}");
        // No row at all can be read as the last two.
        if !["i:bool", "i:uuid"].contains(&column) {
            evaluate(folder, &format!("{arguments} --on-error skip"), &mut seen);
        }
        let failed = run(folder, &format!("evaluate {arguments} --mask-values"));
        assert_eq!(failed.code, 1, "{column}: {}", failed.stderr);
        check(&failed.stderr, column);
        assert!(failed.stderr.contains("nearly.csv, line "), "the place stays: {}", failed.stderr);
    }
    let broken =
        format!("{{\"who\": \"{TEXT}\", \"id\": 1}}\n{{\"who\": \"{TEXT}\", {TEXT}\n\"{TEXT}\"\n").repeat(20);
    write("broken.ndjson", &broken);
    let failed = run(folder, "evaluate {}/broken.ndjson --mask-values");
    assert_eq!(failed.code, 1);
    check(&failed.stderr, "broken NDJSON");

    write_parquet(&folder.join("types.parquet"));
    evaluate(folder, "{}/types.parquet --partitions 4", &mut seen);
    for key in ["s", "b", "u", "d", "n"] {
        let arguments =
            format!("{{}}/types.parquet --partitions 4 --partition-key {key} --primary-key i,{key}");
        evaluate(folder, &arguments, &mut seen);
    }
    evaluate(
        folder,
        "{}/types.parquet --partitions 4 --partition-key u --no-primary-keys --placement all",
        &mut seen,
    );

    // YDB's hash takes nothing of a Decimal: all rows go to one partition, however many values
    // there are.
    evaluate(folder, "{}/types.parquet --partitions 4 --partition-key c", &mut seen);
    // A row each hour.
    let sparse = (0..400u64).map(|row| (format!("w{row}"), row, time(row * 3600)));
    write("sparse.csv", &csv(sparse));
    evaluate(folder, "{}/sparse.csv --time at --window 1h --partitions 16", &mut seen);

    // Two tables, once joined by what has no value in common.
    let users = (0..500u64)
        .fold("id,mail\n".to_owned(), |text, row| text + &format!("{},{TEXT}{row}\n", NUMBER + row));
    let visits = (0..2000u64).fold("visit,user_id,at\n".to_owned(), |text, row| {
        text + &format!("{row},{},{}\n", NUMBER + row % 500, time(row))
    });
    write("users.csv", &users);
    write("visits.csv", &visits);
    let tables = "{}/users.csv {}/visits.csv --partitions 4";
    evaluate(folder, tables, &mut seen);
    evaluate(folder, &format!("{tables} --join users.id=visits.user_id --type user_id:int32"), &mut seen);
    evaluate(folder, &format!("{tables} --join users.id=visits.visit"), &mut seen);

    let missing: Vec<String> = codes_of_findings().difference(&seen.findings).cloned().collect();
    assert!(missing.is_empty(), "no scenario here has these findings: {missing:?}");
    for code in [
        "read_as_text",
        "rows_left_out",
        "nanoseconds_cut",
        "column_left_out",
        "no_primary_key",
        "placements_left_out",
        "times_masked",
    ] {
        let found = &seen.notes;
        assert!(found.contains(code), "no scenario here has a note with the code {code}: {found:?}");
    }
}

/// Every other type of column, each value of them a canary.
fn write_parquet(path: &Path) {
    let rows = 0..600u64;
    let number = |row: u64| NUMBER as i64 + row as i64;
    let nanos = |row: u64| (2_263_000_000 + row as i64) * 1_000_000_000 + 123_456_000;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("s", Arc::new(StringArray::from_iter_values(rows.clone().map(|row| format!("{TEXT}-{}", row % 9))))),
        ("b", Arc::new(BinaryArray::from_iter_values(rows.clone().map(|row| format!("{TEXT}-{}", row % 9))))),
        ("i", Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| number(row % 9))))),
        (
            "u",
            Arc::new(UInt64Array::from_iter_values(
                rows.clone().map(|row| u64::MAX - 9_182_730_000 - row % 9),
            )),
        ),
        ("d", Arc::new(Date32Array::from_iter_values(rows.clone().map(|row| 26_192 + (row % 9) as i32)))),
        ("n", Arc::new(TimestampNanosecondArray::from_iter_values(rows.clone().map(nanos)))),
        ("f", Arc::new(Float32Array::from_iter_values(rows.clone().map(|row| number(row) as f32)))),
        (
            "c",
            Arc::new(
                Decimal128Array::from_iter_values(rows.clone().map(|row| i128::from(number(row))))
                    .with_precision_and_scale(22, 9)
                    .unwrap(),
            ),
        ),
        ("l", Arc::new(DurationMicrosecondArray::from_iter_values(rows.clone().map(number)))),
        (
            "nested",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
                rows.map(|row| Some(vec![Some((NUMBER + row) as i32)])),
            )),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}
