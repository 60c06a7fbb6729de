//! Durations.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bounded::quote;

/// A duration in microseconds, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "i64", into = "i64")]
pub struct Micros(i64);

/// Text that is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "'{found}' is not a length of time; write a whole number above 0 with us, ms, s, m, h or d, such as 5m", found = quote(found)
)]
pub struct MicrosError {
    found: String,
}

/// Units by size, largest first.
const UNITS: [(&str, i64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

impl Micros {
    /// One second.
    pub const SECOND: Self = Self(1_000_000);
    /// One minute.
    pub const MINUTE: Self = Self(60_000_000);
    /// One hour.
    pub const HOUR: Self = Self(3_600_000_000);
    /// One day.
    pub const DAY: Self = Self(86_400_000_000);

    /// Creates a duration from microseconds; values below 1 become 1.
    #[must_use]
    pub const fn new(micros: i64) -> Self {
        Self(if micros < 1 { 1 } else { micros })
    }

    /// Returns the number of microseconds.
    #[must_use]
    pub fn get(self) -> i64 {
        self.0
    }

    /// Returns the duration in seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Formats the duration as YQL writes it: `P30D`, `PT36H`, `PT0.5S`.
    #[must_use]
    pub fn iso(self) -> String {
        let whole = |micros: Self| self.0 % micros.0 == 0;
        match self {
            days if whole(Self::DAY) => format!("P{}D", days.0 / Self::DAY.0),
            hours if whole(Self::HOUR) => format!("PT{}H", hours.0 / Self::HOUR.0),
            minutes if whole(Self::MINUTE) => format!("PT{}M", minutes.0 / Self::MINUTE.0),
            seconds => format!("PT{}S", decimal_seconds(seconds.0.unsigned_abs())),
        }
    }

    /// Parses an ISO 8601 duration of weeks, days, hours, minutes and seconds, such as `P1DT12H`;
    /// `None` for other text and for a duration of zero.
    #[must_use]
    pub fn from_iso(text: &str) -> Option<Self> {
        let mut rest = text.trim().strip_prefix('P')?;
        let (mut micros, mut of_day, mut smallest) = (0u64, false, i64::MAX);
        while !rest.is_empty() {
            if let (Some(time), false) = (rest.strip_prefix('T').filter(|time| !time.is_empty()), of_day) {
                (rest, of_day) = (time, true);
                continue;
            }
            let (number, after) = rest.split_at(rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?);
            let unit = match (after.chars().next()?, of_day) {
                ('W', false) => 7 * Self::DAY.0,
                ('D', false) => Self::DAY.0,
                ('H', true) => Self::HOUR.0,
                ('M', true) => Self::MINUTE.0,
                ('S', true) => Self::SECOND.0,
                _ => return None,
            };
            // Each unit appears at most once, largest first.
            if unit >= smallest {
                return None;
            }
            smallest = unit;
            micros = micros.checked_add(Decimal::parse(number)?.times(unit.unsigned_abs())?)?;
            rest = after.get(1..)?;
        }
        i64::try_from(micros).ok().filter(|micros| *micros > 0).map(Self)
    }

    /// Returns the number of the slice of this length that contains `at`, counted from 1970.
    #[must_use]
    pub fn slice_of(self, at: i64) -> i64 {
        at.div_euclid(self.0)
    }
}

/// An exact decimal number: `digits` / 10^`decimals`.
struct Decimal {
    digits: u128,
    decimals: u32,
}

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(fraction) {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}").parse().ok()?;
        Some(Self { digits, decimals: u32::try_from(fraction.len()).ok()? })
    }

    /// Multiplies by `unit`; `None` if the product is not a whole number.
    fn times(&self, unit: u64) -> Option<u64> {
        let scale = 10u128.checked_pow(self.decimals)?;
        let product = self.digits.checked_mul(u128::from(unit))?;
        if product.is_multiple_of(scale) { u64::try_from(product / scale).ok() } else { None }
    }
}

/// Formats microseconds as seconds, exactly: 1500000 as `1.5`.
#[must_use]
pub(crate) fn decimal_seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Parses seconds with at most six decimals into microseconds, exactly; `None` for other text,
/// finer values and values that are too large.
#[must_use]
pub(crate) fn micros_of_decimal_seconds(text: &str) -> Option<u64> {
    let seconds = Decimal::parse(text).filter(|seconds| seconds.decimals <= 6)?;
    seconds.times(1_000_000)
}

/// Formats a time span in its two largest units, for use in sentences: `1 h 30 m`.
#[must_use]
pub fn elapsed(micros: i64) -> String {
    let largest = UNITS.iter().position(|(_, size)| micros >= *size);
    let Some((first, rest)) = largest.and_then(|at| UNITS.get(at..)).and_then(<[_]>::split_first) else {
        return format!("{micros} us");
    };
    let mut text = format!("{} {}", micros / first.1, first.0);
    if let Some((name, size)) = rest.first()
        && micros % first.1 >= *size
    {
        text.push_str(&format!(" {} {name}", micros % first.1 / size));
    }
    text
}

