//! Counts for one candidate for the primary key: which rows it would lose, whether rows arrive in
//! its order, and how much reads by it leave unread.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, TimestampMicrosecondType};
use arrow::error::ArrowError;
use arrow::row::{RowConverter, Rows, SortField};

use crate::evaluate::EvaluateError;
use crate::evaluate::figures::interval::Drawn;
use crate::evaluate::figures::layout::LayoutReport;
use crate::evaluate::figures::primary_key::{LateReach, LateRows, PrimaryKeyReport, Pruning};
use crate::evaluate::figures::uniqueness::Uniqueness;
use crate::evaluate::pass::batch::KeyedBatch;
use crate::evaluate::pass::layout::{KeyBytes, Portion, Ranges, join_batches, pruned_share};
use evenkeel_model::table::{Candidate, ColumnType};
use evenkeel_model::time_reading::TimeReading;
use evenkeel_model::units::Micros;
use evenkeel_model::units::PartitionId;

use evenkeel_placement::placement::Placement;
use evenkeel_stats::sketch::{RepeatedKeys, Repeats, Reservoir};
use evenkeel_stats::windows::count_late;

/// Number of examples of repeated keys.
pub(crate) const EXAMPLES: usize = 5;
/// Sampled rows by which the order of arrival and the merged layout are judged.
const SAMPLE_ROWS: usize = 100_000;
/// Maximum number of batches whose portions are kept; beyond it, the portions of every two are
/// joined.
const MOST_BATCHES: u64 = 2000;
/// Bytes of a key or value that are kept for a sampled row; longer ones are distinguished by these.
const MOST_KEPT_BYTES: usize = 256;
/// Rows that a merged portion keeps together, as columnar stores commonly do.
const GROUP_ROWS: usize = 1 << 17;
/// Rows whose keys show whether uniqueness is due to chance.
const UNIQUENESS_ROWS: usize = 20_000;
/// Conditions that are tried on a column.
const CONDITIONS: usize = 100;

/// Column that conditions are tried on, in the key or not.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    /// Name of the column.
    pub(crate) name: String,
    /// Position of its part among all.
    pub(crate) part: usize,
    /// Type of the column.
    pub(crate) column_type: ColumnType,
    /// Kind of condition that is tried.
    pub(crate) kind: ConditionKind,
}

/// Kind of condition that is tried on a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConditionKind {
    /// Values of the column, one by one.
    Equal,
    /// Ranges of an hour and of a day.
    TimeRanges(TimeReading),
}

/// Plan of one candidate.
#[derive(Debug)]
pub(crate) struct PrimaryKeyPlan {
    pub(crate) candidate: Candidate,
    /// Positions of the parts of the key.
    pub(crate) key: Vec<usize>,
    pub(crate) types: Vec<ColumnType>,
    pub(crate) partition_key: Candidate,
    /// Positions of the parts of the partition key.
    pub(crate) placed: Vec<usize>,
    pub(crate) placement: Placement,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) budget: usize,
    pub(crate) batch_rows: u64,
}

/// Counts the rows of one candidate.
pub(crate) struct PrimaryKeyCounter {
    plan: PrimaryKeyPlan,
    rows_of_key: KeyRows,
    rows_of_columns: Vec<KeyRows>,
    repeats: RepeatedKeys,
    partitions: Vec<PartitionState>,
    portions: Vec<Vec<Portion>>,
    /// Batches so far, each made of `batches_joined` batches of the requested size.
    batches: u64,
    batches_joined: u64,
    sample: Reservoir<SampledRow>,
    rows: u64,
    null_rows: u64,
    key_bytes: u64,
    max_key_bytes: u64,
    late_rows: u64,
    late_max: Option<i64>,
    late_by: [u64; 4],
}

/// State of one partition while rows are counted.
#[derive(Debug, Clone, Default)]
struct PartitionState {
    /// Greatest key so far.
    max: Option<KeyBytes>,
    /// Latest time so far, if the key begins with one.
    latest: Option<i64>,
    /// Portion of the current batch.
    open: Option<Portion>,
}

/// Sampled row.
#[derive(Debug, Clone)]
struct SampledRow {
    arrival: u64,
    partition: PartitionId,
    key: KeyBytes,
    columns: Vec<KeyBytes>,
}

