//! Checks of a table after all acts have ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use evenkeel::delta::DeltaLog;
use evenkeel::maintenance::CheckScope;
use evenkeel::units::Version;
use evenkeel::{Table, TableError};
use object_store::ObjectStore;

use crate::crash::rows;
use crate::interleavings::acts::Act::{self, Compact, Export, Sweep, Upsert};
use crate::interleavings::{storage, whole};

/// What became of the acts.
pub(super) struct Outcomes<'a> {
    pub(super) what: &'a str,
    pub(super) acts: Vec<Act>,
    pub(super) ended: Vec<(Act, Result<(), TableError>)>,
}

impl Outcomes<'_> {
    /// The keys that must be in the table, and those that may, if it had the first ones before.
    fn keys(&self, first: i64) -> (BTreeSet<i64>, BTreeSet<i64>) {
        let mut sure: BTreeSet<i64> = (0..first).collect();
        let mut possible = sure.clone();
        for (act, outcome) in &self.ended {
            let others: Vec<Act> = self.acts.iter().copied().filter(|other| other != act).collect();
            if let Err(error) = outcome {
                assert!(act.may_fail(&others), "{}: {act:?} fails: {error}", self.what);
            }
            possible.extend(act.adds());
            sure.extend(act.adds().filter(|_| outcome.is_ok()));
            if let Some(key) = act.takes() {
                sure.remove(&key);
                if outcome.is_ok() {
                    possible.remove(&key);
                }
            }
        }
        (sure, possible)
    }
}

/// Looks at all that the acts left, and works on with it.
pub(super) async fn verify(store: &Arc<dyn ObjectStore>, keys: i64, outcomes: Outcomes<'_>) {
    let what = outcomes.what;
    let (mut sure, possible) = outcomes.keys(keys);
    for round in 0..2 {
        let mut table =
            Table::open_at(storage(store.clone())).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        let found: BTreeSet<i64> = rows(&table).await.into_iter().map(|(key, _)| key).collect();
        assert!(found.is_superset(&sure), "{what}, round {round}: {found:?} lacks some of {sure:?}");
        assert!(found.iter().all(|key| possible.contains(key) || *key >= 9_000), "{what}: {found:?}");
        let check = table.check(CheckScope::EveryVersion, &|_| {}).await.unwrap();
        assert!(check.damaged.is_empty() && check.damaged_log.is_empty(), "{what}: {check:?}");
        // The oldest ones are those that a cleaning may have left unreadable.
        for version in (check.oldest_version.0..=check.version.0).take(4) {
            let old = table.log().at(Version(version)).await;
            old.unwrap_or_else(|error| panic!("{what}: version {version}: {error}"));
        }
        if let Some(exported) = DeltaLog::in_storage(table.storage()).newest().await.unwrap() {
            for file in exported.files() {
                assert!(table.storage().exists(file).await.unwrap(), "{what}: exported {file} is gone");
            }
        }
        // Whoever comes next.
        let more = 9_000 + round;
        for act in [Upsert(more), Compact, Export, Sweep] {
            whole(store, act, what).await.unwrap_or_else(|error| panic!("{what}: then {act:?}: {error}"));
        }
        table.refresh().await.unwrap();
        sure.insert(more);
    }
}
