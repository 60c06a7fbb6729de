//! Inputs in several formats, odd exports, and wrong arguments.

use serde_json::{Value, json};

use crate::common::{done, evenkeel, json, run};
use crate::evaluate::numbers;

#[test]
fn formats_and_pipes_agree_and_a_type_changes_the_hash() {
    let dir = tempfile::tempdir().unwrap();
    for format in ["parquet", "csv", "ndjson"] {
        done(
            dir.path(),
            &format!("generate ad-events --rows 5000 --file-format {format} --out {{}}/{format}"),
        );
    }
    let keys = "--partition-key user_id --partition-key campaign_id --primary-key event_timestamp,user_id,campaign_id \
                --partitions 16 --format json";
    let rows = |evaluation: &Value, key: usize| {
        numbers(&evaluation["candidates"][key]["placements"][0]["rows_per_partition"])
    };
    let parquet = json(dir.path(), &format!("evaluate {{}}/parquet {keys}"));
    for format in ["csv", "ndjson"] {
        let text = json(dir.path(), &format!("evaluate {{}}/{format} {keys}"));
        assert_eq!(rows(&text, 0), rows(&parquet, 0), "{format}");
        // Eight bytes of a positive number are the same, signed or not; four are others.
        assert_eq!(rows(&text, 1), rows(&parquet, 1), "{format}");
        let narrow = json(dir.path(), &format!("evaluate {{}}/{format} --type campaign_id:uint32 {keys}"));
        assert_ne!(rows(&narrow, 1), rows(&parquet, 1), "{format}");
        assert_eq!(
            text["primary_keys"][0]["in_order_fraction"],
            parquet["primary_keys"][0]["in_order_fraction"]
        );
    }
    let file = std::fs::File::open(dir.path().join("csv/ad-events-0000.csv")).unwrap();
    let arguments: Vec<&str> = keys.split_whitespace().collect();
    let output = evenkeel().args(["evaluate", "-"]).args(&arguments).stdin(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let piped: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rows(&piped, 0), rows(&parquet, 0));
    assert_eq!(piped["inputs"], json!(["standard input"]));
}

#[test]
fn wrong_input_gets_a_clear_answer() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("empty.csv", "");
    write("header.csv", "a,b\n");
    write("bad.csv", &format!("a,b\n{}x,1\n", "1,2\n".repeat(150_000)));
    write("x.csv", "a,at,note\n1,2026-01-01T00:00:00Z,x\n2,2026-01-01T00:00:01Z,y\n");
    let cases = [
        ("{}/x.csv --partition-key nope", 2, "there is no column 'nope'; there are: a, at, note"),
        ("{}/x.csv --partition-key A", 2, "there is no column 'A'"),
        ("{}/x.csv --partition-key a,a", 2, "names 'a' twice"),
        ("{}/x.csv --partition-key week(at)", 2, "is not a key"),
        ("{}/x.csv --partition-key date(a)", 2, "is not a point in time"),
        ("{}/x.csv --primary-key nope", 2, "there is no column 'nope'"),
        ("{}/x.csv --type nope:int64", 2, "there is no column 'nope' with a YDB type"),
        ("{}/x.csv --type a", 2, "write COLUMN:TYPE"),
        ("{}/x.csv --type a:number", 2, "unknown column type 'number'"),
        ("{}/x.csv --time nope", 2, "there is no time column 'nope'; there are: at"),
        ("{}/x.csv --time note", 2, "column 'note' cannot be read as points in time"),
        ("{}/x.csv --window 5", 2, "is not a length of time"),
        ("{}/x.csv --sample 0", 2, "a share must be above 0 and at most 1"),
        ("{}/x.csv --partitions 0", 2, "a table has 1 to 100000 partitions"),
        ("{}/x.csv --partitions 4 --nodes 1", 2, "cannot be used with"),
        ("{}/x.csv --placement md5", 2, "unknown placement function 'md5'"),
        ("{}/x.csv --placement ydb-cloud-logs --partition-key a", 1, "needs a key of at least two columns"),
        ("{}/x.csv --queries {}/none", 1, "cannot read"),
        ("{}/x.csv --html {}/no/such/place.html", 2, "--html: there is no folder"),
        ("{}/x.csv --batch 0", 2, "0 is not in 1.."),
        ("{}/none.csv", 1, "there is no such file or folder"),
        ("{}/empty.csv", 1, "is empty"),
        ("{}/header.csv", 1, "has no record from which types could be detected"),
        ("{}/bad.csv --partition-key a", 1, "bad.csv, line 150002, column 'a': 'x' is not of type Int64"),
    ];
    for (arguments, code, message) in cases {
        let run = run(dir.path(), &format!("evaluate {arguments}"));
        assert_eq!(run.code, code, "{arguments}\n{}", run.stderr);
        assert!(run.stderr.contains(message), "{arguments}\n{}", run.stderr);
    }
    let skipped = json(dir.path(), "evaluate {}/bad.csv --partition-key a --on-error skip --format json");
    assert_eq!((&skipped["rows"], &skipped["unreadable_rows"]), (&json!(150_000), &json!(1)));
}

