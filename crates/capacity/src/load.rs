//! A single read of an export: the load on the cells of every partition key, window by window.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use arrow::array::{ArrayRef, RecordBatch, TimestampMicrosecondArray};
use rayon::prelude::{
    IndexedParallelIterator, IntoParallelRefIterator, IntoParallelRefMutIterator, ParallelIterator,
};

use crate::arrivals::{ArrivalWindow, Arrivals};
use crate::error::CapacityError;
use evenkeel_advisor::evaluate::{EvaluateError, EvaluateOptions, Evaluator};
use evenkeel_input::source::{Export, OnUnreadable};
use evenkeel_model::table::{Candidate, Column, ColumnType, Transform};
use evenkeel_model::units::{ByteSize, Micros, PartitionCount, PartitionId};
use evenkeel_model::values::columns_to_read;
use evenkeel_model::values::{derived_column, instants, row_bytes};
use evenkeel_placement::placement::{Function, JointPlacement};
use evenkeel_stats::sketch::{KeyCounter, KeyCounts, MOST_BYTES_ON_DISK, SpillError, key_identities};
use evenkeel_stats::throughput::{Concentration, DEFAULT_PARTITION_RATE};
use evenkeel_stats::windows::{MOST_WINDOWS, TimeAxis, TimeRange, WindowCounts, WindowedRows};

/// Memory budget for counting distinct keys exactly, for all partition keys together.
const KEY_BYTES: usize = 256 << 20;
/// Memory budget for evaluating the same keys; if it is too small, this much above the minimum.
const EVALUATION_MEMORY: ByteSize = ByteSize::mib(512);
/// Number of rows that may be counted between two checks of the budget.
const ROWS_AT_ONCE: usize = 1 << 17;
/// Memory budget for counting rows and bytes by window and cell, if windows of a given length are
/// numerous.
const WINDOW_BYTES: usize = 512 << 20;
/// Rows per partition required in the median window when the window length is derived from the
/// data: with fewer, chance adds too much.
pub(super) const ROWS_PER_PARTITION: u64 = 10;

/// Source of the arrival times of rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clock {
    /// Times from a time column, by its position.
    Column(usize),
    /// Rows one after the other, at this many per second.
    Rate(f64),
}

/// Options of the count.
pub(super) struct Plan<'a> {
    pub(super) keys: &'a [Candidate],
    pub(super) function: Function,
    pub(super) partitions: &'a [PartitionCount],
    pub(super) clock: Clock,
    pub(super) window: Option<Micros>,
    pub(super) on_unreadable: OnUnreadable,
}

/// Result of the count.
pub(super) struct Counted {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    pub(super) unreadable_rows: u64,
    pub(super) without_time: u64,
    pub(super) window: Micros,
    pub(super) range: TimeRange,
    pub(super) keys: Vec<CountedKey>,
}

/// Counts of one partition key.
pub(super) struct CountedKey {
    pub(super) counts: KeyCounts<()>,
    /// Load on its partitions, for each partition count; each row counts for itself.
    pub(super) arrivals: BTreeMap<PartitionCount, Arrivals>,
    /// Concentration on the busiest partition, taken from an evaluation of the key.
    pub(super) concentrations: BTreeMap<PartitionCount, Concentration>,
}

/// State of a partition key while rows are counted.
struct KeyLoad {
    parts: Vec<(usize, Transform)>,
    groups: Vec<Group>,
    keys: KeyCounter<()>,
}

/// Partition counts that share cells.
struct Group {
    joint: Arc<JointPlacement>,
    rows: WindowCounts,
    bytes: WindowCounts,
}

/// Figures of the rows of one batch, computed independently of other batches.
struct Prepared {
    times: ArrayRef,
    bytes: Vec<u32>,
    /// For each key: identities of its values, and the cells of each group.
    keys: Vec<(Vec<u64>, Vec<Vec<PartitionId>>)>,
}

