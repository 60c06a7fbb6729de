//! Evaluations that several machines share, compared with local ones.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, TimestampMicrosecondArray, UInt64Array};
use arrow::compute::{concat_batches, nullif};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use super::*;
use crate::evaluate::figures::partition_key::PartitionKeyReport;
use crate::evaluate::{
    AdvisorOptions, AdvisorReport, Candidate, CountRows, HeavyHitter, advise, advise_with,
};
use evenkeel_input::source::{InputOptions, InputPath, row_counts};
use evenkeel_model::table::ColumnType;
use evenkeel_model::units::{Micros, PartitionCount};
use evenkeel_placement::placement::Function;
use evenkeel_stats::sketch::fold;
use evenkeel_testkit::{AdEvents, ad_events_definition};

/// Rows of an export, in one batch.
struct Rows {
    columns: Vec<Column>,
    batch: RecordBatch,
    /// Memory for partition keys, if it differs from the options.
    budget: Option<usize>,
}

impl Rows {
    fn events(rows: u64) -> Self {
        let events = AdEvents { rows, users: 3000, duplicate_share: 0.02, ..AdEvents::default() };
        let batches: Vec<RecordBatch> = events.batches(10_000).unwrap().map(Result::unwrap).collect();
        let batch = concat_batches(&batches[0].schema(), &batches).unwrap();
        Self { columns: ad_events_definition().unwrap().columns, batch, budget: None }
    }

    /// Replaces some values of every column by NULL.
    fn with_nulls(self) -> Self {
        let rows = self.batch.num_rows() as u64;
        let columns = self.batch.columns().iter().zip(0u64..).map(|(array, column)| {
            let is_null = (0..rows).map(|row| Some(fold(row, column).is_multiple_of(50)));
            nullif(array, &BooleanArray::from_iter(is_null)).unwrap()
        });
        let names = self.columns.iter().map(|column| (column.name.clone(), true));
        let columns = columns.zip(names).map(|(array, (name, nullable))| (name, array, nullable));
        Self { batch: RecordBatch::try_from_iter_with_nullable(columns).unwrap(), ..self }
    }

    fn without(self, column: &str) -> Self {
        let kept: Vec<usize> =
            (0..self.columns.len()).filter(|at| self.columns[*at].name != column).collect();
        let columns = kept.iter().map(|at| self.columns[*at].clone()).collect();
        Self { columns, batch: self.batch.project(&kept).unwrap(), budget: None }
    }

    /// Creates keys that mostly occur once, a few of them often, in two columns.
    fn many_keys(rows: u64) -> Self {
        let key = |row: u64| if row.is_multiple_of(20) { fold(row, 1) % 10 } else { fold(row, 2) };
        let first: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..rows).map(key)));
        let second: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| key(row / 2))));
        let at: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(
            (0..rows).map(|row| (row * 1000).cast_signed()),
        ));
        let names = [("a", ColumnType::Uint64), ("b", ColumnType::Uint64), ("at", ColumnType::Timestamp)];
        let columns = names.map(|(name, column_type)| Column::nullable(name, column_type)).to_vec();
        let batch = RecordBatch::try_from_iter([("a", first), ("b", second), ("at", at)]).unwrap();
        Self { columns, batch, budget: None }
    }

    fn feed(&self, evaluator: &mut Evaluator, rows: Range<u64>, batch_rows: usize) {
        let (begin, end) = (rows.start as usize, rows.end as usize);
        let slices = (begin..end).step_by(batch_rows);
        let mut slices = slices.map(|at| vec![self.batch.slice(at, batch_rows.min(end - at))]);
        evaluator.add_all(|| slices.next(), |_| Ok(())).unwrap();
    }

    fn len(&self) -> u64 {
        self.batch.num_rows() as u64
    }

    fn local(&self, options: &EvaluateOptions) -> Result<Evaluation, EvaluateError> {
        let mut evaluator = Evaluator::new(&self.columns, options.clone()).unwrap();
        evaluator.counters.budget = self.budget.unwrap_or(evaluator.counters.budget);
        self.feed(&mut evaluator, 0..self.len(), 4096);
        evaluator.finish()
    }

    fn states(&self, options: &EvaluateOptions, most: usize) -> Vec<Vec<u8>> {
        let count = |rows: Range<u64>| {
            let share = Share::PartitionKeys;
            let mut evaluator = Evaluator::for_share(&self.columns, options.clone(), share).unwrap();
            evaluator.counters.budget = self.budget.unwrap_or(evaluator.counters.budget);
            self.feed(&mut evaluator, rows, 1777);
            evaluator.state().unwrap()
        };
        spans(options, OnUnreadable::Fail, self.len(), most).into_iter().map(count).collect()
    }

    fn wholes(&self, options: &EvaluateOptions, spans: usize) -> Vec<Vec<u8>> {
        let count = |share: Share| {
            let mut evaluator = Evaluator::for_share(&self.columns, options.clone(), share).unwrap();
            self.feed(&mut evaluator, 0..self.len(), 3000);
            evaluator.into_whole(share).unwrap()
        };
        whole_shares(&self.columns, options, spans).unwrap().into_iter().map(count).collect()
    }

    fn shared(&self, options: &EvaluateOptions, most: usize) -> Result<Evaluation, EvaluateError> {
        let states = self.states(options, most);
        let wholes = self.wholes(options, states.len());
        assemble(&self.columns, options, states, wholes)
    }
}

