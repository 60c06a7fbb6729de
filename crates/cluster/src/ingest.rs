//! Ingest whose reading, sorting and writing is done by executors, and whose one commit is made by
//! the client.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{AsArray, RecordBatch};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use futures::StreamExt;

use crate::nodes::{
    InputPart, ManifestEntry, ReadSpec, TaskExec, TaskSpec, WriteSpec, arrival_order, arrival_schema,
    assignments,
};
use crate::spilled_result::Batches;
use crate::{Cluster, ClusterError};
use evenkeel_engine::Table;
use evenkeel_engine::compact::CompactionPolicy;
use evenkeel_engine::query::key_ordering;
use evenkeel_input::source::{InputPath, row_counts};
use evenkeel_model::units::PartitionId;
use evenkeel_store::ingest::{
    IngestError, IngestFiles, IngestReport, SourceReport, UncommittedIngest, finish_written,
};
use evenkeel_store::log::{PortionEntry, Snapshot, SourceEntry};
use evenkeel_store::portion::GROUP_MEMORY;

/// Size in bytes below which an input is read by one task.
const LEAST_SPLIT_BYTES: u64 = 8 << 20;
/// Number of portions to check concurrently.
const LOOKS_AT_ONCE: usize = 16;
/// Tasks per core, so that a slow one does not delay the others for long.
const TASKS_PER_CORE: usize = 2;

/// Checked reports of the executors.
#[derive(Debug, Default)]
struct Manifest {
    portions: Vec<PortionEntry>,
    /// Inputs that were read, by input number.
    sources: BTreeMap<u64, SourceEntry>,
    skipped: BTreeMap<u64, SourceEntry>,
    /// Number of rejected rows.
    rejected: u64,
    notes: Vec<String>,
    rows: u64,
    replaced: u64,
}

/// Ingests files into a table on a cluster, with one commit, or none if every input was ingested
/// before.
///
/// # Errors
/// [`ClusterError`]; nothing is visible then. Files that executors wrote stay until the table is
/// cleaned.
pub async fn ingest_files(
    cluster: &Cluster,
    table: &mut Table,
    plan: IngestFiles,
) -> Result<IngestReport, ClusterError> {
    let started = Instant::now();
    let base = table.snapshot().clone();
    plan.check_rejects()?;
    let (parts, sizes, place) = check(cluster, table, &plan, &base)?;
    let work = physical_plan(cluster, &base, &plan, &parts, &sizes, &place)?;
    let config = cluster.session_config(tasks(cluster));
    let interrupt = Arc::clone(&plan.interrupt);
    let result = tokio::select! {
        biased;
        () = interrupt.notified() => return Err(IngestError::Interrupted.into()),
        result = cluster.run(&work, &config) => result?,
    };
    let mut told = result.fetched;
    let mut manifest = verify(entries(told.batches()?), &parts, base.spec().partitions().len())?;
    check_stored(table, &manifest.portions).await?;
    if result.tries > 1 {
        manifest.notes.push(format!(
            "the job was run {} times; what the others wrote is left to 'evenkeel clean'",
            result.tries
        ));
    }
    commit(table, base, plan, manifest, told.batches()?, started).await
}

fn tasks(cluster: &Cluster) -> usize {
    cluster.size().cores.max(1) * TASKS_PER_CORE
}

/// Returns the parts of the inputs, the sizes of the inputs, and the place of the table for other
/// machines.
fn check(
    cluster: &Cluster,
    table: &Table,
    plan: &IngestFiles,
    base: &Snapshot,
) -> Result<(Vec<InputPart>, BTreeSet<u64>, String), ClusterError> {
    let place = table.storage().place();
    cluster.check_place(&place)?;
    let known_sizes: BTreeSet<u64> = base.sources().iter().map(|source| source.bytes).collect();
    let (mut parts, mut sizes) = (Vec::new(), BTreeSet::new());
    for (number, input) in (0..).zip(&plan.inputs) {
        let (input, bytes) = shared(cluster, input)?;
        sizes.insert(bytes);
        // An input that may be skipped is read by one task, which knows before it reads a row.
        let whole = bytes < LEAST_SPLIT_BYTES || (!plan.again && known_sizes.contains(&bytes));
        let rows = if whole {
            None
        } else {
            row_counts(std::slice::from_ref(&input), &plan.input).map_err(IngestError::from)?
        };
        let rows = rows.and_then(|counts| counts.first().copied()).unwrap_or(0);
        let of = tasks(cluster) as u64;
        if rows < of {
            parts.push(InputPart { input, number, rows: None });
            continue;
        }
        parts.extend((0..of).map(|part| InputPart {
            input: input.clone(),
            number,
            rows: Some(rows * part / of..rows * (part + 1) / of),
        }));
    }
    Ok((parts, sizes, place))
}

