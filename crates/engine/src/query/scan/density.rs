//! How close to each other the rows are that the conditions of a scan keep, which decides where the
//! conditions are evaluated.
//!
//! The reader of Parquet evaluates conditions one after another, each on the rows that those before
//! it have kept, and decodes the other columns for the rows left. If those are far apart, pages are
//! skipped. Otherwise it decodes all rows anyway, and describing which to keep, run by run, takes
//! longer than to decode the columns and to filter them. So the first files of a scan are measured:
//!
//! ```text
//! file 1, 2  reader with conditions ── Measured ──► Density
//! file 3...  rows kept by all are close: reader without conditions ─► LateFilter
//!            by the first few:           reader with these as one condition, and the others
//!            by none:                    reader with conditions
//! ```
//! A scan that looks for the first rows of a sort leaves few rows in any case, so that conditions
//! stay in the reader, followed by that of the first rows; if the rows that they keep are close,
//! all of them are one condition. Small reads (`small_reads`) are decoded and filtered in any case,
//! and are not measured.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::compute::prep_null_mask_filter;
use arrow::error::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ArrowPredicate;
use parquet::schema::types::SchemaDescriptor;

use crate::query::scan::kept_rows::{Cost, KeptRows};

/// Rows from one that is kept to the next, at most, for which reading decodes all rows. The reader
/// of Parquet has the same limit.
const ROWS_APART: f64 = 64.0;

/// How close to each other the rows are that the conditions of a scan keep.
#[derive(Debug, Default)]
pub(super) struct Density {
    stages: Mutex<Vec<Stage>>,
}

/// Rows that one condition saw, of those that the conditions before it kept.
#[derive(Debug, Default, Clone, Copy)]
struct Stage {
    rows: u64,
    kept: u64,
    /// Number of groups of adjacent rows that it kept.
    runs: u64,
}

/// Where conditions are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the reader: the first `together` conditions as one (at least one), the others one after
    /// another.
    Reader { together: usize },
    /// On decoded rows.
    Decoded,
}

impl Density {
    fn add(&self, stage: usize, selected: &BooleanArray) {
        let selected = match selected.null_count() {
            0 => selected.clone(),
            _ => prep_null_mask_filter(selected),
        };
        let mut stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        if stages.len() <= stage {
            stages.resize(stage + 1, Stage::default());
        }
        if let Some(of) = stages.get_mut(stage) {
            of.rows += selected.len() as u64;
            of.kept += selected.true_count() as u64;
            of.runs += runs(selected.values());
        }
    }

    /// Decides where conditions are best evaluated, by what is known of the rows that they keep.
    ///
    /// Groups of adjacent rows are taken to be as long as those of the condition, up to there, that
    /// keeps the shortest.
    pub(super) fn place(&self) -> Place {
        let stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = stages.first().map_or(0, |first| first.rows) as f64;
        let mut length = f64::INFINITY;
        let is_close = |of: &Stage| {
            if of.runs > 0 {
                length = length.min(of.kept as f64 / of.runs as f64);
            }
            of.kept as f64 / length * ROWS_APART > rows
        };
        let close: Vec<bool> = stages.iter().map(is_close).collect();
        if close.last() == Some(&true) {
            return Place::Decoded;
        }
        // The condition after those decodes the same rows as they do.
        Place::Reader { together: close.iter().take_while(|is_close| **is_close).count() + 1 }
    }

    /// Returns the positions of conditions in the order in which evaluating them on the rows that
    /// others keep takes the least time: first those that exclude the most rows for their cost.
    /// Each is taken to keep the same share of any rows.
    pub(super) fn order(&self, costs: &[Cost]) -> Vec<usize> {
        let stages = self.stages.lock().unwrap_or_else(PoisonError::into_inner);
        let of_excluded_row = |(position, cost): (usize, &Cost)| {
            let excluded = stages.get(position).filter(|of| of.rows > 0);
            let excluded = excluded.map_or(0.0, |of| 1.0 - of.kept as f64 / of.rows as f64);
            (cost.of_row() / excluded, position)
        };
        let mut order: Vec<_> = costs.iter().enumerate().map(of_excluded_row).collect();
        order.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        order.into_iter().map(|(_, position)| position).collect()
    }
}

