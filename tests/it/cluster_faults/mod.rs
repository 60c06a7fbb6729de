//! Machines of a cluster die, freeze, leave and are cut off in the middle of work: what comes out
//! is right, or a clear error.
//!
//! Faults come when the machine that they meet has ended a task of a stage and others have not:
//! behind a shuffle, that is where stock recovery gives rows twice. A scheduler that leaves
//! recovery to Ballista shows that these tests would notice.

mod connections;
mod executors;

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::cluster::{TestCluster, query_file};
use crate::common::{Run, done};

const ROWS: u64 = 240_000;

/// A join over two shuffles and an aggregation, stages 1 to 4. One task of the join has much more
/// to do than the others.
const QUERY: &str = "WITH keyed AS (SELECT CASE WHEN event_id % 100 = 0 THEN 'hot' ELSE user_id END AS k, event_id FROM t) \
     SELECT count(*), count(DISTINCT a.k), sum(b.event_id % 1000) FROM keyed a JOIN keyed b ON a.k = b.k";

/// A table, files for others, and what the query gives.
fn prepare(dir: &Path) -> (String, String) {
    done(
        dir,
        &format!("generate ad-events --rows {ROWS} --rows-per-file 20000 --user-skew 0.2 --out {{}}/in"),
    );
    done(dir, "create {}/t --ddl data/ad_events.sql");
    done(dir, "ingest {}/t {}/in --compact off");
    let file = query_file(dir, "join.sql", QUERY);
    let query = format!("query {{}}/t {file} --format csv");
    let expected = done(dir, &query);
    (query, expected)
}

fn spawn(cluster: &TestCluster, dir: &Path, text: &str) -> Child {
    cluster.command(dir, text).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(child: Child, within: Duration, what: &str) -> Run {
    let mut child = child;
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > within {
            let _ = child.kill();
            panic!("{what}: not done within {within:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Run::from(child.wait_with_output().unwrap())
}

/// More than enough for a job and two reruns.
const LONG: Duration = Duration::from_secs(240);

/// Of a failure, standard error has one error, after notes of other tries.
fn assert_told(run: &Run, what: &str) {
    let lines: Vec<&str> = run.stderr.trim().lines().collect();
    let (last, before) = lines.split_last().unwrap();
    assert!(last.starts_with("error: "), "{what}: {}", run.stderr);
    assert!(before.iter().all(|line| line.starts_with("note: ")), "{what}: {}", run.stderr);
}

/// How often the job was run again, by the notes on standard error.
fn reruns_of(run: &Run) -> usize {
    run.stderr.lines().filter(|line| line.starts_with("note: attempt ")).count()
}
