//! Exports whose columns look like what they are not: things that seem to be numbered, times that
//! seem to be ids, hashes that seem to identify.

use arrow::array::RecordBatch;

use crate::columns::{
    START, amounts, choice, codes, export, floats, int64, rising, seconds, serial, shuffled, sorted, texts,
    times, uniform, with_nulls, zipf,
};

/// Quotes of a few hundred instruments, each with a number of its own.
pub(crate) fn quotes() -> RecordBatch {
    let rows = 40_000;
    let instrument = zipf(rows, 380, 0.4, 71);
    export(vec![
        ("seq", serial(rows)),
        ("quoted_at", times(rising(rows, 0.4, 72))),
        ("isin", codes("XS00", &instrument)),
        ("bid", floats(rows, 100.0, 9.0, 73)),
        ("ask", floats(rows, 101.0, 9.0, 74)),
        ("bid_size", int64(uniform(rows, 900, 75).into_iter().map(|n| (n + 1) * 100))),
        ("venue", choice(rows, &["XETR", "XPAR", "XAMS"], 76)),
    ])
}

/// Bank transactions, sorted by day and account, with dates in six digits.
pub(crate) fn bank_transactions() -> RecordBatch {
    let rows = 30_000;
    let account: Vec<u64> = zipf(rows, 1_400, 0.3, 81).into_iter().map(|n| n * 7 + 3).collect();
    let day: Vec<u64> = uniform(rows, 360, 82);
    let date = day.iter().map(|day| 930_000 + (day / 30 + 1) * 100 + day % 30 + 1);
    let id: Vec<u64> = uniform(rows, 1 << 40, 83);
    let unsorted = export(vec![
        ("trans_id", int64(id)),
        ("account_id", int64(account)),
        ("date", int64(date)),
        ("type", choice(rows, &["PRIJEM", "VYDAJ", "VYBER"], 84)),
        ("amount", amounts(rows, 900.0, 85)),
        ("balance", amounts(rows, 30_000.0, 86)),
    ]);
    sorted(&sorted(&unsorted, "account_id"), "date")
}

