//! Work on a cluster of processes gives what the same work gives here.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::common::{Run, arguments, done, evenkeel, json};

/// A process of a cluster, which ends with the test.
pub(crate) struct Process {
    pub(crate) child: Child,
    /// The first line that it printed.
    pub(crate) line: String,
    /// What it logs.
    log: Arc<Mutex<String>>,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (logged, lines) = (Arc::clone(&log), BufReader::new(child.stderr.take().unwrap()).lines());
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| *logged.lock().unwrap() += &(line + "\n"));
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{command:?} printed nothing: {}", log.lock().unwrap());
        Self { child, line, log }
    }

    /// What it has logged so far.
    pub(crate) fn logged(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// How many tasks of a stage it has ended.
    pub(crate) fn ended_tasks(&self, stage: usize) -> usize {
        // Finished task : [TID JOB/STAGE.ATTEMPT/TASK.ATTEMPT] in ...
        let of_stage = format!("{stage}.");
        let is_of_stage =
            |line: &str| line.split('/').nth(1).is_some_and(|field| field.starts_with(&of_stage));
        self.logged().lines().filter(|line| line.contains("Finished task") && is_of_stage(line)).count()
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        signal_to(&self.child, name);
    }
}

/// Sends a signal by its name.
pub(crate) fn signal_to(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A scheduler and executors.
pub(crate) struct TestCluster {
    pub(crate) executors: Vec<Process>,
    /// None where the test runs it itself.
    pub(crate) scheduler: Option<Process>,
    pub(crate) url: String,
}

pub(crate) fn cluster(arguments: &[&str]) -> Command {
    let mut command = evenkeel();
    command.arg("cluster").args(arguments);
    command
}

impl TestCluster {
    pub(crate) fn start(executors: usize) -> Self {
        Self::with_timeout(executors, "60s")
    }

    /// One that takes executors for lost as soon as it may. On a busy machine, that strikes healthy
    /// ones too.
    pub(crate) fn impatient(executors: usize) -> Self {
        Self::with_timeout(executors, "6s")
    }

    fn with_timeout(executors: usize, timeout: &str) -> Self {
        let scheduler = Process::start(&mut cluster(&[
            "scheduler",
            "--listen",
            "127.0.0.1:0",
            "--executor-timeout",
            timeout,
        ]));
        let url = scheduler.line.trim().rsplit(' ').next().unwrap().to_owned();
        let mut cluster = Self::at(url, executors);
        cluster.scheduler = Some(scheduler);
        cluster
    }

    /// Executors of a scheduler.
    pub(crate) fn at(url: String, executors: usize) -> Self {
        let mut cluster = Self { executors: Vec::new(), scheduler: None, url };
        (0..executors).for_each(|_| cluster.add_executor());
        cluster
    }

    pub(crate) fn add_executor(&mut self) {
        let url = self.url.clone();
        let mut executor = cluster(&["executor", "--scheduler", &url, "--cores", "2"]);
        self.executors.push(Process::start(executor.env("EVENKEEL_LOG", "info")));
    }

    /// What its processes have warned of.
    fn warnings(&self) -> String {
        let logged = self.scheduler.iter().chain(&self.executors).map(Process::logged);
        let warned = |line: &&str| line.contains("WARN") || line.contains("ERROR");
        logged
            .flat_map(|log| log.lines().filter(warned).map(str::to_owned).collect::<Vec<_>>())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Runs the program with arguments, the work sent to the cluster.
    pub(crate) fn run(&self, dir: &Path, text: &str) -> Run {
        Run::from(self.command(dir, text).output().unwrap())
    }

    /// The program with arguments, the work sent to the cluster.
    pub(crate) fn command(&self, dir: &Path, text: &str) -> Command {
        let mut command = evenkeel();
        command.args(arguments(dir, text)).args(["--cluster", &self.url]);
        command
    }

    pub(crate) fn done(&self, dir: &Path, text: &str) -> String {
        let run = self.run(dir, text);
        assert_eq!(run.code, 0, "{text}\n{}{}{}", run.stdout, run.stderr, self.warnings());
        run.stdout
    }

    pub(crate) fn json(&self, dir: &Path, text: &str) -> serde_json::Value {
        serde_json::from_str(&self.done(dir, text)).unwrap()
    }
}

/// A file with the query; arguments are separated by blanks.
pub(crate) fn query_file(dir: &Path, name: &str, sql: &str) -> String {
    std::fs::write(dir.join(name), sql).unwrap();
    format!("-f {{}}/{name}")
}

/// A table of events with keys that come in several commits.
fn table_with_history(dir: &Path) {
    done(dir, "generate ad-events --rows 30000 --rows-per-file 10000 --duplicate-share 0.2 --out {}/in");
    done(dir, "create {}/t --ddl data/ad_events.sql");
    for file in 0..3 {
        done(dir, &format!("ingest {{}}/t {{}}/in/ad-events-000{file}.parquet --compact off"));
    }
}

const QUERIES: [&str; 22] = [
    "SELECT count(*), count(DISTINCT user_id), min(event_timestamp), max(ad_id), sum(event_id % 1000) FROM t",
    "SELECT user_id, count(*) AS n FROM t GROUP BY user_id ORDER BY n DESC, user_id LIMIT 20",
    "SELECT user_id, event_timestamp, campaign_id FROM t ORDER BY event_timestamp, user_id, campaign_id LIMIT 50",
    "SELECT campaign_id, event_type, count(*) FROM t WHERE event_type = 'click' GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT * FROM t WHERE user_id = 'u000000224' ORDER BY event_timestamp, campaign_id",
    "SELECT * FROM t WHERE user_id IN ('u000000224', 'u000005376') AND campaign_id > 5 ORDER BY 1, 2, 4",
    "SELECT count(*) FROM t a JOIN t b ON a.user_id = b.user_id AND a.campaign_id = b.ad_id",
    "SELECT a.campaign_id, count(*) FROM t a LEFT JOIN (SELECT DISTINCT campaign_id FROM t WHERE event_type = 'click') b \
     ON a.campaign_id = b.campaign_id WHERE b.campaign_id IS NULL GROUP BY 1 ORDER BY 1 LIMIT 10",
    "SELECT user_id FROM t WHERE campaign_id < 20 INTERSECT SELECT user_id FROM t WHERE event_type = 'click' ORDER BY 1",
    "SELECT campaign_id FROM t EXCEPT SELECT campaign_id FROM t WHERE event_type = 'click' ORDER BY 1 LIMIT 30",
    "SELECT campaign_id, n, rank() OVER (ORDER BY n DESC, campaign_id) FROM \
     (SELECT campaign_id, count(*) AS n FROM t GROUP BY 1) ORDER BY 3 LIMIT 10",
    "SELECT count(*) FROM t WHERE event_timestamp > $now - INTERVAL '1 hour'",
    "SELECT 1 AS one UNION ALL SELECT count(*) FROM t ORDER BY one",
    "SELECT sum(rows) FROM (SELECT row_count AS rows FROM sys.partition_stats)",
    "SELECT ydb_partition(16, user_id, event_timestamp) AS p, count(*) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT count(*) FROM t WHERE user_id NOT IN (SELECT user_id FROM t WHERE event_type = 'click')",
    "SELECT count(*) FROM t WHERE ad_id NOT IN (SELECT campaign_id FROM t WHERE event_type = 'click')",
    "SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.user_id = a.user_id AND b.event_type = 'click')",
    "SELECT count(*), count(b.user_id) FROM t a FULL JOIN (SELECT * FROM t WHERE campaign_id < 30) b ON a.event_id = b.event_id \
     AND a.ad_id % 3 = 0",
    "SELECT count(*) FROM t a, (SELECT DISTINCT event_type FROM t) b WHERE a.event_type <> b.event_type",
    "WITH a AS (SELECT user_id, count(*) n FROM t GROUP BY 1), b AS (SELECT user_id, max(ad_id) m FROM t GROUP BY 1) \
     SELECT sum(n), sum(m % 100), count(*) FROM a JOIN b USING (user_id) WHERE n > 1",
    "SELECT count(*) FROM t WHERE user_id > (SELECT max(user_id) FROM t WHERE campaign_id = 7)",
];

#[test]
fn queries_give_what_they_give_here() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table_with_history(dir);
    let cluster = TestCluster::start(2);
    for state in ["as ingested", "compacted"] {
        for (number, sql) in QUERIES.iter().enumerate() {
            let file = query_file(dir, &format!("{number}.sql"), sql);
            let query = format!("query {{}}/t {file} --format csv");
            let here = crate::common::run(dir, &query);
            let there = cluster.run(dir, &query);
            assert_eq!(
                (here.code, &here.stdout),
                (there.code, &there.stdout),
                "{state}: {sql}\n{}{}\n{}",
                here.stderr,
                there.stderr,
                cluster.warnings()
            );
        }
        done(dir, "compact {}/t --full");
    }
    // What a query does wrong is told as it is here, at once, and not tried again.
    for sql in [
        "SELECT nothing FROM t",
        "SELECT CAST(user_id AS BIGINT) FROM t",
        "SELECT 1 FROM elsewhere",
        "DROP TABLE t",
    ] {
        let file = query_file(dir, "wrong.sql", sql);
        let query = format!("query {{}}/t {file}");
        let (here, there) = (crate::common::run(dir, &query), cluster.run(dir, &query));
        assert!(here.code > 0 && here.code == there.code, "{sql}");
        let message = there.stderr.trim_start_matches("error: ").trim();
        // Which row is met first is not the same.
        let is_cast = |text: &str| text.contains("Arrow error: Cast error: Cannot cast string 'u");
        let alike = here.stderr.contains(message) || (is_cast(&here.stderr) && is_cast(message));
        assert!(alike && there.stderr.lines().count() == 1, "{}{}", here.stderr, there.stderr);
    }
}

#[test]
fn an_ingest_gives_the_table_that_it_gives_here() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "generate ad-events --rows 60000 --rows-per-file 10000 --duplicate-share 0.2 --out {}/in");
    let csv = query_file(dir, "all.sql", "SELECT * FROM t ORDER BY event_timestamp, user_id, campaign_id");
    let rows = |table: &str| done(dir, &format!("query {{}}/{table} {csv} --format csv"));
    let cluster = TestCluster::start(2);
    done(dir, "create {}/t1 --ddl data/ad_events.sql");
    done(dir, "create {}/t2 --ddl data/ad_events.sql");
    let here = json(dir, "ingest {}/t1 {}/in --compact off --format json");
    let there = cluster.json(dir, "ingest {}/t2 {}/in --compact off --format json");
    for field in ["rows", "rejected", "bytes_read", "version", "sources"] {
        assert_eq!(here[field], there[field], "{field}");
    }
    assert_eq!(rows("t1"), rows("t2"));
    assert_eq!(here["rows_per_partition"], there["rows_per_partition"]);
    assert!(done(dir, "check {}/t2 --all").contains(" 0 damaged"));
    // A partition is written by one task, and its portions share no key.
    assert_eq!(
        json(dir, "inspect {}/t2 --format json")["rows"],
        json(dir, "inspect {}/t2 --format json")["stored_rows"]
    );
    // The same inputs again are skipped, some and all.
    let again = cluster.json(dir, "ingest {}/t2 {}/in --format json");
    assert!(again["version"].is_null() && again["sources"][5]["skipped_since"] == 1, "{again}");
    // Text, packed text and other formats; later inputs win.
    let table = query_file(dir, "table.sql", "SELECT * FROM t");
    done(dir, &format!("query {{}}/t1 {table} --output {{}}/in/rows.csv"));
    done(dir, &format!("query {{}}/t1 {table} --output {{}}/in/rows.ndjson"));
    let packed = zstd::encode_all(std::fs::read(dir.join("in/rows.csv")).unwrap().as_slice(), 3).unwrap();
    std::fs::write(dir.join("in/rows.csv.zst"), packed).unwrap();
    for table in ["t3", "t4"] {
        done(dir, &format!("create {{}}/{table} --ddl data/ad_events.sql"));
        let inputs = "{}/in/rows.ndjson {}/in/rows.csv {}/in/rows.csv.zst {}/in/ad-events-0001.parquet";
        let ingest = format!("ingest {{}}/{table} {inputs} --compact off --format json");
        let report = if table == "t3" { json(dir, &ingest) } else { cluster.json(dir, &ingest) };
        assert_eq!(report["rows"].as_u64(), here["rows"].as_u64().map(|_| report["rows"].as_u64().unwrap()));
    }
    assert_eq!(rows("t3"), rows("t4"));
}

