//! `evenkeel spanner access-log`.

use std::collections::BTreeMap;

use clap::Args as ClapArgs;
use evenkeel::generate::AccessLog;
use evenkeel::report;
use evenkeel::source::{Export, InputOptions, InputPath, OnUnreadable};
use evenkeel::spanner::simulate::splits::ModelParameters;
use evenkeel::spanner::simulate::{KeyOrder, SimulateOptions, Strategy};

use crate::cli::html_file;
use crate::cli::local_path::LocalPath;
use crate::cli::numbers::positive;
use crate::cli::output::Format;
use crate::cli::spanner::replay::{GUIDE, in_background};
use crate::cli::workplace::Workplace;
use crate::cli::{Failure, Output};

/// Simulate the access log of Spanner's guide under each of its strategies, with generated rows.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Example:\n  evenkeel spanner access-log --html access-log.html")]
pub(crate) struct Args {
    /// Number of rows.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,

    /// Number of users, equally busy.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    users: u64,

    /// Rows per second of the real table.
    #[arg(long, value_name = "ROWS", default_value_t = 20_000.0, value_parser = positive)]
    rate: f64,

    /// Write an HTML report with pictures to this file; it needs no network.
    #[arg(long, value_name = "FILE")]
    html: Option<LocalPath>,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Approximate size of a row of the access log, in bytes.
const ROW_BYTES: f64 = 21.0;

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let workplace = Workplace::open(None)?;
    let path = workplace.path().join("access-log.parquet");
    let strategies = GUIDE.split(',').map(str::parse).collect::<Result<Vec<Strategy>, _>>()?;
    let log = AccessLog { rows: args.rows, users: args.users, ..AccessLog::default() };
    let export = tokio::task::spawn_blocking(move || {
        log.write_file(&path)?;
        Ok::<_, anyhow::Error>(Export::open(
            &[InputPath::File(path)],
            InputOptions::default(),
            &BTreeMap::new(),
        )?)
    });
    let export = export.await??;
    let key = |column: &str| KeyOrder { column: column.to_owned(), descending: false };
    let options = SimulateOptions {
        primary_key: vec![key("last_access"), key("user_id")],
        partition_key: vec!["user_id".to_owned()],
        indexes: Vec::new(),
        strategies,
        judged: None,
        shard_columns: Vec::new(),
        // Four full splits are enough to show the effects, and each row still represents few rows.
        parameters: ModelParameters {
            scale: 4.0 * (8u64 << 30) as f64 / (ROW_BYTES * args.rows as f64),
            ..ModelParameters::default()
        },
        find_scale: false,
        rate: Some(args.rate),
        time: None,
        owner: Some("user_id".to_owned()),
        presplits: 0,
        transaction_rows: 100,
        on_unreadable: OnUnreadable::Fail,
    };
    let mut simulation = in_background(export, None, options, out).await?;
    simulation.inputs = vec!["the access log of Spanner's guide".to_owned()];
    if let Some(path) = &args.html {
        html_file::write(path, &report::simulation_html(&simulation), out)?;
    }
    out.page(|| (Some(report::simulation_html(&simulation)), None));
    out.result(args.format, &simulation, report::simulation)
}
