//! Exports of networks and services: connections, lookups, flows and metrics.

use arrow::array::RecordBatch;

use crate::columns::{
    SECOND, START, amounts, choice, codes, export, floats, int32, int64, rising, seconds,
    seconds_with_fractions, serial, texts, times, uniform, zipf,
};
use crate::exports::{Case, amounts_of, sums};

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

/// Flows through a firewall: who is behind an address is not known.
fn flows() -> RecordBatch {
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

/// Names that hosts look up, at seconds with fractions; some connections ask for a name twice.
fn lookups() -> RecordBatch {
    let rows = 30_000;
    let connection: Vec<u64> = uniform(rows, 20_000, 321)
        .into_iter()
        .scan(0, |last, n| {
            if n % 3 > 0 {
                *last += 1;
            }
            Some(*last)
        })
        .collect();
    let asked = rising(rows, 2.0, 322);
    export(vec![
        ("ts", seconds_with_fractions(&asked)),
        ("uid", codes("C", &connection.iter().map(|n| n * 7_919 % 1_000_003).collect::<Vec<_>>())),
        ("client", codes("10.1.", &connection.iter().map(|n| n * 31 % 900).collect::<Vec<_>>())),
        ("query", codes("host", &connection.iter().map(|n| n * n % 2_000).collect::<Vec<_>>())),
        ("qtype", choice(rows, &["A", "AAAA", "PTR"], 323)),
        ("rtt", floats(rows, 0.03, 0.004, 324)),
    ])
}

/// Requests between services, counted by minute.
fn edges() -> RecordBatch {
    let (services, minutes) = (22u64, 90u64);
    let edges: Vec<(u64, u64)> =
        (0..services).flat_map(|a| (1..=4).map(move |b| (a, (a * 5 + b * 3) % services))).collect();
    let rows: Vec<(u64, u64, u64)> =
        (0..minutes).flat_map(|minute| edges.iter().map(move |(a, b)| (minute, *a, *b))).collect();
    export(vec![
        ("minute", times(rows.iter().map(|(minute, ..)| START + *minute as i64 * 60 * SECOND))),
        ("source_service", codes("svc-", &rows.iter().map(|row| row.1).collect::<Vec<_>>())),
        ("destination_service", codes("svc-", &rows.iter().map(|row| row.2).collect::<Vec<_>>())),
        ("requests", int64(sums(rows.len(), 40, 3, 351).into_iter().map(|n| n * n * n / 900))),
        ("latency_ms", floats(rows.len(), 20.0, 6.0, 352)),
    ])
}

/// Questions to a name server, each with a random number that its answer repeats.
fn questions() -> RecordBatch {
    let rows = 34_000;
    let address = |client: u64| format!("10.17.{}.{}", client / 250, client % 250 + 1);
    export(vec![
        ("ts", times(rising(rows, 2.0, 961))),
        ("client_ip", texts(zipf(rows, 1_700, 0.5, 962).into_iter().map(address))),
        ("query_id", int64(uniform(rows, 65_536, 963))),
        ("qname", codes("www.host", &zipf(rows, 3_000, 0.8, 964))),
        ("qtype", choice(rows, &["A", "AAAA", "MX", "TXT"], 965)),
        ("latency_us", int64(amounts_of(rows, 900, 966))),
    ])
}

/// Exports of this file, with the answers that experts accept.
pub(super) fn cases() -> Vec<Case> {
    vec![
        case!(by name
            "questions to a name server",
            questions,
            &[&["client_ip"]],
            never & ["latency_us"],
            by & [],
            "a random number of 16 bits, which repeats by chance, identifies nothing that is read together"
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
            "metrics",
            metrics,
            &[&["host"], &["host", "metric"]],
            never & ["value"],
            by & [&["ts", "host", "metric"]],
            "a series is a host and a metric"
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
            "flows through a firewall",
            flows,
            &[&["SRC_IP"], &["SRC_IP", "DST_IP"]],
            never & ["BYTES"],
            by & [&["FLOW_ID"]],
            "addresses are looked up if nothing else says who it was"
        ),
        case!(by name
            "lookups of names",
            lookups,
            &[&["uid"], &["client"]],
            never & ["rtt"],
            by & [&["ts", "uid"], &["ts", "client"]],
            "what a connection asked is read together, and the time tells its lookups apart"
        ),
        case!(
            "edges between services",
            edges,
            &[&["source_service", "destination_service"]],
            never & ["requests", "latency_ms"],
            by & [&["minute", "source_service", "destination_service"]],
            "a count of requests is no request, and 22 services are too few"
        ),
    ]
}
