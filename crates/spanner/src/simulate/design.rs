//! Encodes rows as the keys of a table and its indexes, in bytes that sort like the keys.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Int64Type};
use arrow::row::{RowConverter, Rows, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::simulate::SimulateError;
use crate::simulate::arrivals::Arrived;
use crate::simulate::index::Index;
use crate::simulate::key::KeyColumn;
use crate::simulate::splits::{HeatMap, Key, KeyRange, Outcome, SplitFigures, StartKey};
use crate::simulate::strategy::{Strategy, UuidForm};
use evenkeel_model::table::{Column, ColumnType, PlacementFunction};
use evenkeel_model::values::row_bytes;
use evenkeel_placement::placement::Placement;
use evenkeel_placement::transform::{
    BitReversedSequence, UuidSource, fingerprints, shard_id, signed_shard_id,
};

/// One part of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Column(KeyColumn),
    /// A number derived from columns.
    Derived {
        columns: Vec<usize>,
        function: Derived,
    },
    /// A column that the database generates: the first or the second.
    Generated(usize),
    /// Distinguishes interleaved tables; follows the key of the root.
    Tag(u8),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Derived {
    Shard(u32),
    SignedShard(u32),
    Partition,
}

#[derive(Debug)]
enum Generator {
    Sequence(i64),
    BitReversed(Box<BitReversedSequence>),
    Uuid(Box<UuidSource>, UuidForm),
}

/// A table with its indexes, in key spaces.
#[derive(Debug)]
pub(super) struct Design {
    generator: Option<Generator>,
    placement: Option<Placement>,
    /// Entries that each row creates, that of the table first.
    pub(super) plans: Vec<RowPlan>,
    /// Names of the key spaces.
    pub(super) spaces: Vec<String>,
}

/// An entry that each row creates.
#[derive(Debug)]
pub(super) struct RowPlan {
    pub(super) space: usize,
    pub(super) parts: Vec<Part>,
    encoder: Encoder,
    /// Columns whose bytes are counted; all columns if `None`.
    stored: Option<Vec<usize>>,
    /// Size of generated and derived columns, in bytes.
    added_bytes: u32,
    /// Columns that must not be NULL, or there is no entry.
    not_null: Vec<usize>,
}

/// Encodes columns as the bytes of keys, in up to three sections: the first column, the rest of the
/// root's key, and everything after it.
#[derive(Debug)]
struct Encoder {
    sections: Vec<RowConverter>,
    /// Number of columns in each section.
    columns: Vec<usize>,
    /// Tag that follows the root's key.
    tag: Option<u8>,
    /// Number of sections of the root's key.
    root_sections: usize,
}

/// Entries of a batch.
pub(super) struct Entries {
    sections: Vec<Rows>,
    tag: Option<u8>,
    root_sections: usize,
    bytes: Vec<u32>,
    /// Whether each row lacks an entry; `None` if all rows have one.
    missing: Option<Vec<bool>>,
}

impl Entries {
    /// Returns the entry of a row and its size in bytes, or `None` if the row has no entry. Writes
    /// the key to `buffer`.
    #[inline]
    pub(super) fn entry<'a>(&self, row: usize, buffer: &'a mut Vec<u8>) -> Option<(Key<'a>, u32)> {
        if self.missing.as_ref().is_some_and(|missing| missing.get(row) == Some(&true)) {
            return None;
        }
        buffer.clear();
        let (mut lead, mut root) = (0, 0);
        for (number, section) in self.sections.iter().enumerate() {
            if number == self.root_sections
                && let Some(tag) = self.tag
            {
                buffer.push(tag);
            }
            buffer.extend_from_slice(section.row(row).data());
            if number == 0 {
                lead = buffer.len();
            }
            if number + 1 == self.root_sections {
                root = buffer.len();
            }
        }
        if let (Some(tag), true) = (self.tag, self.root_sections == self.sections.len()) {
            buffer.push(tag);
        }
        let bytes = self.bytes.get(row).copied().unwrap_or(0);
        // If no other table shares the key space, each row is a root.
        let root = if self.tag.is_some() { root } else { buffer.len() };
        Some((Key { bytes: buffer, lead, root }, bytes))
    }
}

