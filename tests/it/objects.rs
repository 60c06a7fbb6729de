//! Object stores: which requests a table makes, how exports in them are read, and what is refused.

use std::ops::Range;
use std::path::Path as FsPath;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use async_trait::async_trait;
use evenkeel::Table;
use evenkeel::ingest::IngestOptions;
use evenkeel::maintenance::CleanOptions;
use evenkeel::query::Params;
use evenkeel::storage::{TableStorage, remote_store};
use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition, TableSpec};
use evenkeel::units::{Micros, PartitionCount};
use object_store::ObjectStoreExt;
use object_store::path::Path;

use crate::common::{Run, done, evenkeel, json, objects, project, run, test_store};
use crate::hooked_store::{Fate, HookedStore, Hooks, Request};

/// Requests that read, and what they read.
#[derive(Debug, Default)]
struct Counts {
    gets: AtomicU64,
    bytes: AtomicU64,
    lists: AtomicU64,
}

impl Counts {
    /// Reading requests and listings since the last time.
    fn take(&self) -> (u64, u64) {
        (self.gets.swap(0, Ordering::SeqCst), self.lists.swap(0, Ordering::SeqCst))
    }
}

#[async_trait]
impl Hooks for Counts {
    async fn fate(&self, request: Request, _location: &Path) -> Fate {
        match request {
            Request::Get => self.gets.fetch_add(1, Ordering::SeqCst),
            Request::List => self.lists.fetch_add(1, Ordering::SeqCst),
            Request::Put | Request::Upload | Request::Delete => 0,
        };
        Fate::Answered
    }

    fn read(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::SeqCst);
    }
}

fn spec() -> TableSpec {
    TableSpec::new(TableDefinition {
        name: "t".into(),
        columns: vec![Column::required("k", ColumnType::Int64), Column::required("v", ColumnType::Int64)],
        primary_key: vec!["k".into()],
        partition_key: vec![],
        partitions: PartitionCount::new(2).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

async fn ingest(table: &mut Table, keys: Range<i64>) {
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
    let batch = RecordBatch::try_from_iter([("k", Arc::clone(&keys)), ("v", keys)]).unwrap();
    let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch)]);
    table.ingest(stream, &IngestOptions::default()).await.unwrap();
}

fn counted() -> (Arc<Counts>, TableStorage) {
    let store = HookedStore::new(objects(), Counts::default());
    let counts = Arc::clone(&store.hooks);
    (counts, TableStorage::new(Arc::new(store), "t".into()))
}

