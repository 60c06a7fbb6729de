//! `evenkeel create`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use evenkeel::Table;
use evenkeel::bounded::{SQL, quote, read_text};
use evenkeel::source::{DeclaredTable, Export, Inputs, TableLayout, find_inputs, infer_columns};
use evenkeel::table::{
    Column, DdlNote, PlacementFunction, TableDefinition, TableSpec, Ttl, YdbVersion, check_ydb_types,
    parse_create_table, write_create_table,
};
use evenkeel::units::{PartitionCount, Version};
use serde::Serialize;

use crate::cli::input::InputArgs;
use crate::cli::local_path::LocalPath;
use crate::cli::output::Format;
use crate::cli::{Failure, Output, partition_count, trimmed};
use evenkeel_model::remark::Remark;

/// Declare a table from columns, from YQL, or with the columns of a sample file.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel create events --ddl data/ad_events.sql
  evenkeel create flights --like data/nycflights13-flights.parquet \\
      --primary-key time_hour,carrier,flight --partition-key carrier,flight --nodes 4
  evenkeel create scores --column player:utf8:not-null --column at:timestamp:not-null \\
      --column points:int64 --primary-key at,player --partition-key player --partitions 8")]
pub(crate) struct Args {
    /// Directory of the new table; created if it does not exist, and must be empty.
    dir: PathBuf,

    /// Column as name:type or name:type:not-null, in order; with --like, overrides the type of a
    /// column of the sample. Types are YQL types: Utf8, Uint64, Timestamp, Decimal(22,9) ...
    #[arg(long = "column", value_name = "NAME:TYPE[:not-null]")]
    columns: Vec<String>,

    /// Columns of the primary key, in order; they sort the rows within a partition and identify a
    /// row.
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    primary_key: Vec<String>,

    /// Columns of the partition key, in hash order; must be part of the primary key [default: the
    /// whole primary key].
    #[arg(long, value_delimiter = ',', value_name = "COLUMNS")]
    partition_key: Vec<String>,

    /// Number of partitions.
    #[arg(long, conflicts_with = "nodes")]
    partitions: Option<u64>,

    /// Number of nodes; the table gets 4 partitions per node [default: 1].
    #[arg(long)]
    nodes: Option<u64>,

    /// YQL file with a CREATE TABLE statement.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["columns", "primary_key", "partition_key", "like"])]
    ddl: Option<LocalPath>,

    /// YDB version that the statement of --ddl is for; types that its column tables do not support
    /// are refused. Without this option a note lists the types that version 26.2 lacks
    /// (docs/YDB_TYPES.md).
    #[arg(long, value_name = "VERSION")]
    ydb_version: Option<YdbVersion>,

    /// File, local or in an object store, to take the columns from; from a YDB dump also the keys,
    /// partition count and time to live. Key columns become NOT NULL, the others keep their
    /// nullability.
    #[arg(long, value_name = "FILE")]
    like: Option<PathBuf>,

    /// Name of the table in SQL [default: the name in the DDL or the dump, else the directory's
    /// name].
    #[arg(long)]
    name: Option<String>,

    /// Keep rows for this long, by a time column of the primary key; 'evenkeel compact' drops
    /// expired rows.
    #[arg(long, value_name = "COLUMN=LENGTH")]
    ttl: Option<Ttl>,

    /// Placement function: ydb, ydb-modulo, ydb-cloud-logs or ydb-cloud-logs:ACTIVE:SECONDS.
    #[arg(long, default_value = "ydb", value_name = "FUNCTION")]
    placement: PlacementFunction,

    /// Output format.
    #[arg(long, value_enum, default_value = "table")]
    format: Format,

    #[command(flatten)]
    input: InputArgs,
}

/// A declared table.
#[derive(Debug, Serialize)]
struct Created {
    directory: PathBuf,
    version: Version,
    table: TableDefinition,
    ddl: String,
    notes: Vec<Remark>,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let (definition, notes) = define(&args)?;
    let spec = TableSpec::new(definition).map_err(Failure::usage)?;
    let table = Table::create(&args.dir, &spec).await?;
    if args.format != Format::Json {
        notes.iter().for_each(|note| out.note(note.text()));
    }
    let created = Created {
        version: table.snapshot().version(),
        table: spec.definition().clone(),
        ddl: write_create_table(&spec),
        directory: args.dir,
        notes,
    };
    out.result(args.format, &created, |created, _| {
        format!(
            "{} is declared, version {}:

{}",
            created.directory.display(),
            created.version,
            created.ddl
        )
    })
}

