//! The inputs of `evaluate`, and the tables that they declare.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel::evaluate::{AdvisorOptions, Profile, mask_source};
use evenkeel::source::{DeclaredTable, Export, SourceError, TableLayout};
use evenkeel::table::ColumnType;

use crate::cli::evaluate::args::Args;
use crate::cli::evaluate::failures::profile_failure;
use crate::cli::evaluate::{plan, profiles};
use crate::cli::{Failure, Output};

/// Opens the inputs as one table, and adds their declarations to the options.
pub(super) async fn open_inputs(
    args: &Args,
    types: BTreeMap<String, ColumnType>,
    plan_of_args: &mut AdvisorOptions,
    base: Option<Profile>,
    out: &Output,
) -> Result<Arc<Export>, Failure> {
    let (inputs, options) = args.input.find(&args.inputs, out)?;
    if let Some(declared) = &inputs.declared {
        out.note(&described(declared));
        if base.is_none() {
            plan::judge_declared(plan_of_args, args, declared);
        }
    }
    let of_base = base.clone();
    let open = move || profiles::open(&inputs.paths, options, &types, base.as_ref());
    let export = tokio::task::spawn_blocking(open).await?;
    let mask = |error| if args.mask_values { mask_source(error) } else { error };
    let export = export.map_err(|error| named_column(mask(error)))?;
    if let Some(base) = of_base {
        base.check_columns(&args.inputs.join(", "), export.columns()).map_err(profile_failure)?;
    }
    Ok(Arc::new(export))
}

/// Describes a declared table.
pub(super) fn described(declared: &DeclaredTable) -> String {
    let DeclaredTable { file, layout, columns, primary_key, partition_key, partitions, ttl, .. } = declared;
    let primary_key = match primary_key.is_empty() {
        true => "no primary key".to_owned(),
        false => format!("PRIMARY KEY ({})", primary_key.join(", ")),
    };
    let partitioned = match layout {
        TableLayout::Row => ", ranges of the primary key".to_owned(),
        _ if partition_key.is_empty() => String::new(),
        TableLayout::Column => format!(", PARTITION BY HASH({})", partition_key.join(", ")),
        TableLayout::Unknown => format!(", distributed by {}", partition_key.join(", ")),
    };
    let partitions = partitions.map_or_else(String::new, |partitions| format!(", {partitions} partitions"));
    let ttl = ttl.as_ref().map_or_else(String::new, |ttl| format!(", TTL {ttl}"));
    format!(
        "{file} declares a {layout} of {} columns, {primary_key}{partitioned}{partitions}{ttl}",
        columns.len()
    )
}

/// Classifies a wrong column name in `--type` as wrong usage.
pub(super) fn named_column(error: SourceError) -> Failure {
    match error {
        error @ SourceError::NoSuchColumn { .. } => Failure::usage(error),
        other => Failure::from(other),
    }
}
