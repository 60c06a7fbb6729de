//! Columns that are found as candidates, and the reasons that are given.

use std::path::Path;

use arrow::array::RecordBatch;
use serde_json::{Value, json};

use crate::common::{done, json, note, run};
use crate::evaluate::FLIGHTS;

#[test]
fn candidates_are_found_with_reasons_and_the_answer_is_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let evaluation = json(dir.path(), &format!("evaluate {FLIGHTS} --format json"));
    assert_eq!(evaluation["recommendation"]["primary_key"][0], "time_hour");
    let key = &evaluation["primary_keys"].as_array().unwrap().iter().find(|key| key["unique"] == true);
    assert!(key.is_some(), "{}", evaluation["primary_keys"]);
    let considered = evaluation["considered"].as_array().unwrap();
    let reason = |column: &str| {
        let found =
            considered.iter().find(|c| c["key"] == json!([column]) && c["role"] == "partition_key").unwrap();
        assert_eq!(found["kept"], false, "{column}");
        found["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason("dep_time").contains("have NULL"));
    assert!(reason("origin").contains("cannot fill 16 partitions: 3 values in the 336776 rows"));
    assert_eq!(reason("year"), "all of the 336776 rows have one value");
    // Few flights lack the number of their aircraft, which they can be given.
    let aircraft = considered.iter().find(|c| c["key"] == json!(["tailnum"])).unwrap();
    assert_eq!(aircraft["kept"], true);
    assert!(aircraft["reason"].as_str().unwrap().contains("of which have NULL"), "{aircraft}");
    let findings = evaluation["findings"].as_array().unwrap();
    let nulls =
        findings.iter().find(|f| f["code"] == "null_keys" && f["subject"] == "HASH(tailnum)").unwrap();
    assert_eq!((&nulls["severity"], &nulls["measured"]), (&json!("warning"), &json!(2512.0)));
    let ranked = evaluation["ranking"].as_array().unwrap();
    let of_aircraft = ranked.iter().find(|key| key["partition_key"] == json!(["tailnum"])).unwrap();
    assert_eq!((&of_aircraft["null_rows"], &of_aircraft["obstacle"]), (&json!(2512), &Value::Null));
    assert!(evaluation["recommendation"]["ddl"].as_str().unwrap().contains("PARTITION BY HASH"));
    let answer = done(dir.path(), &format!("evaluate {FLIGHTS}"));
    for heading in ["RECOMMENDATION", "PARTITION KEYS OVER 16 PARTITIONS", "THE TABLE"] {
        assert!(answer.contains(heading), "{heading}: {answer}");
    }
    assert!(!answer.contains("ROWS PER PARTITION") && answer.contains("--verbose"), "{answer}");
    let wide = answer.lines().filter(|line| line.chars().count() > 100).collect::<Vec<_>>();
    assert!(wide.iter().all(|line| line.starts_with("evenkeel ") || line.starts_with("ydb ")), "{wide:?}");
    let (reading, _) = answer.split_once("THE TABLE").unwrap();
    assert!(reading.lines().count() <= 60, "{reading}");
    let text = done(dir.path(), &format!("evaluate {FLIGHTS} --verbose"));
    for heading in [
        "RECOMMENDATION",
        "PARTITION KEYS OVER 16 PARTITIONS",
        "ROWS PER PARTITION",
        "PRIMARY KEYS",
        "FINDINGS",
        "THE TABLE",
    ] {
        assert!(text.contains(heading), "{heading}");
    }
    let markdown = done(dir.path(), &format!("evaluate {FLIGHTS} --partition-key dest --format markdown"));
    assert!(markdown.contains("## Recommendation") && markdown.contains("```sql"), "{markdown}");
}

#[test]
fn ten_thousand_columns_are_no_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..10_000).map(|i| format!("c{i}")).collect();
    let row = |row: usize| {
        // Columns that have nothing in common, so that each is compared with all others.
        let number = |i: usize| ((i * 2_654_435_761) ^ (row * 40_503)).wrapping_mul(2_246_822_519) >> 9;
        (0..10_000).map(|i| (number(i) % 1000).to_string()).collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = (0..60).map(row).collect();
    std::fs::write(dir.path().join("wide.csv"), format!("{}\n{}\n", names.join(","), rows.join("\n")))
        .unwrap();
    let wide = json(dir.path(), "evaluate {}/wide.csv --partitions 4 --format json");
    assert_eq!(wide["rows"], 60);
    assert!(wide["candidates"].as_array().unwrap().len() < 20);
    let unknown = run(dir.path(), "evaluate {}/wide.csv --partition-key nope");
    assert!(unknown.stderr.contains("and 9960 more") && unknown.stderr.len() < 1000, "{}", unknown.stderr);
}

