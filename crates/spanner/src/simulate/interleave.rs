//! Simulates a parent table and its children: interleaved, or in separate tables.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use ahash::{AHashMap, AHashSet};
use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, Scalar};
use arrow::compute::kernels::cmp::not_distinct;
use arrow::compute::{and, cast};
use rayon::prelude::{IntoParallelRefMutIterator, ParallelIterator};

use crate::simulate::advice::{advise, recommend};
use crate::simulate::arrivals::{Block, Order, Source, replay, survey};
use crate::simulate::columns::{key_columns, nullable, time_column, timed_uuids};
use crate::simulate::design::{Asked, Design, Part};
use crate::simulate::key::KeyColumn;
use crate::simulate::replay::{Replayed, Runner, load, notes_on_time, scaled, unknown_order, unsure};
use crate::simulate::result::{KeyOrder, ReadKind, ReadReport, SimulateOptions, Simulation, StrategyReport};
use crate::simulate::splits::{Database, KeyRange, KeySpace};
use crate::simulate::{SimulateError, StrategyName};
use evenkeel_input::source::Export;
use evenkeel_model::table::Column;
use evenkeel_model::values::columns_to_read;
use evenkeel_stats::sketch::key_identities;

/// Tag of parents, which are sorted before their children.
const PARENT: u8 = 0;
const CHILD: u8 = 1;

