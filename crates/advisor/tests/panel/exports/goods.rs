//! Exports of goods: their stock, suppliers and prices.

use arrow::array::RecordBatch;

use crate::columns::{
    START, amounts, choice, codes, decimals, export, int32, int64, sentences, texts, times, uniform,
};
use crate::exports::Case;

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

/// Days, with numbers of their weeks and months.
fn days() -> RecordBatch {
    let rows = 9_000u64;
    let day = |at: u64| START + at as i64 * 86_400_000_000;
    export(vec![
        ("d_date_sk", int64((0..rows).map(|at| 2_415_022 + at))),
        ("d_date", times((0..rows).map(day))),
        ("d_week_seq", int64((0..rows).map(|at| at / 7 + 1))),
        ("d_quarter_seq", int64((0..rows).map(|at| at / 91 + 1))),
        ("d_year", int64((0..rows).map(|at| 1_900 + at / 365))),
        ("d_dow", int64((0..rows).map(|at| at % 7))),
        ("d_holiday", choice(rows as usize, &["Y", "N"], 131)),
    ])
}

/// Stock of each item in each warehouse, by keys of a calendar.
fn inventory_of_weeks() -> RecordBatch {
    let (weeks, items, warehouses) = (10u64, 900u64, 5u64);
    let rows = weeks * items * warehouses;
    export(vec![
        ("inv_date_sk", int64((0..rows).map(|at| 2_451_179 + at / (items * warehouses) * 7))),
        ("inv_item_sk", int64((0..rows).map(|at| at / warehouses % items * 2 + 1))),
        ("inv_warehouse_sk", int64((0..rows).map(|at| at % warehouses + 1))),
        ("inv_quantity_on_hand", int64(uniform(rows as usize, 1_000, 161))),
    ])
}

/// Prices of shops by day: the address of a page stands for a product in a shop.
fn shop_prices() -> RecordBatch {
    let (products, shops, days) = (900u64, 6u64, 5u64);
    let each: Vec<(u64, u64, u64)> = (0..days)
        .flat_map(|day| (0..products).flat_map(move |sku| (0..shops).map(move |shop| (day, sku, shop))))
        .collect();
    let page = |row: &(u64, u64, u64)| {
        format!(
            "https://shop{}.example/p/{:08x}",
            row.2,
            (row.1 * 6 + row.2).wrapping_mul(2_654_435_761) as u32
        )
    };
    export(vec![
        ("scrape_dt", texts(each.iter().map(|row| format!("2026-03-{:02}", row.0 + 1)))),
        ("our_sku", codes("SKU", &each.iter().map(|row| row.1 * 13 + 10_000).collect::<Vec<_>>())),
        ("shop", texts(each.iter().map(|row| format!("shop{}", row.2)))),
        ("product_url", texts(each.iter().map(page))),
        ("price", amounts(each.len(), 60.0, 471)),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(
            "partsupp",
            part_supp,
            &[&["ps_partkey"]],
            never & ["ps_availqty", "ps_comment", "ps_supplycost"],
            by & [&["ps_partkey", "ps_suppkey"]],
            "a quantity and a comment are no keys"
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
            "inventory",
            inventory,
            &[&["item_id"], &["warehouse_id", "item_id"]],
            never & ["quantity"],
            by & [&["warehouse_id", "item_id"]],
            "an item in a warehouse"
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
            "days",
            days,
            &[&["d_date_sk"], &["d_date"]],
            never & [],
            by & [&["d_date_sk"], &["d_date"]],
            "a week is a part of time, and no thing"
        ),
        case!(
            "inventory by keys of days",
            inventory_of_weeks,
            &[&["inv_item_sk"], &["inv_item_sk", "inv_warehouse_sk"]],
            never & ["inv_quantity_on_hand"],
            by & [&["inv_date_sk", "inv_item_sk", "inv_warehouse_sk"]],
            "the key of a day is a time"
        ),
        case!(by name
            "prices of shops",
            shop_prices,
            &[&["our_sku"], &["our_sku", "shop"]],
            never & ["price"],
            by & [&["our_sku", "shop", "scrape_dt"], &["product_url", "scrape_dt"]],
            "people ask for the product, not for the address of a page"
        ),
    ]
}
