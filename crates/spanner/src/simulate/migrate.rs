//! Plans moving a table with generated keys to Spanner: existing values are kept, and future values
//! never collide with them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ahash::AHashSet;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::error::ArrowError;
use serde::Serialize;
use uuid::Uuid;

use crate::simulate::columns::position;
use crate::simulate::error::SimulateError;
use evenkeel_input::source::{Export, OnUnreadable, SourceError};
use evenkeel_model::bounded::quote;
use evenkeel_placement::transform::{BitReversedSequence, bit_reverse};

/// Number of values of the new sequence that are generated and looked up among the existing ones.
const TRIED: usize = 1_000_000;
/// Largest end of a skipped range and largest start counter, so that half of all numbers remain.
const MAX_SKIPPED: i64 = 1 << 62;

/// Largest ratio of counters ever issued to keys still present for numbers to count as
/// bit-reversed.
const SPARSE: f64 = 1e6;

/// Scheme that generated the values of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyKind {
    /// UUIDs, as text.
    Uuid,
    /// Numbers that count up.
    Sequential,
    /// Sequential numbers with their bits reversed.
    BitReversed,
}

/// Steps of a migration, and the proof that it is safe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Migration {
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Name of the key column.
    pub column: String,
    /// Scheme that generated the values.
    pub kind: KeyKind,
    /// Number of rows.
    pub rows: u64,
    /// Smallest and largest value, if they are numbers.
    pub range: Option<(i64, i64)>,
    /// Smallest and largest counter, if the values are bit-reversed numbers.
    pub counters: Option<(i64, i64)>,
    /// Number of UUIDs that have to be rewritten in lower case or with hyphens.
    pub to_normalize: u64,
    /// UUID versions, each with its number of occurrences.
    pub versions: Vec<(u8, u64)>,
    /// Range of values that the sequence skips.
    pub skip_range: Option<(i64, i64)>,
    /// Start of the sequence's counter.
    pub start_counter: Option<i64>,
    /// Number of values that the old counter may still issue before the switch, counting up from
    /// the largest, without colliding with the sequence: at least one, and at least the requested
    /// headroom. `None` for UUIDs.
    pub free_values: Option<u64>,
    /// Number of values of the sequence that were generated and looked up.
    pub tried: u64,
    /// Number of these that already exist: always 0.
    pub collisions: u64,
    /// Sentence that explains why no later value can collide either.
    pub proof: String,
}

/// Statistics of the key column, from one pass over the export.
struct KeyValues {
    rows: u64,
    least: i64,
    most: i64,
    least_counter: i64,
    most_counter: i64,
    negative: bool,
    values: AHashSet<i64>,
    uuids: AHashSet<u128>,
    to_normalize: u64,
    versions: [u64; 16],
}

/// Plans the migration of a key column.
///
/// # Errors
/// [`SimulateError`] if the export cannot be read, the column has another type, or a value prevents
/// the migration.
pub fn migrate(
    export: &Export,
    column: &str,
    kind: Option<KeyKind>,
    headroom: f64,
    stop: &AtomicBool,
) -> Result<Migration, SimulateError> {
    let at = position(export.columns(), column)?;
    let is_number =
        export.columns().get(at).is_some_and(|column| column.column_type.arrow_type().is_integer());
    let mut existing = KeyValues {
        rows: 0,
        least: i64::MAX,
        most: i64::MIN,
        least_counter: i64::MAX,
        most_counter: i64::MIN,
        negative: false,
        values: AHashSet::new(),
        uuids: AHashSet::new(),
        to_normalize: 0,
        versions: [0; 16],
    };
    let mut problem = None;
    export.read_columns::<SimulateError>(
        OnUnreadable::Fail,
        &|position| position == at,
        |place, batch| {
            let taken = if is_number { existing.numbers(&batch, at) } else { existing.uuids(&batch, at) };
            if let Err((row, reason)) = taken {
                problem = Some(format!("{}, column '{column}': {reason}", place.row_place(row)));
                return Ok(false);
            }
            if stop.load(Ordering::Relaxed) { Err(SimulateError::Interrupted) } else { Ok(true) }
        },
    )?;
    if let Some(reason) = problem {
        return Err(SimulateError::Migration { reason });
    }
    if existing.rows == 0 {
        return Err(SimulateError::NoRows);
    }
    let existing_kind = if is_number { existing.kind() } else { KeyKind::Uuid };
    let kind = kind.unwrap_or(existing_kind);
    if (kind == KeyKind::Uuid) == is_number {
        let what = if is_number { "numbers" } else { "UUIDs" };
        return Err(SimulateError::Migration { reason: format!("column '{column}' holds {what}") });
    }
    let mut migration = Migration {
        inputs: export.input_names(),
        column: export.columns().get(at).map_or_else(|| column.to_owned(), |column| column.name.clone()),
        kind,
        rows: existing.rows,
        range: is_number.then_some((existing.least, existing.most)),
        counters: None,
        to_normalize: existing.to_normalize,
        versions: (0u8..).zip(existing.versions).filter(|(_, count)| *count > 0).collect(),
        skip_range: None,
        start_counter: None,
        free_values: None,
        tried: 0,
        collisions: 0,
        proof: String::new(),
    };
    match kind {
        KeyKind::Uuid => {
            "every UUID occurs once, also in lower case; new random ones collide with them with a \
                probability of 2^-122 per pair"
                .clone_into(&mut migration.proof);
        }
        KeyKind::Sequential => migration.skip(&existing, headroom)?,
        KeyKind::BitReversed => migration.start_above(&existing, headroom)?,
    }
    Ok(migration)
}

