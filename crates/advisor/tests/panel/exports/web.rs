//! Exports of web sites: views of pages, hits of visitors, and events of shops.

use arrow::array::RecordBatch;

use crate::columns::{
    DAY, START, amounts, choice, codes, decimals, export, int32, int64, rising, seconds, sentences, serial,
    signed, texts, times, uniform, zipf,
};
use crate::exports::{Case, amounts_of, by_group};

fn page_counts() -> RecordBatch {
    let (pages, hours) = (2_500u64, 16);
    let (mut page, mut hour) = (Vec::new(), Vec::new());
    for at in 0..hours {
        for number in uniform(2_000, pages, 521 + at) {
            page.push(number);
            hour.push(START + at as i64 * 3_600_000_000);
        }
    }
    let mut seen = std::collections::HashSet::new();
    let rows: Vec<(u64, i64)> = page.into_iter().zip(hour).filter(|row| seen.insert(*row)).collect();
    export(vec![
        ("site", texts(rows.iter().map(|(page, _)| ["de", "en", "fr"][*page as usize % 3].to_owned()))),
        ("page_title", texts(rows.iter().map(|(page, _)| format!("Page_{}", page / 3)))),
        ("view_hour", times(rows.iter().map(|row| row.1))),
        ("count_views", int64(amounts_of(rows.len(), 30, 522))),
    ])
}

fn page_views() -> RecordBatch {
    let rows = 60_000;
    let session = uniform(rows, 9_000, 2);
    export(vec![
        ("viewed_at", times(rising(rows, 1.0, 1))),
        ("session_id", codes("s", &session)),
        ("user_id", int64(by_group(&session, 6_000, 3))),
        ("url", texts(zipf(rows, 500, 1.0, 4).into_iter().map(|p| format!("https://example.org/page/{p}")))),
        ("duration_ms", amounts(rows, 2_000.0, 5)),
        ("browser", choice(rows, &["Firefox", "Chrome", "Safari"], 6)),
    ])
}

fn epoch_events() -> RecordBatch {
    let rows = 60_000;
    let at = rising(rows, 2.0, 1);
    export(vec![
        ("event_time", int64(at.into_iter().map(|at| (at / 1_000_000) as u64))),
        ("user_id", int64(uniform(rows, 7_000, 2))),
        ("event_type", choice(rows, &["view", "cart", "buy"], 3)),
        ("price", decimals(rows, 100_000, 4)),
    ])
}

fn reviews() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("review_id", serial(rows)),
        ("product_id", int64(zipf(rows, 6_000, 0.5, 1))),
        ("reviewer_id", int64(uniform(rows, 15_000, 2))),
        ("stars", int32(uniform(rows, 5, 3).into_iter().map(|s| s + 1))),
        ("review_text", sentences(rows, 4)),
        ("created_at", times(rising(rows, 60.0, 5))),
    ])
}

fn votes() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("post_id", int64(uniform(rows, 9_000, 1))),
        ("voter_id", int64(uniform(rows, 20_000, 2))),
        ("vote", signed(uniform(rows, 10, 3).into_iter().map(|v| if v < 8 { 1 } else { -1 }))),
        ("voted_at", seconds((0..rows as i64).map(|row| START + row * 1_000_000))),
    ])
}

/// Hits of visits, whose id is the second in which the visit began.
fn hits_of_visits() -> RecordBatch {
    let (mut visitor, mut visit, mut hit, mut at) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let visitors = zipf(9_000, 3_500, 0.5, 101);
    let pages = zipf(9_000, 12, 0.5, 102);
    let begins = rising(9_000, 60.0, 103);
    for ((person, count), begin) in visitors.iter().zip(&pages).zip(&begins) {
        for number in 0..=*count {
            visitor.push(person.wrapping_mul(2_654_435_761) % 900_000_000_000 + 100_000_000_000);
            visit.push(begin / 1_000_000);
            hit.push(number + 1);
            at.push(begin / 1_000 + number as i64 * 9_137);
        }
    }
    let rows = visitor.len();
    export(vec![
        ("fullVisitorId", int64(visitor)),
        ("visitId", int64(visit.into_iter().map(i64::cast_unsigned))),
        ("hitNumber", int64(hit)),
        ("hitTime", int64(at.into_iter().map(i64::cast_unsigned))),
        (
            "pagePath",
            texts(zipf(rows, 300, 0.9, 104).into_iter().map(|page| format!("/shop/item-{page}.html"))),
        ),
        ("deviceCategory", choice(rows, &["desktop", "mobile", "tablet"], 105)),
    ])
}

/// Openings, of which only the moves tell one from another.
fn openings() -> RecordBatch {
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

/// Hits of visitors, whose number is in two columns.
fn hits_of_halves() -> RecordBatch {
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

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(
            "page views",
            page_views,
            &[&["session_id"], &["user_id"]],
            never & ["duration_ms", "url"],
            by & [],
            "sessions or users"
        ),
        case!(
            "epoch events",
            epoch_events,
            &[&["user_id"]],
            never & ["price"],
            by & [],
            "whole seconds since 1970 are a time"
        ),
        case!(
            "reviews",
            reviews,
            &[&["product_id"], &["reviewer_id"]],
            never & ["review_text", "stars"],
            by & [&["review_id"]],
            "reviews of a product"
        ),
        case!("votes", votes, &[&["post_id"], &["voter_id"]], never & ["vote"], by & [], "votes on a post"),
        case!(
            "views of pages by hour",
            page_counts,
            &[&["page_title"], &["site", "page_title"]],
            never & ["count_views"],
            by & [&["site", "page_title", "view_hour"]],
            "a page has no id but its title"
        ),
        case!(
            "hits of visits",
            hits_of_visits,
            &[&["fullVisitorId"], &["fullVisitorId", "visitId"]],
            never & ["pagePath"],
            by & [&["fullVisitorId", "visitId", "hitNumber"], &["fullVisitorId", "hitTime"]],
            "the second in which a visit began is that of others, too"
        ),
        case!(
            "openings",
            openings,
            &[&[], &["eco"], &["pgn"], &["name"]],
            never & [],
            by & [&["pgn"]],
            "if only a text tells rows apart, it identifies them"
        ),
        case!(by name
            "hits of visitors in two halves",
            hits_of_halves,
            &[&["visid_high"], &["visid_low"], &["visid_high", "visid_low"]],
            never & ["load_ms", "title"],
            by & [&["visid_high", "hit_num"], &["visid_low", "hit_num"], &["visid_high", "hit_time"], &["visid_low", "hit_time"]],
            "half of an identifier is no amount because it is called high or low"
        ),
    ]
}