/// Rows of an export with tenants, users and times.
fn sorted_by(column: &str, rows: i64) -> RecordBatch {
    use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMicrosecondArray};
    use std::sync::Arc;
    let second = 1_000_000;
    let number = |row: i64, by: &str, of: i64| if by == column { row * of / rows } else { row * 7_919 % of };
    let tenant = Int64Array::from_iter_values((0..rows).map(|row| number(row, "tenant_id", 40)));
    let user =
        StringArray::from_iter_values((0..rows).map(|row| format!("u{}", number(row, "user_id", 5_000))));
    let at = (0..rows).map(|row| if column == "at" { row } else { row * 104_729 % rows });
    let at = TimestampMicrosecondArray::from_iter_values(at.map(|at| 1_790_000_000 * second + at * second));
    // All rows of the first nine tenths have one value, and no NULL.
    let late = Int64Array::from_iter((0..rows).map(|row| (row < rows / 10 * 9).then_some(1)));
    let region = Int64Array::from_iter_values((0..rows).map(|row| (row - rows / 10 * 9).max(0) % 1_000));
    let columns: [(&str, ArrayRef); 5] = [
        ("tenant_id", Arc::new(tenant)),
        ("user_id", Arc::new(user)),
        ("at", Arc::new(at)),
        ("late", Arc::new(late)),
        ("region", Arc::new(region)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn write_parquet(path: &Path, batch: &RecordBatch, group_rows: usize) {
    use parquet::file::properties::WriterProperties;
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn candidates_of_a_sorted_export_are_those_of_the_shuffled_one() {
    let rows = 120_000;
    let sorts: [(&str, &[&str]); 3] = [
        ("tenant_id", &["one.parquet", "groups.parquet", "files"]),
        ("at", &["one.parquet"]),
        ("user_id", &["groups.parquet"]),
    ];
    for (sorted, inputs) in sorts {
        let dir = tempfile::tempdir().unwrap();
        let batch = sorted_by(sorted, rows);
        write_parquet(&dir.path().join("one.parquet"), &batch, 1 << 20);
        write_parquet(&dir.path().join("groups.parquet"), &batch, 5_000);
        std::fs::create_dir(dir.path().join("files")).unwrap();
        for part in 0..6 {
            let path = dir.path().join(format!("files/{part}.parquet"));
            write_parquet(&path, &batch.slice(part * 20_000, 20_000), 5_000);
        }
        for inputs in inputs {
            let evaluation = json(
                dir.path(),
                &format!("evaluate {{}}/{inputs} --partitions 16 --no-primary-keys --format json"),
            );
            let considered = evaluation["considered"].as_array().unwrap();
            let of = |key: &str| considered.iter().find(|c| c["key"] == json!([key])).unwrap();
            let reason = |key: &str| of(key)["reason"].as_str().unwrap().to_owned();
            assert_eq!(of("tenant_id")["kept"], true, "{sorted} {inputs}: {}", reason("tenant_id"));
            assert!(
                reason("tenant_id").ends_with("40 in all 120000 rows"),
                "{sorted}: {}",
                reason("tenant_id")
            );
            assert_eq!(of("user_id")["kept"], true, "{sorted} {inputs}: {}", reason("user_id"));
            assert!(
                reason("late").contains("sampled rows have NULL"),
                "{sorted} {inputs}: {}",
                reason("late")
            );
            assert_eq!(of("region")["kept"], true, "{sorted} {inputs}: {}", reason("region"));
            let from = &evaluation["considered_from"];
            assert_eq!(from["whole"], false);
            assert!(from["places"].as_u64().unwrap() >= 150, "{from}");
            assert_eq!(from["inputs"], if *inputs == "files" { 6 } else { 1 });
            let sampled = note(&evaluation, "candidates_from_sample");
            assert!(sampled.is_some_and(|text| text.contains("of 120,000 rows")), "{evaluation}");
        }
    }
}

#[test]
fn text_is_sampled_from_everywhere_and_the_pass_withdraws_what_a_sample_cannot_know() {
    use std::io::Write as _;
    let dir = tempfile::tempdir().unwrap();
    // A run of other values that is too short to be met by any place, far from both ends.
    let rare = |row: usize| if (77_700..77_720).contains(&row) { row } else { 0 };
    let line = |row: usize| format!("{},{},{},{}\n", row / 3_000, row, rare(row), row % 3);
    let csv: String = (0..120_000).map(line).collect();
    let csv = format!("tenant_id,id,rare,kind\n{csv}");
    std::fs::write(dir.path().join("a.csv"), &csv).unwrap();
    let gz = std::fs::File::create(dir.path().join("a.csv.gz")).unwrap();
    let mut gz = flate2::write::GzEncoder::new(gz, flate2::Compression::fast());
    gz.write_all(csv.as_bytes()).unwrap();
    gz.finish().unwrap();
    for file in ["a.csv", "a.csv.gz"] {
        let evaluation = json(dir.path(), &format!("evaluate {{}}/{file} --partitions 16 --format json"));
        let considered = evaluation["considered"].as_array().unwrap();
        let of = |key: &str| {
            considered.iter().find(|c| c["key"] == json!([key]) && c["role"] == "partition_key").unwrap()
        };
        assert_eq!(of("tenant_id")["kept"], true, "{}", of("tenant_id"));
        // The pass reads all columns for the primary keys, so it knows better.
        let rare = of("rare")["reason"].as_str().unwrap();
        assert!(rare.contains("but the 120000 rows have 16 or more"), "{rare}");
        let kind = of("kind")["reason"].as_str().unwrap();
        assert!(kind.contains("cannot fill 16 partitions: 3 values in the 120000 rows"), "{kind}");
        let of_rare = |note: &Value| note["code"] == "more_values_than_sampled" && note["column"] == "rare";
        assert!(evaluation["notes"].as_array().unwrap().iter().any(of_rare), "{}", evaluation["notes"]);
        let id = considered.iter().find(|c| c["role"] == "primary_key" && c["key"] == json!(["id"])).unwrap();
        let reason = id["reason"].as_str().unwrap();
        assert!(
            reason.contains("sampled rows") && reason.contains("no key repeats in all 120000 rows"),
            "{reason}"
        );
    }
}
