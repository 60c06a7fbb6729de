//! Exports of tills, invoices and timetables.

use arrow::array::RecordBatch;

use crate::columns::{
    DAY, START, amounts, choice, codes, export, floats, int32, int64, rising, signed, texts, times, uniform,
    with_nulls, zipf,
};
use crate::exports::{Case, by_group, lines};

/// Receipts of shops, each with its cashier.
fn receipts() -> RecordBatch {
    let rows = 20_000;
    let cashier = zipf(rows, 420, 0.4, 901);
    let card = uniform(rows, 4_500, 902);
    export(vec![
        ("receipt_id", int64((0..rows as u64).map(|row| 88_120_001 + row * 2))),
        ("store_no", int32(by_group(&cashier, 38, 903).into_iter().map(|store| 100 + store))),
        ("register_no", int32(uniform(rows, 6, 904).into_iter().map(|register| register + 1))),
        ("opened_at", times(rising(rows, 20.0, 905))),
        ("cashier_id", int32(cashier.iter().map(|cashier| 3_000 + cashier * 7))),
        ("loyalty_card", with_nulls(&int64(card.iter().map(|card| 6_329_500_000 + card * 613)), 0.6, 906)),
        ("items", int32(zipf(rows, 40, 1.0, 907).into_iter().map(|items| items + 1))),
        ("gross_amount", floats(rows, 30.0, 1.0, 908)),
        ("payment_type", choice(rows, &["CARD", "CASH", "VOUCHER"], 909)),
    ])
}

/// Invoices of tenants, each with its own numbers, and the paths of the printed invoices.
fn invoices_of_tenants() -> RecordBatch {
    let rows = 12_000;
    let tenant = zipf(rows, 25, 0.9, 911);
    let customer = zipf(rows, 160, 0.4, 912);
    // The export does not begin with the first invoice.
    let mut next: Vec<u64> = (0..25).map(|tenant| 1_000 + 37 * tenant).collect();
    let number: Vec<u64> = tenant
        .iter()
        .map(|tenant| {
            next[*tenant as usize] += 1;
            next[*tenant as usize]
        })
        .collect();
    let path = |(tenant, number): (&u64, &u64)| format!("/invoices/{}/{number:06}.pdf", tenant + 1);
    let customers = tenant.iter().zip(&customer).map(|(tenant, customer)| 10_000 * (tenant + 1) + customer);
    export(vec![
        ("tenant_id", int32(tenant.iter().map(|tenant| tenant + 1))),
        ("invoice_no", int32(number.iter().copied())),
        ("customer_id", int64(customers)),
        ("issued_at", times(rising(rows, 90.0, 913))),
        ("net_total", floats(rows, 200.0, 1.0, 914)),
        ("state", choice(rows, &["open", "paid", "void"], 915)),
        ("pdf_path", texts(tenant.iter().zip(&number).map(path))),
    ])
}

/// Points that customers of shops collect on their cards.
fn movements_of_cards() -> RecordBatch {
    let rows = 18_000;
    let card = zipf(rows, 4_500, 0.3, 921);
    let points: Vec<i64> = uniform(rows, 300, 922).into_iter().map(|points| points as i64 - 40).collect();
    export(vec![
        ("id_mouvement", int64((0..rows as u64).map(|row| 66_120_047 + row))),
        ("no_carte", int64(card.iter().map(|card| 2_930_000_000_000 + card * 7_919_003))),
        ("date_mouvement", times(rising(rows, 60.0, 923))),
        ("code_magasin", codes("0", &uniform(rows, 75, 924))),
        ("type_mouvement", choice(rows, &["GAIN", "UTILISATION", "AJUSTEMENT"], 925)),
        ("points", signed(points)),
        ("montant_achat", with_nulls(&floats(rows, 60.0, 1.0, 926), 0.2, 927)),
    ])
}

/// A few lines of invoices, which are too few to be spread evenly.
fn few_lines_of_invoices() -> RecordBatch {
    let (invoice, line) = lines(62, 8, 931);
    let rows = invoice.len();
    export(vec![
        ("invoice_no", texts(invoice.iter().map(|invoice| format!("RE-2026-{:05}", 400 + invoice)))),
        ("line", int32(line)),
        ("invoice_date", times(invoice.iter().map(|invoice| START + *invoice as i64 / 2 * DAY))),
        ("debtor_no", int32(by_group(&invoice, 9_000, 932).into_iter().map(|debtor| 18_000 + debtor))),
        ("description", choice(rows, &["Support flat", "Setup fee", "Licence", "Travel costs"], 933)),
        ("quantity", int32(uniform(rows, 20, 934).into_iter().map(|quantity| quantity + 1))),
        ("net_amount", amounts(rows, 120.0, 935)),
    ])
}

/// Stops of the trips of a timetable.
fn stops_of_trips() -> RecordBatch {
    let (trip, line) = lines(2_000, 30, 941);
    let start = by_group(&trip, 1_000, 942);
    let time = |(start, line): (&u64, &u64)| {
        let minutes = start + line * 3;
        format!("{:02}:{:02}:00", minutes / 60, minutes % 60)
    };
    let route = by_group(&trip, 60, 943);
    let stop = |(route, line): (&u64, &u64)| (route * 17 + line) % 900;
    let stops: Vec<u64> = route.iter().zip(&line).map(stop).collect();
    export(vec![
        ("trip_id", texts(trip.iter().map(|trip| format!("{}.T0.4-1", 100_000 + trip)))),
        ("arrival_time", texts(start.iter().zip(&line).map(time))),
        ("stop_id", texts(stops.iter().map(|stop| format!("de:11000:{}", 900_131_000 + stop)))),
        ("stop_sequence", int32(line)),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(by name
            "receipts",
            receipts,
            &[&["receipt_id"], &["store_no", "receipt_id"]],
            never & ["items", "gross_amount", "payment_type"],
            by & [&["receipt_id"]],
            "receipts have an id, whoever was at the till"
        ),
        case!(by name
            "invoices of tenants",
            invoices_of_tenants,
            &[&["tenant_id", "invoice_no"], &["customer_id"], &["tenant_id", "customer_id"]],
            never & ["pdf_path", "net_total", "state"],
            by & [&["tenant_id", "invoice_no"], &["customer_id", "invoice_no"]],
            "each tenant numbers its invoices; where they are stored is no key"
        ),
        case!(by name
            "movements of cards",
            movements_of_cards,
            &[&["no_carte"]],
            never & ["points", "montant_achat"],
            by & [&["no_carte", "id_mouvement"]],
            "the card, whose movements are read together"
        ),
        case!(by name
            "a few lines of invoices",
            few_lines_of_invoices,
            &[&["invoice_no"], &["invoice_no", "line"]],
            never & ["description", "quantity", "net_amount"],
            by & [&["invoice_no", "line"]],
            "the invoice, although a few of them are not even"
        ),
        case!(by name
            "stops of trips",
            stops_of_trips,
            &[&["trip_id"]],
            never & [],
            by & [&["trip_id", "stop_sequence"]],
            "a trip may visit a stop twice, at different positions"
        ),
    ]
}
