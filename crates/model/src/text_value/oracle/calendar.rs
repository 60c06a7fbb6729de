//! A calendar that counts day by day.

use proptest::prelude::*;

use super::numbers::scaled;

pub(super) const DAY: i64 = 86_400_000_000;

/// Parts of a point in time, some of them out of range.
#[derive(Debug, Clone)]
pub(super) struct Moment {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    /// Hour, minute, second and the digits of a fraction.
    pub(super) time: Option<(i64, i64, i64, String)>,
    /// Sign, hours and minutes.
    pub(super) zone: Option<(char, i64, i64)>,
    pub(super) separator: char,
    pub(super) slash: bool,
}

pub(super) fn moments() -> impl Strategy<Value = Moment> {
    let time = (
        prop_oneof![0i64..24, 23i64..26],
        prop_oneof![0i64..60, 58i64..62],
        prop_oneof![0i64..60, 58i64..62],
        "|[0-9]{1,6}|[0-9]{1,9}0{0,4}|[0-9]{6}0{0,20}[0-9]?",
    );
    let zone = (
        prop_oneof![Just('+'), Just('-')],
        prop_oneof![0i64..15, 20i64..30, Just(99)],
        prop_oneof![0i64..60, 55i64..100],
    );
    let date = (prop_oneof![1970i64..2105, 0i64..10_000], 0i64..14, prop_oneof![1i64..29, 0i64..33]);
    (
        date,
        prop::option::weighted(0.9, time),
        prop::option::of(zone),
        prop_oneof![Just('T'), Just(' '), Just('t')],
        any::<bool>(),
    )
        .prop_map(|((year, month, day), time, zone, separator, slash)| {
            let zone = zone.filter(|_| time.is_some());
            Moment { year, month, day, time, zone, separator, slash }
        })
}

impl Moment {
    pub(super) fn text(&self) -> String {
        let line = if self.slash { '/' } else { '-' };
        let mut text = format!("{:04}{line}{:02}{line}{:02}", self.year, self.month, self.day);
        if let Some((hour, minute, second, fraction)) = &self.time {
            text += &format!("{}{hour:02}:{minute:02}:{second:02}", self.separator);
            if !fraction.is_empty() {
                text += &format!(".{fraction}");
            }
        }
        if let Some((sign, hours, minutes)) = self.zone {
            text += &format!("{sign}{hours:02}:{minutes:02}");
        }
        text
    }

    /// Returns microseconds since 1970, counted day by day from year to year; `None` for dates and
    /// times that do not exist.
    pub(super) fn micros(&self) -> Option<i64> {
        let leap = |year: i64| (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let lengths = [31, if leap(self.year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let length = usize::try_from(self.month - 1).ok().and_then(|month| lengths.get(month))?;
        (1..=*length).contains(&self.day).then_some(())?;
        let length_of = |year| if leap(year) { 366 } else { 365 };
        let years: i64 = match self.year {
            later if later >= 1970 => (1970..later).map(length_of).sum(),
            earlier => -(earlier..1970).map(length_of).sum::<i64>(),
        };
        let days = years + lengths[..self.month as usize - 1].iter().sum::<i64>() + self.day - 1;
        let mut micros = days * DAY;
        if let Some((hour, minute, second, fraction)) = &self.time {
            if *hour > 23 || *minute > 59 || *second > 59 {
                return None;
            }
            micros += ((hour * 60 + minute) * 60 + second) * 1_000_000;
            micros += i64::try_from(scaled(&format!("0.{fraction}"), 6)?).ok()?;
        }
        if let Some((sign, hours, minutes)) = self.zone {
            if hours > 23 || minutes > 59 {
                return None;
            }
            let offset = (hours * 60 + minutes) * 60_000_000;
            micros += if sign == '+' { -offset } else { offset };
        }
        Some(micros)
    }
}

#[test]
fn the_calendar_of_these_tests_is_right() {
    let at =
        |year, month, day| Moment { year, month, day, time: None, zone: None, separator: 'T', slash: false };
    assert_eq!(at(1970, 1, 1).micros(), Some(0));
    assert_eq!(at(2026, 1, 31).micros(), Some(1_769_817_600_000_000));
    assert_eq!(at(1969, 12, 31).micros(), Some(-DAY));
    assert_eq!(at(2000, 2, 29).micros(), Some(951_782_400_000_000));
    for (year, month, day) in
        [(1900, 2, 29), (2026, 2, 29), (2026, 4, 31), (2026, 0, 1), (2026, 13, 1), (2026, 1, 0)]
    {
        assert_eq!(at(year, month, day).micros(), None);
    }
}
