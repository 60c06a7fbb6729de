//! Files that are read as a whole have a limit, and messages stay on one line of bounded length
//! whatever they quote.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::{Run, arguments, done, evenkeel, run};

/// A message has at most this many characters; with its prefix and the name of a file.
const LONGEST: usize = 2_500;

/// The export and the table that commands below name.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..50).map(|row| format!("{row},2026-01-31T10:00:{row:02}Z,x{row}\n")).collect();
    std::fs::write(dir.path().join("x.csv"), format!("id,at,name\n{rows}")).unwrap();
    done(dir.path(), "create {}/t --like {}/x.csv --primary-key id --partitions 2");
    dir
}

fn is_one_clear_line(run: &Run, what: &str) {
    assert!(matches!(run.code, 1 | 2), "{what}: {} {}", run.code, run.stdout);
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(lines.len(), 1, "{what}: {}", run.stderr.chars().take(3000).collect::<String>());
    assert!(run.stderr.chars().count() < 2 * LONGEST, "{what}: {} characters", run.stderr.len());
    assert!(lines[0].chars().count() < LONGEST, "{what}: {} characters", lines[0].chars().count());
    assert!(!run.stderr.contains(|c: char| c.is_control() && c != '\n'), "{what}: {:?}", run.stderr);
}

/// Every option that names a file which is read as a whole.
const READ_AS_A_WHOLE: [&str; 7] = [
    "query {}/t -f FILE",
    "create {}/new --ddl FILE",
    "evaluate {}/x.csv --queries FILE",
    "evaluate {}/x.csv --baseline FILE",
    "spanner simulate {}/x.csv --ddl FILE",
    "bench queries {}/t --queries FILE",
    "query {}/t SELECT --param x=1 -f FILE",
];

#[cfg(target_os = "linux")]
#[test]
fn endless_files_are_refused_within_a_limit_of_memory() {
    let dir = folder();
    for command in &READ_AS_A_WHOLE[..5] {
        let began = Instant::now();
        let words = arguments(dir.path(), &command.replace("FILE", "/dev/zero"));
        let mut shell = std::process::Command::new("sh");
        // Address space, of which a program that is not optimized needs about 1 GiB for its
        // threads.
        shell
            .args(["-c", "ulimit -v 3000000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_evenkeel")])
            .args(&words);
        let ended = Run::from(shell.stdin(std::process::Stdio::null()).output().unwrap());
        is_one_clear_line(&ended, command);
        assert!(
            ended.stderr.contains("/dev/zero: has more than ")
                && ended.stderr.contains(" MiB, the limit for "),
            "{}",
            ended.stderr
        );
        assert!(began.elapsed() < Duration::from_secs(20), "{command}: {:?}", began.elapsed());
    }
}

#[test]
fn files_are_read_up_to_their_limit() {
    let dir = folder();
    let path = |name: &str| dir.path().join(name);
    let ddl = "CREATE TABLE t (k Int64 NOT NULL, PRIMARY KEY (k)) WITH (STORE = COLUMN)";
    let limit = 4 << 20;
    std::fs::write(path("fits.sql"), format!("{ddl}{}", " ".repeat(limit - ddl.len()))).unwrap();
    done(dir.path(), "create {}/t1 --ddl {}/fits.sql");
    std::fs::write(path("large.sql"), format!("{ddl}{}", " ".repeat(limit - ddl.len() + 1))).unwrap();
    let refused = run(dir.path(), "create {}/t2 --ddl {}/large.sql");
    is_one_clear_line(&refused, "a byte more");
    assert!(
        refused.stderr.contains("large.sql: has more than 4 MiB, the limit for files of SQL"),
        "{}",
        refused.stderr
    );
    assert!(!path("t2").exists(), "nothing is made");
    // A folder of statements has a limit of its own.
    std::fs::create_dir(path("many")).unwrap();
    for number in 0..5 {
        std::fs::write(
            path(&format!("many/{number}.sql")),
            format!("SELECT 1 --{}", "x".repeat(limit - 100)),
        )
        .unwrap();
    }
    let refused = run(dir.path(), "evaluate {}/x.csv --queries {}/many");
    is_one_clear_line(&refused, "many files");
    assert!(refused.stderr.contains("have more than 16 MiB together"), "{}", refused.stderr);
    std::fs::write(path("latin1.sql"), b"SELECT 'M\xFCller' FROM t").unwrap();
    for command in READ_AS_A_WHOLE.iter().take(5) {
        let refused = run(dir.path(), &command.replace("FILE", "{}/latin1.sql"));
        is_one_clear_line(&refused, command);
        assert!(refused.stderr.contains("is not valid UTF-8 from byte 9 on"), "{}", refused.stderr);
        let refused = run(dir.path(), &command.replace("FILE", "{}/nowhere.sql"));
        is_one_clear_line(&refused, command);
        assert!(refused.stderr.contains("nowhere.sql: cannot read: "), "{}", refused.stderr);
        let refused = run(dir.path(), &command.replace("FILE", "{}"));
        assert!(matches!(refused.code, 1 | 2), "{command}: a folder");
    }
}

