//! Search for candidates in rows from all over the inputs, each with the reason why it was kept or
//! dropped. The pass over all rows confirms or withdraws candidates.

use std::collections::BTreeMap;

use arrow::array::{AsArray, Float64Array, RecordBatch};

use crate::evaluate::candidates::considered::ConsideredCandidate;
use crate::evaluate::candidates::natural_keys::{FoundKeys, UniqueKey};
use crate::evaluate::candidates::sampled_columns::{SampledColumns, Searched};
use crate::evaluate::roles::profile::Profile;
use crate::evaluate::roles::{Role, RoleReport};
use evenkeel_input::source::RowsAcross;
use evenkeel_model::table::{Candidate, ColumnType};
use evenkeel_model::text_value::{TimestampFormat, UnixUnit};
use evenkeel_model::time_reading::TimeReading;

/// Maximum number of rows that are inspected.
pub(crate) const ROWS_LOOKED_AT: usize = 100_000;
/// Approximate limit on the bytes of these rows, if rows are wide.
pub(crate) const BYTES_LOOKED_AT: usize = 64 << 20;

/// Search for candidates in rows of an export.
pub(crate) struct Finder<'a> {
    sampled: SampledColumns<'a>,
    keys: Vec<UniqueKey>,
    cut_short: bool,
}

impl<'a> Finder<'a> {
    /// Inspects rows of an export.
    pub(crate) fn new(searched: &Searched<'a>, rows: &RowsAcross) -> Self {
        let mut sampled = SampledColumns::new(searched, rows);
        let FoundKeys { keys, cut_short } = sampled.unique_keys(&rows.batches);
        if let Some(key) = keys.first().filter(|key| key.by_nature) {
            sampled.promote(&key.columns);
            sampled.promote_parents(&key.columns);
        }
        Self { sampled, keys, cut_short }
    }

    /// Name of the time column in whose order rows seem to arrive; `None` if its values are not
    /// read as points in time.
    pub(crate) fn time(&self) -> Option<&str> {
        let time = self.sampled.time.as_deref()?;
        let column = self.sampled.columns.get(self.sampled.position(time)?)?;
        (column.column.column_type.is_time() || column.times.is_some()).then_some(time)
    }

    /// Reading of the time column as points in time; `None` if its values are not.
    pub(crate) fn time_reading(&self) -> Option<TimeReading> {
        self.sampled.time_reading()
    }

    /// Column, other than the time, whose values never fall from one sampled row to the next.
    pub(crate) fn sorted_by(&self) -> Option<String> {
        let columns = self.sampled.columns.iter().enumerate();
        let mut sorted = columns.filter(|(at, column)| {
            column.rises && column.distinct > 1 && column.nulls == 0 && !self.sampled.is_time(*at)
        });
        sorted.next().map(|(_, column)| column.column.name.clone())
    }

    /// Whether no natural key was found, and sets of columns remain that were not tried.
    pub(crate) fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    /// Whether a column can be in a key.
    pub(crate) fn can_be_in_key(&self, name: &str) -> bool {
        self.sampled.position(name).is_some_and(|position| self.sampled.can_be_in_key(position))
    }

    /// Columns of Doubles that are units since 1970, with the formats that read them as Timestamps,
    /// if keys may be Timestamps but not Doubles, and no value is finer than a Timestamp.
    pub(crate) fn fractional_times(&self, batches: &[RecordBatch]) -> BTreeMap<String, TimestampFormat> {
        let format = |(at, column): (usize, &Profile<'_>)| {
            let is_time = self.sampled.role(at) == Role::Time && !self.sampled.is_taken(column);
            if column.column.column_type != ColumnType::Double || !is_time {
                return None;
            }
            let (unit, digits) = match column.times?.reading {
                TimeReading::Seconds => (UnixUnit::Seconds, 6),
                TimeReading::Milliseconds => (UnixUnit::Millis, 3),
                TimeReading::Microseconds => (UnixUnit::Micros, 0),
                _ => return None,
            };
            let is_fine = |value: f64| {
                let text = value.to_string();
                text.split_once('.').is_some_and(|(_, fraction)| fraction.len() > digits)
            };
            let arrays = batches.iter().filter_map(|batch| batch.columns().get(at)?.as_primitive_opt());
            let mut values = arrays.flat_map(|array: &Float64Array| array.iter().flatten());
            (!values.any(is_fine)).then(|| (column.column.name.clone(), TimestampFormat::Unix(unit)))
        };
        self.sampled.columns.iter().enumerate().filter_map(format).collect()
    }

    /// Columns that may place rows, each as a partition key.
    pub(crate) fn columns_that_place_rows(&self) -> Vec<Candidate> {
        let roles = self.sampled.roles.iter().enumerate();
        let place = roles.filter(|(at, role)| role.role.can_place_rows() && self.sampled.can_be_in_key(*at));
        place.map(|(_, role)| Candidate::from_columns(std::slice::from_ref(&role.column))).collect()
    }

    /// Roles of the columns, in their order.
    pub(crate) fn roles(&self) -> &[RoleReport] {
        &self.sampled.roles
    }

