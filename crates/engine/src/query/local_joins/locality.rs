//! Finds the parts of a plan that can be computed partition by partition.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use crate::query::scan::named_table::NamedTable;
use crate::query::scan::newest_wins::NewestWinsExec;
use crate::query::scan::ordered_scan::OrderedScan;
use evenkeel_placement::placement::Placement;

/// Reason why rows cannot be joined or grouped within their partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Obstacle(pub(super) String);

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn obstacle<T>(reason: impl Into<String>) -> Result<T, Obstacle> {
    Err(Obstacle(reason.into()))
}

/// A plan whose rows of one partition key all come from one partition of its tables.
#[derive(Debug, Clone)]
pub(super) struct Locality {
    /// Placement with the fewest partitions among the tables, and the name of its table.
    pub(super) coarsest: (String, Placement),
    /// Columns of the partition key in that table.
    key: Vec<String>,
    /// For each column of the partition key, the columns of the output that hold it.
    outputs: Vec<BTreeSet<usize>>,
    /// Whether a join, a grouping or a window would shuffle the rows otherwise.
    is_shuffled: bool,
}

impl Locality {
    fn for_table(named: &NamedTable, plan: &Arc<dyn ExecutionPlan>) -> Self {
        let spec = named.table.snapshot().spec();
        let key: Vec<String> = spec.partition_key_columns().map(|column| column.name.clone()).collect();
        let schema = plan.schema();
        let position = |name: &String| schema.index_of(name).into_iter().collect();
        Self {
            coarsest: (named.name().to_owned(), Placement::for_table(spec)),
            outputs: key.iter().map(position).collect(),
            key,
            is_shuffled: false,
        }
    }

    /// Whether computing the plan partition by partition saves a shuffle.
    pub(super) fn saves_a_shuffle(&self) -> bool {
        self.is_shuffled
    }

    /// Returns the locality of rows whose columns are these of the input, in this order.
    fn project(mut self, columns: &[Option<usize>]) -> Self {
        for outputs in &mut self.outputs {
            let of_key = columns.iter().enumerate();
            let of_key = of_key.filter(|(_, input)| input.is_some_and(|input| outputs.contains(&input)));
            *outputs = of_key.map(|(position, _)| position).collect();
        }
        self
    }

    /// Returns the locality after rows were brought together by `columns` of the input.
    fn together(mut self, columns: &[Option<usize>], what: &str) -> Result<Self, Obstacle> {
        let has = |outputs: &BTreeSet<usize>| columns.iter().flatten().any(|column| outputs.contains(column));
        if !self.outputs.iter().all(has) {
            let (table, _) = &self.coarsest;
            return obstacle(format!(
                "{what} lacks a column of the partition key ({}) of {table}",
                self.key.join(", ")
            ));
        }
        self.is_shuffled = true;
        Ok(self)
    }
}

/// Returns the table that a node scans, if it scans one.
pub(super) fn scanned<'t>(plan: &Arc<dyn ExecutionPlan>, tables: &'t [NamedTable]) -> Option<&'t NamedTable> {
    let scan = match plan.downcast_ref::<NewestWinsExec>() {
        Some(node) => node.children().first().copied()?,
        None => plan,
    };
    OrderedScan::config_of(scan.as_ref())?;
    tables.iter().find(|named| named.table.is_read_by(scan.as_ref()))
}

/// Finds out whether a plan can be computed partition by partition.
///
/// # Errors
/// [`Obstacle`], which holds for every plan above it, too.
pub(super) fn plan_locality(
    plan: &Arc<dyn ExecutionPlan>,
    tables: &[NamedTable],
) -> Result<Locality, Obstacle> {
    if let Some(named) = scanned(plan, tables) {
        return Ok(Locality::for_table(named, plan));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return join_locality(join, tables);
    }
    let children = plan.children();
    let [input] = children.as_slice() else {
        return obstacle(match plan.is::<UnionExec>() {
            true => "rows of several queries are combined first".to_owned(),
            false if children.is_empty() => "its other rows do not come from a table".to_owned(),
            false => format!("it is a join without equal keys ({})", plan.name()),
        });
    };
    let is_known = plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<AggregateExec>()
        || plan.is::<WindowAggExec>()
        || plan.is::<BoundedWindowAggExec>();
    if !is_known {
        return obstacle(match plan.is::<GlobalLimitExec>() || plan.is::<LocalLimitExec>() {
            true => "rows are limited first".to_owned(),
            false if plan.is::<SortExec>() => "rows are sorted first".to_owned(),
            false => format!("{} combines the rows of all partitions", plan.name()),
        });
    }
    let locality = plan_locality(input, tables)?;
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let columns: Vec<_> = projection.expr().iter().map(|column| position(&column.expr)).collect();
        return Ok(locality.project(&columns));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return Ok(match filter.projection().as_ref() {
            Some(columns) => locality.project(&columns.iter().copied().map(Some).collect::<Vec<_>>()),
            None => locality,
        });
    }
    if let Some(grouping) = plan.downcast_ref::<AggregateExec>() {
        let keys = grouping.group_expr();
        if !keys.is_single() {
            return obstacle("rows are grouped by several sets of columns first");
        }
        let columns: Vec<_> = keys.expr().iter().map(|(expr, _)| position(expr)).collect();
        return Ok(locality.together(&columns, "an earlier grouping")?.project(&columns));
    }
    let keys = match plan.downcast_ref::<WindowAggExec>() {
        Some(window) => window.partition_keys(),
        None => plan.downcast_ref::<BoundedWindowAggExec>().map_or_else(Vec::new, |w| w.partition_keys()),
    };
    locality.together(&keys.iter().map(position).collect::<Vec<_>>(), "a window")
}

