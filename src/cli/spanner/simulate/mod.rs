//! `evenkeel spanner simulate`.

mod args;
mod declarations;
mod options;

use std::collections::BTreeMap;

use evenkeel::report;
use evenkeel::source::{Export, Inputs, SourceError, find_inputs};
use evenkeel::spanner::schema::Dialect;
use evenkeel::spanner::simulate::{Declared, RecommendedSchema, Simulation};
use evenkeel::table::Column;
use serde::Serialize;

use crate::cli::declaring::table_name;
use crate::cli::html_file;
use crate::cli::spanner::replay::{Tree, in_background};
use crate::cli::spanner::simulate::declarations::{declared, with_schema_hint};
use crate::cli::spanner::simulate::options::options;
use crate::cli::{Failure, Output};

pub(crate) use args::Args;

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    if args.model.split_size.0 == 0 {
        return Err(Failure::wrong_usage("--split-size 0: a split must hold at least one row"));
    }
    args.html.as_deref().map_or(Ok(()), html_file::check)?;
    let (export, children, declared, child) = open(&args, out).await?;
    let columns = export.columns().to_vec();
    let child_columns = children.as_ref().map(|export| export.columns().to_vec()).unwrap_or_default();
    let parent =
        args.parent.clone().or_else(|| declared.table.clone()).unwrap_or_else(|| "parent".to_owned());
    let tree = children.zip(child.as_ref());
    let tree = tree.map(|(export, child)| Tree { export, key: child.primary_key.clone(), parent });
    let options = options(&args, &declared, &columns, out)?;
    let simulation = in_background(export, tree, options, out).await.map_err(|failure| match &args.ddl {
        Some(path) => with_schema_hint(failure, path, &declared),
        None => failure,
    })?;
    if let Some(path) = &args.html {
        html_file::write(path, &report::simulation_html(&simulation), out)?;
    }
    out.page(|| (Some(report::simulation_html(&simulation)), None));
    let table = (columns.as_slice(), &declared);
    let child = child.as_ref().map(|child| (child_columns.as_slice(), child));
    let ddl = args.print_ddl.map(|dialect| recommended_ddl(&args, &simulation, dialect, table, child));
    let simulated = Simulated { simulation: &simulation, ddl };
    out.result(args.format, &simulated, |simulated, layout| {
        let mut text = report::simulation(simulated.simulation, layout);
        if let Some(ddl) = &simulated.ddl {
            text.push('\n');
            text.push_str(ddl);
        }
        text
    })
}

/// Export of the table, of its children if they are replayed too, and the declarations of both.
type OpenExports = (Export, Option<Export>, Declared, Option<Declared>);

async fn open(args: &Args, out: &Output) -> Result<OpenExports, Failure> {
    // With statements, --table names a table in them.
    let table = args.input.table.as_deref().filter(|_| args.ddl.is_none());
    let inputs = find_inputs(&args.inputs, table)?;
    inputs.notes.iter().for_each(|note| out.note(note.text()));
    let reading = args.input.options()?;
    let (declared, child) = declared(args, inputs.declared.as_ref())?;
    declared.notes.iter().for_each(|note| out.note(note.text()));
    let children = match args.interleave.as_slice() {
        [] => None,
        files => Some(match (find_inputs(files, None), &child) {
            // An export of several tables, one of which is the child.
            (Err(SourceError::SeveralTables { .. }), Some(Declared { table: Some(table), .. })) => {
                find_inputs(files, Some(table))?
            }
            (inputs, _) => inputs?,
        }),
    };
    children.iter().flat_map(|inputs| &inputs.notes).for_each(|note| out.note(note.text()));
    let exports = tokio::task::spawn_blocking(move || {
        let open =
            |inputs: &Inputs| Export::open(&inputs.paths, inputs.options(reading.clone()), &BTreeMap::new());
        let children = children.as_ref().map(open).transpose()?;
        Ok::<_, SourceError>((open(&inputs)?, children))
    });
    let (export, children) = exports.await??;
    Ok((export, children, declared, child))
}

/// Returns the statements that declare the recommended table, or parent and children.
fn recommended_ddl(
    args: &Args,
    simulation: &Simulation,
    dialect: Dialect,
    (columns, declared): (&[Column], &Declared),
    child: Option<(&[Column], &Declared)>,
) -> String {
    let recommended = RecommendedSchema { simulation, dialect };
    let name = declared.table.clone().unwrap_or_else(|| table_name(&args.inputs));
    let statements = match child {
        None => recommended.table(&name, columns, declared),
        Some((child_columns, child)) => {
            // If no statements name the parent, its name comes from --in, else from its file.
            let parent = if declared.table.is_some() { &name } else { args.parent.as_ref().unwrap_or(&name) };
            let child_name = child.table.clone().unwrap_or_else(|| table_name(&args.interleave));
            recommended.tree((parent, columns, declared), (&child_name, child_columns, child))
        }
    };
    let same_dialect = declared.written.as_ref().is_some_and(|written| written.dialect == dialect);
    let omitted = match (args.ddl.is_some(), same_dialect) {
        (false, _) => "",
        (true, true) => "-- constraints between columns and tables of --ddl are left out\n",
        (true, false) => {
            "-- types are taken from the export; constraints, defaults and policies of --ddl are omitted\n"
        }
    };
    omitted.to_owned() + &statements
}

/// Result as JSON.
#[derive(Debug, Serialize)]
struct Simulated<'a> {
    #[serde(flatten)]
    simulation: &'a Simulation,
    #[serde(skip_serializing_if = "Option::is_none")]
    ddl: Option<String>,
}
