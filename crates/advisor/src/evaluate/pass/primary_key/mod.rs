//! Counts for one candidate for the primary key: rows that it would lose, rows that arrive in its
//! order, and data that reads by it would prune.

mod arrivals;
mod key_rows;
mod pruning;
mod state;

use arrow::array::ArrayRef;
use arrow::row::Rows;

use crate::evaluate::EvaluateError;
use crate::evaluate::figures::interval::SampleSize;
use crate::evaluate::figures::layout::LayoutReport;
use crate::evaluate::figures::primary_key::PrimaryKeyReport;
use crate::evaluate::figures::uniqueness::Uniqueness;
use crate::evaluate::nulls::can_be_filled_in;
use crate::evaluate::pass::batch::KeyedBatch;
use crate::evaluate::pass::layout::{KeyBytes, Portion, join_batches};
use crate::evaluate::pass::primary_key::arrivals::{Arrivals, rank_correlation};
use crate::evaluate::pass::primary_key::key_rows::{KeyRows, MAX_KEPT_BYTES, SampledRow, head};
use crate::evaluate::pass::primary_key::pruning::Reads;
pub(crate) use crate::evaluate::pass::primary_key::pruning::{Condition, ConditionKind};
use evenkeel_model::table::{Candidate, ColumnType, MAX_KEY_BYTES, MAX_KEY_COLUMNS};
use evenkeel_model::time_reading::TimeReading;
use evenkeel_model::units::PartitionId;

use evenkeel_placement::placement::Placement;
use evenkeel_stats::sketch::{RepeatedKeys, Repeats, Reservoir};

/// Number of examples of repeated keys.
pub(crate) const EXAMPLES: usize = 5;
/// Number of sampled rows to judge the order of arrival and the merged layout.
const SAMPLE_ROWS: usize = 100_000;
const SAMPLE_SEED: u64 = 0x5A4D;
/// Maximum number of batches whose portions are kept; beyond it, the portions of every two are
/// joined.
const MAX_BATCHES: u64 = 2000;
/// Number of rows whose keys show whether uniqueness is due to chance.
const UNIQUENESS_ROWS: usize = 20_000;

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
    repetition: Repetition,
    arrivals: Arrivals,
    /// Portion of the current batch, for each partition.
    open: Vec<Option<Portion>>,
    portions: Vec<Vec<Portion>>,
    /// Batches so far, each made of `batches_joined` batches of the requested size.
    batches: u64,
    batches_joined: u64,
    /// Batches of the requested size that the current batch is made of so far.
    batches_open: u64,
    sample: Reservoir<SampledRow>,
    rows: u64,
    null_rows: u64,
    key_bytes: u64,
    max_key_bytes: u64,
}

/// Keys that repeat.
#[derive(Debug)]
enum Repetition {
    /// The keys of all rows, to find repeated ones.
    OfRows(RepeatedKeys),
    /// Number of repeated keys.
    Sums(Repeats),
}

