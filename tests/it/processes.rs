//! Many processes on one table: writers, a compaction, a cleaning and readers at one time, and
//! processes that are killed.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::{Run, done, evenkeel, json, run};

const ROWS_PER_FILE: u64 = 500;

fn rows(dir: &Path) -> u64 {
    json(dir, "inspect {}/t --format json")["rows"].as_u64().unwrap()
}

/// Files of distinct keys, each with every user: portions overlap.
fn files(dir: &Path, count: u64) {
    for file in 0..count {
        let rows: String =
            (0..ROWS_PER_FILE).map(|row| format!("u{},{},{file}\n", row % 50, file + row * count)).collect();
        std::fs::write(dir.join(format!("{file}.csv")), format!("user,k,v\n{rows}")).unwrap();
    }
}

const CREATE: &str = "create {}/t --column user:utf8:not-null --column k:int64:not-null --column v:int64 \
                      --primary-key user,k --partition-key user --partitions 4";

#[test]
fn writers_readers_compactions_and_cleanings_do_not_disturb_each_other() {
    const WRITERS: u64 = 4;
    const FILES: u64 = 24;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    files(dir, FILES);
    done(dir, CREATE);
    let writing = AtomicBool::new(true);
    let (mut compactions, mut reads) = (0, 0);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    for file in (0..FILES).filter(|file| file % WRITERS == writer) {
                        // Some of them compact too, and so meet the other compaction.
                        let compact = if file % 3 == 0 { "auto" } else { "off" };
                        let written = run(dir, &format!("ingest {{}}/t {{}}/{file}.csv --compact {compact}"));
                        assert_eq!(written.code, 0, "{}", written.stderr);
                        assert!(!written.stdout.contains("not compacted"), "{}", written.stdout);
                    }
                })
            })
            .collect();
        let compacting = scope.spawn(|| {
            let mut compactions = 0;
            while writing.load(Ordering::Relaxed) {
                let report = json(dir, "compact {}/t --max-depth 2 --format json");
                compactions += report["versions"].as_array().unwrap().len();
                // Readers hold a version for less than that, also on a slow machine.
                done(dir, "clean {}/t --keep 20s");
            }
            compactions
        });
        let reading = scope.spawn(|| {
            let (mut before, mut reads) = (0, 0);
            while writing.load(Ordering::Relaxed) {
                let sql = "SELECT/**/count(*),count(DISTINCT/**/v)/**/FROM/**/t";
                let out = done(dir, &format!("query {{}}/t --format csv -c {sql}"));
                let (found, files) = out.lines().nth(1).unwrap().split_once(',').unwrap();
                let (found, files): (u64, u64) = (found.parse().unwrap(), files.parse().unwrap());
                assert_eq!(found, files * ROWS_PER_FILE, "a commit is seen in part");
                assert!(found >= before, "{found} rows after {before}");
                before = found;
                reads += 1;
            }
            reads
        });
        for writer in writers {
            writer.join().unwrap();
        }
        writing.store(false, Ordering::Relaxed);
        compactions = compacting.join().unwrap();
        reads = reading.join().unwrap();
    });
    assert_eq!(rows(dir), FILES * ROWS_PER_FILE);
    assert!(done(dir, "check {}/t").contains("0 damaged"));
    let _ = writeln!(std::io::stderr(), "{WRITERS} writers, {compactions} compactions, {reads} reads");
    assert!(compactions > 0 && reads > 0);
    done(dir, "compact {}/t --full");
    done(dir, "clean {}/t --keep 0s");
    assert_eq!(rows(dir), FILES * ROWS_PER_FILE);
}

