//! Exports of streams: changes of a table, messages of a log, updates of order books; and the lines
//! of a till.

use arrow::array::RecordBatch;

use crate::columns::{
    amounts, choice, codes, export, flags, floats, int64, rising, signed, texts, times, uniform, uuid_bytes,
    zipf,
};
use crate::exports::Case;

/// Changes of the orders of customers, as a connector to the log of a database writes them.
fn changes() -> RecordBatch {
    let rows = 24_000;
    let order: Vec<u64> = zipf(rows, 7_000, 0.3, 701);
    let at = rising(rows, 9.0, 702);
    export(vec![
        ("id", int64(order.iter().map(|order| 100_000 + order))),
        ("customer_id", int64(order.iter().map(|order| order.wrapping_mul(2_654_435_761) % 2_900))),
        ("status", choice(rows, &["created", "paid", "shipped", "done"], 703)),
        ("total", floats(rows, 60.0, 1.0, 704)),
        ("__op", choice(rows, &["u", "c", "d"], 705)),
        ("__source_lsn", int64((0..rows as u64).map(|row| 24_023_381 + row * 613 + row * row % 97))),
        ("__source_ts_ms", signed(at.iter().map(|at| at / 1_000))),
    ])
}

/// Messages of topics, each with partitions whose offsets began at different times.
fn messages() -> RecordBatch {
    let rows = 24_000;
    let key = zipf(rows, 5_000, 0.3, 711);
    let topic = uniform(rows, 3, 712);
    let partition: Vec<u64> = key.iter().map(|key| key.wrapping_mul(2_654_435_761) % 12).collect();
    let mut next = std::collections::HashMap::new();
    let offsets: Vec<u64> = topic
        .iter()
        .zip(&partition)
        .map(|stream| {
            let first = 1_000_000 + stream.0 * 4_321_000 + stream.1 * 67_000;
            let offset = next.entry(stream).or_insert(first);
            *offset += 1;
            *offset
        })
        .collect();
    export(vec![
        (
            "topic",
            texts(topic.iter().map(|topic| ["orders", "payments", "mails"][*topic as usize].to_owned())),
        ),
        ("partition", int64(partition)),
        ("offset", int64(offsets)),
        ("timestamp", times(rising(rows, 2.0, 713))),
        ("key", uuid_bytes(&key)),
        ("value", texts((0..rows).map(|row| format!("{{\"ref\": {row}, \"state\": \"NEW\"}}")))),
    ])
}

