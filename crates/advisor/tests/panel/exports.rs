//! The exports, with the answers that experts accept.

use arrow::array::{ArrayRef, RecordBatch};

use crate::columns::*;
use crate::more_exports as more;
use crate::odd_exports as odd;
use crate::public_exports as public;

/// An export with accepted answers.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) rows: fn() -> RecordBatch,
    /// Partition keys that are accepted; an empty one is the answer that none is good, or a
    /// makeshift that says so.
    pub(crate) accepted: &'static [&'static [&'static str]],
    /// Columns that are in no primary key.
    pub(crate) never: &'static [&'static str],
    /// The primary key contains all columns of one of these sets.
    pub(crate) identified_by: &'static [&'static [&'static str]],
    pub(crate) why: &'static str,
    /// Whether only the names of columns tell the answer, so that nobody could give it without
    /// them.
    pub(crate) by_name: bool,
}

/// Lines of orders: the order of each row, and its number within the order.
fn lines(orders: u64, most: u64, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let counts = uniform(orders as usize, most, seed);
    let (mut order, mut line) = (Vec::new(), Vec::new());
    for (at, count) in counts.iter().enumerate() {
        for number in 0..=*count {
            // Numbers of orders have gaps.
            order.push((at as u64 / 8) * 32 + at as u64 % 8 + 1);
            line.push(number + 1);
        }
    }
    (order, line)
}

/// For each group the same value in all of its rows.
fn by_group(groups: &[u64], below: u64, salt: u64) -> Vec<u64> {
    groups
        .iter()
        .map(|group| (group.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23) ^ salt) % below)
        .collect()
}

fn ad_events() -> RecordBatch {
    let rows = 60_000;
    let ads = zipf(rows, 400, 0.6, 3);
    export(vec![
        ("event_id", uuids(rows, 1)),
        ("event_timestamp", times(rising(rows, 1.5, 2))),
        ("user_id", codes("user", &uniform(rows, 6_000, 4))),
        ("campaign_id", codes("camp", &by_group(&ads, 40, 5))),
        ("ad_id", codes("ad", &ads)),
        ("event_type", choice(rows, &["impression", "click", "conversion"], 6)),
        ("cost_micros", amounts(rows, 900.0, 7)),
        ("country", choice(rows, &["DE", "US", "FR", "IN", "BR", "JP"], 8)),
    ])
}

fn sign_ins() -> RecordBatch {
    let rows = 30_000;
    export(vec![
        ("account", uuid_bytes(&zipf(rows, 4_000, 0.4, 401))),
        ("signed_in_at", times(rising(rows, 2.0, 402))),
        ("method", choice(rows, &["password", "passkey", "sso"], 403)),
        ("latency_ms", amounts(rows, 80.0, 404)),
    ])
}

fn jobs() -> RecordBatch {
    let rows = 30_000;
    export(vec![
        ("job_id", uuids_v7(&rising(rows, 1.0, 411), 412)),
        ("queue_id", codes("q", &zipf(rows, 3_000, 0.3, 413))),
        ("state", choice(rows, &["done", "failed", "retried"], 414)),
        ("seconds", floats(rows, 12.0, 1.0, 415)),
    ])
}

fn numbered_moves() -> RecordBatch {
    let (games, _) = lines(700, 80, 501);
    let mut next = std::collections::HashMap::new();
    let plies: Vec<u64> = games
        .iter()
        .map(|game| {
            let ply: &mut u64 = next.entry(*game).or_insert(0);
            *ply += 1;
            *ply
        })
        .collect();
    let rows = games.len();
    export(vec![
        ("game_id", codes("g", &games)),
        ("ply", int32(plies.iter().copied())),
        ("move_no", int32(plies.iter().map(|ply| ply.div_ceil(2)))),
        ("color", texts(plies.iter().map(|ply| if ply % 2 == 1 { "w" } else { "b" }.to_owned()))),
        ("uci", codes("m", &zipf(rows, 1_800, 0.8, 502))),
        ("clock_s", int32(amounts_of(rows, 200, 503))),
    ])
}

fn orders_of_tenants() -> RecordBatch {
    // The orders of each tenant are numbered from 1, and their lines too.
    let orders = 14_000;
    let tenants = zipf(orders, 120, 0.9, 511);
    let starts = rising(orders, 20.0, 512);
    let counts = uniform(orders, 5, 513);
    let mut next = vec![0u64; 120];
    let mut rows: Vec<(u64, u64, u64, i64)> = Vec::new();
    for at in 0..orders {
        let tenant = tenants[at];
        next[tenant as usize] += 1;
        for line in 0..=counts[at] {
            rows.push((tenant + 1, next[tenant as usize], line + 1, starts[at]));
        }
    }
    export(vec![
        ("tenant_id", int32(rows.iter().map(|row| row.0))),
        ("order_id", int64(rows.iter().map(|row| row.1))),
        ("line_no", int32(rows.iter().map(|row| row.2))),
        ("order_ts", times(rows.iter().map(|row| row.3))),
        ("sku", codes("s", &zipf(rows.len(), 900, 0.5, 514))),
        ("qty", int32(uniform(rows.len(), 9, 515))),
    ])
}

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

