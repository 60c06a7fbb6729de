//! Recounts, over all rows, columns whose sample had few values.

use ahash::AHashSet;
use arrow::array::RecordBatch;

use crate::evaluate::candidates::considered::ConsideredCandidate;
use evenkeel_model::table::Column;
use evenkeel_model::units::PartitionCount;
use evenkeel_stats::sketch::column_identities;

/// Counter, in the pass over all rows, of the values of columns that were dropped because the
/// inspected rows have too few.
#[derive(Debug)]
pub(crate) struct FewValues {
    columns: Vec<CountedColumn>,
    /// Number of values that would have kept the column.
    enough: usize,
    rows: u64,
}

#[derive(Debug)]
struct CountedColumn {
    name: String,
    position: usize,
    values: AHashSet<u64>,
    /// Value of the last row, which the next row usually has too.
    last: Option<u64>,
}

impl FewValues {
    pub(crate) fn new(
        considered: &[ConsideredCandidate],
        columns: &[Column],
        partitions: &[PartitionCount],
    ) -> Self {
        let doubtful = considered.iter().filter(|candidate| candidate.too_few_values && !candidate.kept);
        let counted = doubtful.filter_map(|candidate| {
            let name = candidate.key.first()?;
            let position = columns.iter().position(|column| column.name == *name)?;
            Some(CountedColumn { name: name.clone(), position, values: AHashSet::new(), last: None })
        });
        let enough = partitions.iter().map(|count| count.len()).min().unwrap_or(1).max(2);
        Self { columns: counted.collect(), enough, rows: 0 }
    }

    /// Drops the columns that the pass does not read.
    pub(crate) fn keep_only(&mut self, projection: &[bool]) {
        self.columns.retain(|column| projection.get(column.position) == Some(&true));
    }

    /// Counts rows, in any order.
    pub(crate) fn count(&mut self, batches: &[RecordBatch]) {
        for batch in batches {
            self.rows += batch.num_rows() as u64;
            for column in &mut self.columns {
                let Some(array) = batch.columns().get(column.position) else { continue };
                if column.values.len() >= self.enough {
                    continue;
                }
                for value in column_identities(array) {
                    if column.last != Some(value) {
                        column.values.insert(value);
                        column.last = Some(value);
                    }
                }
            }
        }
    }

    /// Updates the reason of each column from the values in all rows, and returns the columns that
    /// should not have been dropped.
    pub(crate) fn settle(self, considered: &mut [ConsideredCandidate]) -> Vec<String> {
        let mut withdrawn = Vec::new();
        for CountedColumn { name, values, .. } in self.columns {
            let Some(candidate) =
                considered.iter_mut().find(|c| c.too_few_values && c.key == [name.as_str()])
            else {
                continue;
            };
            let (values, rows) = (values.len(), self.rows);
            candidate.reason = if values >= self.enough {
                withdrawn.push(name.clone());
                format!(
                    "{}, but the {rows} rows have {} or more: name it with --partition-key to have it evaluated",
                    candidate.reason, self.enough
                )
            } else if values <= 1 {
                format!("all of the {rows} rows have one value")
            } else {
                format!("cannot fill {} partitions: {values} values in the {rows} rows", self.enough)
            };
        }
        withdrawn
    }
}
