//! `evenkeel query`.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use clap::{Args as ClapArgs, ValueEnum};
use evenkeel::bounded::{SQL, read_text};
use evenkeel::log::PortionDamage;
use evenkeel::maintenance::CheckScope;
use evenkeel::query::{Params, QueryError, QueryLimits, QueryResult, RunQueries};
use evenkeel::report::Layout;
use evenkeel::sink::{OutputFormat, PartFile, Sink};
use evenkeel::{Table, report};
use futures::TryStreamExt;

use crate::cli::check::check;
use crate::cli::limits::{LimitArgs, within};
use crate::cli::local_path::LocalPath;
use crate::cli::pipe::Pipe;
use crate::cli::tables::{TableVersion, Tables, TablesArgs};
use crate::cli::workers::WorkerArgs;
use crate::cli::{Failure, Output};

/// Output format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Markdown,
    Json,
    Ndjson,
    Csv,
    Parquet,
}

/// Run SQL on a table or an export, available as t and under its own name, or on several.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel query events 'SELECT count(*) FROM t'
  evenkeel query clicks.parquet 'SELECT campaign_id, count(*) FROM t GROUP BY campaign_id'
  evenkeel query events -f queries/clicks_of_campaign.sql --param campaign=1
  evenkeel query events -f queries/events_of_user.sql --param user=u600000007 --explain
  evenkeel query events 'SELECT * FROM t' --output events.parquet
  evenkeel query events 'SELECT * FROM sys.partition_stats'
  evenkeel query events --table users=users.parquet 'SELECT country, count(*) FROM t JOIN users USING (user_id) GROUP BY country'
  evenkeel query ads/ 'SELECT count(*) FROM events JOIN campaigns USING (campaign_id)'

System tables: sys.partition_stats, sys.primary_index_portion_stats. Functions in addition to those of \
DataFusion: farm_fingerprint(value, ...), bit_reverse(value[, preserve_sign]), shard_id(N, value, ...), \
ydb_partition(N, value, ...). $now is by default the newest event in the tables. Names of tables and columns are case-sensitive, as in YQL.")]
pub(crate) struct Args {
    #[command(flatten)]
    tables: TablesArgs,

    /// Version to read [default: the newest]. With several tables, NAME=N; repeatable.
    #[arg(long = "version", value_name = "N", value_delimiter = ',')]
    at_versions: Vec<TableVersion>,

    /// Query to run; alternatively use -c SQL or -f FILE.
    #[arg(conflicts_with_all = ["command", "file"])]
    sql: Option<String>,

    /// Query to run.
    #[arg(short = 'c', long, value_name = "SQL", conflicts_with = "file", allow_hyphen_values = true)]
    command: Option<String>,

    /// File with the query to run.
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Option<LocalPath>,

    /// Value for $NAME in the query, converted to the type that the query needs.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    params: Vec<String>,

    /// Output format [default: table; with --output, the format of the file's extension].
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// Write to a file instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<LocalPath>,

    /// Maximum number of rows to show as a table; the rest is counted.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    rows: usize,

    /// Check every file first and leave out damaged ones. Rows that they superseded or deleted may
    /// reappear.
    #[arg(long)]
    skip_damaged: bool,

    /// Show which partitions and portions the query would read, out of how many, and its plan.
    #[arg(long)]
    explain: bool,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    workers: WorkerArgs,
}

pub(crate) async fn run(mut args: Args, out: &mut Output) -> Result<(), Failure> {
    if args.sql.is_none() && args.command.is_none() && args.file.is_none() {
        args.sql = args.tables.take_query();
    }
    let dir = args.tables.dir.clone();
    let limits = args.limits.limits()?;
    let answered = within(&limits, answer(args, &limits, out)).await;
    answered.map_err(|failure| match &dir {
        Some(dir) => failure.with_hint_of_damage(dir),
        None => failure,
    })
}

/// Reads the query in a file.
pub(crate) fn sql_of_file(file: &Path) -> Result<String, Failure> {
    Ok(read_text(file, SQL)?)
}

/// Refuses the name of a file in place of a query.
pub(crate) fn no_file(sql: &str) -> Result<(), Failure> {
    if !sql.trim().contains(char::is_whitespace) && Path::new(sql.trim()).is_file() {
        return Err(Failure::wrong_usage(format!("{sql} is a file, not a query; use -f {sql}")));
    }
    Ok(())
}

/// Whether a query uses the parameter that `param` gives as NAME=VALUE.
pub(crate) fn uses(sql: &str, param: &str) -> bool {
    let name = format!("${}", param.split('=').next().unwrap_or_default());
    // `$ab` is not `$a`.
    let ends = |rest: &str| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    sql.match_indices(&name).any(|(at, _)| sql.get(at + name.len()..).is_some_and(ends))
}

/// Returns those parameters that a query uses.
pub(crate) fn params_of<'a>(sql: &'a str, params: &'a [String]) -> impl Iterator<Item = &'a String> {
    params.iter().filter(move |param| uses(sql, param))
}

