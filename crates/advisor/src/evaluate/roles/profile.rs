//! Evidence about a column from sampled rows.

use std::collections::HashMap;

use crate::evaluate::roles::carried_times::CarriedTimes;
use crate::evaluate::roles::forms::{Form, form};
use crate::evaluate::roles::names;
use crate::evaluate::roles::names::Hint;
use crate::evaluate::roles::texts::SECONDS;
use crate::evaluate::roles::value_numbers::{amounts, ascends, gathered, micros, numbered, numbers, order};
use ahash::AHashSet;
use arrow::array::{Array, ArrayRef, RecordBatch};
use evenkeel_model::table::Column;
use evenkeel_stats::sketch::{column_identities, fold};

/// Number of rows up to which distinct values are few for that reason alone, and identify nothing.
pub(crate) const FEW_ROWS: usize = 64;

/// A column of the sampled rows.
#[derive(Debug)]
pub(crate) struct Profile<'a> {
    pub(crate) column: &'a Column,
    /// Hint that the name gives about the role.
    pub(crate) hint: Option<Hint>,
    /// First word of the name, if it denotes a thing.
    pub(crate) noun: Option<String>,
    pub(crate) rows: usize,
    pub(crate) nulls: usize,
    /// Number of each row's value among the values of the column: 0, 1, 2 ... in order of their
    /// first row.
    pub(crate) codes: Vec<u32>,
    /// Identities of the values, by their numbers; equal values of all columns have one identity.
    pub(crate) values: Vec<u64>,
    pub(crate) distinct: usize,
    /// Minimum number of values that the export probably has.
    pub(crate) likely: f64,
    /// Rows with the most frequent value.
    pub(crate) heaviest: usize,
    /// Number of rows whose value differs from the previous row's.
    pub(crate) changes: usize,
    /// Whether rows with the same value are consecutive far more often than by chance.
    pub(crate) gathered: bool,
    /// Share of the rows whose number is at least the previous row's; 0 without numbers.
    pub(crate) ascends: f64,
    /// Whether each row has a greater value than the previous row.
    pub(crate) rises_strictly: bool,
    /// Whether no row has a smaller value than the previous row.
    pub(crate) rises: bool,
    /// The numbers of the rows, if all are whole and none is NULL; also the numbers in texts with
    /// equally many digits.
    pub(crate) numbers: Option<Vec<i128>>,
    /// The numbers of the rows in millionths, if they have fractions and none is NULL.
    pub(crate) amounts: Option<Vec<i128>>,
    pub(crate) form: Form,
    /// Points in time that the values carry, if they are not of a type of time.
    pub(crate) times: Option<CarriedTimes>,
    /// The points in time of the rows in microseconds since 1970, if the values are times, by type
    /// or by reading, and none is NULL.
    pub(crate) micros: Option<Vec<i64>>,
}

/// Share of texts that are times of day above which the column is one of times of day.
const MOSTLY_CLOCKS: f64 = 0.98;

impl<'a> Profile<'a> {
    pub(crate) fn new(column: &'a Column, index: usize, batches: &[RecordBatch], whole_export: bool) -> Self {
        let arrays: Vec<&ArrayRef> = batches.iter().filter_map(|batch| batch.columns().get(index)).collect();
        let places: Vec<usize> = arrays.iter().map(|array| array.len()).collect();
        let identities: Vec<u64> = arrays.iter().flat_map(|array| column_identities(array)).collect();
        let (codes, values) = numbered(&identities);
        let distinct = values.len();
        let counts = rows_of_codes(&codes, distinct);
        let (rises, rises_strictly) = order(&arrays);
        let numbers = numbers(&arrays);
        let form = form(&arrays);
        let times = if column.column_type.is_time() { None } else { CarriedTimes::from_arrays(&arrays) };
        Self {
            column,
            hint: match form {
                Form::Whole(_)
                    if names::counts_things(&column.name) || names::is_amount_of_thing(&column.name) =>
                {
                    Some(Hint::Measure)
                }
                _ => names::hint(&column.name),
            },
            noun: names::noun(&column.name),
            ascends: numbers.as_deref().map_or(0.0, ascends),
            rows: codes.len(),
            nulls: arrays.iter().map(|array| array.null_count()).sum(),
            likely: if whole_export { distinct as f64 } else { likely_values(&identities, &places) },
            changes: codes.windows(2).filter(|pair| pair.first() != pair.last()).count(),
            gathered: gathered(&codes, &counts),
            heaviest: counts.iter().copied().max().unwrap_or(0),
            distinct,
            codes,
            values,
            rises,
            rises_strictly,
            numbers,
            amounts: amounts(&arrays),
            form,
            times,
            micros: micros(&arrays, times),
        }
    }

