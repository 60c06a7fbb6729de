//! Declared tables: from the command line or from a file of statements.

use std::path::Path;

use evenkeel::bounded::{SQL, read_text};
use evenkeel::evaluate::EvaluateError;
use evenkeel::source::DeclaredTable;
use evenkeel::spanner::schema::parse_schema;
use evenkeel::spanner::simulate::{Declared, IndexSpec, SimulateError, declared_pair, declared_table};

use crate::cli::Failure;
use crate::cli::spanner::simulate::args::{Args, KeyOrders};

/// Returns the declarations of the table, and of its children if they are replayed too; `exported`
/// is the declaration in the export itself.
pub(super) fn declared(
    args: &Args,
    exported: Option<&DeclaredTable>,
) -> Result<(Declared, Option<Declared>), Failure> {
    let children = !args.interleave.is_empty();
    if let Some(path) = &args.ddl {
        let text = read_text(path, SQL)?;
        return declared_by(&text, &path.display().to_string(), args.input.table.as_deref(), args);
    }
    if let Some(DeclaredTable { spanner: Some(text), file, name, .. }) = exported
        && args.primary_key.is_none()
        && args.child_key.is_none()
        && args.indexes.is_empty()
    {
        return declared_by(text, file, Some(name), args);
    }
    let of_key = |key: &Option<KeyOrders>, indexes: &[IndexSpec]| Declared {
        primary_key: key.as_ref().map(|key| key.0.clone()).unwrap_or_default(),
        indexes: indexes.to_vec(),
        ..Declared::default()
    };
    if children && args.child_key.is_none() {
        return Err(Failure::wrong_usage(
            "missing key of the child table: give --child-key, or --ddl with both tables",
        ));
    }
    if args.primary_key.is_none() {
        return Err(Failure::wrong_usage("missing primary key: give --primary-key, or --ddl with the table"));
    }
    let child = children.then(|| of_key(&args.child_key, &[]));
    Ok((of_key(&args.primary_key, &args.indexes), child))
}

/// Returns the declarations in statements.
fn declared_by(
    text: &str,
    file: &str,
    parent: Option<&str>,
    args: &Args,
) -> Result<(Declared, Option<Declared>), Failure> {
    let wrong = |message: String| Failure::wrong_usage(format!("{file}: {message}"));
    let schema = parse_schema(text).map_err(|error| wrong(error.to_string()))?;
    let declared = match !args.interleave.is_empty() {
        false => declared_table(&schema, parent).map(|table| (table, None)),
        true => declared_pair(&schema, parent, args.child_table.as_deref())
            .map(|(parent, child)| (parent, Some(child))),
    };
    declared.map_err(|error| wrong(error.to_string()))
}

/// Adds a hint if the unknown column came from the schema in `path`.
pub(super) fn with_schema_hint(failure: Failure, path: &Path, declared: &Declared) -> Failure {
    failure.with_hint(|error| {
        let column = unknown_column(error)?;
        let (path, table) = (path.display(), declared.table.as_deref().unwrap_or_default());
        Some(if declared.unmodelled.iter().any(|name| name == column) {
            format!(
                "{path} generates '{column}' by an expression that is not modelled; add its values to the export, or name \
                 another key with --primary-key"
            )
        } else {
            format!("the column is that of table {table} in {path}")
        })
    })
}

/// Returns the unknown column of an error.
fn unknown_column(error: &anyhow::Error) -> Option<&str> {
    match error.downcast_ref::<SimulateError>()? {
        SimulateError::UnknownColumn { column, .. } => Some(column),
        SimulateError::Evaluate(error) => match error.as_ref() {
            EvaluateError::UnknownColumn { column, .. } => Some(column),
            _ => None,
        },
        _ => None,
    }
}
