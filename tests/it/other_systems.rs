//! Exports of Spanner, PostgreSQL, Greenplum, MySQL and MongoDB, made here byte by byte.

use std::fmt::Write as _;
use std::path::Path;

use md5::{Digest, Md5};

use crate::common::{done, json, run};

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// Creates a table like an input, ingests it, and returns its rows as NDJSON, ordered by `order`.
fn through_a_table(dir: &Path, input: &str, key: &str, order: &str, options: &str) -> Result<String, String> {
    let _ = std::fs::remove_dir_all(dir.join("t"));
    for command in [
        format!("create {{}}/t --name t --like {input} --primary-key {key} --partitions 2{options}"),
        format!("ingest {{}}/t {input}{options}"),
    ] {
        let found = run(dir, &command);
        if found.code != 0 {
            return Err(found.stderr);
        }
    }
    write(dir, "q.sql", format!("SELECT * FROM t ORDER BY {order}"));
    Ok(done(dir, "query {}/t --format ndjson -f {}/q.sql"))
}

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

const PG_DUMP: &str = "--\n-- PostgreSQL database dump\n--\n\n\\restrict abc\n\nSET standard_conforming_strings = on;\n\n\
CREATE FUNCTION public.f() RETURNS text LANGUAGE sql AS $$\nCOPY public.events (id) FROM stdin;\n97\n\\.\n$$;\n\n\
CREATE TABLE public.events (\n    id bigint NOT NULL,\n    \"User Id\" integer,\n    note text DEFAULT 'a;b'::text,\n    at timestamp with time zone\n)\nPARTITION BY RANGE (id);\n\n\
CREATE TABLE public.events_1 (\n    id bigint NOT NULL,\n    \"User Id\" integer,\n    note text,\n    at timestamp with time zone\n);\n\n\
CREATE TABLE public.users (\n    id integer NOT NULL,\n    name text\n);\n\n\
ALTER TABLE ONLY public.events ATTACH PARTITION public.events_1 FOR VALUES FROM (0) TO (10);\n\n\
COPY public.events_1 (id, note, \"User Id\", at) FROM stdin;\n\
1\ttab\\there\t7\t2026-01-31 10:00:00+00\n2\t\\N\t\\N\t2026-01-31 12:00:00+02\n3\t\t8\t\\N\n4\tback\\\\slash \\\\. \\\\N\t9\t\\N\n\\.\n\n\
COPY public.users (id, name) FROM stdin;\n1\tann\n\\.\n\n\
ALTER TABLE ONLY public.events\n    ADD CONSTRAINT events_pkey PRIMARY KEY (id);\n\n\
--\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict abc\n";

#[test]
fn a_pg_dump_gives_the_rows_and_the_key_of_one_table() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "dump.sql", PG_DUMP);
    let several = run(dir.path(), "evaluate {}/dump.sql");
    assert!(
        several
            .stderr
            .contains("dump of 2 tables; name one of them with --table: public.events, public.users"),
        "{}",
        several.stderr
    );
    let rows = through_a_table(dir.path(), "{}/dump.sql", "id", "id", " --table events").unwrap();
    let expected = "{\"id\":1,\"User Id\":7,\"note\":\"tab\\there\",\"at\":\"2026-01-31T10:00:00\"}\n\
                    {\"id\":2,\"at\":\"2026-01-31T10:00:00\"}\n{\"id\":3,\"User Id\":8,\"note\":\"\"}\n\
                    {\"id\":4,\"User Id\":9,\"note\":\"back\\\\slash \\\\. \\\\N\"}\n";
    assert_eq!(rows, expected);
    let judged = run(dir.path(), "evaluate {}/dump.sql --table events --verbose");
    assert!(judged.stderr.contains("declares a table of 4 columns, PRIMARY KEY (id)"), "{}", judged.stderr);
    let bad = PG_DUMP.replace("2\t\\N\t\\N\t", "x\t\\N\t\\N\t");
    let line = bad.lines().position(|line| line.starts_with("x\t")).unwrap() + 1;
    let place = format!("line {line}, column 'id'");
    write(dir.path(), "bad.sql", bad);
    let found = run(dir.path(), "ingest {}/t {}/bad.sql --table events");
    assert!(found.code != 0 && found.stderr.contains(&place), "{}", found.stderr);
}