/// The hardest cleaning there is beside writers: everything that the newest version does not need
/// goes, at once. A writer whose files are taken for leftovers is told so and begins again; no row
/// is lost, and none comes twice.
#[test]
fn cleaning_everything_beside_writers_loses_no_row() {
    const WRITERS: u64 = 3;
    const FILES: u64 = 18;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    files(dir, FILES);
    done(dir, CREATE);
    let writing = AtomicBool::new(true);
    let (cleanings, again) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                scope.spawn(move || {
                    let mut again = 0;
                    for file in (0..FILES).filter(|file| file % WRITERS == writer) {
                        while let written = run(dir, &format!("ingest {{}}/t {{}}/{file}.csv"))
                            && written.code != 0
                        {
                            let swept = written.stderr.contains("was cleaned away before it was committed");
                            assert!(swept, "{}", written.stderr);
                            again += 1;
                        }
                    }
                    again
                })
            })
            .collect();
        let cleaning = scope.spawn(|| {
            let mut cleanings = 0;
            while writing.load(Ordering::Relaxed) {
                done(dir, "clean {}/t --keep 0s --unnamed 300ms");
                cleanings += 1;
            }
            cleanings
        });
        let again: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        writing.store(false, Ordering::Relaxed);
        (cleaning.join().unwrap(), again)
    });
    let _ = writeln!(std::io::stderr(), "{cleanings} cleanings, {again} ingests begun again");
    assert_eq!(rows(dir), FILES * ROWS_PER_FILE);
    assert!(done(dir, "check {}/t --all").contains(" 0 damaged"));
    let sql = "SELECT/**/count(*),count(DISTINCT/**/k)/**/FROM/**/t";
    let counted = done(dir, &format!("query {{}}/t --format csv -c {sql}"));
    let all = FILES * ROWS_PER_FILE;
    assert_eq!(counted.lines().nth(1).unwrap(), format!("{all},{all}"));
}

fn spawn(dir: &Path, arguments: &str) -> Child {
    evenkeel()
        .args(crate::common::arguments(dir, arguments))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// How often a process is killed.
const KILLS: u64 = 24;

#[test]
fn killed_compactions_and_cleanings_change_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    files(dir, 12);
    done(dir, CREATE);
    for file in 0..12 {
        done(dir, &format!("ingest {{}}/t {{}}/{file}.csv --compact off"));
    }
    let expected = rows(dir);
    // Another seed each time; it is told.
    let seed = uuid::Uuid::new_v4().as_u64_pair().0;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut killed = 0;
    for step in 0..KILLS {
        let work = if step % 2 == 0 {
            "compact {}/t --full --target 20KB"
        } else {
            "clean {}/t --keep 0s --unnamed 1ms"
        };
        let mut child = spawn(dir, work);
        std::thread::sleep(Duration::from_micros(random.random_range(0..60_000)));
        killed += u64::from(child.try_wait().unwrap().is_none());
        let _ = child.kill();
        drop(Run::from(child.wait_with_output().unwrap()));
        assert_eq!(rows(dir), expected, "step {step}: {work}");
        let check = run(dir, "check {}/t");
        assert_eq!(check.code, 0, "step {step}: {work}\n{}", check.stdout);
        if step % 4 == 3 {
            // Something to compact again.
            done(dir, &format!("ingest {{}}/t {{}}/{}.csv --again --compact off", step % 12));
        }
    }
    let _ = writeln!(std::io::stderr(), "{killed} of {KILLS} killed while they worked, seed {seed}");
    assert!(killed > 0);
    done(dir, "compact {}/t --full");
    done(dir, "clean {}/t --keep 0s --unnamed 1ms");
    assert_eq!(rows(dir), expected);
    let left = json(dir, "inspect {}/t --format json");
    assert_eq!((&left["portions"], &left["other_files"]), (&4.into(), &0.into()));
}

