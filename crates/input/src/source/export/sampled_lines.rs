//! Lines and batches of a sample, thinned so that they are spread over all that was read.

use std::io::{self, BufRead, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::source::format::MAX_RECORD_BYTES;
use crate::source::stream::buffered;

/// Maximum number of rows and bytes of one place.
#[derive(Clone, Copy)]
pub(super) struct Block {
    pub(super) rows: usize,
    pub(super) bytes: usize,
}

/// Keeps every n-th of the offered items; n grows so that at most twice the wanted number is kept.
pub(super) struct Thinned<T> {
    kept: Vec<T>,
    wanted: usize,
    every: u64,
    offered: u64,
}

impl<T> Thinned<T> {
    pub(super) fn new(wanted: usize) -> Self {
        Self { kept: Vec::new(), wanted: wanted.max(1), every: 1, offered: 0 }
    }

    /// Whether the next offered item would be kept.
    fn keeps_next(&self) -> bool {
        self.offered.is_multiple_of(self.every)
    }

    pub(super) fn offer(&mut self, make: impl FnOnce() -> T) {
        if self.keeps_next() && self.kept.len() >= 2 * self.wanted {
            let mut number = 0;
            self.kept.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.every *= 2;
        }
        if self.keeps_next() {
            self.kept.push(make());
        }
        self.offered += 1;
    }

    /// Returns the wanted number of items, including the first and the last.
    pub(super) fn finish(self) -> Vec<T> {
        let (count, wanted) = (self.kept.len(), self.wanted);
        if count <= wanted {
            return self.kept;
        }
        let chosen = |place: usize| if wanted == 1 { count / 2 } else { place * (count - 1) / (wanted - 1) };
        let mut chosen = (0..wanted).map(chosen).peekable();
        let is_chosen = |(number, block): (usize, T)| chosen.next_if_eq(&number).map(|_| block);
        self.kept.into_iter().enumerate().filter_map(is_chosen).collect()
    }
}

/// Records of a text file, verbatim.
pub(super) struct Lines {
    /// Header line of CSV.
    pub(super) header: Vec<u8>,
    /// Records of each place.
    pub(super) blocks: Vec<Vec<u8>>,
}

impl Lines {
    /// Reads a whole file. `delimiter` is the CSV delimiter; quoted fields may contain line ends. A
    /// record without an end stops the reading, and so does `stop`.
    pub(super) fn across(
        stream: Box<dyn Read + Send>,
        delimiter: Option<u8>,
        places: usize,
        block: Block,
        stop: &AtomicBool,
    ) -> io::Result<Self> {
        let mut stream = buffered(stream);
        let (mut header, mut record) = (Vec::new(), Vec::new());
        let mut blocks: Thinned<Vec<u8>> = Thinned::new(places);
        let (mut rows, mut text) = (0, Vec::new());
        while !stop.load(Ordering::Relaxed) && next_record(&mut stream, delimiter, &mut record)? {
            if record.trim_ascii().is_empty() {
                continue;
            }
            if delimiter.is_some() && header.is_empty() {
                header.clone_from(&record);
                ended(&mut header);
                continue;
            }
            if blocks.keeps_next() && text.len() < block.bytes {
                text.extend_from_slice(&record);
            }
            rows += 1;
            if rows == block.rows {
                ended(&mut text);
                blocks.offer(|| std::mem::take(&mut text));
                rows = 0;
            }
        }
        if !text.is_empty() {
            ended(&mut text);
            blocks.offer(|| text);
        }
        Ok(Self { header, blocks: blocks.finish() })
    }
}

/// Terminates the last line of a text.
pub(super) fn ended(text: &mut Vec<u8>) {
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
    }
}

/// Reads a record with its line end; returns false at the end of the file, or if the record has no
/// end.
pub(super) fn next_record(
    stream: &mut impl BufRead,
    delimiter: Option<u8>,
    record: &mut Vec<u8>,
) -> io::Result<bool> {
    record.clear();
    let mut inside = false;
    loop {
        let begin = record.len();
        let most = (MAX_RECORD_BYTES + 1).saturating_sub(begin) as u64;
        let count = stream.by_ref().take(most).read_until(b'\n', record)?;
        if record.len() > MAX_RECORD_BYTES {
            return Ok(false);
        }
        if let Some(delimiter) = delimiter {
            inside = ends_inside_quotes(record.get(begin..).unwrap_or_default(), delimiter, inside);
        }
        if count == 0 {
            return Ok(begin > 0 && !inside);
        }
        if !inside {
            return Ok(true);
        }
    }
}

/// Whether a quoted field continues after a line; `inside` says whether one continues into it. A
/// quote opens a field only at its beginning.
pub(super) fn ends_inside_quotes(line: &[u8], delimiter: u8, mut inside: bool) -> bool {
    if !line.contains(&b'"') {
        return inside;
    }
    let mut begins = !inside;
    let mut bytes = line.iter().peekable();
    while let Some(byte) = bytes.next() {
        match (inside, *byte) {
            (true, b'"') => inside = bytes.next_if_eq(&&b'"').is_some(),
            (false, b'"') if begins => inside = true,
            _ => {}
        }
        begins = !inside && *byte == delimiter;
    }
    inside
}