#[test]
fn a_pg_dump_that_cannot_be_read_whole_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |text: &str, options: &str, sign: &str| {
        write(dir.path(), "dump.sql", text);
        let found = run(dir.path(), &format!("evaluate {{}}/dump.sql{options}"));
        assert!(found.code != 0 && found.stderr.contains(sign), "{sign}: {}", found.stderr);
    };
    let cut = &PG_DUMP[..PG_DUMP.find("3\t\t8").unwrap()];
    refused(cut, " --table events", "is cut off");
    let cut = &PG_DUMP[..PG_DUMP.find("COPY public.users").unwrap()];
    refused(cut, " --table events", "is cut off");
    refused(PG_DUMP, " --table nope", "there are: public.events, public.users");
    let dump = |body: &str| {
        format!("--\n-- PostgreSQL database dump\n--\n{body}\n--\n-- PostgreSQL database dump complete\n--\n")
    };
    let mixed = "CREATE TABLE s.x (a int);\nCREATE TABLE s.y (a int);\nINSERT INTO s.x VALUES (1);\nCOPY s.y (a) FROM stdin;\n1\n\\.\n";
    refused(&dump(mixed), " --table x", "INSERT statements for s.x");
    refused(
        &dump("COPY t (a) FROM stdin WITH (FORMAT csv);\n1\n\\.\n"),
        "",
        "a form that pg_dump does not write",
    );
    refused(&dump("CREATE TABLE t (a int);"), "", "no record");
    refused(&dump("CREATE TABLE a.t (a int);\nCREATE TABLE b.t (a int);"), " --table t", "a.t, b.t");
    refused(&dump(""), "", "has no tables");
    refused("--\n-- PostgreSQL database cluster dump\n--\n", "", "pg_dumpall");
}

#[test]
fn rows_of_a_dump_have_the_columns_that_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let dump = "--\n-- PostgreSQL database dump\n--\nCREATE TABLE s.p (id integer, at date DEFAULT 'x\n);\ny'::text);\n\
                CREATE TABLE s.c (code s.digits, mask bit(3))\nINHERITS (s.p);\n\
                COPY s.c (id, at, code, mask) FROM stdin;\n1\t2026-01-31\t7\t101\n2\t\\N\t8\t001\n\\.\n\
                --\n-- PostgreSQL database dump complete\n--\n";
    write(dir.path(), "d.sql", dump);
    let rows = through_a_table(dir.path(), "{}/d.sql", "id", "id", " --table c").unwrap();
    let expected = "{\"code\":\"7\",\"mask\":\"101\",\"id\":1,\"at\":\"2026-01-31\"}\n{\"code\":\"8\",\"mask\":\"001\",\"id\":2}\n";
    assert_eq!(rows, expected);
}

#[test]
fn two_dumps_of_one_table_are_one_and_generated_columns_are_noted() {
    let dir = tempfile::tempdir().unwrap();
    let dump = |partition: &str, ids: &str| {
        format!(
            "--\n-- PostgreSQL database dump\n--\nCREATE TABLE s.p (\n    id integer NOT NULL,\n    twice integer GENERATED ALWAYS AS ((id * 2)) STORED\n)\nPARTITION BY RANGE (id);\n\
             CREATE TABLE s.{partition} (\n    id integer NOT NULL,\n    twice integer GENERATED ALWAYS AS ((id * 2)) STORED\n);\n\
             ALTER TABLE ONLY s.p ATTACH PARTITION s.{partition} FOR VALUES FROM (0) TO (9);\nCOPY s.{partition} (id) FROM stdin;\n{ids}\\.\n\
             --\n-- PostgreSQL database dump complete\n--\n"
        )
    };
    write(dir.path(), "1.sql", dump("p_1", "1\n2\n"));
    write(dir.path(), "2.sql", dump("p_2", "3\n"));
    let found = run(dir.path(), "evaluate {}/1.sql {}/2.sql --format json");
    assert!(found.stderr.contains("column 'twice' is generated and not dumped"), "{}", found.stderr);
    let judged: serde_json::Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!((judged["rows"].as_u64(), judged["columns"].as_array().unwrap().len()), (Some(3), 1));
}