    /// Whether the name denotes an identifier, or an entity that has one.
    pub(crate) fn is_named_id(&self) -> bool {
        matches!(self.hint, Some(Hint::Identifier | Hint::Entity))
    }

    /// Rows that have a value.
    pub(crate) fn filled(&self) -> usize {
        self.rows - self.nulls
    }

    /// Identity of each row's value.
    pub(crate) fn row_values(&self) -> impl Iterator<Item = Option<&u64>> {
        self.codes.iter().map(|code| self.values.get(*code as usize))
    }

    /// Whether each sampled row has a distinct value.
    pub(crate) fn is_unique(&self) -> bool {
        self.nulls == 0 && self.rows > 1 && self.distinct == self.rows
    }

    /// Whether nearly all sampled rows have a distinct value.
    pub(crate) fn is_nearly_unique(&self) -> bool {
        self.rows > 1 && self.distinct as f64 >= 0.995 * self.filled() as f64
    }

    /// Whether the values are numbers with fractions, also as text, that may be seconds since 1970.
    pub(crate) fn has_seconds_with_fractions(&self) -> bool {
        match &self.form {
            Form::Text(words) => words.seconds > 0.99,
            Form::Fractions => self.amounts.as_ref().is_some_and(|amounts| {
                amounts.iter().all(|amount| SECONDS.contains(&((amount / 1_000_000) as f64)))
            }),
            _ => false,
        }
    }

    /// Whether all numbers are times of day in six digits: 235959.
    pub(crate) fn has_times_of_day(&self) -> bool {
        let is_time =
            |number: &i128| (0..240_000).contains(number) && number % 100 < 60 && number / 100 % 100 < 60;
        self.numbers.as_ref().is_some_and(|numbers| {
            numbers.iter().all(is_time) && numbers.iter().any(|number| *number >= 100_000)
        })
    }

    /// Whether all numbers are times of day in six digits, with any minute and second, unlike
    /// codes.
    pub(crate) fn fills_the_day(&self) -> bool {
        let parts = |unit: i128, modulus: i128| {
            let numbers = self.numbers.iter().flatten();
            numbers.map(|number| number / unit % modulus).collect::<AHashSet<_>>().len()
        };
        self.has_times_of_day() && parts(10_000, 100) >= 4 && parts(100, 100) >= 30 && parts(1, 100) >= 30
    }

    /// Whether all texts are times of day in four digits: 0959.
    pub(crate) fn has_padded_hours_and_minutes(&self) -> bool {
        let is_time = |number: &i128| (0..2_400).contains(number) && number % 100 < 60;
        let is_text = matches!(self.form, Form::Text(_));
        is_text && self.numbers.as_ref().is_some_and(|numbers| numbers.iter().all(is_time))
    }

    /// Whether the values are times of day, as numbers or as text.
    pub(crate) fn is_time_of_day(&self) -> bool {
        match &self.form {
            Form::Text(words) => words.clocks > MOSTLY_CLOCKS,
            _ => self.fills_the_day(),
        }
    }

    /// Whether the values count on by one.
    pub(crate) fn is_serial(&self) -> bool {
        let Form::Whole(whole) = &self.form else { return false };
        self.is_unique() && whole.greatest - whole.least + 1 == self.distinct as i128
    }

