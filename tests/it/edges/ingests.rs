//! Ingests at the same moment, of the same file, with rejected rows, and interrupted.

#[cfg(unix)]
use std::io::Write;
use std::process::Child;

use crate::common::{Run, done, json, run};
use crate::edges::{CREATE, piped, start};

#[test]
fn the_same_file_from_many_processes_lands_once_and_none_of_them_fails() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let lines: Vec<String> = (0..2_000).map(|k| format!("{k},a")).collect();
    let file = dir.path().join("a.csv");
    std::fs::write(&file, format!("k,v\n{}\n", lines.join("\n"))).unwrap();
    let file = file.display().to_string();
    let race = |more: &[&str]| {
        let children: Vec<Child> =
            (0..4).map(|_| start(dir.path(), &[&[file.as_str()], more].concat())).collect();
        for child in children {
            let run = Run::from(child.wait_with_output().unwrap());
            assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        }
    };
    race(&[]);
    let overview = json(dir.path(), "inspect {}/t --format json");
    assert_eq!((&overview["rows"], &overview["stored_rows"]), (&2_000.into(), &2_000.into()));
    race(&["--again"]);
    let overview = json(dir.path(), "inspect {}/t --format json");
    assert_eq!((&overview["rows"], &overview["stored_rows"]), (&2_000.into(), &10_000.into()));
    assert_eq!(overview["other_files"], 0, "{overview}");
}

#[test]
fn later_files_win_also_when_their_content_came_before() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    for (name, value) in [("a", "first"), ("b", "second"), ("c", "first")] {
        std::fs::write(dir.path().join(format!("{name}.csv")), format!("k,v\n1,{value}\n")).unwrap();
    }
    done(dir.path(), "ingest {}/t {}/a.csv {}/b.csv {}/c.csv");
    std::fs::write(dir.path().join("q.sql"), "SELECT v FROM t").unwrap();
    assert_eq!(done(dir.path(), "query {}/t -f {}/q.sql --format csv"), "v\nfirst\n");
}

#[test]
fn a_rejects_file_stays_only_where_something_was_committed() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let csv = b"k,v\n1,a\nx,b\n";
    let first = piped(dir.path(), &["-", "--on-error", "reject", "--input-format", "csv"], csv);
    assert_eq!(first.code, 0, "{}", first.stderr);
    let rejects = || std::fs::read_dir(dir.path().join("t/_rejects")).unwrap().count();
    assert_eq!(rejects(), 1);
    let known = piped(dir.path(), &["-", "--on-error", "reject", "--input-format", "csv"], csv);
    assert!(known.stdout.contains("already ingested"), "{}", known.stdout);
    assert_eq!(rejects(), 1);
    std::fs::write(dir.path().join("taken"), "").unwrap();
    std::fs::write(dir.path().join("b.csv"), "k,v\n7,a\n").unwrap();
    let failed = run(dir.path(), "ingest {}/t {}/b.csv --on-error reject --rejects {}/taken");
    assert!(
        failed.stderr.contains("taken: exists already; name a new file for rejected rows"),
        "{}",
        failed.stderr
    );
}

#[test]
fn an_ingest_that_rejects_every_row_fails_and_can_be_mended() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    std::fs::write(dir.path().join("a.csv"), "k,v\nx,1\ny,2\n").unwrap();
    let failed = run(dir.path(), "ingest {}/t {}/a.csv --on-error reject");
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("all 2 rows are rejected; the first: "), "{}", failed.stderr);
    assert_eq!(std::fs::read_dir(dir.path().join("t/_rejects")).unwrap().count(), 0);
    std::fs::write(dir.path().join("a.csv"), "k,v\nx,1\n7,2\n").unwrap();
    done(dir.path(), "ingest {}/t {}/a.csv --on-error reject");
    let known = done(dir.path(), "ingest {}/t {}/a.csv");
    assert!(known.contains("already ingested as version 1, less 1 row rejected"), "{known}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_ingest_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    // A pipe that stays open: the ingest is sure to be under way.
    let mut child = start(dir.path(), &["-", "--input-format", "csv"]);
    let mut input = child.stdin.take().unwrap();
    let interrupt = |pid: u32| {
        let killed =
            std::process::Command::new("sh").args(["-c", &format!("kill -INT {pid}")]).status().unwrap();
        assert!(killed.success());
    };
    input.write_all(b"k,v\n").unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    interrupt(child.id());
    // Rows go on to come until the program has ended.
    while child.try_wait().unwrap().is_none() {
        let rows: String = (0..20_000).map(|k| format!("{k},a\n")).collect();
        if input.write_all(rows.as_bytes()).is_err() {
            break;
        }
    }
    drop(input);
    let ended = Run::from(child.wait_with_output().unwrap());
    assert_eq!((ended.code, ended.stderr.as_str()), (130, "error: interrupted; nothing was committed\n"));
    let overview = json(dir.path(), "inspect {}/t --format json");
    assert_eq!((&overview["version"], &overview["other_files"]), (&0.into(), &0.into()));
}

#[cfg(unix)]
#[test]
fn an_ingest_that_waits_for_input_can_be_interrupted() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), CREATE);
    let mut child = start(dir.path(), &["-"]);
    let input = child.stdin.take().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let kill = format!("kill -INT {}", child.id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    // The pipe stays open until the program has ended by itself.
    let ended = Run::from(child.wait_with_output().unwrap());
    drop(input);
    assert_eq!((ended.code, ended.stderr.as_str()), (130, "error: interrupted; nothing was committed\n"));
}