#[test]
fn files_that_never_have_a_header_keep_their_first_row() {
    let dir = tempfile::tempdir().unwrap();
    write(
        dir.path(),
        "my/t.sql",
        "CREATE TABLE `t` (`a` varchar(9) NOT NULL, `b` text, PRIMARY KEY (`a`));\n",
    );
    write(dir.path(), "my/t.txt", "b\ta\n1\t2\n");
    let rows = through_a_table(dir.path(), "{}/my", "a", "a", "").unwrap();
    assert_eq!(rows, "{\"a\":\"1\",\"b\":\"2\"}\n{\"a\":\"b\",\"b\":\"a\"}\n");
    write(dir.path(), "sp/schema", r#"{"k":"INT64","status":"STRING(MAX)"}"#);
    write(dir.path(), "sp/-00000-of-00001.csv", "\"7\",\"status\"\n\"8\",\"ok\"\n");
    let rows = through_a_table(dir.path(), "{}/sp", "k", "k", "").unwrap();
    assert_eq!(rows, "{\"k\":7,\"status\":\"status\"}\n{\"k\":8,\"status\":\"ok\"}\n");
}

#[test]
fn strings_that_a_whole_number_would_change_are_refused_further_on() {
    let dir = tempfile::tempdir().unwrap();
    for odd in ["00005", "+7", " 7"] {
        let rows: String = (0..200_000).map(|id| format!("{{\"id\":\"{id}\"}}\n")).collect();
        write(dir.path(), "d.ndjson", format!("{rows}{{\"id\":\"{odd}\"}}\n"));
        let found = run(dir.path(), "evaluate {}/d.ndjson");
        assert!(
            found.code != 0 && found.stderr.contains("line 200001, column 'id'"),
            "{odd}: {}",
            found.stderr
        );
        let error = through_a_table(dir.path(), "{}/d.ndjson", "id", "id", "").unwrap_err();
        assert!(error.contains("a whole number would change"), "{odd}: {error}");
    }
}

fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_backup_by_gpbackup_has_a_file_per_segment() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("in");
    let statement = "CREATE TABLE public.events (\n id bigint NOT NULL,\n kind text,\n note text\n) DISTRIBUTED BY (id);\n\nALTER TABLE ONLY public.events ADD CONSTRAINT p PRIMARY KEY (id);\n";
    write(&folder, "gpbackup_20260131100000_metadata.sql", statement);
    write(
        &folder,
        "gpbackup_20260131100000_toc.yaml",
        "globalentries: []\ndataentries:\n- schema: public\n  name: events\n  oid: 16385\n  attributestring: (id,kind,note)\n",
    );
    write(&folder, "gpbackup_20260131100000_config.yaml", "compressed: true\n");
    for segment in 0..3 {
        let mut text = String::new();
        for id in (segment..300).step_by(3) {
            writeln!(text, "{id},\"kind, {}\",{}", id % 7, if id % 2 == 0 { "\"\"" } else { "" }).unwrap();
        }
        write(&folder, &format!("gpbackup_{segment}_20260131100000_16385.gz"), gzip(&text));
    }
    let rows = through_a_table(dir.path(), "{}/in", "id", "id", "").unwrap();
    assert_eq!(rows.lines().count(), 300);
    assert!(
        rows.starts_with("{\"id\":0,\"kind\":\"kind, 0\",\"note\":\"\"}\n{\"id\":1,\"kind\":\"kind, 1\"}\n"),
        "{}",
        &rows[..90]
    );
    let found = json(dir.path(), "evaluate {}/in --format json --placement greenplum");
    assert_eq!(found["measured"]["partitions"].as_array().unwrap().len(), 3);
    // The last segments can be missed only by their number.
    write(&folder, "gpbackup_20260131100000_config.yaml", "compressed: true\nsegmentcount: 4\n");
    assert!(run(dir.path(), "evaluate {}/in").stderr.contains("no file of segment 3"));
    write(&folder, "gpbackup_20260131100000_config.yaml", "segmentcount: 3\n");
    // Each segment has all rows of a replicated table.
    write(&folder, "gpbackup_20260131100000_metadata.sql", statement.replace("BY (id)", "REPLICATED"));
    assert_eq!(json(dir.path(), "evaluate {}/in --format json")["rows"], 100);
    write(&folder, "gpbackup_20260131100000_metadata.sql", statement);
    write(&folder, "gpbackup_20260201100000_toc.yaml", "dataentries: []\n");
    assert!(run(dir.path(), "evaluate {}/in").stderr.contains("holds several backups"));
    std::fs::remove_file(folder.join("gpbackup_20260201100000_toc.yaml")).unwrap();
    std::fs::remove_file(folder.join("gpbackup_1_20260131100000_16385.gz")).unwrap();
    let found = run(dir.path(), "evaluate {}/in");
    assert!(found.stderr.contains("no file of segment 1 of public.events"), "{}", found.stderr);
}