    pub(crate) fn is_constant(&self) -> bool {
        self.rows > 1 && self.distinct <= 1
    }

    /// Whether the values are plain times rather than ids made from times.
    pub(crate) fn is_moment(&self) -> bool {
        self.is_time() && (self.column.column_type.is_time() || !self.is_named_id())
    }

    /// Whether the values are times and nothing else, by their type or by how they are written.
    pub(crate) fn is_time(&self) -> bool {
        self.column.column_type.is_time() || self.times.is_some_and(|times| times.reading.is_time_alone())
    }
}

/// Estimates the least number of values of a column from some of its places, by Chao's estimator
/// ("Estimating the population size for capture-recapture data with unequal catchability", 1987).
/// If rows are sorted by the column, most values are in one place only, and there are many more; if
/// each value is in many places, there are no others.
pub(crate) fn likely_values(identities: &[u64], places: &[usize]) -> f64 {
    let mut places_with: HashMap<u64, u64, ahash::RandomState> = HashMap::default();
    let mut rest = identities;
    for rows in places {
        let (place, behind) = rest.split_at((*rows).min(rest.len()));
        rest = behind;
        let values: AHashSet<u64> = place.iter().copied().collect();
        values.into_iter().for_each(|value| *places_with.entry(value).or_default() += 1);
    }
    let in_places = |number: u64| places_with.values().filter(|places| **places == number).count() as f64;
    let (once, twice) = (in_places(1), in_places(2));
    places_with.len() as f64 + once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0))
}

