//! Smallest and largest values in the form of Parquet's statistics.

use parquet::basic::Type;
use parquet::data_type::ByteArray;
use parquet::file::statistics::{Statistics, ValueStatistics};

/// Maximum bytes of a text in statistics, which is the library's default.
const LONGEST: usize = 64;

/// Bound on values: the value itself, or derived from its beginning if it is long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) bytes: Vec<u8>,
    pub(super) exact: bool,
}

/// Returns a bound that is at most `value`, and close to it.
pub(super) fn lower(value: &[u8], text: bool) -> Bound {
    match cut(value, text) {
        Some(cut) => Bound { bytes: cut.to_vec(), exact: false },
        None => Bound { bytes: value.to_vec(), exact: true },
    }
}

/// Returns a bound that is at least `value`, and close to it: if the value is cut, the last
/// character or byte that has a successor is incremented.
pub(super) fn upper(value: &[u8], text: bool) -> Bound {
    let raised = cut(value, text).and_then(|cut| match std::str::from_utf8(cut) {
        Ok(characters) if text => raise_text(characters),
        _ => raise_bytes(cut),
    });
    match raised {
        Some(bytes) => Bound { bytes, exact: false },
        None => Bound { bytes: value.to_vec(), exact: true },
    }
}

/// Returns the beginning of a value that is too long, in whole characters if it is text.
fn cut(value: &[u8], text: bool) -> Option<&[u8]> {
    if value.len() <= LONGEST {
        return None;
    }
    match std::str::from_utf8(value) {
        Ok(characters) if text => value.get(..characters.floor_char_boundary(LONGEST)),
        _ => value.get(..LONGEST),
    }
}

fn raise_text(text: &str) -> Option<Vec<u8>> {
    text.char_indices().rev().find_map(|(at, character)| {
        // Surrogates are not characters.
        let next = if character == '\u{D7FF}' { '\u{E000}' } else { char::from_u32(character as u32 + 1)? };
        Some(format!("{}{next}", text.get(..at)?).into_bytes())
    })
}

fn raise_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
    let at = bytes.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut raised = bytes.get(..=at)?.to_vec();
    *raised.last_mut()? += 1;
    Some(raised)
}

/// Builds the statistics of a column chunk. `unsigned` values are ordered as such. Without a
/// `range` there are only NULLs.
pub(super) fn chunk_statistics(
    physical: Type,
    unsigned: bool,
    range: Option<(Bound, Bound)>,
    nulls: u64,
) -> Statistics {
    let (min, max) = range.unzip();
    let nulls = Some(nulls);
    let number = |bound: &Bound| {
        let mut bytes = [0; 8];
        bytes.iter_mut().zip(&bound.bytes).for_each(|(to, from)| *to = *from);
        i64::from_le_bytes(bytes)
    };
    match physical {
        Type::INT32 => {
            let (min, max) = (min.as_ref().map(number), max.as_ref().map(number));
            let narrow = |value: i64| value as i32;
            let statistics = ValueStatistics::new(min.map(narrow), max.map(narrow), None, nulls, false);
            Statistics::Int32(statistics.with_backwards_compatible_min_max(!unsigned))
        }
        Type::INT64 => {
            let (min, max) = (min.as_ref().map(number), max.as_ref().map(number));
            let statistics = ValueStatistics::new(min, max, None, nulls, false);
            Statistics::Int64(statistics.with_backwards_compatible_min_max(!unsigned))
        }
        _ => {
            let exact = |bound: &Option<Bound>| bound.as_ref().is_some_and(|bound| bound.exact);
            let (min_exact, max_exact) = (exact(&min), exact(&max));
            let bytes = |bound: Bound| ByteArray::from(bound.bytes);
            let statistics = ValueStatistics::new(min.map(bytes), max.map(bytes), None, nulls, false)
                .with_min_is_exact(min_exact)
                .with_max_is_exact(max_exact);
            Statistics::ByteArray(statistics)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn bounds_enclose_the_value(value in "[a\u{7f}\u{7ff}\u{d7ff}\u{ffff}\u{10ffff}]{0,80}", text: bool) {
            let bytes = value.as_bytes();
            let (low, high) = (lower(bytes, text), upper(bytes, text));
            prop_assert!(low.bytes.as_slice() <= bytes && bytes <= high.bytes.as_slice());
            prop_assert_eq!(low.exact, low.bytes == bytes);
            prop_assert_eq!(high.exact, high.bytes == bytes);
            if text {
                prop_assert!(std::str::from_utf8(&low.bytes).is_ok() && std::str::from_utf8(&high.bytes).is_ok());
            }
            prop_assert!(low.bytes.len() <= LONGEST);
        }
    }

    proptest! {
        #[test]
        fn bounds_are_in_the_order_of_the_values(
            common in "[a\u{7ff}]{55,66}",
            ends in proptest::array::uniform2("[a\u{7ff}\u{d7ff}\u{e000}\u{10ffff}]{0,12}"),
            text: bool,
        ) {
            let mut values = ends.map(|end| format!("{common}{end}"));
            values.sort();
            let [first, second] = values.each_ref().map(|value| value.as_bytes());
            prop_assert!(lower(first, text).bytes <= lower(second, text).bytes);
            prop_assert!(upper(first, text).bytes <= upper(second, text).bytes);
        }
    }

    #[test]
    fn a_bound_that_cannot_be_raised_stays_whole() {
        let highest = [u8::MAX; 70];
        assert_eq!(upper(&highest, false), Bound { bytes: highest.to_vec(), exact: true });
        let ended = [[b'a'; 63].as_slice(), &[u8::MAX; 7]].concat();
        let raised = [[b'a'; 62].as_slice(), b"b"].concat();
        assert_eq!(upper(&ended, false).bytes, raised);
    }
}
