//! Blank lines between records, which readers of CSV skip without counting them for the next
//! record.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Blank lines that follow each other, as offsets into the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    start: u64,
    end: u64,
    lines: u64,
}

/// Blank lines of a stream, in the order of their offsets.
#[derive(Debug, Clone, Default)]
pub(super) struct BlankLines(Arc<Mutex<VecDeque<Run>>>);

impl BlankLines {
    /// Returns the number of blank lines that begin at an offset, or right after a line feed there,
    /// and forgets those before it: they are within quotes.
    pub(super) fn take_at(&self, offset: u64) -> u64 {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while runs.front().is_some_and(|run| run.end <= offset) {
            runs.pop_front();
        }
        match runs.front() {
            Some(run) if run.start <= offset + 1 => run.lines,
            _ => 0,
        }
    }

    fn add(&self, start: u64, end: u64) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match runs.back_mut() {
            Some(last) if last.end == start => {
                last.end = end;
                last.lines += 1;
            }
            _ => runs.push_back(Run { start, end, lines: 1 }),
        }
    }
}

/// Place within a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    /// After a carriage return that begins a line.
    CarriageReturn,
    Within,
}

/// Finds the blank lines of a stream.
#[derive(Debug)]
pub(super) struct BlankLineScanner {
    place: Place,
    /// Offset at which the line begins; holds at its start and after a carriage return.
    line_start: u64,
    offset: u64,
    blank: BlankLines,
}

impl BlankLineScanner {
    pub(super) fn new(blank: BlankLines) -> Self {
        Self { place: Place::Start, line_start: 0, offset: 0, blank }
    }

    /// Looks at the next bytes.
    pub(super) fn see(&mut self, bytes: &[u8]) {
        // Nearly all chunks have none, which takes no branch for each byte.
        let next = bytes.get(1..).unwrap_or_default();
        let is_end = |(byte, next): (&u8, &u8)| (*byte == b'\n') & ((*next == b'\n') | (*next == b'\r'));
        if self.place != Place::Within || bytes.iter().zip(next).fold(false, |any, pair| any | is_end(pair)) {
            self.follow(bytes);
        } else if bytes.last() == Some(&b'\n') {
            (self.place, self.line_start) = (Place::Start, self.offset + bytes.len() as u64);
        }
        self.offset += bytes.len() as u64;
    }

    fn follow(&mut self, bytes: &[u8]) {
        for (next, byte) in (self.offset + 1..).zip(bytes) {
            match byte {
                b'\n' => {
                    if self.place != Place::Within {
                        self.blank.add(self.line_start, next);
                    }
                    (self.place, self.line_start) = (Place::Start, next);
                }
                b'\r' if self.place == Place::Start => self.place = Place::CarriageReturn,
                _ => self.place = Place::Within,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn runs(chunks: &[&[u8]]) -> Vec<(u64, u64, u64)> {
        let blank = BlankLines::default();
        let mut scanner = BlankLineScanner::new(blank.clone());
        chunks.iter().for_each(|chunk| scanner.see(chunk));
        let runs = blank.0.lock().unwrap();
        runs.iter().map(|run| (run.start, run.end, run.lines)).collect()
    }

    #[test]
    fn blank_lines_are_lines_of_nothing_or_a_carriage_return() {
        for (text, expected) in [
            ("", vec![]),
            ("a\nb\n", vec![]),
            ("a\r\nb\r\n", vec![]),
            ("a\n\nb\n", vec![(2, 3, 1)]),
            ("a\r\n\r\n\r\nb\r\n", vec![(3, 7, 2)]),
            ("\n\na\n \n\r\n", vec![(0, 2, 2), (6, 8, 1)]),
            ("a\n\rb\n", vec![]),
        ] {
            assert_eq!(runs(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_counted_at_the_place_where_they_begin() {
        let blank = BlankLines::default();
        let mut scanner = BlankLineScanner::new(blank.clone());
        scanner.see(b"a\n\"x\n\ny\"\n\n\nb\n");
        // The first one is within quotes, in the record that begins at 2.
        assert_eq!([blank.take_at(2), blank.take_at(9), blank.take_at(13)], [0, 2, 0]);
    }

    proptest! {
        #[test]
        fn chunks_change_nothing(text in "[a\r\n]{0,40}", cut in 0_usize..41) {
            let bytes = text.as_bytes();
            let (head, tail) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(runs(&[head, tail]), runs(&[bytes]));
            // Computed another way: lines between line feeds.
            let lines: Vec<&str> = text.split('\n').collect();
            let ended = lines.len() - 1;
            let blank = lines.iter().take(ended).filter(|line| line.is_empty() || **line == "\r").count();
            prop_assert_eq!(runs(&[bytes]).iter().map(|run| run.2).sum::<u64>(), blank as u64);
        }
    }
}