/// Files of at most so many blocks of 512 bytes may be written: a full disk, as far as the program
/// can tell.
#[test]
#[cfg(unix)]
fn a_full_disk_and_a_folder_that_cannot_be_written_are_told_and_leave_the_table_whole() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "generate ad-events --rows 20000 --rows-per-file 10000 --out {}/in");
    done(dir, "create {}/t --ddl data/ad_events.sql --partitions 1");
    done(dir, "ingest {}/t {}/in/ad-events-0000.parquet");
    let limited = |arguments: &str| {
        let arguments = arguments.replace("{}", &dir.display().to_string());
        let program = env!("CARGO_BIN_EXE_evenkeel");
        // The signal that comes with the limit is ignored, so that writing fails as on a full disk.
        let script = format!("trap '' XFSZ; ulimit -f 64; exec {program} {arguments}");
        Run::from(std::process::Command::new("sh").arg("-c").arg(script).output().unwrap())
    };
    for work in ["ingest {}/t {}/in/ad-events-0001.parquet", "compact {}/t --full"] {
        if work.starts_with("compact") {
            done(dir, "ingest {}/t {}/in/ad-events-0001.parquet --compact off");
        }
        let before = rows(dir);
        let failed = limited(work);
        assert_eq!(failed.code, 1, "{work}: {}", failed.stdout);
        assert!(failed.stderr.contains("cannot write partition=0000/"), "{work}: {}", failed.stderr);
        assert_eq!(rows(dir), before, "{work}");
        let overview = json(dir, "inspect {}/t --format json");
        assert_eq!(overview["other_files"], 0, "{work}");
        done(dir, work);
    }
    assert_eq!(rows(dir), 20_000);
    assert_eq!(json(dir, "inspect {}/t --format json")["portions"], 1);

    // A folder that is no folder can be written by nobody, whatever their rights.
    let folder = dir.join("t/partition=0000");
    let aside = dir.join("aside");
    std::fs::rename(&folder, &aside).unwrap();
    std::fs::write(&folder, "").unwrap();
    let failed = run(dir, "ingest {}/t {}/in/ad-events-0000.parquet --again");
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("cannot write partition=0000/"), "{}", failed.stderr);
    std::fs::remove_file(&folder).unwrap();
    std::fs::rename(&aside, &folder).unwrap();
    assert_eq!(rows(dir), 20_000);

    use std::os::unix::fs::PermissionsExt;
    let rights = |mode: u32| {
        for place in ["t", "t/_log", "t/partition=0000"] {
            std::fs::set_permissions(dir.join(place), std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    rights(0o555);
    if std::fs::write(dir.join("t/probe"), "").is_ok() {
        println!("this user may write anywhere: rights are not tried");
        std::fs::remove_file(dir.join("t/probe")).unwrap();
    } else {
        for work in [
            "ingest {}/t {}/in/ad-events-0000.parquet --again",
            "alter {}/t --add-column x:utf8",
            "compact {}/t --full",
        ] {
            let refused = run(dir, work);
            assert_eq!(refused.code, i32::from(!work.starts_with("compact")), "{work}: {}", refused.stderr);
            assert!(!refused.stderr.contains("it is not known"), "{work}: {}", refused.stderr);
        }
        assert_eq!(rows(dir), 20_000);
    }
    rights(0o755);
}

#[cfg(all(unix, feature = "cluster"))]
#[test]
fn who_interrupts_an_ingest_on_a_cluster_is_told_what_may_be_left() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    files(dir, 1);
    done(dir, CREATE);
    let cluster = crate::cluster::TestCluster::start(1);
    // It takes work by now, and then gives no answer: a job is under way until it is interrupted.
    cluster.done(
        dir,
        &format!("query {{}}/t {}", crate::cluster::query_file(dir, "count.sql", "SELECT count(*) FROM t")),
    );
    cluster.executors[0].signal("STOP");
    let child = spawn(dir, &format!("ingest {{}}/t {{}}/0.csv --cluster {}", cluster.url));
    std::thread::sleep(Duration::from_secs(2));
    crate::cluster::signal_to(&child, "INT");
    let ended = Run::from(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    for told in [
        "nothing was committed",
        "Executors may still be running tasks for a moment",
        "'evenkeel clean ",
        "/t' removes",
    ] {
        assert!(ended.stderr.contains(told), "{}", ended.stderr);
    }
    assert_eq!(rows(dir), 0);
}