/// Columns to be hashed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hashed<'a> {
    /// Columns hashed for hash partitions.
    pub(super) partition_key: &'a [usize],
    /// Columns hashed for a shard in front; if `None`, the strategy determines them.
    pub(super) shard: Option<&'a [usize]>,
}

/// Conditions of a read.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Columns fixed to one value, which is taken from the only row of `values`.
    pub(super) fixed: Vec<usize>,
    /// Batch of one row.
    pub(super) values: RecordBatch,
    /// A time column and the bounds of the requested range: the first time, the one after the last,
    /// and each of these minus one unit.
    pub(super) range: Option<(usize, ArrayRef)>,
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
        let (generator, placement, parts) = primary_key(strategy, columns, key, hashed, seed);
        let generated_bytes = match strategy {
            Strategy::Declared | Strategy::Swapped | Strategy::Descending | Strategy::HashPartitions(_) => 0,
            Strategy::Uuid(_, UuidForm::Text) => 36,
            Strategy::Uuid(..) => 16,
            _ => 8,
        };
        // Number of key parts that an index shares with the table that it is interleaved in.
        let shared = |index: &Index| {
            let same = index
                .columns
                .iter()
                .zip(&parts)
                .take_while(|(column, part)| **part == Part::Column((*column).clone()));
            if index.interleaved { same.count() } else { 0 }
        };
        let interleaved = indexes.iter().map(shared).filter(|shared| *shared > 0);
        let root = interleaved.min();
        let context = Context { columns, generator: generator.as_ref() };
        let mut plans = vec![RowPlan {
            space: 0,
            encoder: context.encoder(&with_tag(parts.clone(), root, 0))?,
            parts: with_tag(parts.clone(), root, 0),
            stored: None,
            added_bytes: generated_bytes,
            not_null: Vec::new(),
        }];
        let mut spaces = vec!["table".to_owned()];
        for (number, index) in (1u8..).zip(indexes) {
            let all: Vec<usize> = index.columns.iter().map(|part| part.column).collect();
            let mut entry: Vec<Part> = Vec::new();
            if let Some(shard) = &index.shard {
                let function = match shard.signed {
                    true => Derived::SignedShard(shard.shards),
                    false => Derived::Shard(shard.shards),
                };
                entry.push(Part::Derived { columns: shard.columns.clone(), function });
            }
            entry.extend(index.columns.iter().cloned().map(Part::Column));
            let of_index = |part: &&Part| matches!(part, Part::Column(key) if all.contains(&key.column));
            entry.extend(parts.iter().filter(|part| !of_index(part)).cloned());
            let inside = root.filter(|_| shared(index) > 0);
            let entry = with_tag(entry, inside, number);
            let mut stored: Vec<usize> = all.clone();
            stored.extend(key.iter().map(|part| part.column));
            stored.extend(&index.storing);
            stored.sort_unstable();
            stored.dedup();
            plans.push(RowPlan {
                space: if inside.is_some() { 0 } else { spaces.len() },
                encoder: context.encoder(&entry)?,
                parts: entry,
                stored: Some(stored),
                added_bytes: generated_bytes + if index.shard.is_some() { 8 } else { 0 },
                not_null: if index.null_filtered { all } else { Vec::new() },
            });
            if inside.is_none() {
                spaces.push(index.name.clone());
            }
        }
        Ok(Self { generator, placement, plans, spaces })
    }

    /// Creates the design of a table whose key is that of its root followed by its own columns. If
    /// `tag` is given, the table shares a key space with the root.
    pub(super) fn of_tree(
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
        let encoder = Context { columns, generator: None }.encoder(&parts)?;
        let plan = RowPlan { space, parts, encoder, stored: None, added_bytes: 0, not_null: Vec::new() };
        Ok(Self { generator: None, placement: None, plans: vec![plan], spaces: Vec::new() })
    }

    /// Returns the entries that rows create, for each plan.
    pub(super) fn entries(&mut self, arrived: &Arrived) -> Result<Vec<Entries>, SimulateError> {
        let mut generated = Vec::new();
        if let Some(generator) = self.generator.as_mut() {
            generator.generate(&arrived.times, &mut generated);
        }
        let placement = self.placement.as_ref();
        self.plans.iter().map(|plan| plan.entries(arrived, &generated, placement)).collect()
    }

    /// Returns the ranges of keys with these parts that a read has to visit. `None` if it has to
    /// visit all keys.
    pub(super) fn ranges(
        &self,
        parts: &[Part],
        asked: &Asked,
    ) -> Result<Option<Vec<KeyRange>>, SimulateError> {
        let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
        let mut known = false;
        for part in parts {
            match part {
                Part::Tag(tag) => prefixes.iter_mut().for_each(|prefix| prefix.push(*tag)),
                Part::Column(KeyColumn { column, .. }) if asked.fixed.contains(column) => {
                    let value = array_of(part, &asked.values, &[], None)?;
                    let Some(value) = encode(part, &value)?.pop() else { break };
                    prefixes.iter_mut().for_each(|prefix| prefix.extend_from_slice(&value));
                    known = true;
                }
                Part::Derived { columns, .. }
                    if columns.iter().all(|column| asked.fixed.contains(column)) =>
                {
                    let value = array_of(part, &asked.values, &[], self.placement.as_ref())?;
                    let Some(value) = encode(part, &value)?.pop() else { break };
                    prefixes.iter_mut().for_each(|prefix| prefix.extend_from_slice(&value));
                    known = true;
                }
                Part::Derived { function, .. } => {
                    let values: ArrayRef = Arc::new(Int64Array::from(self.values_of(function)));
                    let values = encode(part, &values)?;
                    let with = |prefix: &Vec<u8>| {
                        values.iter().map(|value| [prefix.as_slice(), value].concat()).collect::<Vec<_>>()
                    };
                    prefixes = prefixes.iter().flat_map(with).collect();
                }
                Part::Column(key) => {
                    let Some((_, bounds)) = asked.range.as_ref().filter(|(column, _)| *column == key.column)
                    else {
                        break;
                    };
                    let bounds = encode(part, bounds)?;
                    let [first, after, before_first, last] = bounds.as_slice() else { break };
                    // In descending order, a range starts at the last time, and ends before the
                    // time that precedes the first.
                    let (from, to) = if key.descending { (last, before_first) } else { (first, after) };
                    let range = |prefix: &Vec<u8>| KeyRange {
                        start: [prefix.as_slice(), from].concat(),
                        end: Some([prefix.as_slice(), to].concat()),
                    };
                    return Ok(Some(prefixes.iter().map(range).collect()));
                }
                Part::Generated(_) => break,
            }
        }
        Ok(known.then(|| prefixes.iter().map(|prefix| KeyRange::of_prefix(prefix)).collect()))
    }

    fn values_of(&self, function: &Derived) -> Vec<i64> {
        match function {
            Derived::Shard(shards) => (0..i64::from(*shards)).collect(),
            Derived::SignedShard(shards) => (1 - i64::from(*shards)..i64::from(*shards)).collect(),
            Derived::Partition => {
                let partitions = self.placement.as_ref().map_or(0, |placement| placement.partitions().get());
                (0..i64::from(partitions)).collect()
            }
        }
    }

    /// Returns the boundaries between the partitions of a design that has a fixed number of them.
    pub(super) fn partition_boundaries(&self) -> Result<Vec<StartKey>, SimulateError> {
        let first = self.plans.first().and_then(|plan| plan.parts.first());
        let (Some(part), Some(placement)) = (first, &self.placement) else { return Ok(Vec::new()) };
        let values: ArrayRef =
            Arc::new(Int64Array::from_iter_values(1..i64::from(placement.partitions().get())));
        Ok(encode(part, &values)?.into_iter().map(|bytes| StartKey { lead: bytes.len(), bytes }).collect())
    }
}

