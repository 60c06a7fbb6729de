//! The scans of a plan, cut into one scan for each partition.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::common::Statistics;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::error::Result;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;

use crate::query::local_joins::locality::{Locality, Obstacle, scanned};
use crate::query::local_joins::placed::PlacedExec;
use crate::query::scan::named_table::NamedTable;
use crate::query::scan::newest_wins::NewestWinsExec;
use crate::query::scan::ordered_scan::OrderedScan;
use crate::query::scan::portion_statistics::portion_statistics;
use crate::query::scan::provider::SnapshotTable;
use crate::query::walk::Walk;
use evenkeel_model::units::PartitionId;
use evenkeel_placement::placement::{Nesting, Placement};
use evenkeel_store::log::PortionEntry;

/// The rows of one scan that are in one partition.
#[derive(Debug, Clone)]
struct Part {
    scan: Arc<dyn ExecutionPlan>,
    rows: u64,
}

/// Parts of one scan, by partition of the coarsest table.
type Parts = BTreeMap<PartitionId, Part>;

/// The scans of a plan, in top-down order.
#[derive(Debug, Clone)]
pub(super) struct PartitionScans {
    scans: Vec<Parts>,
    /// Partitions that any of them reads.
    partitions: BTreeSet<PartitionId>,
}

impl PartitionScans {
    /// Cuts the scans of a plan that is local.
    pub(super) fn from_plan(
        plan: &Arc<dyn ExecutionPlan>,
        locality: &Locality,
        tables: &[NamedTable],
    ) -> Result<std::result::Result<Self, Obstacle>> {
        let mut scans = Vec::new();
        let mut failed = None;
        plan.apply_dyn(|node| {
            let Some(named) = scanned(node, tables) else { return Ok(TreeNodeRecursion::Continue) };
            match parts_of(node, scans.len(), &named.table, &locality.coarsest.1)? {
                Ok(parts) => {
                    scans.push(parts);
                    Ok(TreeNodeRecursion::Jump)
                }
                Err(obstacle) => {
                    failed = Some(obstacle);
                    Ok(TreeNodeRecursion::Stop)
                }
            }
        })?;
        let partitions = scans.iter().flat_map(|parts| parts.keys().copied()).collect();
        Ok(failed.map_or(Ok(Self { scans, partitions }), Err))
    }

    /// Returns the partitions that are read.
    pub(super) fn partitions(&self) -> impl Iterator<Item = PartitionId> {
        self.partitions.iter().copied()
    }

    /// Returns the number of rows that all scans read of a partition.
    pub(super) fn rows(&self, partition: PartitionId) -> u64 {
        self.scans.iter().filter_map(|parts| parts.get(&partition)).map(|part| part.rows).sum()
    }

    /// Returns the scans of a partition; `None` where it has no files.
    pub(super) fn of_partition(&self, partition: PartitionId) -> Vec<Option<&Arc<dyn ExecutionPlan>>> {
        self.scans.iter().map(|parts| parts.get(&partition).map(|part| &part.scan)).collect()
    }

    /// Returns what is known of the rows of each scan in all partitions together; `None` for scans
    /// of other kinds.
    pub(super) fn statistics(&self) -> Result<Vec<Option<Statistics>>> {
        let of_parts = |parts: &Parts| {
            let of_part = |part: &Part| Some(OrderedScan::config_of(part.scan.as_ref())?.statistics());
            let known = parts.values().map(of_part).collect::<Option<Vec<_>>>();
            let schema = parts.values().next().and_then(|part| {
                let config = OrderedScan::config_of(part.scan.as_ref())?;
                Some(Arc::clone(config.file_source().table_schema().table_schema()))
            });
            let merged = known.zip(schema).map(|(known, schema)| Statistics::try_merge_iter(&known, &schema));
            merged.transpose()
        };
        self.scans.iter().map(of_parts).collect()
    }

    /// Returns the reason why partitions cannot divide the work among cores; `None` if they can.
    pub(super) fn unevenness(&self, cores: usize) -> Option<Obstacle> {
        let count = self.partitions.len();
        if count < cores {
            return Some(Obstacle(format!("only {count} of the partitions are read, by {cores} cores")));
        }
        let rows: Vec<u64> = self.partitions().map(|partition| self.rows(partition)).collect();
        let (most, all) = (rows.iter().max().copied().unwrap_or(0), rows.iter().sum::<u64>());
        // A core that works twice as long as others on average leaves them idle for half of it.
        let is_uneven = u128::from(most) * cores as u128 > 2 * u128::from(all);
        is_uneven.then(|| {
            let share = 100.0 * most as f64 / all.max(1) as f64;
            Obstacle(format!("one partition has {share:.0} % of the rows"))
        })
    }

    /// Returns a plan with the scans of one partition.
    pub(super) fn plan_of(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        partition: PartitionId,
        tables: &[NamedTable],
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut scans = self.scans.iter();
        let replaced = Arc::clone(plan).transform_down_dyn(|node| {
            if scanned(&node, tables).is_none() {
                return Ok(Transformed::no(node));
            }
            let part = scans.next().and_then(|parts| parts.get(&partition));
            let scan = match part {
                Some(part) => Arc::clone(&part.scan),
                None => Arc::new(EmptyExec::new(node.schema())),
            };
            Ok(Transformed::new(scan, true, TreeNodeRecursion::Jump))
        })?;
        Ok(replaced.data)
    }
}

