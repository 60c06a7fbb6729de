//! What the tests share: running the program, small tables, and a naive engine for the same rows.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use evenkeel::Table;
use evenkeel::compact::{CompactionOptions, CompactionPolicy, Scope};
use evenkeel::ingest::{IngestFiles, IngestOptions};
use evenkeel::source::{InputOptions, InputPath};
use evenkeel::storage::remote_store;
use evenkeel::table::TableSpec;
use evenkeel::units::ByteSize;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use object_store::prefix::PrefixStore;

/// A file of the project.
pub(crate) fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The program, ready to be given arguments.
pub(crate) fn evenkeel() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
    command
}

/// What a run printed, and its exit code, or minus the number of the signal that ended it.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&status).unwrap()
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> i32 {
    1
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or_else(|| -signal(output.status)),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Where tables of tests lie instead of on the disk: the URL in `EVENKEEL_TEST_STORE`, such as
/// `s3://evenkeeltests`.
pub(crate) fn test_store() -> Option<String> {
    std::env::var("EVENKEEL_TEST_STORE").ok()
}

/// A store that has nothing: in memory, or below a new prefix of the one that tests are told to
/// use.
pub(crate) fn objects() -> Arc<dyn ObjectStore> {
    let Some(url) = test_store() else { return Arc::new(InMemory::new()) };
    let (store, _) = remote_store(&url.parse().unwrap()).unwrap();
    Arc::new(PrefixStore::new(store, uuid::Uuid::new_v4().to_string()))
}

/// The arguments of a command, which are separated by blanks. `{}` stands for `dir`; `{}/t`, also
/// with a number, is a table, and lies in the store of the tests where there is one.
pub(crate) fn arguments(dir: &Path, arguments: &str) -> Vec<String> {
    let dir = dir.display().to_string();
    let is_table = |argument: &str| {
        argument.strip_prefix("{}/t").is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let argument = |argument: &str| match test_store().filter(|_| is_table(argument)) {
        Some(store) => argument.replace("{}", &format!("{store}{dir}")),
        None => argument.replace("{}", &dir),
    };
    arguments.split_whitespace().map(argument).collect()
}

/// Runs the program with arguments separated by blanks; see [`arguments`].
pub(crate) fn run(dir: &Path, arguments: &str) -> Run {
    Run::from(evenkeel().args(self::arguments(dir, arguments)).output().unwrap())
}

/// Runs the program and expects it to succeed.
pub(crate) fn done(dir: &Path, arguments: &str) -> String {
    let run = run(dir, arguments);
    assert_eq!(run.code, 0, "{arguments}\n{}{}", run.stdout, run.stderr);
    run.stdout
}

/// Runs the program and expects JSON.
pub(crate) fn json(dir: &Path, arguments: &str) -> serde_json::Value {
    serde_json::from_str(&done(dir, arguments)).unwrap()
}

/// The text of the note of a report that has this code, if there is one.
pub(crate) fn note<'a>(report: &'a serde_json::Value, code: &str) -> Option<&'a str> {
    let notes = report["notes"].as_array().into_iter().flatten();
    notes.filter(|note| note["code"] == code).find_map(|note| note["text"].as_str())
}

/// Rows as text, for comparison.
pub(crate) fn rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> =
            batch.columns().iter().map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap()).collect();
        rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|c| c.value(row).to_string()).collect()),
        );
    }
    rows
}

/// Rows as text in a fixed order.
pub(crate) fn sorted_rows(batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let mut rows = rows(batches);
    rows.sort();
    rows
}

/// An ingest of files with the defaults.
pub(crate) fn plan(files: &[PathBuf]) -> IngestFiles {
    IngestFiles {
        inputs: files.iter().cloned().map(InputPath::File).collect(),
        input: InputOptions::default(),
        ingest: IngestOptions::default(),
        rejects: None,
        again: false,
        interrupt: Arc::default(),
    }
}

/// The table in three states with the same visible rows: as it was ingested, compacted by a policy
/// that finds much to do, and compacted to one run. Each is a version of the same table.
pub(crate) async fn states(mut table: Table) -> [(&'static str, Table); 3] {
    let ingested = table.clone();
    let policy = CompactionPolicy { max_depth: 2, target: ByteSize(20_000), fan_in: 3 };
    let options = CompactionOptions { policy, ..CompactionOptions::default() };
    let report = table.compact(&options, &|_| {}).await.unwrap();
    assert!(report.max_depth_after <= 2, "{report:?}");
    let merged = table.clone();
    let full = CompactionOptions { scope: Scope::Everything, ..options };
    table.compact(&full, &|_| {}).await.unwrap();
    let overview = table.inspect().await.unwrap();
    assert_eq!(overview.rows, overview.stored_rows);
    assert!(overview.partitions.iter().all(|partition| partition.overlap.max_depth <= 1));
    [("as ingested", ingested), ("compacted by the policy", merged), ("compacted to one run", table)]
}

/// A second engine: the same rows in memory as table `t`, unpartitioned, where SQL itself finds the
/// newest row of each key. `batches` are in the order in which they came, in the schema of the
/// table.
pub(crate) async fn naive(spec: &TableSpec, batches: &[RecordBatch]) -> SessionContext {
    let all = concat_batches(spec.schema(), batches).unwrap();
    let order: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..all.num_rows() as u64));
    let mut fields: Vec<_> = spec.schema().fields().iter().cloned().collect();
    fields.push(Arc::new(Field::new("__order", arrow::datatypes::DataType::UInt64, false)));
    let mut columns = all.columns().to_vec();
    columns.push(order);
    let with_order = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
    let mut config = SessionConfig::new().with_target_partitions(1);
    config.options_mut().sql_parser.enable_ident_normalization = false;
    let context = SessionContext::new_with_config(config);
    let table = MemTable::try_new(with_order.schema(), vec![vec![with_order]]).unwrap();
    context.register_table("arrived", Arc::new(table)).unwrap();
    let key = spec.definition().primary_key.join(", ");
    let names: Vec<&str> = spec.columns().iter().map(|column| column.name.as_str()).collect();
    let newest = format!(
        "SELECT {} FROM (SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY __order DESC) AS __rank FROM arrived) \
         WHERE __rank = 1",
        names.join(", ")
    );
    let frame = context.sql(&newest).await.unwrap().cache().await.unwrap();
    context.register_table("t", frame.into_view()).unwrap();
    context
}
