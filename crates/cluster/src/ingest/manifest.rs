//! Reports of executors on an ingest, and the check that they add up.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{AsArray, RecordBatch};

use crate::ClusterError;
use crate::nodes::{InputPart, ManifestEntry};
use crate::spilled_result::Batches;
use evenkeel_model::remark::Remark;
use evenkeel_model::units::PartitionId;
use evenkeel_store::log::{PortionEntry, SourceEntry};

/// Checked reports of the executors.
#[derive(Debug, Default)]
pub(super) struct Manifest {
    pub(super) portions: Vec<PortionEntry>,
    /// Inputs that were read, by input number.
    pub(super) sources: BTreeMap<u64, SourceEntry>,
    pub(super) skipped: BTreeMap<u64, SourceEntry>,
    /// Number of rejected rows.
    pub(super) rejected: u64,
    pub(super) notes: Vec<Remark>,
    pub(super) rows: u64,
    pub(super) replaced: u64,
}

/// Reads the reports of the executors, and checks that they add up: each part of the inputs was
/// read by one task, each partition was written by one task, and the rows stored or superseded are
/// as many as were read.
pub(super) fn verify(
    entries: impl Iterator<Item = Result<ManifestEntry, ClusterError>>,
    parts: &[InputPart],
    partitions: usize,
) -> Result<Manifest, ClusterError> {
    let mut reported = Reported::default();
    for entry in entries {
        reported.add(entry?, partitions)?;
    }
    reported.check_inputs(parts)?;
    reported.join_sources();
    reported.check_partitions()?;
    reported.finish()
}

/// Reports of executors, before they are checked as a whole.
#[derive(Debug, Default)]
struct Reported {
    manifest: Manifest,
    stored: BTreeMap<PartitionId, PartitionOutput>,
    /// Parts of inputs that were read, by the number of the input and its first row.
    read: BTreeMap<(u64, u64), SourceEntry>,
    /// Inputs that were skipped or empty.
    others: BTreeSet<(u64, u64)>,
    paths: BTreeSet<String>,
    rows_written: u64,
}

impl Reported {
    fn add(&mut self, entry: ManifestEntry, partitions: usize) -> Result<(), ClusterError> {
        match entry {
            ManifestEntry::Portion { task, portion } => return self.add_portion(task, portion),
            ManifestEntry::Partition { task, partition, rows_in, replaced, portions } => {
                if partition.index() >= partitions {
                    return Err(wrong(format!("there is no partition {partition}")));
                }
                let of_partition = self.stored.entry(partition).or_default();
                let writer = (task.clone(), rows_in - replaced, portions);
                if let Some((other, ..)) = of_partition.writer.replace(writer) {
                    return Err(wrong(format!(
                        "partition {partition} was written by '{other}' and by '{task}'"
                    )));
                }
                self.manifest.replaced += replaced;
                self.rows_written += rows_in;
            }
            ManifestEntry::Source { number, first, name, content, rows, rejected, notes } => {
                let (bytes, xxh3) = content.unwrap_or_default();
                let source = SourceEntry { name, bytes, xxh3, rows, rejected };
                if self.read.insert((number, first), source).is_some() {
                    return Err(wrong(format!("input {number} was read twice from row {first} on")));
                }
                self.manifest.notes.extend(notes);
            }
            ManifestEntry::Skipped { number, name, bytes, xxh3 } => {
                let source = SourceEntry { name, bytes, xxh3, rows: 0, rejected: 0 };
                if !self.others.insert((number, 0)) || self.manifest.skipped.insert(number, source).is_some()
                {
                    return Err(wrong(format!("input {number} was skipped twice")));
                }
            }
            ManifestEntry::Empty { number, name } => {
                if !self.others.insert((number, 0)) {
                    return Err(wrong(format!("input {number} was read twice")));
                }
                self.manifest.notes.push(evenkeel_store::ingest::empty_input(&name));
            }
            ManifestEntry::Reject { .. } => self.manifest.rejected += 1,
        }
        Ok(())
    }

    fn add_portion(&mut self, task: String, portion: PortionEntry) -> Result<(), ClusterError> {
        if !self.paths.insert(portion.path.clone()) {
            return Err(wrong(format!("{} occurs twice", portion.path)));
        }
        let of_partition = self.stored.entry(portion.partition).or_default();
        of_partition.tasks.insert(task);
        of_partition.rows += portion.rows;
        of_partition.portions += 1;
        self.manifest.portions.push(portion);
        Ok(())
    }