#[test]
fn folders_of_mysqldump_and_text_of_spanner_name_their_columns_beside_the_rows() {
    let dir = tempfile::tempdir().unwrap();
    let statement = "-- MySQL dump 10.13\nDROP TABLE IF EXISTS `t`;\nCREATE TABLE `t` (\n  `id` bigint unsigned NOT NULL,\n  `s` varchar(20) DEFAULT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n";
    write(dir.path(), "in/t.sql", statement);
    write(dir.path(), "in/t.txt", "1\ta\\\nb\n2\t\\N\n3\t\n");
    let rows = through_a_table(dir.path(), "{}/in", "id", "id", "").unwrap();
    assert_eq!(rows, "{\"id\":1,\"s\":\"a\\nb\"}\n{\"id\":2}\n{\"id\":3,\"s\":\"\"}\n");
    // So does a file that is named itself, unless what is beside it is other SQL.
    let report = json(dir.path(), "evaluate {}/in/t.txt --format json");
    assert_eq!((&report["rows"], &report["columns"][0]["name"]), (&3.into(), &"id".into()));
    write(dir.path(), "other/t.sql", "SELECT 1;\n");
    write(dir.path(), "other/t.txt", "id\ts\n1\ta\n2\tb\n");
    assert_eq!(json(dir.path(), "evaluate {}/other/t.txt --format json")["rows"], 2);
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "in/out-schema", r#"{"Id":"INT64","Name":"STRING(MAX)","Day":"DATE"}"#);
    write(dir.path(), "in/out-00000-of-00002.csv", "\"1\",\"\",\"2026-01-31\"\n\"2\",,\n");
    write(dir.path(), "in/out-00001-of-00002.csv", "\"3\",\"a \"\"b\"\"\",\"2026-02-01\"\n");
    let rows = through_a_table(dir.path(), "{}/in", "Id", "\"Id\"", "").unwrap();
    let expected = "{\"Id\":1,\"Name\":\"\",\"Day\":\"2026-01-31\"}\n{\"Id\":2}\n{\"Id\":3,\"Name\":\"a \\\"b\\\"\",\"Day\":\"2026-02-01\"}\n";
    assert_eq!(rows, expected);
    // Parts of another table whose name begins alike are not taken.
    write(dir.path(), "in/out2-00000-of-00001.csv", "\"9\",\"x\",\"2026-02-01\"\n");
    assert_eq!(json(dir.path(), "evaluate {}/in --format json")["rows"], 3);
    std::fs::remove_file(dir.path().join("in/out-00001-of-00002.csv")).unwrap();
    assert!(run(dir.path(), "evaluate {}/in").stderr.contains("such as part 00001"));
}

#[test]
fn extended_json_of_mongodb_is_the_same_in_every_spelling() {
    let spellings = [
        "{\"_id\":{\"$oid\":\"546651e74bf6e4cb017c5312\"},\"n\":5,\"big\":9007199254740993,\"x\":1.5,\"ts\":{\"$date\":\"2021-07-06T10:18:12.036Z\"},\"u\":{\"$binary\":{\"base64\":\"YfDEBFyzEeeQe6YAatPboA==\",\"subType\":\"04\"}},\"sub\":{\"a\":[1]}}",
        "{\"_id\":{\"$oid\":\"546651e74bf6e4cb017c5312\"},\"n\":{\"$numberInt\":\"5\"},\"big\":{\"$numberLong\":\"9007199254740993\"},\"x\":{\"$numberDouble\":\"1.5\"},\"ts\":{\"$date\":{\"$numberLong\":\"1625566692036\"}},\"u\":{\"$binary\":{\"base64\":\"YfDEBFyzEeeQe6YAatPboA==\",\"subType\":\"04\"}},\"sub\":{\"a\":[1]}}",
        "{\"_id\":{\"$oid\":\"546651e74bf6e4cb017c5312\"},\"n\":5,\"big\":{\"$numberLong\":\"9007199254740993\"},\"x\":1.5,\"ts\":{\"$date\":1625566692036},\"u\":{\"$binary\":\"YfDEBFyzEeeQe6YAatPboA==\",\"$type\":\"04\"},\"sub\":{\"a\":[1]}}",
    ];
    let other = "{\"_id\":{\"$oid\":\"546651e74bf6e4cb017c5313\"},\"ts\":{\"$date\":\"2021-07-07T00:00:00Z\"},\"n\":null}";
    let expected = "{\"_id\":\"546651e74bf6e4cb017c5312\",\"n\":5,\"big\":9007199254740993,\"x\":1.5,\"ts\":\"2021-07-06T10:18:12.036\",\
                    \"u\":\"61f0c404-5cb3-11e7-907b-a6006ad3dba0\",\"sub\":{\"a\":[1]}}";
    for spelling in spellings {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "m.json", format!("{spelling}\n{other}\n"));
        let rows = through_a_table(dir.path(), "{}/m.json", "_id", "_id", "").unwrap();
        let first = rows.lines().next().unwrap();
        let (first, expected): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(first).unwrap(), serde_json::from_str(expected).unwrap());
        let nested =
            |value: &serde_json::Value| value["sub"].as_str().map_or(value["sub"].to_string(), str::to_owned);
        assert_eq!(nested(&first), nested(&expected), "{spelling}");
        for name in ["_id", "n", "big", "x", "ts", "u"] {
            assert_eq!(first[name], expected[name], "{name} of {spelling}");
        }
    }
}

