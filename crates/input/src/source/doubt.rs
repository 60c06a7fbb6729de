//! Doubt whether backslashes of tab-separated text are escapes: some fields say so, and others do
//! not.

use csv::ByteRecord;

use crate::source::error::SourceError;

/// Signs that a file has backslash escapes although it is read as CSV. A NULL that is spelled `\N`
/// is the same in both spellings, but empty fields, quotes and other backslashes are not.
pub(super) struct Doubt {
    /// Whether quotes are known to be CSV quotes.
    has_csv_quotes: bool,
    /// Line of the first `\N`.
    null: Option<u64>,
    /// Whether the file has anything that escapes would give another meaning.
    is_ambiguous: bool,
}

impl Doubt {
    /// `keeps_nulls` says whether `\N` is read as text, so that it has another meaning itself.
    pub(super) fn new(has_csv_quotes: bool, keeps_nulls: bool) -> Self {
        Self { has_csv_quotes, null: None, is_ambiguous: keeps_nulls }
    }

    /// Examines a record. `has_quotes` says whether the file has quotes so far.
    pub(super) fn see(&mut self, record: &ByteRecord, line: u64, has_quotes: bool) {
        self.is_ambiguous |= has_quotes && !self.has_csv_quotes;
        for field in record {
            if field == b"\\N" {
                self.null.get_or_insert(line);
            } else {
                self.is_ambiguous |= field.is_empty() || field.contains(&b'\\');
            }
        }
    }

    /// Checks what was seen so far.
    ///
    /// # Errors
    /// [`SourceError::DoubtfulEscapes`] with the line of the first `\N`, if it matters.
    pub(super) fn check(&self, file: &str) -> Result<(), SourceError> {
        match self.null.filter(|_| self.is_ambiguous) {
            Some(line) => Err(SourceError::DoubtfulEscapes { file: file.to_owned(), line }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the line that is in doubt after all these records, from line 1 on.
    fn doubtful_line(records: &[[&str; 2]], mut doubt: Doubt, has_quotes: bool) -> Option<u64> {
        for (record, line) in records.iter().zip(1..) {
            doubt.see(&ByteRecord::from(record.as_slice()), line, has_quotes);
        }
        match doubt.check("x.tsv") {
            Ok(()) => None,
            Err(SourceError::DoubtfulEscapes { file, line }) if file == "x.tsv" => Some(line),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn nulls_alone_and_backslashes_alone_are_no_doubt() {
        for records in [
            &[["1", "a"], ["2", "\\N"], ["\\N", "\\N"]],
            &[["1", "C:\\temp"], ["2", ""], ["", "\\\\"]],
            &[["1", "a"], ["2", "N"], ["3", "b"]],
        ] {
            let found = doubtful_line(records, Doubt::new(false, false), false);
            assert_eq!(found, None, "{records:?}");
        }
    }

    #[test]
    fn the_line_of_the_first_null_is_in_doubt_whatever_comes_first() {
        for other in ["", "C:\\temp", "a\\", "\\n"] {
            let (null, plain, other) = (["1", "\\N"], ["2", "x"], ["3", other]);
            for (records, line) in [
                ([null, plain, other], 1),
                ([other, plain, null], 3),
                ([plain, other, null], 3),
                ([plain, null, other], 2),
            ] {
                let found = doubtful_line(&records, Doubt::new(false, false), false);
                assert_eq!(found, Some(line), "{records:?}");
            }
        }
    }

    #[test]
    fn quotes_are_a_doubt_unless_they_are_those_of_csv() {
        let records = [["1", "\\N"]];
        assert_eq!(doubtful_line(&records, Doubt::new(false, false), true), Some(1));
        assert_eq!(doubtful_line(&records, Doubt::new(true, false), true), None);
        // Where it is no NULL, the mark itself is a doubt.
        assert_eq!(doubtful_line(&records, Doubt::new(true, true), false), Some(1));
    }
}