fn event_logs_with_gaps() -> RecordBatch {
    // Of the logs of each block only some are kept, so that their numbers have gaps.
    let (blocks, _) = lines(900, 90, 531);
    let (mut last, mut block_before) = (0, 0);
    let index: Vec<u64> = blocks
        .iter()
        .zip(uniform(blocks.len(), 4, 532))
        .map(|(block, gap)| {
            last = if *block == block_before { last + 1 + gap } else { gap };
            block_before = *block;
            last
        })
        .collect();
    let rows = blocks.len();
    let transactions: Vec<u64> = blocks.iter().zip(&index).map(|(block, at)| block * 64 + at / 8).collect();
    let hexadecimal = |value: u64, salt: u64| {
        format!("0x{:032x}{:032x}", value ^ salt, value.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    };
    export(vec![
        ("block_number", int64(blocks.iter().copied())),
        ("tx_hash", texts(transactions.iter().map(|number| hexadecimal(*number, 7)))),
        ("log_index", int32(index)),
        ("data", texts((0..rows as u64).map(|row| hexadecimal(row, 9)))),
    ])
}

fn connections() -> RecordBatch {
    let rows = 40_000;
    let starts = rising(rows, 1.0, 541);
    let lengths = uniform(rows, 60, 542);
    let seconds = |micros: i64| (micros / 1_000_000) as u64;
    export(vec![
        ("interface", codes("eni", &zipf(rows, 2_000, 0.3, 543))),
        ("src_port", int32(uniform(rows, 28_000, 544).into_iter().map(|port| port + 32_768))),
        ("start", int64(starts.iter().map(|at| seconds(*at)))),
        ("end", int64(starts.iter().zip(&lengths).map(|(at, length)| seconds(*at) + length))),
        ("bytes", int64(amounts_of(rows, 4_000, 545))),
    ])
}

/// Whole amounts with a long tail.
fn amounts_of(rows: usize, typical: u64, seed: u64) -> Vec<u64> {
    uniform(rows, 1_000, seed).into_iter().map(|share| typical * 100 / (share + 20)).collect()
}

fn epoch_readings() -> RecordBatch {
    let (rows, meters) = (40_000, 2_000);
    let at = rising(rows, 4.0, 421).into_iter().map(|at| (at / 1_000_000) as u64);
    export(vec![
        ("taken", int64(at)),
        ("meter_id", int64((0..rows as u64).map(|row| 500_000 + row % meters * 3))),
        ("reading", floats(rows, 230.0, 0.1, 422)),
    ])
}

fn line_items() -> RecordBatch {
    let (order, line) = lines(15_000, 7, 1);
    let rows = order.len();
    export(vec![
        ("l_orderkey", int64(order.clone())),
        ("l_partkey", int64(uniform(rows, 20_000, 2).into_iter().map(|v| v + 1))),
        ("l_suppkey", int64(uniform(rows, 1_000, 3).into_iter().map(|v| v + 1))),
        ("l_linenumber", int32(line)),
        ("l_quantity", decimals(rows, 50, 4)),
        ("l_extendedprice", decimals(rows, 1_000_000, 5)),
        ("l_returnflag", choice(rows, &["A", "N", "R"], 6)),
        (
            "l_shipdate",
            seconds(uniform(rows, 2_500, 7).into_iter().map(|d| START - d as i64 * 86_400_000_000)),
        ),
        ("l_comment", sentences(rows, 8)),
    ])
}

fn part_supp() -> RecordBatch {
    let part: Vec<u64> = (0..10_000u64).flat_map(|part| [part + 1; 4]).collect();
    let supplier: Vec<u64> =
        (0..10_000u64).flat_map(|p| (0..4).map(move |s| (p + s * 251 + p / 500) % 1_000 + 1)).collect();
    let rows = part.len();
    export(vec![
        ("ps_partkey", int64(part)),
        ("ps_suppkey", int64(supplier)),
        ("ps_availqty", int32(uniform(rows, 9_999, 3).into_iter().map(|v| v + 1))),
        ("ps_supplycost", decimals(rows, 100_000, 4)),
        ("ps_comment", sentences(rows, 5)),
    ])
}

fn orders() -> RecordBatch {
    let rows = 30_000;
    export(vec![
        ("o_orderkey", int64((0..rows as u64).map(|at| (at / 8) * 32 + at % 8 + 1))),
        ("o_custkey", int64(uniform(rows, 3_000, 1).into_iter().map(|v| v + 1))),
        ("o_orderstatus", choice(rows, &["O", "F", "P"], 2)),
        ("o_totalprice", decimals(rows, 5_000_000, 3)),
        (
            "o_orderdate",
            seconds(uniform(rows, 2_400, 4).into_iter().map(|d| START - d as i64 * 86_400_000_000)),
        ),
        ("o_clerk", codes("Clerk#", &uniform(rows, 1_000, 5))),
        ("o_comment", sentences(rows, 6)),
    ])
}

fn customers() -> RecordBatch {
    let rows = 15_000;
    export(vec![
        ("c_custkey", serial(rows)),
        ("c_name", texts((0..rows).map(|at| format!("Customer#{at:09}")))),
        ("c_nationkey", int32(uniform(rows, 25, 1))),
        ("c_acctbal", decimals(rows, 1_000_000, 2)),
        ("c_mktsegment", choice(rows, &["BUILDING", "AUTOMOBILE", "MACHINERY"], 3)),
        ("c_comment", sentences(rows, 4)),
    ])
}

fn sensors() -> RecordBatch {
    let rows = 60_000;
    let devices = 500;
    let at: Vec<i64> = (0..rows).map(|row| START + (row / devices) as i64 * 60_000_000).collect();
    export(vec![
        ("device_id", texts((0..rows).map(|row| format!("dev-{:05}", row % devices)))),
        ("measured_at", times(at)),
        ("temperature", floats(rows, 20.0, 0.2, 1)),
        ("humidity", floats(rows, 50.0, 0.3, 2)),
        ("battery", int32(uniform(rows, 101, 3))),
    ])
}

fn few_sensors() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("sensor", int32((0..rows as u64).map(|row| row % 8))),
        ("at", times((0..rows as i64).map(|row| START + row / 8 * 1_000_000))),
        ("value", floats(rows, 3.0, 0.5, 1)),
    ])
}

fn chat() -> RecordBatch {
    let rows = 50_000;
    export(vec![
        ("message_id", uuids(rows, 1)),
        ("conversation_id", int64(zipf(rows, 8_000, 0.5, 2).into_iter().map(|v| v + 1_000))),
        ("sender_id", int64(zipf(rows, 15_000, 0.5, 3))),
        ("sent_at", times(rising(rows, 3.0, 4))),
        ("body", sentences(rows, 5)),
    ])
}

fn rides() -> RecordBatch {
    let rows = 50_000;
    export(vec![
        ("ride_id", serial(rows)),
        ("driver_id", int64(uniform(rows, 4_000, 1))),
        ("passenger_id", int64(uniform(rows, 20_000, 2))),
        ("pickup_at", times(rising(rows, 5.0, 3))),
        ("distance_m", amounts(rows, 4_000.0, 4)),
        ("fare_cents", amounts(rows, 1_500.0, 5)),
        ("city", choice(rows, &["Berlin", "Hamburg", "Munich", "Cologne"], 6)),
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

fn transfers() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("transfer_id", uuids(rows, 1)),
        ("from_account", int64(uniform(rows, 5_000, 2).into_iter().map(|v| v + 100_000))),
        ("to_account", int64(uniform(rows, 5_000, 3).into_iter().map(|v| v + 100_000))),
        ("amount", decimals(rows, 1_000_000, 4)),
        ("booked_at", times(rising(rows, 8.0, 5))),
    ])
}

fn tenants() -> RecordBatch {
    let rows = 60_000;
    let tenant: Vec<u64> = uniform(rows, 100, 1)
        .into_iter()
        .zip(zipf(rows, 300, 0.4, 2))
        .map(|(d, t)| if d < 45 { 7 } else { t })
        .collect();
    export(vec![
        ("tenant_id", int64(tenant)),
        ("host", codes("host", &uniform(rows, 5_000, 3))),
        ("at", times(rising(rows, 1.0, 4))),
        ("bytes", amounts(rows, 30_000.0, 5)),
        ("status", int32(uniform(rows, 5, 6).into_iter().map(|s| 100 * (s + 1)))),
    ])
}

fn flights() -> RecordBatch {
    let rows = 90_000;
    let origin = zipf(rows, 300, 0.8, 1);
    let destination = zipf(rows, 300, 0.8, 2);
    let distance: Vec<u64> =
        origin.iter().zip(&destination).map(|(a, b)| 100 + (a * 7919 + b * 104_729) % 2_500).collect();
    let airport = |codes: &[u64]| {
        texts(codes.iter().map(|c| {
            format!(
                "{}{}{}",
                (b'A' + (c / 26 % 26) as u8) as char,
                (b'A' + (c % 26) as u8) as char,
                (b'A' + (c % 7) as u8) as char
            )
        }))
    };
    export(vec![
        ("date", seconds(rising(rows, 60.0, 3))),
        ("delay", signed(amounts_below_zero(rows, 4))),
        ("distance", int64(distance)),
        ("origin", airport(&origin)),
        ("destination", airport(&destination)),
    ])
}

fn amounts_below_zero(rows: usize, seed: u64) -> Vec<i64> {
    uniform(rows, 60, seed)
        .into_iter()
        .zip(uniform(rows, 100, seed + 1))
        .map(|(a, b)| if b < 90 { a as i64 - 20 } else { (a * b / 10) as i64 })
        .collect()
}