impl KeyLoad {
    fn new(key: &Candidate, columns: &[Column], plan: &Plan<'_>) -> Result<Self, CapacityError> {
        let mut parts = Vec::new();
        let mut types = Vec::new();
        for part in key.parts() {
            let column = column_named(columns, &part.column)?;
            let declared = columns.get(column).ok_or(CapacityError::Columns)?.column_type;
            types.push(match part.transform {
                Transform::Identity => declared,
                _ if !declared.is_timestamp() => {
                    return Err(CapacityError::NotCut { part: part.to_string(), column_type: declared });
                }
                Transform::Date => ColumnType::Date,
                Transform::Truncate(_) => ColumnType::Timestamp,
            });
            parts.push((column, part.transform));
        }
        let group = |joint: JointPlacement| Group {
            rows: WindowCounts::new(joint.cells()),
            bytes: WindowCounts::new(joint.cells()),
            joint: Arc::new(joint),
        };
        let groups = JointPlacement::group(plan.function, plan.partitions, &types);
        Ok(Self { parts, groups: groups.into_iter().map(group).collect(), keys: KeyCounter::new() })
    }

    /// Returns the identities and cells of the rows of a batch.
    fn prepare(&self, batch: &RecordBatch) -> Result<(Vec<u64>, Vec<Vec<PartitionId>>), CapacityError> {
        let derived = |(column, transform): &(usize, Transform)| {
            batch.columns().get(*column).and_then(|array| derived_column(array, *transform))
        };
        let columns: Option<Vec<ArrayRef>> = self.parts.iter().map(derived).collect();
        let columns = columns.ok_or(CapacityError::Columns)?;
        // All groups use the same function.
        let hashes = self.groups.first().map(|group| group.joint.hash(&columns)).transpose()?;
        let hashes = hashes.unwrap_or_default();
        let mut cells = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            let mut of_group = Vec::with_capacity(batch.num_rows());
            group.joint.assign_hashes(&hashes, &columns, &mut of_group)?;
            cells.push(of_group);
        }
        Ok((key_identities(columns.iter()), cells))
    }

    /// Counts the rows of a batch; distinct keys use at most `bytes` of memory.
    fn count(
        &mut self,
        batch: &Prepared,
        position: usize,
        windows: &WindowedRows,
        bytes: usize,
    ) -> Result<(), SpillError> {
        let Some((identities, cells)) = batch.keys.get(position) else { return Ok(()) };
        self.keys.add(identities, |_| ());
        if self.keys.exact_bytes_after(ROWS_AT_ONCE).is_some_and(|exact| exact > bytes) {
            self.keys.reduce(MOST_BYTES_ON_DISK)?;
        }
        for (group, cells) in self.groups.iter_mut().zip(cells) {
            let (rows_at, bytes_at) = (group.rows.offsets(windows), group.bytes.offsets(windows));
            for ((cell, slot), bytes) in cells.iter().zip(&windows.slots).zip(&batch.bytes) {
                let slot = *slot as usize;
                if let (Some(rows_at), Some(bytes_at)) = (rows_at.get(slot), bytes_at.get(slot)) {
                    group.rows.add(*rows_at, *cell, 1);
                    group.bytes.add(*bytes_at, *cell, u64::from(*bytes));
                }
            }
        }
        Ok(())
    }

    fn finish(self, window: Micros) -> Result<CountedKey, SpillError> {
        let mut arrivals = BTreeMap::new();
        for group in &self.groups {
            for (count, partition_of_cell) in group.joint.counts().iter().zip(group.joint.partitions()) {
                let rows = group.rows.windows(window, partition_of_cell);
                let bytes = group.bytes.windows(window, partition_of_cell);
                let windows = rows.into_iter().zip(bytes).map(|(rows, bytes)| ArrivalWindow {
                    start_micros: rows.start_micros,
                    rows: rows.rows_per_partition,
                    bytes: bytes.rows_per_partition,
                });
                arrivals.insert(*count, Arrivals { window, scale: 1.0, windows: windows.collect() });
            }
        }
        Ok(CountedKey { counts: self.keys.finish(0)?, arrivals, concentrations: BTreeMap::new() })
    }
}

