//! Damage to portions and to the log: found, named and left out.

use std::path::Path;

use crate::common::{done, json, run};
use crate::store::{count, portions, table};

/// What a damage makes of the bytes of a file; none where there is no file any more.
type Damage = fn(&[u8]) -> Option<Vec<u8>>;

#[test]
fn damage_is_found_by_checksum_named_and_can_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 1", 3, |commit| {
        (0..10).map(|k| format!("{},v{commit}\n", commit * 10 + k)).collect()
    });
    assert!(done(dir, "check {}/t").contains("3 portions"));
    let whole: Vec<Vec<u8>> = portions(dir).iter().map(|file| std::fs::read(file).unwrap()).collect();
    let damages: [(&str, Damage); 3] = [
        ("its checksum differs", |bytes| {
            let mut bytes = bytes.to_vec();
            let middle = bytes.len() / 3;
            bytes[middle] ^= 0x10;
            Some(bytes)
        }),
        ("bytes instead of", |bytes| Some(bytes[..bytes.len() / 2].to_vec())),
        ("is missing", |_| None),
    ];
    for (expected, damage) in damages {
        let file = &portions(dir)[1];
        match damage(&whole[1]) {
            Some(bytes) => std::fs::write(file, bytes).unwrap(),
            None => std::fs::remove_file(file).unwrap(),
        }
        let name = file.file_name().unwrap().to_str().unwrap();
        let check = run(dir, "check {}/t");
        assert_eq!(check.code, 1, "{expected}");
        assert!(check.stdout.contains(name) && check.stdout.contains(expected), "{}", check.stdout);
        assert!(check.stderr.contains("--skip-damaged"), "{}", check.stderr);
        let sql = "SELECT/**/count(*)/**/FROM/**/t";
        let rest = run(dir, &format!("query {{}}/t --skip-damaged --format csv -c {sql}"));
        assert_eq!((rest.code, rest.stdout.lines().nth(1)), (0, Some("20")), "{}", rest.stderr);
        assert!(
            rest.stderr.contains("left out: 10 rows of partition=0000/") && rest.stderr.contains(name),
            "{}",
            rest.stderr
        );
        // Damage is not compacted into a sound file.
        let compact = run(dir, "compact {}/t --full");
        assert_eq!(compact.code, 1);
        assert!(
            compact.stderr.contains(name) && compact.stderr.contains("was not compacted"),
            "{}",
            compact.stderr
        );
        std::fs::write(file, &whole[1]).unwrap();
        assert_eq!(portions(dir).len(), 3, "what the compaction had stored is gone");
    }
    assert!(done(dir, "check {}/t").contains("0 damaged"));
}

#[test]
fn a_damaged_commit_is_named_and_earlier_versions_are_still_readable() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 1", 3, |commit| format!("{commit},x\n"));
    let file = dir.join("t/_log/00000000000000000003.json");
    let whole = std::fs::read(&file).unwrap();
    for bytes in [whole[..whole.len() / 2].to_vec(), {
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        flipped
    }] {
        std::fs::write(&file, bytes).unwrap();
        let failed = run(dir, "query {}/t SELECT/**/1");
        assert_eq!(failed.code, 1);
        assert!(failed.stderr.contains("_log/00000000000000000003.json is damaged"), "{}", failed.stderr);
        assert_eq!(count(dir, "--version 2"), "2,1,1");
    }
    std::fs::write(&file, whole).unwrap();
    assert_eq!(count(dir, ""), "3,3,1");
}

#[test]
fn the_log_and_every_version_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 1", 66, |commit| format!("{},v{commit}\n", commit % 3));
    done(dir, "compact {}/t --full");
    assert!(done(dir, "check {}/t --all").contains("versions 0 to 67, 67 portions"));
    let log = |name: &str| dir.join("t/_log").join(name);
    let damaged = |expected: &[&str], arguments: &str| {
        let check = run(dir, arguments);
        assert_eq!(check.code, 1, "{arguments}");
        for text in expected {
            assert!(check.stdout.contains(text), "{arguments}: {text}\n{}", check.stdout);
        }
    };
    let flip = |file: &Path| {
        let mut bytes = std::fs::read(file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(file, bytes).unwrap();
    };
    flip(&log("00000000000000000064.checkpoint.json"));
    flip(&log("00000000000000000020.json"));
    std::fs::remove_file(log("00000000000000000030.json")).unwrap();
    // The table cannot be opened any more, until one of them is mended.
    assert_eq!(run(dir, "check {}/t").code, 1);
    flip(&log("00000000000000000064.checkpoint.json"));
    damaged(&["00000000000000000020.json", "00000000000000000030.json", "is missing"], "check {}/t");
    let portion = portions(dir).pop().unwrap();
    flip(&portion);
    damaged(&[portion.file_name().unwrap().to_str().unwrap(), "3 damaged"], "check {}/t --all");
}

#[test]
fn a_damaged_partition_does_not_keep_the_others_from_being_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table(dir, "--partitions 4", 3, |commit| (0..40).map(|k| format!("{k},v{commit}\n")).collect());
    let file = portions(dir).remove(0);
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    let failed = run(dir, "compact {}/t --full");
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains(file.file_name().unwrap().to_str().unwrap()), "{}", failed.stderr);
    std::fs::write(&file, whole).unwrap();
    let overview = json(dir, "inspect {}/t --format json");
    let portions_of = |partition: usize| overview["partitions"][partition]["portions"].as_u64().unwrap();
    assert_eq!([0, 1, 2, 3].map(portions_of), [3, 1, 1, 1]);
    // A query that meets the damage says what to do about it.
    std::fs::write(&file, "no Parquet").unwrap();
    let met = run(dir, "query {}/t SELECT/**/sum(k)/**/FROM/**/t");
    assert!(met.stderr.contains("evenkeel check") && met.stderr.contains("--skip-damaged"), "{}", met.stderr);
}
