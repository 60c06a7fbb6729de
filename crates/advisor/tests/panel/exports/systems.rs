//! Exports of computers: logs, jobs, sessions and accounts.

use arrow::array::RecordBatch;

use crate::columns::{
    DAY, START, amounts, choice, codes, export, floats, int32, int64, rising, sentences, serial, texts,
    times, uniform, uuid_bytes, uuids, uuids_v7, zipf,
};
use crate::exports::{Case, amounts_of};

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

/// Lags of groups of consumers, with the host that reads each partition now.
fn consumer_lags() -> RecordBatch {
    let (readers, samples) = (310u64, 90u64);
    let rows = 0..readers * samples;
    let reader = |row: u64| row % readers;
    let group = |row: u64| reader(row) / 20;
    let topic = |row: u64| (group(row) * 2 + reader(row) / 10 % 2) % 29;
    // Each host reads several partitions; a restart moves a group to other hosts.
    let host = |row: u64| 1 + group(row) * 9 + reader(row) % (3 + group(row) % 4) + row / readers / 40;
    export(vec![
        ("sampled_at", times(rows.clone().map(|row| START + (row / readers) as i64 * 60_000_000))),
        ("consumer_group", codes("svc-", &rows.clone().map(group).collect::<Vec<_>>())),
        ("topic", codes("events.", &rows.clone().map(topic).collect::<Vec<_>>())),
        ("partition", int64(rows.clone().map(|row| reader(row) % 10))),
        ("lag", int64(amounts_of((readers * samples) as usize, 30, 761))),
        ("client_host", texts(rows.map(|row| format!("10.12.{}.{}", host(row) % 4, host(row))))),
    ])
}

/// Invoices of tenants whose customers are numbered from 1001; one tenant has most rows.
fn invoices_of_tenants() -> RecordBatch {
    let rows = 30_000;
    let tenant: Vec<u64> = uniform(rows, 100, 771)
        .into_iter()
        .zip(zipf(rows, 75, 0.3, 772))
        .map(|(share, other)| if share < 68 { 0 } else { 1 + other })
        .collect();
    let mut next = vec![0u64; 76];
    let mut number = |tenant: &u64| {
        next[*tenant as usize] += 1;
        next[*tenant as usize]
    };
    let invoice: Vec<u64> = tenant.iter().map(&mut number).collect();
    let customers = |tenant: u64| if tenant == 0 { 3_000 } else { 30 + tenant };
    let customer = tenant.iter().zip(uniform(rows, 1 << 32, 773));
    export(vec![
        ("tenant_id", codes("tnt_", &tenant)),
        ("invoice_no", int64(invoice)),
        ("customer_no", int64(customer.map(|(tenant, drawn)| 1_001 + drawn % customers(*tenant)))),
        ("issued_on", times(rising(rows, 900.0, 774).into_iter().map(|at| at / DAY * DAY))),
        ("status", choice(rows, &["paid", "open", "overdue"], 775)),
        ("total", floats(rows, 200.0, 1.0, 776)),
    ])
}

/// Licences that hosts check out; the handles are used again, and one user has most of the rows.
fn checkouts() -> RecordBatch {
    let rows = 30_000;
    let host = zipf(rows, 600, 0.3, 331);
    let user =
        host.iter().map(|host| if host % 5 < 3 { "svc_batch".to_owned() } else { format!("u{}", host % 83) });
    export(vec![
        ("server", choice(rows, &["lic01", "lic02", "lic03"], 332)),
        ("username", texts(user)),
        ("hostname", codes("farm", &host)),
        ("handle", int64((0..rows as u64).map(|at| 101 + at * 7 % 4_000))),
        ("out_ts", times(rising(rows, 20.0, 333))),
        ("duration_s", int64(zipf(rows, 9_000, 0.6, 334))),
    ])
}

/// Swipes at doors: the card number 0 is that of the doors themselves.
fn swipes() -> RecordBatch {
    let rows = 30_000;
    let card: Vec<u64> = zipf(rows, 2_500, 0.3, 341);
    let code = |at: usize| if at.is_multiple_of(40) { "DF" } else { ["AG", "AG", "AG", "AD"][at * 7 % 4] };
    let is_of_door = |at: usize| at.is_multiple_of(40);
    let number = |(at, card): (usize, &u64)| if is_of_door(at) { 0 } else { 300_000 + card * 17 };
    let employee =
        |(at, card): (usize, &u64)| if is_of_door(at) { "DOOR".to_owned() } else { format!("E{card:05}") };
    export(vec![
        ("EVT_CD", texts((0..rows).map(|at| code(at).to_owned()))),
        ("CARD_NO", int64(card.iter().enumerate().map(number))),
        ("EMP_ID", texts(card.iter().enumerate().map(employee))),
        ("RDR_ID", int64(zipf(rows, 150, 0.9, 342).into_iter().map(|n| n + 5_000))),
        ("EVT_TS", times(rising(rows, 5.0, 343))),
        ("SEQ", serial(rows)),
    ])
}

