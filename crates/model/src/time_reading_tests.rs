//! Times in ids, epochs and text, and numbers that carry none.

use super::*;
use arrow::array::{Float64Array, StringArray, UInt32Array};

/// 2026-03-01 12:00:00.
const AT: i64 = 1_772_366_400_000_000;

fn detected(array: ArrayRef) -> Option<TimeReading> {
    TimeReading::detect(&array).map(|(reading, ..)| reading)
}

#[test]
fn ids_begin_with_the_time_that_their_specifications_say() {
    // The examples of RFC 9562, A.1 and A.6: 2022-02-22 19:22:22.
    let at = 1_645_557_742_000_000;
    assert_eq!(TimeReading::UuidV1.instant_of_text("C232AB00-9414-11EC-B3C8-9F6BDECED846"), Some(at));
    assert_eq!(TimeReading::UuidV7.instant_of_text("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"), Some(at));
    assert_eq!(TimeReading::UuidV7.instant_of_text("017F22E2-79B0-4CC3-98C4-DC0C0C07398F"), None);
    // The example of the ULID specification: 2016-07-30 23:54:10.259.
    assert_eq!(TimeReading::Ulid.instant_of_text("01ARZ3NDEKTSV4RRFFQ69G5FAV"), Some(1_469_922_850_259_000));
    // MongoDB's documentation of getTimestamp(): 2012-10-15 21:26:17.
    assert_eq!(
        TimeReading::ObjectId.instant_of_text("507c7f79bcf86cd7994f6c0e"),
        Some(1_350_336_377_000_000)
    );
    // Twitter's documentation of ids: 2022-06-28 16:07:40.105.
    assert_eq!(
        TimeReading::Snowflake.instant_of_number(1_541_815_603_606_036_480),
        Some(1_656_432_460_105_000)
    );
}

#[test]
fn epochs_are_told_apart_by_their_size() {
    for (reading, scale) in [
        (TimeReading::Seconds, 1.0e-6),
        (TimeReading::Milliseconds, 1.0e-3),
        (TimeReading::Microseconds, 1.0),
        (TimeReading::Nanoseconds, 1.0e3),
    ] {
        let times = (0..100).map(|i| ((AT + i * 60_000_000) as f64 * scale) as i64);
        let array: ArrayRef = Arc::new(Int64Array::from_iter_values(times));
        assert_eq!(detected(array.clone()), Some(reading));
        let read = reading.instants(&array).unwrap();
        let read = read.as_primitive::<TimestampMicrosecondType>();
        assert!((read.value(99) - AT - 99 * 60_000_000).abs() < 1_000_000, "{reading}");
    }
    let fractions = Float64Array::from_iter_values((0..100).map(|i| 1_772_366_400.25 + f64::from(i)));
    assert_eq!(detected(Arc::new(fractions)), Some(TimeReading::Seconds));
    let seconds = Arc::new(UInt32Array::from_iter_values((0..100).map(|i| 1_772_366_400 + i)));
    assert_eq!(detected(seconds), Some(TimeReading::Seconds));
}

#[test]
fn dates_in_eight_digits_and_times_as_text_are_read() {
    let numbers: Vec<i64> = (0..60).map(|day| 20_251_201 + day / 28 * 100 + day % 28).collect();
    let numbers: Vec<i64> =
        numbers.into_iter().map(|n| if n >= 20_251_300 { n + 8_800 } else { n }).collect();
    let array: ArrayRef = Arc::new(Int64Array::from(numbers.clone()));
    assert_eq!(detected(array.clone()), Some(TimeReading::EightDigits));
    let read = TimeReading::EightDigits.instants(&array).unwrap();
    let read = read.as_primitive::<TimestampMicrosecondType>().values().to_vec();
    // 2025-12-01 is 20,423 days after 1970-01-01.
    assert_eq!(read.first(), Some(&(20_423 * 86_400_000_000)));
    assert_eq!(TimeReading::EightDigits.numbers(&read).unwrap().values().to_vec(), numbers);
    let texts = numbers.iter().map(ToString::to_string);
    assert_eq!(detected(Arc::new(StringArray::from_iter_values(texts))), Some(TimeReading::EightDigits));
    for form in ["2026-03-01T12:00:{:02}Z", "2026-03-01 12:00:{:02}", "2026-03-01T12:00:{:02}.250"] {
        let texts = (0..60).map(|second| form.replace("{:02}", &format!("{second:02}")));
        let array: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let (reading, first, _) = TimeReading::detect(&array).unwrap();
        assert_eq!((reading, first / 1_000_000), (TimeReading::Text, AT / 1_000_000), "{form}");
    }
    let digits = (0..60).map(|at| 20_260_301_120_000 + at / 30 * 100 + at % 30);
    assert_eq!(detected(Arc::new(Int64Array::from_iter_values(digits))), Some(TimeReading::Compact));
    for form in ["20260301-12:00:S.250", "20260301T1200SZ", "20260301 1200S", "202603011200S"] {
        let texts = (0..60).map(|second| form.replace('S', &format!("{second:02}")));
        let array: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let (reading, first, _) = TimeReading::detect(&array).unwrap();
        assert_eq!((reading, first / 1_000_000), (TimeReading::Compact, AT / 1_000_000), "{form}");
    }
    // Numbers of fourteen digits, some of which are not times.
    let ids = Int64Array::from_iter_values((0..60).map(|at| 20_260_301_120_000 + at * 7));
    assert_eq!(detected(Arc::new(ids)), None);
    // Days of January, which are read as such although they could be months.
    for (form, reading) in [
        ("D.01.2026 09:00", TimeReading::DayFirst),
        ("01/D/2026 9:00:00 PM", TimeReading::MonthFirst),
        ("D-JAN-26 09.00.00", TimeReading::MonthName),
    ] {
        for days in [12, 31] {
            let texts = (0..60).map(|at| form.replace('D', &format!("{:02}", at % days + 1)));
            let array: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
            let (detected, first, last) = TimeReading::detect(&array).unwrap();
            assert_eq!((detected, last - first), (reading, (days - 1) * 86_400_000_000), "{form}");
        }
    }
    // The first days of months, which could be days of January.
    let first_days = (0..36).map(|at| format!("01/{:02}/{}", at % 12 + 1, 2024 + at / 12));
    let first_days: ArrayRef = Arc::new(StringArray::from_iter_values(first_days));
    assert_eq!(detected(first_days), Some(TimeReading::DayFirst));
    // Days of the month beyond the last, and other numbers of eight digits.
    for number in [|i: i64| 20_260_201 + i, |i: i64| 10_000_000 + i * 977] {
        assert_eq!(detected(Arc::new(Int64Array::from_iter_values((0..60).map(number)))), None);
    }
    let words = StringArray::from_iter_values((0..60).map(|i| format!("item {i}")));
    assert_eq!(detected(Arc::new(words)), None);
}

