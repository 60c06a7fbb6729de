//! Rows that a database keeps in each partition, compared with the computed placement.

use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::ArrayRef;
use serde::Serialize;

use crate::evaluate::EvaluateError;
use crate::evaluate::options::AdvisorOptions;
use crate::evaluate::partition_rows::PartitionRows;
use evenkeel_input::source::{Export, InputPath, SourceError};
use evenkeel_model::table::Column;
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::Placement;

/// Source of the rows of each partition of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum MeasuredIn {
    /// Data files, one per partition.
    Files,
    /// Statistics of the database.
    Statistics,
}

/// Distribution of rows over the partitions of a database.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredDistribution {
    /// Source of the counts.
    pub measured_in: MeasuredIn,
    /// Number of rows of each partition.
    pub partitions: Vec<PartitionRows>,
    /// Rows of the fullest partition relative to the average partition.
    pub max_over_mean: f64,
    /// Distribution computed by the placement of the current partition key, if it is a hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed: Option<ComputedDistribution>,
}

/// Distribution that the placement computes for the same rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComputedDistribution {
    /// Current partition key of the table, which the rows are placed by.
    pub partition_key: Vec<String>,
    /// Rows of the fullest partition relative to the average partition.
    pub max_over_mean: f64,
    /// Number of rows of each computed partition.
    pub rows_per_partition: Vec<u64>,
    /// Number of rows that are in the file of their computed partition, if each file is assigned to
    /// the partition of most of its rows; `None` for statistics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_in_place: Option<u64>,
}

/// Counts the rows of each partition in data files or statistics, and as the placement of the
/// current key computes them; `None` if neither shows partitions.
///
/// # Errors
/// [`EvaluateError`] if the export cannot be read.
pub(crate) fn measure(
    export: &Export,
    options: &AdvisorOptions,
    stop: &AtomicBool,
) -> Result<Option<MeasuredDistribution>, EvaluateError> {
    let measured_in = match options.partition_rows.is_empty() {
        false => MeasuredIn::Statistics,
        true if options.has_file_per_partition => MeasuredIn::Files,
        true => return Ok(None),
    };
    let count = match measured_in {
        MeasuredIn::Files => export.inputs().len(),
        MeasuredIn::Statistics => options.partition_rows.len(),
    };
    let Ok(partitions) = PartitionCount::new(count as u64) else { return Ok(None) };
    if options.evaluate.sample.is_some() || partitions.get() < 2 {
        return Ok(None);
    }
    let key = options.current_partition_key.as_ref().map(|key| key.columns()).unwrap_or_default();
    let of_key = key.iter().map(|name| export.columns().iter().find(|column| column.name == *name).cloned());
    let columns: Option<Vec<Column>> = of_key.collect();
    let columns = columns.filter(|columns| !columns.is_empty());
    let function = options.evaluate.placements.first().copied().unwrap_or_default();
    let placement = columns.as_ref().map(|columns| {
        Placement::new(function, partitions, columns.iter().map(|column| column.column_type).collect())
    });
    let read = columns.unwrap_or_else(|| export.columns().iter().take(1).cloned().collect());
    let counts = match (measured_in, &placement) {
        // The rows of the statistics may differ from those of the export, which are counted for the
        // placement.
        (MeasuredIn::Statistics, None) => Vec::new(),
        _ => export
            .inputs()
            .iter()
            .map(|input| {
                let file = Export::with_columns(vec![input.clone()], export.options().clone(), read.clone());
                count_file(&file, placement.as_ref(), options, stop)
            })
            .collect::<Result<_, _>>()?,
    };
    let of_file = |(input, count): (&InputPath, &FileCount)| PartitionRows {
        partition: input.name(),
        rows: count.rows,
    };
    let partitions: Vec<PartitionRows> = match measured_in {
        MeasuredIn::Files => export.inputs().iter().zip(&counts).map(of_file).collect(),
        MeasuredIn::Statistics => options.partition_rows.clone(),
    };
    let computed = placement.map(|_| {
        let mut of_partitions = vec![0u64; partitions.len()];
        for count in &counts {
            of_partitions.iter_mut().zip(&count.of_partitions).for_each(|(sum, rows)| *sum += rows);
        }
        let rows = counts.iter().map(|count| count.rows).sum();
        ComputedDistribution {
            partition_key: key,
            max_over_mean: max_over_mean(of_partitions.iter().copied(), rows),
            rows_per_partition: of_partitions,
            rows_in_place: (measured_in == MeasuredIn::Files).then(|| in_place(&counts)),
        }
    });
    let rows: u64 = partitions.iter().map(|partition| partition.rows).sum();
    let max_over_mean = max_over_mean(partitions.iter().map(|partition| partition.rows), rows);
    let measured = MeasuredDistribution { measured_in, partitions, max_over_mean, computed };
    Ok((rows > 0).then_some(measured))
}

