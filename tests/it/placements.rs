//! Placement functions of other systems, from the command line.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::{done, json, note, run};

/// Rows per partition by function and number of partitions.
fn placements(evaluation: &Value) -> BTreeMap<(String, usize), Vec<u64>> {
    let of_key = evaluation["candidates"][0]["placements"].as_array().unwrap();
    let counts = |placement: &Value| -> Vec<u64> {
        placement["rows_per_partition"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rows| rows.as_u64().unwrap())
            .collect()
    };
    of_key
        .iter()
        .map(|placement| {
            let counts = counts(placement);
            ((placement["function"].as_str().unwrap().to_owned(), counts.len()), counts)
        })
        .collect()
}

#[test]
fn one_command_compares_all_systems_and_loses_no_row() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 30000 --out {}/exports");
    let evaluation = json(
        dir.path(),
        "evaluate {}/exports --placement all --partitions 7,64 --partition-key user_id --no-primary-keys --format json",
    );
    let all = placements(&evaluation);
    assert!(all.len() > 2 * 20, "{}", all.len());
    assert!(all.values().all(|rows| rows.iter().sum::<u64>() == 30_000));
    let left_out = evaluation["candidates"][0]["left_out"].as_array().unwrap();
    assert!(
        left_out
            .iter()
            .any(|reason| reason.as_str().unwrap().contains("clickhouse-inthash32 accepts no Utf8"))
    );
    let status = |name: &str| {
        let of_key = evaluation["candidates"][0]["placements"].as_array().unwrap();
        of_key.iter().find(|placement| placement["function"] == name).unwrap()["status"].clone()
    };
    assert_eq!((status("iceberg"), status("neutral")), ("verified".into(), "neutral".into()));
    assert_eq!(status("cassandra-vnodes"), "computed");
}

#[test]
fn a_key_goes_where_place_and_evaluate_agree() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..200).map(|id| format!("{id},x{id}\n")).collect();
    std::fs::write(dir.path().join("ids.csv"), format!("id,name\n{rows}")).unwrap();
    for (name, column, column_type) in [
        ("iceberg", "id", "int64"),
        ("citus", "id", "int64"),
        ("kafka", "name", "utf8"),
        ("mongodb", "name", "utf8"),
    ] {
        let evaluation = json(
            dir.path(),
            &format!(
                "evaluate {{}}/ids.csv --placement {name} --partitions 8 --partition-key {column} --no-primary-keys --format json"
            ),
        );
        let mut counted = vec![0u64; 8];
        for id in 0..200 {
            let value = if column == "id" { id.to_string() } else { format!("x{id}") };
            let placed = json(
                dir.path(),
                &format!(
                    "place --placement {name} --types {column_type} --partitions 8 --format json {value}"
                ),
            );
            counted[placed["partition"].as_u64().unwrap() as usize] += 1;
        }
        assert_eq!(placements(&evaluation)[&(name.to_owned(), 8)], counted, "{name}");
    }
    let placed = json(dir.path(), "place --placement iceberg --types int64 --partitions 16 --format json 34");
    assert_eq!((&placed["bytes"], &placed["hash"]), (&"2200000000000000".into(), &"2017239379".into()));
    assert_eq!((&placed["partition"], &placed["status"]), (&3.into(), &"verified".into()));
    let text = done(
        dir.path(),
        "place --placement cockroach --types uuid --partitions 16 f79c3e09-677c-4bbd-a479-3f349cb785e7",
    );
    assert!(text.contains("computed  ") && text.contains("bytes      12f79c3e09"), "{text}");
    let list = done(dir.path(), "place --list");
    assert!(list.contains(" neutral ") && list.lines().count() > 25, "{list}");
}

/// The JSON of a lint that finds a problem, which its exit code says.
fn problem(dir: &std::path::Path, arguments: &str) -> serde_json::Value {
    let found = run(dir, &format!("{arguments} --format json"));
    assert_eq!(found.code, 3, "{arguments}: {}{}", found.stdout, found.stderr);
    assert!(found.stderr.starts_with("problem "), "{}", found.stderr);
    serde_json::from_str(&found.stdout).unwrap()
}