#[tokio::test(flavor = "multi_thread")]
async fn opening_ingesting_and_querying_list_nothing() {
    let (counts, storage) = counted();
    let mut table = Table::create_at(storage.clone(), &spec()).await.unwrap();
    counts.take();
    let rows = async |table: &Table| {
        let rows = table.session().unwrap().collect("SELECT v FROM t", &Params::default()).await.unwrap();
        rows.iter().map(RecordBatch::num_rows).sum::<usize>()
    };
    // Checkpoints are written at versions 64 and 128, and then the log is listed once.
    for version in 1..150 {
        ingest(&mut table, version..version + 2).await;
        let (_, lists) = counts.take();
        assert_eq!(lists, u64::from(version == 64 || version == 128), "version {version}");
        if [10, 63, 65, 149].contains(&version) {
            let opened = Table::open_at(storage.clone()).await.unwrap();
            assert_eq!(opened.snapshot().version().0, u64::try_from(version).unwrap());
            let (gets, lists) = counts.take();
            // The pointer twice, where to begin, the commits since, and those behind the end that
            // are asked for beside them.
            assert!(lists == 0 && gets <= 3 + (version as u64 % 64) + 8, "{gets} gets at {version}");
            assert_eq!(rows(&opened).await, usize::try_from(version).unwrap() + 1);
            assert_eq!(counts.take().1, 0);
        }
    }
    // Of a log that was copied without its hint, and is long, one listing tells where to begin.
    storage.delete("_log/latest.json").await.unwrap();
    assert_eq!(Table::open_at(storage).await.unwrap().snapshot().version().0, 149);
    assert_eq!(counts.take().1, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_reads_the_columns_and_portions_that_it_needs() {
    let (counts, storage) = counted();
    let mut table = Table::create_at(storage, &spec()).await.unwrap();
    ingest(&mut table, 0..400_000).await;
    let stored: u64 = table.snapshot().portions().iter().map(|portion| portion.bytes).sum();
    counts.bytes.store(0, Ordering::SeqCst);
    let session = table.session().unwrap();
    session.collect("SELECT max(v) FROM t WHERE k BETWEEN 5 AND 10", &Params::default()).await.unwrap();
    let read = counts.bytes.load(Ordering::SeqCst);
    assert!(read < stored / 2, "{read} of {stored} bytes");
    // The ends of the files are known by now.
    counts.take();
    table.session().unwrap().collect("SELECT count(v) FROM t WHERE k < 0", &Params::default()).await.unwrap();
    assert_eq!(counts.take(), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_version_is_found_whatever_was_cleaned_or_lost() {
    let storage = TableStorage::new(objects(), "t".into());
    let mut table = Table::create_at(storage.clone(), &spec()).await.unwrap();
    let newest = async || Table::open_at(storage.clone()).await.unwrap().snapshot().version().0;
    for version in 1..70 {
        ingest(&mut table, version..version + 1).await;
    }
    let mut slow = table.clone();
    let all = CleanOptions { keep: None, unnamed_age: Micros::DAY, ..CleanOptions::default() };
    table.clean(&all).await.unwrap();
    assert_eq!(newest().await, 69);
    ingest(&mut table, 0..1).await;
    assert_eq!(newest().await, 70);
    // A handle from before the cleaning goes on where the log is.
    slow.refresh().await.unwrap();
    assert_eq!(slow.snapshot().version().0, 70);
    // The pointer is a hint: without it, or with nonsense in it, the log is listed.
    storage.delete("_log/latest.json").await.unwrap();
    assert_eq!(newest().await, 70);
    storage.replace("_log/latest.json", "{".into()).await.unwrap();
    assert_eq!(newest().await, 70);
    let nowhere = r#"{"checkpoint": 12, "id": "x"}"#;
    storage.replace("_log/latest.json", nowhere.into()).await.unwrap();
    assert_eq!(newest().await, 70);
    // A commit that is gone is told, although what comes before it could be read.
    storage.delete("_log/latest.json").await.unwrap();
    ingest(&mut table, 0..1).await;
    ingest(&mut table, 0..1).await;
    storage.delete("_log/00000000000000000071.json").await.unwrap();
    let error = Table::open_at(storage.clone()).await.unwrap_err().to_string();
    assert!(error.contains("commit 71 is missing while commit 72 exists"), "{error}");
}

fn refused(arguments: &str) -> Run {
    let run = Run::from(
        evenkeel().args(arguments.split_whitespace()).env("EVENKEEL_STORE_TIMEOUT", "2").output().unwrap(),
    );
    assert_ne!(run.code, 0, "{arguments}");
    assert_eq!(run.stderr.trim().lines().count(), 1, "{}", run.stderr);
    assert!(!run.stderr.contains("panicked") && !run.stderr.contains("<?xml"), "{}", run.stderr);
    run
}

#[test]
fn urls_that_name_no_place_are_refused() {
    for (arguments, message) in [
        ("query http://host/t -c x", "stores are s3://BUCKET/, gs://BUCKET/ and az://CONTAINER/"),
        ("inspect s3:///t", "the bucket is missing"),
        ("evaluate s3://key:secret@bucket/x.csv", "credentials do not belong in a URL"),
        ("inspect file:///nowhere/at/all", "there is no such directory"),
    ] {
        let refused = refused(arguments);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
        assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    }
    #[cfg(not(feature = "cloud"))]
    assert!(refused("inspect s3://bucket/t").stderr.contains("--features cloud"));
}

#[test]
fn paths_may_be_given_as_urls() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.csv"), "k\n1\n2\n").unwrap();
    done(dir.path(), "create file://{}/u --column k:int64:not-null --primary-key k");
    done(dir.path(), "ingest file://{}/u file://{}/a.csv");
    assert_eq!(json(dir.path(), "inspect {}/u --format json")["rows"], 2);
}

/// Puts files of a folder into the store of the tests; gives the URL of the folder there.
fn upload(dir: &FsPath) -> Option<String> {
    let url = format!("{}{}", test_store()?, dir.display());
    let (store, root) = remote_store(&url.parse().unwrap()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for entry in glob::glob(&format!("{}/**/*", dir.display())).unwrap().map(std::result::Result::unwrap) {
        if entry.is_file() {
            let below = entry.strip_prefix(dir).unwrap().to_str().unwrap();
            let path = Path::parse(format!("{root}/{below}")).unwrap();
            runtime.block_on(store.put(&path, std::fs::read(&entry).unwrap().into())).unwrap();
        }
    }
    Some(url)
}

#[test]
fn exports_in_a_store_are_judged_as_those_on_a_disk() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "generate ad-events --rows 40000 --rows-per-file 20000 --out {}/in/events");
    done(dir, "create {}/u --ddl data/ad_events.sql");
    done(dir, "ingest {}/u {}/in/events --compact off");
    for format in ["csv", "ndjson", "parquet"] {
        let sql = "SELECT/**/*/**/FROM/**/ad_events/**/ORDER/**/BY/**/event_id";
        done(dir, &format!("query {{}}/u -c {sql} --output {{}}/in/rows.{format}"));
    }
    std::fs::remove_dir_all(dir.join("u")).unwrap();
    let csv = std::fs::read(dir.join("in/rows.csv")).unwrap();
    std::fs::write(dir.join("in/packed.csv.zst"), zstd::encode_all(csv.as_slice(), 3).unwrap()).unwrap();
    std::fs::create_dir_all(dir.join("in/dump")).unwrap();
    for entry in std::fs::read_dir(project("data/ydb-dump/ads/events")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), dir.join("in/dump").join(entry.file_name())).unwrap();
    }
    let Some(url) = upload(dir) else { return };
    let keys = "--partition-key user_id --primary-key event_timestamp,user_id --format json";
    let evaluated = |input: &str| {
        let mut found = json(dir, &format!("evaluate {input} {keys}"));
        let fields = found.as_object_mut().unwrap();
        fields.retain(|name, _| !name.contains("seconds"));
        // What is proposed depends on where inputs lie.
        found["recommendation"].as_object_mut().unwrap().remove("commands");
        found.to_string().replace(&url, "").replace(dir.to_str().unwrap(), "")
    };
    let inputs = [
        "events",
        "events/*-0001.parquet",
        "rows.csv",
        "rows.ndjson",
        "rows.parquet",
        "packed.csv.zst",
        "dump",
    ];
    for input in inputs {
        assert_eq!(
            evaluated(&format!("{url}/in/{input}")),
            evaluated(&format!("{{}}/in/{input}")),
            "{input}"
        );
    }
    // A sample may lie there too.
    for input in ["rows.parquet", "rows.ndjson", "packed.csv.zst"] {
        let declared = |input: &str| {
            let ddl =
                done(dir, &format!("create {{}}/u --like {input} --primary-key event_timestamp,user_id"));
            std::fs::remove_dir_all(dir.join("u")).unwrap();
            ddl
        };
        assert_eq!(declared(&format!("{url}/in/{input}")), declared(&format!("{{}}/in/{input}")), "{input}");
    }
    let several = run(dir, &format!("create {{}}/u --like {url}/in/events --primary-key user_id"));
    assert!(
        several.code == 1 && several.stderr.contains("must be one file, but it names 2"),
        "{}",
        several.stderr
    );
    // What was ingested from there is known by its content.
    done(dir, "create {}/t --ddl data/ad_events.sql");
    done(dir, &format!("ingest {{}}/t {url}/in/events"));
    let again = json(dir, "ingest {}/t {}/in/events --format json");
    assert!(again["version"].is_null() && again["sources"][1]["skipped_since"] == 1, "{again}");
    for (input, message) in [
        ("nowhere.csv", "there is no such file or folder"),
        ("in/*.nope", "no input matches"),
        ("t", "is a table"),
    ] {
        let refused = run(dir, &format!("evaluate {url}/{input} --partition-key user_id"));
        assert!(refused.code != 0 && refused.stderr.contains(message), "{}", refused.stderr);
    }
}