async fn answer(args: Args, limits: &QueryLimits, out: &mut Output) -> Result<(), Failure> {
    let params = Params::parse(&args.params).map_err(Failure::usage)?;
    let format = format(&args)?;
    let sql = sql(&args)?;
    let mut tables = args.tables.open(&args.at_versions, out).await?;
    args.output.iter().try_for_each(|path| tables.check_output(path))?;
    if args.skip_damaged {
        for (_, table) in &mut tables.tables {
            *table = without_damaged(table, out).await?;
        }
    }
    tables.leak_portions();
    let session = session(&args, limits, tables, out).await?;
    if args.explain {
        let explanation = session.explain(&sql, &params).await.map_err(Failure::from_query)?;
        return match format {
            Format::Json => out.text(&format!("{}\n", serde_json::to_string_pretty(&explanation)?)),
            _ => out.text(&report::explanation(&explanation)),
        };
    }
    let result = session.query(&sql, &params).await.map_err(Failure::from_query)?;
    write_result(result, format, &args, out).await?;
    session.notes().iter().for_each(|note| out.note(&note.to_string()));
    Ok(())
}

/// Writes the rows in a format, to the output file or to standard output.
async fn write_result(
    result: QueryResult,
    format: Format,
    args: &Args,
    out: &mut Output,
) -> Result<(), Failure> {
    let format = match format {
        Format::Table => return print_table(result, Layout::Plain, args, out).await,
        Format::Markdown => return print_table(result, Layout::Markdown, args, out).await,
        Format::Json => OutputFormat::Json,
        Format::Ndjson => OutputFormat::Ndjson,
        Format::Csv => OutputFormat::Csv,
        Format::Parquet => OutputFormat::Parquet,
    };
    match &args.output {
        Some(path) => write_file(result, path, format).await,
        None => write_stdout(result, format, out).await,
    }
}

/// Returns the query that is given as an argument or in a file.
fn sql(args: &Args) -> Result<String, Failure> {
    match (args.sql.as_ref().or(args.command.as_ref()), &args.file) {
        (Some(sql), _) => {
            no_file(sql)?;
            Ok(sql.clone())
        }
        (None, Some(file)) => sql_of_file(file),
        (None, None) => Err(Failure::wrong_usage(
            "no query given; pass it after the table or the export, as in evenkeel query PLACE 'SELECT ...', or with -f FILE",
        )),
    }
}

/// Writes all rows to a file, which gets its name when it is complete.
async fn write_file(result: QueryResult, path: &Path, format: OutputFormat) -> Result<(), Failure> {
    let file = PartFile::create(path).map_err(cannot_write(path))?;
    // An error while rows are computed is not about the file.
    let written = write(result, BufWriter::new(file.file()), format).await;
    let written = written.map_err(|failure| failure.with_output_path(path))?.flush();
    written.map_err(cannot_write(path))?;
    Ok(file.publish().map_err(cannot_write(path))?)
}

/// Writes all rows to standard output. A closed pipe, as left by `head`, is no failure.
async fn write_stdout(result: QueryResult, format: OutputFormat, out: &Output) -> Result<(), Failure> {
    let (stdout, terminal) = out.stdout();
    if terminal && format == OutputFormat::Parquet {
        return Err(Failure::wrong_usage("Parquet is binary and not shown on a terminal; add --output FILE"));
    }
    let closed = Arc::new(AtomicBool::new(false));
    let pipe = Pipe { out: stdout, closed: Arc::clone(&closed) };
    let written = write(result, BufWriter::new(pipe), format).await;
    let flushed = written.and_then(|mut out| Ok(out.flush()?));
    if closed.load(Ordering::Relaxed) { Ok(()) } else { flushed }
}

/// Connects to the machines that are to run queries, else opens a session here.
async fn session(
    args: &Args,
    limits: &QueryLimits,
    tables: Tables,
    out: &Output,
) -> Result<Box<dyn RunQueries>, Failure> {
    if let Some(session) = args.workers.session(&tables, out).await? {
        return Ok(session);
    }
    // The timeout of the command also bounds its query.
    let limits = QueryLimits { timeout: None, ..limits.clone() };
    Ok(Box::new(tables.session_with(&limits)?))
}

/// Returns the table without the portions whose files are damaged, and prints a note for each. A
/// file that this user may not read is not damaged.
async fn without_damaged(table: &Table, out: &Output) -> Result<Table, Failure> {
    let damaged = check(table, CheckScope::OneVersion, out).await?.damaged;
    for portion in &damaged {
        if let PortionDamage::Unreadable { reason } = &portion.damage {
            return Err(anyhow::anyhow!("{}: {reason}", portion.file).into());
        }
        let deletes = table.snapshot().portion(&portion.file).is_some_and(|portion| portion.deletes);
        let (file, damage) = (&portion.file, &portion.damage);
        out.note(&match deletes {
            true => {
                let deletes = report::counted(portion.rows, "delete");
                format!("{deletes} of {file}, which {damage}, cannot be applied: deleted rows may reappear")
            }
            false => format!("left out: {} of {file}, which {damage}", report::counted(portion.rows, "row")),
        });
    }
    let files: Vec<String> = damaged.into_iter().map(|portion| portion.file).collect();
    Ok(table.without(&files))
}

