//! Simulates a parent table and its children: interleaved, or in separate tables.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use arrow::array::{ArrayRef, RecordBatch};
use rayon::prelude::{IntoParallelRefMutIterator, ParallelIterator};

use crate::simulate::advice::{advise, recommend};
use crate::simulate::arrivals::{Block, replay};
use crate::simulate::columns::{key_columns, nullable, time_column, timed_uuids};
use crate::simulate::design::{Design, ReadConditions};
use crate::simulate::error::SimulateError;
use crate::simulate::family::Family;
use crate::simulate::key::{KeyColumn, KeyOrder};
use crate::simulate::load::{load, notes_on_time, unknown_order};
use crate::simulate::result::{ReadKind, ReadReport, SimulateOptions, Simulation, StrategyReport};
use crate::simulate::runner::{Replayed, Runner};
use crate::simulate::scale::{scaled, unsure};
use crate::simulate::splits::{Database, KeySpace, ModelParameters};
use crate::simulate::strategy::StrategyName;
use crate::simulate::survey::{Order, Source, Survey, survey};
use evenkeel_input::source::Export;
use evenkeel_model::remark::Remark;
use evenkeel_model::table::Column;
use evenkeel_model::values::columns_to_read;

/// Tag of parents, which are sorted before their children.
const PARENT: u8 = 0;
const CHILD: u8 = 1;

/// Replays a parent and its children, interleaved and apart. The key of the children must begin
/// with the parent's; the strategies in `options` are ignored. Parents without a time column exist
/// before the first child.
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
    let plan = Plan::new(parent.0, child, options, stop)?;
    let replay = plan.replay(parent.1, progress, stop)?;
    plan.report(replay, started)
}

/// The first reading of both exports, and the scale that follows from it.
struct Plan<'a> {
    options: &'a SimulateOptions,
    /// Key of the parent.
    root: Vec<KeyColumn>,
    /// Key columns of the children that are the key of the parent.
    child_root: Vec<KeyColumn>,
    /// Further key columns of the children.
    own: Vec<KeyColumn>,
    child_time: usize,
    /// Exports of the parent and of the children.
    sources: [Source<'a>; 2],
    parents: Survey,
    children: Survey,
    /// Last child, whose tree is read.
    last_child: RecordBatch,
    parameters: ModelParameters,
}

/// The second reading of both exports.
struct Replay {
    family: Family,
    /// The replay with the children interleaved, and with them apart.
    runners: [Runner; 2],
}