/// Updates of order books: several levels of prices change at once.
fn updates() -> RecordBatch {
    let batches = 9_000;
    let at = rising(batches, 0.4, 721);
    let symbol = zipf(batches, 440, 0.4, 722);
    let mut columns: [Vec<u64>; 5] = Default::default();
    let mut next = 48_184_584_000u64;
    for batch in 0..batches {
        let first = next;
        next += 1 + uniform(1, 9, 723 + batch as u64)[0];
        for level in 0..=(batch as u64 % 7) {
            let row = [at[batch].cast_unsigned() / 1_000, symbol[batch], first, next - 1, 1_000 + level * 3];
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
    }
    let [at, symbol, first, last, price] = columns;
    let rows = at.len();
    export(vec![
        ("event_time", int64(at)),
        ("symbol", codes("SYM", &symbol)),
        ("first_update_id", int64(first)),
        ("final_update_id", int64(last)),
        ("side", choice(rows, &["bid", "ask"], 724)),
        ("price_ticks", int64(price)),
        ("qty", floats(rows, 4.0, 1.0, 725)),
    ])
}

/// Lines of receipts with names in Japanese; the number of a receipt begins with its day.
fn lines_of_a_till() -> RecordBatch {
    let receipts = 11_000;
    let at = rising(receipts, 7.0, 731);
    let mut columns: [Vec<u64>; 4] = Default::default();
    let mut sold = Vec::new();
    for (receipt, sold_at) in at.into_iter().enumerate() {
        let shop = 2_000 + uniform(1, 38, 732 + receipt as u64)[0];
        let day = 20_260_301 + receipt as u64 / 4_000;
        for line in 1..=(1 + receipt as u64 * 7 % 5) {
            let number = (day * 10_000 + shop) * 10_000_000 + 200_000 + receipt as u64;
            let product = (receipt as u64 * 31 + line * line * 17) % 1_300;
            let row = [shop, number, line, product];
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
            sold.push(sold_at);
        }
    }
    let [shop, receipt, line, product] = columns;
    let rows = shop.len();
    export(vec![
        ("店舗コード", int64(shop)),
        ("レシート番号", int64(receipt)),
        ("明細番号", int64(line)),
        ("取引日時", times(sold)),
        ("商品名", codes("チョコ", &product)),
        ("数量", int64(uniform(rows, 3, 733).into_iter().map(|count| count + 1))),
        ("支払方法", choice(rows, &["現金", "クレジット", "電子マネー"], 734)),
    ])
}

/// Entries of four public logs of certificates, whose numbers began at different ones. Each
/// certificate is in two of them.
fn entries_of_logs() -> RecordBatch {
    let rows = 16_000;
    let certificate: Vec<u64> = (0..rows as u64).map(|row| row / 2).collect();
    let log: Vec<u64> = certificate.iter().enumerate().map(|(row, c)| (c + row as u64 % 2) % 4).collect();
    let mut next = [450_000_000, 1_199_990_000, 800_000_000, 1_200_000_000];
    let index: Vec<u64> = log
        .iter()
        .map(|log| {
            next[*log as usize] += 1;
            next[*log as usize]
        })
        .collect();
    let domain = zipf(rows / 2, 2_400, 0.5, 741);
    let domain = || certificate.iter().map(|c| domain[*c as usize]);
    export(vec![
        ("log_name", texts(log.iter().map(|log| ["oak", "argon", "xenon", "nimbus"][*log as usize].into()))),
        ("log_index", int64(index)),
        ("seen_at", times(rising(rows, 2.0, 742))),
        (
            "fingerprint",
            texts(
                certificate
                    .iter()
                    .map(|c| format!("{:016x}{:048x}", c.wrapping_mul(0x9E37_79B9_7F4A_7C15), c)),
            ),
        ),
        ("common_name", texts(domain().map(|domain| format!("www.site{domain}.example")))),
        ("issuer", choice(rows, &["R3", "GTS 1P5", "DigiCert G2"], 743)),
        ("san_count", int64(uniform(rows, 12, 744))),
    ])
}

/// Games of a server for chess: most players are white in one and black in the next.
fn games() -> RecordBatch {
    let rows = 12_000;
    let (white, black) = (zipf(rows, 3_000, 0.4, 751), zipf(rows, 3_000, 0.4, 752));
    let began = rising(rows, 60.0, 753);
    let ended =
        began.iter().zip(uniform(rows, 1_800, 754)).map(|(at, seconds)| at + seconds as i64 * 1_000_000);
    export(vec![
        ("id", texts(uniform(rows, 1 << 47, 755).into_iter().map(|id| format!("{id:012x}")))),
        ("rated", flags(rows, 756)),
        ("ended", times(ended)),
        ("began", times(began)),
        ("turns", amounts(rows, 50.0, 757)),
        ("winner", choice(rows, &["white", "black", "draw"], 758)),
        ("white_id", codes("player", &white)),
        ("black_id", codes("player", &black)),
    ])
}

/// Transfers between accounts, in steps of a simulation.
fn transfers_by_step() -> RecordBatch {
    let rows = 24_000;
    let mut step = uniform(rows, 740, 761);
    step.sort_unstable();
    export(vec![
        ("step", int64(step)),
        ("type", choice(rows, &["CASH_OUT", "PAYMENT", "CASH_IN", "TRANSFER", "DEBIT"], 762)),
        ("amount", floats(rows, 900.0, 300.0, 763)),
        ("nameOrig", texts(uniform(rows, 2_000_000_000, 764).into_iter().map(|id| format!("C{id}")))),
        ("nameDest", codes("M", &zipf(rows, 9_000, 0.4, 765))),
        ("isFraud", flags(rows, 766)),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(by name
            "changes of orders",
            changes,
            &[&["id"]],
            never & ["total", "status"],
            by & [&["id", "__source_lsn"]],
            "the versions of a row belong together, whatever the row refers to"
        ),
        case!(by name
            "messages of a log",
            messages,
            &[&["key"], &["topic", "key"]],
            never & ["value"],
            by & [&["topic", "partition", "offset"]],
            "an offset means something within a topic and a partition only"
        ),
        case!(by name
            "updates of order books",
            updates,
            &[&["symbol"]],
            never & ["qty"],
            by & [],
            "numbers of updates are positions; books are read by their symbol"
        ),
        case!(by name
            "lines of a till",
            lines_of_a_till,
            &[&["レシート番号"]],
            never & ["数量"],
            by & [&["レシート番号", "明細番号"]],
            "a number that begins with a date is no time, and names in Japanese tell as others do"
        ),
        case!(by name
            "entries of logs",
            entries_of_logs,
            &[&["fingerprint"], &["common_name"], &["log_name", "log_index"]],
            never & ["san_count", "issuer"],
            by & [&["log_name", "log_index"], &["fingerprint", "log_name"]],
            "an entry is numbered within its log, even if no two logs share a number yet"
        ),
        case!(by name
            "games",
            games,
            &[&["id"]],
            never & ["turns", "winner"],
            by & [&["id"]],
            "neither side has all games of a player"
        ),
        case!(by name
            "transfers by step",
            transfers_by_step,
            &[&["nameOrig"], &["nameDest"]],
            never & ["amount"],
            by & [],
            "accounts, rather than the steps of a simulation"
        ),
    ]
}
