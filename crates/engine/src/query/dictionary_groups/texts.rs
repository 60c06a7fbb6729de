//! Numbers of texts.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, DictionaryArray, UInt32Array, new_null_array};
use arrow::compute::take;
use arrow::datatypes::{Field, Schema, UInt32Type};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::EmitTo;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;

/// A code without a number yet.
const UNKNOWN: u32 = u32::MAX;
/// A code whose number is being looked up.
const WANTED: u32 = u32::MAX - 1;

/// Numbers of the texts of a column, from 0, in the order in which they were found. NULL has a
/// number, too.
pub(super) struct Texts {
    texts: Box<dyn GroupValues>,
    /// Number of NULL, if there was one.
    null: Option<u32>,
    /// The latest dictionary, and the numbers of its codes.
    dictionary: Option<ArrayRef>,
    numbers: Vec<u32>,
    /// Results of `texts`, kept for their memory.
    found: Vec<usize>,
}

impl Texts {
    pub(super) fn try_new(field: &Field) -> Result<Self> {
        let schema = Arc::new(Schema::new(vec![field.clone()]));
        let texts = new_group_values(schema, &GroupOrdering::None)?;
        Ok(Self { texts, null: None, dictionary: None, numbers: Vec::new(), found: Vec::new() })
    }

    /// How many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Appends the numbers of the rows of a column.
    pub(super) fn number(
        &mut self,
        rows: &DictionaryArray<UInt32Type>,
        numbers: &mut Vec<u32>,
    ) -> Result<()> {
        let is_known = |known: &ArrayRef| Arc::ptr_eq(known, rows.values());
        if !self.dictionary.as_ref().is_some_and(is_known) {
            self.dictionary = Some(Arc::clone(rows.values()));
            self.numbers.clear();
            self.numbers.resize(rows.values().len(), UNKNOWN);
        }
        let null = match (rows.keys().null_count(), self.null) {
            (0, _) => UNKNOWN,
            (_, Some(null)) => null,
            (_, None) => self.number_null(rows.values())?,
        };
        let start = numbers.len();
        if self.translate(rows.keys(), null, numbers) {
            return Ok(());
        }
        numbers.truncate(start);
        self.look_up(rows)?;
        match self.translate(rows.keys(), null, numbers) {
            true => Ok(()),
            false => internal_err!("a code is beyond its dictionary"),
        }
    }

    /// Appends the numbers of codes. Returns whether all are known.
    fn translate(&self, codes: &UInt32Array, null: u32, numbers: &mut Vec<u32>) -> bool {
        let number = |code: u32| self.numbers.get(code as usize).copied().unwrap_or(UNKNOWN);
        let mut is_known = true;
        let checked = |number: u32| {
            is_known &= number < WANTED;
            number
        };
        match codes.nulls() {
            None => numbers.extend(codes.values().iter().map(|code| number(*code)).map(checked)),
            Some(_) => numbers.extend(codes.iter().map(|code| code.map_or(null, number)).map(checked)),
        }
        is_known
    }

    /// Finds the numbers of all texts of rows that have none yet.
    fn look_up(&mut self, rows: &DictionaryArray<UInt32Type>) -> Result<()> {
        let mut codes = Vec::new();
        for code in rows.keys().iter().flatten() {
            if let Some(number) = self.numbers.get_mut(code as usize).filter(|number| **number == UNKNOWN) {
                *number = WANTED;
                codes.push(code);
            }
        }
        let texts = match codes.len() == rows.values().len() && codes.is_sorted() {
            true => Arc::clone(rows.values()),
            false => take(rows.values(), &UInt32Array::from(codes.clone()), None)?,
        };
        self.texts.intern(&[texts], &mut self.found)?;
        for (code, found) in codes.into_iter().zip(&self.found) {
            if let Some(number) = self.numbers.get_mut(code as usize) {
                *number = checked(*found)?;
            }
        }
        Ok(())
    }

    fn number_null(&mut self, texts: &ArrayRef) -> Result<u32> {
        self.texts.intern(&[new_null_array(texts.data_type(), 1)], &mut self.found)?;
        let Some(found) = self.found.first() else { return internal_err!("NULL has no group") };
        let null = checked(*found)?;
        self.null = Some(null);
        Ok(null)
    }

    /// Returns all texts by their numbers, and forgets them.
    pub(super) fn emit(&mut self) -> Result<ArrayRef> {
        let texts = self.texts.emit(EmitTo::All)?.pop();
        self.texts.clear_shrink(0);
        (self.null, self.dictionary) = (None, None);
        match texts {
            Some(texts) => Ok(texts),
            None => internal_err!("there are no texts"),
        }
    }

    /// Bytes in memory.
    pub(super) fn size(&self) -> usize {
        let numbers = self.numbers.capacity() * size_of::<u32>();
        self.texts.size() + numbers + self.found.capacity() * size_of::<usize>()
    }
}

/// A number in 32 bits.
fn checked(number: usize) -> Result<u32> {
    match u32::try_from(number) {
        Ok(number) if number < WANTED => Ok(number),
        _ => internal_err!("a column has more than 2^32 - 3 texts"),
    }
}