impl<'a> Plan<'a> {
    fn new(
        parent: &'a Export,
        (child, child_key): (&'a Export, &[KeyOrder]),
        options: &'a SimulateOptions,
        stop: &AtomicBool,
    ) -> Result<Self, SimulateError> {
        let root = key_columns(parent.columns(), &options.primary_key)?;
        let child_key = key_columns(child.columns(), child_key)?;
        check_prefix([parent.columns(), child.columns()], &root, &child_key)?;
        let (child_root, own) = child_key.split_at(root.len());
        let parent_time = time_column(parent.columns(), None)?;
        let child_time =
            time_column(child.columns(), options.time.as_deref())?.ok_or(SimulateError::NoClock)?;
        let mut sources = [source(parent, &root, parent_time), source(child, &child_key, Some(child_time))];
        let [parents, children] = sources
            .each_ref()
            .map(|source| survey(source, options.on_unreadable, options.parameters.window, stop));
        let (parents, children) = (parents?, children?);
        for (source, survey) in sources.iter_mut().zip([&parents, &children]) {
            source.order = survey.order(true);
        }
        Ok(Self {
            options,
            child_root: child_root.to_vec(),
            own: own.to_vec(),
            root,
            child_time,
            sources,
            last_child: children.last_row.clone().ok_or(SimulateError::NoRows)?,
            parameters: scaled(options, parents.bytes + children.bytes),
            parents,
            children,
        })
    }

    /// Inserts all rows, interleaved and apart.
    fn replay(
        &self,
        parent_name: &str,
        progress: &(dyn Fn(u64) + Sync),
        stop: &AtomicBool,
    ) -> Result<Replay, SimulateError> {
        let mut runners = [self.interleaved(parent_name)?, self.apart(parent_name)?];
        let mut family = Family::new(self.last_root());
        let mut each = |block: Block| -> Result<(), SimulateError> {
            for arrived in &block.arrived {
                let is_parent = arrived.source == 0;
                let key = if is_parent { &self.root } else { &self.child_root };
                family.add(is_parent, key, &arrived.batch)?;
            }
            runners.par_iter_mut().try_for_each(|runner| runner.insert_block(&block))?;
            progress(family.rows);
            if stop.load(Ordering::Relaxed) { Err(SimulateError::Interrupted) } else { Ok(()) }
        };
        replay(&self.sources, self.options.on_unreadable, None, self.parameters.window, &mut each)?;
        Ok(Replay { family, runners })
    }

    /// Returns the key of the parent of the last child.
    fn last_root(&self) -> Vec<ArrayRef> {
        let values = self.child_root.iter().filter_map(|part| self.last_child.columns().get(part.column));
        values.cloned().collect()
    }

    /// Creates the runner with both tables in one key space.
    fn interleaved(&self, parent_name: &str) -> Result<Runner, SimulateError> {
        let designs = self.designs([0, 0], [Some(PARENT), Some(CHILD)])?;
        Ok(self.runner(designs, &[&format!("{parent_name} and children")]))
    }

    /// Creates the runner with a key space for each table.
    fn apart(&self, parent_name: &str) -> Result<Runner, SimulateError> {
        let designs = self.designs([0, 1], [None, None])?;
        Ok(self.runner(designs, &[parent_name, "children"]))
    }

    /// Returns the designs of the parent and of the children, in these key spaces.
    fn designs(&self, spaces: [usize; 2], tags: [Option<u8>; 2]) -> Result<Vec<Design>, SimulateError> {
        let [parent, child] = self.sources.each_ref().map(|source| source.export.columns());
        Ok(vec![
            Design::in_tree(parent, &self.root, &[], spaces[0], tags[0])?,
            Design::in_tree(child, &self.child_root, &self.own, spaces[1], tags[1])?,
        ])
    }

    fn runner(&self, designs: Vec<Design>, names: &[&str]) -> Runner {
        let space = |name: &&str| ((*name).to_owned(), KeySpace::new(Vec::new(), false, &self.parameters));
        let database = Database::new(self.parameters.clone(), names.iter().map(space).collect());
        Runner::new(designs, database, self.options.transaction_rows)
    }

    fn report(self, replay: Replay, started: Instant) -> Result<Simulation, SimulateError> {
        let Replay { family, runners } = replay;
        let in_root: Vec<usize> = self.child_root.iter().map(|part| part.column).collect();
        let read = ReadConditions { fixed: in_root.clone(), values: self.last_child.clone(), range: None };
        let strategies = [StrategyName::Interleaved, StrategyName::Apart].into_iter().zip(runners);
        let strategies = strategies
            .map(|(strategy, runner)| self.strategy_report(strategy, runner, &read, family.tree_rows));
        let strategies = strategies.collect::<Result<_, _>>()?;
        let notes = self.notes(&family);
        let Self { options, sources, parents, children, parameters, child_time, .. } = self;
        let [parent, child] = sources.each_ref().map(|source| source.export);
        let orders = sources.each_ref().map(|source| source.order);
        let mut inputs = parent.input_names();
        inputs.extend(child.input_names());
        let mut simulation = Simulation {
            model: true,
            inputs,
            rows: family.rows,
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
            unsure: orders
                .into_iter()
                .find_map(unknown_order)
                .or_else(|| unsure(&parameters, children.span() as f64)),
            parameters,
            is_scale_found: options.find_scale,
            strategies,
            notes,
            nullable: nullable(child.columns(), &in_root, &children.nulls),
            timed_uuids: timed_uuids(child.columns(), &in_root, &children.some_rows),
            judged: options.judged,
            recommended: None,
            findings: Vec::new(),
            seconds: started.elapsed().as_secs_f64(),
        };
        simulation.recommended = recommend(&simulation);
        simulation.findings = advise(&simulation);
        Ok(simulation)
    }

    /// Returns the results of one alternative; `read` is the read of a tree with `tree_rows` rows.
    fn strategy_report(
        &self,
        strategy: StrategyName,
        runner: Runner,
        read: &ReadConditions,
        tree_rows: u64,
    ) -> Result<StrategyReport, SimulateError> {
        let Replayed { designs, outcome, spaces, .. } = runner.finish()?;
        // The tree of a row consists of all keys that begin with its key, in each key space.
        let ranges = match designs.last() {
            Some(design) => design.root_ranges(read)?,
            None => Vec::new(),
        };
        let in_time_order = self.own.iter().find(|part| part.column == self.child_time);
        let read = ReadReport {
            kind: ReadKind::ParentWithChildren,
            splits: spaces.iter().map(|space| space.touched(&ranges)).sum(),
            ranges: Some(spaces.len() * ranges.len()),
            rows: Some(tree_rows),
            newest_first: in_time_order.map(|part| part.descending),
        };
        let words = match strategy {
            StrategyName::Interleaved => "children follow their parent, in one order of rows",
            _ => "children in a separate table",
        };
        Ok(StrategyReport {
            strategy,
            words: words.to_owned(),
            is_range: true,
            outcome,
            reads: vec![read],
            indexes: Vec::new(),
        })
    }

    fn notes(&self, family: &Family) -> Vec<Remark> {
        let export_notes = self.sources.iter().flat_map(|source| source.export.notes());
        let mut notes: Vec<Remark> = export_notes.map(Remark::from).collect();
        notes.extend(family.notes());
        for (source, survey) in self.sources.iter().zip([&self.parents, &self.children]) {
            let time = source.time.and_then(|time| source.export.columns().get(time));
            let name = time.map_or("", |column| column.name.as_str());
            // Parents without a time column exist before the first child.
            notes.extend(notes_on_time(survey, source.order, name, time.is_some()));
        }
        notes
    }
}

fn source<'a>(export: &'a Export, key: &[KeyColumn], time: Option<usize>) -> Source<'a> {
    let named: Vec<usize> = key.iter().map(|part| part.column).chain(time).collect();
    Source { export, projection: columns_to_read(export.columns(), &named), time, order: Order::Export }
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

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;
    use crate::simulate::index::parse_key_order;
    use evenkeel_input::source::{InputOptions, InputPath, OnUnreadable};
    use evenkeel_model::table::ColumnType;
    use evenkeel_model::units::Micros;

    /// 40 parents, and 3000 children of these, one in each second.
    fn run(child_key: &str) -> Result<Simulation, SimulateError> {
        let dir = tempfile::tempdir().unwrap();
        let parents: String = (0..40).map(|user| format!("{user},\n")).collect();
        let mut children = "at,user,id\n".to_owned();
        for id in 0..3000 {
            let (minute, second) = (id / 60, id % 60);
            writeln!(children, "2024-05-06T07:{minute:02}:{second:02}Z,{},{id}", id * 17 % 40).unwrap();
        }
        let open = |name: &str, text: String, columns: &[(&str, ColumnType)]| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            let types =
                columns.iter().map(|(name, column_type)| ((*name).to_owned(), *column_type)).collect();
            Export::open(&[InputPath::File(path)], InputOptions::default(), &types).unwrap()
        };
        let (user, id, at) =
            (("user", ColumnType::Int64), ("id", ColumnType::Int64), ("at", ColumnType::Timestamp));
        let parents = open("users.csv", format!("user,name\n{parents}"), &[user]);
        let children = open("events.csv", children, &[user, id, at]);
        let key = |text: &str| parse_key_order(text).unwrap();
        let options = SimulateOptions {
            primary_key: key("user"),
            partition_key: Vec::new(),
            indexes: Vec::new(),
            strategies: Vec::new(),
            parameters: ModelParameters {
                split_rate: 0.5,
                window: Micros::new(60_000_000),
                ..ModelParameters::default()
            },
            judged: None,
            shard_columns: Vec::new(),
            find_scale: true,
            rate: None,
            time: None,
            owner: None,
            presplits: 0,
            transaction_rows: 1,
            on_unreadable: OnUnreadable::Fail,
        };
        let stop = AtomicBool::new(false);
        simulate_interleaved((&parents, "users"), (&children, &key(child_key)), &options, &|_| (), &stop)
    }

    #[test]
    fn interleaved_children_share_the_key_space_of_their_parent() {
        let simulation = run("user, at desc, id").unwrap();
        let [together, apart] = simulation.strategies.as_slice() else { panic!() };
        let spaces = |report: &StrategyReport| {
            report.outcome.spaces.iter().map(|space| (space.name.clone(), space.rows)).collect::<Vec<_>>()
        };
        assert_eq!(spaces(together), [("users and children".to_owned(), 3040)]);
        assert_eq!(spaces(apart), [("users".to_owned(), 40), ("children".to_owned(), 3000)]);
        // A user has 75 events, all after its own row.
        for (report, ranges) in [(together, 1), (apart, 2)] {
            let [read] = report.reads.as_slice() else { panic!() };
            assert_eq!((read.rows, read.ranges, read.newest_first), (Some(76), Some(ranges), Some(true)));
            assert!(read.splits >= ranges, "{read:?}");
        }
        assert_eq!(run("user, at, id").unwrap().strategies[0].reads[0].newest_first, Some(false));
        assert_eq!(run("user, id").unwrap().strategies[0].reads[0].newest_first, None);
    }

    #[test]
    fn keys_that_do_not_match_are_refused() {
        for key in ["user", "user desc, at", "at, user"] {
            assert!(matches!(run(key), Err(SimulateError::ChildKey { .. })), "{key}");
        }
    }
}
