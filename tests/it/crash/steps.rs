//! Faults at every step of every kind of work.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use evenkeel::maintenance::{CheckScope, CleanOptions};
use evenkeel::storage::{Disk, SystemDisk, TableStorage};
use evenkeel::table::TableDefinition;
use evenkeel::units::{ByteSize, Micros, PartitionCount};
use evenkeel::{Table, TableError};

use crate::crash::disk::{FAULTS, FaultyDisk};
use crate::crash::work::{Case, cases, expected, ingest, rows, spec};
use crate::crash::{copy, on, tell};

/// Runs the work with every fault at every step; gives the number of points tried.
async fn crash_everywhere(template: &Path, case: &Case) -> usize {
    let scratch = tempfile::tempdir().unwrap();
    let count = FaultyDisk::new(usize::MAX, None);
    let path = scratch.path().join("count");
    copy(template, &path);
    (case.work)(on(&path, count.clone())).await.unwrap();
    assert_eq!(rows(&Table::open(&path).await.unwrap()).await, case.after, "{}", case.name);
    // What was acknowledged survives the machine.
    count.lose_power();
    assert_eq!(
        rows(&Table::open(&path).await.unwrap()).await,
        case.after,
        "{}: power lost after it",
        case.name
    );
    let (mut points, mut reached) = (1, [0, 0]);
    for (step, fault) in (0..count.steps()).flat_map(|step| FAULTS.map(|fault| (step, fault))) {
        let what = format!("{}: {fault:?} at step {step}", case.name);
        let path = scratch.path().join(format!("{step}{fault:?}"));
        copy(template, &path);
        let outcome = (case.work)(on(&path, FaultyDisk::new(step, Some(fault)))).await;
        let table = Table::open(&path).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = rows(&table).await;
        match outcome {
            Ok(()) => assert_eq!(found, case.after, "{what}: acknowledged"),
            Err(_) => assert!(case.may_leave(&found), "{what}: {found:?}"),
        }
        reached[usize::from(found == case.after)] += 1;
        (case.work)(on(&path, Arc::new(SystemDisk)))
            .await
            .unwrap_or_else(|error| panic!("{what}: again: {error}"));
        let mut table = Table::open(&path).await.unwrap();
        assert_eq!(rows(&table).await, case.after, "{what}: done again");
        assert!(table.check(CheckScope::OneVersion, &|_| {}).await.unwrap().damaged.is_empty(), "{what}");
        let all = CleanOptions { keep: None, unnamed_age: Micros::new(1), ..CleanOptions::default() };
        std::thread::sleep(std::time::Duration::from_micros(50));
        table.clean(&all).await.unwrap();
        table.refresh().await.unwrap();
        assert_eq!(rows(&table).await, case.after, "{what}: cleaned");
        let left: BTreeSet<String> =
            table.storage().list_all().await.unwrap().into_iter().map(|f| f.path).collect();
        let named = table.snapshot().portion_count();
        let portions = left.iter().filter(|path| path.starts_with("partition=")).count();
        assert_eq!(portions, named, "{what}: {left:?}");
        fs::remove_dir_all(&path).unwrap();
        points += 1;
    }
    if case.before != case.after {
        assert!(reached[0] > points / 4 && reached[1] > 5, "{}: {reached:?}", case.name);
    }
    points
}

/// A table of so many commits.
async fn template(path: &Path, commits: &[(Range<i64>, i64)]) {
    let mut table = Table::create(path, &spec(2)).await.unwrap();
    for (keys, value) in commits {
        ingest(&mut table, keys.clone(), *value).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_every_kind_of_work_may_be_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let mut points = 0;
    for case in cases() {
        let template = dir.path().join(case.name);
        case.prepare(TableStorage::create_local(&template).unwrap()).await;
        let tried = crash_everywhere(&template, &case).await;
        tell(&format!("{}: {tried} crash points", case.name));
        points += tried;
    }
    tell(&format!("{points} crash points in all"));
    assert!(points > 400, "{points}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_of_a_repartitioning_may_be_the_last() {
    let dir = tempfile::tempdir().unwrap();
    let commits = [(0..40, 1), (20..60, 2)];
    let source = dir.path().join("source");
    template(&source, &commits).await;
    let table = Table::open(&source).await.unwrap();
    let change = |definition: &mut TableDefinition| definition.partitions = PartitionCount::new(4).unwrap();
    let plan = table.plan_repartition(change, &|_| {}).await.unwrap();
    let run = async |target: &Path, disk: Arc<dyn Disk>| -> Result<Table, TableError> {
        fs::create_dir_all(target).unwrap();
        let into = TableStorage::local_on(target, disk)?;
        table.repartition(&plan, into, ByteSize::mib(256), &Arc::default(), &|_| {}).await
    };
    let count = FaultyDisk::new(usize::MAX, None);
    run(&dir.path().join("count"), count.clone()).await.unwrap();
    let mut points = 0;
    for (step, fault) in (0..count.steps()).flat_map(|step| FAULTS.map(|fault| (step, fault))) {
        let what = format!("{fault:?} at step {step}");
        let target = dir.path().join(format!("{step}{fault:?}"));
        let outcome = run(&target, FaultyDisk::new(step, Some(fault))).await;
        let reached = match Table::open(&target).await {
            Ok(table) => rows(&table).await,
            Err(_) => Vec::new(),
        };
        let complete = reached == expected(&commits);
        assert!(complete || (reached.is_empty() && outcome.is_err()), "{what}: {reached:?}");
        if !complete {
            let again =
                run(&target, Arc::new(SystemDisk)).await.unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(rows(&again).await, expected(&commits), "{what}");
        }
        points += 1;
    }
    assert_eq!(rows(&table).await, expected(&commits));
    tell(&format!("repartitioning: {points} crash points"));
}
