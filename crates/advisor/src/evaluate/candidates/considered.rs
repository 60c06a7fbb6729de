//! Candidates that were considered, each once, with the reason why it was kept or dropped.

use serde::{Deserialize, Serialize};

/// Candidate that was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsideredCandidate {
    /// Columns of the key, in order.
    pub key: Vec<String>,
    /// Whether it is a candidate for the partition key or the primary key.
    #[serde(rename = "role")]
    pub purpose: Purpose,
    /// Whether it is evaluated.
    pub kept: bool,
    /// Reason why it was kept or dropped.
    pub reason: String,
    /// Whether it was dropped because the inspected rows have too few values, and these are not all
    /// rows.
    #[serde(skip)]
    pub(crate) too_few_values: bool,
}

/// Purpose of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Determines the partition of a row.
    PartitionKey,
    /// Determines the order of rows, and makes each one unique.
    PrimaryKey,
}

/// Candidates considered so far, each once.
pub(super) struct Considerations {
    purpose: Purpose,
    pub(super) all: Vec<ConsideredCandidate>,
}

impl Considerations {
    pub(super) fn new(purpose: Purpose) -> Self {
        Self { purpose, all: Vec::new() }
    }

    fn add(&mut self, key: &[&str], kept: bool, reason: String) {
        let key: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
        // The order of the columns of a partition key means nothing.
        let of_partition_key = self.purpose == Purpose::PartitionKey;
        let is_same = |known: &ConsideredCandidate| {
            let has_all = known.key.len() == key.len() && key.iter().all(|name| known.key.contains(name));
            known.key == key || (of_partition_key && has_all)
        };
        match self.all.iter_mut().find(|known| is_same(known)) {
            // A given prefix is evaluated, despite any reasons against it.
            Some(known) if kept && !known.kept => {
                *known = ConsideredCandidate { kept, reason, ..known.clone() }
            }
            Some(_) => {}
            None => self.all.push(ConsideredCandidate {
                key,
                purpose: self.purpose,
                kept,
                reason,
                too_few_values: false,
            }),
        }
    }

    pub(super) fn drop_for_few_values(&mut self, key: &[&str], reason: String, may_change: bool) {
        self.drop(key, reason);
        if let Some(last) = self.all.last_mut().filter(|last| last.key == key) {
            last.too_few_values = may_change;
        }
    }

    pub(super) fn keep(&mut self, key: &[&str], reason: String) {
        self.add(key, true, reason);
    }

    pub(super) fn drop(&mut self, key: &[&str], reason: String) {
        self.add(key, false, reason);
    }
}
