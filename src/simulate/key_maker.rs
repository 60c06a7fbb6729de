//! The keys of a strategy: bytes that sort as its primary key does.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow::compute::{SortOptions, cast};
use arrow::datatypes::{DataType, Int64Type};
use arrow::row::{RowConverter, Rows, SortField};

use crate::placement::Placement;
use crate::simulate::SimulateError;
use crate::simulate::splits::KeyRange;
use crate::simulate::strategy::{Strategy, UuidForm};
use crate::table::{Column, ColumnType, PlacementFunction};
use crate::transform::{BitReversedSequence, UuidSource, fingerprints, shard_id, signed_shard_id};

/// A column of the declared key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyColumn {
    /// Its position in the export.
    pub(super) column: usize,
    /// Whether it descends.
    pub(super) descending: bool,
}

/// One part of the key of a strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Column(KeyColumn),
    /// A number that follows from columns.
    Derived {
        columns: Vec<usize>,
        function: Derived,
    },
    /// What the database makes up.
    Generated,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Derived {
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

/// Makes keys.
#[derive(Debug)]
pub(super) struct KeyMaker {
    parts: Vec<Part>,
    generator: Option<Generator>,
    placement: Option<Placement>,
    lead: RowConverter,
    rest: Option<RowConverter>,
    /// Bytes that the strategy adds to a row.
    pub(super) added_bytes: u32,
}

/// The keys of a batch.
pub(super) struct Keys {
    lead: Rows,
    rest: Option<Rows>,
}

impl Keys {
    /// Writes the key of a row; gives the length of its first column.
    #[inline]
    pub(super) fn write(&self, row: usize, key: &mut Vec<u8>) -> usize {
        key.clear();
        key.extend_from_slice(self.lead.row(row).data());
        let lead = key.len();
        if let Some(rest) = &self.rest {
            key.extend_from_slice(rest.row(row).data());
        }
        lead
    }
}

/// What a read asks for.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// Columns with one value, which is that of the only row of `values`.
    pub(super) fixed: Vec<usize>,
    /// A batch of one row.
    pub(super) values: RecordBatch,
    /// A column of time, and the bounds of what is asked for: the first and the one after the last, and each less one.
    pub(super) range: Option<(usize, ArrayRef)>,
}

impl KeyMaker {
    /// The keys of `strategy` for a declared key; `partition_key` are the columns that hash partitions hash.
    pub(super) fn new(
        strategy: Strategy,
        columns: &[Column],
        key: &[KeyColumn],
        partition_key: &[usize],
        seed: u64,
    ) -> Result<Self, SimulateError> {
        let type_of =
            |column: usize| columns.get(column).map_or(ColumnType::Int64, |found| found.column_type);
        let declared = || key.iter().cloned().map(Part::Column);
        let all: Vec<usize> = key.iter().map(|part| part.column).collect();
        let derived = |columns: &[usize], function| Part::Derived { columns: columns.to_vec(), function };
        let (mut generator, mut placement) = (None, None);
        let parts: Vec<Part> = match strategy {
            Strategy::Declared => declared().collect(),
            Strategy::Swapped => {
                let mut parts: Vec<Part> = declared().collect();
                if let [first, second, ..] = parts.as_mut_slice() {
                    std::mem::swap(first, second);
                }
                parts
            }
            Strategy::Descending => {
                let turned = |part: &KeyColumn| {
                    let is_time = type_of(part.column).is_time();
                    Part::Column(KeyColumn { descending: is_time || part.descending, ..part.clone() })
                };
                key.iter().map(turned).collect()
            }
            Strategy::Shards(shards) => {
                std::iter::once(derived(&all, Derived::Shard(shards))).chain(declared()).collect()
            }
            Strategy::GeneratedShards(shards) => {
                let first = all.get(..1).unwrap_or_default();
                std::iter::once(derived(first, Derived::SignedShard(shards))).chain(declared()).collect()
            }
            Strategy::HashPartitions(partitions) => {
                let types = partition_key.iter().map(|column| type_of(*column)).collect();
                placement = Some(Placement::new(PlacementFunction::Ydb, partitions, types));
                std::iter::once(derived(partition_key, Derived::Partition)).chain(declared()).collect()
            }
            Strategy::Sequence => {
                generator = Some(Generator::Sequence(0));
                std::iter::once(Part::Generated).chain(declared()).collect()
            }
            Strategy::BitReversed => {
                generator = Some(Generator::BitReversed(Box::new(BitReversedSequence::new(1, None))));
                std::iter::once(Part::Generated).chain(declared()).collect()
            }
            Strategy::Uuid(kind, form) => {
                generator = Some(Generator::Uuid(Box::new(UuidSource::new(kind, seed)), form));
                std::iter::once(Part::Generated).chain(declared()).collect()
            }
        };
        let field = |part: &Part| -> Vec<SortField> {
            let integer = || SortField::new(DataType::Int64);
            match (part, &generator) {
                (Part::Column(key), _) => {
                    // NULL sorts before every value, and so last where they descend.
                    let options = SortOptions { descending: key.descending, nulls_first: !key.descending };
                    vec![SortField::new_with_options(view_type(type_of(key.column)), options)]
                }
                (Part::Generated, Some(Generator::Uuid(_, UuidForm::Text))) => {
                    vec![SortField::new(DataType::Utf8)]
                }
                (Part::Generated, Some(Generator::Uuid(_, UuidForm::Bytes))) => {
                    vec![SortField::new(DataType::Binary)]
                }
                (Part::Generated, Some(Generator::Uuid(_, UuidForm::TwoIntegers))) => {
                    vec![integer(), integer()]
                }
                _ => vec![integer()],
            }
        };
        let mut fields: Vec<SortField> = parts.iter().flat_map(field).collect();
        let rest = fields.split_off(1.min(fields.len()));
        let rest = if rest.is_empty() { None } else { Some(RowConverter::new(rest)?) };
        let added_bytes = match strategy {
            Strategy::Declared | Strategy::Swapped | Strategy::Descending | Strategy::HashPartitions(_) => 0,
            Strategy::Uuid(_, UuidForm::Text) => 36,
            Strategy::Uuid(..) => 16,
            _ => 8,
        };
        Ok(Self { parts, generator, placement, lead: RowConverter::new(fields)?, rest, added_bytes })
    }

