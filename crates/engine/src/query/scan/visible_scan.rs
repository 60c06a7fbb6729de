//! Plans that read the visible rows of portions.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, conjunction_opt, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;

use crate::query::scan::merge_runs::{Overlapping, RankedInput};
use crate::query::scan::newest_wins::{Inputs, NewestWinsExec, Piece};
use crate::query::scan::overlap::{OverlapGroup, pack_into_runs};
use crate::query::scan::portion_files::{FileGroups, PortionFiles};
use evenkeel_store::ingest::marked_schema;
use evenkeel_store::log::PortionEntry;

/// Portions that follow each other in key order and share no key.
type Chain = Vec<Arc<PortionEntry>>;

/// A scan of the visible rows of portions.
pub(in crate::query) struct VisibleScan<'a> {
    pub(in crate::query) files: &'a PortionFiles,
    pub(in crate::query) state: &'a dyn Session,
    /// Columns of the output, as positions in the table.
    pub(in crate::query) projection: &'a [usize],
    pub(in crate::query) limit: Option<usize>,
    /// Condition for pruning, for scans to which DataFusion pushes no filters.
    pub(in crate::query) predicate: Option<&'a Arc<dyn PhysicalExpr>>,
    /// Whether deletes that nothing hides are returned, too, marked by a last column.
    pub(in crate::query) keeps_deletes: bool,
}

impl VisibleScan<'_> {
    /// Returns a plan with one output partition per entry of `partitions`, each of which has its
    /// groups in key order.
    pub(in crate::query) fn plan(&self, partitions: &[Vec<OverlapGroup>]) -> Result<Arc<dyn ExecutionPlan>> {
        self.files.register(self.state);
        if partitions.is_empty() {
            return Ok(Arc::new(EmptyExec::new(Arc::new(self.files.schema().project(self.projection)?))));
        }
        if !self.keeps_deletes && partitions.iter().flatten().all(|group| group.len() == 1) {
            let chains: Vec<Chain> = partitions.iter().map(|groups| groups.concat()).collect();
            if chains.iter().all(|chain| datafusion_sees_order(chain)) {
                let freedom = FileGroups::MayBeCut;
                let Self { state, projection, limit, predicate, .. } = *self;
                return self.files.scan(state, &chains, freedom, projection, limit, predicate);
            }
        }
        self.plan_pieces(partitions)
    }

    /// Returns a plan that chains portions without overlap and merges overlapping ones.
    fn plan_pieces(&self, partitions: &[Vec<OverlapGroup>]) -> Result<Arc<dyn ExecutionPlan>> {
        let mut pieces = PieceInputs::default();
        let of_partitions = partitions.iter().map(|groups| pieces.add(groups, self.keeps_deletes)).collect();
        let inputs = Inputs {
            plain: match pieces.plain.is_empty() {
                true => None,
                false => Some(self.scan_pinned(&pieces.plain, self.projection, self.predicate)?),
            },
            overlapping: match pieces.overlapping.is_empty() {
                true => None,
                false => Some(self.scan_overlapping(&pieces.overlapping)?),
            },
        };
        let position = |index: &usize| self.projection.iter().position(|column| column == index);
        let key: Vec<Option<usize>> = self.files.spec().primary_key().iter().map(position).collect();
        let mut schema = Arc::new(self.files.schema().project(self.projection)?);
        if self.keeps_deletes {
            schema = marked_schema(&schema);
        }
        Ok(Arc::new(NewestWinsExec::new(schema, &key, inputs, Arc::new(of_partitions))))
    }

    /// Returns a scan of the portions to merge, one per partition, with the columns that merging
    /// needs.
    fn scan_overlapping(&self, portions: &[Chain]) -> Result<Overlapping> {
        let primary_key = self.files.spec().primary_key();
        let predicate = self.predicate.and_then(|predicate| part_on(predicate, primary_key));
        let mut columns: Vec<usize> = self.projection.iter().chain(primary_key).copied().collect();
        columns.sort_unstable();
        columns.dedup();
        let position = |index: &usize| columns.iter().position(|column| column == index);
        Ok(Overlapping {
            plan: self.scan_pinned(portions, &columns, predicate.as_ref())?,
            key: primary_key.iter().filter_map(position).collect(),
            output: self.projection.iter().filter_map(position).collect(),
            keeps_deletes: self.keeps_deletes,
        })
    }

    fn scan_pinned(
        &self,
        chains: &[Chain],
        projection: &[usize],
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.files.scan(self.state, chains, FileGroups::ArePinned, projection, None, predicate)
    }
}

/// Whether DataFusion can tell that portions without overlap are in order. It compares the ranges
/// of each column on its own, and so can only be sure if the leading column differs.
fn datafusion_sees_order(chain: &[Arc<PortionEntry>]) -> bool {
    chain.windows(2).all(|pair| match pair {
        [a, b] => a.key_range.max.first() < b.key_range.min.first(),
        _ => true,
    })
}

/// Returns the part of a condition that refers only to these columns; `None` if no part does.
fn part_on(predicate: &Arc<dyn PhysicalExpr>, columns: &[usize]) -> Option<Arc<dyn PhysicalExpr>> {
    let parts = split_conjunction(predicate)
        .into_iter()
        .filter(|part| collect_columns(part).iter().all(|column| columns.contains(&column.index())));
    conjunction_opt(parts.cloned())
}

/// Inputs of the pieces of all partitions.
#[derive(Default)]
struct PieceInputs {
    plain: Vec<Chain>,
    /// Portions to merge, each in a separate chain.
    overlapping: Vec<Chain>,
}

impl PieceInputs {
    /// Adds the groups of a partition, and returns its pieces.
    fn add(&mut self, groups: &[OverlapGroup], merges_all: bool) -> Vec<Piece> {
        let mut pieces = Vec::new();
        for neighbours in groups.chunk_by(|a, b| !merges_all && a.len() == 1 && b.len() == 1) {
            pieces.push(match neighbours {
                [group] if merges_all || group.len() > 1 => Piece::Merged(self.add_overlapping(group)),
                alone => {
                    self.plain.push(alone.concat());
                    Piece::Plain(self.plain.len() - 1)
                }
            });
        }
        pieces
    }

    /// Adds the portions of a group, and returns them packed into runs.
    fn add_overlapping(&mut self, group: &OverlapGroup) -> Vec<Vec<RankedInput>> {
        let ranks: HashMap<&str, u32> = group.iter().map(|portion| portion.path.as_str()).zip(0..).collect();
        let mut ranked = |portion: Arc<PortionEntry>| {
            let rank = ranks.get(portion.path.as_str()).copied().unwrap_or(0);
            let deletes = portion.deletes;
            self.overlapping.push(vec![portion]);
            RankedInput { input: self.overlapping.len() - 1, rank, deletes }
        };
        pack_into_runs(group).into_iter().map(|run| run.into_iter().map(&mut ranked).collect()).collect()
    }
}
