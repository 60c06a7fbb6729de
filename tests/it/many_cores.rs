//! The program gives the same results with sixteen cores as with one. Sixteen are simulated: a
//! library loaded into the program answers when it asks how many cores the machine has.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::common::{Run, arguments, evenkeel, project};

/// A C program whose exit code is the number of cores that the system reports to it.
const COUNT: &str = "#define _GNU_SOURCE
#include <sched.h>
int main(void) { cpu_set_t set; sched_getaffinity(0, sizeof set, &set); return CPU_COUNT(&set); }
";

/// Compiles the library that simulates cores, and checks that it works. It is written below Cargo's
/// target folder, because some systems do not load code from folders for temporary files.
fn library() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(folder).unwrap();
    let compile = |options: &[&str], source: &Path, to: &Path| {
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let status = Command::new(compiler).args(options).arg("-o").arg(to).arg(source).status().unwrap();
        assert!(status.success());
    };
    let [library, count, source] = ["cores.so", "cores", "cores.c"].map(|name| folder.join(name));
    compile(&["-shared", "-fPIC"], &project("benches/peers/pretended_cores.c"), &library);
    std::fs::write(&source, COUNT).unwrap();
    compile(&[], &source, &count);
    let counted = Command::new(count).env("PRETENDED_CORES", "16").env("LD_PRELOAD", &library).status();
    assert_eq!(counted.unwrap().code(), Some(16));
    library
}

/// Runs the program with a simulated number of cores, and returns what it prints.
fn on(cores: usize, library: &Path, arguments: &[String]) -> String {
    let mut command = evenkeel();
    command.env("PRETENDED_CORES", cores.to_string()).env("LD_PRELOAD", library);
    let run = Run::from(command.args(arguments).output().unwrap());
    assert_eq!(run.code, 0, "{arguments:?}\n{}{}", run.stdout, run.stderr);
    run.stdout
}

const QUERIES: [&str; 6] = [
    "SELECT event_type, count(*), sum(event_id), min(event_timestamp) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT user_id, count(*) AS n, max(event_timestamp) FROM t GROUP BY 1 ORDER BY n DESC, 1 LIMIT 20",
    "SELECT * FROM t ORDER BY event_timestamp DESC, user_id, campaign_id LIMIT 15",
    "SELECT campaign_id, count(*) FROM t WHERE event_type = 'click' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 9",
    "SELECT count(*), count(DISTINCT b.campaign_id) FROM t a JOIN t b USING (user_id) WHERE a.campaign_id = 3",
    "SELECT user_id, event_timestamp, row_number() OVER (PARTITION BY user_id ORDER BY event_timestamp, campaign_id) AS n
     FROM t ORDER BY n DESC, user_id, event_timestamp LIMIT 12",
];

/// Ingests, compacts, queries and evaluates an export; returns all results as text.
fn work(cores: usize, library: &Path, dir: &Path) -> Vec<String> {
    let run = |line: &str| on(cores, library, &arguments(dir, line));
    let table = format!("{{}}/{cores}");
    run(&format!(
        "create {table} --like {{}}/exports/ad-events-0000.parquet --primary-key event_timestamp,user_id,campaign_id --partition-key user_id"
    ));
    run(&format!("ingest {table} {{}}/exports {{}}/texts --compact off"));
    run(&format!("ingest {table} {{}}/tabs --input-format tsv --compact off"));
    let mut found: Vec<String> = Vec::new();
    let partitions = |found: &mut Vec<String>| {
        let inspected: Value = serde_json::from_str(&run(&format!("inspect {table} --format json"))).unwrap();
        found.push(inspected["rows"].to_string());
        let rows =
            inspected["partitions"].as_array().unwrap().iter().map(|partition| partition["rows"].to_string());
        found.extend(rows);
    };
    partitions(&mut found);
    let answers = || {
        let query = |sql: &&str| {
            let mut arguments = arguments(dir, &format!("query {table} --format csv -c"));
            arguments.push((*sql).to_owned());
            on(cores, library, &arguments)
        };
        QUERIES.iter().map(query).collect::<Vec<_>>()
    };
    found.extend(answers());
    run(&format!("compact {table} --full"));
    partitions(&mut found);
    found.extend(answers());
    for exports in ["exports", "texts", "tabs --input-format tsv"] {
        let report = run(&format!("evaluate {{}}/{exports} --format json"));
        let mut report: Value = serde_json::from_str(&report).unwrap();
        report.as_object_mut().unwrap().remove("seconds").unwrap();
        found.push(report.to_string());
    }
    found
}

/// Writes tab-separated text. With `--input-format tsv`, it is read line by line, not as CSV.
fn with_tabs(dir: &Path, library: &Path) {
    let other =
        "generate ad-events --rows 90000 --rows-per-file 90000 --file-format csv --seed 3 --out {}/other";
    on(1, library, &arguments(dir, other));
    let text = std::fs::read_to_string(dir.join("other/ad-events-0000.csv")).unwrap();
    assert!(!text.contains(['"', '\\', '\t']));
    std::fs::create_dir(dir.join("tabs")).unwrap();
    std::fs::write(dir.join("tabs/ad-events.tsv"), text.replace(',', "\t")).unwrap();
}

#[test]
fn sixteen_cores_do_what_one_core_does() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let library = library();
    let exports =
        "generate ad-events --rows 150000 --rows-per-file 120000 --duplicate-share 0.02 --out {}/exports";
    on(1, &library, &arguments(dir, exports));
    // Long enough for text that other threads convert.
    let texts =
        "generate ad-events --rows 90000 --rows-per-file 90000 --file-format csv --seed 2 --out {}/texts";
    on(1, &library, &arguments(dir, texts));
    with_tabs(dir, &library);
    let (one, sixteen) = (work(1, &library, dir), work(16, &library, dir));
    assert_eq!(one.len(), sixteen.len());
    for (one, sixteen) in one.iter().zip(&sixteen) {
        assert!(one == sixteen, "{one}\n---\n{sixteen}");
    }
}