/// Rows of one file, in total and by computed partition.
struct FileCount {
    rows: u64,
    of_partitions: Vec<u64>,
}

fn count_file(
    file: &Export,
    placement: Option<&Placement>,
    options: &AdvisorOptions,
    stop: &AtomicBool,
) -> Result<FileCount, EvaluateError> {
    let partitions = placement.map_or(0, |placement| placement.partitions().len());
    let mut count = FileCount { rows: 0, of_partitions: vec![0; partitions] };
    let read = file.read_columns::<EvaluateError>(options.on_unreadable, &|_| true, |_, batch| {
        count.rows += batch.num_rows() as u64;
        if let Some(placement) = placement {
            let columns: Vec<ArrayRef> = batch.columns().to_vec();
            let assigned = placement.assign(&columns);
            let key = || columns_of(file).join(", ");
            for partition in assigned.map_err(|source| EvaluateError::Placement { key: key(), source })? {
                if let Some(rows) = count.of_partitions.get_mut(partition.index()) {
                    *rows += 1;
                }
            }
        }
        Ok(!stop.load(Ordering::Relaxed))
    });
    match read {
        Ok(_) | Err(EvaluateError::Source(SourceError::Empty { .. })) => Ok(count),
        Err(error) => Err(error),
    }
}

fn columns_of(file: &Export) -> Vec<String> {
    file.columns().iter().map(|column| column.name.clone()).collect()
}

fn max_over_mean(rows: impl ExactSizeIterator<Item = u64>, total: u64) -> f64 {
    let partitions = rows.len() as f64;
    rows.max().unwrap_or(0) as f64 * partitions / (total as f64).max(1.0)
}

/// Pairs files with partitions, the largest counts first, and returns the number of rows in pairs.
fn in_place(counts: &[FileCount]) -> u64 {
    let cells = counts.iter().enumerate().flat_map(|(file, count)| {
        count.of_partitions.iter().enumerate().map(move |(partition, rows)| (*rows, file, partition))
    });
    let mut cells: Vec<(u64, usize, usize)> = cells.filter(|(rows, ..)| *rows > 0).collect();
    cells.sort_by_key(|(rows, file, partition)| (std::cmp::Reverse(*rows), *file, *partition));
    let (mut files, mut partitions) = (std::collections::HashSet::new(), std::collections::HashSet::new());
    let mut sum = 0;
    for (rows, file, partition) in cells {
        if !files.contains(&file) && !partitions.contains(&partition) {
            files.insert(file);
            partitions.insert(partition);
            sum += rows;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_paired_with_the_partition_of_most_of_their_rows() {
        let count = |of_partitions: &[u64]| FileCount {
            rows: of_partitions.iter().sum(),
            of_partitions: of_partitions.to_vec(),
        };
        // Each file is one partition, in another order.
        assert_eq!(in_place(&[count(&[0, 5, 0]), count(&[7, 0, 0]), count(&[0, 0, 2])]), 14);
        // Both files have most rows of partition 0, which only one of them can be.
        assert_eq!(in_place(&[count(&[9, 1]), count(&[8, 2])]), 11);
        assert_eq!(in_place(&[count(&[0, 0])]), 0);
        assert!((max_over_mean([3u64, 1].into_iter(), 4) - 1.5).abs() < 1e-12);
    }
}