#[test]
fn of_equal_keys_the_last_in_input_order_wins_however_inputs_are_split() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    const CREATE: &str =
        "--column k:uint64:not-null --column v:uint64 --column pad:uint64 --primary-key k --partitions 8";
    done(dir, &format!("create {{}}/t1 {CREATE}"));
    done(dir, &format!("create {{}}/t2 {CREATE}"));
    // One file with several row groups that hold the same keys, large enough to be read by several
    // tasks.
    write_parquet(&dir.join("many.parquet"), 1_200_000, 200_000, 50_000);
    std::fs::write(dir.join("late.csv"), "k,v,pad\n7,1,1\n7,2,2\n8,3,3\n7,4,4\n").unwrap();
    let cluster = TestCluster::start(2);
    done(dir, "ingest {}/t1 {}/many.parquet {}/late.csv --compact off");
    let report = cluster.json(dir, "ingest {}/t2 {}/many.parquet {}/late.csv --compact off --format json");
    assert_eq!((report["rows"].as_u64(), report["sources"].as_array().unwrap().len()), (Some(1_200_004), 2));
    let file = query_file(
        dir,
        "sum.sql",
        "SELECT count(*), sum(k), sum(v), sum(v * k % 1000), sum(pad % 77) FROM t",
    );
    let sums = |table: &str| done(dir, &format!("query {{}}/{table} {file} --format csv"));
    assert_eq!(sums("t1"), sums("t2"));
    let seven = query_file(dir, "seven.sql", "SELECT v FROM t WHERE k = 7");
    assert_eq!(done(dir, &format!("query {{}}/t2 {seven} --format csv")), "v\n4\n");
}