/// Formats as text the first column of the keys at which splits and heat-map ranges begin.
pub(super) fn name_keys(designs: &[Design], outcome: &mut Outcome) -> Result<(), SimulateError> {
    let plan_of =
        |space: usize| designs.iter().flat_map(|design| &design.plans).find(|plan| plan.space == space);
    for (number, space) in outcome.spaces.iter_mut().enumerate() {
        let Some(plan) = plan_of(number) else { continue };
        let begun: Vec<&mut SplitFigures> =
            space.splits.iter_mut().filter(|split| !split.start.bytes.is_empty()).collect();
        let texts = plan.first_column(begun.iter().map(|split| split.start.first_column()))?;
        begun.into_iter().zip(texts).for_each(|(split, text)| split.starts_at = Some(text));
    }
    let HeatMap { spaces, starts, starts_at, .. } = &mut outcome.heat;
    for (space, start) in spaces.iter().zip(starts) {
        let text = plan_of(*space)
            .map(|plan| plan.first_column(std::iter::once(start.first_column())))
            .transpose()?;
        starts_at.push(text.unwrap_or_default().pop().unwrap_or_default());
    }
    Ok(())
}

impl RowPlan {
    /// Returns the first column of keys, as text.
    fn first_column<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Result<Vec<String>, SimulateError> {
        let Some(converter) = self.encoder.sections.first() else { return Ok(Vec::new()) };
        let parser = converter.parser();
        let columns = converter.convert_rows(keys.map(|key| parser.parse(key)))?;
        let Some(column) = columns.first() else { return Ok(Vec::new()) };
        let format = FormatOptions::default().with_null("NULL");
        let text = ArrayFormatter::try_new(column, &format)?;
        Ok((0..column.len()).map(|row| text.value(row).to_string()).collect())
    }