    /// Checks that each part was read exactly once, with all of its rows, and nothing else was
    /// read.
    fn check_inputs(&self, parts: &[InputPart]) -> Result<(), ClusterError> {
        for part in parts {
            let place = (part.number, part.rows.as_ref().map_or(0, |rows| rows.start));
            let counts = self.read.get(&place);
            if counts.is_some() == self.others.contains(&place) {
                return Err(wrong(format!(
                    "input {}, row {} on: expected exactly one task to read it",
                    place.0, place.1
                )));
            }
            let expected = part.rows.as_ref().map(|rows| rows.end - rows.start);
            if let (Some(expected), Some(counts)) = (expected, counts)
                && counts.rows + counts.rejected != expected
            {
                let came = counts.rows + counts.rejected;
                return Err(wrong(format!(
                    "input {}, row {} on: {came} of {expected} rows arrived",
                    place.0, place.1
                )));
            }
        }
        if self.read.len() + self.others.len() != parts.len() {
            return Err(wrong("parts were read that were not assigned"));
        }
        Ok(())
    }

    /// Joins the parts of each input.
    fn join_sources(&mut self) {
        for ((number, _), part) in std::mem::take(&mut self.read) {
            self.manifest.rows += part.rows;
            match self.manifest.sources.entry(number) {
                // Parts are in order, and the first one has the content.
                Entry::Vacant(first) => drop(first.insert(part)),
                Entry::Occupied(mut whole) => {
                    let whole = whole.get_mut();
                    whole.rows += part.rows;
                    whole.rejected += part.rejected;
                }
            }
        }
    }

    fn check_partitions(&self) -> Result<(), ClusterError> {
        match self.stored.iter().find(|(_, of_partition)| !of_partition.is_whole()) {
            Some((partition, of_partition)) => {
                Err(wrong(format!("partition {partition} is incomplete: {of_partition:?}")))
            }
            None => Ok(()),
        }
    }

    /// Checks that as many rows were written and rejected as were read.
    fn finish(self) -> Result<Manifest, ClusterError> {
        let Self { mut manifest, rows_written, .. } = self;
        if rows_written != manifest.rows {
            return Err(wrong(format!("{} rows were read but {rows_written} were written", manifest.rows)));
        }
        let rejected: u64 = manifest.sources.values().map(|source| source.rejected).sum();
        if rejected != manifest.rejected {
            return Err(wrong(format!(
                "{rejected} rows were rejected but {} were reported",
                manifest.rejected
            )));
        }
        manifest.notes.sort();
        manifest.notes.dedup();
        Ok(manifest)
    }
}

/// Output of executors for one partition.
#[derive(Debug, Default)]
struct PartitionOutput {
    /// Task that reported writing the partition, the number of rows it kept, and its number of
    /// portions.
    writer: Option<(String, u64, u64)>,
    /// Tasks that reported portions.
    tasks: BTreeSet<String>,
    rows: u64,
    portions: u64,
}

impl PartitionOutput {
    fn is_whole(&self) -> bool {
        self.writer.as_ref().is_some_and(|(task, rows, portions)| {
            (*rows, *portions) == (self.rows, self.portions) && self.tasks.iter().all(|other| other == task)
        })
    }
}

/// Returns the entries that executors reported, line by line.
pub(super) fn entries(batches: Batches) -> impl Iterator<Item = Result<ManifestEntry, ClusterError>> {
    batches.flat_map(|batch| {
        match batch.map_err(|error| wrong(error.to_string())).and_then(|batch| read(&batch)) {
            Ok(entries) => entries.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        }
    })
}

fn read(batch: &RecordBatch) -> Result<Vec<ManifestEntry>, ClusterError> {
    let column = batch.columns().first().and_then(|column| column.as_string_opt::<i32>());
    let lines = column.ok_or_else(|| wrong("it is not valid UTF-8"))?.iter().flatten();
    lines
        .map(|line| serde_json::from_str(line).map_err(|error| wrong(format!("{error} in {line}"))))
        .collect()
}