fn clicks() -> RecordBatch {
    let rows = 60_000;
    export(vec![
        ("ip", int64(zipf(rows, 12_000, 0.8, 1))),
        ("app", int32(zipf(rows, 200, 1.1, 2))),
        ("device", int32(zipf(rows, 60, 1.5, 3))),
        ("os", int32(zipf(rows, 80, 1.1, 4))),
        ("channel", int32(zipf(rows, 160, 0.8, 5))),
        ("click_time", seconds(rising(rows, 0.4, 6))),
        ("attributed_time", with_nulls(&times(rising(rows, 0.4, 7)), 0.998, 8)),
        ("is_attributed", flags(rows, 9)),
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

fn logs() -> RecordBatch {
    let rows = 60_000;
    export(vec![
        ("timestamp", times(rising(rows, 0.2, 1))),
        (
            "trace_id",
            texts(uniform(rows, 9_000, 2).into_iter().map(|t| {
                format!("{:032x}", u128::from(t).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835))
            })),
        ),
        ("service", choice(rows, &["api", "auth", "billing", "search", "web"], 3)),
        ("level", choice(rows, &["INFO", "WARN", "ERROR"], 4)),
        ("message", sentences(rows, 5)),
        ("latency_ms", amounts(rows, 40.0, 6)),
    ])
}

fn ledger() -> RecordBatch {
    let rows = 50_000;
    let account = uniform(rows, 4_000, 1);
    let mut last = std::collections::HashMap::new();
    let number: Vec<u64> = account
        .iter()
        .map(|a| {
            let n = last.entry(*a).or_insert(0u64);
            *n += 1;
            *n
        })
        .collect();
    export(vec![
        ("account_no", codes("DE", &account)),
        ("entry_no", int64(number)),
        ("booked_at", times(rising(rows, 10.0, 2))),
        ("amount", signed(amounts_below_zero(rows, 3))),
        ("currency", choice(rows, &["EUR", "USD"], 4)),
    ])
}

fn quotes() -> RecordBatch {
    let rows = 60_000;
    export(vec![
        ("symbol", codes("SY", &zipf(rows, 3_000, 0.5, 1))),
        ("ts", times(rising(rows, 0.05, 2))),
        ("bid", floats(rows, 100.0, 0.5, 3)),
        ("ask", floats(rows, 101.0, 0.5, 4)),
        ("volume", amounts(rows, 300.0, 5)),
        ("exchange", choice(rows, &["XETR", "XNAS", "XNYS"], 6)),
    ])
}

fn calls() -> RecordBatch {
    let rows = 50_000;
    export(vec![
        ("caller", int64(uniform(rows, 8_000, 1).into_iter().map(|v| 491_510_000_000 + v * 137))),
        ("callee", int64(uniform(rows, 30_000, 2).into_iter().map(|v| 491_510_000_000 + v * 137))),
        ("started_at", seconds(rising(rows, 2.0, 3))),
        ("duration_s", amounts(rows, 90.0, 4)),
        ("cell", int32(uniform(rows, 700, 5))),
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

fn catalogue() -> RecordBatch {
    let rows = 12_000;
    export(vec![
        ("sku", texts((0..rows).map(|at| format!("SKU-{:07}", at * 13)))),
        ("title", sentences(rows, 1)),
        ("brand", choice(rows, &["Acme", "Globex", "Initech", "Umbrella"], 2)),
        ("price_cents", amounts(rows, 2_000.0, 3)),
        ("stock", int32(uniform(rows, 300, 4))),
    ])
}

fn wide() -> RecordBatch {
    let rows = 8_000;
    let mut columns: Vec<(String, ArrayRef)> = vec![
        ("vehicle_id".to_owned(), codes("V", &uniform(rows, 2_500, 1))),
        ("recorded_at".to_owned(), times(rising(rows, 5.0, 2))),
    ];
    columns.extend((0..98).map(|at| (format!("signal_{at:02}"), floats(rows, 10.0, 0.5, 100 + at))));
    columns.extend((0..98).map(|at| (format!("state_{at:02}"), int32(uniform(rows, 6, 300 + at)))));
    export(columns.iter().map(|(name, array)| (name.as_str(), array.clone())).collect())
}

fn no_key() -> RecordBatch {
    let rows = 20_000;
    export(vec![
        ("country", choice(rows, &["DE", "US", "FR"], 1)),
        ("status", choice(rows, &["new", "done"], 2)),
        ("amount", floats(rows, 30.0, 0.7, 3)),
    ])
}

fn fifty_rows() -> RecordBatch {
    let rows = 50;
    export(vec![
        (
            "country_code",
            texts((0..rows).map(|at| {
                format!("{}{}", (b'A' + (at / 26) as u8) as char, (b'A' + (at % 26) as u8) as char)
            })),
        ),
        ("name", texts((0..rows).map(|at| format!("Country {at}")))),
        ("population", amounts(rows, 5_000_000.0, 1)),
    ])
}

fn inventory() -> RecordBatch {
    let warehouses = 60u64;
    let items = 800u64;
    let rows = (warehouses * items) as usize;
    export(vec![
        ("warehouse_id", int32((0..rows as u64).map(|row| row / items + 1))),
        ("item_id", int64((0..rows as u64).map(|row| row % items + 1))),
        ("quantity", int32(uniform(rows, 1_000, 1))),
        ("updated_at", times(uniform(rows, 80_000_000, 2).into_iter().map(|v| START + v as i64 * 1_000))),
    ])
}

fn subscriptions() -> RecordBatch {
    let rows = 20_000;
    export(vec![
        ("subscription_id", uuids(rows, 1)),
        ("customer_id", int64(uniform(rows, 9_000, 2))),
        ("plan", choice(rows, &["free", "pro", "team"], 3)),
        ("started_at", times(rising(rows, 100.0, 4))),
        ("cancelled_at", with_nulls(&times(rising(rows, 100.0, 5)), 0.7, 6)),
        ("mrr_cents", amounts(rows, 2_000.0, 7)),
    ])
}

fn game_scores() -> RecordBatch {
    let rows = 50_000;
    export(vec![
        ("match_id", int64((0..rows as u64).map(|row| row / 10 + 5_000))),
        (
            "player_id",
            int64((0..).zip(uniform(rows, 1_200, 1)).map(|(row, v): (u64, u64)| row % 10 * 1_200 + v)),
        ),
        ("score", int32(uniform(rows, 5_000, 2))),
        ("kills", int32(uniform(rows, 30, 3))),
        ("played_at", seconds((0..rows as i64).map(|row| START + row / 10 * 40_000_000))),
    ])
}

fn dns() -> RecordBatch {
    let rows = 60_000;
    export(vec![
        ("ts", times(rising(rows, 0.1, 1))),
        (
            "client_ip",
            texts(
                zipf(rows, 6_000, 0.6, 2)
                    .into_iter()
                    .map(|v| format!("10.{}.{}.{}", v % 7, v / 256 % 256, v % 256)),
            ),
        ),
        ("qname", texts(zipf(rows, 3_000, 0.9, 3).into_iter().map(|v| format!("host{v}.example.org")))),
        ("qtype", choice(rows, &["A", "AAAA", "TXT", "MX"], 4)),
        ("rtt_us", amounts(rows, 1_500.0, 5)),
    ])
}

fn payments_by_day() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("day", seconds((0..rows as i64).map(|row| START + row / 400 * 86_400_000_000))),
        ("merchant_id", int64(uniform(rows, 3_000, 1))),
        ("payment_ref", texts((0..rows).map(|at| format!("PAY{:09}", at * 31)))),
        ("amount_cents", amounts(rows, 3_000.0, 2)),
    ])
}

fn gps() -> RecordBatch {
    let rows = 60_000;
    export(vec![
        ("truck_id", int32(uniform(rows, 2_000, 1))),
        ("ts", times(rising(rows, 0.3, 2))),
        ("lat", floats(rows, 52.0, 0.01, 3)),
        ("lon", floats(rows, 13.0, 0.02, 4)),
        ("speed_kmh", int32(uniform(rows, 130, 5))),
        ("heading", int32(uniform(rows, 360, 6))),
    ])
}

fn edges() -> RecordBatch {
    let rows = 50_000;
    let from: Vec<u64> = (0..rows as u64).map(|row| row / 10).collect();
    export(vec![
        ("follower_id", int64(from)),
        ("followee_id", int64((0..rows as u64).map(|row| (row / 10 * 31 + row % 10 * 977 + 13) % 9_000))),
        ("since", times(uniform(rows, 90_000_000, 2).into_iter().map(|v| START + v as i64 * 1_000))),
    ])
}

fn emails() -> RecordBatch {
    let rows = 20_000;
    export(vec![
        ("email", texts((0..rows).map(|at| format!("person{}@example.org", at * 7)))),
        ("first_name", choice(rows, &["Anna", "Ben", "Carl", "Dora", "Emil"], 1)),
        ("signup_date", seconds(rising(rows, 3_000.0, 2))),
        ("age", int32(uniform(rows, 80, 3))),
        ("newsletter", flags(rows, 4)),
    ])
}

fn order_items() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("order_id", int64((0..rows as u64).map(|row| row / 3))),
        ("product_id", int64(uniform(rows, 3_000, 1).into_iter().map(|v| v + 1_000))),
        ("quantity", int32(uniform(rows, 5, 2).into_iter().map(|v| v + 1))),
        ("unit_price", floats(rows, 40.0, 0.6, 3)),
        ("created_at", seconds((0..rows as i64).map(|row| START + row / 3 * 7_000_000))),
    ])
}

