//! Dumps of PostgreSQL, and backups of Greenplum.

use std::fmt::Write as _;

use crate::common::{json, run};
use crate::other_systems::{through_a_table, write};

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
fn statements_with_sections_of_rows_are_read_without_the_title_of_a_dump() {
    let dir = tempfile::tempdir().unwrap();
    let section = "COPY towns (id, name) FROM stdin;\n1\tBourg\n2\t\\N\n\\.\n";
    let declared = "/* of a shop */\nset client_encoding = 'UTF8';\n\nCREATE TABLE towns (\n  id integer PRIMARY KEY,\n  name text\n);\n";
    for script in [section.to_owned(), format!("{declared}{section}")] {
        write(dir.path(), "towns.sql", &script);
        let rows = through_a_table(dir.path(), "{}/towns.sql", "id", "id", "").unwrap();
        assert_eq!(rows, "{\"id\":1,\"name\":\"Bourg\"}\n{\"id\":2}\n", "{script}");
    }
    // Text that merely begins with such a word is no script.
    write(dir.path(), "sets.txt", "set;note\n1;COPY t (a) FROM stdin\n");
    let rows = through_a_table(dir.path(), "{}/sets.txt", "set", "\"set\"", "").unwrap();
    assert_eq!(rows, "{\"set\":1,\"note\":\"COPY t (a) FROM stdin\"}\n");
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