    /// Columns of the first natural key that has several.
    pub(crate) fn natural_key(&self) -> Vec<String> {
        let key = self.keys.iter().find(|key| key.by_nature && key.columns.len() > 1);
        let names = key.map(|key| self.sampled.names(&key.columns)).unwrap_or_default();
        names.into_iter().map(str::to_owned).collect()
    }

    /// Columns of all natural keys that have as many columns as the first.
    pub(crate) fn naturally_identifying(&self) -> Vec<String> {
        let of_several = || self.keys.iter().filter(|key| key.by_nature && key.columns.len() > 1);
        let Some(first) = of_several().next() else { return Vec::new() };
        let as_short = || of_several().filter(|key| key.columns.len() == first.columns.len());
        let in_all = |at: &&usize| as_short().all(|key| key.columns.contains(at));
        first.columns.iter().filter(in_all).map(|at| self.sampled.name(*at).to_owned()).collect()
    }

    /// Finds candidates for the partition key. If `primary_keys` were given, only their columns are
    /// used, because a partition key is part of a primary key.
    pub(crate) fn partition_keys(&self, primary_keys: &[Candidate]) -> Vec<ConsideredCandidate> {
        self.sampled.partition_keys(primary_keys, &self.keys)
    }

    /// Finds candidates for the primary key: the smallest natural key, with the given partition key
    /// in it, or each of the likely ones, in the orders that fit reading by time and by entity.
    pub(crate) fn primary_keys(
        &self,
        given: Option<&Candidate>,
        partition_keys: &[ConsideredCandidate],
    ) -> Vec<ConsideredCandidate> {
        self.sampled.primary_keys(&self.keys, given, partition_keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::RecordBatch;
    use evenkeel_input::source::Extent;
    use evenkeel_model::units::PartitionCount;
    use evenkeel_placement::placement::Function;
    use evenkeel_testkit::{AdEvents, ad_events_definition};

    fn considered_keys(
        primary_keys: &[&str],
        partition_key: Option<&str>,
    ) -> (Vec<ConsideredCandidate>, Vec<ConsideredCandidate>) {
        let columns = ad_events_definition().unwrap().columns;
        let options = AdEvents { rows: 20_000, duplicate_share: 0.0, ..AdEvents::default() };
        let batches: Vec<RecordBatch> = options.batches(5_000).unwrap().map(Result::unwrap).collect();
        let partitions = [PartitionCount::new(16).unwrap()];
        let extent = Extent { rows: 20_000, whole: true, places: 1, inputs: 1, of_inputs: 1 };
        let rows = RowsAcross { batches, extent };
        let searched = Searched {
            export: "ad_events",
            columns: &columns,
            time: None,
            partitions: &partitions,
            function: Function::default(),
            given: &[],
            widens: false,
        };
        let finder = Finder::new(&searched, &rows);
        assert_eq!(finder.time(), Some("event_timestamp"));
        let primary_keys: Vec<Candidate> = primary_keys.iter().map(|key| key.parse().unwrap()).collect();
        let partition_key = partition_key.map(|key| key.parse().unwrap());
        let partition_keys = finder.partition_keys(&primary_keys);
        let primary_candidates = finder.primary_keys(partition_key.as_ref(), &partition_keys);
        (partition_keys, primary_candidates)
    }

    fn kept(considered: &[ConsideredCandidate]) -> Vec<String> {
        considered.iter().filter(|c| c.kept).map(|c| c.key.join(", ")).collect()
    }

    #[test]
    fn what_may_serve_is_kept_and_what_cannot_is_dropped_with_the_reason() {
        let (partition_keys, primary_keys) = considered_keys(&[], None);
        let names = kept(&partition_keys);
        for key in ["user_id", "campaign_id", "event_id", "user_id, ad_id"] {
            assert!(names.iter().any(|name| name == key), "{key}: {names:?}");
        }
        for (column, reason) in [("event_type", "cannot fill 16 partitions"), ("event_timestamp", "a time")] {
            let dropped = partition_keys.iter().find(|c| c.key == [column]).unwrap();
            assert!(!dropped.kept && dropped.reason.contains(reason), "{dropped:?}");
        }
        let names = kept(&primary_keys);
        for key in ["event_timestamp, user_id, event_id", "user_id, event_timestamp, event_id"] {
            assert!(names.iter().any(|name| name == key), "{key}: {names:?}");
        }
    }

    #[test]
    fn keys_that_are_given_bound_those_that_are_found() {
        let (partition_keys, _) = considered_keys(&["event_timestamp, user_id, campaign_id"], None);
        let names = kept(&partition_keys);
        assert!(names.iter().all(|name| !name.contains("event_id")), "{names:?}");
        assert!(names.iter().any(|name| name == "user_id, event_timestamp"), "{names:?}");
        let (_, primary_keys) = considered_keys(&[], Some("campaign_id"));
        assert!(kept(&primary_keys).iter().all(|key| key.contains("campaign_id")), "{primary_keys:?}");
    }
}