/// A Parquet file of rows whose keys come again after `keys` rows.
fn write_parquet(path: &Path, rows: u64, group: usize, keys: u64) {
    use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
    let mixed = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (row << 7);
    let column = |value: &dyn Fn(u64) -> u64| {
        Arc::new(UInt64Array::from_iter_values((0..rows).map(value))) as ArrayRef
    };
    let batch = RecordBatch::try_from_iter([
        ("k", column(&|row| row % keys)),
        ("v", column(&|row| row)),
        ("pad", column(&mixed)),
    ]);
    let properties = parquet::file::properties::WriterProperties::builder()
        .set_max_row_group_row_count(Some(group))
        .build();
    let batch = batch.unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn what_an_ingest_refuses_here_it_refuses_there() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let cluster = TestCluster::start(1);
    const CREATE: &str = "--column k:int64:not-null --column v:int64 --primary-key k --partitions 4";
    std::fs::write(dir.join("good.csv"), "k,v\n1,1\n2,2\n").unwrap();
    std::fs::write(dir.join("bad.csv"), "k,v\n3,x\n4,4\n,5\n").unwrap();
    std::fs::write(dir.join("twice.csv"), "k,v\n9,1\n9,2\n").unwrap();
    std::fs::write(dir.join("empty.csv"), "").unwrap();
    let tables = ["table-here", "table-there"];
    tables.iter().for_each(|table| drop(done(dir, &format!("create {{}}/{table} {CREATE}"))));
    for (inputs, code) in [
        ("{}/bad.csv", 1),
        ("{}/twice.csv --mode insert", 1),
        ("{}/good.csv {}/empty.csv --mode insert", 0),
        ("{}/good.csv --again --mode insert", 1),
        ("{}/nowhere.csv", 1),
        ("{}/bad.csv --on-error reject --rejects {}/rejects-TABLE.ndjson", 0),
    ] {
        let run = |table: &str| format!("ingest {{}}/{table} {inputs} --compact off").replace("TABLE", table);
        let (here, there) =
            (crate::common::run(dir, &run("table-here")), cluster.run(dir, &run("table-there")));
        assert_eq!((here.code, there.code), (code, code), "{inputs}\n{}{}", here.stderr, there.stderr);
        assert_eq!(here.stderr, there.stderr.replace("table-there", "table-here"), "{inputs}");
    }
    let rejects = |table: &str| std::fs::read_to_string(dir.join(format!("rejects-{table}.ndjson"))).unwrap();
    assert_eq!(rejects("table-here"), rejects("table-there"));
    let count = query_file(dir, "count.sql", "SELECT count(*), sum(k) FROM t");
    for table in tables {
        assert_eq!(
            done(dir, &format!("query {{}}/{table} {count} --format csv")),
            "count(*),sum(t.k)\n3,7\n"
        );
    }
    // Of an ingest that failed nothing is left but files that no commit names.
    assert!(done(dir, "check {}/table-there").contains(" 0 damaged"));
    let from_pipe = cluster.run(dir, "ingest {}/table-there -");
    assert!(
        from_pipe.stderr.contains("standard input cannot be read by other machines"),
        "{}",
        from_pipe.stderr
    );
}