fn keys(keys: &[&str]) -> Vec<Candidate> {
    keys.iter().map(|key| key.parse().unwrap()).collect()
}

fn partitions(counts: &[u64]) -> Vec<PartitionCount> {
    counts.iter().map(|count| PartitionCount::new(*count).unwrap()).collect()
}

fn options() -> EvaluateOptions {
    EvaluateOptions {
        partition_keys: keys(&[
            "user_id",
            "campaign_id",
            "hour(event_timestamp)",
            "campaign_id, user_id, event_type",
        ]),
        primary_keys: keys(&["event_timestamp, user_id, campaign_id", "user_id, event_timestamp"]),
        placements: vec![Function::default(), "cassandra".parse().unwrap()],
        partitions: partitions(&[16, 5]),
        weights: vec![1.0, 0.7],
        equality_columns: vec!["campaign_id".to_owned()],
        ..EvaluateOptions::default()
    }
}

#[test]
fn an_evaluation_that_is_shared_gives_the_figures_of_a_local_one() {
    let rows = Rows::events(6_000);
    for batch_rows in [300, 1_000, 100_000] {
        let options = EvaluateOptions { batch_rows, ..options() };
        let local = rows.local(&options).unwrap();
        assert!(
            local.primary_keys[0].duplicate_rows > 0 && !local.candidates[0].placements[0].windows.is_empty()
        );
        for most in 1..=7 {
            assert_eq!(rows.shared(&options, most).unwrap(), local, "{batch_rows} {most}");
        }
    }
}

#[test]
fn nulls_asked_windows_and_exports_without_time_are_shared_alike() {
    let rows = Rows::events(6_000).with_nulls();
    let options = EvaluateOptions { batch_rows: 500, ..options() };
    assert_eq!(rows.shared(&options, 5).unwrap(), rows.local(&options).unwrap());
    // The time axis takes a separate pass.
    let options = EvaluateOptions { primary_keys: Vec::new(), ..options };
    assert_eq!(whole_shares(&rows.columns, &options, 5).unwrap(), [Share::TimeAxis]);
    assert_eq!(rows.shared(&options, 5).unwrap(), rows.local(&options).unwrap());
    let windowed = EvaluateOptions { window: Some(Micros::MINUTE), ..options.clone() };
    assert_eq!(rows.shared(&windowed, 5).unwrap(), rows.local(&windowed).unwrap());
    let timeless = Rows::events(6_000).without("event_timestamp");
    let options = EvaluateOptions {
        partition_keys: keys(&["user_id", "campaign_id, user_id"]),
        primary_keys: keys(&["user_id, campaign_id"]),
        ..options
    };
    let local = timeless.local(&options).unwrap();
    assert_eq!(local.time_range, None);
    assert_eq!(timeless.shared(&options, 5).unwrap(), local);
}

#[test]
fn a_sample_is_one_stretch_and_the_same_rows() {
    let rows = Rows::events(5_000);
    let options = EvaluateOptions { sample: Some(0.3), batch_rows: 500, ..options() };
    assert_eq!(spans(&options, OnUnreadable::Fail, 5_000, 7).len(), 1);
    assert_eq!(rows.shared(&options, 7).unwrap(), rows.local(&options).unwrap());
}

