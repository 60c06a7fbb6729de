//! Destinations of the rows of queries: the screen, a file, or a pager.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use evenkeel::query::{QueryError, QueryResult};
use evenkeel::report::{self, Layout};
use evenkeel::sink::{OutputFormat, PartFile};
use futures::TryStreamExt;

use crate::cli::query::{cannot_write, write};
use crate::cli::{Failure, Output};

/// Maximum number of rows and bytes of a result that are kept for `\last`.
const KEPT_ROWS: usize = 100_000;
const KEPT_BYTES: usize = 64 << 20;

/// Format in which rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Text(Layout),
    Rows(OutputFormat),
}

const FORMATS: [(&str, Format); 6] = [
    ("table", Format::Text(Layout::Plain)),
    ("markdown", Format::Text(Layout::Markdown)),
    ("csv", Format::Rows(OutputFormat::Csv)),
    ("json", Format::Rows(OutputFormat::Json)),
    ("ndjson", Format::Rows(OutputFormat::Ndjson)),
    ("parquet", Format::Rows(OutputFormat::Parquet)),
];

/// The first rows of a result.
#[derive(Debug)]
pub(super) struct ResultHead {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// Number of rows of the result.
    rows: u64,
}

/// A result that is not shown yet.
pub(super) enum Taken {
    /// Rows for the screen.
    Rows(ResultHead),
    /// Rows in a format for programs.
    Bytes(Vec<u8>),
    /// The rows are in the file.
    Written,
}

/// A file for results.
#[derive(Debug)]
struct File {
    path: PathBuf,
    format: Format,
    has_result: bool,
}

/// Destination and layout of rows.
#[derive(Debug)]
pub(super) struct Results {
    /// Maximum number of rows on the screen.
    pub(super) rows: usize,
    pub(super) is_expanded: bool,
    format: Format,
    file: Option<File>,
}