    /// The keys of the rows of a batch of the export; `times` are points in time in microseconds, for what is made up from them.
    pub(super) fn keys(&mut self, batch: &RecordBatch, times: &[i64]) -> Result<Keys, SimulateError> {
        let mut arrays = Vec::new();
        let (parts, generator, placement) = (&self.parts, &mut self.generator, &self.placement);
        for part in parts {
            match (part, generator.as_mut()) {
                (Part::Generated, Some(generator)) => generator.generate(times, &mut arrays),
                _ => arrays.push(array_of(part, batch, placement.as_ref())?),
            }
        }
        let rest = arrays.split_off(1.min(arrays.len()));
        let lead = self.lead.convert_columns(&arrays)?;
        let rest = self.rest.as_ref().map(|converter| converter.convert_columns(&rest)).transpose()?;
        Ok(Keys { lead, rest })
    }

    /// The ranges of keys that a read has to visit. None where it is all of them.
    pub(super) fn ranges(&self, asked: &Asked) -> Result<Option<Vec<KeyRange>>, SimulateError> {
        let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
        let mut known = false;
        for part in &self.parts {
            let encode = |array: &ArrayRef| self.encode(part, array);
            match part {
                Part::Column(key) if asked.fixed.contains(&key.column) => {
                    let value = array_of(part, &asked.values, None)?;
                    let Some(value) = encode(&value)?.pop() else { break };
                    prefixes.iter_mut().for_each(|prefix| prefix.extend_from_slice(&value));
                    known = true;
                }
                Part::Derived { columns, .. }
                    if columns.iter().all(|column| asked.fixed.contains(column)) =>
                {
                    let value = array_of(part, &asked.values, self.placement.as_ref())?;
                    let Some(value) = encode(&value)?.pop() else { break };
                    prefixes.iter_mut().for_each(|prefix| prefix.extend_from_slice(&value));
                    known = true;
                }
                Part::Derived { function, .. } => {
                    let values: Vec<i64> = match function {
                        Derived::Shard(shards) => (0..i64::from(*shards)).collect(),
                        Derived::SignedShard(shards) => {
                            (1 - i64::from(*shards)..i64::from(*shards)).collect()
                        }
                        Derived::Partition => {
                            let partitions = self.placement.as_ref().map_or(0, |p| p.partitions().len());
                            (0..partitions as i64).collect()
                        }
                    };
                    let values: ArrayRef = Arc::new(Int64Array::from(values));
                    let values = encode(&values)?;
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
                    let bounds = encode(bounds)?;
                    let [first, after, before_first, last] = bounds.as_slice() else { break };
                    // Keys that descend begin with the last, and end before the one that comes before the first.
                    let (from, to) = if key.descending { (last, before_first) } else { (first, after) };
                    let range = |prefix: &Vec<u8>| KeyRange {
                        start: [prefix.as_slice(), from].concat(),
                        end: Some([prefix.as_slice(), to].concat()),
                    };
                    return Ok(Some(prefixes.iter().map(range).collect()));
                }
                Part::Generated => break,
            }
        }
        Ok(known.then(|| prefixes.iter().map(|prefix| KeyRange::of_prefix(prefix)).collect()))
    }

