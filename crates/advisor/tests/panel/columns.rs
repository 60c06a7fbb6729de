//! Columns of made-up exports.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float64Array, Int32Array,
    Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt32Array,
};
use arrow::compute::take;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal, Zipf};

/// 2026-03-01 in microseconds since 1970.
pub(crate) const START: i64 = 1_772_323_200_000_000;
pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const DAY: i64 = 86_400 * SECOND;

pub(crate) fn rng(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// Numbers below `values`, each about as frequent.
pub(crate) fn uniform(rows: usize, values: u64, seed: u64) -> Vec<u64> {
    let mut rng = rng(seed);
    (0..rows).map(|_| rng.random_range(0..values)).collect()
}

/// Numbers below `values` with frequencies that follow Zipf's law, in no order.
pub(crate) fn zipf(rows: usize, values: u64, exponent: f64, seed: u64) -> Vec<u64> {
    let mut rng = rng(seed);
    let law = Zipf::new(values as f64, exponent).unwrap();
    let mut names: Vec<u64> = (0..values).collect();
    names.shuffle(&mut rng);
    (0..rows).map(|_| names[law.sample(&mut rng) as usize - 1]).collect()
}

pub(crate) fn int64(values: impl IntoIterator<Item = u64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.into_iter().map(|v| v as i64)))
}

pub(crate) fn signed(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

pub(crate) fn int32(values: impl IntoIterator<Item = u64>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values.into_iter().map(|v| v as i32)))
}

pub(crate) fn texts(values: impl IntoIterator<Item = String>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

/// Codes such as `u000123`.
pub(crate) fn codes(prefix: &str, values: &[u64]) -> ArrayRef {
    texts(values.iter().map(|value| format!("{prefix}{value:06}")))
}

pub(crate) fn choice(rows: usize, words: &[&str], seed: u64) -> ArrayRef {
    let picked = zipf(rows, words.len() as u64, 0.7, seed);
    texts(picked.into_iter().map(|at| words[at as usize].to_owned()))
}

pub(crate) fn serial(rows: usize) -> ArrayRef {
    int64(1..=rows as u64)
}

pub(crate) fn uuids(rows: usize, seed: u64) -> ArrayRef {
    let mut rng = rng(seed);
    let uuid = |_| {
        let (a, b): (u64, u64) = (rng.random(), rng.random());
        uuid::Uuid::from_u64_pair(a, b).to_string()
    };
    texts((0..rows).map(uuid))
}

/// A UUID in 16 bytes for each number.
pub(crate) fn uuid_bytes(values: &[u64]) -> ArrayRef {
    let uuid_of = |value: &u64| uuid::Uuid::from_u64_pair(value.wrapping_mul(0x9E37_79B9_7F4A_7C15), !value);
    let ids = values.iter().map(|value| uuid_of(value).into_bytes());
    Arc::new(FixedSizeBinaryArray::try_from_iter(ids).unwrap())
}

/// UUIDs of version 7, made at the given times.
pub(crate) fn uuids_v7(micros: &[i64], seed: u64) -> ArrayRef {
    let mut rng = rng(seed);
    texts(micros.iter().map(|at| {
        let random: [u8; 10] = rng.random();
        uuid::Builder::from_unix_timestamp_millis((at / 1000) as u64, &random).into_uuid().to_string()
    }))
}

pub(crate) fn floats(rows: usize, mean: f64, spread: f64, seed: u64) -> ArrayRef {
    let mut rng = rng(seed);
    let law = LogNormal::new(mean.ln(), spread).unwrap();
    Arc::new(Float64Array::from_iter_values((0..rows).map(|_| law.sample(&mut rng))))
}

/// Whole numbers with a long tail.
pub(crate) fn amounts(rows: usize, typical: f64, seed: u64) -> ArrayRef {
    let mut rng = rng(seed);
    let law = LogNormal::new(typical.ln(), 1.0).unwrap();
    int64((0..rows).map(|_| law.sample(&mut rng) as u64))
}

pub(crate) fn decimals(rows: usize, most: u64, seed: u64) -> ArrayRef {
    let values = uniform(rows, most, seed).into_iter().map(|v| i128::from(v) * 7 + 3);
    Arc::new(Decimal128Array::from_iter_values(values).with_precision_and_scale(18, 2).unwrap())
}

pub(crate) fn flags(rows: usize, seed: u64) -> ArrayRef {
    Arc::new(BooleanArray::from(uniform(rows, 10, seed).into_iter().map(|v| v < 3).collect::<Vec<_>>()))
}

const WORDS: [&str; 24] = [
    "quick",
    "final",
    "ideas",
    "above",
    "packages",
    "sleep",
    "carefully",
    "regular",
    "deposits",
    "among",
    "the",
    "pending",
    "accounts",
    "boost",
    "furiously",
    "express",
    "requests",
    "haggle",
    "silent",
    "theodolites",
    "wake",
    "blithely",
    "even",
    "foxes",
];

pub(crate) fn sentences(rows: usize, seed: u64) -> ArrayRef {
    let mut rng = rng(seed);
    texts((0..rows).map(|_| {
        let words = rng.random_range(3..12);
        (0..words).map(|_| WORDS[rng.random_range(0..WORDS.len())]).collect::<Vec<_>>().join(" ")
    }))
}

/// Times that rise by up to twice `mean_seconds` from row to row.
pub(crate) fn rising(rows: usize, mean_seconds: f64, seed: u64) -> Vec<i64> {
    let mut rng = rng(seed);
    let mut now = START;
    (0..rows)
        .map(|_| {
            now += (rng.random::<f64>() * 2.0 * mean_seconds * SECOND as f64) as i64;
            now
        })
        .collect()
}

pub(crate) fn times(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(TimestampMicrosecondArray::from_iter_values(values))
}

/// Times cut to whole seconds.
pub(crate) fn seconds(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    times(values.into_iter().map(|at| at / SECOND * SECOND))
}

/// Microseconds as seconds since 1970, as programs in Python and C write them.
pub(crate) fn seconds_with_fractions(micros: &[i64]) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(micros.iter().map(|micros| *micros as f64 / 1e6)))
}