impl Results {
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, is_expanded: false, format: Format::Text(Layout::Plain), file: None }
    }

    /// Sets the format of the screen, if one is named.
    pub(super) fn set_format(&mut self, name: Option<&str>) -> Result<(), Failure> {
        let Some(name) = name else { return Ok(()) };
        let known = FORMATS.iter().filter(|(_, format)| *format != Format::Rows(OutputFormat::Parquet));
        let matching = known.clone().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let (_, format) = matching.ok_or_else(|| {
            let names: Vec<&str> = known.map(|(name, _)| *name).collect();
            Failure::wrong_usage(format!("there is no format '{name}'; write one of {}", names.join(", ")))
        })?;
        self.format = *format;
        Ok(())
    }

    pub(super) fn format_name(&self) -> &'static str {
        FORMATS.iter().find(|(_, format)| *format == self.format).map_or("table", |(name, _)| *name)
    }

    /// Writes the next results to a file, or to the screen again.
    pub(super) fn write_to(&mut self, path: Option<PathBuf>) -> Result<(), Failure> {
        self.file = None;
        let Some(path) = path else { return Ok(()) };
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
        let format = match (ending.as_deref(), OutputFormat::from_path(&path)) {
            (Some("md"), _) => Format::Text(Layout::Markdown),
            (Some("txt"), _) => Format::Text(Layout::Plain),
            (_, Some(format)) => Format::Rows(format),
            (_, None) => {
                return Err(Failure::wrong_usage(format!(
                    "{}: name a file that ends with .csv, .parquet, .json, .ndjson, .md or .txt",
                    path.display()
                )));
            }
        };
        // The file itself is written with the first result; its folder has to exist now.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            return Err(Failure::wrong_usage(format!("{}: there is no such folder", folder.display())));
        }
        if path.is_dir() {
            return Err(Failure::wrong_usage(format!("{} is a folder; name a file", path.display())));
        }
        self.file = Some(File { path, format, has_result: false });
        Ok(())
    }

    /// Takes all rows of a result.
    pub(super) async fn take(&mut self, result: QueryResult) -> Result<Taken, Failure> {
        if self.file.is_some() {
            self.write_file(result).await?;
            return Ok(Taken::Written);
        }
        match self.format {
            Format::Text(_) => Ok(Taken::Rows(kept(result, KEPT_ROWS.max(self.rows)).await?)),
            Format::Rows(format) => Ok(Taken::Bytes(write(result, Vec::new(), format).await?)),
        }
    }

    /// Writes a result to the file: the first one replaces its content, later ones are appended.
    async fn write_file(&mut self, result: QueryResult) -> Result<(), Failure> {
        let Some(File { path, format, has_result }) = &mut self.file else { return Ok(()) };
        let holds_one = matches!(format, Format::Rows(OutputFormat::Parquet | OutputFormat::Json));
        if *has_result && holds_one {
            let path = path.display();
            return Err(Failure::wrong_usage(format!(
                "{path}: a file of this format can hold only one result; name another file with \\o"
            )));
        }
        let gap = if *has_result && matches!(format, Format::Text(_)) { "\n" } else { "" };
        // A query that fails leaves the file as it was.
        let part = match has_result {
            true => None,
            false => Some(PartFile::create(path).map_err(cannot_write(path))?),
        };
        match (*format, part) {
            (Format::Rows(format), Some(part)) => {
                let written = write(result, io::BufWriter::new(part.file()), format).await;
                written
                    .map_err(|failure| failure.with_output_path(path))?
                    .flush()
                    .map_err(cannot_write(path))?;
                part.publish().map_err(cannot_write(path))?;
            }
            (format, part) => {
                let bytes = match format {
                    Format::Rows(format) => write(result, Vec::new(), format).await?,
                    Format::Text(layout) => {
                        let kept = kept(result, usize::MAX).await?;
                        (gap.to_owned() + &report::batches(layout, &kept.schema, &kept.batches)?).into_bytes()
                    }
                };
                match part {
                    Some(part) => {
                        part.file().write_all(&bytes).map_err(cannot_write(path))?;
                        part.publish().map_err(cannot_write(path))?;
                    }
                    None => {
                        let opened = OpenOptions::new().append(true).create(true).open(&path);
                        opened.and_then(|mut file| file.write_all(&bytes)).map_err(cannot_write(path))?;
                    }
                }
            }
        }
        *has_result = true;
        Ok(())
    }

    /// Shows a result, and returns the rows that were kept.
    pub(super) fn show(&self, taken: Taken, out: &mut Output) -> Result<Option<ResultHead>, Failure> {
        match taken {
            Taken::Written => Ok(None),
            Taken::Bytes(bytes) => {
                out.text(&String::from_utf8_lossy(&bytes))?;
                Ok(None)
            }
            Taken::Rows(kept) => {
                let text = self.text(&kept, self.rows)?;
                out.text(&text)?;
                Ok(Some(kept))
            }
        }
    }

    /// Returns up to `most` of the kept rows as text, with their number.
    pub(super) fn text(&self, kept: &ResultHead, most: usize) -> Result<String, Failure> {
        let shown = first_rows(&kept.batches, most);
        let layout = match self.format {
            Format::Text(layout) => layout,
            Format::Rows(_) => Layout::Plain,
        };
        let mut text = match self.is_expanded {
            true => report::records(&kept.schema, &shown)?,
            false => report::batches(layout, &kept.schema, &shown)?,
        };
        let rows = shown.iter().map(|batch| batch.num_rows() as u64).sum();
        let (shown, all) = (report::count(rows), report::count(kept.rows));
        text.push_str(&match () {
            () if rows == kept.rows => format!("({})\n", report::counted(rows, "row")),
            () if most < usize::MAX => {
                format!("({shown} of {all} rows; \\last shows more, \\rows COUNT and \\o FILE too)\n")
            }
            () => format!("({shown} of {all} rows were kept; \\o FILE writes all)\n"),
        });
        Ok(text)
    }
}

/// Counts all rows, and keeps the first ones.
async fn kept(mut result: QueryResult, most: usize) -> Result<ResultHead, Failure> {
    let mut kept = ResultHead { schema: result.schema.clone(), batches: Vec::new(), rows: 0 };
    let (mut rows, mut bytes) = (0, 0);
    while let Some(batch) = result.batches.try_next().await.map_err(QueryError::from)? {
        kept.rows += batch.num_rows() as u64;
        let more = batch.num_rows().min(most - rows);
        if more > 0 && (bytes < KEPT_BYTES || most == usize::MAX) {
            rows += more;
            bytes += batch.get_array_memory_size();
            kept.batches.push(batch.slice(0, more));
        }
    }
    Ok(kept)
}

fn first_rows(batches: &[RecordBatch], most: usize) -> Vec<RecordBatch> {
    let mut left = most;
    let mut first = Vec::new();
    for batch in batches {
        let rows = batch.num_rows().min(left);
        left -= rows;
        first.extend((rows > 0).then(|| batch.slice(0, rows)));
    }
    first
}

/// Shows text in the pager that `PAGER` names, else in less; without a pager if standard output is
/// not a terminal.
pub(super) fn page(text: &str, out: &mut Output) -> Result<(), Failure> {
    if !io::stdout().is_terminal() {
        return out.text(text);
    }
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pager = pager.unwrap_or_else(|| "less -S".to_owned());
    let Ok(mut child) = Command::new("sh").arg("-c").arg(&pager).stdin(Stdio::piped()).spawn() else {
        out.note(&format!("'{pager}' cannot be run; PAGER names another pager"));
        return out.text(text);
    };
    if let Some(mut input) = child.stdin.take() {
        // A pager that is quit early does not read everything.
        let _ = input.write_all(text.as_bytes());
    }
    child.wait()?;
    Ok(())
}
