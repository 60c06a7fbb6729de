//! Quotes of CSV that are followed by text, as in `"5"6`, whose meaning depends on the reader.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Places of closing quotes with text after them, as offsets into the stream.
#[derive(Debug, Clone, Default)]
pub(super) struct MisplacedQuotes(Arc<Mutex<VecDeque<u64>>>);

impl MisplacedQuotes {
    /// Whether there are some before an offset, which are removed.
    pub(super) fn take_before(&self, offset: u64) -> bool {
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = places.len();
        while places.front().is_some_and(|place| *place < offset) {
            places.pop_front();
        }
        places.len() < before
    }

    fn add(&self, offset: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(offset);
    }
}

/// Follows the quotes of a stream of CSV.
#[derive(Debug)]
pub(super) struct QuoteScanner {
    delimiter: u8,
    is_quoted: bool,
    /// Whether the last byte was a quote within quotes: the end of a field, or the first of two.
    is_open: bool,
    /// The last byte; `None` at the start.
    last: Option<u8>,
    offset: u64,
    misplaced: MisplacedQuotes,
}

/// Counts a byte in runs of 255 bytes, whose sums fit into a byte: processors add many bytes at a
/// time.
pub(super) fn count_of(byte: u8, bytes: &[u8]) -> usize {
    let in_run = |run: &[u8]| run.iter().map(|next| u8::from(*next == byte)).sum::<u8>();
    bytes.chunks(usize::from(u8::MAX)).map(|run| usize::from(in_run(run))).sum()
}

pub(super) fn quotes_in(bytes: &[u8]) -> usize {
    count_of(b'"', bytes)
}

pub(super) const BOM: &[u8] = "\u{feff}".as_bytes();

impl QuoteScanner {
    pub(super) fn new(delimiter: u8, misplaced: MisplacedQuotes) -> Self {
        Self { delimiter, is_quoted: false, is_open: false, last: None, offset: 0, misplaced }
    }

    /// Looks at the next bytes, of which `quotes` are quotes.
    pub(super) fn see(&mut self, bytes: &[u8], quotes: usize) {
        if quotes > 0 || self.is_open {
            self.follow(bytes);
        }
        self.last = bytes.last().copied().or(self.last);
        self.offset += bytes.len() as u64;
    }

    /// Whether the bytes so far end within quotes, which then lack their closing quote.
    pub(super) fn is_within_quotes(&self) -> bool {
        self.is_quoted && !self.is_open
    }

    fn follow(&mut self, bytes: &[u8]) {
        let mut at = 0;
        if self.is_open
            && let Some(next) = bytes.first()
        {
            self.is_open = false;
            at = self.end_or_double(*next, self.offset);
        }
        while let Some(offset) = bytes.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'"')) {
            let quote = at + offset;
            at = quote + 1;
            if !self.is_quoted {
                let before = quote.checked_sub(1).and_then(|before| bytes.get(before)).copied().or(self.last);
                let is_start = before.is_none_or(|before| self.ends_field(before));
                let is_after_bom = self.offset == 0 && bytes.get(..quote) == Some(BOM);
                self.is_quoted = is_start || is_after_bom;
            } else if let Some(next) = bytes.get(at) {
                at += self.end_or_double(*next, self.offset + at as u64);
            } else {
                self.is_open = true;
            }
        }
    }

    fn ends_field(&self, byte: u8) -> bool {
        byte == self.delimiter || byte == b'\n' || byte == b'\r'
    }

    /// Decides about a quote within quotes by the byte after it. Returns 1 if that is the second of
    /// two quotes.
    fn end_or_double(&mut self, next: u8, offset: u64) -> usize {
        if next == b'"' {
            return 1;
        }
        self.is_quoted = false;
        if !self.ends_field(next) {
            self.misplaced.add(offset);
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn places(chunks: &[&[u8]]) -> Vec<u64> {
        let misplaced = MisplacedQuotes::default();
        let mut scanner = QuoteScanner::new(b',', misplaced.clone());
        chunks.iter().for_each(|chunk| scanner.see(chunk, quotes_in(chunk)));
        let places = misplaced.0.lock().unwrap();
        places.iter().copied().collect()
    }

    #[test]
    fn text_after_a_closing_quote_is_misplaced() {
        for (text, expected) in [
            ("a,\"b\",c\n\"d\"\n", vec![]),
            ("\"a\"\"b\",\"\",\"\"\"\"\r\n", vec![]),
            ("a\"b\"c,5\"\n", vec![]),
            ("\u{feff}\"a\",b\n", vec![]),
            ("\"5\"6,1\n", vec![3]),
            ("x,\"a\" ,1\n\"b\"c\n", vec![5, 12]),
            ("\"a,\n\"b\"", vec![5]),
        ] {
            assert_eq!(places(&[text.as_bytes()]), expected, "{text}");
        }
    }

    #[test]
    fn quotes_are_open_until_a_single_quote_ends_them() {
        for (text, is_open) in [
            ("", false),
            ("a,\"", true),
            ("a,\"b\n", true),
            ("a,\"b\"", false),
            ("a,\"b\"\"", true),
            ("a,\"b\"\"\"", false),
            ("5\" disk\n", false),
            ("5\" disk,\"b\n", true),
            ("\"b\"c,d\n", false),
        ] {
            let mut scanner = QuoteScanner::new(b',', MisplacedQuotes::default());
            for byte in text.as_bytes() {
                scanner.see(&[*byte], usize::from(*byte == b'"'));
            }
            assert_eq!(scanner.is_within_quotes(), is_open, "{text}");
        }
    }

    #[test]
    fn quotes_of_long_chunks_are_counted() {
        for (quotes, others) in [(0, 0), (1, 0), (255, 0), (256, 700), (1_000, 3), (0, 600)] {
            let bytes = ["\"".repeat(quotes), "x".repeat(others), "\"".repeat(quotes)].concat();
            assert_eq!(quotes_in(bytes.as_bytes()), 2 * quotes);
        }
    }

    proptest! {
        #[test]
        fn chunks_of_any_length_are_one_stream(text in "[a,\"\n]{0,40}", cut in 0..40usize, other in 0..40usize) {
            let bytes = text.as_bytes();
            let (one, two) = (cut.min(other).min(bytes.len()), cut.max(other).min(bytes.len()));
            let parts = [&bytes[..one], &bytes[one..two], &bytes[two..]];
            prop_assert_eq!(places(&parts), places(&[bytes]));
        }
    }
}
