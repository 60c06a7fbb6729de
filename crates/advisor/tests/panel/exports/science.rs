//! Exports of laboratories and inspectors: variants of genes, results as text, things known by name.

use arrow::array::{ArrayRef, RecordBatch};

use crate::columns::{
    amounts, choice, codes, export, int32, int64, rising, serial, texts, times, uniform, zipf,
};
use crate::exports::{Case, by_group, sums};

/// Variants of samples: a position is one of its chromosome only.
fn variants() -> RecordBatch {
    let (samples, sites) = (240_u64, 3_000_u64);
    let mut rows: Vec<(u64, u64)> = (0..samples)
        .flat_map(|sample| (0..sites).map(move |site| (sample, site)))
        .filter(|(sample, site)| (sample * 7_919 + site * 104_729) % 97 < 12)
        .collect();
    rows.sort_unstable();
    let sample: Vec<u64> = rows.iter().map(|row| row.0).collect();
    let site: Vec<u64> = rows.iter().map(|row| row.1).collect();
    let count = rows.len();
    export(vec![
        ("sample", codes("HG", &sample)),
        ("chrom", texts(by_group(&site, 22, 3).into_iter().map(|chrom| format!("chr{}", chrom + 1)))),
        ("pos", int64(by_group(&site, 248_000_000, 5))),
        (
            "ref",
            texts(
                by_group(&site, 4, 7).into_iter().map(|base| ["A", "C", "G", "T"][base as usize].to_owned()),
            ),
        ),
        ("genotype", choice(count, &["0/1", "1/1"], 901)),
        ("depth", int32(uniform(count, 80, 902))),
    ])
}

/// Results of a laboratory, some of which are words.
fn results() -> RecordBatch {
    let rows = 40_000;
    let value = |(number, word): (u64, u64)| match word {
        0..=5 => "NEG".to_owned(),
        6..=8 => ">1000".to_owned(),
        _ => format!("{}", number + 3),
    };
    let values = zipf(rows, 1_800, 0.5, 911).into_iter().zip(uniform(rows, 100, 912)).map(value);
    export(vec![
        ("result_id", serial(rows)),
        ("patient_id", int64(zipf(rows, 6_000, 0.4, 913).into_iter().map(|patient| patient * 3 + 10_006))),
        ("test_code", codes("T", &zipf(rows, 300, 0.8, 914))),
        ("charted_at", times(rising(rows, 30.0, 915))),
        ("result_value", texts(values)),
    ])
}

/// Inspections of businesses that only their names identify.
fn inspections() -> RecordBatch {
    let rows = 20_000;
    let kinds = ["Pub", "Diner", "Bakery", "Cafe", "Grill"];
    let business = uniform(rows, 2_600, 921);
    let places = by_group(&business, 140, 9);
    let name = |business: &u64| {
        format!("{} Street {} No {}", business % 61 + 1, kinds[(business % 5) as usize], business / 5)
    };
    export(vec![
        ("business_name", texts(business.iter().map(name))),
        ("inspection_score", int32(uniform(rows, 40, 922).into_iter().map(|score| 100 - score))),
        ("year", int32(uniform(rows, 6, 923).into_iter().map(|year| 2014 + year))),
        ("NumberofLocations", int32(places.into_iter().map(|count| count + 1))),
        ("weekend", choice(rows, &["FALSE", "TRUE"], 924)),
        ("fee", amounts(rows, 80.0, 925)),
    ])
}

/// Brightness of pixels in several bands, for learning to classify them.
fn pixels() -> RecordBatch {
    const BANDS: [&str; 12] = [
        "px0_b0", "px0_b1", "px0_b2", "px0_b3", "px1_b0", "px1_b1", "px1_b2", "px1_b3", "px2_b0", "px2_b1",
        "px2_b2", "px2_b3",
    ];
    let rows = 6_400;
    // Some bands crowd around a mean, and others fill their range.
    let band = |at: usize| match at % 4 {
        0 => uniform(rows, 94, 951 + at as u64),
        _ => sums(rows, 30, 4, 951 + at as u64),
    };
    let mut columns: Vec<(&str, ArrayRef)> =
        BANDS.iter().enumerate().map(|(at, name)| (*name, int64(band(at)))).collect();
    columns.push(("class", int64(zipf(rows, 6, 0.5, 971))));
    export(columns)
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(by name
            "bands of pixels",
            pixels,
            &[&[]],
            never & [],
            by & [],
            "columns that are named alike are measurements alike, and nothing names a pixel"
        ),
        case!(by name
            "variants of samples",
            variants,
            &[&["sample"], &["sample", "chrom"], &["sample", "pos"], &["sample", "chrom", "pos"]],
            never & ["depth"],
            by & [&["sample", "pos"]],
            "a position without its chromosome identifies nothing; of few samples, a second column spreads the rows"
        ),
        case!(by name
            "results as text",
            results,
            &[&["patient_id"]],
            never & ["result_value"],
            by & [&["result_id"]],
            "a result is a result, even if some are words"
        ),
        case!(by name
            "inspections of businesses",
            inspections,
            &[&["business_name"]],
            never & ["inspection_score", "NumberofLocations", "fee"],
            by & [],
            "a business is looked up by its name if it has no id; a number of places is a count"
        ),
    ]
}