impl From<i64> for Micros {
    fn from(micros: i64) -> Self {
        Self::new(micros)
    }
}

impl From<Micros> for i64 {
    fn from(micros: Micros) -> Self {
        micros.get()
    }
}

impl fmt::Display for Micros {
    /// Uses the largest unit that gives a whole number: `5m`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = UNITS.into_iter().find(|(_, size)| self.0 % size == 0).unwrap_or(("us", 1));
        write!(f, "{}{unit}", self.0 / size)
    }
}

impl FromStr for Micros {
    type Err = MicrosError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || MicrosError { found: text.to_owned() };
        let trimmed = text.trim();
        let digits = trimmed.find(|c: char| !c.is_ascii_digit()).ok_or_else(error)?;
        let (number, unit) = trimmed.split_at_checked(digits).ok_or_else(error)?;
        let number: i64 = number.parse().map_err(|_| error())?;
        let (_, size) = UNITS.into_iter().find(|(name, _)| *name == unit.trim()).ok_or_else(error)?;
        number.checked_mul(size).filter(|micros| *micros > 0).map(Self).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn microseconds_survive_as_decimal_seconds(micros: u64) {
            prop_assert_eq!(micros_of_decimal_seconds(&decimal_seconds(micros)), Some(micros));
        }

        #[test]
        fn lengths_survive_as_text(micros in prop_oneof![1..=i64::MAX, 1..10_000_000_000i64]) {
            let length = Micros::new(micros);
            prop_assert_eq!(Micros::from_iso(&length.iso()), Some(length));
            prop_assert_eq!(length.to_string().parse::<Micros>(), Ok(length));
        }
    }

    #[test]
    fn seconds_have_six_decimals_at_most() {
        for (text, micros) in [
            ("60", 60_000_000),
            ("0.000001", 1),
            ("0.569999", 569_999),
            ("1.50", 1_500_000),
            ("18446744073709.551615", u64::MAX),
        ] {
            assert_eq!(micros_of_decimal_seconds(text), Some(micros), "{text}");
        }
        for text in
            ["", ".", "-1", "+1", "1e3", "nan", "0.0000001", "1.2.3", "18446744073709.551616", "\u{663}"]
        {
            assert_eq!(micros_of_decimal_seconds(text), None, "{text}");
        }
    }

    #[test]
    fn lengths_print_as_they_parse() {
        for text in ["1us", "1500us", "15ms", "90s", "5m", "36h", "7d"] {
            assert_eq!(text.parse::<Micros>().unwrap().to_string(), text);
        }
        assert_eq!("60s".parse::<Micros>().unwrap().to_string(), "1m");
        for text in ["", "5", "m", "0s", "-1s", "1 week", "99999999999999d"] {
            assert!(text.parse::<Micros>().is_err(), "{text}");
        }
    }

    #[test]
    fn iso_lengths_print_as_they_parse() {
        for text in ["P30D", "PT36H", "PT5M", "PT0.5S", "PT90S"] {
            assert_eq!(Micros::from_iso(text).unwrap().iso(), text);
        }
        assert_eq!(Micros::from_iso("P1DT12H"), Some(Micros(36 * 3_600_000_000)));
        assert_eq!(Micros::from_iso("P1W"), Some(Micros(7 * 86_400_000_000)));
        assert_eq!(Micros::from_iso("P0.5DT0.1H"), Some(Micros(43_560_000_000)));
        assert_eq!(Micros::from_iso("PT0.0000010S"), Some(Micros(1)));
        assert_eq!(Micros::from_iso("PT0.0000005S"), None);
        assert_eq!(Micros::from_iso("PT9223372036854.775808S"), None);
        for text in [
            "",
            "P",
            "PT",
            "30D",
            "P30",
            "P1M",
            "PT1D",
            "P1DT1HT1M",
            "P1DT",
            "PT1H2H",
            "PT1M1H",
            "P1D1W",
            "PT1.2.3S",
            "P\u{e9}D",
            "P-1D",
        ] {
            assert_eq!(Micros::from_iso(text), None, "{text}");
        }
    }

    #[test]
    fn spans_read_well() {
        let spans = [0, 999, 1_000, 1_500, 61_000_000, 3_600_000_000, 90_061_000_000].map(elapsed);
        assert_eq!(spans, ["0 us", "999 us", "1 ms", "1 ms 500 us", "1 m 1 s", "1 h", "1 d 1 h"]);
    }

    #[test]
    fn slices_before_1970_are_numbered_downward() {
        assert_eq!(Micros::HOUR.slice_of(-1), -1);
        assert_eq!(Micros::HOUR.slice_of(0), 0);
    }
}
