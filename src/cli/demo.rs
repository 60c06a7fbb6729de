//! `evenkeel demo`: all steps on generated events.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrow::array::RecordBatch;
use clap::Args as ClapArgs;
use evenkeel::Table;
use evenkeel::evaluate::{EvaluateOptions, Evaluator, PartitionKeyReport};
use evenkeel::generate::{AdEvents, ad_events_definition};
use evenkeel::ingest::{IngestFiles, IngestOptions, IngestReport};
use evenkeel::inspect::TableSkew;
use evenkeel::report::{self, Layout, count, percent};
use evenkeel::sink::{OutputFormat, Sink};
use evenkeel::source::{InputOptions, InputPath};
use evenkeel::table::TableSpec;
use evenkeel::units::Micros;
use evenkeel::units::{ByteSize, PartitionCount};
use serde::Serialize;

use crate::cli::local_path::LocalPath;
use crate::cli::output::Format;
use crate::cli::scenario::{Answer, KEYS, QUERIES, answer, answered, busiest_user};
use crate::cli::workplace::Workplace;
use crate::cli::{Failure, Output};

/// Walk through all steps on generated ad events: compare five partition keys, create a table,
/// ingest, query and report skew.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  evenkeel demo\n  evenkeel demo --dir /tmp/demo --rows 100000")]
pub(crate) struct Args {
    /// Directory to work in, which is kept; it must be empty or new [default: a temporary
    /// directory, removed at the end].
    #[arg(long, value_name = "DIR")]
    dir: Option<LocalPath>,

    /// Number of events.
    #[arg(long, default_value_t = 1_000_000)]
    rows: u64,

    /// Number of batches in which the events arrive.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    batches: u64,

    /// Number of nodes; the table gets 4 partitions per node.
    #[arg(long, default_value_t = 4)]
    nodes: u64,

    /// Random seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// All results of the demo.
#[derive(Debug, Serialize)]
struct Story {
    keys: Vec<PartitionKeyReport>,
    ingests: Vec<IngestReport>,
    queries: Vec<Answer>,
    skew: TableSkew,
    seconds: f64,
}

/// Printer of results as they arise, unless they are requested as JSON at the end.
struct Printer<'a> {
    out: &'a mut Output,
    layout: Option<Layout>,
}

impl Printer<'_> {
    fn print(&mut self, text: impl FnOnce(Layout) -> String) -> Result<(), Failure> {
        self.layout.map_or(Ok(()), |layout| self.out.text(&text(layout)))
    }
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let started = Instant::now();
    let partitions = PartitionCount::for_nodes(args.nodes).map_err(Failure::usage)?;
    let workplace = Workplace::open(args.dir.as_deref())?;
    let (exports, table_dir) = (workplace.path().join("exports"), workplace.path().join("ad_events"));
    let mut printer = Printer { layout: args.format.layout(), out };

    let (rows, batches) = (count(args.rows), args.batches);
    printer.print(|_| {
        format!(
            "1. {rows} ad events in {batches} batches, under five partition keys over {partitions} \
            partitions\n"
        )
    })?;
    let events = AdEvents { rows: args.rows, seed: args.seed, ..AdEvents::default() };
    let (files, keys) = generate_and_weigh(&events, args.batches, partitions, &exports, printer.out)?;
    printer.print(|layout| weighed(&keys, partitions, layout))?;

    printer.print(|_| {
        "\n2. The table, as in the YDB documentation: HASH(user_id, event_timestamp), sorted by time\n\n"
            .to_owned()
    })?;
    let mut definition = ad_events_definition()?;
    definition.partitions = partitions;
    let mut table = Table::create(&table_dir, &TableSpec::new(definition)?).await?;
    let ingests = ingest(&mut table, &files, args.rows, printer.out).await?;
    printer.print(|_| ingested(&ingests))?;

    printer.print(|_| "\n3. Queries\n".to_owned())?;
    let session = table.session()?;
    let user = busiest_user(&session).await?;
    let mut queries = Vec::new();
    for (title, sql) in QUERIES {
        let answer = answer(&session, title, sql, &user).await?;
        printer.print(|_| answered(&answer))?;
        queries.push(answer);
    }

    printer.print(|_| "\n4. How even the stored table is\n\n".to_owned())?;
    let skew = table.skew().await?;
    printer.print(|layout| report::skew(&skew, layout))?;
    let story = Story { keys, ingests, queries, skew, seconds: started.elapsed().as_secs_f64() };
    if args.format == Format::Json {
        return out.text(&format!("{}\n", serde_json::to_string_pretty(&story)?));
    }
    out.text(&format!("\ndone in {:.1} s\n", story.seconds))?;
    match args.dir {
        Some(dir) => out.text(&format!(
            "the table stays in {0}; try: evenkeel query {0} -c 'SELECT * FROM t LIMIT 5'\n",
            dir.join("ad_events").display()
        )),
        None => out.text("the table was temporary; 'evenkeel demo --dir DIR' keeps it\n"),
    }
}