/// Returns the input under a name that other machines have for it too, and its size in bytes.
pub(super) fn shared(cluster: &Cluster, input: &InputPath) -> Result<(InputPath, u64), ClusterError> {
    match input {
        InputPath::Stdin | InputPath::Copy { .. } => Err(ClusterError::Stdin),
        InputPath::Remote(file) => Ok((input.clone(), file.bytes)),
        InputPath::File(path) => {
            let wrong = |error: std::io::Error| ClusterError::File {
                path: path.display().to_string(),
                reason: error.to_string(),
            };
            let path = std::path::absolute(path).map_err(wrong)?;
            cluster.check_place(&path.display().to_string())?;
            let metadata = std::fs::metadata(&path).map_err(wrong)?;
            if !metadata.is_file() {
                return Err(ClusterError::Stdin);
            }
            Ok((InputPath::File(path), metadata.len()))
        }
    }
}

/// Assigns parts to tasks, in turn.
fn deal(parts: &[InputPart], tasks: usize) -> Vec<Vec<InputPart>> {
    let mut dealt = vec![Vec::new(); tasks.min(parts.len()).max(1)];
    let count = dealt.len();
    for (index, part) in parts.iter().enumerate() {
        if let Some(task) = dealt.get_mut(index % count) {
            task.push(part.clone());
        }
    }
    dealt
}

fn physical_plan(
    cluster: &Cluster,
    base: &Snapshot,
    plan: &IngestFiles,
    parts: &[InputPart],
    sizes: &BTreeSet<u64>,
    place: &str,
) -> Result<Arc<dyn ExecutionPlan>, ClusterError> {
    let spec = base.spec();
    let definition = spec.definition().clone();
    // Contents that some input may have, by its size.
    let is_possible = |source: &SourceEntry| sizes.contains(&source.bytes);
    let known = match plan.again {
        true => Vec::new(),
        false => base.sources().into_iter().filter(is_possible).map(|source| source.xxh3).collect(),
    };
    let mut options = plan.input.clone();
    options.views = false;
    let read = ReadSpec {
        definition: definition.clone(),
        options,
        known,
        reject: plan.rejects.is_some(),
        only_one: plan.inputs.len() == 1,
    };
    let leaf = assignments(&deal(parts, tasks(cluster)))?;
    let read = TaskExec::try_new(TaskSpec::Read(read), Vec::new(), leaf)?;
    let schema = arrival_schema(spec);
    let columns = spec.columns().len();
    // All rows of a partition go to one task, whatever the hash.
    let writers = tasks(cluster).min(spec.partitions().len()).max(1);
    let by_partition: Arc<dyn PhysicalExpr> = Arc::new(Column::new("__partition", columns));
    let shuffled = RepartitionExec::try_new(Arc::new(read), Partitioning::Hash(vec![by_partition], writers))?;
    let order: Option<LexOrdering> = key_ordering(&schema, &arrival_order(spec));
    let Some(order) = order else {
        return Err(wrong("a table has a primary key"));
    };
    let sorted = SortExec::new(order, Arc::new(shuffled)).with_preserve_partitioning(true);
    let write = WriteSpec {
        place: place.to_owned(),
        definition,
        mode: plan.ingest.mode,
        target: CompactionPolicy::default().target,
        group_memory: GROUP_MEMORY,
    };
    Ok(Arc::new(TaskExec::try_new(TaskSpec::Write(write), Vec::new(), Arc::new(sorted))?))
}

