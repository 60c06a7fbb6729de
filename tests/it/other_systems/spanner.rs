//! Exports of Spanner in Avro.

use std::path::Path;

use crate::common::{json, run};
use crate::other_systems::{through_a_table, write};

/// Values as Avro writes them.
#[derive(Clone)]
enum Cell {
    Long(i64),
    Text(String),
    Null,
    Bytes(Vec<u8>),
    /// A value of a union with null, by its position.
    Of(i64, Box<Cell>),
}

fn long(value: i64, to: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
}

fn encode(cell: &Cell, to: &mut Vec<u8>) {
    match cell {
        Cell::Long(value) => long(*value, to),
        Cell::Null => {}
        Cell::Text(text) => {
            long(text.len() as i64, to);
            to.extend_from_slice(text.as_bytes());
        }
        Cell::Bytes(bytes) => {
            long(bytes.len() as i64, to);
            to.extend_from_slice(bytes);
        }
        Cell::Of(position, cell) => {
            long(*position, to);
            encode(cell, to);
        }
    }
}

/// Writes an Avro file, a block for each slice of rows.
fn avro(schema: &str, blocks: &[Vec<Vec<Cell>>]) -> Vec<u8> {
    let mut file = b"Obj\x01".to_vec();
    long(1, &mut file);
    for text in ["avro.schema", schema] {
        long(text.len() as i64, &mut file);
        file.extend_from_slice(text.as_bytes());
    }
    long(0, &mut file);
    file.extend_from_slice(&[9; 16]);
    for rows in blocks {
        let mut data = Vec::new();
        rows.iter().flatten().for_each(|cell| encode(cell, &mut data));
        long(rows.len() as i64, &mut file);
        long(data.len() as i64, &mut file);
        file.extend_from_slice(&data);
        file.extend_from_slice(&[9; 16]);
    }
    file
}

fn some(cell: Cell) -> Cell {
    Cell::Of(1, Box::new(cell))
}

fn none() -> Cell {
    Cell::Of(0, Box::new(Cell::Null))
}

const SHARD: &str = r#"{"name":"Shard","type":"null","sqlType":"INT64","notNull":"true","stored":"true","generationExpression":"MOD(ABS(FARM_FINGERPRINT(UserId)), 4)"}"#;

fn users_schema() -> String {
    format!(
        r#"{{"type":"record","name":"Users","namespace":"spannerexport","googleStorage":"CloudSpanner","spannerPrimaryKey":"`Shard` ASC,`UserId` ASC",
        "spannerPrimaryKey_0":"`Shard` ASC","spannerPrimaryKey_1":"`UserId` ASC","spannerIndex_0":"CREATE INDEX `ByDay` ON `Users`(`Day` DESC)","fields":[{SHARD},
        {{"name":"UserId","type":"string","sqlType":"STRING(36)"}},{{"name":"Day","type":["null","string"],"sqlType":"DATE"}},
        {{"name":"At","type":["null","string"],"sqlType":"TIMESTAMP"}},{{"name":"Digits","type":["null","string"],"sqlType":"STRING(MAX)"}},
        {{"name":"Any","type":["null",{{"type":"bytes","logicalType":"decimal","precision":147455,"scale":16383}}],"sqlType":"numeric"}},
        {{"name":"Upper","type":"null","sqlType":"STRING(MAX)","generationExpression":"UPPER(UserId)","stored":"true"}}]}}"#
    )
}

fn clicks_schema() -> &'static str {
    r#"{"type":"record","name":"Clicks","googleStorage":"CloudSpanner","spannerPrimaryKey":"`Shard` ASC,`UserId` ASC,`ClickId` DESC","spannerPrimaryKey_0":"`Shard` ASC",
    "spannerPrimaryKey_1":"`UserId` ASC","spannerPrimaryKey_2":"`ClickId` DESC","spannerParent":"Users","spannerOnDeleteAction":"cascade","spannerInterleaveType":"IN PARENT",
    "fields":[{"name":"Shard","type":"long","sqlType":"INT64"},{"name":"UserId","type":"string","sqlType":"STRING(36)"},{"name":"ClickId","type":"long","sqlType":"INT64"},{"name":"At","type":"string","sqlType":"TIMESTAMP"}]}"#
}