    fn entries(
        &self,
        arrived: &Arrived,
        generated: &[ArrayRef],
        placement: Option<&Placement>,
    ) -> Result<Entries, SimulateError> {
        let batch = &arrived.batch;
        let parts = self.parts.iter().filter(|part| !matches!(part, Part::Tag(_)));
        let arrays =
            parts.map(|part| array_of(part, batch, generated, placement)).collect::<Result<Vec<_>, _>>()?;
        let mut rest = arrays.as_slice();
        let mut sections = Vec::new();
        for (converter, count) in self.encoder.sections.iter().zip(&self.encoder.columns) {
            let (of_section, after) = rest.split_at((*count).min(rest.len()));
            sections.push(converter.convert_columns(of_section)?);
            rest = after;
        }
        let mut bytes = match &self.stored {
            None => arrived.bytes.clone(),
            Some(columns) => row_bytes(&batch.project(columns)?),
        };
        bytes.iter_mut().for_each(|bytes| *bytes = bytes.saturating_add(self.added_bytes));
        let nulls: Vec<&ArrayRef> = self
            .not_null
            .iter()
            .filter_map(|column| batch.columns().get(*column))
            .filter(|array| array.null_count() > 0)
            .collect();
        let missing = |row: usize| nulls.iter().any(|array| array.is_null(row));
        let missing = (!nulls.is_empty()).then(|| (0..batch.num_rows()).map(missing).collect());
        let Encoder { tag, root_sections, .. } = self.encoder;
        Ok(Entries { sections, tag, root_sections, bytes, missing })
    }

    /// Whether the entries begin with a column, so that they are in its order.
    pub(super) fn leads_with(&self, column: usize) -> bool {
        matches!(self.parts.first(), Some(Part::Column(key)) if key.column == column)
    }

    /// Whether a column is in descending order; `None` if it is not in the key.
    pub(super) fn descends(&self, column: usize) -> Option<bool> {
        self.parts.iter().find_map(|part| match part {
            Part::Column(key) if key.column == column => Some(key.descending),
            _ => None,
        })
    }
}

/// Inserts a tag after the parts of the root.
fn with_tag(mut parts: Vec<Part>, root: Option<usize>, tag: u8) -> Vec<Part> {
    if let Some(root) = root {
        parts.insert(root.min(parts.len()), Part::Tag(tag));
    }
    parts
}