/// Returns the column of the input that an expression is; `None` if it computes something.
fn position(expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// Finds out whether a join can be computed partition by partition.
pub(super) fn join_locality(join: &HashJoinExec, tables: &[NamedTable]) -> Result<Locality, Obstacle> {
    let (left, right) = (plan_locality(join.left(), tables)?, plan_locality(join.right(), tables)?);
    let ((left_name, one), (right_name, other)) = (&left.coarsest, &right.coarsest);
    if one.function() != other.function() {
        let (one, other) = (one.function(), other.function());
        return obstacle(format!("{left_name} is placed by {one}, {right_name} by {other}"));
    }
    if left.key.len() != right.key.len() {
        let (one, other) = (left.key.join(", "), right.key.join(", "));
        return obstacle(format!(
            "{left_name} is partitioned by ({one}), {right_name} by ({other}), which has another number of columns"
        ));
    }
    let types = one.key().iter().zip(other.key()).zip(left.key.iter().zip(&right.key));
    for ((one, other), (left_column, right_column)) in types {
        if one != other {
            return obstacle(format!(
                "keys of other types are in other partitions: {left_column} of {left_name} is {one}, {right_column} \
                 of {right_name} is {other}"
            ));
        }
    }
    let joins = |(one, other): (&BTreeSet<usize>, &BTreeSet<usize>)| {
        let mut pairs = join.on().iter().map(|(one, other)| (position(one), position(other)));
        pairs.any(|pair| match pair {
            (Some(left), Some(right)) => one.contains(&left) && other.contains(&right),
            _ => false,
        })
    };
    if !left.outputs.iter().zip(&right.outputs).all(joins) {
        let (one, other) = (left.key.join(", "), right.key.join(", "));
        return obstacle(format!(
            "they are not joined on their partition keys, ({one}) of {left_name} and ({other}) of {right_name}"
        ));
    }
    // One NULL in the list of NOT IN excludes the rows of all partitions.
    if join.null_aware {
        return obstacle("NOT IN depends on whether any row of the list has NULL");
    }
    // With one core, the planner has already decided for one stream.
    if *join.partition_mode() != PartitionMode::Auto || join.contains_projection() {
        return obstacle("the plan has one stream, as with one core, which needs no shuffle");
    }
    let (fine, coarse) = match one.partitions() < other.partitions() {
        true => (other, &left.coarsest),
        false => (one, &right.coarsest),
    };
    if fine.nesting(coarse.1.partitions()).is_none() {
        let (one, other) = (one.partitions(), other.partitions());
        return obstacle(format!("{left_name} has {one} partitions, {right_name} {other}"));
    }
    let coarsest = coarse.clone();
    let columns_of_left = join.left().schema().fields().len();
    let shifted = |outputs: &BTreeSet<usize>| outputs.iter().map(|at| at + columns_of_left).collect();
    // Columns of the side that an outer join fills with NULL do not place rows.
    let outputs: Vec<BTreeSet<usize>> = match join.join_type() {
        JoinType::Inner => {
            let both = left.outputs.iter().zip(right.outputs.iter().map(shifted));
            both.map(|(one, other): (_, BTreeSet<usize>)| one.union(&other).copied().collect()).collect()
        }
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => left.outputs,
        JoinType::Right => right.outputs.iter().map(shifted).collect(),
        JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => right.outputs,
        JoinType::Full => vec![BTreeSet::new(); left.outputs.len()],
    };
    Ok(Locality { coarsest, key: left.key, outputs, is_shuffled: true })
}