/// Row group of a merged portion.
struct RowGroup(Vec<(KeyBytes, KeyBytes)>);

impl Ranges for RowGroup {
    fn range(&self, column: usize) -> Option<(&[u8], &[u8])> {
        self.0.get(column).map(|(min, max)| (min.as_ref(), max.as_ref()))
    }
}

impl std::fmt::Debug for PrimaryKeyCounter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrimaryKeyCounter").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// Converts values to bytes that compare in the same order, whether text is in views or not.
struct KeyRows {
    converter: RowConverter,
    types: Vec<DataType>,
}

impl KeyRows {
    fn new(types: Vec<DataType>) -> Result<Self, ArrowError> {
        let fields = types.iter().map(|data_type| SortField::new(data_type.clone())).collect();
        Ok(Self { converter: RowConverter::new(fields)?, types })
    }

    fn of(types: &[ColumnType], key: &Candidate) -> Result<Self, EvaluateError> {
        Self::new(types.iter().map(|column_type| column_type.arrow_type()).collect())
            .map_err(|source| EvaluateError::Sort { key: key.to_string(), source })
    }

    fn convert(&mut self, arrays: &[ArrayRef]) -> Result<Rows, ArrowError> {
        let differ = |(array, known): (&ArrayRef, &DataType)| array.data_type() != known;
        if arrays.iter().zip(&self.types).any(differ) {
            // Views have the same bytes as plain text.
            *self = Self::new(arrays.iter().map(|array| array.data_type().clone()).collect())?;
        }
        self.converter.convert_columns(arrays)
    }
}

impl PrimaryKeyCounter {
    pub(crate) fn new(plan: PrimaryKeyPlan) -> Result<Self, EvaluateError> {
        let rows_of_columns =
            plan.conditions.iter().map(|condition| KeyRows::of(&[condition.column_type], &plan.candidate));
        let partitions = plan.placement.partitions().len();
        Ok(Self {
            rows_of_key: KeyRows::of(&plan.types, &plan.candidate)?,
            rows_of_columns: rows_of_columns.collect::<Result<_, _>>()?,
            repeats: RepeatedKeys::new(plan.budget),
            partitions: vec![PartitionState::default(); partitions],
            portions: vec![Vec::new(); partitions],
            batches: 0,
            batches_joined: 1,
            sample: Reservoir::new(SAMPLE_ROWS, 0x5A4D),
            rows: 0,
            null_rows: 0,
            key_bytes: 0,
            max_key_bytes: 0,
            late_rows: 0,
            late_max: None,
            late_by: [0; 4],
            plan,
        })
    }

    /// Counts the rows of batches, each with whether it ends a batch of the simulated ingest.
    pub(crate) fn add_all(&mut self, batches: &[(KeyedBatch, bool)]) -> Result<(), EvaluateError> {
        for (batch, ends) in batches {
            self.add(batch)?;
            if *ends {
                self.end_batch();
            }
        }
        Ok(())
    }

    fn add(&mut self, batch: &KeyedBatch) -> Result<(), EvaluateError> {
        let key = &self.plan.key;
        self.repeats.add(&batch.identities(key), &batch.row_identities)?;
        self.rows += batch.rows as u64;
        self.null_rows += batch.null_rows(key);
        self.key_bytes += batch.parts_of(key).map(|part| part.bytes).sum::<u64>();
        self.max_key_bytes = batch.longest_key(key, self.max_key_bytes);
        let arrays: Vec<ArrayRef> = batch.parts_of(key).map(|part| part.array.clone()).collect();
        let failed = |source| EvaluateError::Sort { key: self.plan.candidate.to_string(), source };
        let keys = self.rows_of_key.convert(&arrays).map_err(failed)?;
        let columns = self.plan.conditions.iter().zip(&mut self.rows_of_columns);
        let columns = columns.filter_map(|(condition, rows)| {
            batch.part(condition.part).map(|part| rows.convert(std::slice::from_ref(&part.array)))
        });
        let columns: Vec<Rows> = columns.collect::<Result<_, _>>().map_err(failed)?;
        let partitions = self.place(batch)?;
        self.order(batch, &keys, &partitions, arrays.first());
        self.extend_portions(&keys, &columns, &partitions);
        for (row, partition) in partitions.iter().enumerate() {
            self.sample.offer(|| SampledRow {
                arrival: batch.first_row + row as u64,
                partition: *partition,
                key: kept(&keys, row),
                columns: columns.iter().map(|rows| kept(rows, row)).collect(),
            });
        }
        Ok(())
    }