#[test]
fn an_evaluation_gives_the_figures_that_it_gives_here() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "generate ad-events --rows 90000 --rows-per-file 30000 --duplicate-share 0.05 --out {}/in");
    done(dir, "create {}/u --ddl data/ad_events.sql");
    done(dir, "ingest {}/u {}/in --compact off");
    let all = query_file(dir, "all.sql", "SELECT * FROM t ORDER BY event_timestamp");
    done(dir, &format!("query {{}}/u {all} --output {{}}/rows.csv"));
    // Numbers that systems without unsigned integers cannot hold.
    let large: String = (0..1000u64).map(|row| format!("{}\n", u64::MAX - row)).collect();
    std::fs::write(dir.join("large.csv"), format!("k\n{large}")).unwrap();
    let cluster = TestCluster::start(2);
    let figures = |mut found: serde_json::Value| {
        found.as_object_mut().unwrap().remove("seconds");
        found
    };
    for arguments in [
        "{}/in",
        "{}/in --partition-key user_id --partition-key campaign_id,event_type --no-primary-keys --partitions 16,48",
        "{}/in --primary-key event_timestamp,user_id --primary-key user_id,event_timestamp,campaign_id --placement doris,ydb",
        "{}/in --partition-key user_id --memory 256MiB --window 1h --batch 7000",
        "{}/rows.csv --partition-key user_id,campaign_id",
        "{}/large.csv --partition-key k --no-primary-keys --placement all",
        "{}/in --sample 0.1 --partition-key user_id",
    ] {
        let evaluate = format!("evaluate {arguments} --format json");
        let (here, there) = (figures(json(dir, &evaluate)), figures(cluster.json(dir, &evaluate)));
        for (name, value) in here.as_object().unwrap() {
            assert_eq!(*value, there[name], "{arguments}: {name}");
        }
    }
    std::fs::write(dir.join("bad.csv"), format!("k,v\n{}x,y\n", "2,3\n".repeat(150_000))).unwrap();
    for arguments in
        ["{}/bad.csv --partition-key k", "{}/in --partition-key nothing", "{}/none --partition-key k"]
    {
        let evaluate = format!("evaluate {arguments}");
        let (here, there) = (crate::common::run(dir, &evaluate), cluster.run(dir, &evaluate));
        assert_eq!((here.code, here.stderr), (there.code, there.stderr), "{arguments}");
    }
    let skipped = "evaluate {}/bad.csv --partition-key k --on-error skip --format json";
    assert_eq!(figures(json(dir, skipped)), figures(cluster.json(dir, skipped)));
}