#[test]
fn the_defect_of_doris_is_found_in_one_command_and_in_an_export() {
    let dir = tempfile::tempdir().unwrap();
    let found = problem(dir.path(), "lint --placement doris --types int64 --range 0..511 --partitions 512");
    assert_eq!((&found["filled"], &found["keys"]), (&128.into(), &512.into()));
    assert_eq!(found["findings"][0]["code"], "hash_defect");
    let found = run(dir.path(), "lint --placement doris --types int16 --range 0..511 --partitions 512");
    assert_eq!(found.code, 3);
    assert!(found.stdout.contains("256 of 512"), "{}", found.stdout);
    // A good function, and a warning alone.
    done(dir.path(), "lint --placement ydb --types int64 --range 0..511 --partitions 512");
    let warned = done(
        dir.path(),
        "lint --placement neutral --types int64 --range 0..9999 --partitions 10 --workers 4",
    );
    assert!(warned.contains("warning [partitions_do_not_divide]"), "{warned}");
    // The same keys, with rows of their own, in a file.
    let rows: String = (0..5120).map(|row| format!("{},{row}\n", row % 512)).collect();
    std::fs::write(dir.path().join("shops.csv"), format!("shop,sale\n{rows}")).unwrap();
    let of_file = problem(dir.path(), "lint {}/shops.csv --key shop --placement doris --partitions 512");
    assert_eq!((&of_file["filled"], &of_file["keys"]), (&128.into(), &512.into()));
    let evaluation = json(
        dir.path(),
        "evaluate {}/shops.csv --placement ydb,doris --partitions 512 --partition-key shop --no-primary-keys --format json",
    );
    let findings = evaluation["findings"].as_array().unwrap();
    let defect = findings.iter().find(|finding| finding["code"] == "hash_defect").unwrap();
    assert_eq!(
        (&defect["subject"], &defect["measured"]),
        (&"HASH(shop) by doris over 512".into(), &384.0.into())
    );
    assert!(!findings.iter().any(|finding| finding["subject"].as_str().unwrap().contains("ydb")));
    let threads = problem(
        dir.path(),
        "lint --placement kafka --types int64 --range 0..9999 --partitions 64 --workers 8 --threads 8",
    );
    assert_eq!(
        (&threads["workers"]["fewest_threads"], &threads["findings"][0]["code"]),
        (&1.into(), &"same_hash_twice".into())
    );
}

#[test]
fn numbers_that_some_systems_cannot_hold_leave_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..2000u64).map(|row| format!("{}\n", u64::MAX - row * 7)).collect();
    std::fs::write(dir.path().join("huge.csv"), format!("id\n{rows}")).unwrap();
    let evaluation = json(
        dir.path(),
        "evaluate {}/huge.csv --placement all --partitions 16 --partition-key id --no-primary-keys --format json",
    );
    let all = placements(&evaluation);
    assert!(
        all.contains_key(&("ydb".to_owned(), 16))
            && all.contains_key(&("clickhouse-cityhash64".to_owned(), 16))
    );
    assert!(!all.contains_key(&("kudu".to_owned(), 16)));
    let left_out = note(&evaluation, "placements_left_out");
    assert!(left_out.is_some_and(|text| text.contains("unsigned integers")), "{}", evaluation["notes"]);
    // The types of a file may be those of the table.
    std::fs::write(
        dir.path().join("ids.csv"),
        format!("id\n{}", (0..512).map(|id| format!("{id}\n")).collect::<String>()),
    )
    .unwrap();
    let narrow = json(
        dir.path(),
        "lint {}/ids.csv --key id --type id:int32 --placement doris --partitions 512 --format json",
    );
    assert_eq!((&narrow["filled"], &narrow["types"]), (&512.into(), &serde_json::json!(["Int32"])));
    let uneven = json(
        dir.path(),
        "evaluate {}/ids.csv --placement cassandra-vnodes --partitions 16 --weights 3,4 --partition-key id --no-primary-keys --format json",
    );
    let codes: Vec<&str> = uneven["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"weights_do_not_divide") && !codes.contains(&"hash_defect"), "{codes:?}");
}

