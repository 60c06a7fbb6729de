//! Groups of rows by the numbers of several columns.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, UInt32Array};
use arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;

/// A place of the array without a group.
const NONE: u32 = u32::MAX;
/// Largest array, in bits of its index: it fits into a processor's cache.
const MOST_BITS: u32 = 16;

/// Groups by the keys of several columns.
pub(super) enum Members {
    /// All columns have numbers, and few of them.
    Array(Array),
    /// DataFusion's table.
    Table(Box<dyn GroupValues>),
}

/// An array of groups, by the numbers of all columns side by side.
pub(super) struct Array {
    /// Bits of the number of each column.
    bits: Vec<u32>,
    groups: Vec<u32>,
    /// The numbers of each group, by column.
    members: Vec<Vec<u32>>,
    /// Type of DataFusion's table, if the array does not suffice.
    schema: SchemaRef,
}

impl Members {
    /// Groups by the keys of `schema`. `are_numbers` if all are numbers of texts.
    pub(super) fn try_new(schema: &SchemaRef, are_numbers: bool) -> Result<Self> {
        Ok(match are_numbers {
            true => Self::Array(Array::new(Arc::clone(schema))),
            false => Self::Table(new_group_values(Arc::clone(schema), &GroupOrdering::None)?),
        })
    }

    /// Groups by the keys of `schema`, which are those of some rows, all different, in their order.
    pub(super) fn table_of(schema: &SchemaRef, groups: &[ArrayRef]) -> Result<Self> {
        let rows = groups.first().map_or(0, |keys| keys.len());
        let mut table = new_group_values(Arc::clone(schema), &GroupOrdering::None)?;
        let mut found = Vec::new();
        if rows > 0 {
            table.intern(groups, &mut found)?;
        }
        // A row with the hash of another one gets its number after all rows that it is found with.
        let displaced = displaced(&found);
        if !displaced.is_empty() {
            table = new_group_values(Arc::clone(schema), &GroupOrdering::None)?;
            let mut ends: Vec<usize> = displaced.iter().flat_map(|row| [*row, row + 1]).collect();
            ends.push(rows);
            let mut start = 0;
            for end in ends {
                if start == end {
                    continue;
                }
                let part: Vec<ArrayRef> = groups.iter().map(|keys| keys.slice(start, end - start)).collect();
                table.intern(&part, &mut found)?;
                if !found.iter().copied().eq(start..end) {
                    return internal_err!("groups are not in the order of their rows");
                }
                start = end;
            }
        }
        Ok(Self::Table(table))
    }

    /// Finds the groups of rows, and adds those that are new. `counts` says how many numbers each
    /// column has.
    pub(super) fn find(
        &mut self,
        keys: Vec<ArrayRef>,
        counts: &[usize],
        groups: &mut Vec<usize>,
    ) -> Result<()> {
        if let Self::Array(array) = self
            && !array.fits(counts)
        {
            *self = array.move_to_table()?;
        }
        match self {
            Self::Array(array) => array.find(&keys, groups),
            Self::Table(table) => table.intern(&keys, groups),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Array(array) => array.len(),
            Self::Table(table) => table.len(),
        }
    }

    /// Returns the keys of all groups, and forgets them.
    pub(super) fn emit(&mut self) -> Result<Vec<ArrayRef>> {
        match self {
            Self::Array(array) => Ok(array.emit()),
            Self::Table(table) => {
                let keys = table.emit(EmitTo::All)?;
                table.clear_shrink(0);
                Ok(keys)
            }
        }
    }

    /// Bytes in memory.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Array(array) => array.size(),
            Self::Table(table) => table.size(),
        }
    }
}

impl Array {
    fn new(schema: SchemaRef) -> Self {
        let columns = schema.fields().len();
        Self { bits: vec![0; columns], groups: vec![NONE], members: vec![Vec::new(); columns], schema }
    }

    fn len(&self) -> usize {
        self.members.first().map_or(0, Vec::len)
    }

    /// Makes room for numbers below `counts`, by column; returns whether there is enough.
    fn fits(&mut self, counts: &[usize]) -> bool {
        let is_enough = |(bits, count): (&u32, &usize)| *count <= 1 << *bits;
        if self.bits.iter().zip(counts).all(is_enough) {
            return true;
        }
        let bits: Vec<u32> = counts.iter().map(|count| count.max(&1).next_power_of_two().ilog2()).collect();
        let all: u32 = bits.iter().sum();
        if all > MOST_BITS {
            return false;
        }
        self.bits = bits;
        self.groups.clear();
        self.groups.resize(1 << all, NONE);
        for group in 0..self.len() {
            let numbers = self.members.iter().filter_map(|numbers| numbers.get(group));
            let place = place(self.bits.iter().zip(numbers));
            if let Some(known) = self.groups.get_mut(place) {
                *known = group as u32;
            }
        }
        true
    }