/// Passes all rows of an export to `each`, with the UUIDs of a column as Spanner writes them: in
/// lower case, with hyphens. Other values of CSV inputs keep their text; timestamps of other
/// formats are in UTC and are marked as such.
///
/// # Errors
/// [`SimulateError`] if the export cannot be read or a value is not a UUID; the errors of `each`.
pub fn normalize_uuids<E: From<SimulateError> + From<SourceError>>(
    export: &Export,
    column: &str,
    stop: &AtomicBool,
    mut each: impl FnMut(&RecordBatch) -> Result<(), E>,
) -> Result<(), E> {
    let at = position(export.columns(), column)?;
    let text = export.as_text().map_err(SimulateError::from)?;
    text.as_ref().unwrap_or(export).read_columns::<E>(OnUnreadable::Fail, &|_| true, |place, batch| {
        let mut columns = batch.columns().to_vec();
        let Some(array) = columns.get_mut(at) else { return Err(SimulateError::Columns.into()) };
        let texts = UuidTexts::new(array).map_err(SimulateError::from)?;
        let uuids = (0..array.len()).map(|row| {
            let uuid = texts.uuid(array, row).map(|uuid| uuid.hyphenated().to_string());
            uuid.ok_or_else(|| SimulateError::Migration {
                reason: format!("{}, column '{column}': is not a UUID", place.row_place(row)),
            })
        });
        *array =
            Arc::new(uuids.collect::<Result<Vec<_>, _>>()?.into_iter().map(Some).collect::<StringArray>());
        for column in &mut columns {
            if let DataType::Timestamp(unit, None) = column.data_type() {
                let in_utc = DataType::Timestamp(*unit, Some("UTC".into()));
                *column = cast(column, &in_utc).map_err(SimulateError::from)?;
            }
        }
        let typed = |(field, column): (&Arc<Field>, &ArrayRef)| {
            field.as_ref().clone().with_data_type(column.data_type().clone())
        };
        let fields: Vec<Field> = batch.schema().fields().iter().zip(&columns).map(typed).collect();
        let normalized = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns);
        each(&normalized.map_err(SimulateError::from)?)?;
        if stop.load(Ordering::Relaxed) { Err(SimulateError::Interrupted.into()) } else { Ok(true) }
    })?;
    Ok(())
}

/// Textual UUIDs; `None` if they are stored as 16 bytes.
struct UuidTexts(Option<ArrayRef>);

impl UuidTexts {
    fn new(array: &ArrayRef) -> Result<Self, ArrowError> {
        Ok(Self(match array.data_type() {
            DataType::FixedSizeBinary(16) => None,
            _ => Some(cast(array, &DataType::Utf8View)?),
        }))
    }

    /// Returns the stored text.
    fn text(&self, row: usize) -> Option<&str> {
        self.0.as_ref().map(|texts| texts.as_string_view().value(row))
    }

    fn uuid(&self, array: &ArrayRef, row: usize) -> Option<Uuid> {
        match self.text(row) {
            None => Uuid::from_slice(array.as_fixed_size_binary().value(row)).ok(),
            Some(text) => Uuid::try_parse(text.trim()).ok(),
        }
    }
}

/// Returns the last of the values after `most` that are reserved for rows written before the
/// switch: the share `headroom` of `most`, but at least one, since an old counter continues until
/// it is switched off. `None` if that exceeds INT64.
fn above_with_headroom(most: i64, headroom: f64) -> Option<i64> {
    let share = (most as f64 * headroom).ceil();
    let free = if share < i64::MAX as f64 { (share as i64).max(1) } else { return None };
    most.checked_add(free)
}

impl Migration {
    /// Skips a range that covers all values, with headroom for those issued before the switch.
    fn skip(&mut self, existing: &KeyValues, headroom: f64) -> Result<(), SimulateError> {
        let wanted = above_with_headroom(existing.most.max(0), headroom);
        let power = wanted.and_then(|wanted| wanted.cast_unsigned().checked_next_power_of_two());
        let most = power.and_then(|power| i64::try_from(power).ok()).filter(|most| *most <= MAX_SKIPPED);
        let most = most.ok_or_else(|| SimulateError::Migration {
            reason: format!(
                "column '{}' holds {}: a range with all values, and with headroom until the switch, \
                    leaves the sequence less than half of the numbers. Generate new keys as UUIDs, in a separate column",
                self.column, existing.most
            ),
        })?;
        // A positive sequence never returns a smaller value.
        let least = 1;
        self.skip_range = Some((least, most));
        // Values of 0 and below are free too, but a counter that counts up never reaches them.
        let free = (most - existing.most.max(0)).cast_unsigned();
        self.free_values = Some(free);
        self.look_up(BitReversedSequence::new(1, Some(least..=most)), existing)?;
        self.proof = format!(
            "every positive value lies in {least} to {most}, which the sequence skips; {free} of these \
                are free for values until the switch, {} remain for the sequence",
            i64::MAX - most
        );
        Ok(())
    }

