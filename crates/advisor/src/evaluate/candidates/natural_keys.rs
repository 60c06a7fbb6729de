//! Natural keys: sets of columns that distinguish the rows, and not by chance.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat;

use crate::evaluate::candidates::sampled_columns::{SampledColumns, distinct_together};
use crate::evaluate::candidates::unique_keys::{minimal_unique, rows_once};
use crate::evaluate::figures::uniqueness::{UniqueBy, Uniqueness};
use crate::evaluate::roles::Role;
use crate::evaluate::roles::profile::Profile;

/// Repeats expected by chance from which finding none is evidence of a natural key.
const EVIDENCE: f64 = 5.0;
/// Repeats expected by chance for each row that repeats a natural key.
const REPEATS_PER_EXCEPTION: f64 = 100.0;

/// Columns that distinguish the sampled rows.
#[derive(Debug, Clone)]
pub(super) struct UniqueKey {
    pub(super) columns: Vec<usize>,
    /// Whether chance alone would have made some rows equal, or a column numbers the rows within the
    /// others.
    pub(super) by_nature: bool,
}

/// Keys that distinguish the sampled rows.
#[derive(Debug, Default)]
pub(crate) struct FoundKeys {
    /// The most natural ones first.
    pub(crate) keys: Vec<UniqueKey>,
    /// Whether none is natural, and sets of columns remain that were not tried.
    pub(crate) cut_short: bool,
}

impl SampledColumns<'_> {
    /// Finds the smallest sets of columns that distinguish the rows, natural ones first.
    pub(super) fn unique_keys(&self, batches: &[RecordBatch]) -> FoundKeys {
        let once = rows_once(&self.columns);
        if once.len() < 2 {
            return FoundKeys::default();
        }
        let usable = |at: &usize| self.can_be_in_key(*at) && !self.is_copy(*at);
        let all: Vec<usize> = (0..self.columns.len()).filter(usable).collect();
        let (mut first, second): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|at| self.role(*at).can_identify_rows());
        first.sort_by_key(|at| std::cmp::Reverse(self.distinct(*at)));
        let tolerated = once.len() / 1_000;
        let natural = |tolerated| {
            let found = minimal_unique(&self.columns, &first, &once, tolerated);
            (self.judged(found.keys, batches, &once, first.len()), found.cut_short)
        };
        let (mut keys, mut cut_short) = natural(0);
        if !keys.iter().any(|key| key.by_nature) && tolerated > 0 {
            keys.extend(natural(tolerated).0.into_iter().filter(|key| key.by_nature));
        }
        // A measure or a text that happens to tell rows apart identifies nothing.
        if first.is_empty() {
            let found = minimal_unique(&self.columns, &second, &once, 0);
            keys = self.judged(found.keys, batches, &once, second.len());
            cut_short = found.cut_short;
        }
        // Sets that were not tried have more columns than those that were found.
        cut_short &= !keys.iter().any(|key| key.by_nature);
        keys.sort_by(|a, b| self.rank(a).partial_cmp(&self.rank(b)).unwrap_or(std::cmp::Ordering::Equal));
        FoundKeys { keys, cut_short }
    }

    /// Judges keys of `of` columns. Of the many sets of several columns that are tried, some repeat
    /// in no row by chance even if five repeats are expected.
    fn judged(
        &self,
        keys: Vec<Vec<usize>>,
        batches: &[RecordBatch],
        rows: &[u32],
        of: usize,
    ) -> Vec<UniqueKey> {
        let judge = |columns: Vec<usize>| {
            let arrays: Option<Vec<ArrayRef>> = columns
                .iter()
                .map(|at| {
                    let parts: Vec<&dyn Array> = batches
                        .iter()
                        .filter_map(|batch| batch.columns().get(*at))
                        .map(AsRef::as_ref)
                        .collect();
                    concat(&parts).ok()
                })
                .collect();
            let uniqueness = arrays.and_then(|arrays| Uniqueness::of(&arrays, rows.len() as u64));
            let profiles: Vec<&Profile<'_>> = columns.iter().filter_map(|at| self.columns.get(*at)).collect();
            let repeated = rows.len() - distinct_together(&profiles, rows);
            let is_numbered = repeated == 0 && columns.iter().any(|at| self.counts_within(*at, &columns));
            let by_nature = is_numbered
                || uniqueness.is_some_and(|unique| match unique.by {
                    UniqueBy::ManyValues => repeated == 0,
                    UniqueBy::Nature => {
                        let tried = ln_sets(of, columns.len());
                        unique.repeats_by_chance
                            >= (EVIDENCE + tried).max(REPEATS_PER_EXCEPTION * repeated as f64)
                    }
                    UniqueBy::Chance => false,
                });
            UniqueKey { by_nature, columns }
        };
        keys.into_iter().map(judge).collect()
    }

    /// Whether a column numbers the rows within others of a key.
    pub(super) fn counts_within(&self, at: usize, key: &[usize]) -> bool {
        let Some(report) = self.roles.get(at).filter(|report| report.role == Role::LineNumber) else {
            return false;
        };
        let is_in_key = |parent: &String| key.iter().any(|at| self.name(*at) == parent);
        !report.counts_within.is_empty() && report.counts_within.iter().all(is_in_key)
    }

    /// Order of unique keys: natural ones first, then those without times and without text, then the
    /// shortest; entities rather than dimensions.
    fn rank(&self, key: &UniqueKey) -> (bool, usize, usize, f64, usize) {
        let weight = |at: &usize| match self.role(*at) {
            Role::RowId => 0.0,
            Role::Entity => 0.5,
            Role::LineNumber => 0.7,
            Role::Time => 1.0,
            Role::Dimension => 1.2,
            Role::Constant | Role::Measure | Role::Text => 3.0,
        };
        let makeshift = key.columns.iter().filter(|at| !self.role(**at).can_identify_rows()).count();
        let sum: f64 = key.columns.iter().map(weight).sum();
        // A time that is not the event time is an accident in a key.
        let strange =
            key.columns.iter().filter(|at| self.role(**at) == Role::Time && !self.is_time(**at)).count();
        let position = key.columns.iter().sum();
        (!key.by_nature, makeshift + strange, key.columns.len(), sum, position)
    }
}

/// Natural logarithm of the number of sets of `size` of `of` columns.
fn ln_sets(of: usize, size: usize) -> f64 {
    (0..size.min(of)).map(|taken| ((of - taken) as f64 / (taken + 1) as f64).ln()).sum()
}