#[test]
fn object_ids_are_a_type_of_their_own_which_mongodb_hashes() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (mut json_text, mut csv, mut plain) = (String::new(), "_id,n\n".to_owned(), String::new());
    for number in 0..400u64 {
        let id = format!("{:08x}{:016x}", 0x6543_2100 + number, number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        writeln!(json_text, "{{\"_id\":{{\"$oid\":\"{id}\"}},\"n\":{number}}}").unwrap();
        writeln!(csv, "ObjectId({}),{number}", id.to_uppercase()).unwrap();
        writeln!(plain, "{{\"_id\":\"{id}\",\"n\":{number}}}").unwrap();
    }
    write(dir, "m.json", &json_text);
    write(dir, "m.csv", csv);
    write(dir, "text.json", plain);
    let evaluated = |file: &str, placement: &str| {
        let arguments = format!(
            "evaluate {{}}/{file} --partition-key _id --no-primary-keys --partitions 8 --placement {placement} --format json"
        );
        json(dir, &arguments)
    };
    let rows =
        |report: &serde_json::Value| report["candidates"][0]["placements"][0]["rows_per_partition"].clone();
    let of_json = evaluated("m.json", "mongodb");
    assert_eq!(of_json["columns"][0]["type"], "ObjectId");
    assert_eq!(rows(&of_json), rows(&evaluated("m.csv", "mongodb --type _id:objectid")));
    assert_ne!(rows(&of_json), rows(&evaluated("text.json", "mongodb")), "text hashes otherwise");
    // The same 12 bytes by hand: seed 0, canonical type 35, MD5, 8 chunks around 0.
    let mut expected = [0u64; 8];
    for line in json_text.lines() {
        let id: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = id["_id"]["$oid"].as_str().unwrap();
        let bytes = (0..12).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap());
        let input: Vec<u8> = [0, 0, 0, 0, 35, 0, 0, 0].into_iter().chain(bytes).collect();
        let digest: [u8; 16] = Md5::digest(&input).into();
        let hash = i64::from_le_bytes(digest[..8].try_into().unwrap());
        let step = i64::MAX / 8 * 2;
        expected[(-3..=3).filter(|boundary| hash >= boundary * step).count()] += 1;
    }
    assert_eq!(rows(&of_json), serde_json::json!(expected));
    // Other systems, and tables, have the text.
    assert_eq!(rows(&evaluated("m.json", "ydb")), rows(&evaluated("text.json", "ydb")));
    let proposed = evaluated("m.json", "ydb");
    assert_eq!(proposed["candidates"][0]["type_obstacle"], serde_json::Value::Null);
    for file in ["m.json", "m.csv"] {
        let table = format!("{{}}/t{}", usize::from(file == "m.csv"));
        let created =
            done(dir, &format!("create {table} --like {{}}/{file} --primary-key _id --partitions 2"));
        assert!(created.contains("_id Utf8 NOT NULL"), "{created}");
        done(dir, &format!("ingest {table} {{}}/{file}"));
    }
    let refused = run(dir, "create {}/t7 --column _id:objectid:not-null --primary-key _id");
    assert!(refused.code == 2 && refused.stderr.contains("declare it as _id:Utf8"), "{}", refused.stderr);
    let typed = run(dir, "evaluate {}/m.csv --type n:objectid --partition-key n");
    assert!(typed.stderr.contains("is not an ObjectId of 24 hexadecimal digits"), "{}", typed.stderr);
}