/// Cuts the scan at a position among those of the plan into parts by the partitions of `coarsest`,
/// each of which has one stream.
fn parts_of(
    scan: &Arc<dyn ExecutionPlan>,
    number: usize,
    table: &SnapshotTable,
    coarsest: &Placement,
) -> Result<std::result::Result<Parts, Obstacle>> {
    let files = TableFiles::new(table, number)?;
    let Some(single) = files.singles(scan)? else {
        return Ok(Err(Obstacle("rows are limited first".to_owned())));
    };
    let placement = Placement::for_table(table.snapshot().spec());
    let Some(Nesting { coarse, is_exact }) = placement.nesting(coarsest.partitions()) else {
        return Ok(Err(Obstacle("the partitions of the tables do not nest".to_owned())));
    };
    let mut by_coarse: BTreeMap<PartitionId, Vec<Part>> = BTreeMap::new();
    for (fine, part) in single {
        let coarse = coarse.get(fine.index()).copied().unwrap_or(fine);
        by_coarse.entry(coarse).or_default().push(part);
    }
    let mut parts = Parts::new();
    for (partition, of_coarse) in by_coarse {
        let rows = of_coarse.iter().map(|part| part.rows).sum();
        let mut scans: Vec<_> = of_coarse.into_iter().map(|part| part.scan).collect();
        let only = if scans.len() == 1 && is_exact { scans.pop() } else { None };
        let scan = only.unwrap_or_else(|| {
            let key = table.partition_key_in(&scan.schema()).unwrap_or_default();
            let types = placement.key().to_vec();
            let coarse = Placement::new(placement.function(), coarsest.partitions(), types);
            Arc::new(PlacedExec::new(scan.schema(), scans, coarse, key, partition, is_exact))
        });
        parts.insert(partition, Part { scan, rows });
    }
    Ok(Ok(parts))
}

/// The files of a table by their names in scans.
struct TableFiles<'a> {
    table: &'a SnapshotTable,
    /// Position of the scan among those of the plan.
    number: usize,
    portions: HashMap<String, Arc<PortionEntry>>,
}

impl<'a> TableFiles<'a> {
    fn new(table: &'a SnapshotTable, number: usize) -> Result<Self> {
        let name = |portion: Arc<PortionEntry>| Ok((table.files().path(&portion)?, portion));
        Ok(Self {
            table,
            number,
            portions: table.snapshot().portions().into_iter().map(name).collect::<Result<_>>()?,
        })
    }

    /// Cuts a scan into parts of one partition and one stream each; `None` if it is limited, or its
    /// streams are not the partitions of the table.
    fn singles(&self, scan: &Arc<dyn ExecutionPlan>) -> Result<Option<Vec<(PartitionId, Part)>>> {
        let mut singles = Vec::new();
        for stream in 0..scan.properties().partitioning.partition_count() {
            let single = match scan.downcast_ref::<NewestWinsExec>() {
                Some(node) => self.merged_single(node, stream)?,
                None => self.narrowed(scan, &[stream], None)?,
            };
            let Some((scan, portions)) = single else { return Ok(None) };
            let mut partitions = portions.iter().map(|portion| portion.partition);
            let Some(partition) = partitions.next() else { return Ok(None) };
            if partitions.any(|other| other != partition) {
                return Ok(None);
            }
            let rows = portions.iter().map(|portion| portion.rows).sum();
            singles.push((partition, Part { scan, rows }));
        }
        Ok(Some(singles))
    }

    /// Returns one output partition of a merging scan, and its portions.
    fn merged_single(&self, node: &NewestWinsExec, stream: usize) -> Result<Option<Single>> {
        let mut all = Vec::new();
        let mut failed = false;
        let narrowed = node.only(stream, |input, streams| {
            let pinned = Some(Partitioning::UnknownPartitioning(streams.len()));
            match self.narrowed(input, streams, pinned)? {
                Some((scan, portions)) => {
                    all.extend(portions);
                    Ok(scan)
                }
                None => {
                    failed = true;
                    Ok(Arc::clone(input))
                }
            }
        })?;
        Ok((!failed).then(|| (Arc::new(narrowed) as Arc<dyn ExecutionPlan>, all)))
    }

    /// Returns a scan of some of the file groups of another, and their portions.
    fn narrowed(
        &self,
        scan: &Arc<dyn ExecutionPlan>,
        groups: &[usize],
        partitioning: Option<Partitioning>,
    ) -> Result<Option<Single>> {
        let config = OrderedScan::config_of(scan.as_ref()).filter(|config| config.limit.is_none());
        let Some((ordered, config)) = OrderedScan::from_plan(scan.as_ref()).zip(config) else {
            return Ok(None);
        };
        let Some(portions) = self.portions_of(config, groups) else { return Ok(None) };
        let spec = self.table.snapshot().spec();
        let of_groups = portions.iter().map(Arc::as_ref);
        let statistics = portion_statistics(spec, self.table.schema_ref(), of_groups);
        let kept = groups.iter().filter_map(|group| config.file_groups.get(*group).cloned()).collect();
        let narrowed = FileScanConfigBuilder::from(config.clone())
            .with_file_groups(kept)
            .with_statistics(statistics)
            .with_output_partitioning(partitioning)
            .build();
        Ok(Some((ordered.numbered(self.number).with_config(narrowed), portions)))
    }

    fn portions_of(&self, config: &FileScanConfig, groups: &[usize]) -> Option<Vec<Arc<PortionEntry>>> {
        let mut portions = Vec::new();
        for group in groups {
            for file in config.file_groups.get(*group)?.files() {
                // A part of a file would count as the whole.
                let whole = file.range.is_none().then_some(file)?;
                portions.push(Arc::clone(self.portions.get(whole.path().as_ref())?));
            }
        }
        Some(portions)
    }
}

/// A scan, and the portions that it reads.
type Single = (Arc<dyn ExecutionPlan>, Vec<Arc<PortionEntry>>);
