//! Losses of power after a second writer has finished the work of a first one.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use evenkeel::maintenance::{CheckScope, CleanOptions};
use evenkeel::storage::TableStorage;
use evenkeel::units::Micros;
use evenkeel::{Table, TableError};

use crate::crash::disk::{FAULTS, Fault, FaultyDisk};
use crate::crash::work::{Case, Template, Work, cases, expected, ingest, rows, spec};
use crate::crash::{copy, on, tell};

/// A process dies or fails at every step, another one does the work again and is acknowledged, and
/// then the power is cut: what it was acknowledged for is there, whoever made the directories and
/// files that it rests on.
async fn power_is_cut_after_another_writer(template: &Path, case: &Case, second_work: Work) -> usize {
    let scratch = tempfile::tempdir().unwrap();
    let count = FaultyDisk::new(usize::MAX, None);
    let path = scratch.path().join("count");
    copy(template, &path);
    (case.work)(on(&path, count.clone())).await.unwrap();
    // A death before a step is one after the step before it, but for the first.
    let faults = [Fault::KillAfter, Fault::FailAfter];
    let mut points = 0;
    for (step, fault) in (0..count.steps()).flat_map(|step| faults.map(|fault| (step, fault))) {
        let what = format!("{}: {fault:?} at step {step}, then another writer", case.name);
        let path = scratch.path().join(format!("{step}{fault:?}"));
        copy(template, &path);
        let first = FaultyDisk::new(step, Some(fault));
        let _ = (case.work)(on(&path, first.clone())).await;
        let second = first.after_death();
        second_work(on(&path, second.clone())).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        second.lose_power();
        let table = Table::open(&path).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = rows(&table).await;
        // The same work is done by then; other work leaves the table as it is before or after.
        let done = std::ptr::fn_addr_eq(second_work, case.work);
        assert!(found == case.after || (!done && case.may_leave(&found)), "{what}: {found:?}");
        assert!(table.check(CheckScope::OneVersion, &|_| {}).await.unwrap().damaged.is_empty(), "{what}");
        fs::remove_dir_all(&path).unwrap();
        points += 1;
    }
    points
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_second_writer_acknowledges_rests_on_nothing_that_the_first_left_unsynced() {
    let dir = tempfile::tempdir().unwrap();
    let mut points = 0;
    let mut cases = cases();
    // A table without a row yet: the directories of its partitions are made by the work itself.
    cases.push(Case {
        name: "first ingest",
        template: Template::Empty,
        work: |storage| Box::pin(async { ingest(&mut Table::open_at(storage).await?, 50..90, 4).await }),
        before: Vec::new(),
        after: expected(&[(50..90, 4)]),
        gradual: false,
    });
    for case in cases {
        let template = dir.path().join(case.name);
        case.prepare(TableStorage::create_local(&template).unwrap()).await;
        points += power_is_cut_after_another_writer(&template, &case, case.work).await;
        // Who cleans deletes what a commit of another process made superfluous.
        if !matches!(case.name, "compaction" | "compaction with expiry" | "export to a Delta log") {
            continue;
        }
        points += power_is_cut_after_another_writer(&template, &case, |storage| {
            Box::pin(async {
                let unnamed_age = Micros::new(1);
                let all = CleanOptions { keep: None, unnamed_age, ..CleanOptions::default() };
                Table::open_at(storage).await?.clean(&all).await.map(|_| ())
            })
        })
        .await;
    }
    tell(&format!("{points} deaths before another writer and a loss of power"));
    assert!(points > 200, "{points}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_declared_lasts_with_the_directories_above_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let create = async |path: &Path, disk: Arc<FaultyDisk>| -> Result<(), TableError> {
        let mut table = Table::create_at(TableStorage::create_local_on(path, disk)?, &spec(2)).await?;
        ingest(&mut table, 0..20, 1).await
    };
    let count = FaultyDisk::new(usize::MAX, None);
    create(&root.join("count/above/t"), count.clone()).await.unwrap();
    count.lose_power();
    let found = rows(&Table::open(&root.join("count/above/t")).await.unwrap()).await;
    assert_eq!(found, expected(&[(0..20, 1)]), "power lost after it");
    let mut points = 0;
    for (step, fault) in (0..count.steps()).flat_map(|step| FAULTS.map(|fault| (step, fault))) {
        let what = format!("{fault:?} at step {step}");
        let path = root.join(format!("{step}{fault:?}/above/t"));
        let first = FaultyDisk::new(step, Some(fault));
        let outcome = create(&path, first.clone()).await;
        let second = first.after_death();
        // It is declared already if the first one came that far.
        let again = match Table::open_at(
            TableStorage::local_on(&path, second.clone())
                .unwrap_or_else(|_| TableStorage::create_local_on(&path, second.clone()).unwrap()),
        )
        .await
        {
            Ok(mut table) => ingest(&mut table, 0..20, 1).await,
            Err(_) => create(&path, second.clone()).await,
        };
        again.unwrap_or_else(|error| panic!("{what}: {error} after {outcome:?}"));
        second.lose_power();
        let table = Table::open(&path).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(rows(&table).await, expected(&[(0..20, 1)]), "{what}");
        points += 1;
    }
    tell(&format!("declaring a table: {points} points"));
}