/// Output of executors for one partition.
#[derive(Debug, Default)]
struct Stored {
    /// Task that reported writing the partition, the number of rows it kept, and its number of
    /// portions.
    writer: Option<(String, u64, u64)>,
    /// Tasks that reported portions.
    tasks: BTreeSet<String>,
    rows: u64,
    portions: u64,
}

impl Stored {
    fn is_whole(&self) -> bool {
        self.writer.as_ref().is_some_and(|(task, rows, portions)| {
            (*rows, *portions) == (self.rows, self.portions) && self.tasks.iter().all(|other| other == task)
        })
    }
}

fn wrong(reason: impl Into<String>) -> ClusterError {
    ClusterError::Manifest { reason: reason.into() }
}

/// Reads the reports of the executors, and checks that they add up: each part of the inputs was
/// read by one task, each partition was written by one task, and the rows stored or superseded are
/// as many as were read.
fn verify(
    entries: impl Iterator<Item = Result<ManifestEntry, ClusterError>>,
    parts: &[InputPart],
    partitions: usize,
) -> Result<Manifest, ClusterError> {
    let mut manifest = Manifest::default();
    let mut stored: BTreeMap<PartitionId, Stored> = BTreeMap::new();
    let mut read: BTreeMap<(u64, u64), SourceEntry> = BTreeMap::new();
    let mut others: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut paths = BTreeSet::new();
    let mut rows_written = 0;
    for entry in entries {
        match entry? {
            ManifestEntry::Portion { task, portion } => {
                if !paths.insert(portion.path.clone()) {
                    return Err(wrong(format!("{} comes twice", portion.path)));
                }
                let of_partition = stored.entry(portion.partition).or_default();
                of_partition.tasks.insert(task);
                of_partition.rows += portion.rows;
                of_partition.portions += 1;
                manifest.portions.push(portion);
            }
            ManifestEntry::Partition { task, partition, rows_in, replaced, portions } => {
                if partition.index() >= partitions {
                    return Err(wrong(format!("there is no partition {partition}")));
                }
                let of_partition = stored.entry(partition).or_default();
                if let Some((other, ..)) =
                    of_partition.writer.replace((task.clone(), rows_in - replaced, portions))
                {
                    return Err(wrong(format!(
                        "partition {partition} was written by '{other}' and by '{task}'"
                    )));
                }
                manifest.replaced += replaced;
                rows_written += rows_in;
            }
            ManifestEntry::Source { number, first, name, content, rows, rejected, notes } => {
                let (bytes, xxh3) = content.unwrap_or_default();
                let source = SourceEntry { name, bytes, xxh3, rows, rejected };
                if read.insert((number, first), source).is_some() {
                    return Err(wrong(format!("input {number} was read twice from row {first} on")));
                }
                manifest.notes.extend(notes);
            }
            ManifestEntry::Skipped { number, name, bytes, xxh3 } => {
                let source = SourceEntry { name, bytes, xxh3, rows: 0, rejected: 0 };
                if !others.insert((number, 0)) || manifest.skipped.insert(number, source).is_some() {
                    return Err(wrong(format!("input {number} was skipped twice")));
                }
            }
            ManifestEntry::Empty { number, name } => {
                if !others.insert((number, 0)) {
                    return Err(wrong(format!("input {number} was read twice")));
                }
                manifest.notes.push(format!("{name} is empty"));
            }
            ManifestEntry::Reject { .. } => manifest.rejected += 1,
        }
    }
    for part in parts {
        let place = (part.number, part.rows.as_ref().map_or(0, |rows| rows.start));
        let found = read.get(&place);
        if found.is_some() == others.contains(&place) {
            return Err(wrong(format!(
                "input {}, row {} on: expected exactly one task to read it",
                place.0, place.1
            )));
        }
        let expected = part.rows.as_ref().map(|rows| rows.end - rows.start);
        if let (Some(expected), Some(found)) = (expected, found)
            && found.rows + found.rejected != expected
        {
            let came = found.rows + found.rejected;
            return Err(wrong(format!(
                "input {}, row {} on: {came} of {expected} rows arrived",
                place.0, place.1
            )));
        }
    }
    if read.len() + others.len() != parts.len() {
        return Err(wrong("more was read than was assigned"));
    }
    for ((number, _), part) in read {
        manifest.rows += part.rows;
        match manifest.sources.entry(number) {
            // Parts are in order, and the first one has the content.
            Entry::Vacant(first) => drop(first.insert(part)),
            Entry::Occupied(mut whole) => {
                let whole = whole.get_mut();
                whole.rows += part.rows;
                whole.rejected += part.rejected;
            }
        }
    }
    if let Some((partition, of_partition)) = stored.iter().find(|(_, of_partition)| !of_partition.is_whole())
    {
        return Err(wrong(format!("partition {partition} is incomplete: {of_partition:?}")));
    }
    if rows_written != manifest.rows {
        return Err(wrong(format!("{} rows were read but {rows_written} were written", manifest.rows)));
    }
    let rejected: u64 = manifest.sources.values().map(|source| source.rejected).sum();
    if rejected != manifest.rejected {
        return Err(wrong(format!("{rejected} rows were rejected but {} were reported", manifest.rejected)));
    }
    manifest.notes.sort();
    manifest.notes.dedup();
    Ok(manifest)
}

