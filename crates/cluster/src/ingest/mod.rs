//! Distributed ingest: executors read, sort and write; the client makes the single commit.

mod manifest;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};

use crate::ingest::manifest::{Manifest, entries, verify, wrong};
use crate::nodes::{
    InputPart, ManifestEntry, ReadSpec, TaskExec, TaskSpec, WriteSpec, arrival_order, arrival_schema,
    assignments,
};
use crate::spilled_result::Batches;
use crate::{Cluster, ClusterError};
use evenkeel_engine::compact::CompactionPolicy;
use evenkeel_engine::query::key_ordering;
use evenkeel_input::source::{InputPath, row_counts};
use evenkeel_model::remark::Remark;
use evenkeel_storage::TableStorage;
use evenkeel_store::ingest::{IngestError, IngestFiles, SourceReport, UncommittedIngest, WritePortions};
use evenkeel_store::log::{PortionEntry, Snapshot, SourceEntry};
use evenkeel_store::portion::GROUP_MEMORY;

/// Size in bytes below which an input is read by one task.
const MIN_SPLIT_BYTES: u64 = 8 << 20;
/// Number of portions to check concurrently.
const LOOKS_AT_ONCE: usize = 16;
/// Tasks per core, so that a slow one does not delay the others for long.
const TASKS_PER_CORE: usize = 2;

impl WritePortions for Cluster {
    fn write_portions<'a>(
        &'a self,
        storage: &'a TableStorage,
        base: &'a Snapshot,
        plan: &'a IngestFiles,
    ) -> BoxFuture<'a, Result<UncommittedIngest, IngestError>> {
        write(self, storage, base, plan).map(|written| Ok(written?)).boxed()
    }
}

impl From<ClusterError> for IngestError {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Ingest(error) => error,
            error => Self::Elsewhere { reason: error.to_string() },
        }
    }
}

async fn write(
    cluster: &Cluster,
    storage: &TableStorage,
    base: &Snapshot,
    plan: &IngestFiles,
) -> Result<UncommittedIngest, ClusterError> {
    let (parts, sizes) = check(cluster, storage, plan, base)?;
    let work = physical_plan(cluster, base, plan, &parts, &sizes, &storage.place())?;
    let config = cluster.session_config(tasks(cluster));
    let interrupt = Arc::clone(&plan.interrupt);
    let result = tokio::select! {
        biased;
        () = interrupt.notified() => return Err(IngestError::Interrupted.into()),
        result = cluster.run(&work, &config) => result?,
    };
    let mut results = result.fetched;
    let mut manifest = verify(entries(results.batches()?), &parts, base.spec().partitions().len())?;
    check_stored(storage, &manifest.portions).await?;
    if result.tries > 1 {
        let text = format!(
            "the job was run {} times; 'evenkeel clean' removes the files of the other runs",
            result.tries
        );
        manifest.notes.push(Remark::new("job_run_again", text));
    }
    Ok(uncommitted(base, manifest, results.batches()?))
}

fn tasks(cluster: &Cluster) -> usize {
    cluster.size().cores.max(1) * TASKS_PER_CORE
}

/// Returns the parts of the inputs, and the sizes of the inputs, if other machines reach them and
/// the table.
fn check(
    cluster: &Cluster,
    storage: &TableStorage,
    plan: &IngestFiles,
    base: &Snapshot,
) -> Result<(Vec<InputPart>, BTreeSet<u64>), ClusterError> {
    cluster.check_place(&storage.place())?;
    let known_sizes: BTreeSet<u64> = base.sources().iter().map(|source| source.bytes).collect();
    let (mut parts, mut sizes) = (Vec::new(), BTreeSet::new());
    for (number, input) in (0..).zip(&plan.inputs) {
        let (input, bytes) = shared(cluster, input)?;
        sizes.insert(bytes);
        // One task reads an input that may be skipped, so that it knows before it reads a row.
        let whole = bytes < MIN_SPLIT_BYTES || (!plan.again && known_sizes.contains(&bytes));
        let rows = if whole {
            None
        } else {
            row_counts(std::slice::from_ref(&input), &plan.input).map_err(IngestError::from)?
        };
        let rows = rows.and_then(|counts| counts.first().copied()).unwrap_or(0);
        let task_count = tasks(cluster) as u64;
        if rows < task_count {
            parts.push(InputPart { input, number, rows: None });
            continue;
        }
        parts.extend((0..task_count).map(|part| InputPart {
            input: input.clone(),
            number,
            rows: Some(rows * part / task_count..rows * (part + 1) / task_count),
        }));
    }
    Ok((parts, sizes))
}

/// Returns the input under a name that other machines share, and its size in bytes.
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
    // Contents that an input of its size may have.
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
    let read = TaskExec::try_new(TaskSpec::Read(Box::new(read)), Vec::new(), leaf)?;
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

/// Checks that the files of the portions are in the storage of the table: executors may have a
/// local directory of the same name.
async fn check_stored(storage: &TableStorage, portions: &[PortionEntry]) -> Result<(), ClusterError> {
    let looks: Vec<_> = portions
        .iter()
        .map(|portion| async move { (portion, storage.size(&portion.path).await) }.boxed())
        .collect();
    let mut looked = futures::stream::iter(looks).buffer_unordered(LOOKS_AT_ONCE);
    while let Some((portion, size)) = looked.next().await {
        if size? != Some(portion.bytes) {
            let place = storage.place();
            return Err(wrong(format!(
                "{} is not in {place}: executors wrote to a directory of that name that is not this one",
                portion.path
            )));
        }
    }
    Ok(())
}

fn uncommitted(base: &Snapshot, mut manifest: Manifest, results: Batches) -> UncommittedIngest {
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
    UncommittedIngest {
        portions: manifest.portions,
        entries: manifest.sources.into_values().collect(),
        sources: reports.into_values().collect(),
        rejects: Box::new(entries(results).filter_map(|entry| match entry {
            Ok(ManifestEntry::Reject { reject, .. }) => Some(Ok(*reject)),
            Ok(_) => None,
            Err(error) => Some(Err(std::io::Error::other(error.to_string()))),
        })),
        rows: manifest.rows,
        replaced: manifest.replaced,
        notes: manifest.notes,
    }
}
