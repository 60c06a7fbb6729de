//! Primary key of a table under a strategy.

use crate::simulate::design::generator::Generator;
use crate::simulate::design::part::{Derived, Part};
use crate::simulate::key::KeyColumn;
use crate::simulate::strategy::{Strategy, UuidForm};
use evenkeel_model::table::{Column, ColumnType, PlacementFunction};
use evenkeel_placement::placement::Placement;
use evenkeel_placement::transform::{BitReversedSequence, UuidSource};

/// Columns to be hashed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hashed<'a> {
    /// Columns hashed for hash partitions.
    pub(crate) partition_key: &'a [usize],
    /// Columns hashed for a shard in front; if `None`, the strategy determines them.
    pub(crate) shard: Option<&'a [usize]>,
}

/// Parts of a primary key, and the source of generated parts.
#[derive(Debug)]
pub(super) struct PrimaryKey {
    pub(super) parts: Vec<Part>,
    pub(super) generator: Option<Generator>,
    /// Placement of the rows on hash partitions.
    pub(super) placement: Option<Placement>,
}

impl PrimaryKey {
    /// Creates the primary key of a strategy, given the declared one.
    pub(super) fn new(
        strategy: Strategy,
        columns: &[Column],
        key: &[KeyColumn],
        hashed: Hashed<'_>,
        seed: u64,
    ) -> Self {
        let all: Vec<usize> = key.iter().map(|part| part.column).collect();
        let (mut generator, mut placement) = (None, None);
        let derived =
            |columns: &[usize], function| vec![Part::Derived { columns: columns.to_vec(), function }];
        let front = match strategy {
            Strategy::Declared | Strategy::Swapped | Strategy::Descending => Vec::new(),
            Strategy::Shards(shards) => derived(hashed.shard.unwrap_or(&all), Derived::Shard(shards)),
            Strategy::GeneratedShards(shards) => {
                let first = all.get(..1).unwrap_or_default();
                derived(hashed.shard.unwrap_or(first), Derived::SignedShard(shards))
            }
            Strategy::HashPartitions(partitions) => {
                let types = hashed.partition_key.iter().map(|column| type_of(columns, *column)).collect();
                placement = Some(Placement::new(PlacementFunction::Ydb, partitions, types));
                derived(hashed.partition_key, Derived::Partition)
            }
            Strategy::Sequence => {
                generator = Some(Generator::Sequence(0));
                vec![Part::Generated(0)]
            }
            Strategy::BitReversed => {
                generator = Some(Generator::BitReversed(Box::new(BitReversedSequence::new(1, None))));
                vec![Part::Generated(0)]
            }
            Strategy::Uuid(kind, form) => {
                generator = Some(Generator::Uuid(Box::new(UuidSource::new(kind, seed)), form));
                match form {
                    UuidForm::TwoIntegers => vec![Part::Generated(0), Part::Generated(1)],
                    UuidForm::Text | UuidForm::Bytes => vec![Part::Generated(0)],
                }
            }
        };
        let parts = front.into_iter().chain(own_parts(strategy, columns, key)).collect();
        Self { parts, generator, placement }
    }
}

/// Returns the declared key columns, in the order that the strategy gives them.
fn own_parts(strategy: Strategy, columns: &[Column], key: &[KeyColumn]) -> Vec<Part> {
    let mut key = key.to_vec();
    match (strategy, key.as_mut_slice()) {
        (Strategy::Swapped, [first, second, ..]) => std::mem::swap(first, second),
        (Strategy::Descending, key) => {
            key.iter_mut().for_each(|part| part.descending |= type_of(columns, part.column).is_time());
        }
        _ => {}
    }
    key.into_iter().map(Part::Column).collect()
}

/// Returns the size of the columns that a strategy puts in front of the key, in bytes.
pub(super) fn front_bytes(strategy: Strategy) -> u32 {
    match strategy {
        Strategy::Declared | Strategy::Swapped | Strategy::Descending | Strategy::HashPartitions(_) => 0,
        Strategy::Uuid(_, UuidForm::Text) => 36,
        Strategy::Uuid(..) => 16,
        Strategy::Shards(_) | Strategy::GeneratedShards(_) | Strategy::Sequence | Strategy::BitReversed => 8,
    }
}

fn type_of(columns: &[Column], column: usize) -> ColumnType {
    columns.get(column).map_or(ColumnType::Int64, |column| column.column_type)
}
