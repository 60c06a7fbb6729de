//! Statements and sections of dumps, without the programs around them: what is a dump, whose rows
//! are whose, and what is missing in a part of one.

use std::io::Cursor;

use super::*;
use crate::source::lines::tests::{Rows, rows_in_lines};
use evenkeel_model::table::ColumnType;

fn declared(text: &str) -> Result<Vec<DeclaredTable>, SourceError> {
    let mut outline = Outline::default();
    text.lines().for_each(|line| outline.line(line.as_bytes()));
    outline.tables("d.sql")
}

fn columns(table: &DeclaredTable) -> Vec<&str> {
    table.columns.iter().map(|column| column.name.as_str()).collect()
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A partitioned table, whose rows are in partitions of partitions, and another table.
const DUMP: &str = "--
-- PostgreSQL database dump
--
CREATE TABLE s.p (
    id integer NOT NULL,
    note text DEFAULT 'a
COPY s.q (id) FROM stdin;'::text
)
PARTITION BY RANGE (id);
CREATE TABLE s.p_1 (id integer NOT NULL, note text) PARTITION BY RANGE (id);
CREATE TABLE s.p_1_a (id integer NOT NULL, note text);
CREATE TABLE s.q (id integer);
ALTER TABLE ONLY s.p ATTACH PARTITION s.p_1 FOR VALUES FROM (0) TO (9);
ALTER TABLE ONLY s.p_1 ATTACH PARTITION s.p_1_a FOR VALUES FROM (0) TO (5);
COPY s.p_1_a (id, note) FROM stdin;
1\tINSERT INTO s.q VALUES (1);
2\t\\N
\\.
COPY s.q (id) FROM stdin;
3
\\.
ALTER TABLE ONLY s.p
    ADD CONSTRAINT p_pkey PRIMARY KEY (id);
--
-- PostgreSQL database dump complete
--
";

#[test]
fn dumps_and_scripts_with_sections_are_told_from_other_text() {
    for (head, is_dump_of_one) in [
        ("--\n-- PostgreSQL database dump\n--\n", true),
        ("\n-- Greenplum Database database dump\n", true),
        ("COPY public.t (a, b) FROM stdin;\n1\t2\n", true),
        ("/* of a shop */\n\\connect shop\nset x = 1;\nCOPY t (a) FROM stdin;\n", true),
        ("begin;\nCOPY t (a) FROM stdin;\n", true),
        ("/* of a\nshop */ set x = 1;\n-- rows\nCOPY t (a) FROM stdin;\n", true),
        ("/* never closed\nset x = 1;\nCOPY t (a) FROM stdin;\n", false),
        ("--\n-- PostgreSQL database cluster dump\n--\n", false),
        // A section needs the names of its columns.
        ("BEGIN;\nCOPY t FROM stdin;\n", false),
        ("SELECT 1;\nCOPY t (a) FROM stdin;\n", false),
        ("CREATE TABLE t (a int);\nINSERT INTO t VALUES (1);\n", false),
        ("copy,from\nCOPY t (a) FROM stdin;\n", false),
        ("id\n-- PostgreSQL database dump\n", false),
        ("", false),
    ] {
        assert_eq!(is_dump(head.as_bytes()), is_dump_of_one, "{head:?}");
    }
}

#[test]
fn rows_of_partitions_of_partitions_belong_to_the_table_with_its_key() {
    let tables = declared(DUMP).unwrap();
    assert_eq!(tables.iter().map(|table| table.name.as_str()).collect::<Vec<_>>(), ["s.p", "s.q"]);
    let [p, q] = tables.as_slice() else { panic!("{tables:?}") };
    assert_eq!((columns(p), &p.primary_key), (vec!["id", "note"], &strings(&["id"])));
    assert_eq!((&p.sections, &q.sections), (&strings(&["s.p_1_a"]), &strings(&["s.q"])));
    assert!(p.form == DataForm::Section && p.file == "d.sql" && p.notes.is_empty(), "{p:?}");
    // Text in a row is no statement.
    assert!(!p.has_other_rows && !q.has_other_rows);
}

#[test]
fn partitions_that_are_attached_in_a_circle_are_read_to_an_end() {
    let circle = "ALTER TABLE a ATTACH PARTITION b;\nALTER TABLE b ATTACH PARTITION a;\n";
    let tables = declared(&format!("{circle}COPY a (x) FROM stdin;\n1\n\\.\n")).unwrap();
    assert_eq!(tables.len(), 1, "{tables:?}");
    assert_eq!((columns(&tables[0]), &tables[0].sections), (vec!["x"], &strings(&["a"])));
}

#[test]
fn a_dump_that_is_cut_after_any_of_its_lines_is_refused() {
    let lines: Vec<&str> = DUMP.lines().collect();
    let complete = lines.iter().position(|line| line.ends_with("dump complete")).unwrap() + 1;
    for count in 2..=lines.len() {
        let found = declared(&lines[..count].join("\n"));
        match found {
            Ok(tables) => assert!(count >= complete && tables.len() == 2, "{count} lines"),
            Err(error) => {
                let said = error.to_string();
                let is_cut_off = said.contains("the pg_dump is cut off");
                assert!(count < complete && is_cut_off, "{count} lines: {said}");
            }
        }
    }
}

#[test]
fn statements_without_a_title_are_cut_off_wherever_one_or_its_rows_lack_an_end() {
    let statements = [
        "CREATE TABLE t (\n    id integer,\n    n text DEFAULT 'a;\n\\.\n;'::text\n);",
        "COPY t (id, n) FROM stdin;\n1\tx;\n2\t\\N\n\\.",
        "ALTER TABLE ONLY t\n    ADD PRIMARY KEY (id);",
    ];
    let mut whole = String::new();
    for statement in statements {
        let lines: Vec<&str> = statement.lines().collect();
        for count in 0..=lines.len() {
            let found = declared(&format!("{whole}{}\n", lines[..count].join("\n")));
            let is_whole = count == 0 || count == lines.len();
            let said = found.as_ref().err().map(ToString::to_string);
            assert_eq!(said.is_none(), is_whole, "{count} lines of {statement}: {said:?}");
            let is_said = said.is_none_or(|said| said.contains("the statements are cut off"));
            assert!(is_said, "{count} lines of {statement}");
        }
        whole += statement;
        whole += "\n";
    }
}

#[test]
fn columns_are_those_that_are_dumped_and_a_key_of_others_is_none() {
    let tables = declared(
        "CREATE TABLE t (id bigint, shard bigint GENERATED ALWAYS AS ((id % 4)) STORED, n text);
ALTER TABLE ONLY t ADD CONSTRAINT t_pkey PRIMARY KEY (shard, id);
COPY t (id, n, inherited) FROM stdin;
\\.
COPY alone (b, \"A a\") FROM stdin;
\\.
",
    )
    .unwrap();
    let [t, alone] = tables.as_slice() else { panic!("{tables:?}") };
    assert_eq!((columns(t), t.primary_key.is_empty()), (vec!["id", "n", "inherited"], true));
    let types = t.columns.iter().map(|column| column.column_type);
    assert_eq!(types.collect::<Vec<_>>(), [Some(ColumnType::Int64), Some(ColumnType::Utf8), None]);
    assert_eq!(t.notes.len(), 1, "{t:?}");
    assert_eq!(t.notes[0].code(), "generated_column_left_out", "{t:?}");
    assert!(t.notes[0].text().contains("'shard' is generated and not dumped"), "{t:?}");
    // A dump of rows alone has names only.
    assert_eq!((alone.name.as_str(), columns(alone)), ("alone", vec!["b", "A a"]));
    assert!(alone.columns.iter().all(|column| column.column_type.is_none() && column.nullable));
}

#[test]
fn rows_in_another_form_are_noted_or_refused() {
    let text = "CREATE TABLE a (x int);\nCREATE TABLE b (x int);\nINSERT INTO a VALUES (1);\n\
                INSERT INTO \"c\" (x) VALUES (1);\nCOPY b (x) FROM stdin;\n1\n\\.\n";
    let tables = declared(text).unwrap();
    let has_other_rows = tables.iter().map(|table| (table.name.as_str(), table.has_other_rows));
    assert_eq!(has_other_rows.collect::<Vec<_>>(), [("a", true), ("b", false)]);
    for copy in ["COPY b (x) FROM STDIN WITH CSV;", "COPY b FROM stdin;"] {
        let text = text.replace("COPY b (x) FROM stdin;", copy);
        let error = declared(&text).unwrap_err().to_string();
        assert!(error.contains("a form that pg_dump does not write"), "{error}");
        assert!(error.contains(copy), "{error}");
    }
}

/// Reads the rows of a table, batch by batch and as other threads would.
fn rows(text: &str, tables: &[&str]) -> Result<Rows, SourceError> {
    let by_batches = read(text, tables, |reader| Ok(reader.next_batch()?.map(|batch| vec![Ok(batch)])));
    let by_parts = read(text, tables, |reader| Ok(reader.next_part()?.map(RawPart::read)));
    let plain = |rows: &Result<Rows, SourceError>| format!("{rows:?}");
    assert_eq!(plain(&by_batches), plain(&by_parts));
    by_batches
}

/// Batches; after a failure, there are no more.
type Batches = Vec<Result<RawBatch, SourceError>>;

fn read(
    text: &str,
    tables: &[&str],
    next: impl Fn(&mut DumpSectionReader) -> Result<Option<Batches>, SourceError>,
) -> Result<Rows, SourceError> {
    let section = Section { tables: strings(tables), columns: strings(&["id", "note"]) };
    let options = InputOptions { section: Some(section), batch_rows: 2, ..InputOptions::default() };
    let stream = Box::new(Cursor::new(text.as_bytes().to_vec()));
    let mut reader = DumpSectionReader::open("d.sql", stream, &strings(&["note", "id"]), &options)?;
    let mut rows = Vec::new();
    while let Some(batches) = next(&mut reader)? {
        for batch in batches {
            rows.extend(rows_in_lines(batch?));
        }
    }
    Ok(rows)
}

#[test]
fn the_rows_of_a_table_are_those_of_its_sections_in_their_own_order_of_columns() {
    let text = "CREATE FUNCTION f() AS $$
COPY p_1 (id, note) FROM stdin;
$$;
COPY p_1 (id, note) FROM stdin;
1\ta
2\t\\N
3\ttab\\there
\\.
COPY other (x) FROM stdin;
COPY p_2 (id, note) FROM stdin;
\\.
COPY p_2 (note, id) FROM stdin;
b\t4
\\.
COPY p_1 (id) FROM stdin;
5
\\.
";
    let some = |text: &str| Some(text.to_owned());
    let of_first = [
        (5, vec![some("a"), some("1")]),
        (6, vec![None, some("2")]),
        (7, vec![some("tab\there"), some("3")]),
    ];
    let of_second = (13, vec![some("b"), some("4")]);
    let last = (16, vec![None, some("5")]);
    let both = of_first.iter().chain([&of_second, &last]).cloned();
    let both: Vec<(u64, Vec<Option<String>>)> = both.collect();
    assert_eq!(rows(text, &["p_1", "p_2"]).unwrap(), both);
    assert_eq!(rows(text, &["p_2"]).unwrap(), [of_second]);
    assert!(rows(text, &["nope"]).unwrap().is_empty());
}

#[test]
fn a_section_without_an_end_or_that_nobody_chose_is_refused() {
    let text = "COPY t (id, note) FROM stdin;\n1\ta\n2\tb\n3\tc\n";
    let error = rows(text, &["t"]).unwrap_err().to_string();
    assert!(error.contains("the pg_dump ends within the rows of the table"), "{error}");
    let stream = Box::new(Cursor::new(DUMP.as_bytes().to_vec()));
    let opened = DumpSectionReader::open("-", stream, &strings(&["id"]), &InputOptions::default());
    assert!(matches!(opened.err(), Some(SourceError::Foreign { .. })));
}