#[test]
fn snowflake_ids_of_today_are_not_taken_for_nanoseconds() {
    let id = |at: i64, worker: i64, sequence: i64| {
        ((at / 1_000 - SNOWFLAKE_EPOCH) << SNOWFLAKE_SHIFT) | worker << 12 | sequence
    };
    let mixed = |i: i64| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed()) >> 40) & 0xFFFF;
    for workers in [1, 8, 32] {
        let ids = (0..500).map(|i| id(AT + i * 77_000, mixed(i) % workers, mixed(i + 9) % 4));
        assert_eq!(detected(Arc::new(Int64Array::from_iter_values(ids))), Some(TimeReading::Snowflake));
    }
    let nanoseconds = (0..500).map(|i| (AT + i * 77_000) * 1_000 + mixed(i) % 1_000);
    let nanoseconds = Int64Array::from_iter_values(nanoseconds);
    assert_eq!(detected(Arc::new(nanoseconds)), Some(TimeReading::Nanoseconds));
}

#[test]
fn other_numbers_and_texts_carry_no_time() {
    let numbers: [Box<dyn Fn(i64) -> i64>; 5] = [
        Box::new(|i| i),
        Box::new(|i| 4_111_000_000_000_000 + i * 997),
        Box::new(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed())) & i64::MAX),
        Box::new(|_| 1_772_366_400),
        Box::new(|i| 49_150_000_000 + i * 7919),
    ];
    for number in numbers {
        let array = Arc::new(Int64Array::from_iter_values((0..1000).map(number)));
        assert_eq!(detected(array.clone()), None, "{array:?}");
    }
    let random = |i: u128| i.wrapping_mul(0x2545_F491_4F6C_DD1D_9E37_79B9_7F4A_7C15);
    let texts = |text: fn(u128) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((1..500).map(random).map(text)))
    };
    assert_eq!(
        detected(texts(|n| uuid::Builder::from_random_bytes(n.to_be_bytes()).into_uuid().to_string())),
        None
    );
    assert_eq!(detected(texts(|n| format!("{:024x}", n >> 32))), None);
    assert_eq!(detected(texts(|n| format!("{:026}", n >> 45))), None);
    let few = Arc::new(Int64Array::from_iter_values((0..5).map(|i| 1_772_366_400 + i)));
    assert_eq!(detected(few), None);
}

#[test]
fn numbers_of_documents_that_begin_with_dates_are_no_epochs() {
    // In 10, 13, 16 and 19 digits, as counts since 1970 have.
    for digits in [2, 5, 8, 11] {
        let number =
            |at: i64| (20_260_103 + at / 10) * 10_i64.pow(digits) + at * 7_919_191_919 % 10_i64.pow(digits);
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values((0..100).map(number)));
        assert_eq!(detected(numbers), None, "{digits}");
        // Read as counts, they would be in the 2030s; other counts of that time are taken for such.
        let counts = (0..100).map(|at| number(at) + 9_000 * 10_i64.pow(digits));
        let counts: ArrayRef = Arc::new(Int64Array::from_iter_values(counts));
        assert!(detected(counts).is_some(), "{digits}");
    }
}