    fn place(&self, batch: &KeyedBatch) -> Result<Vec<PartitionId>, EvaluateError> {
        let failed = |source| EvaluateError::Placement { key: self.plan.partition_key.to_string(), source };
        let columns: Vec<ArrayRef> =
            batch.parts_of(&self.plan.placed).map(|part| part.array.clone()).collect();
        let hashes = self.plan.placement.hash(&columns).map_err(failed)?;
        let mut partitions = Vec::with_capacity(batch.rows);
        self.plan.placement.assign_hashes(&hashes, &columns, &mut partitions).map_err(failed)?;
        Ok(partitions)
    }

    /// Way to read points in time from the first part of the key.
    fn reading_of_first(&self) -> TimeReading {
        let of_first = self.plan.conditions.iter().filter(|of| self.plan.key.first() == Some(&of.part));
        let mut readings = of_first.filter_map(|condition| match condition.kind {
            ConditionKind::TimeRanges(reading) => Some(reading),
            ConditionKind::Equal => None,
        });
        readings.next().unwrap_or_default()
    }

    /// Counts the rows that arrive after rows of their partition with a greater key.
    fn order(
        &mut self,
        batch: &KeyedBatch,
        keys: &Rows,
        partitions: &[PartitionId],
        first: Option<&ArrayRef>,
    ) {
        let times = first.and_then(|first| self.reading_of_first().instants(first));
        let times = times.as_ref().map(|times| times.as_primitive::<TimestampMicrosecondType>());
        // The greatest key of a partition is copied once per batch, not with every row.
        let mut greatest: Vec<Option<usize>> = vec![None; self.partitions.len()];
        for (row, partition) in partitions.iter().enumerate().take(batch.rows) {
            let (Some(state), Some(greatest)) =
                (self.partitions.get_mut(partition.index()), greatest.get_mut(partition.index()))
            else {
                continue;
            };
            let key = keys.row(row);
            let time = times.filter(|times| times.is_valid(row)).map(|times| times.value(row));
            let late = match *greatest {
                Some(other) => key < keys.row(other),
                None => state.max.as_ref().is_some_and(|max| key.as_ref() < max.as_ref()),
            };
            if late {
                self.late_rows += 1;
                if let (Some(time), Some(latest)) = (time, state.latest) {
                    let by = latest.saturating_sub(time).max(0);
                    self.late_max = Some(self.late_max.map_or(by, |most| most.max(by)));
                    count_late(&mut self.late_by, by);
                }
            } else {
                *greatest = Some(row);
            }
            state.latest = state.latest.max(time);
        }
        for (state, greatest) in self.partitions.iter_mut().zip(greatest) {
            if let Some(row) = greatest {
                state.max = Some(keys.row(row).as_ref().into());
            }
        }
    }

    /// Widens the portions of the current batch.
    fn extend_portions(&mut self, keys: &Rows, columns: &[Rows], partitions: &[PartitionId]) {
        /// Rows of one batch: their number, and which have the least and the greatest key and value
        /// of each column.
        #[derive(Clone)]
        struct Ends {
            rows: u64,
            key: (usize, usize),
            columns: Vec<(usize, usize)>,
        }
        fn widen(rows: &Rows, ends: &mut (usize, usize), row: usize) {
            if rows.row(row) < rows.row(ends.0) {
                ends.0 = row;
            } else if rows.row(row) > rows.row(ends.1) {
                ends.1 = row;
            }
        }
        let mut ends: Vec<Option<Ends>> = vec![None; self.partitions.len()];
        for (row, partition) in partitions.iter().enumerate() {
            let Some(slot) = ends.get_mut(partition.index()) else { continue };
            match slot {
                None => {
                    *slot = Some(Ends { rows: 1, key: (row, row), columns: vec![(row, row); columns.len()] })
                }
                Some(ends) => {
                    ends.rows += 1;
                    widen(keys, &mut ends.key, row);
                    for (rows, ends) in columns.iter().zip(&mut ends.columns) {
                        widen(rows, ends, row);
                    }
                }
            }
        }
        let bytes = |rows: &Rows, ends: (usize, usize)| -> (KeyBytes, KeyBytes) {
            (rows.row(ends.0).as_ref().into(), rows.row(ends.1).as_ref().into())
        };
        for (state, ends) in self.partitions.iter_mut().zip(ends) {
            let Some(ends) = ends else { continue };
            let (min, max) = bytes(keys, ends.key);
            let columns = columns.iter().zip(&ends.columns).map(|(rows, ends)| bytes(rows, *ends)).collect();
            let fresh = Portion { batch: self.batches, rows: ends.rows, min, max, columns };
            state.open = Some(match state.open.take() {
                Some(open) => open.join(fresh),
                None => fresh,
            });
        }
    }

