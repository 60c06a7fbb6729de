//! Jobs that nobody waits for, and schedulers, executors and stores that no longer answer.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use evenkeel::cluster::{CLIENT_TIMEOUT, ClientSecurity, RunningScheduler, SchedulerOptions, ServerSecurity};

use crate::cluster::{Process, TestCluster, cluster, query_file, signal_to};
use crate::cluster_faults::{LONG, assert_told, ended, prepare, spawn};
use crate::common::{arguments, done, evenkeel, json};

/// The same stages, with a join of billions of pairs: its tasks end only if they are called off.
const ENDLESS: &str = "WITH keyed AS (SELECT event_id % 3 AS k, event_id FROM t) \
     SELECT count(*), sum(b.event_id % 1000) FROM keyed a JOIN keyed b ON a.k = b.k";

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

/// A port that is free on two addresses, below those that systems hand out: nothing that runs
/// beside the test takes it by chance before it is used.
fn port_on_both(one: &str, other: &str) -> u16 {
    let first = 20_000 + (std::process::id() % 10_000) as u16;
    (first..first + 1_000)
        .find(|&port| {
            let bound = [one, other].map(|host| TcpListener::bind((host, port)));
            bound.iter().all(Result::is_ok)
        })
        .expect("a free port")
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
    let port = port_on_both("127.0.0.1", "127.0.0.7");
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
