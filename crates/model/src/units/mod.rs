//! Ids and units. Plain numbers get a type as soon as they have a meaning.

mod count;
mod duration;

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bounded::quote;
pub use crate::units::count::{count, counted};
pub use crate::units::duration::{Micros, MicrosError, elapsed};
pub(crate) use crate::units::duration::{decimal_seconds, micros_of_decimal_seconds};

/// Number of one hash partition of a table, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
#[serde(transparent)]
pub struct PartitionId(pub u32);

impl PartitionId {
    /// Returns the id as an index into a per-partition vector.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PartitionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Number of partitions of a table: 1 to [`PartitionCount::MAX`], fixed when the table is declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct PartitionCount(NonZeroU32);

/// A partition count outside 1 to [`PartitionCount::MAX`].
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a table has 1 to {} partitions, not {found}", PartitionCount::MAX)]
pub struct PartitionCountError {
    /// The requested count.
    pub found: u64,
}

impl PartitionCount {
    /// The largest count. One partition takes about 1 MB/s of inserts, so this amounts to 100 GB/s.
    pub const MAX: u32 = 100_000;
    /// One partition.
    pub const ONE: Self = Self(NonZeroU32::MIN);
    /// Partitions per node in the sizing rule of the YDB documentation (nodes x 4).
    pub const PER_NODE: u32 = 4;

    /// Checks a count.
    ///
    /// # Errors
    /// [`PartitionCountError`] for 0 and for more than [`PartitionCount::MAX`].
    pub fn new(count: u64) -> Result<Self, PartitionCountError> {
        u32::try_from(count)
            .ok()
            .filter(|count| *count <= Self::MAX)
            .and_then(NonZeroU32::new)
            .map(Self)
            .ok_or(PartitionCountError { found: count })
    }

    /// Applies the sizing rule of the YDB documentation: nodes x 4.
    ///
    /// # Errors
    /// [`PartitionCountError`] if the product is outside the limits.
    pub fn for_nodes(nodes: u64) -> Result<Self, PartitionCountError> {
        Self::new(nodes.saturating_mul(u64::from(Self::PER_NODE)))
    }

    /// Returns the count as a number, at least 1.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// Returns the count as a length.
    #[must_use]
    pub fn len(self) -> usize {
        self.0.get() as usize
    }

    /// Always false; the counterpart of [`PartitionCount::len`].
    #[must_use]
    pub fn is_empty(self) -> bool {
        false
    }

    /// Returns all partitions, in order.
    pub fn ids(self) -> impl Iterator<Item = PartitionId> {
        (0..self.get()).map(PartitionId)
    }
}

impl fmt::Display for PartitionCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<u32> for PartitionCount {
    type Error = PartitionCountError;
    fn try_from(count: u32) -> Result<Self, Self::Error> {
        Self::new(u64::from(count))
    }
}

impl From<PartitionCount> for u32 {
    fn from(count: PartitionCount) -> Self {
        count.get()
    }
}

/// Number of a commit. Version 0 declares the table; each later commit adds one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub u64);

impl Version {
    /// The version that declares a table.
    pub const FIRST: Self = Self(0);

    /// Returns the version after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes per second; printed with decimal units, like the rates in the YDB documentation: `1.5
/// MB/s`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct ByteRate(pub f64);

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = match self.0 {
            large if large >= 1e9 => (1e9, "GB"),
            medium if medium >= 1e5 => (1e6, "MB"),
            small if small >= 1e3 => (1e3, "kB"),
            none if none <= 0.0 => return f.write_str("0 B/s"),
            hardly if hardly < 0.05 => return f.write_str("less than 0.1 B/s"),
            little if little < 9.95 => return write!(f, "{little:.1} B/s"),
            few => return write!(f, "{few:.0} B/s"),
        };
        write!(f, "{:.1} {unit}/s", self.0 / size)
    }
}

/// A size in bytes. Parses `64MiB`, `1GiB`, `500MB`, `1024`; prints with binary units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// Creates a size of `n` mebibytes.
    #[must_use]
    pub const fn mib(n: u64) -> Self {
        Self(n << 20)
    }

    /// Returns the size as a length in memory.
    #[must_use]
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut units = UNITS.iter();
        let mut unit = units.next();
        while value >= 1024.0 {
            let Some(larger) = units.next() else { break };
            unit = Some(larger);
            value /= 1024.0;
        }
        write!(f, "{value:.1} {}", unit.copied().unwrap_or_default())
    }
}

/// A size that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{found}' is not a size; write a number with B, KB, MB, GB, KiB, MiB or GiB, such as 512MiB", found = quote(found))]
pub struct ByteSizeError {
    /// The text that was given.
    pub found: String,
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ByteSizeError { found: text.to_owned() };
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let factor: f64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1.0,
            "k" | "kib" => 1024.0,
            "kb" => 1e3,
            "m" | "mib" => 1024.0 * 1024.0,
            "mb" => 1e6,
            "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
            "gb" => 1e9,
            "t" | "tib" => 1024.0f64.powi(4),
            "tb" => 1e12,
            _ => return Err(error()),
        };
        let number: f64 = number.parse().map_err(|_| error())?;
        let bytes = number * factor;
        if bytes.is_finite() && bytes < u64::MAX as f64 { Ok(Self(bytes as u64)) } else { Err(error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_count_is_checked_at_both_ends() {
        assert_eq!(PartitionCount::new(0), Err(PartitionCountError { found: 0 }));
        assert_eq!(PartitionCount::new(1).unwrap().get(), 1);
        assert_eq!(PartitionCount::new(100_000).unwrap().get(), 100_000);
        assert_eq!(PartitionCount::new(100_001), Err(PartitionCountError { found: 100_001 }));
        assert_eq!(PartitionCount::for_nodes(4).unwrap().get(), 16);
        assert!(PartitionCount::for_nodes(u64::MAX).is_err());
    }

    #[test]
    fn sizes_parse_with_decimal_and_binary_units() {
        for (text, bytes) in
            [("0", 0), ("1024", 1024), ("1KiB", 1024), ("1 kb", 1000), ("1.5GiB", 1_610_612_736)]
        {
            assert_eq!(text.parse(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in ["", "GiB", "1x", "-1", "1e3", "1..2"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_print_with_binary_units() {
        assert_eq!(ByteSize(1023).to_string(), "1023 B");
        assert_eq!(ByteSize(1024).to_string(), "1.0 KiB");
        assert_eq!(ByteSize::mib(1536).to_string(), "1.5 GiB");
    }
}
