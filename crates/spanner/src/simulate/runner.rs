//! Replay of one strategy: rows to the splits of its key spaces.

use crate::simulate::arrivals::{BEFORE, Block};
use crate::simulate::design::{Design, RowPlan, name_keys};
use crate::simulate::error::SimulateError;
use crate::simulate::splits::{Database, DatabaseOutcome, KeySpace};

/// Replay of one strategy in progress, with a design for each source.
pub(super) struct Runner {
    designs: Vec<Design>,
    /// Number and size of the entries, for each plan of each source.
    counted: Vec<Vec<(u64, u64)>>,
    database: Database,
    transaction_rows: u64,
    rows_left: u64,
    key: Vec<u8>,
}

/// Result of replaying one strategy.
pub(super) struct Replayed {
    pub(super) designs: Vec<Design>,
    pub(super) counted: Vec<Vec<(u64, u64)>>,
    pub(super) outcome: DatabaseOutcome,
    pub(super) spaces: Vec<KeySpace>,
}

impl Runner {
    pub(super) fn new(designs: Vec<Design>, database: Database, transaction_rows: u64) -> Self {
        let counted = designs.iter().map(|design| vec![(0, 0); design.plans.len()]).collect();
        let transaction_rows = transaction_rows.max(1);
        Self { designs, counted, database, transaction_rows, rows_left: 0, key: Vec::new() }
    }

    /// Inserts the rows of a block.
    pub(super) fn insert_block(&mut self, block: &Block) -> Result<(), SimulateError> {
        let mut entries = Vec::with_capacity(block.arrived.len());
        for arrived in &block.arrived {
            let design = self.designs.get_mut(arrived.source);
            entries.push(design.map_or(Ok(Vec::new()), |design| design.entries(arrived))?);
        }
        for (at, rows) in &block.order {
            let (Some(arrived), Some(entries)) = (block.arrived.get(*at), entries.get(*at)) else { continue };
            let counted = self.counted.get_mut(arrived.source);
            let (Some(design), Some(counted)) = (self.designs.get(arrived.source), counted) else { continue };
            for (row, window) in rows.clone().zip(arrived.windows.get(rows.clone()).unwrap_or_default()) {
                if *window != BEFORE {
                    self.database.advance(*window);
                }
                if self.rows_left == 0 {
                    self.database.begin_transaction();
                    self.rows_left = self.transaction_rows;
                }
                self.rows_left -= 1;
                for ((plan, entries), counted) in design.plans.iter().zip(entries).zip(&mut *counted) {
                    if let Some((key, bytes)) = entries.entry(row, &mut self.key) {
                        self.database.insert(plan.space, key, bytes);
                        *counted = (counted.0 + 1, counted.1 + u64::from(bytes));
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Replayed, SimulateError> {
        let Self { designs, counted, database, .. } = self;
        let (mut outcome, spaces) = database.finish();
        let plans: Vec<&RowPlan> = designs.iter().flat_map(|design| &design.plans).collect();
        name_keys(&plans, &mut outcome)?;
        Ok(Replayed { designs, counted, outcome, spaces })
    }
}