    /// Ends a batch of the simulated ingest.
    fn end_batch(&mut self) {
        for (state, portions) in self.partitions.iter_mut().zip(&mut self.portions) {
            portions.extend(state.open.take());
        }
        self.batches += 1;
        if self.batches > MOST_BATCHES {
            self.portions.iter_mut().for_each(join_batches);
            self.batches_joined *= 2;
            self.batches = self.batches.div_ceil(2);
        }
    }

    pub(crate) fn finish(mut self, sample: Option<Drawn>) -> Result<PrimaryKeyReport, EvaluateError> {
        // A last batch with fewer rows makes portions too.
        if self.partitions.iter().any(|state| state.open.is_some()) {
            self.end_batch();
        }
        let repeats = std::mem::replace(&mut self.repeats, RepeatedKeys::new(0)).finish(EXAMPLES)?;
        let pruning = self.pruning();
        // A sample does not show whether the whole export repeats a key.
        let is_unique = repeats.duplicate_rows == 0 && self.null_rows == 0 && sample.is_none();
        let uniqueness = if is_unique { self.uniqueness() } else { None };
        let rows = self.rows.max(1) as f64;
        let Repeats { distinct_keys, duplicate_rows, identical_rows, conflicting_rows, examples } = repeats;
        Ok(PrimaryKeyReport {
            columns: self.plan.candidate.part_names(),
            unique: duplicate_rows == 0,
            uniqueness,
            distinct_keys,
            duplicate_rows,
            identical_rows,
            conflicting_rows,
            duplicate_rows_interval: sample.map(|drawn| drawn.repeated_rows(duplicate_rows, distinct_keys)),
            examples: Vec::new(),
            null_rows: self.null_rows,
            obstacles: obstacles(&self.plan, self.null_rows, self.max_key_bytes),
            mean_key_bytes: self.key_bytes as f64 / rows,
            max_key_bytes: self.max_key_bytes,
            partitioned_by: self.plan.partition_key.part_names(),
            partitions: self.partitions.len(),
            in_order_fraction: 1.0 - self.late_rows as f64 / rows,
            late: LateRows {
                rows: self.late_rows,
                reach: self
                    .late_max
                    .map(|max_micros| LateReach { max_micros, rows_by_more_than: self.late_by }),
            },
            rank_correlation: rank_correlation(self.sample.items()),
            layout: LayoutReport::of(
                &self.portions,
                self.plan.batch_rows * self.batches_joined,
                self.batches,
            ),
            pruning,
            candidate: self.plan.candidate,
            repeated: examples,
        })
    }

    /// Judges the uniqueness of a key that no row repeats.
    fn uniqueness(&self) -> Option<Uniqueness> {
        // Longer keys are skipped, because their end is not kept.
        let whole = self.sample.items().iter().filter(|row| row.key.len() < MOST_KEPT_BYTES);
        let parser = self.rows_of_key.converter.parser();
        let keys = whole.take(UNIQUENESS_ROWS).map(|row| parser.parse(&row.key));
        let columns = self.rows_of_key.converter.convert_rows(keys).ok()?;
        Uniqueness::of(&columns, self.rows)
    }