#[test]
fn no_rows_are_none_for_either() {
    let rows = Rows::events(10);
    let rows = Rows { batch: rows.batch.slice(0, 0), ..rows };
    assert!(matches!(rows.local(&options()), Err(EvaluateError::NoRows)));
    assert!(matches!(rows.shared(&options(), 4), Err(EvaluateError::NoRows)));
}

#[test]
fn keys_that_are_too_many_to_number_are_shared_alike() {
    let rows = Rows::many_keys(150_000);
    let options = EvaluateOptions {
        partition_keys: keys(&["a", "b, a"]),
        primary_keys: Vec::new(),
        partitions: partitions(&[64]),
        batch_rows: 10_000,
        ..EvaluateOptions::default()
    };
    let mut local = rows.local(&options).unwrap();
    for most in [2, 7] {
        let mut shared = rows.shared(&options, most).unwrap();
        for (key, of_local) in shared.candidates.iter_mut().zip(&mut local.candidates) {
            assert!(key.distinct.exact && key.distinct.estimate > 1 << 17);
            forget_values(&mut key.heavy_hitters);
            forget_values(&mut of_local.heavy_hitters);
        }
        assert_eq!(shared, local, "{most}");
    }
}

/// Clears the values, which may be known in one evaluation and not in the other.
fn forget_values(hitters: &mut [HeavyHitter]) {
    for hitter in hitters {
        hitter.key.clear();
        hitter.identity = None;
    }
}

#[test]
fn beyond_memory_counts_are_exact_and_shared_ones_too() {
    let rows = Rows::many_keys(300_000);
    let options = EvaluateOptions {
        partition_keys: keys(&["a", "b, a", "a, trunc(at, 1s)", "a, trunc(at, 2s)"]),
        partitions: partitions(&[16]),
        batch_rows: 10_000,
        ..EvaluateOptions::default()
    };
    let exact = rows.local(&options).unwrap();
    // The values of each key take 2.4 MB, and counting itself 5 MB.
    let rows = Rows { budget: Some(24 << 20), ..rows };
    for evaluation in [rows.local(&options).unwrap(), rows.shared(&options, 3).unwrap()] {
        assert_eq!((evaluation.rows, &evaluation.time_range), (exact.rows, &exact.time_range));
        for (key, truth) in evaluation.candidates.iter().zip(&exact.candidates) {
            assert!(key.distinct.exact && key.distinct == truth.distinct, "{:?}", key.distinct);
            assert_eq!(key.placements[0].rows_per_partition, truth.placements[0].rows_per_partition);
            assert_eq!(key.placements[0].windows, truth.placements[0].windows);
            let heaviest = |key: &PartitionKeyReport| -> Vec<u64> {
                key.heavy_hitters.iter().map(|heavy| heavy.rows).collect()
            };
            assert_eq!(heaviest(key), heaviest(truth));
        }
    }
}

#[test]
fn shares_that_are_damaged_or_missing_are_refused() {
    let rows = Rows::events(1_500);
    let options = EvaluateOptions { batch_rows: 500, ..options() };
    let (states, wholes) = (rows.states(&options, 3), rows.wholes(&options, 3));
    let assembled =
        |states: &[Vec<u8>], wholes: &[Vec<u8>]| assemble(&rows.columns, &options, states, wholes);
    assert!(assembled(&states, &wholes).is_ok());
    let refused = |states: &[Vec<u8>], wholes: &[Vec<u8>]| {
        let error = assembled(states, wholes).unwrap_err();
        assert!(matches!(error, EvaluateError::KeyParts { .. }), "{error}");
    };
    refused(&states[..2], &wholes);
    refused(&states, &wholes[..1]);
    refused(&states, &[wholes[0].clone(), wholes[0].clone()]);
    refused(&wholes, &states);
    for (at, parts) in [states.clone(), wholes.clone()].into_iter().enumerate() {
        for step in 0..20 {
            let mut damaged = parts.clone();
            let place = fold(step, 1) as usize % damaged[1].len();
            if step % 2 == 0 {
                damaged[1].truncate(place);
            } else {
                damaged[1][place] ^= 1 << (step % 8);
            }
            if at == 0 { refused(&damaged, &wholes) } else { refused(&states, &damaged) }
        }
    }
    let other = EvaluateOptions { partitions: partitions(&[8]), ..options.clone() };
    let other = assemble(&rows.columns, &other, &states, &wholes);
    assert!(matches!(other, Err(EvaluateError::KeyParts { .. })));
}

