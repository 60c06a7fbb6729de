//! The proposed table: the statements that create it, and the commands that fill it.

use std::path::Path;

use crate::evaluate::figures::recommendation::Recommendation;
use crate::evaluate::options::AdvisorOptions;
use crate::evaluate::roles::Role;
use crate::targets::{TableDesign, Target};
use evenkeel_input::source::Export;
use evenkeel_model::table::{
    Candidate, Column, PlacementFunction, TableDefinition, TableSpec, write_create_table_for,
};
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::Function;

/// Maximum number of files that a command lists one by one.
const MAX_FILES_LISTED: usize = 5;

/// Adds the statements of the target, and the commands that use them, to the recommendation.
pub(crate) fn propose_table(
    recommendation: &mut Recommendation,
    partition_key: &Candidate,
    export: &Export,
    options: &AdvisorOptions,
    partitions: PartitionCount,
    knowledge: &Proposed<'_>,
) {
    let function = options.evaluate.placements.first().copied().unwrap_or_default();
    let target = match options.target {
        Target::Ydb => Target::from_function(function),
        other => Some(other),
    };
    match (target, function) {
        (Some(Target::Ydb), Function::Ydb(function)) => {
            propose_for_ydb(recommendation, partition_key, export, options, partitions, function);
        }
        (None | Some(Target::Ydb), Function::System(system)) => {
            // Names that are not plain need quotes: most of these systems would otherwise fold
            // their case or refuse them.
            let plain = |name: &str| {
                name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                    && !name.starts_with(|c: char| c.is_ascii_digit())
            };
            let quote = system.about().quote;
            let quoted =
                |name: &String| if plain(name) { name.clone() } else { format!("{quote}{name}{quote}") };
            let names: Vec<String> = partition_key.columns().iter().map(quoted).collect();
            let clause = (system.about().clause)(&names.join(", "), partitions.get());
            recommendation.ddl = (!clause.is_empty()).then(|| format!("{clause}\n"));
        }
        (Some(target), _) => {
            let columns = table_columns(recommendation, partition_key, export);
            let partition_key = partition_key.columns();
            let design = TableDesign {
                name: &options.table,
                columns: &columns,
                partition_key: &partition_key,
                primary_key: &recommendation.primary_key,
                is_unique: knowledge.is_unique,
                time: knowledge.time,
                partitions: partitions.get(),
                role: knowledge.role,
                heaviest_rows: knowledge.heaviest_rows,
                function,
            };
            recommendation.ddl = target.statements(&design).map(|statements| statements.text);
            recommendation.language = target.language();
        }
        (None, Function::Ydb(_)) => {}
    }
}

/// Facts about the recommended keys that the DDL of some systems depends on.
pub(crate) struct Proposed<'a> {
    /// Whether no two rows have the same primary key.
    pub(crate) is_unique: bool,
    /// Time column without NULL.
    pub(crate) time: Option<&'a str>,
    /// Role of the first column of the partition key.
    pub(crate) role: Option<Role>,
    /// Maximum number of rows with one partition key.
    pub(crate) heaviest_rows: Option<u64>,
}

/// Columns of the table. Key columns and columns that a dump declares NOT NULL refuse NULL; an
/// export cannot rule it out for others.
fn table_columns(recommendation: &Recommendation, partition_key: &Candidate, export: &Export) -> Vec<Column> {
    let partition_key = partition_key.columns();
    let in_key = |name: &String| recommendation.primary_key.contains(name) || partition_key.contains(name);
    let declared = export.options().declared.as_deref().unwrap_or_default();
    let is_required = |name: &String| declared.iter().any(|column| column.name == *name && !column.nullable);
    let columns = export.columns().iter();
    let nullable = |name: &String| !in_key(name) && !is_required(name);
    columns.map(|column| Column { nullable: nullable(&column.name), ..column.clone() }).collect()
}

fn propose_for_ydb(
    recommendation: &mut Recommendation,
    partition_key: &Candidate,
    export: &Export,
    options: &AdvisorOptions,
    partitions: PartitionCount,
    function: PlacementFunction,
) {
    let mut columns = table_columns(recommendation, partition_key, export);
    for column in &mut columns {
        column.column_type = column.column_type.in_table();
    }
    let definition = TableDefinition {
        ttl: options.ttl.clone().filter(|ttl| recommendation.primary_key.contains(&ttl.column)),
        name: options.table.clone(),
        columns,
        primary_key: recommendation.primary_key.clone(),
        partition_key: partition_key.columns(),
        partitions,
        placement: function,
    };
    let Ok(spec) = TableSpec::new(definition) else { return };
    let statement = write_create_table_for(&spec, options.ydb_version);
    // If no other type can represent a column, name the problem in place of the statement.
    recommendation.ddl =
        Some(statement.map_or_else(|error| format!("-- {error}\n"), |statement| statement.text));
    let table = &shell_word(&options.table);
    let reading: String = options.reading.iter().map(|word| format!(" {}", shell_word(word))).collect();
    let inputs: Vec<String> = options.inputs.iter().map(|input| shell_word(input)).collect();
    let placement =
        if function == PlacementFunction::Ydb { String::new() } else { format!(" --placement {function}") };
    // Rows that were merged from profiles have no files.
    let files = export.files().filter(|files| !options.has_statement && !files.is_empty());
    let ingest = format!("evenkeel ingest {table} {}{reading}", inputs.join(" "));
    let Some(files) = files else {
        let create = format!("evenkeel create {table} --ddl {table}.sql{placement}  # the YQL above");
        recommendation.commands =
            std::iter::once(create).chain((!inputs.is_empty()).then_some(ingest)).collect();
        return;
    };
    let quoted: Vec<String> = files.iter().map(|file| shell_word(&file.display().to_string())).collect();
    let is_dump = export.options().declared.is_some();
    let first = if is_dump { inputs.first() } else { quoted.first() };
    let Some(first) = first else { return };
    recommendation.commands = vec![
        format!(
            "evenkeel create {table} --like {first}{}{reading} --primary-key {} --partition-key {} --partitions {partitions}{placement}",
            options_types(export),
            shell_word(&recommendation.primary_key.join(",")),
            shell_word(&partition_key.columns().join(",")),
        ),
        ingest,
    ];
    if is_dump {
        return;
    }
    // `ydb import file` works if it reads the format itself and all files share it.
    let formats: Option<Vec<&str>> = files.iter().map(|file| format_of(file)).collect();
    if let Some([format, others @ ..]) = formats.as_deref()
        && others.iter().all(|other| other == format)
    {
        let listed: Vec<&String> = quoted.iter().take(MAX_FILES_LISTED).collect();
        let more = if quoted.len() > MAX_FILES_LISTED { " ..." } else { "" };
        let listed = listed.iter().map(|file| file.as_str()).collect::<Vec<_>>().join(" ");
        recommendation.commands.push(format!("ydb import file {format} -p {table} {listed}{more}"));
    }
}

/// Column types that were changed by hand, as arguments.
fn options_types(export: &Export) -> String {
    export
        .changed_types()
        .iter()
        .map(|(name, t)| format!(" --column {}", shell_word(&format!("{name}:{t}"))))
        .collect()
}

/// Returns the name of a file's format in `ydb import file`; `None` if that cannot read it.
fn format_of(file: &Path) -> Option<&'static str> {
    let ending = file.extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "parquet" | "pq" => "parquet",
        "csv" => "csv --header",
        "tsv" => "tsv --header",
        "json" | "ndjson" | "jsonl" => "json",
        _ => return None,
    })
}

/// Quotes a text so that a shell takes it as one word.
fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
