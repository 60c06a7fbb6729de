//! Every step of a disk fails, tears or is the last one before a crash: the table opens, has
//! exactly the acknowledged rows, and finishing the work gives the right table.

mod disk;
mod steps;
mod work;
mod writers;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use evenkeel::storage::{Disk, TableStorage};

pub(crate) use crate::crash::work::{Case, batch, cases, rows, spec};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn on(path: &Path, disk: Arc<dyn Disk>) -> TableStorage {
    TableStorage::local_on(path, disk).unwrap()
}

/// Tells it also where the output of tests that pass is not shown.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
