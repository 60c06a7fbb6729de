//! Limits on queries: what is refused, what is ended, and that the program lives on.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use evenkeel::Table;
use evenkeel::query::{LimitExceeded, Params, QueryError, QueryLimits, TableSession};
use evenkeel::units::ByteSize;
use futures::TryStreamExt;

use crate::common::{Run, done, evenkeel};

/// A table of 30,000 rows with columns k, u (997 values) and v.
fn table() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let rows: String = (0..30_000).map(|k| format!("{k},u{},{}\n", k % 997, k * 7 % 1000)).collect();
    std::fs::write(dir.path().join("a.csv"), format!("k,u,v\n{rows}")).unwrap();
    done(
        dir.path(),
        "create {}/table --column k:int64:not-null --column u:utf8 --column v:int64 --primary-key k --partitions 4",
    );
    done(dir.path(), "ingest {}/table {}/a.csv");
    dir
}

fn query(dir: &tempfile::TempDir, sql: &str, more: &[&str]) -> Command {
    let mut command = evenkeel();
    std::fs::write(dir.path().join("q.sql"), sql).unwrap();
    command.arg("query").arg(dir.path().join("table")).arg("-f").arg(dir.path().join("q.sql"));
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a query that must fail with one line.
fn fails(dir: &tempfile::TempDir, sql: &str, more: &[&str]) -> String {
    let run = Run::from(query(dir, sql, more).output().unwrap());
    let shown: String = sql.chars().take(100).collect();
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{shown}: {}", run.stderr);
    assert_eq!(run.stderr.lines().count(), 1, "{shown}: {}", run.stderr);
    assert!(run.stderr.len() < 500, "{shown}: {}", run.stderr);
    run.stderr
}

const CROSS: &str = "FROM t a CROSS JOIN t b CROSS JOIN t c";

#[test]
fn time_ends_a_query_whatever_it_does() {
    let dir = table();
    for sql in [
        format!("SELECT count(*) {CROSS} WHERE a.v + b.v + c.v < 0"),
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n".to_owned(),
        format!("SELECT a.u, count(DISTINCT b.k) {CROSS} GROUP BY a.u ORDER BY 2"),
    ] {
        let started = Instant::now();
        let error = fails(&dir, &sql, &["--timeout", "1s"]);
        assert!(
            error.contains("longer than its limit of 1 s") && error.contains("--timeout"),
            "{sql}: {error}"
        );
        assert!(started.elapsed() < Duration::from_secs(8), "{sql}: {:?}", started.elapsed());
    }
}

#[test]
fn memory_ends_a_query_whether_its_operators_reserve_it_or_not() {
    let dir = table();
    for (sql, of) in [
        (format!("SELECT array_agg(a.u) {CROSS}"), "holds"),
        ("SELECT length(repeat(repeat('x', 1000000), 1000))".to_owned(), "the process grew"),
        ("SELECT sum(length(repeat(u, 10000))) FROM t".to_owned(), "the process grew"),
        (
            "WITH RECURSIVE n AS (SELECT 'x' AS s UNION ALL SELECT s || s FROM n) SELECT length(s) FROM n"
                .to_owned(),
            "the process grew",
        ),
    ] {
        let error = fails(&dir, &sql, &["--memory", "64MiB", "--timeout", "2m"]);
        assert!(error.contains("more than its 64.0 MiB of memory") && error.contains(of), "{sql}: {error}");
        assert!(error.contains("--memory"), "{error}");
    }
    let huge = fails(&dir, "SELECT range(0, 1000000000000)", &["--memory", "64MiB"]);
    assert!(huge.contains("the values of range would need 7.3 TiB; the limit"), "{huge}");
    let small = Run::from(query(&dir, "SELECT k FROM t", &["--memory", "1MiB"]).output().unwrap());
    assert!(small.code == 2 && small.stderr.contains("too small"), "{}", small.stderr);
}

#[test]
fn what_spills_gives_the_same_answer() {
    let dir = table();
    let sql = "SELECT a.k % 3000 AS x, b.k AS y, count(*) AS n FROM t a JOIN t b ON a.v = b.v AND b.k < 3000 \
               GROUP BY 1, 2 ORDER BY 2 DESC, 1 LIMIT 20";
    let ample = query(&dir, sql, &["--format", "csv"]).output().unwrap();
    let scarce = query(&dir, sql, &["--format", "csv", "--memory", "32MiB"]).output().unwrap();
    assert!(ample.status.success(), "{}", String::from_utf8_lossy(&ample.stderr));
    assert!(scarce.status.success(), "{}", String::from_utf8_lossy(&scarce.stderr));
    assert_eq!(ample.stdout, scarce.stdout);
    assert_eq!(ample.stdout.iter().filter(|byte| **byte == b'\n').count(), 21);
}

/// Many inputs spill the same rows at once, which ends in an answer or an error.
#[test]
fn a_query_that_spills_never_waits_for_itself() {
    let dir = tempfile::tempdir().unwrap();
    let row = |k: u64| format!("{k},user-{:08},{},{}\n", k * 7_919 % 30_011, k * 31 % 200, k % 997);
    let rows: String = (0..400_000).map(row).collect();
    std::fs::write(dir.path().join("a.csv"), format!("k,u,c,a\n{rows}")).unwrap();
    done(
        dir.path(),
        "create {}/table --column k:int64:not-null --column u:utf8 --column c:int64 --column a:int64 \
         --primary-key k --partitions 16",
    );
    done(dir.path(), "ingest {}/table {}/a.csv");
    let sql = "SELECT count(*) FROM t a JOIN (SELECT u, max(a) AS m, count(*) AS n, min(k) AS f FROM t \
               GROUP BY u, c) b ON a.u = b.u AND a.k = b.f";
    let ample = Run::from(query(&dir, sql, &["--format", "csv"]).output().unwrap());
    assert_eq!(ample.code, 0, "{}", ample.stderr);
    for memory in ["36MiB", "44MiB", "52MiB", "52MiB", "52MiB", "60MiB"] {
        let limits = ["--format", "csv", "--memory", memory, "--timeout", "90s"];
        let scarce = Run::from(query(&dir, sql, &limits).output().unwrap());
        match scarce.code {
            0 => assert_eq!(scarce.stdout, ample.stdout, "{memory}"),
            _ => assert!(scarce.stderr.contains("of memory: "), "{memory}: {}", scarce.stderr),
        }
    }
}

#[test]
fn sql_beyond_the_limits_is_refused_at_once() {
    let dir = table();
    let nested = |open: &str, close: &str| format!("SELECT {}1{}", open.repeat(200), close.repeat(200));
    for (sql, limit) in [
        (format!("SELECT {}", vec!["1"; 50_000].join(" + ")), "chains more than"),
        (format!("SELECT k FROM t WHERE {}", vec!["k = 1"; 50_000].join(" OR ")), "chains more than"),
        (format!("SELECT {}", vec!["'a'"; 50_000].join(" || ")), "chains more than"),
        (vec!["SELECT 1"; 50_000].join(" UNION ALL "), "UNION, INTERSECT and EXCEPT operators"),
        (nested("CAST(", " AS INT)"), "levels deep"),
        (nested("(SELECT ", ")"), "levels deep"),
        (format!("SELECT {}1{}", "(SELECT ".repeat(20), ")".repeat(20)), "are nested in each other"),
        (nested("coalesce(", ", 1)"), "levels deep"),
        (format!("SELECT {}", "(".repeat(100_000)), "levels deep"),
        ("SELECT 1e999".to_owned(), "beyond the range of Double"),
        (format!("SELECT 1{}", " ".repeat(2_000_000)), "bytes"),
    ] {
        let started = Instant::now();
        let error = fails(&dir, &sql, &[]);
        assert!(error.contains(limit), "{error}");
        assert!(started.elapsed() < Duration::from_secs(5), "{limit}: {:?}", started.elapsed());
    }
}

async fn session(dir: &tempfile::TempDir, limits: QueryLimits) -> TableSession {
    Table::open(dir.path().join("table")).await.unwrap().session_with(&limits).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_library_has_the_same_limits() {
    let dir = table();
    let limits = QueryLimits { timeout: Some(Duration::from_millis(300)), ..QueryLimits::default() };
    let limited = session(&dir, limits).await;
    let slow = "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
    let started = Instant::now();
    let error = limited.collect(slow, &Params::default()).await.unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    let QueryError::DataFusion(error) = &error else { panic!("{error}") };
    assert!(matches!(LimitExceeded::from_error(error), Some(LimitExceeded::Time { .. })), "{error}");

    let scarce = session(&dir, QueryLimits { memory: ByteSize::mib(16), ..QueryLimits::default() }).await;
    let error =
        scarce.collect(&format!("SELECT array_agg(a.u) {CROSS}"), &Params::default()).await.unwrap_err();
    let QueryError::DataFusion(error) = &error else { panic!("{error}") };
    assert!(matches!(LimitExceeded::from_error(error), Some(LimitExceeded::Reserved { .. })), "{error}");
    // What one query was refused, the next has.
    let rows = scarce.collect("SELECT count(*) FROM t", &Params::default()).await.unwrap();
    assert_eq!(rows[0].num_rows(), 1);
}

/// The stacks of the library are those of its caller: two MiB for threads of tokio.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deepest_sql_fits_the_stack_of_a_thread() {
    let dir = table();
    let session = session(&dir, QueryLimits::default()).await;
    for (term, link, most) in [
        ("u", " || ", 240),
        ("k", " + ", 240),
        ("k = 1 AND v = 2", " OR ", 480),
        ("(k IS NULL)", " OR ", 480),
    ] {
        let sql = format!("SELECT count(*) FROM t WHERE ({}) IS NOT NULL", vec![term; most].join(link));
        let result = session.query(&sql, &Params::default()).await;
        let rows: Vec<_> = result.unwrap().batches.try_collect().await.unwrap();
        assert_eq!(rows.len(), 1, "{link}");
    }
}

#[tokio::test]
async fn a_query_that_is_dropped_stops() {
    let dir = table();
    let session = session(&dir, QueryLimits::default()).await;
    let mut result = session.query(&format!("SELECT a.k {CROSS}"), &Params::default()).await.unwrap();
    assert!(result.batches.try_next().await.unwrap().is_some());
    drop(result);
    let rows = session.collect("SELECT 1", &Params::default()).await.unwrap();
    assert_eq!(rows[0].num_rows(), 1);
}