fn define(args: &Args) -> Result<(TableDefinition, Vec<Remark>), Failure> {
    if args.ydb_version.is_some() && args.ddl.is_none() {
        return Err(Failure::wrong_usage(
            "--ydb-version applies to the statement of --ddl; add --ddl FILE, or omit it",
        ));
    }
    let (mut definition, mut notes, has_partitions) = match &args.ddl {
        Some(file) => {
            let (definition, notes) =
                from_ddl(file, args.partitions.or(args.nodes).is_some(), args.ydb_version)?;
            (definition, notes, true)
        }
        None => match like_dump(args)? {
            Some(Dump { definition, notes, has_partitions }) => (definition, notes, has_partitions),
            None => {
                let (definition, notes) = from_flags(args)?;
                (definition, notes, false)
            }
        },
    };
    if let Some(name) = &args.name {
        definition.name.clone_from(name);
    }
    definition.placement = args.placement;
    if args.ttl.is_some() {
        definition.ttl.clone_from(&args.ttl);
    }
    let partitions = match partition_count(args.partitions, args.nodes)? {
        Some(partitions) => Some(partitions),
        None if has_partitions => None,
        None => {
            notes.push(Remark::new(
                "partitions_assumed",
                "4 partitions: 4 per node for 1 node, because neither --nodes nor --partitions is \
                given; only 'evenkeel repartition' changes the number later",
            ));
            Some(PartitionCount::for_nodes(1).map_err(Failure::usage)?)
        }
    };
    if let Some(partitions) = partitions {
        definition.partitions = partitions;
    }
    Ok((definition, notes))
}

/// Reads the table in a file. `partitions_given` means that its number of partitions is overridden.
fn from_ddl(
    file: &Path,
    partitions_given: bool,
    version: Option<YdbVersion>,
) -> Result<(TableDefinition, Vec<Remark>), Failure> {
    let text = read_text(file, SQL)?;
    let create = parse_create_table(&text)
        .map_err(|error| Failure::wrong_usage(format!("{}, {error}", file.display())))?;
    let notes =
        create.notes.iter().filter(|note| !(partitions_given && **note == DdlNote::PartitionsAssumed));
    let mut notes: Vec<Remark> = notes.map(Remark::from).collect();
    // This store supports the type in either case.
    match (check_ydb_types(&create.definition, version.unwrap_or_default()), version) {
        (Ok(()), _) => {}
        (Err(error), None) => notes.push(Remark::new("type_not_in_ydb", error.to_string())),
        (Err(error), Some(_)) => {
            return Err(Failure::wrong_usage(format!("{}, {error}", file.display())));
        }
    }
    Ok((create.definition, notes))
}

/// Table of a dump.
struct Dump {
    definition: TableDefinition,
    notes: Vec<Remark>,
    /// Whether the dump declares the number of partitions.
    has_partitions: bool,
}

/// Returns the table that the dump of --like declares, with the changes of other options; `None` if
/// --like does not name a dump.
fn like_dump(args: &Args) -> Result<Option<Dump>, Failure> {
    let Some(path) = &args.like else { return Ok(None) };
    // Anything that can be read only once is refused as a sample, with a reason.
    if path.exists() && !path.is_file() && !path.is_dir() {
        return Ok(None);
    }
    let inputs = find_inputs(&[path.display().to_string()], args.input.table.as_deref())?;
    let mut notes = Vec::new();
    let columns = match &inputs.declared {
        Some(declared) => declared_columns(&inputs, declared, args, &mut notes)?,
        None => return Ok(None),
    };
    let Some(declared) = inputs.declared else { return Ok(None) };
    notes.extend(declared.notes.iter().cloned());
    let given = |given: &[String], declared: Vec<String>| {
        if given.is_empty() { declared } else { trimmed(given) }
    };
    if declared.layout == TableLayout::Row && args.partition_key.is_empty() {
        notes.push(Remark::new(
            "row_table",
            "the dump is of a row table, whose partitions are ranges of the primary key; here they are the hash of \
             the primary key, unless --partition-key names columns of it",
        ));
    }
    if let Some(ttl) = &declared.ttl {
        let text = format!(
            "rows whose {} is more than {} ago expire, and compaction drops them, also after an ingest of this dump",
            ttl.column, ttl.keep
        );
        notes.push(Remark::on_column("ttl", &ttl.column, text));
    }
    // A new primary key is hashed as a whole, unless the declared partition key is part of it.
    let primary_key = given(&args.primary_key, declared.primary_key);
    let mut partition_key = given(&args.partition_key, declared.partition_key);
    if args.partition_key.is_empty() && !partition_key.iter().all(|column| primary_key.contains(column)) {
        partition_key.clear();
    }
    let mut columns = change(columns, args, path)?;
    for column in &mut columns {
        column.nullable &= !primary_key.contains(&column.name);
    }
    // Ranges do not determine hash partitions.
    let partitions = declared.partitions.filter(|_| declared.layout == TableLayout::Column);
    let partitions = partitions.map(PartitionCount::new).transpose().map_err(Failure::usage)?;
    let name = if declared.name.is_empty() { name_of(path) } else { name_of(Path::new(&declared.name)) };
    let definition = TableDefinition {
        ttl: declared.ttl,
        name,
        columns,
        primary_key,
        partition_key,
        partitions: partitions.unwrap_or(PartitionCount::for_nodes(1).map_err(Failure::usage)?),
        placement: args.placement,
    };
    Ok(Some(Dump { definition, notes, has_partitions: partitions.is_some() }))
}

