//! An ingest whose reading, sorting and writing is done by executors, and whose one commit is made by the client.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, RecordBatch, StringArray};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use crate::cluster::nodes::{
    InputPart, ManifestEntry, ReadSpec, TaskExec, TaskSpec, WriteSpec, arrival_order, arrival_schema, errands,
};
use crate::cluster::{Cluster, ClusterError};
use crate::compact::CompactionPolicy;
use crate::handle::Table;
use crate::ingest::{IngestError, IngestFiles, IngestReport, SourceReport, Written, finish_written};
use crate::log::{PortionEntry, Snapshot, SourceEntry};
use crate::portion::GROUP_MEMORY;
use crate::query::key_ordering;
use crate::source::{InputPath, row_counts};
use crate::units::PartitionId;

/// Inputs of fewer bytes are read by one task.
const LEAST_SPLIT_BYTES: u64 = 8 << 20;
/// Tasks for each core, so that a slow one does not keep the others waiting for long.
const TASKS_PER_CORE: usize = 2;

/// What the executors did, checked.
#[derive(Debug, Default)]
struct Manifest {
    portions: Vec<PortionEntry>,
    /// By input number.
    sources: BTreeMap<u64, SourceEntry>,
    skipped: BTreeMap<u64, SourceReport>,
    rejects: Vec<crate::source::Reject>,
    notes: Vec<String>,
    rows: u64,
    replaced: u64,
}

/// Ingests files into a table by a cluster, with one commit, or none where every input was ingested before.
///
/// # Errors
/// [`ClusterError`]; nothing is visible then. Files that executors wrote stay until the table is cleaned.
pub async fn ingest_files(
    cluster: &Cluster,
    table: &mut Table,
    plan: IngestFiles,
) -> Result<IngestReport, ClusterError> {
    let started = Instant::now();
    let base = table.snapshot().clone();
    let (parts, place) = check(cluster, table, &plan, &base)?;
    let work = physical_plan(cluster, &base, &plan, &parts, &place)?;
    let config = cluster.session_config(tasks(cluster));
    let interrupt = Arc::clone(&plan.interrupt);
    let result = tokio::select! {
        biased;
        () = interrupt.notified() => return Err(IngestError::Interrupted.into()),
        result = cluster.run(&work, &config) => result?,
    };
    let mut manifest = verify(&result.batches, base.spec().partitions().len())?;
    if result.tries > 1 {
        manifest.notes.push(format!(
            "the job was run {} times; what the others wrote is left to 'evenkeel clean'",
            result.tries
        ));
    }
    commit(table, base, plan, manifest, started).await
}

fn tasks(cluster: &Cluster) -> usize {
    cluster.size().cores.max(1) * TASKS_PER_CORE
}

