//! Histories of commits, cleanings and damage.

use std::sync::Arc;

use object_store::memory::InMemory;

use super::checkpoint::checkpoint_path;
use super::entry::commit_path;
use super::*;
use evenkeel_model::table::{
    Column, ColumnType, KeyRange, KeyValue, PlacementFunction, TableDefinition, TableSpec,
};
use evenkeel_model::units::{PartitionCount, PartitionId, Version};
use evenkeel_storage::TableStorage;

fn spec() -> TableSpec {
    TableSpec::new(TableDefinition {
        name: "t".into(),
        columns: vec![Column::required("k", ColumnType::Int64)],
        primary_key: vec!["k".into()],
        partition_key: vec![],
        partitions: PartitionCount::new(2).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    })
    .unwrap()
}

fn portion(path: &str, partition: u32) -> PortionEntry {
    let key_range = KeyRange { min: vec![KeyValue::Int(0)], max: vec![KeyValue::Int(9)] };
    PortionEntry {
        path: path.into(),
        partition: PartitionId(partition),
        sequence: Sequence { version: Version(0), ordinal: 0 },
        rows: 10,
        bytes: 100,
        column_ranges: vec![key_range.clone()],
        key_range,
        xxh3: String::new(),
        deletes: false,
    }
}

fn draft(path: &str) -> CommitDraft {
    let source = SourceEntry { name: path.into(), bytes: 1, xxh3: path.into(), rows: 10, rejected: 0 };
    CommitDraft::rows(Operation::Upsert, vec![portion(path, 1)], vec![source])
}

async fn table() -> (TableLog, Snapshot) {
    let storage = TableStorage::new(Arc::new(InMemory::new()), "tables/t".into());
    TableLog::create(storage, &spec()).await.unwrap()
}

