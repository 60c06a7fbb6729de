//! Points in time and UUIDs in arbitrary spellings, against a calendar, another reader and their
//! bits.

use arrow::array::AsArray;
use arrow::datatypes::{Date32Type, TimestampMicrosecondType, TimestampMillisecondType};
use proptest::prelude::*;

use super::calendar::{DAY, Moment, moments};
use super::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn instants_are_those_of_the_calendar(at in moments()) {
        let expected = at.micros();
        let text = at.text();
        prop_assert_eq!(usual::<TimestampMicrosecondType>(&text, ColumnType::Timestamp64), expected, "{}", text);
        let whole = expected.filter(|micros| micros % 1_000_000 == 0).map(|micros| micros / 1000);
        prop_assert_eq!(usual::<TimestampMillisecondType>(&text, ColumnType::Datetime64), whole, "{}", text);
        let days = expected.filter(|micros| micros % DAY == 0).map(|micros| (micros / DAY) as i32);
        prop_assert_eq!(usual::<Date32Type>(&text, ColumnType::Date32), days, "{}", text);
        // The same instants, read with a declared format.
        if at.zone.is_none() && at.time.is_some() && at.year < 10_000 {
            let declared = format("%Y-%m-%dT%H:%M:%S%.f");
            let text = Moment { separator: 'T', slash: false, ..at.clone() }.text();
            prop_assert_eq!(value::<TimestampMicrosecondType>(&text, ColumnType::Timestamp64, &declared), expected, "{}", text);
        }
    }

    #[test]
    fn instants_agree_with_another_reader_of_rfc_3339(at in moments(), change in any::<prop::sample::Index>(), with in "[0-9TZ:+. -]") {
        let mut text = Moment { separator: 'T', slash: false, ..at }.text();
        let place = change.index(text.len());
        text.replace_range(place..=place, &with);
        // The other reader accepts leap seconds, and cuts digits after the ninth.
        let digits = text.split_once('.').map_or(0, |(_, after)| after.bytes().take_while(u8::is_ascii_digit).count());
        if let Ok(other) = chrono::DateTime::parse_from_rfc3339(&text)
            && other.timestamp_subsec_nanos() < 1_000_000_000
            && digits <= 9
        {
            let exact = (other.timestamp_subsec_nanos() % 1000 == 0).then(|| other.timestamp_micros());
            prop_assert_eq!(usual::<TimestampMicrosecondType>(&text, ColumnType::Timestamp64), exact, "{}", text);
        }
    }

    #[test]
    fn uuids_are_128_bits_in_hexadecimal(bits: u128, change in prop::option::of((any::<prop::sample::Index>(), "[0-9a-gA-F{}: -]"))) {
        let digits = format!("{bits:032x}");
        let hyphens = format!("{}-{}-{}-{}-{}", &digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]);
        for mut text in [digits.clone(), hyphens.clone(), hyphens.to_uppercase(), format!("{{{hyphens}}}"), format!("urn:uuid:{hyphens}")] {
            let written = text.clone();
            if let Some((at, with)) = &change {
                let at = at.index(text.len());
                text.replace_range(at..=at, with);
            }
            let parsed = column(&text, ColumnType::Uuid, &TextFormat::default());
            let bytes = parsed.faults.is_empty().then(|| parsed.values.as_fixed_size_binary().value(0).to_vec());
            // Accepted text has the same form, and its own digits.
            let bare = |text: &str| match text.get(..9) {
                Some(urn) if urn.eq_ignore_ascii_case("urn:uuid:") => text[9..].to_owned(),
                _ => text.to_owned(),
            };
            let hex = |text: &str| bare(text).chars().filter(char::is_ascii_hexdigit).collect::<String>();
            match bytes {
                Some(bytes) => prop_assert_eq!(u128::from_str_radix(&hex(&text), 16).ok(), bytes.try_into().ok().map(u128::from_be_bytes), "{}", text),
                None => prop_assert!(text != written, "{}", text),
            }
        }
    }
}
