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

/// All texts of a dictionary are looked up at once if there are at most this many for each row read.
const TEXTS_PER_ROW: usize = 2;

/// Rows of whole dictionaries from which it is known whether texts repeat.
const ROWS_OF_PROBE: usize = 4_000;

/// Rows for each text of whole dictionaries, at least, for which numbers are worth it beside other
/// keys.
const ROWS_PER_TEXT: usize = 4;

/// Numbers of the texts of a column, from 0, in the order in which they were found. NULL has a
/// number, too.
pub(super) struct Texts {
    texts: Box<dyn GroupValues>,
    /// Whether a text that no row has may have a number.
    may_have_others: bool,
    /// Number of NULL, if there was one.
    null: Option<u32>,
    /// The latest dictionary, and the numbers of its codes.
    dictionary: Option<ArrayRef>,
    numbers: Vec<u32>,
    /// Codes of the latest dictionary without a number.
    unknown: usize,
    /// Rows that had codes of the latest dictionary.
    rows: usize,
    /// Rows and texts of the dictionaries before it, as long as it is not known whether texts repeat.
    rows_before: usize,
    texts_before: usize,
    /// Whether hardly any rows have the same text.
    hardly_repeat: Option<bool>,
    /// Results of `texts`, kept for their memory.
    found: Vec<usize>,
}

impl Texts {
    /// Texts of a type. Only if `may_have_others` may a text have a number that no row has.
    pub(super) fn try_new(field: &Field, may_have_others: bool) -> Result<Self> {
        let schema = Arc::new(Schema::new(vec![field.clone()]));
        let texts = new_group_values(schema, &GroupOrdering::None)?;
        Ok(Self {
            texts,
            may_have_others,
            null: None,
            dictionary: None,
            numbers: Vec::new(),
            unknown: 0,
            rows: 0,
            rows_before: 0,
            texts_before: 0,
            hardly_repeat: None,
            found: Vec::new(),
        })
    }

    /// Whether hardly any rows have the same text, by the first dictionaries. If there are other
    /// keys, a group is then looked up twice for most rows, once for the text, and once by its number
    /// and the other keys.
    pub(super) fn hardly_repeat(&self) -> bool {
        self.hardly_repeat == Some(true)
    }

    /// Takes note that some rows, which are not yet numbered, are the last with their dictionary.
    pub(super) fn expect_last(&mut self, rows: &DictionaryArray<UInt32Type>) {
        let (mut all, mut texts) = (self.rows_before + rows.len(), self.texts_before + rows.values().len());
        match self.is_latest(rows) {
            true => all += self.rows,
            false => (all, texts) = (all + self.rows, texts + self.numbers.len()),
        }
        self.judge(all, texts);
    }

    /// Decides once whether texts repeat, by the rows and texts of whole dictionaries.
    fn judge(&mut self, rows: usize, texts: usize) {
        if self.hardly_repeat.is_none() && rows >= ROWS_OF_PROBE {
            self.hardly_repeat = Some(rows < ROWS_PER_TEXT * texts);
        }
    }

    /// Whether rows have the latest dictionary.
    fn is_latest(&self, rows: &DictionaryArray<UInt32Type>) -> bool {
        self.dictionary.as_ref().is_some_and(|known| Arc::ptr_eq(known, rows.values()))
    }

    /// How many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Appends the numbers of the rows of a column, converted by `convert`.
    pub(super) fn number<N>(
        &mut self,
        rows: &DictionaryArray<UInt32Type>,
        numbers: &mut Vec<N>,
        convert: impl Fn(u32) -> N,
    ) -> Result<()> {
        if !self.is_latest(rows) {
            self.rows_before += self.rows;
            self.texts_before += self.numbers.len();
            self.judge(self.rows_before, self.texts_before);
            self.dictionary = Some(Arc::clone(rows.values()));
            self.numbers.clear();
            self.numbers.resize(rows.values().len(), UNKNOWN);
            (self.unknown, self.rows) = (rows.values().len(), 0);
        }
        self.rows += rows.len();
        if self.unknown > 0 {
            self.look_up(rows)?;
        }
        let number = |code: u32| self.numbers.get(code as usize).copied().unwrap_or(UNKNOWN);
        if rows.keys().null_count() == 0 {
            numbers.extend(rows.keys().values().iter().map(|code| convert(number(*code))));
            return Ok(());
        }
        let null = match self.null {
            Some(null) => null,
            None => self.number_null(rows.values())?,
        };
        let number = |code: u32| self.numbers.get(code as usize).copied().unwrap_or(UNKNOWN);
        numbers.extend(rows.keys().iter().map(|code| convert(code.map_or(null, number))));
        Ok(())
    }

    /// Finds the numbers of all texts of rows that have none yet; those of the whole dictionary if
    /// others may have numbers, and if there are not many more of them than rows that were read.
    fn look_up(&mut self, rows: &DictionaryArray<UInt32Type>) -> Result<()> {
        let mut codes = Vec::new();
        let mut want = |code: u32, number: &mut u32| {
            if *number == UNKNOWN {
                *number = WANTED;
                codes.push(code);
            }
        };
        if self.may_have_others && self.unknown <= TEXTS_PER_ROW * self.rows {
            for (code, number) in (0..).zip(&mut self.numbers) {
                want(code, number);
            }
        } else {
            for code in rows.keys().iter().flatten() {
                if let Some(number) = self.numbers.get_mut(code as usize) {
                    want(code, number);
                }
            }
        }
        self.unknown -= codes.len();
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

#[cfg(test)]
mod tests {
    use arrow::array::StringViewArray;
    use arrow::datatypes::DataType;

    use super::*;

    #[test]
    fn it_is_known_after_some_dictionaries_whether_texts_repeat() {
        let field = Field::new("text", DataType::Utf8View, true);
        for (texts, rows, hardly) in [(2_000, 2_500, true), (500, 2_500, false), (10, 20, false)] {
            for ends in [false, true] {
                let mut numbered = Texts::try_new(&field, true).unwrap();
                for dictionary in 0..3 {
                    assert!(!numbered.hardly_repeat() || ends && dictionary == 2);
                    let text = |text: u32| format!("{dictionary} {text}");
                    let values: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..texts).map(text)));
                    let codes = UInt32Array::from_iter_values((0..rows).map(|row| row % texts));
                    let rows = DictionaryArray::try_new(codes, values).unwrap();
                    if ends {
                        numbered.expect_last(&rows);
                    }
                    numbered.number(&rows, &mut Vec::new(), |number| number).unwrap();
                }
                assert_eq!(numbered.hardly_repeat(), hardly, "{texts} texts of {rows} rows");
            }
        }
    }
}