/// Sessions of a database that were active when it was sampled, every ten seconds.
fn active_sessions() -> RecordBatch {
    let active: Vec<(u64, u64)> = (0..4_000u64)
        .flat_map(|sample| (0..3 + sample % 9).map(move |at| (sample, (sample * 31 + at * 171) % 1_200)))
        .collect();
    let at = |sample: u64| {
        let seconds = sample * 10;
        format!("18-MAR-26 {:02}.{:02}.{:02}", 6 + seconds / 3_600, seconds / 60 % 60, seconds % 60)
    };
    export(vec![
        ("SAMPLE_ID", int64(active.iter().map(|row| 81_230_110 + row.0 * 10))),
        ("SAMPLE_TIME", texts(active.iter().map(|row| at(row.0)))),
        ("SESSION_ID", int64(active.iter().map(|row| 20 + row.1))),
        ("WAIT_CLASS", choice(active.len(), &["CPU", "User I/O", "Network"], 402)),
        ("TIME_WAITED", int64(zipf(active.len(), 9_000, 0.7, 403))),
    ])
}

/// Security logs of computers, which number their records.
fn security_log() -> RecordBatch {
    let rows = 30_000;
    let computer = zipf(rows, 700, 0.5, 421);
    let mut records = vec![0u64; 700];
    let record: Vec<u64> = computer
        .iter()
        .map(|at| {
            records[*at as usize] += 1;
            at * 211 + 90_000 + records[*at as usize]
        })
        .collect();
    export(vec![
        ("System.TimeCreated", times(rising(rows, 2.0, 422))),
        ("System.EventID", choice(rows, &["4624", "4688", "4634", "4672"], 423)),
        ("System.EventRecordID", int64(record)),
        ("System.Execution.ProcessID", int64(uniform(rows, 3, 424).into_iter().map(|n| 680 + n * 12))),
        ("System.Execution.ThreadID", int64(uniform(rows, 2_000, 425).into_iter().map(|n| n * 4 + 100))),
        ("System.Computer", texts(computer.iter().map(|at| format!("SRV{at:03}.corp.local")))),
    ])
}

/// Lines of a log without their times and hosts.
fn lines_of_log() -> RecordBatch {
    let rows = 9_000;
    let number = uniform(rows, 250, 981);
    let message = |(kind, number): (u64, &u64)| match kind {
        0 => "connection reset by peer".to_owned(),
        1 => format!("slow query took {number} ms"),
        2 => format!("cache miss ratio {} %", number % 100),
        _ => format!("retry {} of 5 for the job", number % 5),
    };
    let kinds = zipf(rows, 4, 0.5, 982);
    export(vec![
        ("level", choice(rows, &["INFO", "WARN", "ERROR", "DEBUG"], 983)),
        ("logger", choice(rows, &["cache.Lru", "mq.Consumer", "db.Pool", "http.Server", "jobs.Runner"], 984)),
        ("thread", codes("exec-", &uniform(rows, 32, 985))),
        ("message", texts(kinds.into_iter().zip(&number).map(message))),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(by name
            "lines of a log",
            lines_of_log,
            &[&[]],
            never & [],
            by & [],
            "nobody looks up a message, and equal lines are different events"
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
            "logs",
            logs,
            &[&["trace_id"]],
            never & ["message", "latency_ms"],
            by & [],
            "a trace is read as a whole"
        ),
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
            "audits of tenants",
            audits_of_tenants,
            &[&["tenant_id", "document_no"], &["tenant_id", "user_no"], &["event_id"]],
            never & ["action"],
            by & [&["event_id"]],
            "document 17 of one tenant is not that of another"
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
            "active sessions",
            active_sessions,
            &[&["SESSION_ID"]],
            never & ["TIME_WAITED"],
            by & [&["SESSION_ID", "SAMPLE_ID"], &["SESSION_ID", "SAMPLE_TIME"]],
            "the number of a sample is its time"
        ),
        case!(by name
            "security logs",
            security_log,
            &[&["System.Computer"]],
            never & [],
            by & [&["System.Computer", "System.EventRecordID"]],
            "threads of an operating system are nothing that is looked up"
        ),
        case!(by name
            "licences",
            checkouts,
            &[&["hostname"], &["username", "hostname"]],
            never & ["duration_s"],
            by & [],
            "a handle that is used again identifies nothing"
        ),
        case!(
            "swipes of cards",
            swipes,
            &[&["CARD_NO"], &["EMP_ID"]],
            never & [],
            by & [&["SEQ"]],
            "a card is one card, whatever the event"
        ),
        case!(by name
            "lags of consumers",
            consumer_lags,
            &[
                &["consumer_group", "topic", "partition"],
                &["topic", "partition"],
                &["consumer_group", "partition"],
                &["consumer_group", "topic"]
            ],
            never & ["lag", "client_host"],
            by & [&["sampled_at", "consumer_group", "topic", "partition"]],
            "the host is where a partition is read, not what is sampled"
        ),
        case!(by name
            "invoices of tenants",
            invoices_of_tenants,
            &[&["tenant_id", "invoice_no"], &["tenant_id", "customer_no"]],
            never & ["total", "status"],
            by & [&["tenant_id", "invoice_no"]],
            "customer 1001 of one tenant is not that of another, and one tenant is too large"
        ),
    ]
}