pub(super) fn wrong(reason: impl Into<String>) -> ClusterError {
    ClusterError::Manifest { reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, StringArray};
    use evenkeel_input::source::InputPath;
    use evenkeel_model::table::{KeyRange, KeyValue};
    use evenkeel_model::units::Version;
    use evenkeel_store::log::Sequence;

    fn parts() -> Vec<InputPart> {
        let input = InputPath::File("a".into());
        let part = |number, rows| InputPart { input: input.clone(), number, rows };
        vec![part(0, Some(0..10)), part(0, Some(10..20)), part(1, None), part(2, None)]
    }

    fn portion(path: &str, partition: u32, rows: u64) -> ManifestEntry {
        let key_range = KeyRange { min: vec![KeyValue::Int(0)], max: vec![KeyValue::Int(9)] };
        let portion = PortionEntry {
            path: path.into(),
            partition: PartitionId(partition),
            sequence: Sequence { version: Version(0), ordinal: 0 },
            rows,
            bytes: 100,
            column_ranges: vec![key_range.clone()],
            key_range,
            xxh3: String::new(),
            deletes: false,
        };
        ManifestEntry::Portion { task: format!("task {partition}"), portion }
    }

    fn partition(partition: u32, rows_in: u64, replaced: u64, portions: u64) -> ManifestEntry {
        let task = format!("task {partition}");
        ManifestEntry::Partition { task, partition: PartitionId(partition), rows_in, replaced, portions }
    }

    fn source(number: u64, first: u64, rows: u64) -> ManifestEntry {
        let content = (first == 0).then(|| (7, "x".to_owned()));
        ManifestEntry::Source {
            number,
            first,
            name: "a".into(),
            content,
            rows,
            rejected: 0,
            notes: Vec::new(),
        }
    }

    fn whole() -> Vec<ManifestEntry> {
        vec![
            source(0, 0, 10),
            source(0, 10, 10),
            source(1, 0, 5),
            ManifestEntry::Skipped { number: 2, name: "b".into(), bytes: 9, xxh3: "y".into() },
            portion("p", 0, 12),
            portion("q", 0, 2),
            partition(0, 15, 1, 2),
            portion("r", 1, 10),
            partition(1, 10, 0, 1),
        ]
    }

    fn verified(entries: &[ManifestEntry]) -> Result<Manifest, ClusterError> {
        let lines = entries.iter().map(|entry| Some(serde_json::to_string(entry).unwrap()));
        let column = Arc::new(lines.collect::<StringArray>()) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("entry", column)]).unwrap();
        verify(read(&batch)?.into_iter().map(Ok), &parts(), 2)
    }

    #[test]
    fn what_adds_up_is_taken() {
        let manifest = verified(&whole()).unwrap();
        assert_eq!((manifest.rows, manifest.replaced, manifest.portions.len()), (25, 1, 3));
        assert_eq!((manifest.sources[&0].rows, manifest.sources[&0].bytes), (20, 7));
        assert_eq!(manifest.skipped.len(), 1);
    }

    #[test]
    fn whatever_is_lost_doubled_or_torn_is_noticed() {
        for left_out in 0..whole().len() {
            let mut entries = whole();
            entries.remove(left_out);
            assert!(verified(&entries).is_err(), "without {left_out}");
            let mut entries = whole();
            entries.push(whole()[left_out].clone());
            assert!(verified(&entries).is_err(), "{left_out} twice");
        }
        let changed: [(usize, ManifestEntry); 6] = [
            // A part of an input that lost rows, and a partition with fewer rows to match.
            (0, source(0, 0, 9)),
            (2, source(1, 0, 6)),
            (2, source(3, 0, 5)),
            (4, portion("p", 0, 11)),
            (4, portion("p", 1, 12)),
            (8, partition(1, 9, 0, 1)),
        ];
        for (place, entry) in changed {
            let mut entries = whole();
            entries[place] = entry.clone();
            assert!(verified(&entries).is_err(), "{entry:?}");
        }
        // A read task that was lost as a whole, with the rows that it sent.
        let mut entries = whole();
        entries[7] = portion("r", 1, 5);
        entries[8] = partition(1, 5, 0, 1);
        entries.remove(2);
        assert!(verified(&entries).is_err());
    }
}
