//! Other numbers of partitions and other types with which a function spreads the same keys evenly.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use arrow::array::ArrayRef;
use serde::Serialize;

use crate::lint::domain::{Domain, OtherType};
use crate::lint::spread::{HashSpread, Workers};
use crate::lint::{LintError, LintOptions, fail_if_stopped};
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::{PartitionCount, PartitionId};
use evenkeel_placement::placement::{Placement, PlacementError};

/// Numbers of partitions on either side that are tried in place of one that aliases.
const NEAR: u32 = 64;
/// Maximum number of alternatives shown.
const SHOWN: usize = 3;

/// Another number of partitions, or another type, with which the function spreads the keys evenly.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LintAlternative {
    /// Description: `511 partitions`, `type Utf8`.
    pub words: String,
    /// Type; `None` for another number of partitions.
    #[serde(skip)]
    pub column_type: Option<ColumnType>,
    /// Spread of the keys under the alternative.
    #[serde(flatten)]
    pub spread: HashSpread,
}

/// Keys whose placement is tried.
pub(super) struct Trial<'k> {
    domain: &'k Domain,
    options: &'k LintOptions,
    hashes: Vec<u64>,
}

impl<'k> Trial<'k> {
    pub(super) fn new(domain: &'k Domain, options: &'k LintOptions) -> Result<Self, PlacementError> {
        let hashes = options.function.hash(&domain.types, &domain.columns)?;
        Ok(Self { domain, options, hashes })
    }

    /// Places the keys in `count` partitions.
    pub(super) fn place(&self, count: PartitionCount) -> Result<Vec<PartitionId>, PlacementError> {
        self.place_as(&self.domain.types, &self.domain.columns, &self.hashes, count)
    }

    fn place_as(
        &self,
        types: &[ColumnType],
        columns: &[ArrayRef],
        hashes: &[u64],
        count: PartitionCount,
    ) -> Result<Vec<PartitionId>, PlacementError> {
        let placement = Placement::new(self.options.function, count, types.to_vec());
        let mut partitions = Vec::with_capacity(hashes.len());
        placement.assign_hashes(hashes, columns, &mut partitions)?;
        Ok(partitions)
    }

    /// Tries numbers of partitions near the requested one, the nearest first; with workers, only
    /// multiples of their number.
    pub(super) fn other_counts(&self, stop: &AtomicBool) -> Result<Vec<LintAlternative>, LintError> {
        let requested = self.options.partitions.get();
        let unit = self.options.workers.unwrap_or(1).max(1);
        let near = (1..=NEAR)
            .flat_map(|step| [requested.checked_add(step), requested.checked_sub(step)])
            .flatten()
            .map(|count| count.div_ceil(unit) * unit)
            .filter(|count| *count > 1 && *count >= requested / 2 && *count != requested);
        let (mut alternatives, mut tried) = (Vec::new(), BTreeSet::new());
        for count in near {
            if alternatives.len() == SHOWN {
                break;
            }
            fail_if_stopped(stop)?;
            if !tried.insert(count) {
                continue;
            }
            let Ok(count) = PartitionCount::new(u64::from(count)) else { continue };
            let placed = self.place(count)?;
            let spread = HashSpread::from_placed(&placed, count);
            let of_workers = Workers::new(unit, count, &placed, None);
            if !spread.is_defective() && !of_workers.spread.is_defective() {
                let words = format!("{} partitions", count.get());
                alternatives.push(LintAlternative { words, column_type: None, spread });
            }
        }
        Ok(alternatives)
    }

    /// Tries other types. Returns the types that help, and all types that the function accepts.
    pub(super) fn other_types(
        &self,
        stop: &AtomicBool,
    ) -> Result<(Vec<LintAlternative>, Vec<String>), LintError> {
        let (mut alternatives, mut tried) = (Vec::new(), Vec::new());
        let count = self.options.partitions;
        for OtherType { words, column_type, types, columns } in self.domain.other_types() {
            fail_if_stopped(stop)?;
            let hashes = self.options.function.hash(&types, &columns);
            // A type that the function does not accept is no alternative.
            let Ok(placed) = hashes.and_then(|hashes| self.place_as(&types, &columns, &hashes, count)) else {
                continue;
            };
            let spread = HashSpread::from_placed(&placed, count);
            if !spread.is_defective() {
                let (words, column_type) = (words.clone(), Some(column_type));
                alternatives.push(LintAlternative { words, column_type, spread });
            }
            tried.push(words);
        }
        Ok((alternatives, tried))
    }
}
