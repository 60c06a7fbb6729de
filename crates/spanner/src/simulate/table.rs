//! A table whose rows are replayed under any strategy.

use crate::simulate::arrivals::Arrived;
use crate::simulate::design::{Design, Hashed};
use crate::simulate::error::SimulateError;
use crate::simulate::index::Index;
use crate::simulate::key::KeyColumn;
use crate::simulate::result::SimulateOptions;
use crate::simulate::runner::Runner;
use crate::simulate::splits::{Database, KeySpace, ModelParameters, StartKey};
use crate::simulate::strategy::Strategy;
use evenkeel_model::table::Column;

/// Number of first rows that boundaries are derived from, since later keys are not known in
/// advance.
const PRESPLIT_ROWS: usize = 10_000;

/// A declared table.
pub(super) struct Table<'a> {
    pub(super) columns: &'a [Column],
    pub(super) key: &'a [KeyColumn],
    pub(super) partition_key: &'a [usize],
    pub(super) indexes: &'a [Index],
    pub(super) judged: Option<Strategy>,
    /// Columns that the shard of the judged strategy is computed from.
    pub(super) shard: &'a [usize],
}

impl Table<'_> {
    fn design(&self, strategy: Strategy, indexes: &[Index], seed: u64) -> Result<Design, SimulateError> {
        let is_judged = self.judged == Some(strategy);
        let shard = (is_judged && !self.shard.is_empty()).then_some(self.shard);
        let hashed = Hashed { partition_key: self.partition_key, shard };
        Design::new(strategy, self.columns, self.key, hashed, indexes, seed)
    }

    /// Creates the runner of a strategy; `first` are the first rows.
    pub(super) fn runner(
        &self,
        strategy: Strategy,
        options: &SimulateOptions,
        parameters: &ModelParameters,
        first: &[Arrived],
    ) -> Result<Runner, SimulateError> {
        // Column tables have no indexes.
        let indexes = if strategy.is_range() { self.indexes } else { &[] };
        let design = self.design(strategy, indexes, parameters.seed)?;
        let boundaries = match strategy.is_range() {
            true => self.presplits(strategy, options.presplits, first)?,
            false => design.partition_boundaries()?,
        };
        let mut boundaries = Some(boundaries);
        let space = |name: &String| {
            let fixed = !strategy.is_range() && boundaries.is_some();
            let space = KeySpace::new(boundaries.take().unwrap_or_default(), fixed, parameters);
            (name.clone(), space)
        };
        let spaces = design.spaces.iter().map(space).collect();
        let database = Database::new(parameters.clone(), spaces);
        Ok(Runner::new(vec![design], database, options.transaction_rows))
    }

    /// Returns the boundaries that divide the keys of the first rows evenly.
    fn presplits(
        &self,
        strategy: Strategy,
        count: usize,
        first: &[Arrived],
    ) -> Result<Vec<StartKey>, SimulateError> {
        if count == 0 {
            return Ok(Vec::new());
        }
        // Generated values use another seed, since they are not known when boundaries are planned.
        let mut design = self.design(strategy, &[], u64::MAX)?;
        let mut keys = Vec::new();
        for rows in first {
            let made = design.entries(rows)?;
            let Some(table) = made.first() else { continue };
            for row in 0..rows.batch.num_rows().min(PRESPLIT_ROWS - keys.len()) {
                let mut bytes = Vec::new();
                let lead = table.entry(row, &mut bytes).map_or(0, |(key, _)| key.lead);
                keys.push(StartKey { bytes, lead });
            }
        }
        keys.sort_unstable();
        let at = |number: usize| keys.get(number * keys.len() / (count + 1)).cloned();
        Ok((1..=count).filter_map(at).collect())
    }
}