    /// The values of one part as bytes of the key.
    fn encode(&self, part: &Part, array: &ArrayRef) -> Result<Vec<Vec<u8>>, SimulateError> {
        let options = match part {
            Part::Column(key) => SortOptions { descending: key.descending, nulls_first: !key.descending },
            _ => SortOptions::default(),
        };
        let converter =
            RowConverter::new(vec![SortField::new_with_options(array.data_type().clone(), options)])?;
        let rows = converter.convert_columns(std::slice::from_ref(array))?;
        Ok(rows.iter().map(|row| row.data().to_vec()).collect())
    }

    /// Whether a column comes before all made-up and derived ones, so that rows follow it.
    pub(super) fn leads_with(&self, column: usize) -> bool {
        matches!(self.parts.first(), Some(Part::Column(key)) if key.column == column)
    }

    /// Whether a column descends; none where it is not in the key.
    pub(super) fn descends(&self, column: usize) -> Option<bool> {
        self.parts.iter().find_map(|part| match part {
            Part::Column(key) if key.column == column => Some(key.descending),
            _ => None,
        })
    }

    /// The boundaries between the shards or partitions of a strategy that has a fixed number of them.
    pub(super) fn partition_boundaries(&self) -> Result<Vec<Vec<u8>>, SimulateError> {
        let (Some(part), Some(placement)) = (self.parts.first(), &self.placement) else {
            return Ok(Vec::new());
        };
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(1..placement.partitions().len() as i64));
        self.encode(part, &values)
    }
}

/// Text and bytes come as views.
fn view_type(column_type: ColumnType) -> DataType {
    match column_type.arrow_type() {
        DataType::Utf8 => DataType::Utf8View,
        other => other,
    }
}

fn column_of(batch: &RecordBatch, column: usize) -> Result<ArrayRef, SimulateError> {
    batch.columns().get(column).cloned().ok_or(SimulateError::NoRows)
}

fn array_of(
    part: &Part,
    batch: &RecordBatch,
    placement: Option<&Placement>,
) -> Result<ArrayRef, SimulateError> {
    let (columns, function) = match part {
        Part::Column(key) => {
            let column = column_of(batch, key.column)?;
            return match column.data_type() {
                // Text comes as views from some formats only.
                DataType::Utf8 => Ok(cast(&column, &DataType::Utf8View)?),
                DataType::BinaryView => Ok(cast(&column, &DataType::Binary)?),
                _ => Ok(column),
            };
        }
        Part::Derived { columns, function } => (columns, function),
        Part::Generated => return Err(SimulateError::NoRows),
    };
    let arrays: Vec<ArrayRef> =
        columns.iter().map(|column| column_of(batch, *column)).collect::<Result<_, _>>()?;
    let shards: Int64Array = match (function, placement) {
        (Derived::Partition, Some(placement)) => {
            placement.assign(&arrays)?.into_iter().map(|partition| Some(i64::from(partition.0))).collect()
        }
        (Derived::Shard(shards), _) => {
            // The hash of a NULL is NULL, which sorts first.
            fingerprints(&arrays)?
                .unary_opt::<_, Int64Type>(|fingerprint| Some(shard_id(fingerprint, *shards)))
        }
        (Derived::SignedShard(shards), _) => {
            fingerprints(&arrays)?.unary(|fingerprint| signed_shard_id(fingerprint, *shards))
        }
        (Derived::Partition, None) => return Err(SimulateError::NoRows),
    };
    Ok(Arc::new(shards))
}

impl Generator {
    /// Appends the columns of as many keys as there are times.
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
                        arrays
                            .push(Arc::new(made.map(|uuid| Some(uuid.to_string())).collect::<StringArray>()));
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
