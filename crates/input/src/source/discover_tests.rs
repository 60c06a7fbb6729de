//! Files that arguments stand for: folders, globs and standard input.

use super::*;
use crate::source::file_name::is_tab_separated;
use crate::source::format::InputFormat;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("b/_old")).unwrap();
    for file in ["z.csv", "b/a.parquet", "b/notes.txt", "b/.c.csv", "b/_old/x.json", "y.NDJSON.gz"] {
        std::fs::write(folder.path().join(file), "x").unwrap();
    }
    folder
}

fn names(arguments: &[String]) -> Vec<String> {
    find_inputs(arguments, None)
        .unwrap()
        .paths
        .into_iter()
        .map(|input| match input {
            InputPath::File(path) => path.file_name().unwrap().to_string_lossy().into_owned(),
            _ => "-".to_owned(),
        })
        .collect()
}

#[test]
fn folders_give_known_files_sorted_and_nothing_hidden() {
    let folder = folder();
    assert_eq!(names(&[folder.path().display().to_string()]), ["a.parquet", "y.NDJSON.gz", "z.csv"]);
}

#[test]
fn globs_files_and_stdin_keep_their_order_and_come_once() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).display().to_string();
    assert_eq!(
        names(&[at("z.csv"), "-".into(), at("*.csv"), at("b/notes.txt")]),
        ["z.csv", "-", "notes.txt"]
    );
}

#[test]
fn what_is_left_out_is_noted_and_links_in_a_circle_end() {
    let folder = folder();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path(), folder.path().join("b/up")).unwrap();
    let inputs = find_inputs(&[folder.path().join("*").display().to_string()], None).unwrap();
    assert_eq!(inputs.notes[0].code(), "files_left_out");
    assert!(inputs.notes[0].text().contains("1 file with unknown extensions left out"), "{:?}", inputs.notes);
    assert!(inputs.paths.iter().any(|p| matches!(p, InputPath::File(p) if p.ends_with("b/a.parquet"))));
    assert!(inputs.paths.len() < 10, "{:?}", inputs.paths);
}

#[test]
fn an_argument_that_names_nothing_is_refused() {
    let folder = folder();
    let at = |name: &str| vec![folder.path().join(name).display().to_string()];
    assert!(matches!(find_inputs(&at("nope.csv"), None), Err(SourceError::NotFound { .. })));
    assert!(matches!(find_inputs(&at("*.nope"), None), Err(SourceError::NoMatch { .. })));
    assert!(matches!(find_inputs(&["-".into(), "-".into()], None), Err(SourceError::StdinTwice)));
}

#[test]
fn endings_tell_formats() {
    for (name, format) in [
        ("a.parquet", Some(InputFormat::Parquet)),
        ("a.CSV.gz", Some(InputFormat::Csv)),
        ("a.tsv.zst", Some(InputFormat::Csv)),
        ("a.jsonl", Some(InputFormat::Ndjson)),
        ("a.feather", Some(InputFormat::Arrow)),
        ("a.gz", None),
        ("csv", None),
    ] {
        assert_eq!(format_of_name(Path::new(name)), format, "{name}");
    }
    assert!(is_tab_separated(Path::new("x/a.tsv.gz")));
    assert!(!is_tab_separated(Path::new("x.tsv/a.csv")));
}

#[test]
fn a_table_is_no_input_and_neither_is_an_address() {
    let folder = folder();
    std::fs::create_dir_all(folder.path().join("b/_log")).unwrap();
    let at = vec![folder.path().display().to_string()];
    assert!(matches!(find_inputs(&at, None), Err(SourceError::Table { .. })));
    assert!(matches!(
        find_inputs(&["http://b/x.parquet".to_owned()], None),
        Err(SourceError::Storage { .. })
    ));
}
