//! Exports of several tables, and the joins between them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use evenkeel::evaluate::{AdvisorOptions, mask_source};
use evenkeel::finding::Severity;
use evenkeel::joins::{
    JoinError, TableExport, TablesReport, advise_tables, are_different_tables, find_joins,
};
use evenkeel::report::{self, Layout};
use evenkeel::source::{DeclaredTable, Export, InputOptions, SourceError, find_inputs};
use evenkeel::table::ColumnType;
use indicatif::ProgressBar;

use crate::cli::declaring::table_name;
use crate::cli::evaluate::args::Args;
use crate::cli::evaluate::assessing::Assessing;
use crate::cli::evaluate::failures::is_usage;
use crate::cli::evaluate::inputs::{described, named_column};
use crate::cli::evaluate::{plan, thresholds};
use crate::cli::html_file;
use crate::cli::{Failure, Output};
use evenkeel_model::remark::Remark;

/// Maximum number of inputs whose columns are all compared; of more, such as from an expanded
/// pattern, only the first and the last are.
const MAX_COMPARED: usize = 64;

/// One of several tables.
pub(super) struct OpenTable {
    export: Export,
    /// Notes on its files, one sentence each.
    notes: Vec<Remark>,
    declared: Option<DeclaredTable>,
}

/// Opens each input as a separate table; `None` if they are parts of one table.
pub(super) async fn open(args: &Args, options: &InputOptions) -> Result<Option<Vec<OpenTable>>, Failure> {
    let named = !args.joins.is_empty();
    let possible = args.inputs.len() > 1 && !args.inputs.iter().any(|input| input == "-");
    if !named && (!possible || args.input.table().is_some() || args.input.has_statement()) {
        return Ok(None);
    }
    if named && args.inputs.len() < 2 {
        return Err(Failure::wrong_usage("--join joins two tables; name the files or folders of both"));
    }
    let (inputs, options) = (args.inputs.clone(), options.clone());
    let open = move || {
        let one = |input: &String| {
            let inputs = find_inputs(std::slice::from_ref(input), None)?;
            let export = Export::open(&inputs.paths, inputs.options(options.clone()), &BTreeMap::new())?;
            Ok::<_, SourceError>(OpenTable { export, notes: inputs.notes, declared: inputs.declared })
        };
        if named {
            return inputs.iter().map(one).collect::<Result<Vec<_>, _>>().map(Some);
        }
        // An input that cannot be opened is reported when all are opened as one.
        let different = |tables: &[Option<OpenTable>]| {
            are_different_tables(&tables.iter().flatten().map(|table| &table.export).collect::<Vec<_>>())
        };
        if inputs.len() > MAX_COMPARED {
            let ends: Vec<Option<OpenTable>> =
                [inputs.first(), inputs.last()].into_iter().flatten().map(|input| one(input).ok()).collect();
            if !different(&ends) {
                return Ok(None);
            }
        }
        let tables: Vec<Option<OpenTable>> = inputs.iter().map(|input| one(input).ok()).collect();
        let all = different(&tables).then(|| tables.into_iter().collect::<Option<Vec<_>>>());
        Ok(all.flatten())
    };
    tokio::task::spawn_blocking(open).await?.map_err(named_column)
}

/// Judges the keys of all tables, and the joins between them.
pub(super) async fn run(
    args: &Args,
    tables: Vec<OpenTable>,
    types: &BTreeMap<String, ColumnType>,
    assessing: Assessing,
    out: &mut Output,
) -> Result<(), Failure> {
    let names: Vec<String> =
        args.inputs.iter().map(|input| table_name(std::slice::from_ref(input))).collect();
    refuse_options_of_one_table(args, &names)?;
    check_names(args, &tables, types)?;
    for table in &tables {
        table.notes.iter().for_each(|note| out.note(note.text()));
        table.declared.iter().for_each(|declared| out.note(&described(declared)));
    }
    let options = plan::options(args)?;
    let options: Vec<AdvisorOptions> = tables
        .iter()
        .zip(names.iter().zip(&args.inputs))
        .map(|(table, (name, input))| options_of_table(args, &options, table, name, input))
        .collect();
    let exports: Vec<Export> = tables
        .into_iter()
        .map(|OpenTable { export, .. }| {
            let has = |name: &String| export.columns().iter().any(|column| column.name == *name);
            let own: BTreeMap<String, ColumnType> = types
                .iter()
                .filter(|(name, _)| has(name))
                .map(|(name, column_type)| (name.clone(), *column_type))
                .collect();
            if own.is_empty() { export } else { export.with_types(&own) }
        })
        .collect();
    let joins = args.joins.clone();
    let work = move |bar: &ProgressBar, stop: &AtomicBool| {
        let tables: Vec<TableExport<'_>> = names
            .into_iter()
            .zip(exports.iter().zip(options))
            .map(|(name, (export, options))| TableExport { name, export, options })
            .collect();
        let joins = find_joins(&tables, &joins)?;
        let advise = |export: &Export, options| {
            let advised = assessing.advise(export, options, None, &|rows| bar.set_position(rows), stop);
            advised.map(|(report, _)| report)
        };
        advise_tables(&tables, &joins, &advise)
    };
    let mut tables_report =
        out.in_background(None, work).await?.map_err(|error| join_failure(error, args.mask_values))?;
    if args.mask_values {
        tables_report.tables.iter_mut().for_each(|table| table.report.mask_values());
    }
    if let Some(path) = &args.html {
        for table in &tables_report.tables {
            html_file::write(&beside(path, &table.table), &report::html(&table.report), out)?;
        }
    }
    out.page(|| {
        let tables: Vec<_> =
            tables_report.tables.iter().map(|table| (table.table.as_str(), &table.report)).collect();
        let page = report::html_of_tables(&tables, &report::joins(&tables_report, Layout::Plain));
        let fragments = tables.iter().map(|(_, report)| report::html_fragment(report)).collect();
        (Some(page), Some(fragments))
    });
    let verbose = args.verbose;
    out.result(args.format, &tables_report, |tables_report, layout| text(tables_report, layout, verbose))?;
    let mut lines = Vec::new();
    for (number, table) in tables_report.tables.iter().enumerate() {
        let joins = (number == 0).then(|| ("the joins".to_owned(), counts(&tables_report)));
        let crossed = thresholds::crossed(args, &table.report, &[], joins)?;
        lines.extend(crossed.into_iter().map(|line| format!("{}: {line}", table.table)));
    }
    thresholds::check(&lines)
}