    /// Starts at a counter above all counters whose reversal already exists.
    fn start_above(&mut self, existing: &KeyValues, headroom: f64) -> Result<(), SimulateError> {
        if existing.negative {
            return Err(SimulateError::Migration {
                reason: format!(
                    "column '{}' has negative values, which a positive sequence cannot generate",
                    self.column
                ),
            });
        }
        self.counters = Some((existing.least_counter, existing.most_counter));
        // First counter after those that the old sequence may still issue.
        let start = above_with_headroom(existing.most_counter, headroom).and_then(|last| last.checked_add(1));
        let Some(start) = start.filter(|start| *start <= MAX_SKIPPED) else {
            return Err(SimulateError::Migration {
                reason: format!(
                    "column '{}' holds the reversals of counters up to {}: they leave the sequence less \
                        than half of the numbers. The values look like random numbers; generate new keys as UUIDs, in a separate column",
                    self.column, existing.most_counter
                ),
            });
        };
        let free = start - 1 - existing.most_counter;
        self.start_counter = Some(start);
        self.free_values = Some(free.cast_unsigned());
        self.look_up(BitReversedSequence::new(start, None), existing)?;
        self.proof = format!(
            "every value is the reversal of a counter from {} to {}; the sequence starts at {start}, and \
                reversal is one to one; the {free} counters between are free for values until the switch",
            existing.least_counter, existing.most_counter
        );
        Ok(())
    }

    /// Generates values and looks them up, to confirm the proof by experiment.
    fn look_up(&mut self, sequence: BitReversedSequence, existing: &KeyValues) -> Result<(), SimulateError> {
        for value in sequence.take(TRIED) {
            self.tried += 1;
            self.collisions += u64::from(existing.values.contains(&value));
        }
        if self.collisions > 0 {
            let reason =
                format!("{} of {} values of the sequence exist already", self.collisions, self.tried);
            return Err(SimulateError::Migration { reason });
        }
        Ok(())
    }
}

impl KeyValues {
    /// Adds numbers. Fails at a row with a NULL, a value beyond INT64 or a duplicate.
    fn numbers(&mut self, batch: &RecordBatch, column: usize) -> Result<(), (usize, String)> {
        let Some(array) = batch.columns().get(column) else { return Ok(()) };
        let numbers = cast(array, &DataType::Int64).map_err(|error| (0, error.to_string()))?;
        for (row, value) in numbers.as_primitive::<Int64Type>().iter().enumerate() {
            let value = value.ok_or_else(|| match array.is_null(row) {
                true => (row, "is NULL, and a key is NOT NULL".to_owned()),
                false => (row, "is larger than an INT64".to_owned()),
            })?;
            if !self.values.insert(value) {
                return Err((row, format!("{value} occurs twice, but a key is unique")));
            }
            self.rows += 1;
            let counter = bit_reverse(value, true);
            self.least = self.least.min(value);
            self.most = self.most.max(value);
            self.least_counter = self.least_counter.min(counter);
            self.most_counter = self.most_counter.max(counter);
            self.negative |= value < 0;
        }
        Ok(())
    }

    fn uuids(&mut self, batch: &RecordBatch, column: usize) -> Result<(), (usize, String)> {
        let Some(array) = batch.columns().get(column) else { return Ok(()) };
        let texts = UuidTexts::new(array).map_err(|error| (0, error.to_string()))?;
        for row in 0..array.len() {
            if array.is_null(row) {
                return Err((row, "is NULL, and a key is NOT NULL".to_owned()));
            }
            let uuid = texts.uuid(array, row);
            let differs = |text: &str| uuid.is_some_and(|uuid| uuid.hyphenated().to_string() != text);
            self.to_normalize += u64::from(texts.text(row).is_some_and(differs));
            let uuid = uuid.ok_or_else(|| {
                let quoted = texts.text(row).map(|text| format!("'{}' ", quote(text)));
                (row, format!("{}is neither a UUID nor a number", quoted.unwrap_or_default()))
            })?;
            if !self.uuids.insert(uuid.as_u128()) {
                return Err((row, format!("{uuid} occurs twice in lower case, but a key is unique")));
            }
            self.rows += 1;
            if let Some(count) = self.versions.get_mut(uuid.get_version_num()) {
                *count += 1;
            }
        }
        Ok(())
    }

    /// Returns the scheme that most likely generated the numbers. Sequential numbers are dense up
    /// to the largest; for bit-reversed numbers, this is true of their counters.
    fn kind(&self) -> KeyKind {
        let is_dense = self.most_counter as f64 <= self.rows as f64 * SPARSE;
        match !self.negative && is_dense && self.most_counter < self.most {
            true => KeyKind::BitReversed,
            false => KeyKind::Sequential,
        }
    }
}

#[cfg(test)]
#[path = "migrate_tests.rs"]
mod tests;