/// Replays a parent and its children, interleaved and apart. The key of the children must begin
/// with that of the parent; the strategies in `options` are ignored. Parents without a time column
/// exist before the first child.
///
/// # Errors
/// As for [`crate::simulate::simulate`], and if the keys do not match.
pub fn simulate_interleaved(
    parent: (&Export, &str),
    child: (&Export, &[KeyOrder]),
    options: &SimulateOptions,
    progress: &(dyn Fn(u64) + Sync),
    stop: &AtomicBool,
) -> Result<Simulation, SimulateError> {
    let started = Instant::now();
    let ((parent, parent_name), (child, child_key)) = (parent, child);
    let columns = [parent.columns(), child.columns()];
    let root = key_columns(parent.columns(), &options.primary_key)?;
    let child_key = key_columns(child.columns(), child_key)?;
    check_prefix(columns, &root, &child_key)?;
    let (child_root, own) = child_key.split_at(root.len());
    let parent_time = time_column(parent.columns(), None)?;
    let child_time = time_column(child.columns(), options.time.as_deref())?.ok_or(SimulateError::NoClock)?;
    let source = |export, key: &[KeyColumn], time: Option<usize>| {
        let mut named: Vec<usize> = key.iter().map(|part| part.column).collect();
        named.extend(time);
        let export: &Export = export;
        Source { export, asked: columns_to_read(export.columns(), &named), time, order: Order::Export }
    };
    let mut sources = [source(parent, &root, parent_time), source(child, &child_key, Some(child_time))];
    let window = options.parameters.window;
    let [parents, children] =
        [&sources[0], &sources[1]].map(|source| survey(source, options.on_unreadable, window, stop));
    let (parents, children) = (parents?, children?);
    let orders = [parents.order(true), children.order(true)];
    sources.iter_mut().zip(orders).for_each(|(source, order)| source.order = order);
    let parameters = scaled(options, parents.bytes + children.bytes);
    let of_parent = |tag| Design::of_tree(parent.columns(), &root, &[], 0, tag);
    let database = |names: &[&str]| {
        let space = |name: &&str| ((*name).to_owned(), KeySpace::new(Vec::new(), false, &parameters));
        Database::new(parameters.clone(), names.iter().map(space).collect())
    };
    let together =
        vec![of_parent(Some(PARENT))?, Design::of_tree(child.columns(), child_root, own, 0, Some(CHILD))?];
    let apart = vec![of_parent(None)?, Design::of_tree(child.columns(), child_root, own, 1, None)?];
    let names = [format!("{parent_name} and children"), parent_name.to_owned()];
    let mut runners = [
        Runner::new(together, database(&[&names[0]]), options.transaction_rows),
        Runner::new(apart, database(&[&names[1], "children"]), options.transaction_rows),
    ];
    let Some(last_child) = children.last_row.clone() else { return Err(SimulateError::NoRows) };
    let root_values: Vec<ArrayRef> =
        child_root.iter().filter_map(|part| last_child.columns().get(part.column).cloned()).collect();
    let (mut rows, mut tree_rows) = (0, 0);
    let mut family = Family::default();
    let mut take = |block: Block| -> Result<(), SimulateError> {
        for arrived in &block.arrived {
            rows += arrived.batch.num_rows() as u64;
            let key = if arrived.source == 0 { root.as_slice() } else { child_root };
            tree_rows += rows_with(&arrived.batch, key, &root_values)?;
            family.add(arrived.source == 0, key, &arrived.batch);
        }
        runners.par_iter_mut().try_for_each(|runner| runner.take(&block))?;
        progress(rows);
        if stop.load(Ordering::Relaxed) { Err(SimulateError::Interrupted) } else { Ok(()) }
    };
    replay(&sources, options.on_unreadable, None, window, &mut take)?;
    let fixed = child_root.iter().map(|part| part.column).collect();
    let asked = Asked { fixed, values: last_child, range: None };
    let newest_first = own.iter().find(|part| part.column == child_time).map(|part| part.descending);
    let report = |(strategy, runner): (StrategyName, Runner)| {
        let Replayed { designs, outcome, spaces, .. } = runner.finish()?;
        let mut splits = 0;
        let mut ranges_visited = 0;
        // The tree of a row consists of all keys that begin with its key, in each key space.
        let ranges = match designs.last() {
            Some(design) => root_ranges(design, &asked)?,
            None => Vec::new(),
        };
        for space in &spaces {
            splits += space.touched(&ranges);
            ranges_visited += ranges.len();
        }
        let read = ReadReport {
            kind: ReadKind::ParentWithChildren,
            splits,
            ranges: Some(ranges_visited),
            rows: Some(tree_rows),
            newest_first,
        };
        Ok::<_, SimulateError>(StrategyReport {
            strategy,
            words: match strategy {
                StrategyName::Interleaved => "children follow their parent, in one order of rows".to_owned(),
                _ => "children in a table of their own".to_owned(),
            },
            is_range: true,
            outcome,
            reads: vec![read],
            indexes: Vec::new(),
        })
    };
    let strategies = [StrategyName::Interleaved, StrategyName::Apart]
        .into_iter()
        .zip(runners)
        .map(report)
        .collect::<Result<_, _>>()?;
    let of_exports = parent.notes().iter().chain(child.notes());
    let mut notes: Vec<String> = of_exports.map(ToString::to_string).collect();
    notes.extend(family.notes());
    for ((survey, export), (order, time)) in [(&parents, parent), (&children, child)]
        .into_iter()
        .zip(orders.into_iter().zip([parent_time, Some(child_time)]))
    {
        let time = time.and_then(|time| export.columns().get(time));
        let time = time.map(|column| column.name.as_str()).unwrap_or_default();
        // Parents without a time column exist before the first child.
        notes.extend(notes_on_time(survey, order, time, !time.is_empty()));
    }
    let mut inputs = parent.input_names();
    inputs.extend(child.input_names());
    let mut simulation = Simulation {
        model: true,
        inputs,
        rows,
        bytes: parents.bytes + children.bytes,
        primary_key: options.primary_key.clone(),
        time: child.columns().get(child_time).map(|column| column.name.clone()),
        rate: None,
        load: load(&children, &parameters, None, orders[1]),
        late_rows: parents.late_rows + children.late_rows,
        read_length: None,
        owner: None,
        transaction_rows: options.transaction_rows,
        presplits: 0,
        unsure: orders.into_iter().find_map(unknown_order).or_else(|| {
            let span = children.span() as f64;
            unsure(&parameters, span)
        }),
        parameters,
        is_scale_found: options.find_scale,
        strategies,
        notes,
        nullable: nullable(child.columns(), &asked.fixed, &children.nulls),
        timed_uuids: timed_uuids(child.columns(), &asked.fixed, &children.some_rows),
        judged: options.judged,
        recommended: None,
        findings: Vec::new(),
        seconds: started.elapsed().as_secs_f64(),
    };
    simulation.recommended = recommend(&simulation);
    simulation.findings = advise(&simulation);
    Ok(simulation)
}