fn git_events() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("id", int64((0..rows as u64).map(|row| 20_000_000_000 + row * 3))),
        ("type", choice(rows, &["PushEvent", "IssueEvent", "WatchEvent", "ForkEvent"], 1)),
        ("actor_id", int64(zipf(rows, 9_000, 0.4, 2))),
        ("repo_id", int64(zipf(rows, 4_000, 0.6, 3))),
        ("created_at", seconds((0..rows as i64).map(|row| START + row * 1_000_000))),
        ("public", flags(rows, 4)),
    ])
}

fn metrics() -> RecordBatch {
    let rows = 40_000u64;
    let names = ["cpu", "mem", "disk", "net"];
    export(vec![
        ("ts", seconds((0..rows).map(|row| START + (row / 1_600) as i64 * 10_000_000))),
        ("host", texts((0..rows).map(|row| format!("host{:03}", row % 400)))),
        ("metric", texts((0..rows).map(|row| names[(row / 400 % 4) as usize].to_owned()))),
        ("value", floats(rows as usize, 1.0, 0.4, 1)),
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

fn stock_days() -> RecordBatch {
    let rows = 42_000usize;
    export(vec![
        ("ticker", texts((0..rows).map(|row| format!("T{}", row % 700)))),
        ("trade_date", seconds((0..rows).map(|row| START + (row / 700) as i64 * 86_400_000_000))),
        ("open", floats(rows, 50.0, 0.4, 1)),
        ("close", floats(rows, 50.0, 0.4, 2)),
        ("volume", amounts(rows, 90_000.0, 3)),
    ])
}

fn playback() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("uid", codes("u", &uniform(rows, 5_000, 1))),
        ("track", int32(zipf(rows, 2_000, 0.8, 2))),
        ("played", times((0..rows as i64).map(|row| START + row * 900_000))),
        ("ms_played", int32(uniform(rows, 240_000, 3))),
        ("platform", choice(rows, &["ios", "android", "web"], 4)),
    ])
}

fn copies() -> RecordBatch {
    let batch = ad_events();
    let again = batch.slice(0, 600);
    arrow::compute::concat_batches(&batch.schema(), [&batch, &again]).unwrap()
}

/// Means of 10 minutes of 140 turbines, all at the same times.
fn turbines() -> RecordBatch {
    let (turbines, times_of_each) = (140, 200);
    let rows = turbines * times_of_each;
    let turbine: Vec<u64> = (0..rows as u64).map(|row| row % turbines as u64).collect();
    let at = (0..rows).map(|row| START + (row / turbines) as i64 * 600_000_000);
    export(vec![
        ("turbine_id", codes("WT", &turbine)),
        ("measured_at", times(at)),
        ("wind_speed", floats(rows, 8.0, 0.4, 421)),
        ("power_kw", floats(rows, 900.0, 0.6, 422)),
        ("op_state", choice(rows, &["run", "idle", "fault"], 423)),
    ])
}

/// Actions of users on documents, both numbered within their tenant.
fn audits_of_tenants() -> RecordBatch {
    let rows = 40_000;
    let tenant = zipf(rows, 150, 0.8, 431);
    let mut sizes = vec![0u64; 150];
    tenant.iter().for_each(|tenant| sizes[*tenant as usize] += 1);
    let within = |share: u64, seed: u64| {
        let drawn = uniform(rows, 1 << 32, seed);
        int64(
            tenant.iter().zip(drawn).map(|(tenant, drawn)| 1 + drawn % (1 + sizes[*tenant as usize] / share)),
        )
    };
    export(vec![
        ("event_id", uuids(rows, 432)),
        ("tenant_id", int64(tenant.iter().copied())),
        ("user_no", within(12, 433)),
        ("document_no", within(2, 434)),
        ("action", choice(rows, &["read", "edit", "share", "delete"], 435)),
        ("at", times(rising(rows, 8.0, 436))),
    ])
}

/// Results of samples, some as bounds.
fn laboratory() -> RecordBatch {
    let samples = 6_000;
    let patient = zipf(samples, 2_500, 0.4, 441);
    let (mut sample_numbers, mut test) = (Vec::new(), Vec::new());
    for (sample, tests) in uniform(samples, 6, 442).iter().enumerate() {
        for number in 0..=*tests {
            sample_numbers.push(sample as u64);
            test.push((sample as u64 + number) % 12);
        }
    }
    let rows = sample_numbers.len();
    let drawn = rising(samples, 300.0, 443);
    let result = uniform(rows, 20_000, 444).into_iter().map(|value| match value % 20 {
        0 => format!("<{}.5", value % 9),
        _ => format!("{}.{}", value / 100, value % 100),
    });
    export(vec![
        ("num_muestra", int64(sample_numbers.iter().map(|sample| 700_000 + sample * 3))),
        (
            "nif_paciente",
            codes("P", &sample_numbers.iter().map(|sample| patient[*sample as usize]).collect::<Vec<_>>()),
        ),
        ("cod_prueba", codes("T", &test)),
        ("resultado", texts(result)),
        ("fec_extraccion", times(sample_numbers.iter().map(|sample| drawn[*sample as usize]))),
    ])
}

