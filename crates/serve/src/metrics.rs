//! Metrics of a running server, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenkeel_stats::skew::SkewFigures;

use crate::tables::OpenTables;

/// Upper bounds of the buckets of durations, in seconds.
const BOUNDS: [f64; 14] = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 30.0, 120.0];

/// Outcome of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed,
    Canceled,
}

/// Counters of a server.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) connections: AtomicU64,
    pub(crate) open_connections: AtomicU64,
    pub(crate) refused_connections: AtomicU64,
    pub(crate) failed_logins: AtomicU64,
    pub(crate) running_queries: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    canceled: AtomicU64,
    pub(crate) rows: AtomicU64,
    pub(crate) bytes_sent: AtomicU64,
    bytes_read: AtomicU64,
    bytes_pruned: AtomicU64,
    classes: [AtomicU64; BOUNDS.len()],
    /// Sum of all durations in microseconds.
    micros: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

pub(crate) fn subtract(counter: &AtomicU64, amount: u64) {
    counter.fetch_sub(amount, Ordering::Relaxed);
}

impl Metrics {
    /// Counts a finished query and its duration.
    pub(crate) fn count_query(&self, outcome: Outcome, time: Duration) {
        let counter = match outcome {
            Outcome::Done => &self.done,
            Outcome::Failed => &self.failed,
            Outcome::Canceled => &self.canceled,
        };
        add(counter, 1);
        if let Some(at) = BOUNDS.iter().position(|bound| time.as_secs_f64() <= *bound)
            && let Some(class) = self.classes.get(at)
        {
            add(class, 1);
        }
        add(&self.micros, u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    /// Counts the bytes of files that a query read, and the total bytes of its tables.
    pub(crate) fn count_bytes(&self, read: u64, total: u64) {
        add(&self.bytes_read, read);
        add(&self.bytes_pruned, total.saturating_sub(read));
    }

    /// Returns all metrics as text.
    pub(crate) fn text(&self, opened: &OpenTables, reserved: usize) -> String {
        let mut page = Page(String::new());
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counters = [
            ("connections_total", "Accepted connections.", &self.connections),
            ("connections_refused_total", "Connections refused at the limit.", &self.refused_connections),
            ("logins_failed_total", "Logins with a wrong password or user.", &self.failed_logins),
            ("rows_sent_total", "Rows sent to clients.", &self.rows),
            ("sent_bytes_total", "Bytes sent to clients.", &self.bytes_sent),
            ("read_bytes_total", "Bytes of portions that queries read.", &self.bytes_read),
            ("pruned_bytes_total", "Bytes of portions that queries skipped.", &self.bytes_pruned),
        ];
        for (name, help, counter) in counters {
            page.figure(name, "counter", help, &[("", get(counter).to_string())]);
        }
        page.figure(
            "queries_total",
            "counter",
            "Finished queries, by outcome.",
            &[
                ("{outcome=\"done\"}", get(&self.done).to_string()),
                ("{outcome=\"failed\"}", get(&self.failed).to_string()),
                ("{outcome=\"canceled\"}", get(&self.canceled).to_string()),
            ],
        );
        let gauges = [
            ("connections", "Open connections.", get(&self.open_connections)),
            ("queries_running", "Running queries.", get(&self.running_queries)),
            ("query_memory_bytes", "Memory that operators of queries have reserved.", reserved as u64),
        ];
        for (name, help, value) in gauges {
            page.figure(name, "gauge", help, &[("", value.to_string())]);
        }
        self.durations(&mut page);
        write_tables(&mut page, opened);
        page.0
    }

    fn durations(&self, page: &mut Page) {
        let mut sum = 0;
        let mut lines = Vec::new();
        for (bound, class) in BOUNDS.iter().zip(&self.classes) {
            sum += class.load(Ordering::Relaxed);
            lines.push((format!("_bucket{{le=\"{bound}\"}}"), sum.to_string()));
        }
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let all = get(&self.done) + get(&self.failed) + get(&self.canceled);
        lines.push(("_bucket{le=\"+Inf\"}".to_owned(), all.to_string()));
        let seconds = Duration::from_micros(get(&self.micros)).as_secs_f64();
        lines.push(("_sum".to_owned(), seconds.to_string()));
        lines.push(("_count".to_owned(), all.to_string()));
        let lines: Vec<(&str, String)> =
            lines.iter().map(|(label, value)| (label.as_str(), value.clone())).collect();
        page.figure("query_seconds", "histogram", "Time from the text of a query to its last row.", &lines);
    }
}

/// Text in the format of Prometheus.
struct Page(String);

impl Page {
    fn figure(&mut self, name: &str, kind: &str, help: &str, values: &[(&str, String)]) {
        let _ = writeln!(self.0, "# HELP evenkeel_{name} {help}\n# TYPE evenkeel_{name} {kind}");
        for (labels, value) in values {
            let _ = writeln!(self.0, "evenkeel_{name}{labels} {value}");
        }
    }
}

/// Metrics of the newest versions of the tables.
fn write_tables(page: &mut Page, opened: &OpenTables) {
    let figures: Vec<(String, [f64; 7])> = opened.tables.iter().map(table_figures).collect();
    let names = [
        ("table_version", "Newest version of the table."),
        ("table_partitions", "Partitions of the table."),
        ("table_portions", "Portions of the table."),
        ("table_rows", "Rows as stored; superseded ones count until they are merged."),
        ("table_bytes", "Bytes of the portions."),
        ("table_max_over_mean", "Rows of the fullest partition over the mean."),
        ("table_effective_partitions", "Number of equal partitions that would be as uneven."),
    ];
    for (at, (name, help)) in names.into_iter().enumerate() {
        let lines: Vec<(String, String)> = figures
            .iter()
            .filter_map(|(labels, values)| Some((labels.clone(), values.get(at)?.to_string())))
            .collect();
        let lines: Vec<(&str, String)> =
            lines.iter().map(|(labels, value)| (labels.as_str(), value.clone())).collect();
        page.figure(name, "gauge", help, &lines);
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures for charts")]
fn table_figures(served: &crate::tables::ServedTable) -> (String, [f64; 7]) {
    let snapshot = served.table.snapshot();
    let portions = snapshot.portions();
    let mut rows = vec![0u64; snapshot.spec().partitions().len()];
    for portion in &portions {
        if let Some(count) = rows.get_mut(portion.partition.index()) {
            *count += portion.data_rows();
        }
    }
    let skew = SkewFigures::from_counts(&rows);
    let name = served.name().replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let figures = [
        snapshot.version().0 as f64,
        rows.len() as f64,
        portions.len() as f64,
        rows.iter().sum::<u64>() as f64,
        portions.iter().map(|portion| portion.bytes).sum::<u64>() as f64,
        skew.max_over_mean,
        skew.effective_partitions,
    ];
    (format!("{{table=\"{name}\"}}"), figures)
}
