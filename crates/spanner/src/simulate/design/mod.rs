//! Encodes rows as the keys of a table and its indexes, in bytes that sort like the keys.
//!
//! ```text
//! Design           a table with its indexes, under one strategy
//!   PrimaryKey     parts of the key, generator and placement
//!   RowPlan        the entry that each row creates in the table, or in an index
//!     Encoder      parts to bytes
//! read_ranges      ranges of keys that a read visits
//! ```

mod encoder;
mod generator;
mod key_names;
mod part;
mod primary_key;
mod read_ranges;
mod row_plan;

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array};

use crate::simulate::arrivals::Arrived;
use crate::simulate::design::encoder::{Encoder, Entries};
use crate::simulate::design::generator::Generator;
pub(super) use crate::simulate::design::key_names::name_keys;
use crate::simulate::design::part::{Derived, Part};
pub(super) use crate::simulate::design::primary_key::Hashed;
use crate::simulate::design::primary_key::{PrimaryKey, front_bytes};
pub(super) use crate::simulate::design::read_ranges::ReadConditions;
use crate::simulate::design::read_ranges::read_ranges;
pub(super) use crate::simulate::design::row_plan::RowPlan;
use crate::simulate::error::SimulateError;
use crate::simulate::index::Index;
use crate::simulate::key::KeyColumn;
use crate::simulate::splits::{KeyRange, StartKey};
use crate::simulate::strategy::Strategy;
use evenkeel_model::table::Column;
use evenkeel_placement::placement::Placement;

/// A table with its indexes, in key spaces.
#[derive(Debug)]
pub(super) struct Design {
    generator: Option<Generator>,
    placement: Option<Placement>,
    /// Entries that each row creates, the table's first.
    pub(super) plans: Vec<RowPlan>,
    /// Names of the key spaces.
    pub(super) spaces: Vec<String>,
}

impl Design {
    /// Creates the design of `strategy` for a declared key.
    pub(super) fn new(
        strategy: Strategy,
        columns: &[Column],
        key: &[KeyColumn],
        hashed: Hashed<'_>,
        indexes: &[Index],
        seed: u64,
    ) -> Result<Self, SimulateError> {
        let PrimaryKey { parts, generator, placement } =
            PrimaryKey::new(strategy, columns, key, hashed, seed);
        let front_bytes = front_bytes(strategy);
        // The shortest prefix that an interleaved index shares with the table is the root's key.
        let shared = indexes.iter().map(|index| shared_parts(index, &parts));
        let root = shared.filter(|shared| *shared > 0).min();
        let table_parts = with_tag(parts.clone(), root, 0);
        let table = RowPlan {
            space: 0,
            encoder: Encoder::new(&table_parts, columns, generator.as_ref())?,
            parts: table_parts,
            stored: None,
            added_bytes: front_bytes,
            not_null: Vec::new(),
        };
        let (mut plans, mut spaces) = (vec![table], vec!["table".to_owned()]);
        for (number, index) in (1u8..).zip(indexes) {
            let inside = root.filter(|_| shared_parts(index, &parts) > 0);
            let parts = with_tag(entry_parts(index, &parts), inside, number);
            let in_index: Vec<usize> = index.columns.iter().map(|part| part.column).collect();
            plans.push(RowPlan {
                space: if inside.is_some() { 0 } else { spaces.len() },
                encoder: Encoder::new(&parts, columns, generator.as_ref())?,
                parts,
                stored: Some(stored_columns(index, key)),
                added_bytes: front_bytes + if index.shard.is_some() { 8 } else { 0 },
                not_null: if index.null_filtered { in_index } else { Vec::new() },
            });
            if inside.is_none() {
                spaces.push(index.name.clone());
            }
        }
        Ok(Self { generator, placement, plans, spaces })
    }

