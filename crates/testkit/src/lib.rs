//! Generated exports, such as the ad events of the YDB documentation; equal seeds give equal rows.

mod access_log;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow::error::ArrowError;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp, Zipf};
use thiserror::Error;

use evenkeel_input::sink::{OutputFormat, PartFile, Sink, SinkError};
use evenkeel_model::bounded::quote;
use evenkeel_model::table::{
    CreateTable, DdlError, SpecError, TableDefinition, TableSpec, parse_create_table,
};

pub use crate::access_log::AccessLog;

/// DDL of the table for the events.
pub const AD_EVENTS_DDL: &str = include_str!("../../../data/ad_events.sql");

/// 2026-01-01T00:00:00Z, when the first event happens.
const START_MICROS: i64 = 1_767_225_600_000_000;
/// Advertisements per campaign.
const ADS_PER_CAMPAIGN: u64 = 20;
/// Share of events that are clicks. Higher than in real display advertising, so that small data
/// sets have some.
const CLICK_SHARE: f64 = 0.05;
/// Number of recent events that a duplicate may repeat.
const DUPLICATE_REACH: usize = 10_000;
/// A prime above the largest number of users. Multiplication modulo a prime shuffles ids, so that
/// active users are not neighbours.
const USER_PRIME: u64 = 999_999_937;
const USER_FACTOR: u64 = 600_000_007;

/// Parameters of the events.
#[derive(Debug, Clone, PartialEq)]
pub struct AdEvents {
    /// Number of rows, duplicates included.
    pub rows: u64,
    /// Random seed; equal seeds give equal rows.
    pub seed: u64,
    /// Hours over which the events are spread evenly.
    pub hours: f64,
    /// Share of events that belong to campaign 1, 0 to 1.
    pub campaign_share: f64,
    /// Number of campaigns; all except the largest are equally active.
    pub campaigns: u64,
    /// Number of users, up to 900 million.
    pub users: u64,
    /// Exponent of the Zipf distribution of user activity; 0 makes all users equally active.
    pub user_skew: f64,
    /// Share of rows that arrive late: their time is 10 minutes earlier on average.
    pub late_share: f64,
    /// Share of rows that repeat an earlier row, as an at-least-once queue does.
    pub duplicate_share: f64,
}

impl Default for AdEvents {
    fn default() -> Self {
        Self {
            rows: 1_000_000,
            seed: 1,
            hours: 48.0,
            campaign_share: 0.8,
            campaigns: 1_000,
            users: 100_000,
            user_skew: 0.5,
            late_share: 0.01,
            duplicate_share: 0.0,
        }
    }
}

