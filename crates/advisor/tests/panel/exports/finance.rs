//! Exports of banks, exchanges, insurers and ledgers.

use arrow::array::RecordBatch;

use crate::columns::{
    DAY, START, amounts, choice, codes, decimals, export, floats, int32, int64, rising, seconds, serial,
    shuffled, signed, sorted, texts, times, uniform, uuids, zipf,
};
use crate::exports::{Case, amounts_below_zero, amounts_of, by_group, hexadecimal, lines};

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

fn payments_by_day() -> RecordBatch {
    let rows = 40_000;
    export(vec![
        ("day", seconds((0..rows as i64).map(|row| START + row / 400 * 86_400_000_000))),
        ("merchant_id", int64(uniform(rows, 3_000, 1))),
        ("payment_ref", texts((0..rows).map(|at| format!("PAY{:09}", at * 31)))),
        ("amount_cents", amounts(rows, 3_000.0, 2)),
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

/// Quotes of a few hundred instruments, each with a number of its own.
fn numbered_quotes() -> RecordBatch {
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
fn bank_transactions() -> RecordBatch {
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

/// Transactions of a ledger, whose blocks are made every few seconds.
fn transactions() -> RecordBatch {
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

/// Policies with dates as they are written in Spain.
fn policies() -> RecordBatch {
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
fn trades() -> RecordBatch {
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

/// Trades of one day in the order of a stream.
fn trades_in_a_stream() -> RecordBatch {
    let rows = 60_000;
    export(vec![
        ("seqno", serial(rows)),
        ("sym", codes("S", &zipf(rows, 500, 0.6, 931))),
        ("exch", choice(rows, &["N", "Q", "P", "Z"], 932)),
        ("time", times(rising(rows, 0.3, 933))),
        ("price", floats(rows, 90.0, 30.0, 934)),
        ("size", int32(amounts_of(rows, 300, 935))),
    ])
}

/// Transfers in the blocks of a chain, with amounts that no integer holds.
fn transfers_of_tokens() -> RecordBatch {
    let (transaction, _) = lines(16_000, 3, 941);
    let rows = transaction.len();
    let mut log_index: Vec<u64> = Vec::with_capacity(rows);
    for at in 0..rows {
        let is_same_block = at > 0 && transaction[at] / 256 == transaction[at - 1] / 256;
        log_index.push(if is_same_block { log_index[at - 1] + 1 } else { 0 });
    }
    let value = |amount: u64| format!("{}000000000000000{:04}", amount * 7_919 + 13, amount % 9_973);
    export(vec![
        ("block_number", int64(transaction.iter().map(|number| 19_000_000 + number / 256))),
        ("transaction_hash", texts(hexadecimal(transaction.iter().copied(), 942))),
        ("log_index", int32(log_index)),
        ("from_address", texts(hexadecimal(zipf(rows, 7_000, 0.7, 943), 944))),
        ("to_address", texts(hexadecimal(zipf(rows, 7_000, 0.7, 945), 944))),
        ("value", texts(uniform(rows, 40_000_000, 946).into_iter().map(value))),
    ])
}

/// Lines of the documents of a ledger, whose numbers are assigned by kind of document.
fn documents() -> RecordBatch {
    let (at, line) = lines(3_500, 14, 991);
    let mut first_rows: Vec<u64> = at.clone();
    first_rows.dedup();
    let position = |order: &u64| first_rows.partition_point(|first| first < order) as u64;
    let document: Vec<u64> = at.iter().map(position).collect();
    let kind = by_group(&document, 6, 3);
    let mut issued = [0_u64; 6];
    let mut numbers: Vec<u64> = Vec::new();
    for (row, kind) in kind.iter().enumerate() {
        if row == 0 || document[row] != document[row - 1] {
            issued[*kind as usize] += 1;
        }
        numbers.push((10 + kind) * 100_000_000 + issued[*kind as usize]);
    }
    let rows = numbers.len();
    let day = |document: &u64| START + (document / 10) as i64 * DAY;
    export(vec![
        ("BUKRS", int64(by_group(&document, 4, 5).into_iter().map(|company| 1_000 + 100 * company))),
        ("BELNR", int64(numbers)),
        ("BUZEI", int64(line)),
        ("BUDAT", times(document.iter().map(day))),
        ("BLART", codes("K", &kind)),
        ("HKONT", codes("", &zipf(rows, 160, 0.9, 992))),
        ("DMBTR", amounts(rows, 120.0, 993)),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(by name
            "lines of documents",
            documents,
            &[&["BELNR"], &["BUKRS", "BELNR"]],
            never & ["DMBTR"],
            by & [&["BELNR", "BUZEI"]],
            "a number that its kind of document follows from identifies the document without the kind"
        ),
        case!(by name
            "trades in a stream",
            trades_in_a_stream,
            &[&["sym"], &["sym", "seqno"], &["sym", "time"]],
            never & ["price", "size"],
            by & [&["seqno"]],
            "no read names a position in a stream: the symbol is read, even if some are larger than others"
        ),
        case!(by name
            "transfers of tokens",
            transfers_of_tokens,
            &[&["transaction_hash"]],
            never & ["value"],
            by & [&["transaction_hash", "log_index"]],
            "amounts with 20 digits are amounts"
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
            "payments",
            payments_by_day,
            &[&["merchant_id"]],
            never & ["amount_cents"],
            by & [&["payment_ref"]],
            "a merchant's payments"
        ),
        case!(
            "stock prices by day",
            stock_days,
            &[&["ticker"]],
            never & ["open", "close", "volume"],
            by & [&["ticker", "trade_date"]],
            "a ticker's history"
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
            "quotes",
            numbered_quotes,
            &[&["isin"], &["isin", "seq"]],
            never & ["bid", "ask", "bid_size"],
            by & [&["seq"], &["isin", "quoted_at"]],
            "instruments are read; the number of a quote is not"
        ),
        case!(
            "bank transactions",
            bank_transactions,
            &[&["account_id"]],
            never & ["amount", "balance"],
            by & [&["trans_id"]],
            "accounts of a day are not numbered by it, however the rows are sorted"
        ),
        case!(
            "transactions of a ledger",
            transactions,
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
            "policies",
            policies,
            &[&["num_poliza"], &["id_cliente"]],
            never & ["prima_anual"],
            by & [&["num_poliza"]],
            "a date is a time in every way to write it"
        ),
        case!(
            "trades of days",
            trades,
            &[&["contract"]],
            never & ["price", "size"],
            by & [&["trade_date", "exec_id"]],
            "the seventh trade of one day is not that of another"
        ),
    ]
}
