//! Exports shaped like those that statistical offices and research projects publish.

use arrow::array::RecordBatch;

use crate::columns::{choice, codes, export, floats, int64, sentences, texts, times, uniform, zipf};

const DAY: i64 = 86_400_000_000;

/// A figure of each country and year.
pub(crate) fn country_years() -> RecordBatch {
    let (countries, years) = (260u64, 34u64);
    let country: Vec<u64> = (0..countries * years).map(|row| row / years).collect();
    let code = |at: &u64| {
        let letter = |place: u64| char::from(b'A' + (at / 26u64.pow(place as u32) % 26) as u8);
        (0..3).map(letter).collect::<String>()
    };
    export(vec![
        ("Country Name", texts(country.iter().map(|at| format!("Republic of {}land", code(at))))),
        ("Country Code", texts(country.iter().map(code))),
        ("Year", int64((0..countries * years).map(|row| 1990 + row % years))),
        ("Value", floats((countries * years) as usize, 4e9, 2e9, 401)),
    ])
}

/// Counts of a few services in a few areas on each day, as R writes them: NA for what is missing,
/// and large numbers with exponents.
pub(crate) fn daily_counts() -> RecordBatch {
    let days = 1_200u64;
    let rows = (days * 24) as usize;
    let monthly = uniform(rows, 9_000_000, 411).into_iter().map(|number| match number % 40 {
        0 => "NA".to_owned(),
        1 => format!("{}e+05", number % 9 + 1),
        _ => format!("{}.{}", number / 1_000, number % 1_000),
    });
    let service =
        |row: &u64| ["taxi", "van", "bike", "scooter", "bus", "tram"][(row % 6) as usize].to_owned();
    let area =
        |row: &u64| ["airports", "centre", "north", "outer boroughs"][(row / 6 % 4) as usize].to_owned();
    let all: Vec<u64> = (0..rows as u64).collect();
    export(vec![
        ("service", texts(all.iter().map(service))),
        ("date", times(all.iter().map(|row| 17_000 * DAY + (row / 24).cast_signed() * DAY))),
        ("area", texts(all.iter().map(area))),
        ("trips", floats(rows, 3_000.0, 900.0, 412)),
        ("monthly", texts(monthly)),
    ])
}

/// Charges of hospitals for each of a few kinds of treatment, with separators in the numbers.
pub(crate) fn hospital_charges() -> RecordBatch {
    let (hospitals, kinds) = (2_400u64, 30u64);
    let pairs: Vec<(u64, u64)> = (0..kinds)
        .flat_map(|kind| (0..hospitals).map(move |hospital| (hospital, kind)))
        .filter(|(hospital, kind)| (hospital * 7 + kind * 13) % 11 < 4)
        .collect();
    let rows = pairs.len();
    let city = zipf(hospitals as usize, 900, 0.5, 421);
    let discharges = zipf(rows, 3_000, 0.9, 422).into_iter().map(|number| match number + 11 {
        large @ 1_000.. => format!("{},{:03}", large / 1_000, large % 1_000),
        small => small.to_string(),
    });
    export(vec![
        (
            "Definition",
            texts(pairs.iter().map(|(_, kind)| format!("DISORDERS OF GROUP {kind} WITH COMPLICATIONS"))),
        ),
        ("DRG", int64(pairs.iter().map(|(_, kind)| 280 + kind * 3))),
        ("Provider Id", int64(pairs.iter().map(|(hospital, _)| 10_000 + hospital * 17))),
        ("Provider City", codes("CITY", &pairs.iter().map(|(at, _)| city[*at as usize]).collect::<Vec<_>>())),
        ("Total Discharges", texts(discharges)),
        ("Average Payments", floats(rows, 9_000.0, 2_000.0, 423)),
    ])
}

/// Openings, of which only the moves tell one from another.
pub(crate) fn openings() -> RecordBatch {
    let rows = 1_250u64;
    let moves = |row: u64| {
        let half = |at: u64| {
            let square = row / 5u64.pow(at as u32) % 5;
            format!("{}. {}{}", at + 1, ["e", "d", "c", "Nf", "Nc"][square as usize], 3 + (row + at) % 2)
        };
        (0..5).map(half).collect::<Vec<_>>().join(" ")
    };
    export(vec![
        ("eco", texts((0..rows).map(|row| format!("C{:02}", row / 13)))),
        ("name", texts((0..rows).map(|row| format!("Game of {} masters, line {}", row / 30, row / 4 % 9)))),
        ("pgn", texts((0..rows).map(moves))),
    ])
}

/// Towns with an id of their own.
pub(crate) fn towns() -> RecordBatch {
    let rows = 23_000;
    let region = zipf(rows, 2_700, 0.6, 431);
    export(vec![
        ("name", codes("Town", &zipf(rows, 21_000, 0.3, 432))),
        ("country", codes("Country", &region.iter().map(|at| at % 240).collect::<Vec<_>>())),
        ("subcountry", codes("Region", &region)),
        (
            "geonameid",
            int64(uniform(rows, 400, 433).iter().scan(100_000, |id, step| {
                *id += 1 + step;
                Some(*id)
            })),
        ),
    ])
}

/// Hits of visitors, whose number is in two columns.
pub(crate) fn hits() -> RecordBatch {
    let rows = 30_000;
    let visitor = zipf(rows, 4_000, 0.5, 441);
    let half = |salt: u64| {
        visitor
            .iter()
            .map(move |at| (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ salt) >> 2)
            .collect::<Vec<_>>()
    };
    let mut counted = std::collections::HashMap::new();
    let page: Vec<u64> = visitor
        .iter()
        .map(|at| {
            let count = counted.entry(*at).or_insert(0u64);
            *count += 1;
            *count
        })
        .collect();
    export(vec![
        ("hit_time", times((0..rows as i64).map(|row| 19_800 * DAY + row * 1_900_000))),
        ("visid_high", int64(half(0))),
        ("visid_low", int64(half(0x5555_0000_AAAA))),
        ("hit_num", int64(page)),
        ("page_type", choice(rows, &["blog", "product", "search", "cart"], 442)),
        ("load_ms", int64(uniform(rows, 3_000, 443))),
        ("title", sentences(rows, 444)),
    ])
}
