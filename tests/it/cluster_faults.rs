//! Machines of a cluster die, freeze, leave and are cut off in the middle of work: what comes out
//! is right, or a clear error.
//!
//! Faults come when the machine that they meet has ended a task of a stage and others have not:
//! behind a shuffle, that is where stock recovery gives rows twice. A scheduler that leaves
//! recovery to Ballista shows that these tests would notice.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use evenkeel::cluster::{CLIENT_TIMEOUT, ClientSecurity, RunningScheduler, SchedulerOptions, ServerSecurity};

use crate::cluster::{Process, TestCluster, cluster, query_file, signal_to};
use crate::common::{Run, arguments, done, evenkeel, json};

const ROWS: u64 = 240_000;

/// A join over two shuffles and an aggregation, stages 1 to 4. One task of the join has much more
/// to do than the others.
const QUERY: &str = "WITH keyed AS (SELECT CASE WHEN event_id % 100 = 0 THEN 'hot' ELSE user_id END AS k, event_id FROM t) \
     SELECT count(*), count(DISTINCT a.k), sum(b.event_id % 1000) FROM keyed a JOIN keyed b ON a.k = b.k";
/// The same stages, with a join of billions of pairs: its tasks end only if they are called off.
const ENDLESS: &str = "WITH keyed AS (SELECT event_id % 3 AS k, event_id FROM t) \
     SELECT count(*), sum(b.event_id % 1000) FROM keyed a JOIN keyed b ON a.k = b.k";
/// The stage of the second scan, and that of the join.
const QUERY_STAGES: [usize; 2] = [2, 3];
/// The stages that read and that write.
const INGEST_STAGES: [usize; 2] = [1, 2];

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
/// More than enough for a job and two reruns.
const LONG: Duration = Duration::from_secs(240);

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

/// Of a failure, standard error has one error, after notes of other tries.
fn assert_told(run: &Run, what: &str) {
    let lines: Vec<&str> = run.stderr.trim().lines().collect();
    let (last, before) = lines.split_last().unwrap();
    assert!(last.starts_with("error: "), "{what}: {}", run.stderr);
    assert!(before.iter().all(|line| line.starts_with("note: ")), "{what}: {}", run.stderr);
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
        reruns += run.stderr.matches("note: try ").count();
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
    (run.code == 0, run.stderr.matches("note: try ").count())
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

/// A scheduler in this process, and the threads that it lives on.
fn scheduler_of_ours(client_timeout: Duration) -> (tokio::runtime::Runtime, RunningScheduler) {
    let threads = tokio::runtime::Runtime::new().unwrap();
    let scheduler = threads.block_on(RunningScheduler::start(SchedulerOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        security: ServerSecurity::default(),
        executor_timeout: Duration::from_secs(6),
        client: ClientSecurity::default(),
        client_timeout,
    }));
    (threads, scheduler.unwrap())
}

#[test]
#[ignore = "takes minutes; tests/cloud.sh runs it"]
fn tasks_of_jobs_that_nobody_waits_for_are_called_off() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (query, expected) = prepare(dir);
    let file = query_file(dir, "endless.sql", ENDLESS);
    let endless = format!("query {{}}/t {file} --timeout 1h");
    // Who is interrupted cancels the job; who is killed says nothing more.
    for (signal, client_timeout) in [("INT", CLIENT_TIMEOUT), ("KILL", Duration::from_secs(10))] {
        let (_threads, scheduler) = scheduler_of_ours(client_timeout);
        let cluster = TestCluster::at(format!("http://{}", scheduler.address()), 2);
        let mut child = spawn(&cluster, dir, &endless);
        while cluster.executors.iter().all(|executor| executor.ended_tasks(2) == 0) {
            assert!(child.try_wait().unwrap().is_none(), "{signal}: a query without end has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
        signal_to(&child, signal);
        let run = ended(child, LONG, signal);
        assert!(run.code != 0 && run.stdout.is_empty(), "{signal}: {} {}", run.stdout, run.stderr);
        let began = Instant::now();
        while !cluster.executors.iter().any(|executor| executor.logged().contains("Task has been aborted")) {
            assert!(began.elapsed() < LONG, "{signal}: its tasks run on");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(cluster.done(dir, &query), expected);
    }
}

#[test]
#[ignore = "takes minutes; tests/cloud.sh runs it"]
fn a_dead_scheduler_and_a_cluster_without_executors_are_told_within_the_deadline() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (query, _) = prepare(dir);
    let mut cluster = TestCluster::impatient(2);
    let child = spawn(&cluster, dir, &format!("{query} --tries 2"));
    std::thread::sleep(Duration::from_millis(500));
    cluster.scheduler.as_ref().unwrap().signal("KILL");
    let run = ended(child, LONG, "scheduler killed");
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("does not answer") || run.stderr.contains("no scheduler answers"),
        "{}",
        run.stderr
    );

    // All executors are gone, and none comes back.
    cluster = TestCluster::impatient(2);
    let child = spawn(&cluster, dir, &format!("{query} --deadline 15s"));
    std::thread::sleep(Duration::from_millis(500));
    cluster.executors.iter().for_each(|executor| executor.signal("KILL"));
    let began = Instant::now();
    let run = ended(child, LONG, "all executors killed");
    assert_eq!(run.code, 1, "{}", run.stderr);
    // Far below the default deadline, on a busy machine too.
    assert!(began.elapsed() < Duration::from_secs(75), "{:?}", began.elapsed());

    // One that is frozen for good keeps nobody beyond the deadline.
    let cluster = TestCluster::impatient(1);
    let child = spawn(&cluster, dir, &format!("{query} --deadline 8s"));
    std::thread::sleep(Duration::from_millis(300));
    cluster.executors[0].signal("STOP");
    let run = ended(child, Duration::from_secs(75), "the only executor frozen");
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("within 8 s") || run.stderr.contains("failed"), "{}", run.stderr);
}