/// Offsets of groups of consumers, every minute.
fn group_offsets() -> RecordBatch {
    let (consumers, samples) = (600u64, 70u64);
    let rows = (consumers * samples) as usize;
    let consumer = |row: u64| row % consumers;
    let end = |row: u64| {
        consumer(row) * consumer(row) * 7_919 % 601 * 90_000 + row / consumers * (3 + consumer(row) % 40) * 11
    };
    let lag = amounts_of(rows, 30, 451);
    let rows = 0..rows as u64;
    export(vec![
        ("sampled_at", times(rows.clone().map(|row| START + (row / consumers) as i64 * 60_000_000))),
        ("grp", codes("grp-", &rows.clone().map(|row| consumer(row) / 6).collect::<Vec<_>>())),
        ("topic", codes("topic-", &rows.clone().map(|row| consumer(row) / 6 % 80).collect::<Vec<_>>())),
        ("part", int64(rows.clone().map(|row| consumer(row) % 6))),
        ("committed", int64(rows.clone().map(|row| 9_000 + end(row)))),
        ("log_end", int64(rows.clone().map(|row| 9_000 + end(row) + lag[row as usize]))),
    ])
}

/// Entries of cases that each court numbers by itself.
fn dockets() -> RecordBatch {
    let (courts, cases) = (14u64, 90u64);
    let (mut court, mut case, mut entry) = (Vec::new(), Vec::new(), Vec::new());
    for (at, entries) in uniform((courts * cases) as usize, 30, 461).iter().enumerate() {
        for number in 0..=*entries {
            court.push(at as u64 / cases);
            case.push(at as u64 % cases);
            entry.push(1 + number);
        }
    }
    let rows = court.len();
    export(vec![
        ("court", codes("D", &court)),
        ("case_no", texts(case.iter().map(|case| format!("25-{case:05}")))),
        ("entry_no", int64(entry)),
        ("filed_on", times(rising(rows, 2_000.0, 462))),
        ("docket_text", sentences(rows, 463)),
    ])
}

/// One sensor.
fn grid_frequency() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("at", times((0..rows).map(|row| START + row as i64 * 1_000_000))),
        ("hertz", floats(rows, 50.0, 0.001, 471)),
        ("quality", choice(rows, &["good", "fair", "bad"], 472)),
    ])
}

/// Stock of each item in each warehouse, with texts that happen to tell all rows apart.
fn stock() -> RecordBatch {
    let (warehouses, items) = (240u64, 150u64);
    let rows = (warehouses * items) as usize;
    let letters = |seed: u64| {
        let letter = |drawn: u64, at: u64| char::from(b'A' + (drawn / 26u64.pow(at as u32) % 26) as u8);
        let text = |drawn: u64| (0..12).map(|at| letter(drawn, at)).collect::<String>();
        texts(uniform(rows, 26u64.pow(12), seed).into_iter().map(text))
    };
    export(vec![
        ("w_id", int64((0..rows as u64).map(|row| row / items))),
        ("i_id", int64((0..rows as u64).map(|row| 1 + row % items))),
        ("quantity", int64(uniform(rows, 90, 481).into_iter().map(|quantity| 10 + quantity))),
        ("dist_info_1", letters(482)),
        ("dist_info_2", letters(483)),
        ("dist_info_3", letters(484)),
        ("note", sentences(rows, 485)),
    ])
}

/// Flights between airports with what was measured of them, of which some has many values.
fn flights_with_measures() -> RecordBatch {
    let rows = 40_000;
    let (from, to) = (zipf(rows, 180, 0.7, 491), zipf(rows, 180, 0.7, 492));
    let tail = zipf(rows, 2_400, 0.3, 493);
    let miles = |row: usize| 100 + (from[row] * 7_919 + to[row] * 104_729) % 2_500;
    let noise = uniform(rows, 40, 494);
    let minutes = |row: usize| 30 + miles(row) / 8 + noise[row] / 2;
    export(vec![
        ("flight_date", times((0..rows).map(|row| START + (row / 1_400) as i64 * 86_400_000_000))),
        ("carrier", choice(rows, &["AA", "DL", "UA", "WN", "B6", "AS"], 495)),
        ("tail_num", codes("N", &tail)),
        ("flight_num", int64(zipf(rows, 3_000, 0.4, 496))),
        ("origin", codes("A", &from)),
        ("dest", codes("A", &to)),
        ("dep_delay", signed(uniform(rows, 200, 497).into_iter().map(|delay| delay as i64 - 20))),
        ("air_time", int64((0..rows).map(minutes))),
        ("distance", int64((0..rows).map(miles))),
        ("distance_group", int64((0..rows).map(|row| miles(row) / 250))),
    ])
}