#[test]
fn a_cluster_that_is_not_there_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column k:int64:not-null --primary-key k");
    for (url, message) in [
        ("http://127.0.0.1:9", "no scheduler answers"),
        ("nonsense", "write http://HOST:PORT"),
        ("https://127.0.0.1:9", "--tls-ca"),
        ("ftp://127.0.0.1:9", "write http://HOST:PORT"),
    ] {
        let query = Run::from(
            evenkeel()
                .args(arguments(dir, &format!("query {{}}/t --cluster {url}")))
                .arg("SELECT 1")
                .output()
                .unwrap(),
        );
        assert!(query.code == 1 && query.stderr.contains(message), "{url}: {}", query.stderr);
    }
    let alone = TestCluster::start(0);
    let query = evenkeel()
        .args(arguments(dir, "query {}/t --deadline 1s --cluster"))
        .args([&alone.url, "SELECT count(*) FROM t"])
        .output()
        .unwrap();
    let query = Run::from(query);
    assert!(query.stderr.contains("no executor has registered within 1 s"), "{}", query.stderr);
    let executor = cluster(&["executor", "--scheduler", "http://127.0.0.1:9"]).output().unwrap();
    assert!(Run::from(executor).stderr.contains("no scheduler answers"));
    let open = cluster(&["executor", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert!(Run::from(open).stderr.contains("needs --host"));
}

/// Certificates of an authority of the test's own, made by openssl; none where there is no openssl.
fn certificates(dir: &Path) -> Option<()> {
    let run = |arguments: &str| {
        let status = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(dir)
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success()).then_some(())
    };
    run("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem")?;
    run("req -newkey rsa:2048 -nodes -subj /CN=node -keyout node.key -out node.csr")?;
    std::fs::write(dir.join("ext"), "subjectAltName=DNS:evenkeel-node\n").ok()?;
    run("x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out node.pem")
}