    /// Creates the design of a table whose key is its root's key followed by its own columns. If
    /// `tag` is given, the table shares a key space with the root.
    pub(super) fn in_tree(
        columns: &[Column],
        root: &[KeyColumn],
        own: &[KeyColumn],
        space: usize,
        tag: Option<u8>,
    ) -> Result<Self, SimulateError> {
        let parts: Vec<Part> = root.iter().chain(own).cloned().map(Part::Column).collect();
        let parts = match tag {
            Some(tag) => with_tag(parts, Some(root.len()), tag),
            None => parts,
        };
        let encoder = Encoder::new(&parts, columns, None)?;
        let plan = RowPlan { space, parts, encoder, stored: None, added_bytes: 0, not_null: Vec::new() };
        Ok(Self { generator: None, placement: None, plans: vec![plan], spaces: Vec::new() })
    }

    /// Returns the entries that rows create, for each plan.
    pub(super) fn entries(&mut self, arrived: &Arrived) -> Result<Vec<Entries>, SimulateError> {
        let generator = self.generator.as_mut();
        let generated = generator.map(|generator| generator.generate(&arrived.times)).unwrap_or_default();
        let placement = self.placement.as_ref();
        self.plans.iter().map(|plan| plan.entries(arrived, &generated, placement)).collect()
    }

    /// Returns the ranges of the entries of a plan that a read has to visit. `None` if it has to
    /// visit all of them.
    pub(super) fn ranges(
        &self,
        plan: &RowPlan,
        conditions: &ReadConditions,
    ) -> Result<Option<Vec<KeyRange>>, SimulateError> {
        read_ranges(&plan.parts, conditions, self.placement.as_ref())
    }

    /// Returns the ranges of all keys that begin with the fixed columns.
    pub(super) fn root_ranges(&self, conditions: &ReadConditions) -> Result<Vec<KeyRange>, SimulateError> {
        let Some(plan) = self.plans.first() else { return Ok(Vec::new()) };
        let root: Vec<Part> = plan.parts.iter().take_while(|part| conditions.fix(part)).cloned().collect();
        Ok(read_ranges(&root, conditions, None)?.unwrap_or_default())
    }

    /// Returns the boundaries between the partitions of a design that has a fixed number of them.
    pub(super) fn partition_boundaries(&self) -> Result<Vec<StartKey>, SimulateError> {
        let first = self.plans.first().and_then(|plan| plan.parts.first());
        let (Some(part), Some(placement)) = (first, &self.placement) else { return Ok(Vec::new()) };
        let values: ArrayRef =
            Arc::new(Int64Array::from_iter_values(1..i64::from(placement.partitions().get())));
        Ok(part.encode(&values)?.into_iter().map(|bytes| StartKey { lead: bytes.len(), bytes }).collect())
    }
}

/// Returns the number of key parts that an index shares with the table that it is interleaved in.
fn shared_parts(index: &Index, table: &[Part]) -> usize {
    let same = |(column, part): &(&KeyColumn, &Part)| matches!(part, Part::Column(key) if key == *column);
    if index.interleaved { index.columns.iter().zip(table).take_while(same).count() } else { 0 }
}

/// Returns the key of an index entry: the shard, the columns of the index, and the rest of the
/// primary key.
fn entry_parts(index: &Index, table: &[Part]) -> Vec<Part> {
    let shard = index.shard.as_ref().map(|shard| {
        let function = match shard.signed {
            true => Derived::SignedShard(shard.shards),
            false => Derived::Shard(shard.shards),
        };
        Part::Derived { columns: shard.columns.clone(), function }
    });
    let in_index = |part: &&Part| matches!(part, Part::Column(key) if index.columns.iter().any(|own| own.column == key.column));
    let own = index.columns.iter().cloned().map(Part::Column);
    let rest = table.iter().filter(|part| !in_index(part)).cloned();
    shard.into_iter().chain(own).chain(rest).collect()
}

/// Returns the columns that an index entry holds, in ascending order.
fn stored_columns(index: &Index, key: &[KeyColumn]) -> Vec<usize> {
    let mut stored: Vec<usize> = index.columns.iter().chain(key).map(|part| part.column).collect();
    stored.extend(&index.storing);
    stored.sort_unstable();
    stored.dedup();
    stored
}

/// Inserts a tag after the parts of the root.
fn with_tag(mut parts: Vec<Part>, root: Option<usize>, tag: u8) -> Vec<Part> {
    if let Some(root) = root {
        parts.insert(root.min(parts.len()), Part::Tag(tag));
    }
    parts
}

#[cfg(test)]
mod tests;