/// Returns the position of a column; YDB column names are case-sensitive.
pub(super) fn column_named(columns: &[Column], name: &str) -> Result<usize, CapacityError> {
    let found = columns.iter().position(|column| column.name == name);
    found.ok_or_else(|| CapacityError::UnknownColumn {
        column: name.to_owned(),
        known: columns.iter().map(|column| column.name.clone()).collect(),
    })
}

/// Reads an export once. `progress` is called with the number of rows so far; `stop` aborts the
/// read.
pub(super) fn count(
    export: &Export,
    plan: &Plan<'_>,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<Counted, CapacityError> {
    let mut counter = Counter::new(export.columns(), plan)?;
    let projection = counter.projection(export.columns());
    let unreadable = std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<Vec<RecordBatch>>(1);
        let reader = scope.spawn(move || {
            // Sending fails only if counting has failed, which reports its own error.
            let send = |block| sender.send(block).is_ok();
            export.read_blocks::<CapacityError>(plan.on_unreadable, &projection, send)
        });
        let counted = receiver.iter().try_for_each(|block| {
            counter.add(&block)?;
            progress(counter.rows);
            if stop.load(Ordering::Relaxed) { Err(CapacityError::Interrupted) } else { Ok(()) }
        });
        drop(receiver);
        let read = reader.join().unwrap_or(Err(CapacityError::Interrupted));
        counted.and(read)
    })?;
    counter.finish(unreadable.rows)
}

/// Counts of all keys so far.
struct Counter<'a> {
    plan: &'a Plan<'a>,
    keys: Vec<KeyLoad>,
    axis: TimeAxis,
    most_windows: usize,
    evaluator: Evaluator,
    rows: u64,
    bytes: u64,
}

impl<'a> Counter<'a> {
    fn new(columns: &[Column], plan: &'a Plan<'a>) -> Result<Self, CapacityError> {
        let keys: Vec<KeyLoad> =
            plan.keys.iter().map(|key| KeyLoad::new(key, columns, plan)).collect::<Result<_, _>>()?;
        let cells: usize = keys.iter().flat_map(|key| &key.groups).map(|group| group.joint.cells()).sum();
        let most_windows = (WINDOW_BYTES / (2 * size_of::<u64>() * cells.max(1))).max(MOST_WINDOWS);
        Ok(Self {
            plan,
            keys,
            axis: TimeAxis::new(plan.window, most_windows, finest(plan, columns)),
            most_windows,
            evaluator: evaluator(plan, columns)?,
            rows: 0,
            bytes: 0,
        })
    }

    /// Returns for each column whether it must be read.
    fn projection(&self, columns: &[Column]) -> Vec<bool> {
        let mut named: Vec<usize> =
            self.keys.iter().flat_map(|key| key.parts.iter().map(|(column, _)| *column)).collect();
        if let Clock::Column(column) = self.plan.clock {
            named.push(column);
        }
        columns_to_read(columns, &named)
    }

    fn add(&mut self, block: &[RecordBatch]) -> Result<(), CapacityError> {
        let lengths = block.iter().map(|batch| batch.num_rows() as u64);
        let first_rows: Vec<u64> = lengths
            .clone()
            .scan(self.rows, |next, length| Some(std::mem::replace(next, *next + length)))
            .collect();
        let prepare =
            |(batch, first): (&RecordBatch, &u64)| prepare(batch, *first, self.plan.clock, &self.keys);
        let prepared: Vec<Prepared> =
            block.par_iter().zip(&first_rows).map(prepare).collect::<Result<_, CapacityError>>()?;
        let mut windows = Vec::with_capacity(prepared.len());
        for batch in &prepared {
            let windowed = self.axis.add(&batch.times);
            windows.push(windowed.ok_or_else(|| CapacityError::TooManyWindows {
                length: self.plan.window.unwrap_or(Micros::SECOND),
                most: self.most_windows,
            })?);
            self.bytes += batch.bytes.iter().map(|bytes| u64::from(*bytes)).sum::<u64>();
        }
        let key_bytes = KEY_BYTES / self.keys.len().max(1);
        self.keys.par_iter_mut().enumerate().try_for_each(|(position, key)| {
            let mut batches = prepared.iter().zip(&windows);
            batches.try_for_each(|(batch, windows)| key.count(batch, position, windows, key_bytes))
        })?;
        block.iter().try_for_each(|batch| self.evaluator.add(batch))?;
        self.rows += lengths.sum::<u64>();
        Ok(())
    }