/// Keys of the existing parents, and of the parents that children refer to.
#[derive(Default)]
struct Family {
    parents: AHashSet<u64>,
    repeated: u64,
    children: AHashMap<u64, u64>,
}

impl Family {
    fn add(&mut self, is_parent: bool, key: &[KeyColumn], batch: &RecordBatch) {
        for identity in key_identities(key.iter().filter_map(|part| batch.columns().get(part.column))) {
            match is_parent {
                true => self.repeated += u64::from(!self.parents.insert(identity)),
                false => *self.children.entry(identity).or_default() += 1,
            }
        }
    }

    /// Returns notes on rows that Spanner would reject.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.repeated > 0 {
            notes.push(format!(
                "{} parents have a key that exists already: Spanner refuses to insert them; they count as \
                    writes here",
                self.repeated
            ));
        }
        let orphans = self.children.iter().filter(|(root, _)| !self.parents.contains(root));
        let orphans: u64 = orphans.map(|(_, rows)| rows).sum();
        if orphans > 0 {
            notes.push(format!(
                "{orphans} children have no parent: Spanner refuses to insert them; they count as writes here"
            ));
        }
        notes
    }
}

/// Counts the rows whose key has the given values.
fn rows_with(batch: &RecordBatch, key: &[KeyColumn], values: &[ArrayRef]) -> Result<u64, SimulateError> {
    let mut same: Option<BooleanArray> = None;
    for (part, value) in key.iter().zip(values) {
        let Some(array) = batch.columns().get(part.column) else { continue };
        let value = cast(value, array.data_type())?;
        let equal = not_distinct(array, &Scalar::new(value))?;
        same = Some(match same {
            Some(same) => and(&same, &equal)?,
            None => equal,
        });
    }
    Ok(same.map_or(0, |same| same.true_count() as u64))
}

/// Returns the ranges of keys that begin with the key of a root.
fn root_ranges(design: &Design, asked: &Asked) -> Result<Vec<KeyRange>, SimulateError> {
    let Some(plan) = design.plans.first() else { return Ok(Vec::new()) };
    let of_root = plan
        .parts
        .iter()
        .take_while(|part| matches!(part, Part::Column(key) if asked.fixed.contains(&key.column)));
    let parts: Vec<Part> = of_root.cloned().collect();
    Ok(design.ranges(&parts, asked)?.unwrap_or_default())
}

/// Checks that the key of the children begins with that of the parent, with the same types in the
/// same order.
fn check_prefix(
    columns: [&[Column]; 2],
    root: &[KeyColumn],
    child: &[KeyColumn],
) -> Result<(), SimulateError> {
    let [parents, children] = columns;
    if child.len() <= root.len() {
        return Err(SimulateError::ChildKey {
            reason: "it must consist of the parent's key and at least one more column".to_owned(),
        });
    }
    for (ours, theirs) in root.iter().zip(child) {
        let (Some(ours_named), Some(theirs_named)) = (parents.get(ours.column), children.get(theirs.column))
        else {
            continue;
        };
        if ours_named.column_type != theirs_named.column_type || ours.descending != theirs.descending {
            return Err(SimulateError::ChildKey {
                reason: format!(
                    "column '{}' of type {} is in the place of the parent's '{}' of type {}; both and \
                        their order must agree",
                    theirs_named.name, theirs_named.column_type, ours_named.name, ours_named.column_type
                ),
            });
        }
    }
    Ok(())
}