/// Shares of NULL in a column.
pub(crate) fn with_nulls(array: &ArrayRef, share: f64, seed: u64) -> ArrayRef {
    let mut rng = rng(seed);
    let rows = array.len() as u32;
    let picks: UInt32Array = (0..rows).map(|row| (rng.random::<f64>() >= share).then_some(row)).collect();
    take(array, &picks, None).unwrap()
}

pub(crate) fn export(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// The rows in another order.
pub(crate) fn shuffled(batch: &RecordBatch, seed: u64) -> RecordBatch {
    let mut order: Vec<u32> = (0..batch.num_rows() as u32).collect();
    order.shuffle(&mut rng(seed));
    arrow::compute::take_record_batch(batch, &UInt32Array::from(order)).unwrap()
}

/// The rows sorted by a column.
pub(crate) fn sorted(batch: &RecordBatch, column: &str) -> RecordBatch {
    let array = batch.column_by_name(column).unwrap();
    let order = arrow::compute::sort_to_indices(array, None, None).unwrap();
    arrow::compute::take_record_batch(batch, &order).unwrap()
}

/// The columns in another order with names that say nothing; and which name was which.
pub(crate) fn disguised(batch: &RecordBatch, seed: u64) -> (RecordBatch, Vec<(String, String)>) {
    let mut order: Vec<usize> = (0..batch.num_columns()).collect();
    order.shuffle(&mut rng(seed + 77));
    let schema = batch.schema();
    let names: Vec<(String, String)> = order
        .iter()
        .enumerate()
        .map(|(place, column)| (format!("c{}", place + 1), schema.field(*column).name().clone()))
        .collect();
    let columns =
        order.iter().zip(&names).map(|(column, (name, _))| (name.as_str(), batch.column(*column).clone()));
    (export(columns.collect()), names)
}