/// Writes an export of users, in two files, and of their clicks.
fn spanner(folder: &Path) {
    let user = |id: i64| {
        vec![
            Cell::Null,
            Cell::Text(format!("user-{id}")),
            if id % 9 == 0 { none() } else { some(Cell::Text(format!("2026-01-{:02}", 1 + id % 28))) },
            some(Cell::Text(format!("2026-01-31T10:{:02}:{:02}.5Z", id / 60 % 60, id % 60))),
            some(Cell::Text(format!("{id:04}"))),
            some(Cell::Bytes([&[0, 0, 0, 0, 1], id.to_be_bytes().as_slice()].concat())),
            Cell::Null,
        ]
    };
    let blocks = |from: i64| {
        vec![(from..from + 100).map(user).collect(), (from + 100..from + 300).map(user).collect()]
    };
    for part in 0..2 {
        write(folder, &format!("Users.avro-0000{part}-of-00002"), avro(&users_schema(), &blocks(part * 300)));
    }
    let clicks: Vec<Vec<Cell>> = (0..900)
        .map(|id| {
            vec![
                Cell::Long(id % 600 % 4),
                Cell::Text(format!("user-{}", id % 600)),
                Cell::Long(id),
                Cell::Text(format!("2026-02-01T10:{:02}:{:02}Z", id / 60 % 60, id % 60)),
            ]
        })
        .collect();
    write(folder, "Clicks.avro-00000-of-00001", avro(clicks_schema(), &[clicks]));
    write(
        folder,
        "Users-manifest.json",
        r#"{"files":[{"name":"Users.avro-00000-of-00002"},{"name":"Users.avro-00001-of-00002"}]}"#,
    );
    write(folder, "Clicks-manifest.json", r#"{"files":[{"name":"Clicks.avro-00000-of-00001"}]}"#);
    let tables = r#"{"tables":[{"name":"Users","manifestFile":"Users-manifest.json"},{"name":"Clicks","manifestFile":"Clicks-manifest.json"}]}"#;
    write(folder, "spanner-export.json", tables);
}

#[test]
fn an_export_of_spanner_declares_its_keys_types_and_generated_shards() {
    let dir = tempfile::tempdir().unwrap();
    spanner(&dir.path().join("in"));
    let several = run(dir.path(), "evaluate {}/in");
    assert!(
        several.stderr.contains("Clicks (row table") && several.stderr.contains("Users (row table"),
        "{}",
        several.stderr
    );
    let rows = through_a_table(dir.path(), "{}/in", "UserId", "\"UserId\"", " --table Users").unwrap();
    assert_eq!(rows.lines().count(), 600);
    let fingerprint = evenkeel::transform::farm_fingerprint(b"user-0").wrapping_abs() % 4;
    let first = format!(
        "{{\"Shard\":{fingerprint},\"UserId\":\"user-0\",\"At\":\"2026-01-31T10:00:00.500\",\"Digits\":\"0000\",\"Any\":0.0}}"
    );
    assert_eq!(rows.lines().next().unwrap(), first);
    let found = run(dir.path(), "evaluate {}/in --table Users --format json");
    for note in [
        "declares a row table of 6 columns, PRIMARY KEY (Shard, UserId), ranges of the primary key",
        "'Shard' is generated and not exported; it is computed as MOD(ABS(FARM_FINGERPRINT(UserId)), 4)",
        "'Upper' is generated as UPPER(UserId) and not exported; it has no values here",
    ] {
        assert!(found.stderr.contains(note), "{note}\n{}", found.stderr);
    }
    let judged: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    let types: Vec<String> = judged["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| format!("{} {}", column["name"], column["type"]))
        .collect();
    assert!(
        types.contains(&"\"Day\" \"Date\"".to_owned()) && types.contains(&"\"Digits\" \"Utf8\"".to_owned()),
        "{types:?}"
    );
    assert!(
        judged["primary_keys"]
            .as_array()
            .unwrap()
            .iter()
            .any(|key| key["columns"] == serde_json::json!(["Shard", "UserId"]))
    );
    // A file of the export declares the same.
    let alone = run(dir.path(), "evaluate {}/in/Users.avro-00000-of-00002");
    assert!(alone.stderr.contains("PRIMARY KEY (Shard, UserId)"), "{}", alone.stderr);
}

#[test]
fn an_export_of_spanner_is_simulated_with_its_own_schema() {
    let dir = tempfile::tempdir().unwrap();
    spanner(&dir.path().join("in"));
    let found = json(dir.path(), "spanner simulate {}/in --table Users --format json");
    assert_eq!(found["rows"], 600);
    assert!(found.to_string().contains("ByDay"), "the index is replayed");
    let pair = json(dir.path(), "spanner simulate {}/in --table Users --interleave {}/in --format json");
    assert!(pair.to_string().contains("Clicks"), "the child is the only table within Users");
    let other = run(dir.path(), "spanner simulate {}/in --table Nope");
    assert!(other.stderr.contains("there are: Clicks"), "{}", other.stderr);
}

#[test]
fn an_export_of_spanner_with_missing_or_other_files_is_refused() {
    let refused = |change: &dyn Fn(&Path), sign: &str| {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("in");
        spanner(&folder);
        change(&folder);
        let found = run(dir.path(), "evaluate {}/in --table Users");
        assert!(found.code != 0 && found.stderr.contains(sign), "{sign}: {}", found.stderr);
    };
    let manifest =
        |md5: &str| format!(r#"{{"files":[{{"name":"Users.avro-00000-of-00002","md5":"{md5}"}}]}}"#);
    refused(
        &|folder| std::fs::remove_file(folder.join("Users.avro-00001-of-00002")).unwrap(),
        "Users.avro-00001-of-00002 is missing",
    );
    refused(
        &|folder| std::fs::remove_file(folder.join("Users-manifest.json")).unwrap(),
        "Users-manifest.json is missing",
    );
    refused(&|folder| write(folder, "Users-manifest.json", manifest("AAAAAAAAAAAAAAAAAAAAAA==")), "checksum");
    refused(
        &|folder| write(folder, "Users-manifest.json", "{"),
        "cannot be read as part of an export of Spanner",
    );
    refused(
        &|folder| write(folder, "spanner-export.json", "{\"tables\": 7}"),
        "cannot be read as part of an export of Spanner",
    );
    refused(&|folder| write(folder, "Users.avro-00000-of-00002", "x"), "not readable as Avro");
    refused(&|folder| write(folder, "spanner-export.json", "{}"), "names no table with files");
    refused(&|folder| write(folder, "more/spanner-export.json", "{}"), "holds several exports of Spanner");
    let dir = tempfile::tempdir().unwrap();
    spanner(&dir.path().join("in"));
    assert!(run(dir.path(), "evaluate {}/in/spanner-export.json").stderr.contains("name its folder"));
    // Without the list of tables, the numbers in the names still say what is missing.
    let dir = tempfile::tempdir().unwrap();
    spanner(&dir.path().join("in"));
    for name in ["spanner-export.json", "Clicks.avro-00000-of-00001", "Users.avro-00000-of-00002"] {
        std::fs::remove_file(dir.path().join("in").join(name)).unwrap();
    }
    let found = run(dir.path(), "evaluate {}/in");
    assert!(
        found.stderr.contains("one of 2 parts, of which 1 is missing, such as part 00000"),
        "{}",
        found.stderr
    );
}
