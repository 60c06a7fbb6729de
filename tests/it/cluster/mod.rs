//! Work on a cluster of processes gives what the same work gives here.

mod access;
mod evaluation;
mod ingests;
mod queries;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::common::{Run, arguments, evenkeel};

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
