//! The proposed table: its YQL, and the commands that create and fill it.

use std::path::Path;

use crate::evaluate::figures::recommendation::Recommendation;
use crate::evaluate::options::AdvisorOptions;
use evenkeel_input::source::Export;
use evenkeel_model::table::{
    Candidate, Column, PlacementFunction, TableDefinition, TableSpec, write_create_table_for,
};
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::Function;

/// Maximum number of files that a command lists one by one.
const MOST_FILES_LISTED: usize = 5;

/// Adds the YQL, and the commands that use it, to the recommendation.
pub(crate) fn propose_table(
    recommendation: &mut Recommendation,
    partition_key: &Candidate,
    export: &Export,
    options: &AdvisorOptions,
    partitions: PartitionCount,
    function: Function,
) {
    let function = match function {
        Function::Ydb(function) => function,
        Function::System(system) => {
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
            return;
        }
    };
    let in_key = |column: &Column| recommendation.primary_key.contains(&column.name);
    let columns =
        export.columns().iter().map(|column| Column { nullable: !in_key(column), ..column.clone() });
    let definition = TableDefinition {
        ttl: None,
        name: options.table.clone(),
        columns: columns.collect(),
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
    let Some(files) = export.files() else {
        recommendation.commands = vec![
            format!("evenkeel create {table} --ddl {table}.sql{placement}  # the YQL above"),
            format!("evenkeel ingest {table} {}{reading}", inputs.join(" ")),
        ];
        return;
    };
    let quoted: Vec<String> = files.iter().map(|file| shell_word(&file.display().to_string())).collect();
    let Some(first) = quoted.first() else { return };
    recommendation.commands = vec![
        format!(
            "evenkeel create {table} --like {first}{}{reading} --primary-key {} --partition-key {} --partitions {partitions}{placement}",
            options_types(export),
            shell_word(&recommendation.primary_key.join(",")),
            shell_word(&partition_key.columns().join(",")),
        ),
        format!("evenkeel ingest {table} {}{reading}", inputs.join(" ")),
    ];
    // `ydb import file` works if it reads the format itself and all files share it.
    let formats: Option<Vec<&str>> = files.iter().map(|file| format_of(file)).collect();
    if let Some([format, others @ ..]) = formats.as_deref()
        && others.iter().all(|other| other == format)
    {
        let listed: Vec<&String> = quoted.iter().take(MOST_FILES_LISTED).collect();
        let more = if quoted.len() > MOST_FILES_LISTED { " ..." } else { "" };
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