/// Reason why events cannot be generated.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum GenerateError {
    #[error("{name} is {found}; it must be {expected}", found = quote(found))]
    Parameter { name: &'static str, found: String, expected: &'static str },
    #[error("{path}: exists already; choose another folder", path = path.display())]
    Exists { path: PathBuf },
    #[error("{path}: cannot write: {source}", path = path.display())]
    Write { path: PathBuf, source: SinkError },
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    #[error(transparent)]
    Ddl(#[from] DdlError),
    #[error(transparent)]
    Spec(#[from] SpecError),
}

/// Returns the declaration of the ad-events table.
///
/// # Errors
/// None with the built-in DDL.
pub fn ad_events_definition() -> Result<TableDefinition, GenerateError> {
    let CreateTable { definition, .. } = parse_create_table(AD_EVENTS_DDL)?;
    Ok(definition)
}

impl AdEvents {
    /// Generates the events in arrival order, in batches of `batch_rows`.
    ///
    /// # Errors
    /// [`GenerateError::Parameter`] if a parameter is out of range.
    pub fn batches(&self, batch_rows: usize) -> Result<AdEventBatches, GenerateError> {
        self.check()?;
        let spec = TableSpec::new(ad_events_definition()?)?;
        let parameter = |name, value: f64| GenerateError::Parameter {
            name,
            found: value.to_string(),
            expected: "a number that the distribution allows",
        };
        let micros_per_row = self.hours * 3_600e6 / self.rows.max(1) as f64;
        Ok(AdEventBatches {
            users: Zipf::new(self.users as f64, self.user_skew)
                .map_err(|_| parameter("user skew", self.user_skew))?,
            // The mean gap is one row's share of the span.
            gaps: Exp::new(1.0 / micros_per_row.max(f64::MIN_POSITIVE))
                .map_err(|_| parameter("hours", self.hours))?,
            delays: Exp::new(1.0 / 600e6).map_err(|_| parameter("delay", 600e6))?,
            rng: ChaCha8Rng::seed_from_u64(self.seed),
            clock: START_MICROS as f64,
            left: self.rows,
            event_id: 0,
            recent: Vec::new(),
            batch_rows: batch_rows.max(1),
            options: self.clone(),
            spec,
        })
    }

    fn check(&self) -> Result<(), GenerateError> {
        let share = |name, value: f64| {
            let valid = (0.0..=1.0).contains(&value);
            let error = GenerateError::Parameter { name, found: value.to_string(), expected: "from 0 to 1" };
            if valid { Ok(()) } else { Err(error) }
        };
        share("campaign share", self.campaign_share)?;
        share("late share", self.late_share)?;
        share("duplicate share", self.duplicate_share)?;
        let count = |name, value: u64, most: u64, expected| {
            let error = GenerateError::Parameter { name, found: value.to_string(), expected };
            if (1..=most).contains(&value) { Ok(()) } else { Err(error) }
        };
        count("users", self.users, 900_000_000, "from 1 to 900000000")?;
        count("campaigns", self.campaigns, 1_000_000, "from 1 to 1000000")?;
        let positive = |name, value: f64, most: f64, expected| {
            let error = GenerateError::Parameter { name, found: value.to_string(), expected };
            if value >= 0.0 && value <= most { Ok(()) } else { Err(error) }
        };
        positive("user skew", self.user_skew, 10.0, "from 0 to 10")?;
        positive("hours", self.hours, 87_600.0, "from 0 to 87600 (ten years)")
    }

    /// Writes the events to `folder` as `ad-events-0000.parquet` and so on, with `rows_per_file`
    /// rows each, and returns the files. `progress` is called with the number of rows written so
    /// far.
    ///
    /// # Errors
    /// [`GenerateError`] if a parameter is out of range, or if a file exists or cannot be written.
    pub fn write_files(
        &self,
        folder: &Path,
        format: OutputFormat,
        rows_per_file: u64,
        progress: &dyn Fn(u64),
    ) -> Result<Vec<PathBuf>, GenerateError> {
        const BATCH_ROWS: u64 = 65_536;
        let rows_per_file = rows_per_file.max(1);
        let ending = match format {
            OutputFormat::Parquet => "parquet",
            OutputFormat::Csv => "csv",
            OutputFormat::Ndjson | OutputFormat::Json => "ndjson",
        };
        let format = if format == OutputFormat::Json { OutputFormat::Ndjson } else { format };
        let mut batches = self.batches(1)?;
        std::fs::create_dir_all(folder)
            .map_err(|source| GenerateError::Write { path: folder.to_owned(), source: source.into() })?;
        let mut files = Vec::new();
        let mut written = 0;
        while written < self.rows || files.is_empty() {
            let path = folder.join(format!("ad-events-{:04}.{ending}", files.len()));
            let failed = |source: SinkError| GenerateError::Write { path: path.clone(), source };
            if path.exists() {
                return Err(GenerateError::Exists { path });
            }
            // The file gets its name when it is complete.
            let file = PartFile::create(&path).map_err(|source| failed(source.into()))?;
            let out = BufWriter::new(file.file());
            let mut sink = Sink::new(out, format, batches.spec.schema()).map_err(failed)?;
            let end = (written + rows_per_file).min(self.rows);
            while written < end {
                batches.batch_rows = BATCH_ROWS.min(end - written) as usize;
                let Some(batch) = batches.next() else { break };
                let batch = batch?;
                written += batch.num_rows() as u64;
                sink.write(&batch).map_err(failed)?;
                progress(written);
            }
            let mut out = sink.finish().map_err(failed)?;
            out.flush().map_err(|source| failed(source.into()))?;
            drop(out);
            file.publish().map_err(|source| failed(source.into()))?;
            files.push(path);
        }
        Ok(files)
    }
}

/// One event.
#[derive(Debug, Clone, Copy)]
struct Event {
    user: u64,
    at: i64,
    id: u64,
    campaign: u64,
    ad: u64,
    click: bool,
}

/// Batches of events in arrival order.
#[derive(Debug)]
pub struct AdEventBatches {
    options: AdEvents,
    spec: TableSpec,
    rng: ChaCha8Rng,
    users: Zipf<f64>,
    gaps: Exp<f64>,
    delays: Exp<f64>,
    /// Arrival time of the last event in microseconds since 1970.
    clock: f64,
    left: u64,
    event_id: u64,
    /// Recent events, which duplicates repeat.
    recent: Vec<Event>,
    batch_rows: usize,
}

impl AdEventBatches {
    fn event(&mut self) -> Event {
        self.clock += self.gaps.sample(&mut self.rng);
        let repeat = self.rng.random_bool(self.options.duplicate_share);
        if repeat && !self.recent.is_empty() {
            let index = self.rng.random_range(0..self.recent.len());
            if let Some(event) = self.recent.get(index) {
                return *event;
            }
        }
        let rank = self.users.sample(&mut self.rng) as u64;
        let late = self.rng.random_bool(self.options.late_share);
        let delay = if late { self.delays.sample(&mut self.rng) } else { 0.0 };
        let largest = self.options.campaigns == 1 || self.rng.random_bool(self.options.campaign_share);
        let campaign = if largest { 1 } else { self.rng.random_range(2..=self.options.campaigns) };
        let ad = self.rng.random_range(0..ADS_PER_CAMPAIGN);
        let click = self.rng.random_bool(CLICK_SHARE);
        self.event_id += 1;
        let event = Event {
            user: rank.wrapping_mul(USER_FACTOR) % USER_PRIME,
            at: ((self.clock - delay) as i64).max(START_MICROS),
            id: self.event_id,
            campaign,
            ad: campaign * ADS_PER_CAMPAIGN + ad,
            click,
        };
        if self.options.duplicate_share > 0.0 {
            if self.recent.len() < DUPLICATE_REACH {
                self.recent.push(event);
            } else if let Some(slot) = self.recent.get_mut(self.event_id as usize % DUPLICATE_REACH) {
                *slot = event;
            }
        }
        event
    }

    fn batch(&mut self, rows: usize) -> Result<RecordBatch, ArrowError> {
        let events: Vec<Event> = (0..rows).map(|_| self.event()).collect();
        let numbers = |number_of: fn(&Event) -> u64| {
            Arc::new(UInt64Array::from_iter_values(events.iter().map(number_of)))
        };
        let users = events.iter().map(|event| format!("u{:09}", event.user));
        let times = events.iter().map(|event| event.at);
        let kinds = events.iter().map(|event| if event.click { "click" } else { "impression" });
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from_iter_values(users)),
            Arc::new(TimestampMicrosecondArray::from_iter_values(times)),
            numbers(|event| event.id),
            numbers(|event| event.campaign),
            numbers(|event| event.ad),
            Arc::new(StringArray::from_iter_values(kinds)),
        ];
        RecordBatch::try_new(Arc::clone(self.spec.schema()), columns)
    }
}

