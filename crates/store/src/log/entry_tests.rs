//! Commits as bytes: read back, damaged, and in newer formats.

use super::*;

fn info(format: u32) -> LogEntry {
    LogEntry::Commit(CommitInfo {
        format,
        version: Version(3),
        id: "x".into(),
        operation: Operation::Upsert,
        at_micros: 0,
    })
}

fn read(bytes: &[u8]) -> Result<Vec<LogEntry>, LogError> {
    read_entries("t", Version(3), bytes)
}

#[test]
fn a_commit_is_read_back_as_written() {
    let entries = vec![info(1), LogEntry::Remove { path: "p".into() }];
    assert_eq!(read(&write_entries(&entries).unwrap()).unwrap(), entries);
}

#[test]
fn every_cut_and_every_flipped_bit_is_found() {
    let bytes = write_entries(&[info(1), LogEntry::Remove { path: "partition=0001/a".into() }]).unwrap();
    // Without its last line break the commit is still complete.
    for end in 0..bytes.len() - 1 {
        assert!(read(&bytes[..end]).is_err(), "cut at {end}");
    }
    for position in 0..bytes.len() - 1 {
        let mut flipped = bytes.clone();
        flipped[position] ^= 1;
        assert!(read(&flipped).is_err(), "flipped at {position}");
    }
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    let newer = FORMAT_VERSION + 1;
    let bytes = write_entries(&[info(newer)]).unwrap();
    assert!(matches!(read(&bytes), Err(LogError::Newer { found, .. }) if found == newer));
    let unknown = [bytes.split(|b| *b == b'\n').next().unwrap(), b"\n{\"novel\":1}\n"].concat();
    assert!(matches!(read(&unknown), Err(LogError::Newer { found, .. }) if found == newer));
    let operation = String::from_utf8(bytes).unwrap().replace("upsert", "novel");
    assert!(matches!(read(operation.as_bytes()), Err(LogError::Newer { .. })));
}

#[test]
fn a_commit_in_the_place_of_another_is_refused() {
    let bytes = write_entries(&[info(1)]).unwrap();
    assert!(matches!(read_entries("t", Version(4), &bytes), Err(LogError::Damaged { line: 1, .. })));
}

#[test]
fn only_commits_are_taken_for_commits() {
    assert_eq!(commit_version("00000000000000000007.json"), Some(Version(7)));
    for name in ["7.json", "00000000000000000007.json.tmp", "0000000000000000000x.json", ".staging-1"] {
        assert_eq!(commit_version(name), None, "{name}");
    }
    assert_eq!(commit_path(Version(7)), "_log/00000000000000000007.json");
}