/// Renders the candidates side by side, then each verdict in words with the keys that have it.
fn weighed(keys: &[PartitionKeyReport], partitions: PartitionCount, layout: Layout) -> String {
    let mut text = format!("\n{}\n", report::keys(keys, partitions, layout));
    let mut shown = Vec::new();
    let verdict_of = |report: &PartitionKeyReport| report.over(partitions).map(|placement| placement.verdict);
    for verdict in keys.iter().filter_map(verdict_of) {
        if shown.contains(&verdict) {
            continue;
        }
        shown.push(verdict);
        let same = keys.iter().filter(|report| verdict_of(report) == Some(verdict));
        let names: Vec<String> =
            same.map(|report| format!("({})", report.partition_key.join(", "))).collect();
        text.push_str(&format!("  {}: {}\n    {}\n", verdict.word(), names.join(", "), verdict.sentence()));
    }
    text
}

/// Writes one Parquet file per batch and counts each batch for every key.
fn generate_and_weigh(
    events: &AdEvents,
    batches: u64,
    partitions: PartitionCount,
    folder: &Path,
    out: &Output,
) -> Result<(Vec<PathBuf>, Vec<PartitionKeyReport>), Failure> {
    let definition = ad_events_definition()?;
    let options = EvaluateOptions {
        partition_keys: KEYS.iter().map(|key| key.parse()).collect::<Result<_, _>>()?,
        partitions: vec![partitions],
        window: Some(Micros::HOUR),
        ..EvaluateOptions::default()
    };
    let mut evaluator = Evaluator::new(&definition.columns, options)?;
    std::fs::create_dir_all(folder)?;
    let bar = out.progress(Some(events.rows), "events");
    let rows_per_batch = usize::try_from(events.rows.div_ceil(batches))?.max(1);
    let mut files = Vec::new();
    for batch in events.batches(rows_per_batch)? {
        let batch = batch?;
        let path = folder.join(format!("batch-{:04}.parquet", files.len()));
        write_batch(&path, &batch)?;
        files.push(path);
        evaluator.add(&batch)?;
        bar.inc(batch.num_rows() as u64);
    }
    bar.finish_and_clear();
    // Without rows there are no keys to judge.
    let keys = if evaluator.rows_read() == 0 { Vec::new() } else { evaluator.finish()?.candidates };
    Ok((files, keys))
}

fn write_batch(path: &Path, batch: &RecordBatch) -> Result<(), Failure> {
    let mut sink = Sink::new(BufWriter::new(File::create(path)?), OutputFormat::Parquet, &batch.schema())?;
    sink.write(batch)?;
    let file = sink.finish()?;
    file.into_inner().map_err(|error| error.into_error())?;
    Ok(())
}

/// Ingests the files one by one, each with its own commit.
async fn ingest(
    table: &mut Table,
    files: &[PathBuf],
    rows: u64,
    out: &Output,
) -> Result<Vec<IngestReport>, Failure> {
    let bar = out.progress(Some(rows), "rows ingested");
    let mut reports = Vec::new();
    let mut before = 0;
    for file in files {
        let plan = IngestFiles {
            inputs: vec![InputPath::File(file.clone())],
            input: InputOptions::default(),
            ingest: IngestOptions::default(),
            rejects: None,
            again: false,
            interrupt: out.interrupt(),
        };
        let report = table.ingest_files(plan, &|progress| bar.set_position(before + progress.rows)).await?;
        before += report.rows;
        reports.push(report);
    }
    bar.finish_and_clear();
    Ok(reports)
}

fn ingested(reports: &[IngestReport]) -> String {
    let sum = |figure: fn(&IngestReport) -> u64| reports.iter().map(figure).sum::<u64>();
    let seconds: f64 = reports.iter().map(|report| report.seconds).sum();
    let rows = sum(|report| report.rows);
    let worst = reports.iter().map(|report| report.skew.share_of_fullest).fold(0.0, f64::max);
    format!(
        "{} rows in {} commits, {:.2} s ({} rows/s), {} in {} portions; no batch put more than {} in one \
            partition\n",
        count(rows),
        reports.len(),
        seconds,
        count((rows as f64 / seconds.max(f64::MIN_POSITIVE)) as u64),
        ByteSize(sum(|report| report.bytes_written)),
        sum(|report| report.portions),
        percent(worst),
    )
}
