//! Inputs and moments at the edge: each of these was once answered wrongly.

mod ingests;
mod inputs;
mod results;

use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::{Run, evenkeel};

const CREATE: &str = "create {}/t --column k:int64:not-null --column v:utf8 --primary-key k --partitions 2";

fn start(dir: &Path, arguments: &[&str]) -> Child {
    let mut command = evenkeel();
    command.arg("ingest").arg(dir.join("t")).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn piped(dir: &Path, arguments: &[&str], bytes: &[u8]) -> Run {
    let mut child = start(dir, arguments);
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    Run::from(child.wait_with_output().unwrap())
}