impl std::fmt::Debug for PrimaryKeyCounter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PrimaryKeyCounter").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl PrimaryKeyCounter {
    pub(crate) fn new(plan: PrimaryKeyPlan) -> Result<Self, EvaluateError> {
        let rows_of_columns = plan
            .conditions
            .iter()
            .map(|condition| KeyRows::for_types(&[condition.column_type], &plan.candidate));
        let partitions = plan.placement.partitions().len();
        Ok(Self {
            rows_of_key: KeyRows::for_types(&plan.types, &plan.candidate)?,
            rows_of_columns: rows_of_columns.collect::<Result<_, _>>()?,
            repetition: Repetition::OfRows(RepeatedKeys::new(plan.budget)),
            arrivals: Arrivals::new(partitions),
            open: vec![None; partitions],
            portions: vec![Vec::new(); partitions],
            batches: 0,
            batches_joined: 1,
            batches_open: 0,
            sample: Reservoir::new(SAMPLE_ROWS, SAMPLE_SEED),
            rows: 0,
            null_rows: 0,
            key_bytes: 0,
            max_key_bytes: 0,
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
        if let Repetition::OfRows(keys) = &mut self.repetition {
            keys.add(&batch.identities(key), &batch.row_identities)?;
        }
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
        let times = arrays.first().and_then(|first| self.reading_of_first().instants(first));
        self.arrivals.add(&keys, &partitions, times.as_ref());
        self.extend_portions(&keys, &columns, &partitions);
        for (row, partition) in partitions.iter().enumerate() {
            let Some(sampled) = self.sample.offer() else { continue };
            (sampled.arrival, sampled.partition) = (batch.first_row + row as u64, *partition);
            sampled.set(keys.row(row).data(), columns.iter().map(|rows| rows.row(row).data()));
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
        let of_first =
            self.plan.conditions.iter().filter(|condition| self.plan.key.first() == Some(&condition.part));
        let mut readings = of_first.filter_map(|condition| match condition.kind {
            ConditionKind::TimeRanges(reading) => Some(reading),
            ConditionKind::Equal => None,
        });
        readings.next().unwrap_or_default()
    }

    /// Widens the portions of the current batch.
    fn extend_portions(&mut self, keys: &Rows, columns: &[Rows], partitions: &[PartitionId]) {
        /// The rows with the least and the greatest key, each with the head of the key.
        #[derive(Clone, Copy)]
        struct Span {
            min: (u128, usize),
            max: (u128, usize),
        }
        impl Span {
            fn of(rows: &Rows, row: usize) -> Self {
                let own = (head(rows.row(row).as_ref()), row);
                Self { min: own, max: own }
            }
            fn widen(&mut self, rows: &Rows, row: usize) {
                let own = (head(rows.row(row).as_ref()), row);
                let order =
                    |end: (u128, usize)| own.0.cmp(&end.0).then_with(|| rows.row(row).cmp(&rows.row(end.1)));
                if order(self.min).is_lt() {
                    self.min = own;
                } else if order(self.max).is_gt() {
                    self.max = own;
                }
            }
            fn bytes(self, rows: &Rows) -> (KeyBytes, KeyBytes) {
                (rows.row(self.min.1).as_ref().into(), rows.row(self.max.1).as_ref().into())
            }
        }
        /// Rows of one batch: their number, and the spans of their keys and of each column.
        #[derive(Clone)]
        struct Ends {
            rows: u64,
            key: Span,
            columns: Vec<Span>,
        }
        let mut ends: Vec<Option<Ends>> = vec![None; self.open.len()];
        for (row, partition) in partitions.iter().enumerate() {
            let Some(slot) = ends.get_mut(partition.index()) else { continue };
            match slot {
                None => {
                    let of_columns = columns.iter().map(|rows| Span::of(rows, row)).collect();
                    *slot = Some(Ends { rows: 1, key: Span::of(keys, row), columns: of_columns });
                }
                Some(ends) => {
                    ends.rows += 1;
                    ends.key.widen(keys, row);
                    for (rows, span) in columns.iter().zip(&mut ends.columns) {
                        span.widen(rows, row);
                    }
                }
            }
        }
        for (open, ends) in self.open.iter_mut().zip(ends) {
            let Some(ends) = ends else { continue };
            let (min, max) = ends.key.bytes(keys);
            let columns = columns.iter().zip(&ends.columns).map(|(rows, span)| span.bytes(rows)).collect();
            let fresh = Portion { batch: self.batches, rows: ends.rows, min, max, columns };
            *open = Some(match open.take() {
                Some(open) => open.join(fresh),
                None => fresh,
            });
        }
    }

    /// Ends a batch of the simulated ingest, and with it the current batch if it has all of its
    /// batches.
    fn end_batch(&mut self) {
        self.batches_open += 1;
        if self.batches_open == self.batches_joined && self.batches >= MAX_BATCHES {
            // The current batch is now half of a batch.
            self.join_batches();
        }
        if self.batches_open >= self.batches_joined {
            self.close_batch();
        }
    }

    fn close_batch(&mut self) {
        let batch = self.batches;
        for (open, portions) in self.open.iter_mut().zip(&mut self.portions) {
            portions.extend(open.take().map(|portion| Portion { batch, ..portion }));
        }
        self.batches += 1;
        self.batches_open = 0;
    }

    /// Ends a last batch with fewer rows, which makes portions too.
    fn end_last_batch(&mut self) {
        if self.open.iter().any(Option::is_some) {
            self.close_batch();
        }
    }

    fn join_while_many(&mut self) {
        while self.batches > MAX_BATCHES {
            self.join_batches();
        }
    }

    fn join_batches(&mut self) {
        self.portions.iter_mut().for_each(join_batches);
        self.batches_joined *= 2;
        self.batches = self.batches.div_ceil(2);
    }

    pub(crate) fn finish(mut self, sample: Option<SampleSize>) -> Result<PrimaryKeyReport, EvaluateError> {
        self.end_last_batch();
        let nothing = Repetition::Sums(Repeats::default());
        let repeats = match std::mem::replace(&mut self.repetition, nothing) {
            Repetition::OfRows(keys) => keys.finish(EXAMPLES)?,
            Repetition::Sums(repeats) => repeats,
        };
        let reads = Reads {
            conditions: &self.plan.conditions,
            rows_of_columns: &self.rows_of_columns,
            sample: &self.sample,
        };
        let pruning = reads.tried(&self.portions);
        // A sample does not show whether the whole export repeats a key.
        let can_be_key = can_be_filled_in(self.null_rows, self.rows);
        let is_unique = repeats.duplicate_rows == 0 && can_be_key && sample.is_none();
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
            obstacles: obstacles(&self.plan, self.null_rows, self.rows, self.max_key_bytes),
            mean_key_bytes: self.key_bytes as f64 / rows,
            max_key_bytes: self.max_key_bytes,
            partitioned_by: self.plan.partition_key.part_names(),
            partitions: self.portions.len(),
            in_order_fraction: 1.0 - self.arrivals.late_rows() as f64 / rows,
            late: self.arrivals.late(),
            rank_correlation: rank_correlation(self.sample.items()),
            layout: LayoutReport::from_portions(
                &self.portions,
                self.plan.batch_rows * self.batches_joined,
                self.batches,
            ),
            pruning,
            candidate: self.plan.candidate,
            placed_by: self.plan.partition_key,
            repeated: examples,
        })
    }

    /// Judges the uniqueness of a key that no row repeats.
    fn uniqueness(&self) -> Option<Uniqueness> {
        // Longer keys are skipped, because their end is not kept.
        let whole = self.sample.items().iter().filter(|row| row.key().len() < MAX_KEPT_BYTES);
        let parser = self.rows_of_key.parser();
        let keys = whole.take(UNIQUENESS_ROWS).map(|row| parser.parse(row.key()));
        let columns = self.rows_of_key.arrays(keys).ok()?;
        Uniqueness::by_chance(&columns, self.rows)
    }
}

/// Returns the reasons why a table cannot have the key.
fn obstacles(plan: &PrimaryKeyPlan, null_rows: u64, rows: u64, max_key_bytes: u64) -> Vec<String> {
    let mut obstacles = Vec::new();
    for (part, column_type) in plan.candidate.part_names().iter().zip(&plan.types) {
        if plan.placement.function().ydb_function().is_some() && !column_type.is_key_type() {
            obstacles.push(format!("{part} is of type {column_type}, which YDB does not accept in keys"));
        }
    }
    if !can_be_filled_in(null_rows, rows) {
        obstacles.push(format!("{null_rows} rows have NULL in the key; key columns are NOT NULL"));
    }
    if plan.key.len() > MAX_KEY_COLUMNS {
        obstacles.push(format!("it has {} columns; YDB accepts {}", plan.key.len(), MAX_KEY_COLUMNS));
    }
    if max_key_bytes > MAX_KEY_BYTES as u64 {
        obstacles.push(format!("a key has {max_key_bytes} bytes; YDB accepts {}", MAX_KEY_BYTES));
    }
    obstacles
}

#[cfg(test)]
mod tests;