    /// Tries conditions with values of the sample on both layouts.
    fn pruning(&self) -> Vec<Pruning> {
        let groups = self.merged_row_groups();
        let mut tried = Vec::new();
        for (column, condition) in self.plan.conditions.iter().enumerate() {
            let name = &condition.name;
            let kinds = match condition.kind {
                ConditionKind::Equal => vec![(format!("{name} = a value"), None)],
                ConditionKind::TimeRanges(reading) => vec![
                    (format!("an hour of {name}"), Some((reading, Micros::HOUR))),
                    (format!("a day of {name}"), Some((reading, Micros::DAY))),
                ],
            };
            for (text, length) in kinds {
                let conditions = self.conditions(column, length);
                let portions = pruned_share(self.portions.iter().flatten(), column, &conditions);
                let merged = pruned_share(groups.iter(), column, &conditions);
                if let (Some(portions_pruned), Some(merged_row_groups_pruned)) = (portions, merged) {
                    tried.push(Pruning { condition: text, portions_pruned, merged_row_groups_pruned });
                }
            }
        }
        tried
    }

    /// Returns ranges around values that are chosen evenly from the sample.
    fn conditions(&self, column: usize, slices: Option<(TimeReading, Micros)>) -> Vec<(KeyBytes, KeyBytes)> {
        let rows = self.sample.items();
        let step = (rows.len() / CONDITIONS).max(1);
        let values = rows.iter().step_by(step).filter_map(|row| row.columns.get(column));
        match slices {
            None => values.map(|value| (value.clone(), value.clone())).collect(),
            Some((reading, length)) => {
                values.filter_map(|value| self.time_range(column, value, reading, length)).collect()
            }
        }
    }

    /// Returns the slice of time of a length that contains a value, as bytes.
    fn time_range(
        &self,
        column: usize,
        value: &KeyBytes,
        reading: TimeReading,
        length: Micros,
    ) -> Option<(KeyBytes, KeyBytes)> {
        let converter = &self.rows_of_columns.get(column)?.converter;
        let parser = converter.parser();
        let arrays = converter.convert_rows([parser.parse(value)]).ok()?;
        let array = arrays.first()?;
        let at = reading.instants(array)?;
        let at = at.as_primitive::<TimestampMicrosecondType>();
        let at = at.is_valid(0).then(|| at.value(0))?;
        let begin = length.slice_of(at).saturating_mul(length.get());
        let ends = [begin, begin + length.get() - 1];
        let ends: ArrayRef = match reading {
            TimeReading::Native => Arc::new(TimestampMicrosecondArray::from(ends.to_vec())),
            epoch => Arc::new(epoch.numbers(&ends)?),
        };
        let ends = arrow::compute::cast(&ends, array.data_type()).ok()?;
        let rows = converter.convert_columns(&[ends]).ok()?;
        Some((rows.row(0).as_ref().into(), rows.row(1).as_ref().into()))
    }

    /// Returns the row groups of partitions that are merged into one portion each: the sample in
    /// key order, cut at the ends of the row groups of the whole.
    fn merged_row_groups(&self) -> Vec<RowGroup> {
        let mut rows: Vec<&SampledRow> = self.sample.items().iter().collect();
        rows.sort_by(|a, b| a.partition.cmp(&b.partition).then_with(|| a.key.cmp(&b.key)));
        let group_rows = ((GROUP_ROWS as f64 * self.sample.share()) as usize).max(1);
        let range_of = |rows: &[&SampledRow], column: usize| {
            let mut values = rows.iter().filter_map(|row| row.columns.get(column));
            let first = values.next()?;
            let ends = values.fold((first, first), |(min, max), value| (min.min(value), max.max(value)));
            Some((ends.0.clone(), ends.1.clone()))
        };
        rows.chunk_by(|a, b| a.partition == b.partition)
            .flat_map(|partition| partition.chunks(group_rows))
            .map(|rows| {
                let columns = 0..self.plan.conditions.len();
                RowGroup(columns.filter_map(|column| range_of(rows, column)).collect())
            })
            .collect()
    }
}

/// Returns the beginning of a key.
fn kept(rows: &Rows, row: usize) -> KeyBytes {
    let row = rows.row(row);
    let bytes: &[u8] = row.as_ref();
    bytes.get(..MOST_KEPT_BYTES).unwrap_or(bytes).into()
}