    fn find(&mut self, keys: &[ArrayRef], groups: &mut Vec<usize>) -> Result<()> {
        let numbers: Option<Vec<&[u32]>> = keys.iter().map(numbers).collect();
        let Some(numbers) = numbers else { return internal_err!("a key is no number") };
        let rows = numbers.first().map_or(0, |numbers| numbers.len());
        groups.clear();
        groups.resize(rows, 0);
        // Column by column, groups are first the places of the rows.
        for (numbers, bits) in numbers.iter().zip(&self.bits) {
            for (place, number) in groups.iter_mut().zip(*numbers) {
                *place = *place << bits | *number as usize;
            }
        }
        for (row, place) in groups.iter_mut().enumerate() {
            let Some(group) = self.groups.get_mut(*place) else {
                return internal_err!("a number is beyond the array of groups");
            };
            if *group == NONE {
                *group = self.members.first().map_or(0, Vec::len) as u32;
                for (members, numbers) in self.members.iter_mut().zip(&numbers) {
                    members.extend(numbers.get(row));
                }
            }
            *place = *group as usize;
        }
        Ok(())
    }

    /// Returns a table of the same groups, and forgets them.
    fn move_to_table(&mut self) -> Result<Members> {
        let schema = Arc::clone(&self.schema);
        Members::table_of(&schema, &self.emit())
    }

    fn emit(&mut self) -> Vec<ArrayRef> {
        self.groups.fill(NONE);
        let numbers =
            |numbers: &mut Vec<u32>| Arc::new(UInt32Array::from(std::mem::take(numbers))) as ArrayRef;
        self.members.iter_mut().map(numbers).collect()
    }

    fn size(&self) -> usize {
        let numbers = self.groups.capacity() + self.members.iter().map(Vec::capacity).sum::<usize>();
        numbers * size_of::<u32>()
    }
}

/// Returns the rows whose group comes after those of later rows.
fn displaced(groups: &[usize]) -> Vec<usize> {
    let mut next = 0;
    let is_displaced = |(_, group): &(usize, &usize)| {
        let is_next = **group == next;
        next += usize::from(is_next);
        !is_next
    };
    groups.iter().enumerate().filter(is_displaced).map(|(row, _)| row).collect()
}

/// Position in the array of the group with these numbers, each with the bits it takes.
fn place<'a>(numbers: impl Iterator<Item = (&'a u32, &'a u32)>) -> usize {
    numbers.fold(0, |place, (bits, number)| place << bits | *number as usize)
}

fn numbers(keys: &ArrayRef) -> Option<&[u32]> {
    keys.as_any().downcast_ref::<UInt32Array>().map(|keys| keys.values().as_ref())
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    #[test]
    fn groups_keep_their_numbers_in_another_table_although_their_hashes_are_equal() {
        let field = |name: &str| Field::new(name, DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![field("a"), field("b"), field("c")]));
        // NULL does not change a hash: (1, 5, NULL) and (1, NULL, 5) have the same one.
        let keys = |rows: &[[Option<i64>; 3]]| -> Vec<ArrayRef> {
            let column = |column: usize| Arc::new(rows.iter().map(|row| row[column]).collect::<Int64Array>());
            (0..3).map(|position| column(position) as ArrayRef).collect()
        };
        let rest = [[Some(5), None], [None, Some(5)], [None, None]];
        let row = |row: i64| [Some(row / 3), rest[row as usize % 3][0], rest[row as usize % 3][1]];
        let rows: Vec<[Option<i64>; 3]> = (0..300).map(row).collect();
        for count in [0, 1, 2, 3, 8, 300] {
            let mut members = Members::table_of(&schema, &keys(&rows[..count])).unwrap();
            assert_eq!(members.len(), count);
            for (number, row) in rows[..count].iter().enumerate() {
                let mut found = Vec::new();
                members.find(keys(std::slice::from_ref(row)), &[0; 3], &mut found).unwrap();
                assert_eq!(found, [number], "{row:?} of {count}");
            }
        }
    }
}