#[test]
fn stretches_are_cut_where_batches_end() {
    let options = EvaluateOptions { batch_rows: 100, ..EvaluateOptions::default() };
    let cut = |rows, most| spans(&options, OnUnreadable::Fail, rows, most);
    assert_eq!(cut(950, 3), [0..300, 300..600, 600..950]);
    assert_eq!(cut(250, 9), [0..100, 100..200, 200..250]);
    let whole = |rows: u64| Vec::from([Range { start: 0, end: rows }]);
    assert_eq!((cut(0, 3), cut(100, 3), cut(7, 0)), (whole(0), whole(100), whole(7)));
    assert_eq!(spans(&options, OnUnreadable::Skip, 950, 3), whole(950));
    assert_eq!(cut(u64::MAX, 2).last().map(|rows| rows.end), Some(u64::MAX));
}

fn write(path: &Path, batch: &RecordBatch) {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(700)).build();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// Counts exports as other machines would, which have only the data that is sent to them, in at
/// most this many ranges.
struct RemoteCounter(usize);

impl CountRows for RemoteCounter {
    fn count_rows(
        &self,
        export: &Export,
        options: &EvaluateOptions,
        on_unreadable: OnUnreadable,
        _: &AtomicBool,
    ) -> Result<(Evaluation, Unreadable), EvaluateError> {
        assert_eq!(on_unreadable, OnUnreadable::Fail);
        elsewhere(export, options, self.0)
    }
}

fn elsewhere(
    export: &Export,
    options: &EvaluateOptions,
    most: usize,
) -> Result<(Evaluation, Unreadable), EvaluateError> {
    let text =
        serde_json::to_string(&(options, export.columns(), export.inputs(), export.options())).unwrap();
    let (options, columns, inputs, reading): (EvaluateOptions, Vec<Column>, Vec<InputPath>, InputOptions) =
        serde_json::from_str(&text).unwrap();
    let there = Export::with_columns(inputs, reading, columns.clone());
    let counts = row_counts(export.inputs(), export.options()).unwrap().unwrap();
    let cut = spans(&options, OnUnreadable::Fail, counts.iter().sum(), most);
    let count = |share, span: Option<RowSpan>| {
        let stop = AtomicBool::new(false);
        count_share(&there, &options, share, span.as_ref(), OnUnreadable::Fail, &|_| (), &stop)
    };
    let mut unreadable = Unreadable::default();
    let (mut states, mut wholes) = (Vec::new(), Vec::new());
    let whole = whole_shares(&columns, &options, cut.len())?;
    for rows in cut {
        let span = RowSpan { rows, row_counts: counts.clone() };
        let (state, left_out) = count(Share::PartitionKeys, Some(span))?;
        unreadable.merge(left_out);
        states.push(state);
    }
    for share in whole {
        wholes.push(count(share, None)?.0);
    }
    Ok((assemble(&columns, &options, states, wholes)?, unreadable))
}

#[test]
fn an_assessment_of_files_is_the_same_whoever_counts() {
    let rows = Rows::events(9_000).with_nulls();
    let folder = tempfile::tempdir().unwrap();
    let mut inputs = Vec::new();
    for (number, range) in [0..2500, 2500..2500, 2500..9000].into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.parquet"));
        write(&path, &rows.batch.slice(range.start, range.len()));
        inputs.push(InputPath::File(path));
    }
    let export = Export::open(&inputs, InputOptions::default(), &Default::default()).unwrap();
    let stop = AtomicBool::new(false);
    // Named keys, and keys that are searched for.
    let in_small_batches = EvaluateOptions { batch_rows: 1000, ..EvaluateOptions::default() };
    for evaluate in [EvaluateOptions { batch_rows: 1000, ..options() }, in_small_batches] {
        let options = AdvisorOptions { evaluate, ..AdvisorOptions::default() };
        let timeless = |assessment: AdvisorReport| AdvisorReport { seconds: 0.0, ..assessment };
        let local = timeless(advise(&export, options.clone(), &|_| (), &stop).unwrap());
        for most in [1, 4] {
            let shared = advise_with(&export, options.clone(), &RemoteCounter(most), &stop).unwrap();
            assert_eq!(timeless(shared), local);
        }
    }
}