/// Figures of the joins for thresholds.
fn counts(tables_report: &TablesReport) -> serde_json::Value {
    let count = |severity: Severity| {
        tables_report.join_findings.iter().filter(|finding| finding.severity == severity).count()
    };
    serde_json::json!({ "problems": count(Severity::Problem), "warnings": count(Severity::Warning) })
}

fn text(tables_report: &TablesReport, layout: Layout, verbose: bool) -> String {
    let mut text = report::joins(tables_report, layout);
    for table in &tables_report.tables {
        text.push_str(&report::table_heading(&table.table, layout));
        text.push_str(&match layout {
            Layout::Plain if !verbose => report::answer(&table.report),
            _ => report::assessment(&table.report, layout),
        });
        text.push('\n');
    }
    text
}

/// The options of one table, reduced to its own columns.
fn options_of_table(
    args: &Args,
    options: &AdvisorOptions,
    table: &OpenTable,
    name: &str,
    input: &str,
) -> AdvisorOptions {
    let has = |column: &String| table.export.columns().iter().any(|other| other.name == *column);
    let mut options = options.clone();
    if let Some(declared) = &table.declared {
        plan::judge_declared(&mut options, args, declared);
    }
    options.roles.retain(|(column, _)| has(column));
    options.evaluate.time = options.evaluate.time.filter(has);
    options.table = name.to_owned();
    options.inputs = vec![input.to_owned()];
    options
}

/// Checks that each column that an option names is in one of the tables.
fn check_names(
    args: &Args,
    tables: &[OpenTable],
    types: &BTreeMap<String, ColumnType>,
) -> Result<(), Failure> {
    let roles = args.roles.iter().map(|(column, _)| ("--role", column));
    let named = types.keys().map(|column| ("--type", column)).chain(roles);
    let named = named.chain(args.not_key.iter().map(|column| ("--not-key", column)));
    for (option, column) in named.chain(args.time.iter().map(|column| ("--time", column))) {
        let has = |table: &OpenTable| table.export.columns().iter().any(|other| other.name == *column);
        if !tables.iter().any(has) {
            return Err(Failure::wrong_usage(format!("{option}: no table has a column '{column}'")));
        }
    }
    Ok(())
}

/// Refuses options that only make sense for one table.
fn refuse_options_of_one_table(args: &Args, tables: &[String]) -> Result<(), Failure> {
    let options = [
        ("--partition-key", !args.partition_keys.is_empty()),
        ("--primary-key", !args.primary_keys.is_empty()),
        ("--current", args.current.is_some()),
        ("--queries", args.queries.is_some()),
        ("--baseline", args.baseline.is_some()),
        ("--name", args.name.is_some()),
        ("--ddl", args.input.has_statement()),
        ("--partition-stats", args.partition_stats.is_some()),
        ("--save", args.save.is_some()),
    ];
    let given = options.iter().find(|(_, given)| *given);
    given.map_or(Ok(()), |(option, _)| {
        let tables = tables.join(", ");
        Err(Failure::wrong_usage(format!(
            "{option} applies to one table, but the columns show several tables: {tables}; evaluate that table alone"
        )))
    })
}

fn join_failure(error: JoinError, masked: bool) -> Failure {
    match error {
        JoinError::Evaluate { table, source } => {
            let source = if masked { source.masked() } else { source };
            let usage = is_usage(&source);
            let error = JoinError::Evaluate { table, source };
            if usage { Failure::usage(error) } else { Failure::from(error) }
        }
        JoinError::Source(source) => named_column(if masked { mask_source(source) } else { source }),
        error @ JoinError::Compare { .. } => Failure::from(error),
        other => Failure::usage(other),
    }
}

/// `report.html` becomes `report.orders.html`.
fn beside(path: &std::path::Path, table: &str) -> PathBuf {
    match path.extension() {
        Some(extension) => path.with_extension(format!("{table}.{}", extension.to_string_lossy())),
        None => path.with_extension(table),
    }
}