#[test]
fn csv_of_postgresql_and_cassandra_has_its_own_rules_for_quotes() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "pg.csv", "id,a,b\n1,,\"\"\n2,\"x\"\"y\",NA\n3,\"NA\",\n");
    let rows = through_a_table(dir.path(), "{}/pg.csv", "id", "id", " --quoted-empty").unwrap();
    assert_eq!(
        rows,
        "{\"id\":1,\"b\":\"\"}\n{\"id\":2,\"a\":\"x\\\"y\",\"b\":\"NA\"}\n{\"id\":3,\"a\":\"NA\"}\n"
    );
    let rows =
        through_a_table(dir.path(), "{}/pg.csv", "id", "id", " --quoted-empty --null-value NA").unwrap();
    assert_eq!(
        rows,
        "{\"id\":1,\"a\":\"\",\"b\":\"\"}\n{\"id\":2,\"a\":\"x\\\"y\"}\n{\"id\":3,\"a\":\"NA\",\"b\":\"\"}\n"
    );
    let text = "id,a\n1,\"say \\\"hi\\\", ok\"\n2,\"back\\\\slash\"\n";
    write(dir.path(), "c.csv", text);
    write(dir.path(), "output-000001.csv", text);
    let expected = "{\"id\":1,\"a\":\"say \\\"hi\\\", ok\"}\n{\"id\":2,\"a\":\"back\\\\slash\"}\n";
    for (name, options) in [("c.csv", " --escape \\"), ("output-000001.csv", "")] {
        let rows = through_a_table(dir.path(), &format!("{{}}/{name}"), "id", "id", options).unwrap();
        assert_eq!(rows, expected, "{name}");
    }
    write(dir.path(), "open.csv", "id,a\n1,\"x\\\"\n2,y\n");
    let error = through_a_table(dir.path(), "{}/open.csv", "id", "id", " --escape \\").unwrap_err();
    assert!(error.contains("quote"), "{error}");
}

#[test]
fn the_description_of_a_table_and_its_statistics_are_compared_with_the_export() {
    let dir = tempfile::tempdir().unwrap();
    let mut text = "id,user,at\n".to_owned();
    for id in 0..1000 {
        writeln!(text, "{id},u{},2026-01-31T10:{:02}:{:02}Z", id % 97, id / 60 % 60, id % 60).unwrap();
    }
    write(dir.path(), "events.csv", text);
    let description = r#"{"self":{"name":"events"},"columns":[{"name":"id","type":{"type_id":"UINT64"}},{"name":"user","type":{"type_id":"UTF8"}},
        {"name":"at","type":{"optional_type":{"item":{"type_id":"TIMESTAMP"}}}}],"primary_key":["id","user"],"partitioning_settings":{"partition_by":["user"]},
        "store_type":"STORE_TYPE_COLUMN","table_stats":{"partitions":"4"}}"#;
    write(dir.path(), "events.json", description);
    let stats = "Path,PartIdx,FollowerId,RowCount\n/db/events,0,0,100\n/db/events,1,0,300\n/db/events,2,0,100\n/db/events,3,0,100\n/db/other,0,0,9\n";
    write(dir.path(), "stats.csv", stats);
    let command = "evaluate {}/events.csv --ddl {}/events.json --partition-stats {}/stats.csv";
    let found = json(dir.path(), &format!("{command} --format json"));
    let measured = &found["measured"];
    assert_eq!(
        (measured["measured_in"].as_str(), measured["max_over_mean"].as_f64()),
        (Some("statistics"), Some(2.0))
    );
    assert_eq!(measured["partitions"][1], serde_json::json!({"partition": "1", "rows": 300}));
    let computed: Vec<u64> =
        serde_json::from_value(measured["computed"]["rows_per_partition"].clone()).unwrap();
    assert_eq!((computed.len(), computed.iter().sum::<u64>()), (4, 1000));
    let printed = run(dir.path(), &format!("{command} --verbose"));
    assert!(
        printed.stdout.contains(
            "4 partitions in the statistics: 100 to 300 rows, max/mean 2.00; HASH(user) of this export"
        ),
        "{}",
        printed.stdout
    );
    assert!(printed.stderr.contains("declares a column table of 3 columns, PRIMARY KEY (id, user), PARTITION BY HASH(user), 4 partitions"), "{}", printed.stderr);
    write(dir.path(), "stats.csv", "a,b\n1,2\n");
    let refused = run(dir.path(), command);
    assert!(refused.stderr.contains("has no columns PartIdx and RowCount"), "{}", refused.stderr);
    write(dir.path(), "events.json", "{\"columns\": []}");
    assert!(run(dir.path(), command).stderr.contains("events.json: it declares no columns"));
}