/// Returns the columns that a dump declares; undeclared types are inferred from the rows.
fn declared_columns(
    inputs: &Inputs,
    declared: &DeclaredTable,
    args: &Args,
    notes: &mut Vec<Remark>,
) -> Result<Vec<Column>, Failure> {
    if let Some(columns) = declared.typed_columns() {
        return Ok(columns);
    }
    let options = inputs.options(args.input.options()?);
    let export = Export::open(&inputs.paths, options, &BTreeMap::new())?;
    notes.extend(export.notes().iter().map(Remark::from));
    let mut columns = Vec::new();
    for column in &declared.columns {
        let inferred = export.columns().iter().find(|candidate| candidate.name == column.name);
        match column.column_type.or(inferred.map(|inferred| inferred.column_type)) {
            Some(column_type) => {
                columns.push(Column { name: column.name.clone(), column_type, nullable: column.nullable });
            }
            None => {
                let text =
                    format!("column '{}' has no values to read its type from, and is left out", column.name);
                notes.push(Remark::on_column("column_left_out", &column.name, text));
            }
        }
    }
    Ok(columns)
}

fn from_flags(args: &Args) -> Result<(TableDefinition, Vec<Remark>), Failure> {
    let declared = declared(args)?;
    let mut notes = Vec::new();
    let columns = match &args.like {
        None if declared.is_empty() => {
            return Err(Failure::wrong_usage(
                "no columns given; pass --column for each, --ddl FILE, or --like FILE",
            ));
        }
        None => declared,
        Some(file) => like(file, args, &mut notes)?,
    };
    let definition = TableDefinition {
        ttl: None,
        name: name_of(&args.dir),
        columns,
        primary_key: trimmed(&args.primary_key),
        partition_key: trimmed(&args.partition_key),
        partitions: PartitionCount::for_nodes(1).map_err(Failure::usage)?,
        placement: args.placement,
    };
    Ok((definition, notes))
}

fn declared(args: &Args) -> Result<Vec<Column>, Failure> {
    args.columns.iter().map(|text| column("--column", text)).collect()
}

fn like(file: &Path, args: &Args, notes: &mut Vec<Remark>) -> Result<Vec<Column>, Failure> {
    let sample = infer_columns(file, &args.input.options()?)?;
    notes.extend(sample.notes.iter().map(Remark::from));
    let mut columns = change(sample.columns, args, file)?;
    for column in &mut columns {
        column.nullable &= !trimmed(&args.primary_key).contains(&column.name);
    }
    Ok(columns)
}

/// Returns the columns of a file with the changes that --column names.
fn change(mut columns: Vec<Column>, args: &Args, file: &Path) -> Result<Vec<Column>, Failure> {
    for column in &mut columns {
        column.column_type = column.column_type.in_table();
    }
    for change in declared(args)? {
        let Some(column) = columns.iter_mut().find(|column| column.name == change.name) else {
            let known: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
            return Err(Failure::wrong_usage(format!(
                "--column {}: {} has no such column with a YDB type; it has: {}",
                change.name,
                file.display(),
                known.join(", ")
            )));
        };
        column.column_type = change.column_type;
        column.nullable &= change.nullable;
    }
    Ok(columns)
}

/// Reads `name:type[:not-null]`, the value of `option`.
pub(super) fn column(option: &str, text: &str) -> Result<Column, Failure> {
    let wrong = |reason: &str| {
        Failure::wrong_usage(format!(
            "{option} '{}': {reason}; write name:type or name:type:not-null",
            quote(text)
        ))
    };
    let (name, rest) = text.split_once(':').ok_or_else(|| wrong("has no type"))?;
    let (column_type, nullable) = match rest.split_once(':') {
        None => (rest, true),
        Some((column_type, mark)) if mark.eq_ignore_ascii_case("not-null") => (column_type, false),
        Some((column_type, mark)) if mark.eq_ignore_ascii_case("null") => (column_type, true),
        Some((_, mark)) => return Err(wrong(&format!("'{}' is neither not-null nor null", quote(mark)))),
    };
    let column_type = column_type
        .parse()
        .map_err(|error| Failure::wrong_usage(format!("{option} '{}': {error}", quote(text))))?;
    Ok(Column { name: name.trim().to_owned(), column_type, nullable })
}

fn name_of(dir: &Path) -> String {
    let absolute = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    absolute.file_name().map_or_else(|| "table".to_owned(), |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
#[path = "create_tests.rs"]
mod tests;