/// Number of distinct combinations of the values of columns in some rows.
pub(crate) fn distinct_together(columns: &[&Profile<'_>], rows: impl IntoIterator<Item = usize>) -> usize {
    rows.into_iter().map(|row| combination(columns, row)).collect::<AHashSet<u64>>().len()
}

/// Numbers the combinations of the values of columns, and returns how many there are.
pub(crate) fn codes_together(columns: &[&Profile<'_>]) -> (Vec<u32>, usize) {
    let rows = columns.first().map_or(0, |column| column.rows);
    let (codes, combinations) =
        numbered(&(0..rows).map(|row| combination(columns, row)).collect::<Vec<u64>>());
    (codes, combinations.len())
}

/// Columns that can be a parent, with their positions, fewest values first.
pub(crate) fn by_fewest_values<'c, 'p>(
    columns: &'c [Profile<'p>],
    can_be_parent: impl Fn(&Profile<'p>) -> bool,
) -> impl Iterator<Item = (usize, &'c Profile<'p>)> {
    let mut parents: Vec<(usize, &Profile<'p>)> =
        columns.iter().enumerate().filter(|(_, parent)| can_be_parent(parent)).collect();
    parents.sort_by_key(|(_, parent)| parent.distinct);
    parents.into_iter()
}

/// Number of rows with each of `distinct` codes.
pub(crate) fn rows_of_codes(codes: &[u32], distinct: usize) -> Vec<usize> {
    let mut rows = vec![0; distinct];
    for code in codes {
        if let Some(rows) = rows.get_mut(*code as usize) {
            *rows += 1;
        }
    }
    rows
}

/// Hash of the values of columns in a row.
pub(crate) fn combination(columns: &[&Profile<'_>], row: usize) -> u64 {
    columns
        .iter()
        .fold(0, |hash, column| fold(hash, u64::from(column.codes.get(row).copied().unwrap_or(0)) + 1))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::StringArray;
    use evenkeel_model::table::ColumnType;
    use evenkeel_stats::sketch::fold;

    use super::*;
    use crate::evaluate::roles::forms::WholeNumbers;
    use crate::evaluate::roles::texts::{is_opaque, is_structured};

    fn whole(numbers: impl IntoIterator<Item = i64>) -> WholeNumbers {
        WholeNumbers::from_numbers(numbers.into_iter().map(i128::from).collect()).unwrap()
    }

    fn random(row: u64, below: u64) -> i64 {
        (fold(row, 77) % below).cast_signed()
    }

    #[test]
    fn a_sorted_column_has_more_values_than_a_few_places_show() {
        // 60 places of 10 rows: if sorted, each has a distinct value; if shuffled, each has some of
        // 12.
        let places = [10; 60];
        let sorted: Vec<u64> = (0..60).flat_map(|value| [value; 10]).collect();
        assert!(likely_values(&sorted, &places) > 1_000.0);
        let shuffled: Vec<u64> = (0..600u64).map(|row| row * 7 % 12).collect();
        assert_eq!(likely_values(&shuffled, &places), 12.0);
        // Twelve long runs: all values have been seen.
        let long: Vec<u64> = (0..600).map(|row| row / 50).collect();
        assert_eq!(likely_values(&long, &places), 12.0);
    }

    #[test]
    fn numbers_that_fill_a_range_end_sharply_and_amounts_trail_off() {
        let even = whole((0..20_000).map(|row| random(row, 5_000)));
        let amounts =
            whole((0..20_000u64).map(|row| (1_000_000 / (1 + random(row, 5_000))) + random(row, 50)));
        assert!(even.tail < 0.02, "{even:?}");
        assert!(amounts.tail > 1.0, "{amounts:?}");
    }

    #[test]
    fn values_with_frequencies_of_their_own_are_told_from_a_smooth_distribution() {
        // The sum of three draws is smooth; rows of value v in proportion to a random number are
        // not.
        let smooth = whole(
            (0..60_000u64)
                .map(|row| random(row, 100) + random(row + 1_000_000, 100) + random(row + 2_000_000, 100)),
        );
        let own = whole((0..300u64).flat_map(|value| {
            let rows = usize::try_from(random(value, 400)).unwrap();
            std::iter::repeat_n(value.cast_signed(), rows)
        }));
        assert!(smooth.dispersion < 1.5 && smooth.dispersion > 0.5, "{smooth:?}");
        assert!(own.dispersion > 10.0, "{own:?}");
    }

    #[test]
    fn rows_that_arrive_together_are_told_from_those_that_repeat() {
        let is_gathered = |codes: &[u32]| {
            let mut counts = vec![0; 1000];
            codes.iter().for_each(|code| counts[*code as usize] += 1);
            gathered(codes, &counts)
        };
        assert!(is_gathered(&(0..3000).map(|row| row / 3).collect::<Vec<_>>()));
        assert!(!is_gathered(&(0..3000).map(|row| row % 1000).collect::<Vec<_>>()));
        // Two values in long runs follow themselves nearly always, and half the time by chance.
        assert!(!is_gathered(&(0..3000).map(|row| row / 1500).collect::<Vec<_>>()));
    }

    #[test]
    fn order_and_forms_are_those_of_all_batches_together() {
        let column = Column::required("c", ColumnType::Utf8);
        let batch = |texts: &[&str]| {
            let array: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
            RecordBatch::try_from_iter([("c", array)]).unwrap()
        };
        let batches = [batch(&["a1", "b1"]), batch(&["b1", "c1"])];
        let profile = Profile::new(&column, 0, &batches, true);
        assert_eq!((profile.rises, profile.rises_strictly, profile.distinct), (true, false, 3));
        assert_eq!(profile.codes, [0, 1, 1, 2]);
        let Form::Text(words) = &profile.form else { panic!("{profile:?}") };
        assert_eq!((words.codes, words.opaque, words.mean_words), (1.0, 0.0, 1.0));
        let falls = [batch(&["a1", "c1"]), batch(&["b1"])];
        assert!(!Profile::new(&column, 0, &falls, true).rises);
        assert!(is_structured(r#"{"a": 1}"#) && is_structured("[1, 2]") && is_structured("{}"));
        assert!(!is_structured("{123e4567-e89b-12d3-a456-426614174000}") && !is_structured("a: {b}"));
        assert!(is_opaque("123e4567-e89b-12d3-a456-426614174000") && !is_opaque("2026-01-01 10:00"));
    }
}