/// Checks that the files of the portions are in the storage of the table: executors may have a
/// local directory of the same name.
async fn check_stored(table: &Table, portions: &[PortionEntry]) -> Result<(), ClusterError> {
    let looked = futures::stream::iter(portions)
        .map(|portion| async move { (portion, table.storage().size(&portion.path).await) });
    let mut looked = looked.buffer_unordered(LOOKS_AT_ONCE);
    while let Some((portion, size)) = looked.next().await {
        if size? != Some(portion.bytes) {
            let place = table.storage().place();
            return Err(wrong(format!(
                "{} is not in {place}: executors wrote to a directory of that name that is not this one",
                portion.path
            )));
        }
    }
    Ok(())
}

/// Returns the entries that executors reported, line by line.
fn entries(batches: Batches) -> impl Iterator<Item = Result<ManifestEntry, ClusterError>> {
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

async fn commit(
    table: &mut Table,
    base: Snapshot,
    plan: IngestFiles,
    mut manifest: Manifest,
    told: Batches,
    started: Instant,
) -> Result<IngestReport, ClusterError> {
    let skipped = manifest.skipped.iter().map(|(number, source)| {
        let known = base.source(&source.xxh3);
        let SourceEntry { name, bytes, .. } = source.clone();
        let rejected = known.map_or(0, |(_, known)| known.rejected);
        let skipped_since = known.map(|(version, _)| version);
        (*number, SourceReport { name, bytes, rows: 0, rejected, skipped_since })
    });
    let mut reports: BTreeMap<u64, SourceReport> = skipped.collect();
    reports.extend(manifest.sources.iter().map(|(number, source)| {
        let SourceEntry { name, bytes, rows, rejected, .. } = source.clone();
        (*number, SourceReport { name, bytes, rows, rejected, skipped_since: None })
    }));
    manifest.portions.sort_by(|a, b| (a.partition, &a.key_range.min).cmp(&(b.partition, &b.key_range.min)));
    let written = UncommittedIngest {
        portions: manifest.portions,
        entries: manifest.sources.into_values().collect(),
        sources: reports.into_values().collect(),
        rejects: Box::new(entries(told).filter_map(|entry| match entry {
            Ok(ManifestEntry::Reject { reject, .. }) => Some(Ok(*reject)),
            Ok(_) => None,
            Err(error) => Some(Err(std::io::Error::other(error.to_string()))),
        })),
        rows: manifest.rows,
        replaced: manifest.replaced,
        notes: manifest.notes,
    };
    let (report, snapshot) = finish_written(table.log().clone(), base, &plan, written, started).await?;
    table.move_to(snapshot);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, StringArray};
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