pub(crate) fn cannot_write(path: &Path) -> impl Fn(io::Error) -> anyhow::Error {
    move |error| anyhow::anyhow!("{}: cannot write: {error}", path.display())
}

/// Returns the requested format, or the format of the output file's extension.
fn format(args: &Args) -> Result<Format, Failure> {
    let Some(path) = &args.output else { return Ok(args.format.unwrap_or(Format::Table)) };
    let ending =
        path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let by_ending = match (ending.as_str(), OutputFormat::from_path(path)) {
        ("md", _) => Some(Format::Markdown),
        ("txt", _) => Some(Format::Table),
        (_, Some(OutputFormat::Csv)) => Some(Format::Csv),
        (_, Some(OutputFormat::Parquet)) => Some(Format::Parquet),
        (_, Some(OutputFormat::Json)) => Some(Format::Json),
        (_, Some(OutputFormat::Ndjson)) => Some(Format::Ndjson),
        (_, None) => None,
    };
    args.format.or(by_ending).ok_or_else(|| {
        Failure::wrong_usage(format!("{}: name the format of the file with --format", path.display()))
    })
}

/// Writes all rows of a result.
pub(crate) async fn write<W: Write + Send>(
    mut result: QueryResult,
    out: W,
    format: OutputFormat,
) -> Result<W, Failure> {
    let mut sink = Sink::new(out, format, &result.schema)?;
    while let Some(batch) = result.batches.try_next().await.map_err(QueryError::from)? {
        sink.write(&batch)?;
    }
    Ok(sink.finish()?)
}

async fn print_table(
    mut result: QueryResult,
    layout: Layout,
    args: &Args,
    out: &mut Output,
) -> Result<(), Failure> {
    let mut shown: Vec<RecordBatch> = Vec::new();
    // A file gets every row.
    let most = if args.output.is_some() { usize::MAX } else { args.rows };
    let (mut rows, mut all) = (0, 0);
    while let Some(batch) = result.batches.try_next().await.map_err(QueryError::from)? {
        all += batch.num_rows();
        let more = batch.num_rows().min(most - rows);
        if more > 0 {
            rows += more;
            shown.push(batch.slice(0, more));
        }
    }
    let mut text = report::batches(layout, &result.schema, &shown)?;
    if all > rows {
        text.push_str(&format!(
            "({} of {} rows; --rows COUNT shows more, --format csv or json shows all)\n",
            report::count(rows as u64),
            report::count(all as u64)
        ));
    }
    match &args.output {
        Some(path) => {
            let file = PartFile::create(path).map_err(cannot_write(path))?;
            file.file().write_all(text.as_bytes())?;
            Ok(file.publish().map_err(cannot_write(path))?)
        }
        None => out.text(&text),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Query {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &[&str]) -> Args {
        Query::try_parse_from([&["query", "events", "SELECT 1"], words].concat()).unwrap().args
    }

    #[test]
    fn the_extension_of_the_output_file_is_its_format_unless_one_is_given() {
        let format_of = |words: &[&str]| format(&args(words)).unwrap();
        assert_eq!(format_of(&[]), Format::Table);
        assert_eq!(format_of(&["--format", "csv"]), Format::Csv);
        for (file, expected) in [
            ("x.csv", Format::Csv),
            ("x.PARQUET", Format::Parquet),
            ("x.json", Format::Json),
            ("x.ndjson", Format::Ndjson),
            ("x.md", Format::Markdown),
            ("x.TXT", Format::Table),
        ] {
            assert_eq!(format_of(&["--output", file]), expected, "{file}");
        }
        assert_eq!(format_of(&["--output", "x.csv", "--format", "json"]), Format::Json);
        assert_eq!(format_of(&["--output", "x", "--format", "json"]), Format::Json);
    }

    #[test]
    fn a_file_without_a_known_extension_needs_a_format() {
        for file in ["x", "x.xls", ".csv"] {
            let refused = format(&args(&["--output", file]));
            assert!(matches!(refused, Err(Failure::Usage(_))), "{file}: {refused:?}");
        }
    }

    #[test]
    fn the_name_of_a_file_is_refused_in_place_of_a_query() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("query.sql");
        std::fs::write(&file, "SELECT 1").unwrap();
        assert!(matches!(no_file(file.to_str().unwrap()), Err(Failure::Usage(_))));
        assert!(no_file("SELECT 1").is_ok());
        assert!(no_file("absent.sql").is_ok());
    }
}