impl Iterator for AdEventBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.left.min(self.batch_rows as u64);
        if rows == 0 {
            return None;
        }
        self.left -= rows;
        Some(self.batch(rows as usize))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use arrow::array::AsArray;
    use arrow::datatypes::{TimestampMicrosecondType, UInt64Type};

    use super::*;

    fn events(options: &AdEvents, batch_rows: usize) -> RecordBatch {
        let batches: Vec<RecordBatch> = options.batches(batch_rows).unwrap().map(Result::unwrap).collect();
        arrow::compute::concat_batches(&batches[0].schema(), &batches).unwrap()
    }

    #[test]
    fn the_same_seed_gives_the_same_rows_however_they_are_cut() {
        let options = AdEvents { rows: 5_000, duplicate_share: 0.1, ..AdEvents::default() };
        assert_eq!(events(&options, 1_000), events(&options, 777));
        assert_ne!(events(&options, 1_000), events(&AdEvents { seed: 2, ..options }, 1_000));
    }

    #[test]
    fn shares_come_out_as_asked() {
        let options = AdEvents { rows: 50_000, duplicate_share: 0.1, late_share: 0.2, ..AdEvents::default() };
        let batch = events(&options, 50_000);
        let campaigns = batch.column(3).as_primitive::<UInt64Type>();
        let largest = campaigns.values().iter().filter(|id| **id == 1).count() as f64 / 50_000.0;
        assert!((largest - 0.8).abs() < 0.02, "{largest}");
        let ids: HashSet<u64> =
            batch.column(2).as_primitive::<UInt64Type>().values().iter().copied().collect();
        let repeated = 1.0 - ids.len() as f64 / 50_000.0;
        assert!((repeated - 0.1).abs() < 0.02, "{repeated}");
        let times = batch.column(1).as_primitive::<TimestampMicrosecondType>().values();
        let back = times.windows(2).filter(|pair| pair[1] < pair[0]).count() as f64 / 50_000.0;
        assert!(back > 0.15, "{back}");
        let span = (times.iter().max().unwrap() - START_MICROS) as f64 / 3_600e6;
        assert!((span - 48.0).abs() < 2.0, "{span}");
    }

    #[test]
    fn activity_follows_the_asked_skew() {
        let heaviest = |user_skew| {
            let batch =
                events(&AdEvents { rows: 20_000, users: 1_000, user_skew, ..AdEvents::default() }, 20_000);
            let mut counts = HashMap::new();
            for user in batch.column(0).as_string::<i32>().iter().flatten() {
                *counts.entry(user.to_owned()).or_insert(0u32) += 1;
            }
            counts.values().copied().max().unwrap()
        };
        // Even: 20 rows per user. Zipf with exponent 1: the first of 1000 users has 1 / H(1000) =
        // 13 % of the rows.
        assert!(heaviest(0.0) < 60);
        assert!(heaviest(1.0) > 2_000);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        for options in [
            AdEvents { campaign_share: 1.5, ..AdEvents::default() },
            AdEvents { users: 0, ..AdEvents::default() },
            AdEvents { campaigns: 0, ..AdEvents::default() },
            AdEvents { user_skew: -1.0, ..AdEvents::default() },
            AdEvents { hours: f64::NAN, ..AdEvents::default() },
        ] {
            assert!(matches!(options.batches(10), Err(GenerateError::Parameter { .. })), "{options:?}");
        }
    }

    #[test]
    fn files_hold_all_rows_and_are_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let options = AdEvents { rows: 250, ..AdEvents::default() };
        let files = options.write_files(folder.path(), OutputFormat::Ndjson, 100, &|_| {}).unwrap();
        let lines: usize = files.iter().map(|f| std::fs::read_to_string(f).unwrap().lines().count()).sum();
        assert_eq!((files.len(), lines), (3, 250));
        let again = options.write_files(folder.path(), OutputFormat::Ndjson, 100, &|_| {});
        assert!(matches!(again, Err(GenerateError::Exists { .. })));
    }
}