#[test]
fn a_store_that_is_not_there_or_refuses_is_told_in_one_line() {
    if test_store().is_none() {
        return;
    }
    let told = refused("inspect s3://no-such-bucket/t");
    assert!(told.stderr.contains("NoSuchBucket: "), "{}", told.stderr);
    assert!(told.stderr.contains("create the bucket first"), "{}", told.stderr);
    let unreachable = Run::from(
        evenkeel()
            .args(["inspect", "s3://elsewhere/t"])
            .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
            .env("EVENKEEL_STORE_TIMEOUT", "1")
            .output()
            .unwrap(),
    );
    assert!(unreachable.code == 1 && unreachable.stderr.contains("127.0.0.1:9"), "{}", unreachable.stderr);
}

/// The program without what the environment says of stores, in a home directory that says nothing
/// either.
#[cfg(feature = "cloud")]
fn without_credentials(home: &FsPath) -> std::process::Command {
    let mut command = evenkeel();
    for (name, _) in std::env::vars_os() {
        let of_store = |prefix: &str| name.to_string_lossy().starts_with(prefix);
        if ["AWS_", "GOOGLE_", "AZURE_", "SERVICE_ACCOUNT"].into_iter().any(of_store) {
            command.env_remove(name);
        }
    }
    command.env("HOME", home);
    command
}