#[tokio::test]
async fn commits_are_folded_in_order() {
    let (log, first) = table().await;
    let CommitOutcome::Committed(second) = log.try_commit(&first, &draft("a")).await.unwrap() else {
        panic!()
    };
    let CommitOutcome::Committed(_) = log.try_commit(&second, &draft("b")).await.unwrap() else { panic!() };
    let (_, opened) = TableLog::open(log.storage().clone()).await.unwrap();
    assert_eq!(opened.version(), Version(2));
    assert_eq!(opened.portions().iter().map(|p| p.path.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(opened.portions()[1].sequence, Sequence { version: Version(2), ordinal: 0 });
    assert_eq!(opened.source_version("b"), Some(Version(2)));
    assert_eq!(opened.commits()[2].rows_per_partition, [0, 10]);
    assert_eq!(opened.spec().as_ref(), &spec());
}

#[tokio::test]
async fn of_two_writers_one_loses_and_sees_the_other() {
    let (log, first) = table().await;
    log.try_commit(&first, &draft("a")).await.unwrap();
    let CommitOutcome::Lost(newest) = log.try_commit(&first, &draft("b")).await.unwrap() else { panic!() };
    assert_eq!(newest.source_version("a"), Some(Version(1)));
    let CommitOutcome::Committed(last) = log.try_commit(&newest, &draft("b")).await.unwrap() else {
        panic!()
    };
    assert_eq!(last.portions().len(), 2);
}

#[tokio::test]
async fn a_commit_that_meets_itself_is_not_made_twice() {
    let (log, first) = table().await;
    let draft = draft("a");
    log.try_commit(&first, &draft).await.unwrap();
    let CommitOutcome::Committed(again) = log.try_commit(&first, &draft).await.unwrap() else { panic!() };
    assert_eq!(again.version(), Version(1));
    assert_eq!(again.portions().len(), 1);
}

#[tokio::test]
async fn a_second_table_in_one_place_is_refused() {
    let (log, _) = table().await;
    assert!(matches!(TableLog::create(log.storage().clone(), &spec()).await, Err(LogError::Exists { .. })));
    let other = TableStorage::new(Arc::new(InMemory::new()), "".into());
    other.put_new("notes.txt", "x".into()).await.unwrap();
    assert!(matches!(TableLog::create(other.clone(), &spec()).await, Err(LogError::NotEmpty { .. })));
    assert!(matches!(TableLog::open(other).await, Err(LogError::NotATable { .. })));
}

#[tokio::test]
async fn a_missing_commit_is_named() {
    let (log, first) = table().await;
    let CommitOutcome::Committed(second) = log.try_commit(&first, &draft("a")).await.unwrap() else {
        panic!()
    };
    log.try_commit(&second, &draft("b")).await.unwrap();
    log.storage().delete(&commit_path(Version(1))).await.unwrap();
    let error = log.newest().await.unwrap_err();
    assert!(error.to_string().contains("restore _log/00000000000000000001.json"), "{error}");
}

async fn commit(log: &TableLog, base: &Snapshot, draft: &CommitDraft) -> Snapshot {
    match log.try_commit(base, draft).await.unwrap() {
        CommitOutcome::Committed(snapshot) => snapshot,
        CommitOutcome::Lost(newest) => panic!("lost to version {}", newest.version()),
    }
}

/// Creates a table with `commits` commits of one portion each.
async fn grown(commits: u64) -> (TableLog, Snapshot) {
    let (log, mut snapshot) = table().await;
    for number in 0..commits {
        snapshot = commit(&log, &snapshot, &draft(&format!("p{number}"))).await;
    }
    (log, snapshot)
}

fn same(a: &Snapshot, b: &Snapshot) {
    assert_eq!(a.version(), b.version());
    assert_eq!(a.portions(), b.portions());
    assert_eq!(a.commits(), b.commits());
    assert_eq!(a.sources(), b.sources());
    assert_eq!(a.spec(), b.spec());
}

#[tokio::test]
async fn a_checkpoint_holds_what_the_commits_hold() {
    let (log, written) = grown(130).await;
    let files = log.files().await.unwrap();
    assert_eq!(files.checkpoints, [Version(64), Version(128)]);
    same(&log.newest().await.unwrap(), &written);
    assert_eq!(log.newest().await.unwrap().portion_count(), 130);
    for path in [checkpoint_path(Version(64)), checkpoint_path(Version(128))] {
        log.storage().delete(&path).await.unwrap();
    }
    same(&log.newest().await.unwrap(), &written);
}

#[tokio::test]
async fn a_damaged_checkpoint_is_passed_over_while_the_commits_are_there() {
    let (log, written) = grown(70).await;
    let path = checkpoint_path(Version(64));
    let mut bytes = log.storage().read(&path).await.unwrap().to_vec();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    log.storage().delete(&path).await.unwrap();
    log.storage().put_new(&path, bytes.into()).await.unwrap();
    same(&log.newest().await.unwrap(), &written);
    log.storage().delete(&commit_path(Version(3))).await.unwrap();
    let error = log.newest().await.unwrap_err().to_string();
    assert!(error.contains("commit 3 is missing"), "{error}");
}

#[tokio::test]
async fn what_is_cleaned_away_is_refused_and_the_rest_opens() {
    let (log, written) = grown(10).await;
    let kept = log.up_to(Some(Version(7))).await.unwrap();
    assert!(log.checkpoint(&kept).await.unwrap());
    assert_eq!(log.forget_before(Version(7)).await.unwrap(), 7);
    same(&log.newest().await.unwrap(), &written);
    assert_eq!(log.up_to(Some(Version(8))).await.unwrap().portion_count(), 8);
    assert_eq!(log.up_to(Some(Version(7))).await.unwrap().portions(), kept.portions());
    let error = log.up_to(Some(Version(3))).await.unwrap_err().to_string();
    assert!(error.contains("version 3 was cleaned away; the oldest that is kept is 7"), "{error}");
}

#[tokio::test]
async fn a_writer_that_slept_while_the_log_was_cleaned_is_not_lost() {
    let (log, _) = grown(10).await;
    let asleep = log.up_to(Some(Version(2))).await.unwrap();
    log.checkpoint(&log.newest().await.unwrap()).await.unwrap();
    log.forget_before(Version(10)).await.unwrap();
    let late = draft("late");
    let CommitOutcome::Lost(newest) = log.try_commit(&asleep, &late).await.unwrap() else { panic!() };
    assert_eq!(newest.version(), Version(10));
    assert_eq!(log.files().await.unwrap().commits, [Version(10)]);
    same(&log.refresh(&asleep).await.unwrap(), &newest);
    let written = commit(&log, &newest, &late).await;
    assert_eq!(written.version(), Version(11));
    assert!(written.portion("late").is_some());
}

#[tokio::test]
async fn what_another_sleeper_left_is_not_taken_for_the_log() {
    let (log, newest) = grown(5).await;
    let asleep = log.up_to(Some(Version(2))).await.unwrap();
    let further = log.up_to(Some(Version(3))).await.unwrap();
    log.checkpoint(&newest).await.unwrap();
    log.forget_before(Version(5)).await.unwrap();
    // A writer whose base was version 2 died right after its put.
    let stale = write_entries(&draft("stale").entries(Version(3))).unwrap();
    log.storage().put_new(&commit_path(Version(3)), stale.into()).await.unwrap();
    for sleeper in [&asleep, &further] {
        let CommitOutcome::Lost(winner) = log.try_commit(sleeper, &draft("late")).await.unwrap() else {
            panic!()
        };
        same(&winner, &newest);
        same(&log.refresh(sleeper).await.unwrap(), &newest);
    }
    same(&log.newest().await.unwrap(), &newest);
    assert!(commit(&log, &newest, &draft("late")).await.portion("late").is_some());
}

#[tokio::test]
async fn a_damaged_checkpoint_is_written_anew_before_anything_is_forgotten() {
    let (log, newest) = grown(64).await;
    let path = checkpoint_path(Version(64));
    log.storage().replace(&path, "damaged".into()).await.unwrap();
    assert!(log.checkpoint(&newest).await.unwrap());
    log.forget_before(Version(64)).await.unwrap();
    same(&log.newest().await.unwrap(), &newest);
}

#[tokio::test]
async fn a_file_that_was_swept_is_never_committed() {
    let (log, snapshot) = grown(2).await;
    let swept = commit(&log, &snapshot, &CommitDraft::sweep(vec!["late".into()])).await;
    let CommitOutcome::Lost(newest) = log.try_commit(&snapshot, &draft("late")).await.unwrap() else {
        panic!()
    };
    same(&newest, &swept);
    let refused = log.try_commit(&newest, &draft("late")).await.unwrap_err();
    assert!(matches!(refused, LogError::Swept { .. }), "{refused}");
    log.checkpoint(&swept).await.unwrap();
    log.forget_before(swept.version()).await.unwrap();
    assert!(log.newest().await.unwrap().is_swept("late"));
}

#[tokio::test]
async fn merged_portions_keep_their_age_and_the_others_go() {
    let (log, snapshot) = grown(3).await;
    let merged = PortionEntry { sequence: Sequence { version: Version(2), ordinal: 0 }, ..portion("m", 1) };
    let compaction = CommitDraft::compaction(vec!["p0".into(), "p1".into()], vec![merged]);
    let written = commit(&log, &snapshot, &compaction).await;
    let names: Vec<_> = written.portions().iter().map(|p| (p.path.clone(), p.sequence.version.0)).collect();
    assert_eq!(names, [("m".to_owned(), 2), ("p2".to_owned(), 3)]);
    assert_eq!(written.commits()[4].removed, 2);
    same(&log.newest().await.unwrap(), &written);
    let again = log.try_commit(&written, &CommitDraft::compaction(vec!["p0".into()], vec![])).await;
    assert!(again.unwrap_err().to_string().contains("p0 is removed but was not visible"));
    same(&log.newest().await.unwrap(), &written);
}

#[tokio::test]
async fn a_column_that_takes_null_can_be_added_and_nothing_else_changed() {
    let (log, snapshot) = grown(1).await;
    let mut definition = snapshot.spec().definition().clone();
    definition.columns.push(Column::nullable("more", ColumnType::Utf8));
    let altered = snapshot.spec().altered(definition.clone()).unwrap();
    let written = commit(&log, &snapshot, &CommitDraft::alter(&altered)).await;
    assert_eq!(written.spec().columns().len(), 2);
    same(&log.newest().await.unwrap(), &written);
    assert_eq!(log.up_to(Some(Version(1))).await.unwrap().spec().columns().len(), 1);
    for (change, expected) in [
        (
            &(|d: &mut TableDefinition| d.columns.push(Column::required("x", ColumnType::Int64)))
                as &dyn Fn(&mut TableDefinition),
            "cannot be added as NOT NULL",
        ),
        (&|d| d.partitions = PartitionCount::new(4).unwrap(), "evenkeel repartition"),
        (&|d| d.columns[0].column_type = ColumnType::Uint64, "column 'k' cannot be changed"),
        (&|d| d.columns.truncate(1), "column 'more' cannot be changed"),
        (&|d| d.name = "other".into(), "the name cannot be changed"),
        (&|d| d.placement = PlacementFunction::YdbModulo, "placement function cannot be changed"),
    ] {
        let mut changed = definition.clone();
        change(&mut changed);
        let error = altered.altered(changed).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn of_many_checkpoints_the_last_three_and_every_sixteenth_are_kept() {
    let (log, first) = grown(64).await;
    log.checkpoint(&log.at(Version(7)).await.unwrap()).await.unwrap();
    let mut snapshot = first;
    for number in 64..64 * 21 {
        snapshot = commit(&log, &snapshot, &CommitDraft::sweep(vec![format!("f{number}")])).await;
    }
    let kept = log.files().await.unwrap().checkpoints;
    // 7 is not a regular checkpoint: a cleaning may have made it.
    assert_eq!(kept, [7, 64 * 16, 64 * 19, 64 * 20, 64 * 21].map(Version));
    same(&log.newest().await.unwrap(), &snapshot);
}

#[test]
fn a_cleaning_never_begins_the_log_at_a_regular_checkpoint() {
    for (wanted, beginning) in [(0, 0), (1, 1), (63, 63), (64, 63), (65, 65), (128, 127)] {
        assert_eq!(TableLog::beginning_for(Version(wanted)), Version(beginning));
    }
}

#[tokio::test]
async fn a_damaged_file_in_place_of_the_next_commit_is_an_error_and_stays() {
    let (log, first) = table().await;
    log.storage().put_new(&commit_path(Version(1)), "damaged".into()).await.unwrap();
    let error = log.try_commit(&first, &draft("a")).await.unwrap_err();
    assert!(matches!(&error, LogError::Damaged { file, .. } if *file == commit_path(Version(1))), "{error}");
    assert_eq!(log.storage().read(&commit_path(Version(1))).await.unwrap(), "damaged");
}
