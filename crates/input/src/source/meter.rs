//! Share of the inputs that has been read, for progress bars.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::source::input_path::InputPath;

/// Bytes of inputs, as stored, that have been read. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<AtomicU64>);

/// Reading options are equal whatever has been read.
impl PartialEq for Meter {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Meter {}

impl Meter {
    /// Returns the number of bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Begins to count again.
    pub(super) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// Reading of inputs whose size is known.
#[derive(Debug, Clone)]
pub struct Reading {
    /// Bytes read so far.
    pub meter: Meter,
    /// Bytes of all inputs.
    pub bytes: u64,
}

impl Reading {
    /// Returns the reading of some inputs; `None` unless all are local files.
    #[must_use]
    pub fn start(inputs: &[InputPath], meter: &Meter) -> Option<Self> {
        let bytes = |input: &InputPath| match input {
            InputPath::File(path) | InputPath::Copy { path, .. } => {
                std::fs::metadata(path).ok().filter(|file| file.is_file()).map(|file| file.len())
            }
            InputPath::Stdin | InputPath::Remote(_) => None,
        };
        let bytes = inputs.iter().map(bytes).sum::<Option<u64>>().filter(|bytes| *bytes > 0)?;
        Some(Self { meter: meter.clone(), bytes })
    }

    /// Returns the share that has been read, 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        (self.meter.bytes() as f64 / self.bytes.max(1) as f64).min(1.0)
    }
}

/// Counts the bytes that are read through it.
pub(super) struct MeteredReader<R> {
    pub(super) inner: R,
    pub(super) meter: Meter,
}

impl<R: Read> Read for MeteredReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.meter.add(count as u64);
        Ok(count)
    }
}

/// Counts the bytes of a file that is read by parts, from its rows: the share of the rows is the
/// share of the bytes.
pub(super) struct RowMeter {
    meter: Meter,
    bytes: u64,
    /// Number of all rows, if it is known before they are read.
    all_rows: Option<u64>,
    rows: u64,
    counted: u64,
}

impl RowMeter {
    pub(super) fn new(meter: Meter, bytes: u64, all_rows: Option<u64>) -> Self {
        Self { meter, bytes, all_rows, rows: 0, counted: 0 }
    }

    /// Counts rows; `None` at the end of the file.
    pub(super) fn add(&mut self, rows: Option<u64>) {
        let share = match (rows, self.all_rows) {
            (None, _) => 1.0,
            (Some(_), None) => return,
            (Some(rows), Some(all)) => {
                self.rows += rows;
                (self.rows as f64 / all.max(1) as f64).min(1.0)
            }
        };
        let now = (self.bytes as f64 * share) as u64;
        self.meter.add(now.saturating_sub(self.counted));
        self.counted = self.counted.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_count_as_their_share_of_the_bytes_and_the_end_as_all() {
        let meter = Meter::default();
        let mut known = RowMeter::new(meter.clone(), 1000, Some(40));
        known.add(Some(10));
        assert_eq!(meter.bytes(), 250);
        known.add(Some(40));
        assert_eq!(meter.bytes(), 1000, "more rows than the file says");
        known.add(None);
        assert_eq!(meter.bytes(), 1000);
        let mut unknown = RowMeter::new(meter.clone(), 500, None);
        unknown.add(Some(7));
        assert_eq!(meter.bytes(), 1000);
        unknown.add(None);
        assert_eq!(meter.bytes(), 1500);
        let reading = Reading { meter: meter.clone(), bytes: 3000 };
        assert_eq!(reading.share(), 0.5);
        meter.reset();
        let mut text = MeteredReader { inner: &b"abcdef"[..], meter: meter.clone() };
        assert_eq!((text.read(&mut [0; 4]).unwrap(), meter.bytes()), (4, 4));
    }
}