    fn finish(self, unreadable_rows: u64) -> Result<Counted, CapacityError> {
        if self.rows == 0 {
            return Err(CapacityError::NoRows);
        }
        let range = self.axis.range(1.0).ok_or(CapacityError::NoTimes)?;
        let most = self.plan.partitions.iter().map(|count| u64::from(count.get())).max().unwrap_or(1);
        let window = self.axis.final_length(ROWS_PER_PARTITION * most);
        let keys = self.keys.into_iter().map(|key| key.finish(window));
        let mut keys: Vec<CountedKey> = keys.collect::<Result<_, _>>()?;
        // Reports are in the order of the keys.
        for (key, report) in keys.iter_mut().zip(self.evaluator.finish()?.candidates) {
            for placement in &report.placements {
                let count = PartitionCount::new(placement.skew.partitions as u64);
                let count = count.map_err(|_| CapacityError::Columns)?;
                key.concentrations.insert(count, placement.capacity.concentration);
            }
        }
        Ok(Counted {
            rows: self.rows,
            bytes: self.bytes,
            unreadable_rows,
            without_time: self.axis.null_rows,
            window,
            range,
            keys,
        })
    }
}

/// Creates the evaluator of the same keys; the simulation adopts its judgement of the load at a
/// time.
fn evaluator(plan: &Plan<'_>, columns: &[Column]) -> Result<Evaluator, CapacityError> {
    let time = match plan.clock {
        Clock::Column(column) => columns.get(column).map(|column| column.name.clone()),
        Clock::Rate(_) => None,
    };
    let options = EvaluateOptions {
        partition_keys: plan.keys.to_vec(),
        placements: vec![plan.function],
        partitions: plan.partitions.to_vec(),
        time,
        window: plan.window,
        partition_rate: DEFAULT_PARTITION_RATE,
        memory: EVALUATION_MEMORY,
        ..EvaluateOptions::default()
    };
    match Evaluator::new(columns, options.clone()) {
        Err(EvaluateError::Memory { least, .. }) => {
            let memory = ByteSize(least.0.saturating_add(EVALUATION_MEMORY.0));
            Ok(Evaluator::new(columns, EvaluateOptions { memory, ..options })?)
        }
        made => Ok(made?),
    }
}

/// Returns the resolution of the time column; no window is shorter.
fn finest(plan: &Plan<'_>, columns: &[Column]) -> Micros {
    match plan.clock {
        Clock::Column(column)
            if columns.get(column).is_some_and(|column| !column.column_type.is_timestamp()) =>
        {
            Micros::DAY
        }
        _ => Micros::new(1),
    }
}

fn prepare(
    batch: &RecordBatch,
    first_row: u64,
    clock: Clock,
    keys: &[KeyLoad],
) -> Result<Prepared, CapacityError> {
    let times = match clock {
        Clock::Column(column) => {
            batch.columns().get(column).and_then(instants).ok_or(CapacityError::Columns)?
        }
        Clock::Rate(rate) => {
            let at = |row: u64| (row as f64 * 1e6 / rate) as i64;
            let rows = first_row..first_row + batch.num_rows() as u64;
            Arc::new(TimestampMicrosecondArray::from_iter_values(rows.map(at)))
        }
    };
    Ok(Prepared {
        times,
        bytes: row_bytes(batch),
        keys: keys.iter().map(|key| key.prepare(batch)).collect::<Result<_, _>>()?,
    })
}