/// Returns the reasons why a table cannot have the key.
fn obstacles(plan: &PrimaryKeyPlan, null_rows: u64, max_key_bytes: u64) -> Vec<String> {
    let mut obstacles = Vec::new();
    for (part, column_type) in plan.candidate.part_names().iter().zip(&plan.types) {
        if plan.placement.function().of_ydb().is_some() && !column_type.is_key_type() {
            obstacles.push(format!("{part} is of type {column_type}, which YDB takes in no key"));
        }
    }
    if null_rows > 0 {
        obstacles.push(format!("{null_rows} rows have NULL in the key; key columns are NOT NULL"));
    }
    if plan.key.len() > evenkeel_model::table::MAX_KEY_COLUMNS {
        obstacles.push(format!(
            "it has {} columns; YDB takes {}",
            plan.key.len(),
            evenkeel_model::table::MAX_KEY_COLUMNS
        ));
    }
    if max_key_bytes > evenkeel_model::table::MAX_KEY_BYTES as u64 {
        obstacles.push(format!(
            "a key has {max_key_bytes} bytes; YDB takes {}",
            evenkeel_model::table::MAX_KEY_BYTES
        ));
    }
    obstacles
}

/// Returns Pearson's correlation between the rank of each row's key and its rank of arrival; equal
/// keys share the middle of their ranks.
fn rank_correlation(rows: &[SampledRow]) -> Option<f64> {
    let mut by_arrival: Vec<&SampledRow> = rows.iter().collect();
    by_arrival.sort_by_key(|row| row.arrival);
    let mut by_key: Vec<(usize, &SampledRow)> = by_arrival.into_iter().enumerate().collect();
    by_key.sort_by(|a, b| a.1.key.cmp(&b.1.key));
    let count = by_key.len() as f64;
    let mean = (count - 1.0) / 2.0;
    let (mut covariance, mut variance_of_rank, mut rank) = (0.0, 0.0, 0usize);
    for equal in by_key.chunk_by(|a, b| a.1.key == b.1.key) {
        let middle = rank as f64 + (equal.len() as f64 - 1.0) / 2.0 - mean;
        variance_of_rank += middle * middle * equal.len() as f64;
        covariance += equal.iter().map(|(arrival, _)| middle * (*arrival as f64 - mean)).sum::<f64>();
        rank += equal.len();
    }
    let variance_of_arrival = count * (count * count - 1.0) / 12.0;
    let product = (variance_of_rank * variance_of_arrival).sqrt();
    (product > 0.0).then(|| covariance / product)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampled(keys: impl IntoIterator<Item = u32>) -> Vec<SampledRow> {
        let row = |(arrival, key): (u64, u32)| SampledRow {
            arrival,
            partition: PartitionId(0),
            key: key.to_be_bytes().into(),
            columns: Vec::new(),
        };
        (0..).zip(keys).map(row).collect()
    }

    #[test]
    fn rank_correlation_is_one_for_rising_keys_and_minus_one_for_falling_ones() {
        let close = |found: Option<f64>, expected: f64| {
            assert!((found.unwrap() - expected).abs() < 1e-9, "{found:?}")
        };
        close(rank_correlation(&sampled(0..100)), 1.0);
        close(rank_correlation(&sampled((0..100).rev())), -1.0);
        // Spearman's own formula, 1 - 6 sum(d^2) / (n (n^2 - 1)), for 2, 1, 4, 3.
        close(rank_correlation(&sampled([2, 1, 4, 3])), 1.0 - 6.0 * 4.0 / 60.0);
        assert_eq!(rank_correlation(&sampled([7, 7, 7])), None);
        assert_eq!(rank_correlation(&[]), None);
    }

    #[test]
    fn rank_correlation_misleads_both_ways() {
        // Each day runs from the first to the last key: every portion overlaps every other, and the
        // correlation is low.
        let days = rank_correlation(&sampled((0..100).flat_map(|_| 0..100))).unwrap();
        assert!(days.abs() < 0.1, "{days}");
        // Rows shuffled within each tenth: it says monotonic, although half of the rows are late.
        let shuffled = (0..1000).map(|row: u32| row / 100 * 100 + row * 37 % 100);
        let shuffled = rank_correlation(&sampled(shuffled)).unwrap();
        assert!(shuffled > 0.95, "{shuffled}");
    }
}