/// Returns the generator, the placement and the key parts of a strategy.
fn primary_key(
    strategy: Strategy,
    columns: &[Column],
    key: &[KeyColumn],
    hashed: Hashed<'_>,
    seed: u64,
) -> (Option<Generator>, Option<Placement>, Vec<Part>) {
    let type_of = |column: usize| columns.get(column).map_or(ColumnType::Int64, |found| found.column_type);
    let mut declared: Vec<Part> = key.iter().cloned().map(Part::Column).collect();
    let all: Vec<usize> = key.iter().map(|part| part.column).collect();
    let with = |front: Vec<Part>, declared: Vec<Part>| front.into_iter().chain(declared).collect::<Vec<_>>();
    let derived = |columns: &[usize], function| vec![Part::Derived { columns: columns.to_vec(), function }];
    match strategy {
        Strategy::Declared => (None, None, declared),
        Strategy::Swapped => {
            if let [first, second, ..] = declared.as_mut_slice() {
                std::mem::swap(first, second);
            }
            (None, None, declared)
        }
        Strategy::Descending => {
            let turned = |part: &KeyColumn| {
                let is_time = type_of(part.column).is_time();
                Part::Column(KeyColumn { descending: is_time || part.descending, ..part.clone() })
            };
            (None, None, key.iter().map(turned).collect())
        }
        Strategy::Shards(shards) => {
            let of = hashed.shard.unwrap_or(&all);
            (None, None, with(derived(of, Derived::Shard(shards)), declared))
        }
        Strategy::GeneratedShards(shards) => {
            let of = hashed.shard.unwrap_or(all.get(..1).unwrap_or_default());
            (None, None, with(derived(of, Derived::SignedShard(shards)), declared))
        }
        Strategy::HashPartitions(partitions) => {
            let partition_key = hashed.partition_key;
            let types = partition_key.iter().map(|column| type_of(*column)).collect();
            let placement = Placement::new(PlacementFunction::Ydb, partitions, types);
            (None, Some(placement), with(derived(partition_key, Derived::Partition), declared))
        }
        Strategy::Sequence => (Some(Generator::Sequence(0)), None, with(vec![Part::Generated(0)], declared)),
        Strategy::BitReversed => {
            let sequence = Box::new(BitReversedSequence::new(1, None));
            (Some(Generator::BitReversed(sequence)), None, with(vec![Part::Generated(0)], declared))
        }
        Strategy::Uuid(kind, form) => {
            let front = match form {
                UuidForm::TwoIntegers => vec![Part::Generated(0), Part::Generated(1)],
                UuidForm::Text | UuidForm::Bytes => vec![Part::Generated(0)],
            };
            let generator = Generator::Uuid(Box::new(UuidSource::new(kind, seed)), form);
            (Some(generator), None, with(front, declared))
        }
    }
}

/// Inputs that determine the types of key parts.
struct Context<'a> {
    columns: &'a [Column],
    generator: Option<&'a Generator>,
}

impl Context<'_> {
    fn encoder(&self, parts: &[Part]) -> Result<Encoder, SimulateError> {
        let tag = parts.iter().find_map(|part| if let Part::Tag(tag) = part { Some(*tag) } else { None });
        let mut groups: Vec<Vec<SortField>> = vec![Vec::new()];
        let mut root_sections = usize::MAX;
        for part in parts {
            let first_is_full = groups.len() == 1 && groups.first().is_some_and(|group| !group.is_empty());
            if matches!(part, Part::Tag(_)) {
                root_sections = groups.len();
                groups.push(Vec::new());
                continue;
            }
            if first_is_full {
                groups.push(Vec::new());
            }
            if let Some(group) = groups.last_mut() {
                group.push(self.field(part));
            }
        }
        let groups: Vec<Vec<SortField>> = groups.into_iter().filter(|group| !group.is_empty()).collect();
        let columns = groups.iter().map(Vec::len).collect();
        let root_sections = root_sections.min(groups.len());
        let sections = groups.into_iter().map(RowConverter::new).collect::<Result<_, _>>()?;
        Ok(Encoder { sections, columns, tag, root_sections })
    }

    fn field(&self, part: &Part) -> SortField {
        match (part, self.generator) {
            (Part::Column(key), _) => {
                let column_type = self.columns.get(key.column).map(|column| column.column_type.arrow_type());
                let data_type = match column_type.unwrap_or(DataType::Int64) {
                    // Text is read as views.
                    DataType::Utf8 => DataType::Utf8View,
                    other => other,
                };
                SortField::new_with_options(data_type, options_of(part))
            }
            (Part::Generated(_), Some(Generator::Uuid(_, UuidForm::Text))) => SortField::new(DataType::Utf8),
            (Part::Generated(_), Some(Generator::Uuid(_, UuidForm::Bytes))) => {
                SortField::new(DataType::Binary)
            }
            _ => SortField::new(DataType::Int64),
        }
    }
}