#[test]
fn long_input_is_quoted_in_part() {
    let dir = folder();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let long = "x".repeat(1 << 20);
    for (name, text) in [
        ("word.sql", long.clone()),
        ("text.sql", format!("SELECT '{long}' FROM t WHERE nope = 1")),
        ("open.sql", format!("SELECT '{long}")),
        ("name.sql", format!("SELECT \"{long}\" FROM t")),
        ("table.sql", format!("SELECT * FROM \"{long}\"")),
        // The suggestion of a similar name takes time by the length of this one.
        ("function.sql", format!("SELECT {}(1) FROM t", &long[..20_000])),
        ("cast.sql", format!("SELECT CAST('{long}' AS BIGINT) FROM t")),
        ("parameter.sql", format!("SELECT ${long} FROM t")),
        ("control.sql", "SELECT \u{1b}[2J \u{7} FROM t".to_owned()),
    ] {
        write(name, &text);
        is_one_clear_line(&run(dir.path(), &format!("query {{}}/t -f {{}}/{name}")), name);
    }
    for (name, text) in [
        ("word.ddl", long.clone()),
        ("table.ddl", format!("CREATE TABLE `{long}`")),
        ("column.ddl", format!("CREATE TABLE t (`{long}` Int64, PRIMARY KEY (k))")),
        ("type.ddl", format!("CREATE TABLE t (k {long} NOT NULL, PRIMARY KEY (k))")),
        ("key.ddl", format!("CREATE TABLE t (k Int64 NOT NULL, PRIMARY KEY (`{long}`)) WITH (STORE = COLUMN)")),
        ("twice.ddl", format!("CREATE TABLE t (k Int64, `{long}` Int64, `{long}` Int64, PRIMARY KEY (k)) WITH (STORE = COLUMN)").replace(&long, &long[..1 << 20])),
        ("open.ddl", format!("CREATE TABLE t (k '{long}")),
        ("store.ddl", format!("CREATE TABLE t (k Int64 NOT NULL, PRIMARY KEY (k)) WITH (STORE = {long})")),
        ("partitions.ddl", format!("CREATE TABLE t (k Int64 NOT NULL, PRIMARY KEY (k)) WITH (AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = {})", "9".repeat(1 << 20))),
    ] {
        write(name, &text);
        is_one_clear_line(&run(dir.path(), &format!("create {{}}/new --ddl {{}}/{name}")), name);
        is_one_clear_line(&run(dir.path(), &format!("spanner simulate {{}}/x.csv --ddl {{}}/{name}")), name);
    }
    for (name, text) in [("text.json", long.clone()), ("value.json", format!("{{\"{long}\": }}"))] {
        write(name, &text);
        is_one_clear_line(&run(dir.path(), &format!("evaluate {{}}/x.csv --baseline {{}}/{name}")), name);
    }
    // A value of an export, the name of a column, and many columns.
    write("value.csv", &format!("id,at\n1,2026-01-31\n{long},2026-01-31\n"));
    is_one_clear_line(&run(dir.path(), "evaluate {}/value.csv --type id:int64"), "a value");
    is_one_clear_line(&run(dir.path(), "ingest {}/t {}/value.csv"), "a value of an ingest");
    write("heading.csv", &format!("{long},at\n1,2026-01-31\n"));
    is_one_clear_line(&run(dir.path(), "ingest {}/t {}/heading.csv"), "a heading");
    write("twice.csv", &format!("{long},{long}\n1,2\n"));
    is_one_clear_line(&run(dir.path(), "evaluate {}/twice.csv"), "a heading twice");
    let many: Vec<String> = (0..20_000).map(|number| format!("column_{number}")).collect();
    write("many.csv", &format!("{}\n{}\n", many.join(","), vec!["1"; many.len()].join(",")));
    is_one_clear_line(&run(dir.path(), "ingest {}/t {}/many.csv"), "many columns");
    write("broken.ndjson", &format!("{{\"id\": 1}}\n{{\"id\": {long}\n"));
    is_one_clear_line(&run(dir.path(), "ingest {}/t {}/broken.ndjson"), "broken JSON");
}

