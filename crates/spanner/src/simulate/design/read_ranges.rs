//! Ranges of keys that a read has to visit.

use arrow::array::{ArrayRef, RecordBatch};

use crate::simulate::design::part::Part;
use crate::simulate::error::SimulateError;
use crate::simulate::splits::KeyRange;
use evenkeel_placement::placement::Placement;

/// Conditions of a read.
#[derive(Debug, Clone)]
pub(crate) struct ReadConditions {
    /// Columns fixed to one value, which is taken from the only row of `values`.
    pub(crate) fixed: Vec<usize>,
    /// Batch of one row.
    pub(crate) values: RecordBatch,
    /// A time column and the bounds of the requested range: the first time, the one after the last,
    /// and each of these minus one unit.
    pub(crate) range: Option<(usize, ArrayRef)>,
}

impl ReadConditions {
    /// Whether the conditions determine the value of a part.
    pub(super) fn fix(&self, part: &Part) -> bool {
        match part {
            Part::Column(key) => self.fixed.contains(&key.column),
            Part::Derived { columns, .. } => columns.iter().all(|column| self.fixed.contains(column)),
            Part::Generated(_) | Part::Tag(_) => false,
        }
    }
}

/// Returns the ranges of keys with these parts that a read has to visit. `None` if it has to visit
/// all keys.
pub(super) fn read_ranges(
    parts: &[Part],
    conditions: &ReadConditions,
    placement: Option<&Placement>,
) -> Result<Option<Vec<KeyRange>>, SimulateError> {
    let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
    let mut known = false;
    for part in parts {
        match part {
            Part::Tag(tag) => prefixes.iter_mut().for_each(|prefix| prefix.push(*tag)),
            _ if conditions.fix(part) => {
                let value = part.encode(&part.values(&conditions.values, &[], placement)?)?;
                prefixes = continued(&prefixes, &value);
                known = true;
            }
            Part::Derived { function, .. } => {
                prefixes = continued(&prefixes, &part.encode(&function.possible_values(placement))?);
            }
            Part::Column(key) => {
                let range = conditions.range.as_ref().filter(|(column, _)| *column == key.column);
                let bounds = range.map(|(_, bounds)| part.encode(bounds)).transpose()?;
                let Some([first, after, before_first, last]) = bounds.as_deref() else { break };
                // In descending order, a range starts at the last time, and ends before the time
                // that precedes the first.
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
    Ok(known.then(|| prefixes.iter().map(|prefix| KeyRange::with_prefix(prefix)).collect()))
}

/// Returns each prefix continued by each of the values.
fn continued(prefixes: &[Vec<u8>], values: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let each =
        |prefix: &Vec<u8>| values.iter().map(|value| [prefix.as_slice(), value].concat()).collect::<Vec<_>>();
    prefixes.iter().flat_map(each).collect()
}
