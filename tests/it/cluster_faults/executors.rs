//! Executors that die, freeze or leave at any stage of a query or an ingest.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use crate::cluster::{TestCluster, query_file};
use crate::cluster_faults::{LONG, assert_told, ended, prepare, reruns_of, spawn};
use crate::common::{done, json};

/// The stage of the second scan, and that of the join.
const QUERY_STAGES: [usize; 2] = [2, 3];
/// The stages that read and that write.
const INGEST_STAGES: [usize; 2] = [1, 2];

/// What happens to one of two executors.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// It dies.
    Kill,
    /// It is asked to leave.
    Terminate,
    /// It freezes, dies while frozen.
    FreezeAndKill,
    /// It freezes for longer than the scheduler waits, and comes back.
    FreezeAndThaw,
}

const FAULTS: [Fault; 4] = [Fault::Kill, Fault::Terminate, Fault::FreezeAndKill, Fault::FreezeAndThaw];

/// Each fault at each of two stages.
fn matrix(stages: [usize; 2]) -> impl Iterator<Item = (Fault, usize)> {
    FAULTS.into_iter().flat_map(move |fault| stages.map(|stage| (fault, stage)))
}

/// Starts work and waits until an executor has ended a task of a stage and the scheduler knows;
/// returns the work and the position of the executor, or `None` if the work was done before.
fn spawn_and_wait(cluster: &TestCluster, dir: &Path, text: &str, stage: usize) -> (Child, Option<usize>) {
    let ended_tasks =
        || cluster.executors.iter().map(|executor| executor.ended_tasks(stage)).collect::<Vec<_>>();
    let before = ended_tasks();
    let mut child = spawn(cluster, dir, text);
    loop {
        let is_done = child.try_wait().unwrap().is_some();
        if let Some(first) = ended_tasks().iter().zip(&before).position(|(now, before)| now > before) {
            std::thread::sleep(Duration::from_millis(100));
            return (child, Some(first));
        }
        if is_done {
            return (child, None);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn strike(cluster: &TestCluster, victim: Option<usize>, fault: Fault) {
    let Some(victim) = victim.and_then(|victim| cluster.executors.get(victim)) else { return };
    match fault {
        Fault::Kill => victim.signal("KILL"),
        Fault::Terminate => victim.signal("TERM"),
        Fault::FreezeAndKill => {
            victim.signal("STOP");
            std::thread::sleep(Duration::from_millis(700));
            victim.signal("KILL");
        }
        Fault::FreezeAndThaw => {
            victim.signal("STOP");
            std::thread::sleep(Duration::from_secs(9));
            victim.signal("CONT");
        }
    }
}

/// Puts a new executor in the place of one.
fn heal(cluster: &mut TestCluster, victim: Option<usize>) {
    if let Some(victim) = victim {
        cluster.executors.remove(victim);
        cluster.add_executor();
    }
}

#[test]
#[ignore = "takes minutes; tests/cloud.sh runs it"]
fn a_query_that_loses_an_executor_at_any_stage_is_right_or_fails() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (query, expected) = prepare(dir);
    let mut cluster = TestCluster::impatient(2);
    assert_eq!(cluster.done(dir, &query), expected);
    let (mut right, mut reruns, mut struck) = (0, 0, None);
    for (fault, stage) in matrix(QUERY_STAGES) {
        heal(&mut cluster, struck);
        let what = format!("{fault:?} in stage {stage}");
        let (child, first) = spawn_and_wait(&cluster, dir, &query, stage);
        strike(&cluster, first, fault);
        struck = first;
        let run = ended(child, LONG, &what);
        reruns += reruns_of(&run);
        match run.code {
            0 => {
                assert_eq!(run.stdout, expected, "{what}: wrong rows");
                right += 1;
            }
            _ => {
                assert!(run.stdout.is_empty(), "{what}: {}", run.stdout);
                assert_told(&run, &what);
            }
        }
    }
    crate::crash::tell(&format!("{right} of 8 queries were right, after {reruns} reruns; the others failed"));
    assert!(right >= 4 && reruns >= 4, "{right} of 8 were right, after {reruns} reruns");
    assert_eq!(cluster.done(dir, &query), expected);
}

const SUMS: &str = "SELECT count(*), sum(event_id % 1000), min(event_id), count(DISTINCT user_id) FROM t";

/// Strikes an ingest into an empty table. It takes each row once, or none; gives whether it took
/// them, and how often it was run again.
fn strike_ingest(
    cluster: &mut TestCluster,
    dir: &Path,
    table: &str,
    fault: Fault,
    stage: usize,
) -> (bool, usize) {
    let sums = query_file(dir, "sums.sql", SUMS);
    let sums_of = |table: &str| done(dir, &format!("query {{}}/{table} {sums} --format csv"));
    let what = format!("{fault:?} in stage {stage}");
    done(dir, &format!("create {{}}/{table} --ddl data/ad_events.sql"));
    let ingest = format!("ingest {{}}/{table} {{}}/in --compact off --deadline 90s");
    let (child, first) = spawn_and_wait(cluster, dir, &ingest, stage);
    strike(cluster, first, fault);
    let run = ended(child, LONG, &what);
    heal(cluster, first);
    let version = json(dir, &format!("inspect {{}}/{table} --format json"))["version"].as_u64().unwrap();
    if run.code == 0 {
        assert_eq!((version, sums_of(table)), (1, sums_of("t")), "{what}");
    } else {
        assert_eq!(version, 0, "{what}: {}", run.stderr);
        assert_told(&run, &what);
    }
    assert!(done(dir, &format!("check {{}}/{table} --all")).contains(" 0 damaged"), "{what}");
    // What tries that failed left over is cleaned, and the rows are still there.
    done(dir, &format!("clean {{}}/{table} --keep 0s --unnamed 1us"));
    if run.code == 0 {
        assert_eq!(sums_of(table), sums_of("t"), "{what}: cleaned");
    }
    (run.code == 0, reruns_of(&run))
}

#[test]
#[ignore = "takes minutes; tests/cloud.sh runs it"]
fn an_ingest_that_loses_an_executor_at_any_stage_takes_each_row_once_or_none() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    prepare(dir);
    let mut cluster = TestCluster::impatient(2);
    let (mut taken, mut reruns) = (0, 0);
    for (number, (fault, stage)) in matrix(INGEST_STAGES).enumerate() {
        let (is_taken, again) = strike_ingest(&mut cluster, dir, &format!("t{number}"), fault, stage);
        taken += usize::from(is_taken);
        reruns += again;
    }
    crate::crash::tell(&format!(
        "{taken} of 8 ingests were committed, after {reruns} reruns; the others left nothing"
    ));
    assert!(taken >= 4 && reruns >= 4, "{taken} of 8 were committed, after {reruns} reruns");
}
