//! Messages of a partitioned log, such as Kafka: identified by topic, partition and offset.

use crate::evaluate::candidates::natural_keys::UniqueKey;
use crate::evaluate::candidates::sampled_columns::SampledColumns;
use crate::evaluate::roles::names::{denotes_log_partition, denotes_offset, denotes_topic};
use crate::evaluate::roles::profile::{Profile, distinct_together};

impl SampledColumns<'_> {
    /// Returns the coordinates of messages, if these distinguish `rows`. Offsets of different
    /// topics and partitions may differ by chance, because each began at another time.
    pub(super) fn log_coordinates(&self, rows: &[u32]) -> Option<UniqueKey> {
        let named = |denotes: fn(&str) -> bool| {
            (0..self.columns.len()).find(|at| denotes(self.name(*at)) && self.can_be_in_key(*at))
        };
        let varies = |at: &usize| self.columns.get(*at).is_some_and(|column| !column.is_constant());
        let offset = named(denotes_offset).filter(varies)?;
        let partition = named(denotes_log_partition)?;
        let columns: Vec<usize> =
            named(denotes_topic).into_iter().chain([partition]).filter(varies).chain([offset]).collect();
        let profiles: Vec<&Profile<'_>> = columns.iter().filter_map(|at| self.columns.get(*at)).collect();
        let distinct = distinct_together(&profiles, rows.iter().map(|row| *row as usize));
        (distinct == rows.len()).then_some(UniqueKey { columns, repeats_by_chance: 0.0, by_nature: true })
    }
}