/// Options whose value is parsed here, each with a command that has it.
const OPTIONS: [&str; 33] = [
    "query {}/t LONG",
    "query {}/t -c LONG",
    "query {}/t SELECT --param LONG",
    "query {}/t SELECT --format LONG",
    "query {}/t SELECT --version LONG",
    "query {}/LONG SELECT",
    "query {}/t SELECT LONG",
    "LONG",
    "query --LONG",
    "create {}/new --column LONG --primary-key id",
    "create {}/new --column id:LONG --primary-key id",
    "create {}/new --column id:int64:LONG --primary-key id",
    "create {}/new --column id:int64:not-null --primary-key LONG",
    "create {}/new --column id:int64:not-null --primary-key id --partition-key LONG",
    "create {}/new --column id:int64:not-null --primary-key id --partitions LONG",
    "create {}/new --column id:int64:not-null --primary-key id --placement LONG",
    "create {}/new --column id:int64:not-null --primary-key id --ttl LONG",
    "create {}/new --column id:int64:not-null --primary-key id --ttl id=LONG",
    "evaluate {}/x.csv --partition-key LONG",
    "evaluate {}/x.csv --partition-key week(LONG)",
    "evaluate {}/x.csv --primary-key LONG",
    "evaluate {}/x.csv --type LONG",
    "evaluate {}/x.csv --type LONG:int64",
    "evaluate {}/x.csv --type id:LONG",
    "evaluate {}/x.csv --time LONG",
    "evaluate {}/x.csv --window LONG",
    "evaluate {}/x.csv --memory LONG",
    "evaluate {}/x.csv --fail-on LONG",
    "evaluate {}/x.csv --fail-on LONG>1",
    "evaluate {}/x.csv --placement LONG",
    "evaluate {}/x.csv --timestamp-format LONG",
    "evaluate LONG",
    "place --types int64 --partitions 4 LONG",
];

#[test]
fn long_options_are_quoted_in_part() {
    let dir = folder();
    // One argument has at most 128 KiB on Linux.
    let long = "x".repeat(100_000);
    for option in OPTIONS {
        let words = arguments(dir.path(), &option.replace("LONG", &long));
        let ended = Run::from(evenkeel().args(&words).output().unwrap());
        assert!(matches!(ended.code, 1 | 2), "{option}: {}", ended.code);
        assert!(
            ended.stderr.starts_with("error: "),
            "{option}: {}",
            ended.stderr.chars().take(300).collect::<String>()
        );
        assert!(
            ended.stderr.chars().count() < 2 * LONGEST,
            "{option}: {} characters",
            ended.stderr.chars().count()
        );
    }
    assert!(!Path::new(&dir.path().join("new")).exists());
}