#[test]
fn nodes_are_held_against_their_weights_and_systems_say_how_they_declare() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 20000 --out {}/exports");
    let evaluation = json(
        dir.path(),
        "evaluate {}/exports --placement clickhouse-cityhash64 --partitions 16 --weights 1,1,2 --partition-key user_id --no-primary-keys --format json",
    );
    let placement = &evaluation["candidates"][0]["placements"][0];
    let counts = &placements(&evaluation)[&("clickhouse-cityhash64".to_owned(), 16)];
    let sum = |range: std::ops::Range<usize>| Value::from(counts[range].iter().sum::<u64>());
    assert_eq!(placement["nodes"]["rows"], Value::from(vec![sum(0..4), sum(4..8), sum(8..16)]));
    assert!(
        placement["nodes"]["loads"]
            .as_array()
            .unwrap()
            .iter()
            .all(|load| (0.9..1.1).contains(&load.as_f64().unwrap()))
    );
    let ddl = evaluation["recommendation"]["ddl"].as_str().unwrap();
    assert!(ddl.contains("_local', cityHash64(user_id));\n"), "{ddl}");
    let of_kudu = json(
        dir.path(),
        "evaluate {}/exports --placement kudu --partitions 16 --partition-key user_id --no-primary-keys --format json",
    );
    let clause = "PARTITION BY HASH (user_id) PARTITIONS 16\n";
    assert_eq!(of_kudu["recommendation"]["ddl"], clause, "systems without statements have a clause");
}

#[test]
fn wrong_placements_get_a_clear_answer() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "generate ad-events --rows 1000 --out {}/exports");
    for (arguments, message) in [
        (
            "place --placement oracle --types int64 --partitions 4 1",
            "unknown placement function 'oracle'; known: ydb, ydb-modulo",
        ),
        ("place --placement kudu --types double --partitions 4 1", "kudu accepts no Double in a key"),
        ("place --partitions 4 1", "--types"),
        ("lint --placement doris --partitions 4", "<FILE"),
        ("lint {}/exports --placement doris --partitions 4", "no key given; name its columns with --key"),
        (
            "lint {}/exports --key nope --placement doris --partitions 4",
            "there is no column 'nope'; there are: ",
        ),
        ("lint --types int8 --range 0..511 --partitions 4", "0 to 511 are not values of Int8"),
        ("lint --types int64 --range 5..1 --partitions 4", "the range is reversed; write 1..5"),
        (
            "lint {}/exports --key user_id --types utf8 --partitions 4",
            "for columns of files use --type COLUMN:TYPE",
        ),
        ("place --placement clickhouse --types int64 --partitions 4 1", "; use clickhouse-cityhash64"),
        ("place --types bigint --partitions 4 1", "; bigint is Int64 here"),
        ("place --placement kafka --types utf8 --partitions 4 NULL", "kafka places NULL keys at random"),
        ("place --placement doris --types double --partitions 4 1.5", "it distributes by no such column"),
        ("lint --types int64 --range 0..9 --partitions 0", "0"),
        (
            "evaluate {}/exports --placement iceberg --partition-key user_id,ad_id",
            "iceberg hashes one column; the key has 2",
        ),
        ("evaluate {}/exports --weights 1,0", "write weights above 0, such as 1,1,2"),
        ("create {}/t --placement iceberg --ddl data/ad_events.sql", "unknown placement function 'iceberg'"),
    ] {
        let refused = run(dir.path(), arguments);
        assert_eq!(refused.code, 2, "{arguments}: {}{}", refused.stdout, refused.stderr);
        assert!(refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
}

#[test]
fn the_document_lists_every_system_as_it_is() {
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/PLACEMENTS.md")).unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    // Its lines are broken where they are too long.
    let document = words(&document);
    for system in evenkeel::placement::systems::SYSTEMS {
        let about = system.about();
        let row = format!("| `{}` | {} | {} |", about.name, about.status.word(), about.title);
        assert!(document.contains(&row), "{row}");
        assert!(document.contains(&words(about.formula)), "{}", about.name);
        assert!(document.contains(&words(about.hash)), "{}", about.name);
    }
}