#[test]
fn with_tls_and_a_token_only_those_are_served_who_have_both() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    if certificates(dir).is_none() {
        return;
    }
    std::fs::write(dir.join("token"), "a token is a secret\n".replace(' ', "-")).unwrap();
    std::fs::write(dir.join("other"), "another-token-altogether").unwrap();
    done(dir, "generate ad-events --rows 20000 --out {}/in");
    done(dir, "create {}/t --ddl data/ad_events.sql");
    let with = |text: &str| arguments(dir, text);
    let server = "--tls-cert {}/node.pem --tls-key {}/node.key --token-file {}/token";
    let client = "--tls-ca {}/ca.pem --tls-name evenkeel-node";
    let scheduler = Process::start(
        evenkeel().args(with(&format!("cluster scheduler --listen 127.0.0.1:0 {server} {client}"))),
    );
    let url = scheduler.line.trim().rsplit(' ').next().unwrap().to_owned();
    assert!(url.starts_with("https://"), "{url}");
    let executor = format!("cluster executor --scheduler {url} --cores 2 {server} {client}");
    let _executors = [(); 2].map(|()| Process::start(evenkeel().args(with(&executor))));
    let ingest = |more: &str| {
        let text = format!("ingest {{}}/t {{}}/in --compact off --cluster {url} --tries 1 {more}");
        Run::from(evenkeel().args(with(&text)).output().unwrap())
    };
    let plain_url = url.replace("https", "http");
    let plain = evenkeel().args(with("inspect {}/t --format json")).output().unwrap();
    assert!(Run::from(plain).code == 0);
    for (more, message) in [
        ("", "--tls-ca"),
        (client, "the token is missing or wrong"),
        (&format!("{client} --token-file {{}}/other"), "the token is missing or wrong"),
        ("--tls-ca {}/ca.pem --token-file {}/token", "no scheduler answers"),
        (&format!("{client} --token-file {{}}/ca.key"), "without blanks"),
        (&format!("{client} --token-file {{}}/nowhere"), "No such file"),
    ] {
        let refused = ingest(more);
        assert!(refused.code != 0 && refused.stderr.contains(message), "{more}: {}", refused.stderr);
        assert!(!refused.stderr.contains("a-token"), "{}", refused.stderr);
    }
    let unencrypted = Run::from(
        evenkeel()
            .args(with(&format!("ingest {{}}/t {{}}/in --cluster {plain_url} --token-file {{}}/token")))
            .output()
            .unwrap(),
    );
    assert!(unencrypted.stderr.contains("no scheduler answers"), "{}", unencrypted.stderr);
    let taken = ingest(&format!("{client} --token-file {{}}/token"));
    assert_eq!(taken.code, 0, "{}", taken.stderr);
    assert_eq!(json(dir, "inspect {}/t --format json")["version"], 1);
}
