//! The ad-events scenario of the YDB documentation: its keys, its queries, and their answers.

use std::time::Instant;

use arrow::array::RecordBatch;
use evenkeel::query::{Params, ScanSummary, TableSession};
use evenkeel::report::{self, Layout, counted};
use serde::Serialize;

use crate::cli::Failure;

/// Keys that the YDB documentation compares.
pub(crate) const KEYS: [&str; 5] =
    ["date(event_timestamp)", "hour(event_timestamp)", "campaign_id", "user_id", "user_id, event_timestamp"];

pub(crate) const QUERIES: [(&str, &str); 4] = [
    ("clicks of campaign 1 in the last hour", include_str!("../../queries/clicks_of_campaign.sql")),
    ("clicks per campaign in the last hour", include_str!("../../queries/clicks_per_campaign.sql")),
    ("events of one user in time order", include_str!("../../queries/events_of_user.sql")),
    ("events per user", include_str!("../../queries/events_per_user.sql")),
];

/// The answer to one query.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    title: &'static str,
    rows: u64,
    millis: f64,
    scan: ScanSummary,
    /// The first rows as text.
    #[serde(skip)]
    head: String,
}

/// Returns the user with the most events, so that the query for one user has an answer; an empty
/// text if the table is empty.
pub(crate) async fn busiest_user(session: &TableSession) -> Result<String, Failure> {
    let sql = "SELECT user_id FROM t GROUP BY user_id ORDER BY count(*) DESC, user_id LIMIT 1";
    let batches = session.collect(sql, &Params::default()).await?;
    let first = batches.iter().find(|batch| batch.num_rows() > 0).and_then(|batch| batch.columns().first());
    Ok(match first {
        Some(column) => arrow::util::display::array_value_to_string(column, 0)?,
        None => String::new(),
    })
}

/// Number of rows of an answer to show.
const SHOWN: usize = 3;

pub(crate) async fn answer(
    session: &TableSession,
    title: &'static str,
    sql: &str,
    user: &str,
) -> Result<Answer, Failure> {
    let mut params = Params::default();
    if sql.contains("$campaign") {
        params = params.with("campaign", "1");
    }
    if sql.contains("$user") {
        params = params.with("user", user);
    }
    let scans = session.explain(sql, &params).await?.scans;
    let started = Instant::now();
    let batches = session.collect(sql, &params).await?;
    let millis = started.elapsed().as_secs_f64() * 1000.0;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let head = match batches.iter().find(|batch| batch.num_rows() > 0) {
        Some(first) => {
            let head = first.slice(0, first.num_rows().min(SHOWN));
            report::batches(Layout::Plain, &first.schema(), &[head])?
        }
        None => String::new(),
    };
    Ok(Answer { title, rows: rows as u64, millis, scan: scans.into_iter().next().unwrap_or_default(), head })
}

pub(crate) fn answered(answer: &Answer) -> String {
    let scan = &answer.scan;
    let mut text = format!(
        "\n   {}: {} in {:.0} ms; read {} of {} partitions, {} of {} portions\n",
        answer.title,
        counted(answer.rows, "row"),
        answer.millis,
        scan.partitions_read,
        scan.partitions,
        scan.portions_read,
        scan.portions,
    );
    for line in answer.head.lines() {
        text.push_str(&format!("     {line}\n"));
    }
    if answer.rows > SHOWN as u64 {
        text.push_str("      ...\n");
    }
    text
}