/// A way between machines that can be cut: bytes stop, and nobody is told.
struct Way {
    address: std::net::SocketAddr,
    cut: Arc<AtomicBool>,
}

impl Way {
    fn to(listen: &str, target: std::net::SocketAddr) -> Self {
        let listener = TcpListener::bind(listen).unwrap();
        let address = listener.local_addr().unwrap();
        let cut = Arc::new(AtomicBool::new(false));
        let is_cut = Arc::clone(&cut);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Ok(onward) = TcpStream::connect(target) else { continue };
                for (mut from, mut to) in
                    [(stream.try_clone().unwrap(), onward.try_clone().unwrap()), (onward, stream)]
                {
                    let is_cut = Arc::clone(&is_cut);
                    std::thread::spawn(move || {
                        let mut buffer = vec![0; 1 << 16];
                        while let Ok(count @ 1..) = from.read(&mut buffer) {
                            while is_cut.load(Ordering::Relaxed) {
                                std::thread::sleep(Duration::from_millis(50));
                            }
                            if to.write_all(&buffer[..count]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
            }
        });
        Self { address, cut }
    }

    fn set_cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }
}

#[test]
#[ignore = "takes minutes; tests/cloud.sh runs it"]
fn an_executor_that_is_cut_off_and_comes_back_changes_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (query, expected) = prepare(dir);
    let mut cluster_of_one = TestCluster::impatient(1);
    let scheduler = cluster_of_one.url.trim_start_matches("http://").parse().unwrap();
    // The executor reaches the scheduler, and others reach the executor, by ways that are cut.
    let out = Way::to("127.0.0.1:0", scheduler);
    let port = TcpListener::bind("127.0.0.7:0").unwrap().local_addr().unwrap().port();
    let inward = Way::to(&format!("127.0.0.7:{port}"), format!("127.0.0.1:{port}").parse().unwrap());
    let (url, listen) = (format!("http://{}", out.address), format!("127.0.0.1:{port}"));
    let far = ["executor", "--scheduler", &url, "--listen", &listen, "--host", "127.0.0.7", "--cores", "2"];
    cluster_of_one.executors.push(Process::start(&mut cluster(&far)));
    let began = Instant::now();
    assert_eq!(cluster_of_one.done(dir, &query), expected);
    let usual = began.elapsed();
    for step in [1u32, 3] {
        let child = spawn(&cluster_of_one, dir, &query);
        std::thread::sleep(usual * step / 4);
        [&out, &inward].iter().for_each(|way| way.set_cut(true));
        std::thread::sleep(Duration::from_secs(12));
        [&out, &inward].iter().for_each(|way| way.set_cut(false));
        let run = ended(child, LONG, &format!("cut off after {step} quarters"));
        match run.code {
            0 => assert_eq!(run.stdout, expected, "cut off after {step} quarters"),
            _ => assert_told(&run, "cut off"),
        }
    }
    assert_eq!(cluster_of_one.done(dir, &query), expected);
}

/// Sets what goes wrong with the tables of a test in the store. Other tests use the store at the
/// same time.
fn store_faults(dir: &Path, settings: &str) {
    let address = std::env::var("AWS_ENDPOINT_URL").unwrap();
    let host = address.trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&host).unwrap();
    let (below, length) = (dir.display(), settings.len());
    write!(
        stream,
        "PUT /_faults?below={below} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{settings}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
#[ignore = "takes minutes; tests/cloud.sh runs it"]
fn a_store_that_answers_503_is_borne_for_a_while_and_then_told() {
    if crate::common::test_store().is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "generate ad-events --rows 40000 --rows-per-file 10000 --out {}/in");
    done(dir, "create {}/t --ddl data/ad_events.sql");
    let cluster = TestCluster::impatient(2);
    let count = query_file(dir, "count.sql", "SELECT count(*), count(DISTINCT event_id) FROM t");
    store_faults(dir, r#"{"throttle": 0.2, "fail": 0.1, "lose": 0.1, "latency_ms": [0, 10], "seed": 3}"#);
    let report = cluster.json(dir, "ingest {}/t {}/in --compact off --format json");
    assert_eq!(report["rows"], 40_000);
    let there = cluster.done(dir, &format!("query {{}}/t {count} --format csv"));
    // Down for longer than anybody waits: an error that says so, and nothing that is half there.
    done(dir, "create {}/t2 --ddl data/ad_events.sql");
    let mut ingest = evenkeel();
    ingest
        .args(arguments(dir, "ingest {}/t2 {}/in --compact off --again --tries 1 --deadline 30s --cluster"));
    ingest.arg(&cluster.url).env("EVENKEEL_STORE_TIMEOUT", "2");
    let child = ingest.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(400));
    store_faults(dir, r#"{"down": true}"#);
    let run = ended(child, Duration::from_secs(90), "the store is down");
    store_faults(dir, "{}");
    assert!(run.code == 1 || run.code == 0, "{}", run.stderr);
    let version = json(dir, "inspect {}/t2 --format json")["version"].as_u64().unwrap();
    assert_eq!(version, u64::from(run.code == 0), "{}", run.stderr);
    assert_eq!(there, done(dir, &format!("query {{}}/t {count} --format csv")));
}
