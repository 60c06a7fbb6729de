//! Modules import downward only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::project;

/// The layers from the top. A module imports from layers below its own, never from its own or above.
const LAYERS: [&[&str]; 15] = [
    &["main", "cli"],
    &["report"],
    &["bench", "cluster"],
    &["handle"],
    &["overview", "compact", "maintenance", "repartition"],
    &["ingest", "query", "simulate", "lint", "delta"],
    &["evaluate"],
    &["sql"],
    &["source", "log", "generate", "placement"],
    &["text_value", "values", "transform", "merge", "sort", "sketch", "portion", "windows", "capacity"],
    &["sink", "skew", "overlap", "spanner", "note"],
    &["storage", "table", "finding"],
    &["wire"],
    &["units", "numbering"],
    &["bounded"],
];

fn rank(module: &str) -> usize {
    let rank = LAYERS.iter().position(|layer| layer.contains(&module));
    LAYERS.len() - rank.unwrap_or_else(|| panic!("module '{module}' is in no layer; give it one"))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                rust_files(&path)
            } else {
                Vec::from_iter(path.extension().is_some_and(|ending| ending == "rs").then_some(path))
            }
        })
        .collect()
}

/// The top-level modules that a file names after `crate::` or `evenkeel::`, tests left out: they may use anything.
fn imports(text: &str) -> Vec<String> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines
        .flat_map(|line| line.split("crate::").skip(1).map(str::to_owned).collect::<Vec<_>>())
        .map(|rest| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect())
        .collect()
}

#[test]
fn modules_import_downward_only() {
    let source = project("src");
    let mut wrong = Vec::new();
    let mut seen = BTreeMap::new();
    for file in rust_files(&source) {
        let relative = file.strip_prefix(&source).unwrap();
        let first = relative.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        let module = first.trim_end_matches(".rs").to_owned();
        if module == "lib" {
            continue;
        }
        for import in imports(&std::fs::read_to_string(&file).unwrap()) {
            *seen.entry(module.clone()).or_insert(0) += 1;
            // The binary names itself by `crate::cli`.
            if import != module && !(module == "main" && import == "cli") && rank(&import) >= rank(&module) {
                wrong.push(format!("{} imports {import}", relative.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen.len() > 10, "the imports were not found: {seen:?}");
}

#[test]
fn the_library_is_evaluated_without_a_store() {
    for module in ["evaluate", "simulate", "placement", "windows", "skew", "sort", "merge"] {
        for file in rust_files(&project("src").join(module)) {
            for import in imports(&std::fs::read_to_string(&file).unwrap()) {
                assert!(
                    !["log", "portion", "query", "storage"].contains(&import.as_str()),
                    "{}: {import}",
                    file.display()
                );
            }
        }
    }
}