#[cfg(feature = "cloud")]
#[test]
fn without_credentials_it_is_said_what_to_set() {
    /// Nothing listens there.
    const NOWHERE: &str = "http://127.0.0.1:9";
    let home = tempfile::tempdir().unwrap();
    for (arguments, settings, message) in [
        (
            "inspect s3://bucket/t",
            vec![("AWS_METADATA_ENDPOINT", NOWHERE)],
            "no credentials for s3://bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        ),
        (
            "evaluate s3://bucket/x.csv",
            vec![("AWS_METADATA_ENDPOINT", NOWHERE)],
            "no credentials for s3://bucket: set AWS_ACCESS_KEY_ID",
        ),
        (
            "inspect gs://bucket/t",
            vec![("GCE_METADATA_HOST", "127.0.0.1:9"), ("GCE_METADATA_IP", "127.0.0.1:9")],
            "no credentials for gs://bucket: set GOOGLE_APPLICATION_CREDENTIALS",
        ),
        (
            "inspect az://container/t",
            vec![("AZURE_STORAGE_ACCOUNT_NAME", "account"), ("AZURE_MSI_ENDPOINT", NOWHERE)],
            "no credentials for az://container: set AZURE_STORAGE_ACCOUNT_KEY",
        ),
        ("inspect az://container/t", vec![], "set AZURE_STORAGE_ACCOUNT_NAME"),
    ] {
        let output = without_credentials(home.path())
            .args(arguments.split_whitespace())
            .envs(settings)
            .output()
            .unwrap();
        let run = Run::from(output);
        assert!(run.code == 1 && run.stderr.contains(message), "{arguments}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{arguments}: {}", run.stderr);
    }
}

#[cfg(feature = "cloud")]
#[test]
fn a_profile_whose_keys_come_from_elsewhere_is_refused_unless_the_environment_has_keys() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("config");
    std::fs::write(&config, "[profile dev]\nsso_session = work\nregion = eu-west-1\n").unwrap();
    let inspect = |keys: &[(&str, &str)]| {
        let mut command = without_credentials(home.path());
        command.args(["inspect", "s3://bucket/t"]).env("AWS_CONFIG_FILE", &config).env("AWS_PROFILE", "dev");
        command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:9").env("EVENKEEL_STORE_TIMEOUT", "1");
        Run::from(command.envs(keys.iter().copied()).output().unwrap())
    };
    let refused = inspect(&[]);
    let next = "aws configure export-credentials --profile dev --format env";
    assert!(refused.code == 1 && refused.stderr.contains(next), "{}", refused.stderr);
    for settings in [
        [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")].as_slice(),
        &[("AWS_SKIP_SIGNATURE", "true")],
    ] {
        let asked = inspect(settings);
        assert!(
            asked.stderr.contains("127.0.0.1:9") && !asked.stderr.contains("profile"),
            "{}",
            asked.stderr
        );
    }
}

/// What a virtual machine of AWS finds: its credentials, and a store with one object, which it
/// serves to nobody else.
#[cfg(feature = "cloud")]
fn virtual_machine(object: &'static [u8]) -> String {
    use std::io::{BufRead, BufReader, Write};

    const CREDENTIALS: &str = r#"{"AccessKeyId": "KEYOFMACHINE", "SecretAccessKey": "s", "Token": "t",
                                  "Expiration": "2999-01-01T00:00:00Z"}"#;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let lines = BufReader::new(connection.try_clone().unwrap()).lines();
            let head: Vec<String> =
                lines.map(std::result::Result::unwrap).take_while(|line| !line.is_empty()).collect();
            let asked = head[0].split(' ').take(2).collect::<Vec<_>>().join(" ");
            let of_machine = head.iter().any(|line| line.contains("Credential=KEYOFMACHINE/"));
            let range = head.iter().find_map(|line| {
                let line = line.to_lowercase();
                let (from, to) = line.strip_prefix("range: bytes=")?.split_once('-')?;
                Some((from.parse::<usize>().unwrap(), to.parse::<usize>().unwrap()))
            });
            let (status, more, body) = match (asked.as_str(), range) {
                ("PUT /latest/api/token", _) => ("200 OK", String::new(), b"token".as_slice()),
                ("GET /latest/meta-data/iam/security-credentials/", _) => {
                    ("200 OK", String::new(), b"role".as_slice())
                }
                ("GET /latest/meta-data/iam/security-credentials/role", _) => {
                    ("200 OK", String::new(), CREDENTIALS.as_bytes())
                }
                (_, Some((from, to))) if of_machine => {
                    let range = format!("Content-Range: bytes {from}-{to}/{}\r\n", object.len());
                    ("206 Partial Content", range, &object[from..=to])
                }
                ("HEAD /bucket/x.csv", None) if of_machine => ("200 OK", String::new(), object),
                _ => ("403 Forbidden", String::new(), b"".as_slice()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\nETag: \"1\"\r\n\
                 Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n{more}\r\n",
                body.len()
            );
            connection.write_all(head.as_bytes()).unwrap();
            if !asked.starts_with("HEAD") {
                connection.write_all(body).unwrap();
            }
        }
    });
    url
}

#[cfg(feature = "cloud")]
#[test]
fn a_virtual_machine_reads_a_sample_from_a_store_by_its_own_credentials() {
    let home = tempfile::tempdir().unwrap();
    let url = virtual_machine(b"k,at,v\n1,2026-01-01T00:00:00Z,a\n2,2026-01-02T00:00:00Z,b\n");
    let mut command = without_credentials(home.path());
    command.envs([("AWS_METADATA_ENDPOINT", &url), ("AWS_ENDPOINT_URL", &url)]);
    command.current_dir(home.path()).args("create u --like s3://bucket/x.csv --primary-key k".split(' '));
    let created = Run::from(command.output().unwrap());
    assert_eq!(created.code, 0, "{}", created.stderr);
    for column in ["k Int64 NOT NULL", "at Timestamp", "v Utf8"] {
        assert!(created.stdout.contains(column), "{}", created.stdout);
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
}