/// Revisions of documents with the hash of their content.
pub(crate) fn revisions() -> RecordBatch {
    let counts = zipf(6_000, 30, 0.8, 91);
    let (mut document, mut revision) = (Vec::new(), Vec::new());
    for (at, count) in counts.iter().enumerate() {
        for number in 0..=*count {
            document.push(at as u64 * 3 + 100);
            revision.push(number + 1);
        }
    }
    let rows = document.len();
    let digest = |at: usize| {
        let part =
            |seed: u64| (at as u64 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(seed as u32);
        format!("{:016x}{:016x}{:016x}{:016x}", part(1), part(17), part(33), part(51))
    };
    export(vec![
        ("doc_id", int64(document)),
        ("rev", int64(revision)),
        ("edited_by", int64(zipf(rows, 400, 0.7, 92).into_iter().map(|n| n + 5_000))),
        ("edited_at", times(rising(rows, 30.0, 93))),
        ("size_bytes", int64(uniform(rows, 90_000, 94))),
        ("sha256", texts((0..rows).map(digest))),
    ])
}

/// Hits of visits, whose id is the second in which the visit began.
pub(crate) fn hits() -> RecordBatch {
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

/// Countries, with few rows and a code.
pub(crate) fn countries() -> RecordBatch {
    let code = |at: u64| {
        let letter = |n: u64| char::from(b'A' + u8::try_from(n % 26).unwrap());
        format!("{}{}", letter(at), letter(at / 2 + at % 2 * 11))
    };
    export(vec![
        ("country_code", texts((0..50).map(code))),
        ("country_name", texts((0..50).map(|at| format!("Land of {}", code(at * 7 % 50))))),
        ("region", choice(50, &["Europe", "Asia", "Africa"], 111)),
        ("currency", choice(50, &["EUR", "USD", "XOF", "CNY", "INR"], 112)),
        ("population", int64(uniform(50, 90_000_000, 113))),
        ("gdp_bn", floats(50, 400.0, 90.0, 114)),
    ])
}

/// Lines of orders that are numbered within districts of warehouses.
pub(crate) fn order_lines() -> RecordBatch {
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

/// Days, with numbers of their weeks and months.
pub(crate) fn days() -> RecordBatch {
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

/// Sales whose commission is a share of the price.
pub(crate) fn sales() -> RecordBatch {
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

/// Long hexadecimal numbers that follow from the values.
fn hexadecimal(values: impl IntoIterator<Item = u64>, salt: u64) -> Vec<String> {
    let part = |value: u64, turn: u32| {
        (value ^ salt << 40).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(turn)
    };
    values.into_iter().map(|value| format!("0x{:016x}{:016x}", part(value, 7), part(value, 31))).collect()
}

/// Visits of patients, a few of whom are not known.
pub(crate) fn visits() -> RecordBatch {
    let rows = 30_000;
    let patient: Vec<u64> = zipf(rows, 6_000, 0.3, 151).into_iter().map(|n| n * 3 + 7_001).collect();
    let born = patient.iter().map(|patient| START - (patient % 30_000) as i64 * 86_400_000_000);
    let visit = export(vec![
        ("clinic", choice(rows, &["north", "south", "harbour"], 152)),
        ("ticket_no", serial(rows)),
        ("patient_id", with_nulls(&int64(patient.clone()), 0.02, 153)),
        ("date_of_birth", times(born)),
        ("visited_at", times(rising(rows, 600.0, 154))),
        ("charge", amounts(rows, 120.0, 155)),
    ]);
    shuffled(&visit, 156)
}

/// Stock of each item in each warehouse, by keys of a calendar.
pub(crate) fn inventory() -> RecordBatch {
    let (weeks, items, warehouses) = (10u64, 900u64, 5u64);
    let rows = weeks * items * warehouses;
    export(vec![
        ("inv_date_sk", int64((0..rows).map(|at| 2_451_179 + at / (items * warehouses) * 7))),
        ("inv_item_sk", int64((0..rows).map(|at| at / warehouses % items * 2 + 1))),
        ("inv_warehouse_sk", int64((0..rows).map(|at| at % warehouses + 1))),
        ("inv_quantity_on_hand", int64(uniform(rows as usize, 1_000, 161))),
    ])
}

/// Transactions of a ledger, whose blocks are made every few seconds.
pub(crate) fn transactions() -> RecordBatch {
    let rows = 40_000;
    let block: Vec<u64> = (0..rows as u64).map(|at| at / 90).collect();
    let made = block.iter().map(|block| START + *block as i64 * 12_000_000);
    export(vec![
        ("hash", texts(hexadecimal(0..rows as u64, 1))),
        ("block_number", int64(block.iter().map(|block| block + 18_000_000))),
        ("block_hash", texts(hexadecimal(block.iter().copied(), 2))),
        ("block_timestamp", seconds(made)),
        ("transaction_index", int64((0..rows as u64).map(|at| at % 90))),
        ("from_address", texts(hexadecimal(zipf(rows, 7_000, 0.5, 171), 3))),
        ("data", texts(hexadecimal((0..rows as u64).map(|at| at * 3), 4))),
        ("gas_price", amounts(rows, 30_000.0, 172)),
    ])
}

/// Flows through a firewall: who is behind an address is not known.
pub(crate) fn flows() -> RecordBatch {
    let rows = 40_000;
    let address = |host: u64| format!("10.{}.{}.{}", host / 60_000, host / 250 % 240, host % 250 + 1);
    export(vec![
        ("START_TM", times(rising(rows, 1.0, 181))),
        ("FLOW_ID", serial(rows)),
        ("SRC_IP", texts(zipf(rows, 5_000, 0.4, 182).into_iter().map(address))),
        ("SRC_PORT", int64(uniform(rows, 50_000, 183).into_iter().map(|port| port + 10_000))),
        ("DST_IP", texts(zipf(rows, 900, 1.2, 184).into_iter().map(address))),
        ("ACTION", choice(rows, &["allow", "deny", "reset"], 185)),
        ("BYTES", amounts(rows, 9_000.0, 186)),
    ])
}

/// Commits, each with the one before it.
pub(crate) fn commits() -> RecordBatch {
    let rows = 30_000u64;
    let sha = |at: u64| hexadecimal([at], 5).concat();
    export(vec![
        ("repo", codes("org/", &zipf(rows as usize, 130, 0.9, 191))),
        ("sha", texts((0..rows).map(sha))),
        ("parent_sha", texts((0..rows).map(|at| sha(at.saturating_sub(1 + at % 7 / 6))))),
        (
            "author_email",
            texts(zipf(rows as usize, 3_000, 0.5, 192).into_iter().map(|n| format!("dev{n}@example.com"))),
        ),
        ("author_date", times(rising(rows as usize, 900.0, 193))),
        ("insertions", amounts(rows as usize, 40.0, 194)),
    ])
}

/// Messages that are known by their channel and a time in seconds with fractions, as text.
pub(crate) fn channel_messages() -> RecordBatch {
    let rows = 40_000;
    let text = |at: i64| format!("{}.{:06}", at / 1_000_000, at % 1_000_000);
    export(vec![
        ("channel", codes("C0", &zipf(rows, 2_500, 0.3, 201))),
        ("ts", texts(rising(rows, 20.0, 202).into_iter().map(text))),
        ("user", codes("U0", &zipf(rows, 3_000, 0.4, 203))),
        ("text", crate::columns::sentences(rows, 204)),
    ])
}

/// Policies with dates as they are written in Spain.
pub(crate) fn policies() -> RecordBatch {
    let rows = 14_000;
    let number = |at: u64| format!("PZ-{:010}", (at + 1) * 7_919 % 99_999_989);
    let date = |day: u64| format!("{:02}/{:02}/{}", day % 28 + 1, day / 28 % 12 + 1, 2015 + day / 336);
    let policy = export(vec![
        ("num_poliza", texts((0..rows).map(number))),
        ("id_cliente", int64(zipf(rows as usize, 9_000, 0.2, 211).into_iter().map(|n| n * 11 + 1_000_003))),
        ("ramo", choice(rows as usize, &["AUTO", "VIDA", "HOGAR"], 212)),
        ("fecha_alta", texts(uniform(rows as usize, 3_000, 213).into_iter().map(date))),
        ("prima_anual", floats(rows as usize, 400.0, 150.0, 214)),
        ("estado", choice(rows as usize, &["VIGENTE", "ANULADA"], 215)),
    ]);
    shuffled(&policy, 216)
}

/// Trades that are numbered anew on each day.
pub(crate) fn trades() -> RecordBatch {
    let days = [9_000u64, 11_000, 10_000, 8_000];
    let rows = days.iter().sum::<u64>() as usize;
    let trades_of = |(day, count): (usize, &u64)| (0..*count).map(move |at| (day, at));
    let trades: Vec<(usize, u64)> = days.iter().enumerate().flat_map(trades_of).collect();
    export(vec![
        ("trade_date", texts(trades.iter().map(|(day, _)| format!("2026-03-{:02}", day + 2)))),
        ("exec_id", int64(trades.iter().map(|(_, at)| at + 1))),
        ("contract", codes("X", &zipf(rows, 3_000, 0.4, 221))),
        ("price", floats(rows, 12.0, 4.0, 222)),
        ("size", int64(uniform(rows, 90, 223).into_iter().map(|n| n + 1))),
    ])
}

/// Inverters, which are numbered in each plant, at local times.
pub(crate) fn inverters() -> RecordBatch {
    let (plants, steps) = (9u64, 96u64);
    let units = |plant: u64| 20 + plant * 3;
    let rows: Vec<(u64, u64, u64)> = (0..steps)
        .flat_map(|step| {
            (0..plants).flat_map(move |plant| (0..units(plant)).map(move |unit| (step, plant, unit)))
        })
        .collect();
    let time = |step: u64| format!("{:02}.07.2026 {:02}:{:02}", step / 48 + 1, step / 2 % 24, step % 2 * 30);
    export(vec![
        ("local_time", texts(rows.iter().map(|(step, _, _)| time(*step)))),
        ("plant_code", texts(rows.iter().map(|(_, plant, _)| format!("P{plant}")))),
        ("inverter_no", texts(rows.iter().map(|(_, _, unit)| format!("INV{unit:02}")))),
        ("ac_power_kw", floats(rows.len(), 40.0, 12.0, 231)),
        ("dc_voltage", floats(rows.len(), 600.0, 20.0, 232)),
    ])
}