/// All exports.
pub(crate) fn cases() -> Vec<Case> {
    macro_rules! case {
        // Columns that only their names tell from others.
        (by name $name:literal, $($rest:tt)*) => {
            Case { by_name: true, ..case!($name, $($rest)*) }
        };
        ($name:literal, $rows:expr, $accepted:expr, never $never:expr, by $by:expr, $why:literal) => {
            Case {
                name: $name,
                rows: $rows,
                accepted: $accepted,
                never: $never,
                identified_by: $by,
                why: $why,
                by_name: false,
            }
        };
    }
    vec![
        case!(
            "ad events",
            ad_events,
            &[&["user_id"]],
            never & ["cost_micros"],
            by & [&["event_id"]],
            "users are looked up, grouped and joined"
        ),
        case!(
            "ad events, shuffled",
            || shuffled(&ad_events(), 1),
            &[&["user_id"]],
            never & ["cost_micros"],
            by & [&["event_id"]],
            "order does not change what a key is"
        ),
        case!(
            "ad events, by campaign",
            || sorted(&ad_events(), "campaign_id"),
            &[&["user_id"]],
            never & ["cost_micros"],
            by & [&["event_id"]],
            "an export sorted by another column"
        ),
        case!(
            "ad events with copies",
            copies,
            &[&["user_id"]],
            never & ["cost_micros"],
            by & [&["event_id"]],
            "retries repeat rows, not keys"
        ),
        case!(
            "lineitem",
            line_items,
            &[&["l_orderkey"]],
            never & ["l_comment", "l_extendedprice", "l_quantity"],
            by & [&["l_orderkey", "l_linenumber"]],
            "lines belong to their order"
        ),
        case!(
            "lineitem, shuffled",
            || shuffled(&line_items(), 2),
            &[&["l_orderkey"]],
            never & ["l_comment", "l_extendedprice", "l_quantity"],
            by & [&["l_orderkey", "l_linenumber"]],
            "lines belong to their order"
        ),
        case!(
            "partsupp",
            part_supp,
            &[&["ps_partkey"]],
            never & ["ps_availqty", "ps_comment", "ps_supplycost"],
            by & [&["ps_partkey", "ps_suppkey"]],
            "a quantity and a comment are no keys"
        ),
        case!(
            "orders",
            orders,
            &[&["o_orderkey"], &["o_custkey"]],
            never & ["o_comment", "o_totalprice"],
            by & [&["o_orderkey"]],
            "the order for joins with its lines, or the customer"
        ),
        case!(
            "customers",
            customers,
            &[&["c_custkey"]],
            never & ["c_comment", "c_acctbal"],
            by & [&["c_custkey"]],
            "the table's own id"
        ),
        case!(
            "sensors",
            sensors,
            &[&["device_id"]],
            never & ["temperature", "humidity", "battery"],
            by & [&["device_id", "measured_at"]],
            "one device's readings stay together"
        ),
        case!(
            "few sensors",
            few_sensors,
            &[&["sensor", "at"], &["sensor"]],
            never & ["value"],
            by & [&["sensor", "at"]],
            "eight sensors cannot fill 16 partitions: a second column is needed, or fewer partitions"
        ),
        case!(
            "chat",
            chat,
            &[&["conversation_id"]],
            never & ["body"],
            by & [&["message_id"]],
            "a conversation is read as a whole"
        ),
        case!(
            "rides",
            rides,
            &[&["driver_id"], &["passenger_id"]],
            never & ["distance_m", "fare_cents"],
            by & [&["ride_id"]],
            "rides of a driver or passenger"
        ),
        case!(
            "page views",
            page_views,
            &[&["session_id"], &["user_id"]],
            never & ["duration_ms", "url"],
            by & [],
            "sessions or users"
        ),
        case!(
            "transfers",
            transfers,
            &[&["from_account"], &["to_account"], &["from_account", "to_account"]],
            never & ["amount"],
            by & [&["transfer_id"]],
            "an account's transfers"
        ),
        case!(
            "tenants with a giant",
            tenants,
            &[&["tenant_id", "host"], &["tenant_id", "at"], &["host"]],
            never & ["bytes"],
            by & [],
            "one tenant has half of the rows: split it by a second column"
        ),
        case!(
            "flights",
            flights,
            &[&["origin", "destination"]],
            never & ["delay"],
            by & [],
            "delay and distance are measures"
        ),
        case!(
            "ad clicks",
            clicks,
            &[&["ip"], &["ip", "app"]],
            never & [],
            by & [],
            "the address; attributed_time is nearly always NULL"
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
            "logs",
            logs,
            &[&["trace_id"]],
            never & ["message", "latency_ms"],
            by & [],
            "a trace is read as a whole"
        ),
        case!(
            "ledger",
            ledger,
            &[&["account_no"]],
            never & ["amount"],
            by & [&["account_no", "entry_no"], &["account_no", "booked_at"]],
            "entries are numbered within an account"
        ),
        case!(
            "quotes",
            quotes,
            &[&["symbol"]],
            never & ["bid", "ask", "volume"],
            by & [],
            "a symbol's history"
        ),
        case!(
            "calls",
            calls,
            &[&["caller"], &["callee"], &["caller", "callee"]],
            never & ["duration_s"],
            by & [],
            "a subscriber's calls"
        ),
        case!(
            "reviews",
            reviews,
            &[&["product_id"], &["reviewer_id"]],
            never & ["review_text", "stars"],
            by & [&["review_id"]],
            "reviews of a product"
        ),
        case!(
            "catalogue",
            catalogue,
            &[&["sku"]],
            never & ["title", "price_cents", "stock"],
            by & [&["sku"]],
            "the table's own id"
        ),
        case!(
            "wide telemetry",
            wide,
            &[&["vehicle_id"]],
            never & [],
            by & [&["vehicle_id", "recorded_at"]],
            "two hundred signals of a vehicle"
        ),
        case!(
            "no good key",
            no_key,
            &[&[], &["country", "status"]],
            never & [],
            by & [],
            "nothing identifies anything"
        ),
        case!(
            "fifty rows",
            fifty_rows,
            &[&["country_code"], &["name"], &[]],
            never & ["population"],
            by & [],
            "too few rows to say more"
        ),
        case!(
            "inventory",
            inventory,
            &[&["item_id"], &["warehouse_id", "item_id"]],
            never & ["quantity"],
            by & [&["warehouse_id", "item_id"]],
            "an item in a warehouse"
        ),
        case!(
            "subscriptions",
            subscriptions,
            &[&["customer_id"], &["subscription_id"]],
            never & ["mrr_cents"],
            by & [&["subscription_id"]],
            "a customer's subscriptions"
        ),
        case!(
            "game scores",
            game_scores,
            &[&["player_id"], &["match_id"]],
            never & ["score", "kills"],
            by & [&["match_id", "player_id"]],
            "a match, or a player's history"
        ),
        case!(
            "dns",
            dns,
            &[&["client_ip"], &["qname"], &["client_ip", "qname"]],
            never & ["rtt_us"],
            by & [],
            "a client's lookups"
        ),
        case!(
            "payments",
            payments_by_day,
            &[&["merchant_id"]],
            never & ["amount_cents"],
            by & [&["payment_ref"]],
            "a merchant's payments"
        ),
        case!(
            "gps",
            gps,
            &[&["truck_id"]],
            never & ["lat", "lon", "speed_kmh", "heading"],
            by & [&["truck_id", "ts"]],
            "a truck's track"
        ),
        case!(
            "followers",
            edges,
            &[&["follower_id"], &["followee_id"]],
            never & [],
            by & [&["follower_id", "followee_id"]],
            "both ends identify an edge"
        ),
        case!(
            "order items",
            order_items,
            &[&["order_id"]],
            never & ["quantity", "unit_price"],
            by & [],
            "items belong to their order, whose rows arrive together"
        ),
        case!(
            "repository events",
            git_events,
            &[&["repo_id"], &["actor_id"]],
            never & [],
            by & [&["id"]],
            "events of a repository or of somebody"
        ),
        case!(
            "metrics",
            metrics,
            &[&["host"], &["host", "metric"]],
            never & ["value"],
            by & [&["ts", "host", "metric"]],
            "a series is a host and a metric"
        ),
        case!("votes", votes, &[&["post_id"], &["voter_id"]], never & ["vote"], by & [], "votes on a post"),
        case!(
            "stock prices by day",
            stock_days,
            &[&["ticker"]],
            never & ["open", "close", "volume"],
            by & [&["ticker", "trade_date"]],
            "a ticker's history"
        ),
        case!("playback", playback, &[&["uid"]], never & ["ms_played"], by & [], "what somebody listened to"),
        case!(
            "sign-ins, UUIDs in 16 bytes",
            sign_ins,
            &[&["account"]],
            never & ["latency_ms"],
            by & [&["account", "signed_in_at"]],
            "a type that keys do not take is read as one that they do"
        ),
        case!(
            "jobs with ids of version 7",
            jobs,
            &[&["queue_id"], &["job_id"]],
            never & ["seconds"],
            by & [&["job_id"]],
            "the id of a row that begins with its time is no time"
        ),
        case!(
            "readings with epochs",
            epoch_readings,
            &[&["meter_id"]],
            never & ["reading"],
            by & [&["meter_id", "taken"]],
            "seconds since 1970 are a time"
        ),
        case!(
            "numbered moves",
            numbered_moves,
            &[&["game_id"]],
            never & ["clock_s"],
            by & [&["game_id", "ply"], &["game_id", "move_no", "color"]],
            "a game is read as a whole, and its moves are numbered"
        ),
        case!(
            "lines of the orders of tenants",
            orders_of_tenants,
            &[&["tenant_id", "order_id"], &["tenant_id", "sku"]],
            never & ["qty"],
            by & [&["tenant_id", "order_id", "line_no"]],
            "order 17 of one tenant is not that of another"
        ),
        case!(
            "views of pages by hour",
            page_counts,
            &[&["page_title"], &["site", "page_title"]],
            never & ["count_views"],
            by & [&["site", "page_title", "view_hour"]],
            "a page has no id but its title"
        ),
        case!(
            "logs with gaps in their numbers",
            event_logs_with_gaps,
            &[&["tx_hash"], &["block_number"]],
            never & ["data"],
            by & [&["tx_hash", "log_index"], &["block_number", "log_index"]],
            "lines are numbered within a block, although some are missing"
        ),
        case!(
            "connections with a start and an end",
            connections,
            &[&["interface"]],
            never & ["bytes"],
            by & [],
            "a port is no thing, and an end is a time"
        ),
        case!(
            "means of 140 turbines",
            turbines,
            &[&["turbine_id"]],
            never & ["wind_speed", "power_kw", "op_state"],
            by & [&["turbine_id", "measured_at"]],
            "few values are uneven by chance, and a second column costs every read of a turbine"
        ),
        case!(
            "audits of tenants",
            audits_of_tenants,
            &[&["tenant_id", "document_no"], &["tenant_id", "user_no"], &["event_id"]],
            never & ["action"],
            by & [&["event_id"]],
            "document 17 of one tenant is not that of another"
        ),
        case!(
            "results of a laboratory",
            laboratory,
            &[&["num_muestra"], &["nif_paciente"]],
            never & ["resultado"],
            by & [&["num_muestra", "cod_prueba"], &["nif_paciente", "fec_extraccion", "cod_prueba"]],
            "a result is measured, although it is text"
        ),
        case!(
            "offsets of groups",
            group_offsets,
            &[
                &["grp"],
                &["topic"],
                &["grp", "topic"],
                &["grp", "part"],
                &["topic", "part"],
                &["grp", "topic", "part"]
            ],
            never & ["committed", "log_end"],
            by & [&["sampled_at", "grp", "part"]],
            "two offsets that go along are measured"
        ),
        case!(
            "dockets of courts",
            dockets,
            &[&["court", "case_no"], &["case_no"]],
            never & ["docket_text"],
            by & [&["court", "case_no", "entry_no"]],
            "entries are numbered within a case of a court"
        ),
        case!(
            "one sensor",
            grid_frequency,
            &[&[]],
            never & ["hertz"],
            by & [&["at"]],
            "nothing but a time: whatever is hashed is a makeshift"
        ),
        case!(
            "stock of warehouses",
            stock,
            &[&["w_id"], &["i_id"], &["w_id", "i_id"]],
            never & ["quantity", "dist_info_1", "dist_info_2", "dist_info_3", "note"],
            by & [&["w_id", "i_id"]],
            "each warehouse has each item; of several unique texts none is an id"
        ),
        case!(
            "flights with measures",
            flights_with_measures,
            &[
                &["tail_num"],
                &["flight_num"],
                &["carrier", "flight_num"],
                &["origin"],
                &["dest"],
                &["origin", "dest"]
            ],
            never & ["dep_delay", "air_time", "distance", "distance_group"],
            by & [],
            "a distance follows from two airports, however many values it has"
        ),
        case!(
            "quotes",
            more::quotes,
            &[&["isin"], &["isin", "seq"]],
            never & ["bid", "ask", "bid_size"],
            by & [&["seq"], &["isin", "quoted_at"]],
            "instruments are read; the number of a quote is not"
        ),
        case!(
            "bank transactions",
            more::bank_transactions,
            &[&["account_id"]],
            never & ["amount", "balance"],
            by & [&["trans_id"]],
            "accounts of a day are not numbered by it, however the rows are sorted"
        ),
        case!(
            "revisions",
            more::revisions,
            &[&["doc_id"]],
            never & ["size_bytes", "sha256"],
            by & [&["doc_id", "rev"]],
            "equal contents have equal hashes"
        ),
        case!(
            "hits of visits",
            more::hits,
            &[&["fullVisitorId"], &["fullVisitorId", "visitId"]],
            never & ["pagePath"],
            by & [&["fullVisitorId", "visitId", "hitNumber"], &["fullVisitorId", "hitTime"]],
            "the second in which a visit began is that of others, too"
        ),
        case!(
            "countries",
            more::countries,
            &[&["country_code"]],
            never & ["population", "gdp_bn"],
            by & [&["country_code"]],
            "the table's own id"
        ),
        case!(
            "order lines of warehouses",
            more::order_lines,
            &[
                &["ol_w_id"],
                &["ol_w_id", "ol_d_id"],
                &["ol_w_id", "ol_o_id"],
                &["ol_w_id", "ol_d_id", "ol_o_id"]
            ],
            never & ["ol_amount", "ol_quantity"],
            by & [&["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"]],
            "order 7 of one district is not that of another, and is read as a whole"
        ),
        case!(
            "days",
            more::days,
            &[&["d_date_sk"], &["d_date"]],
            never & [],
            by & [&["d_date_sk"], &["d_date"]],
            "a week is a part of time, and no thing"
        ),
        case!(
            "sales",
            more::sales,
            &[&["listid"], &["sellerid"], &["buyerid"]],
            never & ["pricepaid", "commission"],
            by & [&["salesid"]],
            "a commission follows from the price, which makes it no id"
        ),
        case!(
            "visits of patients",
            more::visits,
            &[&["patient_id"]],
            never & ["charge", "date_of_birth"],
            by & [&["ticket_no"]],
            "the few visits of nobody known need a value, and are no reason to scatter the others"
        ),
        case!(
            "inventory by keys of days",
            more::inventory,
            &[&["inv_item_sk"], &["inv_item_sk", "inv_warehouse_sk"]],
            never & ["inv_quantity_on_hand"],
            by & [&["inv_date_sk", "inv_item_sk", "inv_warehouse_sk"]],
            "the key of a day is a time"
        ),
        case!(
            "transactions of a ledger",
            more::transactions,
            &[&["from_address"], &["hash"]],
            never & ["data", "gas_price"],
            by & [
                &["hash"],
                &["block_number", "transaction_index"],
                &["block_timestamp", "transaction_index"]
            ],
            "blocks are made one after the other, and a content is no id"
        ),
        case!(
            "flows through a firewall",
            more::flows,
            &[&["SRC_IP"], &["SRC_IP", "DST_IP"]],
            never & ["BYTES"],
            by & [&["FLOW_ID"]],
            "addresses are looked up if nothing else says who it was"
        ),
        case!(
            "commits",
            more::commits,
            &[&["author_email"], &["sha"], &["repo", "sha"], &["repo", "author_email"]],
            never & ["insertions"],
            by & [&["sha"]],
            "the commit before is that of one other row"
        ),
        case!(
            "messages of channels",
            more::channel_messages,
            &[&["channel"], &["user"]],
            never & ["text"],
            by & [&["channel", "ts"], &["user", "ts"]],
            "a time may be written as seconds with fractions"
        ),
        case!(
            "policies",
            more::policies,
            &[&["num_poliza"], &["id_cliente"]],
            never & ["prima_anual"],
            by & [&["num_poliza"]],
            "a date is a time in every way to write it"
        ),
        case!(
            "trades of days",
            more::trades,
            &[&["contract"]],
            never & ["price", "size"],
            by & [&["trade_date", "exec_id"]],
            "the seventh trade of one day is not that of another"
        ),
        case!(
            "inverters of plants",
            more::inverters,
            &[&["plant_code", "inverter_no"]],
            never & ["ac_power_kw", "dc_voltage"],
            by & [&["plant_code", "inverter_no", "local_time"]],
            "the number of an inverter is one of its plant"
        ),
        case!(by name
            "lookups of names",
            odd::lookups,
            &[&["uid"], &["client"]],
            never & ["rtt"],
            by & [&["ts", "uid"], &["ts", "client"]],
            "what a connection asked is read together, and the time tells its lookups apart"
        ),
        case!(by name
            "taps of cards",
            odd::taps,
            &[&["card_token"], &["validator_id"]],
            never & ["received_at", "fare"],
            by & [&["validator_id", "validator_seq"], &["card_token", "tapped_at"]],
            "a tap that is sent again is the same tap"
        ),
        case!(by name
            "requests to a city",
            odd::service_requests,
            &[&["Unique Key"], &["Incident Zip"]],
            never & ["X Coordinate (State Plane)", "Y Coordinate (State Plane)"],
            by & [&["Unique Key"]],
            "a coordinate is measured, whatever its unit"
        ),
        case!(
            "active sessions",
            odd::active_sessions,
            &[&["SESSION_ID"]],
            never & ["TIME_WAITED"],
            by & [&["SESSION_ID", "SAMPLE_ID"], &["SESSION_ID", "SAMPLE_TIME"]],
            "the number of a sample is its time"
        ),
        case!(
            "engines that fail",
            odd::engines,
            &[&["unit_number"]],
            never & ["RUL", "sensor_1", "sensor_2"],
            by & [&["unit_number", "time_in_cycles"]],
            "what remains is computed from what has passed"
        ),
        case!(by name
            "security logs",
            odd::security_log,
            &[&["System.Computer"]],
            never & [],
            by & [&["System.Computer", "System.EventRecordID"]],
            "threads of an operating system are nothing that is looked up"
        ),
        case!(by name
            "messages of carriers",
            odd::carrier_messages,
            &[&["PRO_NO"]],
            never & [],
            by & [&["ISA_CTL_NO", "ST_CTL_NO"]],
            "shipments are followed, not the interchanges that told of them"
        ),
        case!(
            "one household",
            odd::household,
            &[&[], &["Date", "Time"]],
            never & ["Global_active_power", "Voltage", "Sub_metering_1"],
            by & [&["Date", "Time"]],
            "a single series has nothing to be placed by but its time"
        ),
        case!(
            "one detector",
            odd::detector,
            &[&[], &["at"]],
            never & ["counts", "pressure_hpa", "voltage", "quality"],
            by & [&["at"]],
            "a single series has nothing to be placed by but its time"
        ),
        case!(
            "elements of buildings",
            odd::elements,
            &[&["GlobalId"]],
            never & ["AreaM2", "LastModified"],
            by & [&["GlobalId"]],
            "a register of things is read by their own id"
        ),
        case!(by name
            "licences",
            odd::checkouts,
            &[&["hostname"], &["username", "hostname"]],
            never & ["duration_s"],
            by & [],
            "a handle that is used again identifies nothing"
        ),
        case!(
            "swipes of cards",
            odd::swipes,
            &[&["CARD_NO"], &["EMP_ID"]],
            never & [],
            by & [&["SEQ"]],
            "a card is one card, whatever the event"
        ),
        case!(
            "edges between services",
            odd::edges,
            &[&["source_service", "destination_service"]],
            never & ["requests", "latency_ms"],
            by & [&["minute", "source_service", "destination_service"]],
            "a count of requests is no request, and 22 services are too few"
        ),
        case!(
            "segments of bookings",
            odd::segments,
            &[&["rloc"]],
            never & ["pax_cnt"],
            by & [&["rloc", "seg_no"]],
            "a date is one however it is written"
        ),
        case!(by name
            "marks of pupils",
            odd::attendance,
            &[&["upn"]],
            never & ["Unnamed: 0", "minutes_late"],
            by & [&["upn", "session_date", "period"]],
            "the number of a row in a frame is that of another row tomorrow"
        ),
        case!(
            "rings of birds",
            odd::ringings,
            &[&["ring_no"]],
            never & ["species", "fat", "wing_mm"],
            by & [&["ring_no", "date", "hour"]],
            "a date and a time of day are one time in two columns"
        ),
        case!(
            "events of car parks",
            odd::garage_events,
            &[&["tkt_no"], &["tkt_no", "evt_ts"], &["dev_cd", "tkt_no"]],
            never & ["amt_paid"],
            by & [&["tkt_no", "evt_ts"], &["dev_cd", "evt_ts"]],
            "a car may pass a lane again; only the time tells events apart"
        ),
        case!(
            "readings of air conditioners",
            odd::rooftop_units,
            &[&["unit_sn"], &["unit_sn", "rec_ts"]],
            never & ["cmp1_starts", "cmp2_starts", "fan_starts", "fan_run_hrs", "supply_temp"],
            by & [&["unit_sn", "rec_ts"]],
            "what adds up within a device is measured, and numbers no rows"
        ),
        case!(by name
            "prices of shops",
            odd::shop_prices,
            &[&["our_sku"], &["our_sku", "shop"]],
            never & ["price"],
            by & [&["our_sku", "shop", "scrape_dt"], &["product_url", "scrape_dt"]],
            "people ask for the product, not for the address of a page"
        ),
        case!(by name
            "impressions with features",
            odd::featured_impressions,
            &[&["uid"], &["campaign"], &["campaign", "uid"]],
            never & ["cost", "cat1", "cat2", "cat3", "cat4", "cat5"],
            by & [&["uid", "timestamp"], &["campaign", "timestamp"]],
            "what was given a number for a name is a property"
        ),
        case!(
            "scans of parcels",
            odd::parcel_scans,
            &[&["tracking_no"]],
            never & ["scanner"],
            by & [&["tracking_no", "scan_ms"]],
            "rows that were sent again say nothing about how often values repeat"
        ),
        case!("members", emails, &[&["email"]], never & ["age"], by & [&["email"]], "the table's own id"),
        case!(by name
            "figures of countries",
            public::country_years,
            &[&["Country Code"], &["Country Name"]],
            never & ["Value"],
            by & [&["Country Code", "Year"], &["Country Name", "Year"]],
            "a year is a time, even if it counts within each country"
        ),
        case!(
            "daily counts, as R writes them",
            public::daily_counts,
            &[&[], &["service", "area"]],
            never & ["monthly", "trips"],
            by & [&["date", "service", "area"]],
            "numbers are numbers although some are NA"
        ),
        case!(by name
            "charges of hospitals",
            public::hospital_charges,
            &[&["Provider Id"]],
            never & ["Total Discharges", "Average Payments"],
            by & [&["Provider Id", "DRG"], &["Provider Id", "Definition"]],
            "an amount with separators is an amount, and a long label of few kinds a kind"
        ),
        case!(
            "openings",
            public::openings,
            &[&[], &["eco"], &["pgn"], &["name"]],
            never & [],
            by & [&["pgn"]],
            "if only a text tells rows apart, it identifies them"
        ),
        case!(by name
            "towns",
            public::towns,
            &[&["geonameid"]],
            never & ["country"],
            by & [&["geonameid"]],
            "a table of things is read by their id, not by where they are"
        ),
        case!(by name
            "hits of visitors in two halves",
            public::hits,
            &[&["visid_high"], &["visid_low"], &["visid_high", "visid_low"]],
            never & ["load_ms", "title"],
            by & [&["visid_high", "hit_num"], &["visid_low", "hit_num"], &["visid_high", "hit_time"], &["visid_low", "hit_time"]],
            "half of an identifier is no amount because it is called high or low"
        ),
    ]
}