/// Number of groups of adjacent ones.
fn runs(bits: &BooleanBuffer) -> u64 {
    let mut last = 0;
    let starts = bits.bit_chunks().iter_padded().map(|chunk| {
        let starts = chunk & !(chunk << 1 | last);
        last = chunk >> 63;
        u64::from(starts.count_ones())
    });
    starts.sum()
}

/// A condition of a reader, whose results are counted.
struct Measured {
    condition: Box<dyn ArrowPredicate>,
    stage: usize,
    density: Arc<Density>,
}

impl ArrowPredicate for Measured {
    fn projection(&self) -> &ProjectionMask {
        self.condition.projection()
    }

    fn evaluate(&mut self, batch: RecordBatch) -> Result<BooleanArray, ArrowError> {
        let selected = self.condition.evaluate(batch)?;
        self.density.add(self.stage, &selected);
        Ok(selected)
    }
}

/// Several conditions of a reader as one.
struct Together {
    columns: ProjectionMask,
    /// Conditions, each with the positions of its columns among those of all.
    parts: Vec<(Vec<usize>, Cost, Box<dyn ArrowPredicate>)>,
    /// A condition on the rows that all others keep.
    last: Option<(Vec<usize>, Box<dyn ArrowPredicate>)>,
}

impl Together {
    /// Joins conditions on columns of a file that are no groups.
    fn new(
        conditions: Vec<(Cost, Box<dyn ArrowPredicate>)>,
        last: Option<Box<dyn ArrowPredicate>>,
        file: &SchemaDescriptor,
    ) -> Self {
        let is_read = |condition: &dyn ArrowPredicate, leaf| condition.projection().leaf_included(leaf);
        let all = || conditions.iter().map(|(_, condition)| condition).chain(&last);
        let read_by_any = |leaf: &usize| all().any(|of| is_read(of.as_ref(), *leaf));
        let leaves: Vec<usize> = (0..file.num_columns()).filter(read_by_any).collect();
        let positions = |condition: &dyn ArrowPredicate| -> Vec<usize> {
            let own = leaves.iter().enumerate().filter(|(_, leaf)| is_read(condition, **leaf));
            own.map(|(position, _)| position).collect()
        };
        let parts = conditions.into_iter().map(|(cost, of)| (positions(of.as_ref()), cost, of)).collect();
        let last = last.map(|of| (positions(of.as_ref()), of));
        Self { columns: ProjectionMask::leaves(file, leaves.iter().copied()), parts, last }
    }
}

impl ArrowPredicate for Together {
    fn projection(&self) -> &ProjectionMask {
        &self.columns
    }

    fn evaluate(&mut self, batch: RecordBatch) -> Result<BooleanArray, ArrowError> {
        let mut kept = KeptRows::new(batch.num_rows());
        for (columns, cost, condition) in &mut self.parts {
            kept.retain(batch.project(columns)?, *cost, |rows| condition.evaluate(rows.clone()))?;
        }
        if let Some((columns, condition)) = &mut self.last {
            kept.retain_of_kept(batch.project(columns)?, |rows| condition.evaluate(rows.clone()))?;
        }
        Ok(kept.finish())
    }
}