#[test]
fn odd_exports_are_evaluated_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("one.csv", "id,at\n7,2026-01-01T00:00:00Z\n");
    let one = json(dir.path(), "evaluate {}/one.csv --format json");
    assert_eq!(one["rows"], 1);
    assert_eq!(one["recommendation"]["partition_key"], json!(["id"]));
    write("nulls.csv", &format!("id,other\n{}", ",1\n".repeat(50)));
    let nulls = json(
        dir.path(),
        "evaluate {}/nulls.csv --partition-key id --primary-key id --partitions 4 --format json",
    );
    assert_eq!(nulls["candidates"][0]["null_rows"], 50);
    assert_eq!(nulls["candidates"][0]["distinct"]["estimate"], 1);
    assert!(nulls["primary_keys"][0]["obstacles"][0].as_str().unwrap().contains("NULL"));
    let codes = |evaluation: &Value| -> Vec<String> {
        evaluation["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|f| f["code"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(codes(&nulls).contains(&"null_keys".to_owned()));
    write("same.csv", &format!("id\n{}", "5\n".repeat(50)));
    let same = json(dir.path(), "evaluate {}/same.csv --partition-key id --partitions 4 --format json");
    assert_eq!(same["candidates"][0]["placements"][0]["max_over_mean"], 4.0);
    assert!(
        codes(&same).contains(&"few_distinct_keys".to_owned())
            && codes(&same).contains(&"no_time".to_owned())
    );
    let unordered: String =
        (0..500).map(|i| format!("{i},2026-01-01T00:{:02}:00Z\n", (i * 37) % 60)).collect();
    write("unordered.csv", &format!("id,at\n{unordered}9,\n"));
    let unordered =
        json(dir.path(), "evaluate {}/unordered.csv --partition-key id --partitions 2 --format json");
    assert!(codes(&unordered).contains(&"time_unordered".to_owned()), "{:?}", codes(&unordered));
    assert!(codes(&unordered).contains(&"time_missing".to_owned()));
    // A Decimal adds nothing to the hash: every row goes to one partition, and the hash is named as
    // the reason.
    let prices: String = (0..3000).map(|i| format!("{i}.25\n")).collect();
    write("prices.csv", &format!("price\n{prices}"));
    let decimal = json(
        dir.path(),
        "evaluate {}/prices.csv --type price:decimal(22,9) --partition-key price --partitions 4 --format json",
    );
    assert_eq!(decimal["candidates"][0]["distinct"]["estimate"], 3000);
    assert_eq!(decimal["candidates"][0]["placements"][0]["empty_partitions"], 3);
    assert!(codes(&decimal).contains(&"hash_defect".to_owned()), "{:?}", codes(&decimal));
    assert!(codes(&decimal).contains(&"key_type".to_owned()));
}
