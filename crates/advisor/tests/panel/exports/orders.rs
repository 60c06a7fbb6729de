//! Exports of orders, their lines, and the customers who give them.

use arrow::array::RecordBatch;

use crate::columns::{
    DAY, START, amounts, choice, codes, decimals, export, flags, floats, int32, int64, rising, seconds,
    sentences, serial, shuffled, texts, times, uniform, uuids, with_nulls, zipf,
};
use crate::exports::{Case, lines};

/// Lines of the documents of companies, each of which numbers its documents anew each year.
fn journal_lines() -> RecordBatch {
    let documents = 11_000;
    let companies = zipf(documents, 4, 1.2, 551);
    let counts = uniform(documents, 4, 552);
    let mut numbers = std::collections::HashMap::new();
    let mut rows: Vec<(u64, u64, u64, u64, u64)> = Vec::new();
    for at in 0..documents {
        let (company, day) = (companies[at], at as u64 / 5);
        let year = 2026 + (59 + day) / 365;
        let number: &mut u64 = numbers.entry((company, year)).or_default();
        *number += 1;
        rows.extend((0..=counts[at] + 1).map(|line| (company, year, *number, line + 1, day)));
    }
    export(vec![
        ("company_code", int32(rows.iter().map(|row| 1_000 * (row.0 + 1)))),
        ("fiscal_year", int32(rows.iter().map(|row| row.1))),
        ("doc_no", int64(rows.iter().map(|row| 100_000_000 * (row.0 + 1) + row.2))),
        ("line_item", int32(rows.iter().map(|row| row.3))),
        ("posting_date", times(rows.iter().map(|row| START + row.4 as i64 * DAY))),
        (
            "gl_account",
            int32(zipf(rows.len(), 600, 0.9, 553).into_iter().map(|number| 200_000 + 100 * number)),
        ),
        ("debit", decimals(rows.len(), 90_000, 554)),
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

/// Lines of the orders of a shop, whose numbers are called names; facts of the order are in its
/// first line only.
fn lines_of_a_shop() -> RecordBatch {
    let (order, line) = lines(7_000, 3, 521);
    let rows = order.len();
    let number = |order: &u64| format!("#{}", 1_000 + order);
    let is_first = |at: &usize| line[*at] == 1;
    let id = |at: usize| if is_first(&at) { (5_400_000 + 97 * order[at]).to_string() } else { String::new() };
    let products = uniform(rows, 480, 522);
    export(vec![
        ("Name", texts(order.iter().map(number))),
        ("Email", texts(order.iter().map(|order| format!("kim{}@example.org", order * 7_919 % 2_900)))),
        ("Created at", times(order.iter().map(|order| START + *order as i64 * 60_000_000))),
        (
            "Lineitem sku",
            texts(products.iter().zip(&line).map(|(sku, line)| format!("SKU-{}", sku * 4 + line))),
        ),
        ("Lineitem quantity", int32(uniform(rows, 4, 523).into_iter().map(|count| count + 1))),
        ("Lineitem price", decimals(rows, 9_000, 524)),
        ("Id", texts((0..rows).map(id))),
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

/// Lines of orders that are numbered within districts of warehouses.
fn order_lines() -> RecordBatch {
    let (mut order, mut district, mut warehouse, mut line) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let counts = uniform(40 * 10 * 12, 11, 121);
    for (at, count) in counts.iter().enumerate() {
        let at = at as u64;
        for number in 0..count + 5 {
            order.push(at % 12 + 1);
            district.push(at / 12 % 10 + 1);
            warehouse.push(at / 120 + 1);
            line.push(number + 1);
        }
    }
    let rows = order.len();
    export(vec![
        ("ol_o_id", int64(order)),
        ("ol_d_id", int64(district)),
        ("ol_w_id", int64(warehouse)),
        ("ol_number", int64(line)),
        ("ol_i_id", int64(uniform(rows, 9_000, 122).into_iter().map(|n| n + 1))),
        ("ol_quantity", int64(uniform(rows, 10, 123).into_iter().map(|n| n + 1))),
        ("ol_amount", amounts(rows, 80.0, 124)),
    ])
}

/// Sales whose commission is a share of the price.
fn sales() -> RecordBatch {
    let rows = 30_000;
    let price: Vec<u64> = uniform(rows, 2_500, 141).into_iter().map(|n| n + 20).collect();
    let commission: Vec<u64> = price.iter().map(|price| price * 15).collect();
    let sale = export(vec![
        ("salesid", serial(rows)),
        ("listid", int64(zipf(rows, 9_000, 0.3, 142).into_iter().map(|n| n + 1))),
        ("sellerid", int64(zipf(rows, 2_000, 0.4, 143).into_iter().map(|n| n + 1))),
        ("buyerid", int64(zipf(rows, 6_000, 0.3, 144).into_iter().map(|n| n + 1))),
        ("qtysold", int64(uniform(rows, 4, 145).into_iter().map(|n| n + 1))),
        ("pricepaid", int64(price)),
        ("commission", int64(commission)),
        ("saletime", times(rising(rows, 20.0, 146))),
    ]);
    shuffled(&sale, 147)
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(by name
            "lines of a shop",
            lines_of_a_shop,
            &[&["Name"], &["Name", "Lineitem sku"]],
            never & ["Lineitem price", "Lineitem quantity"],
            by & [&["Name"]],
            "the name of an order is its number, and the parent of its lines"
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
            "subscriptions",
            subscriptions,
            &[&["customer_id"], &["subscription_id"]],
            never & ["mrr_cents"],
            by & [&["subscription_id"]],
            "a customer's subscriptions"
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
            "lines of the orders of tenants",
            orders_of_tenants,
            &[&["tenant_id", "order_id"], &["tenant_id", "sku"]],
            never & ["qty"],
            by & [&["tenant_id", "order_id", "line_no"]],
            "order 17 of one tenant is not that of another"
        ),
        case!(
            "order lines of warehouses",
            order_lines,
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
            "sales",
            sales,
            &[&["listid"], &["sellerid"], &["buyerid"]],
            never & ["pricepaid", "commission"],
            by & [&["salesid"]],
            "a commission follows from the price, which makes it no id"
        ),
        case!("members", emails, &[&["email"]], never & ["age"], by & [&["email"]], "the table's own id"),
        case!(by name
            "lines of a journal",
            journal_lines,
            &[&["doc_no"], &["company_code", "doc_no"], &["company_code", "fiscal_year", "doc_no"]],
            never & ["debit", "posting_date"],
            by & [&["company_code", "fiscal_year", "doc_no", "line_item"]],
            "documents are numbered anew each year"
        ),
    ]
}