/// Prepares the conditions of a reader, which can be evaluated on any rows if `costs` are known:
/// joins those that are evaluated together, and else measures what each of them keeps. `last` sees
/// only rows that all of them keep.
pub(super) fn in_reader(
    mut conditions: Vec<Box<dyn ArrowPredicate>>,
    last: Option<Box<dyn ArrowPredicate>>,
    costs: Option<&[Cost]>,
    density: &Arc<Density>,
    file: &SchemaDescriptor,
) -> Vec<Box<dyn ArrowPredicate>> {
    let is_column = |leaf: usize| file.get_column_root(leaf).is_primitive();
    let is_on_columns = |condition: &dyn ArrowPredicate| {
        (0..file.num_columns()).all(|leaf| !condition.projection().leaf_included(leaf) || is_column(leaf))
    };
    let (together, is_last_joined) = match density.place() {
        Place::Reader { together } => (together, false),
        Place::Decoded => (conditions.len(), true),
    };
    if let Some(costs) = costs.filter(|_| together >= 2 || is_last_joined)
        && costs.len() == conditions.len()
        && together <= conditions.len()
        && conditions.iter().take(together).chain(&last).all(|condition| is_on_columns(condition.as_ref()))
    {
        let others = conditions.split_off(together);
        let order = density.order(costs.get(..together).unwrap_or(costs));
        let mut first: Vec<_> = costs.iter().copied().zip(conditions).enumerate().collect();
        first.sort_by_key(|(position, _)| order.iter().position(|at| at == position));
        let first = first.into_iter().map(|(_, condition)| condition).collect();
        let (joined, last) = if is_last_joined { (last, None) } else { (None, last) };
        let first = Together::new(first, joined, file);
        let mut all = vec![Box::new(first) as Box<dyn ArrowPredicate>];
        all.extend(others.into_iter().chain(last));
        return all;
    }
    let measured = conditions.into_iter().enumerate().map(|(stage, condition)| {
        Box::new(Measured { condition, stage, density: Arc::clone(density) }) as Box<dyn ArrowPredicate>
    });
    measured.chain(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_across_words() {
        let count = |rows: Vec<bool>| runs(&BooleanBuffer::from(rows));
        assert_eq!(count(vec![]), 0);
        assert_eq!(count(vec![true; 1000]), 1);
        assert_eq!(count((0..1000).map(|row| row % 2 == 0).collect()), 500);
        assert_eq!(count((0..1000).map(|row| row / 64 % 2 == 1).collect()), 7 + 1);
        assert_eq!(count((0..1000).map(|row| (60..70).contains(&row) || row == 127).collect()), 2);
    }

    #[test]
    fn conditions_that_exclude_the_most_rows_for_their_cost_are_first() {
        let density = Density::default();
        let divides =
            |divisor: usize| (0..1000).map(|row| Some(row % divisor == 0)).collect::<BooleanArray>();
        for (stage, divisor) in [2, 1, 3, 100].into_iter().enumerate() {
            density.add(stage, &divides(divisor));
        }
        assert_eq!(density.order(&[Cost::Low; 4]), [3, 2, 0, 1]);
        assert_eq!(density.order(&[Cost::Low, Cost::Low, Cost::High, Cost::High]), [0, 3, 2, 1]);
        // Nothing is known of the fifth.
        assert_eq!(density.order(&[Cost::High; 5]), [3, 2, 0, 1, 4]);
    }

    #[test]
    fn conditions_are_evaluated_where_the_reader_would_decode_all() {
        let place = |stages: &[fn(usize) -> bool]| {
            let density = Density::default();
            let mut rows = 6400;
            for (stage, keeps) in stages.iter().enumerate() {
                let selected: BooleanArray = (0..rows).map(|row| Some(keeps(row))).collect();
                density.add(stage, &selected);
                rows = selected.true_count();
            }
            density.place()
        };
        let alone = Place::Reader { together: 1 };
        assert_eq!(place(&[]), alone);
        assert_eq!(place(&[|row| row % 3 == 0]), Place::Decoded);
        assert_eq!(place(&[|row| row % 63 == 0]), Place::Decoded);
        assert_eq!(place(&[|row| row % 65 == 0]), alone);
        // All rows, or long runs of them: little to describe.
        assert_eq!(place(&[|_| true]), alone);
        assert_eq!(place(&[|row| row % 400 < 200]), alone);
        assert_eq!(place(&[|row| row < 640, |row| row % 8 == 0]), alone);
        // The rows that all conditions keep matter for the other columns.
        assert_eq!(place(&[|row| row % 3 == 0, |_| true]), Place::Decoded);
        assert_eq!(place(&[|row| row < 3200, |row| row % 4 == 0]), Place::Decoded);
        assert_eq!(place(&[|row| row % 3 == 0, |row| row == 5]), Place::Reader { together: 2 });
        assert_eq!(place(&[|row| row % 3 == 0, |_| false]), Place::Reader { together: 2 });
        assert_eq!(
            place(&[|row| row % 3 == 0, |row| row % 2 == 0, |row| row == 5, |_| true]),
            Place::Reader { together: 3 }
        );
    }
}