/// What is read by whom, and where the table is for other machines.
fn check(
    cluster: &Cluster,
    table: &Table,
    plan: &IngestFiles,
    base: &Snapshot,
) -> Result<(Vec<InputPart>, String), ClusterError> {
    let place = table.storage().place();
    cluster.check_place(&place)?;
    let known_sizes: BTreeSet<u64> = base.sources().iter().map(|source| source.bytes).collect();
    let mut parts = Vec::new();
    for (number, input) in (0..).zip(&plan.inputs) {
        let (input, bytes) = shared(cluster, input)?;
        // What may be skipped is read by one task, which knows before it reads a row.
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
    Ok((parts, place))
}

/// The input by a name that other machines have for it too, and its bytes.
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

/// Parts dealt out to tasks, in turn.
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
    place: &str,
) -> Result<Arc<dyn ExecutionPlan>, ClusterError> {
    let spec = base.spec();
    let definition = spec.definition().clone();
    let known =
        if plan.again { Vec::new() } else { base.sources().into_iter().map(|source| source.xxh3).collect() };
    let mut options = plan.input.clone();
    options.views = false;
    let read = ReadSpec { definition: definition.clone(), options, known, reject: plan.rejects.is_some() };
    let leaf = errands(&deal(parts, tasks(cluster)))?;
    let read = TaskExec::try_new(TaskSpec::Read(read), Vec::new(), leaf)?;
    let schema = arrival_schema(spec);
    let columns = spec.columns().len();
    // Rows of a partition come to one task, whatever the hash.
    let writers = tasks(cluster).min(spec.partitions().len()).max(1);
    let by_partition: Arc<dyn PhysicalExpr> = Arc::new(Column::new("__partition", columns));
    let shuffled = RepartitionExec::try_new(Arc::new(read), Partitioning::Hash(vec![by_partition], writers))?;
    let order: Option<LexOrdering> = key_ordering(&schema, &arrival_order(spec));
    let Some(order) = order else {
        return Err(ClusterError::Job("a table has a primary key".to_owned()));
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

/// Reads what the executors report, and checks that it adds up: each partition is written by one task, and as many rows are stored or
/// replaced as were read.
fn verify(batches: &[RecordBatch], partitions: usize) -> Result<Manifest, ClusterError> {
    let wrong = |reason: String| ClusterError::Manifest { reason };
    let mut manifest = Manifest::default();
    let mut writers: HashMap<PartitionId, (String, u64)> = HashMap::new();
    let mut stored: HashMap<PartitionId, (BTreeSet<String>, u64, u64)> = HashMap::new();
    let mut read: BTreeMap<u64, Vec<SourceEntry>> = BTreeMap::new();
    let mut paths = BTreeSet::new();
    let mut rows_written = 0;
    for line in lines(batches)? {
        let entry: ManifestEntry =
            serde_json::from_str(line).map_err(|error| wrong(format!("{error} in {line}")))?;
        match entry {
            ManifestEntry::Portion { task, portion } => {
                if !paths.insert(portion.path.clone()) {
                    return Err(wrong(format!("{} comes twice", portion.path)));
                }
                let of_partition = stored.entry(portion.partition).or_default();
                of_partition.0.insert(task);
                of_partition.1 += portion.rows;
                of_partition.2 += 1;
                manifest.portions.push(portion);
            }
            ManifestEntry::Partition { task, partition, rows_in, replaced, portions } => {
                if partition.index() >= partitions {
                    return Err(wrong(format!("there is no partition {partition}")));
                }
                if let Some((other, _)) = writers.insert(partition, (task.clone(), rows_in - replaced)) {
                    return Err(wrong(format!(
                        "partition {partition} was written by '{other}' and by '{task}'"
                    )));
                }
                stored.entry(partition).or_default().2 += 0;
                manifest.replaced += replaced;
                rows_written += rows_in;
                let _ = portions;
            }
            ManifestEntry::Source { number, name, content, rows, rejected, notes } => {
                let (bytes, xxh3) = content.unwrap_or_default();
                read.entry(number).or_default().push(SourceEntry { name, bytes, xxh3, rows, rejected });
                manifest.notes.extend(notes);
            }
            ManifestEntry::Skipped { number, name, bytes, .. } => {
                let report = SourceReport { name, bytes, rows: 0, rejected: 0, skipped_since: None };
                manifest.skipped.insert(number, report);
            }
            ManifestEntry::Empty { name, .. } => manifest.notes.push(format!("{name} is empty")),
            ManifestEntry::Reject { reject, .. } => manifest.rejects.push(*reject),
        }
    }
    for (number, parts) in read {
        let Some(whole) = parts.iter().find(|part| !part.xxh3.is_empty()).cloned() else {
            return Err(wrong(format!("nobody read the beginning of input {number}")));
        };
        let rows = parts.iter().map(|part| part.rows).sum();
        let rejected = parts.iter().map(|part| part.rejected).sum();
        manifest.rows += rows;
        manifest.sources.insert(number, SourceEntry { rows, rejected, ..whole });
    }
    for (partition, (tasks, rows, _)) in &stored {
        let writer = writers.get(partition);
        let expected = writer.map_or(0, |(_, rows)| *rows);
        if *rows != expected || tasks.len() > 1 || writer.is_none() {
            return Err(wrong(format!(
                "partition {partition} has {rows} rows of {expected}, by {} tasks",
                tasks.len()
            )));
        }
    }
    if rows_written != manifest.rows {
        return Err(wrong(format!("{} rows were read and {rows_written} came to be written", manifest.rows)));
    }
    let rejected: u64 = manifest.sources.values().map(|source| source.rejected).sum();
    if rejected != manifest.rejects.len() as u64 {
        return Err(wrong(format!("{rejected} rows were rejected and {} are told", manifest.rejects.len())));
    }
    manifest.notes.sort();
    manifest.notes.dedup();
    Ok(manifest)
}

fn lines(batches: &[RecordBatch]) -> Result<Vec<&str>, ClusterError> {
    let mut lines = Vec::new();
    for batch in batches {
        let column = batch.columns().first().and_then(|column| column.as_any().downcast_ref::<StringArray>());
        let Some(column) = column else {
            return Err(ClusterError::Manifest { reason: "it is no text".to_owned() });
        };
        lines.extend(column.iter().flatten());
    }
    Ok(lines)
}

async fn commit(
    table: &mut Table,
    base: Snapshot,
    plan: IngestFiles,
    mut manifest: Manifest,
    started: Instant,
) -> Result<IngestReport, ClusterError> {
    let skipped = manifest.skipped.iter().map(|(number, report)| {
        let version = base
            .sources()
            .iter()
            .find(|source| source.bytes == report.bytes)
            .and_then(|source| base.source_version(&source.xxh3));
        (*number, SourceReport { skipped_since: version, ..report.clone() })
    });
    let mut reports: BTreeMap<u64, SourceReport> = skipped.collect();
    reports.extend(manifest.sources.iter().map(|(number, source)| {
        let SourceEntry { name, bytes, rows, rejected, .. } = source.clone();
        (*number, SourceReport { name, bytes, rows, rejected, skipped_since: None })
    }));
    manifest.portions.sort_by(|a, b| (a.partition, &a.key_range.min).cmp(&(b.partition, &b.key_range.min)));
    let written = Written {
        portions: manifest.portions,
        entries: manifest.sources.into_values().collect(),
        sources: reports.into_values().collect(),
        rejects: manifest.rejects,
        rows: manifest.rows,
        replaced: manifest.replaced,
        notes: manifest.notes,
    };
    let (report, snapshot) = finish_written(table.log().clone(), base, &plan, written, started).await?;
    table.move_to(snapshot);
    Ok(report)
}
