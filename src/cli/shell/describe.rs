//! Descriptions of the tables and exports of a shell.

use evenkeel::Table;
use evenkeel::report::{self, Heading, Layout};
use evenkeel::source::Export;
use evenkeel::units::ByteSize;

use crate::cli::Failure;
use crate::cli::shell::Shell;
use crate::cli::tables::Tables;

impl Shell<'_> {
    /// Shows all tables and exports, or one of them.
    pub(super) async fn describe(&mut self, name: Option<&str>) -> Result<(), Failure> {
        let Some(name) = name else { return self.out.text(&list(&self.tables)) };
        if let Some((_, export)) = self.tables.exports.iter().find(|(known, _)| known == name) {
            let text = columns(export);
            return self.out.text(&text);
        }
        let table = &self.table(Some(name))?.1;
        let overview = table.inspect().await?;
        self.out.text(&report::overview(&overview, Layout::Plain))
    }

    /// Shows how evenly the rows of a table are spread.
    pub(super) async fn skew(&mut self, name: Option<&str>) -> Result<(), Failure> {
        let skew = self.table(name)?.1.skew().await?;
        self.out.text(&report::skew(&skew, Layout::Plain))
    }

    /// Returns the table of a name, or the only one.
    pub(super) fn table(&self, name: Option<&str>) -> Result<&(String, Table), Failure> {
        let tables = &self.tables.tables;
        let is_only = tables.len() == 1;
        let entry = tables.iter().find(|(known, _)| match name {
            Some(name) => {
                let place = self.tables.main_place.as_deref();
                known == name || (is_only && (name == "t" || Some(name) == place))
            }
            None => is_only,
        });
        entry.ok_or_else(|| {
            let known: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
            let wrong = match name {
                Some(name) => format!("there is no table '{name}'"),
                None => "which table?".to_owned(),
            };
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            Failure::wrong_usage(format!("{wrong}; there are: {known}"))
        })
    }
}

/// Lists tables and exports.
fn list(tables: &Tables) -> String {
    let headings = [
        Heading::text("name"),
        Heading::text("primary key"),
        Heading::text("partition key"),
        Heading::number("partitions"),
        Heading::number("portions"),
        Heading::number("stored rows"),
        Heading::text("bytes"),
        Heading::number("version"),
    ];
    let table = |(name, table): &(String, Table)| {
        let snapshot = table.snapshot();
        let spec = table.spec().definition();
        let portions = || snapshot.portions().into_iter();
        vec![
            name.clone(),
            spec.primary_key.join(", "),
            spec.partition_key.join(", "),
            report::count(spec.partitions.len() as u64),
            report::count(snapshot.portion_count() as u64),
            report::count(portions().map(|portion| portion.rows).sum()),
            ByteSize(portions().map(|portion| portion.bytes).sum()).to_string(),
            snapshot.version().to_string(),
        ]
    };
    let export = |(name, export): &(String, std::sync::Arc<Export>)| {
        let files = report::counted(export.inputs().len() as u64, "file");
        let mut cells = vec![name.clone(), format!("an export, {files}")];
        cells.resize(headings.len(), String::new());
        cells
    };
    let rows = tables.tables.iter().map(table).chain(tables.exports.iter().map(export));
    report::grid(Layout::Plain, &headings, rows.collect())
}

/// Lists the versions of the tables.
pub(super) fn versions(tables: &Tables) -> String {
    let headings = [Heading::text("table"), Heading::number("version")];
    let row = |(name, table): &(String, Table)| vec![name.clone(), table.snapshot().version().to_string()];
    report::grid(Layout::Plain, &headings, tables.tables.iter().map(row).collect())
}

/// Lists the columns of an export, and its files.
fn columns(export: &Export) -> String {
    let headings = [Heading::text("column"), Heading::text("type")];
    let row = |column: &evenkeel::table::Column| vec![column.name.clone(), column.column_type.to_string()];
    let files: String = export.inputs().iter().map(|input| format!("  {}\n", input.name())).collect();
    let columns = report::grid(Layout::Plain, &headings, export.columns().iter().map(row).collect());
    format!("{columns}\nread from\n{files}")
}