/// NULL sorts before every value, and therefore last in descending order.
fn options_of(part: &Part) -> SortOptions {
    match part {
        Part::Column(key) => SortOptions { descending: key.descending, nulls_first: !key.descending },
        _ => SortOptions { descending: false, nulls_first: true },
    }
}

/// Encodes the values of one part as bytes of a key.
fn encode(part: &Part, array: &ArrayRef) -> Result<Vec<Vec<u8>>, SimulateError> {
    let field = SortField::new_with_options(array.data_type().clone(), options_of(part));
    let rows = RowConverter::new(vec![field])?.convert_columns(std::slice::from_ref(array))?;
    Ok(rows.iter().map(|row| row.data().to_vec()).collect())
}

fn column_of(batch: &RecordBatch, column: usize) -> Result<ArrayRef, SimulateError> {
    batch.columns().get(column).cloned().ok_or(SimulateError::Columns)
}

fn array_of(
    part: &Part,
    batch: &RecordBatch,
    generated: &[ArrayRef],
    placement: Option<&Placement>,
) -> Result<ArrayRef, SimulateError> {
    let (columns, function) = match part {
        Part::Column(key) => {
            let column = column_of(batch, key.column)?;
            return match column.data_type() {
                // Only some formats deliver text as views.
                DataType::Utf8 => Ok(cast(&column, &DataType::Utf8View)?),
                DataType::BinaryView => Ok(cast(&column, &DataType::Binary)?),
                _ => Ok(column),
            };
        }
        Part::Derived { columns, function } => (columns, function),
        Part::Generated(number) => return generated.get(*number).cloned().ok_or(SimulateError::Columns),
        Part::Tag(_) => return Err(SimulateError::Columns),
    };
    let arrays: Vec<ArrayRef> =
        columns.iter().map(|column| column_of(batch, *column)).collect::<Result<_, _>>()?;
    let shards: Int64Array = match (function, placement) {
        (Derived::Partition, Some(placement)) => {
            placement.assign(&arrays)?.into_iter().map(|partition| Some(i64::from(partition.0))).collect()
        }
        (Derived::Shard(shards), _) => {
            fingerprints(&arrays)?.unary::<_, Int64Type>(|fingerprint| shard_id(fingerprint, *shards))
        }
        (Derived::SignedShard(shards), _) => {
            fingerprints(&arrays)?.unary(|fingerprint| signed_shard_id(fingerprint, *shards))
        }
        (Derived::Partition, None) => return Err(SimulateError::Columns),
    };
    Ok(Arc::new(shards))
}

impl Generator {
    /// Appends the generated columns of one key per time.
    fn generate(&mut self, times: &[i64], arrays: &mut Vec<ArrayRef>) {
        match self {
            Self::Sequence(last) => {
                let first = *last + 1;
                *last += times.len() as i64;
                arrays.push(Arc::new(Int64Array::from_iter_values(first..=*last)));
            }
            Self::BitReversed(sequence) => {
                let values = sequence.by_ref().take(times.len()).collect::<Vec<i64>>();
                arrays.push(Arc::new(Int64Array::from(values)));
            }
            Self::Uuid(source, form) => {
                let made = times.iter().map(|micros| source.next_at(*micros));
                match form {
                    UuidForm::Text => {
                        let text = made.map(|uuid| Some(uuid.to_string()));
                        arrays.push(Arc::new(text.collect::<StringArray>()));
                    }
                    UuidForm::Bytes => {
                        let bytes = made.map(|uuid| Some(uuid.into_bytes())).collect::<Vec<_>>();
                        arrays.push(Arc::new(BinaryArray::from_iter(bytes)));
                    }
                    UuidForm::TwoIntegers => {
                        let (high, low): (Vec<i64>, Vec<i64>) = made
                            .map(|uuid| {
                                let (high, low) = uuid.as_u64_pair();
                                (high.cast_signed(), low.cast_signed())
                            })
                            .unzip();
                        arrays.push(Arc::new(Int64Array::from(high)));
                        arrays.push(Arc::new(Int64Array::from(low)));
                    }
                }
            }
        }
    }
}
