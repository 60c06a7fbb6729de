//! Exports of Spanner in Avro, as Dataflow writes them: `spanner-export.json` names the tables, a
//! manifest per table its files, and the header of each file has Spanner's declarations in addition
//! to the schema.

use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::source::avro::{AvroField, AvroSchema, can_generate, read_schema};
use crate::source::ddl::read_ddl;
use crate::source::declared::{DataForm, DeclaredTable, TableLayout};
use crate::source::error::SourceError;
use crate::source::file_name::format_of_name;
use crate::source::format::InputFormat;
use crate::source::input_path::InputPath;
use crate::source::stored::open_decompressed;
use crate::source::systems::checksums::Checksum;
use crate::source::systems::foreign_table::ForeignTable;
use crate::source::systems::listing::{ListedFile, Listing};
use evenkeel_model::remark::Remark;

const EXPORT: &str = "spanner-export.json";

/// `spanner-export.json`.
#[derive(Debug, Deserialize)]
struct ExportFile {
    #[serde(default)]
    tables: Vec<ExportedTable>,
    /// `POSTGRESQL`; absent for GoogleSQL.
    #[serde(default)]
    dialect: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExportedTable {
    name: String,
    #[serde(default)]
    manifest_file: String,
    #[serde(default)]
    data_files: Vec<String>,
}

/// The manifest of a table.
#[derive(Debug, Deserialize)]
struct Manifest {
    #[serde(default)]
    files: Vec<ManifestFile>,
}

#[derive(Debug, Deserialize)]
struct ManifestFile {
    name: String,
    /// MD5 in Base64.
    #[serde(default)]
    md5: String,
}

/// A table of an export, and the files of its rows.
struct AvroTable<'a> {
    name: String,
    schema: AvroSchema,
    files: Vec<(&'a ListedFile, String)>,
    /// First file, whose header was read.
    first: String,
}

/// Returns the tables of an export, sorted by name; empty if the folder is not one.
///
/// # Errors
/// [`SourceError`] if files are missing or cannot be read.
pub(in crate::source) fn tables(listing: &Listing) -> Result<Vec<ForeignTable>, SourceError> {
    let mut exports = listing.named(EXPORT);
    let Some(export) = exports.next() else { return Ok(Vec::new()) };
    if let Some(other) = exports.next() {
        return Err(SourceError::Refused {
            file: listing.name.clone(),
            problem: format!("holds several exports of Spanner: {} and {}", export.path, other.path),
            advice: "name the folder of one".to_owned(),
        });
    }
    let (folder, _) = export.parts();
    let described: ExportFile = parse(export)?;
    let is_postgres = described.dialect == "POSTGRESQL";
    let mut exported = Vec::new();
    for table in described.tables {
        let files = files_of(listing, export, folder, &table)?;
        let Some((first, _)) = files.first() else { continue };
        let schema = read_schema(&first.input.name(), open_decompressed(&first.input)?)?;
        let first = first.input.name();
        if is_table(&schema) {
            exported.push(AvroTable { name: table.name, schema, files, first });
        }
    }
    if exported.is_empty() {
        return Err(SourceError::Refused {
            file: export.input.name(),
            problem: "the export of Spanner names no table with files".to_owned(),
            advice: "export the database again, or name the .avro files of one table".to_owned(),
        });
    }
    let of_table = |table: &AvroTable<'_>| {
        let statements = statements_with_ancestors(table, &exported, is_postgres);
        let has_checksum = |(_, md5): &&(&ListedFile, String)| !md5.is_empty();
        let checksum = |(file, md5): &(&ListedFile, String)| (file.input.clone(), Checksum::Md5(md5.clone()));
        Ok(ForeignTable {
            declared: declare(table, statements, is_postgres)?,
            files: table.files.iter().map(|(file, _)| file.input.clone()).collect(),
            checksums: table.files.iter().filter(has_checksum).map(checksum).collect(),
        })
    };
    let mut tables: Vec<ForeignTable> = exported.iter().map(of_table).collect::<Result<_, SourceError>>()?;
    tables.sort_by(|a, b| a.declared.name.cmp(&b.declared.name));
    Ok(tables)
}

fn parse<T: DeserializeOwned>(file: &ListedFile) -> Result<T, SourceError> {
    serde_json::from_str(&file.text()?).map_err(|error| SourceError::Refused {
        file: file.input.name(),
        problem: format!("cannot be read as part of an export of Spanner: {error}"),
        advice: "export the database again, or name the .avro files of one table".to_owned(),
    })
}

fn missing(file: String, what: &str) -> SourceError {
    SourceError::Refused {
        file,
        problem: format!("the export of Spanner is incomplete: {what} is missing"),
        advice: "copy the whole folder of the export".to_owned(),
    }
}

/// Returns the files of a table with their checksums.
fn files_of<'a>(
    listing: &'a Listing,
    export: &ListedFile,
    folder: &'a str,
    table: &ExportedTable,
) -> Result<Vec<(&'a ListedFile, String)>, SourceError> {
    let named = |name: &str| listing.directly_in(folder).find(|file| file.parts().1 == name);
    if table.manifest_file.is_empty() {
        // Written by hand for an import.
        let patterns: Vec<glob::Pattern> =
            table.data_files.iter().filter_map(|pattern| glob::Pattern::new(pattern).ok()).collect();
        let is_of_table = |file: &&ListedFile| patterns.iter().any(|pattern| pattern.matches(file.parts().1));
        return Ok(listing
            .directly_in(folder)
            .filter(is_of_table)
            .map(|file| (file, String::new()))
            .collect());
    }
    let Some(manifest) = named(&table.manifest_file) else {
        return Err(missing(export.input.name(), &table.manifest_file));
    };
    let described: Manifest = parse(manifest)?;
    let mut files = Vec::new();
    for ManifestFile { name, md5 } in described.files {
        match named(&name) {
            Some(file) => files.push((file, md5)),
            None => return Err(missing(manifest.input.name(), &name)),
        }
    }
    Ok(files)
}

/// Returns the table that Avro files belong to, if Spanner exported them; `table` is its name, if
/// it is given.
///
/// # Errors
/// [`SourceError`] if a file cannot be read, or if they are of several tables.
pub(in crate::source) fn table_of_files(
    files: &[InputPath],
    table: Option<&str>,
) -> Result<Option<DeclaredTable>, SourceError> {
    let mut chosen: Option<DeclaredTable> = None;
    let is_avro = |file: &&InputPath| format_of_name(Path::new(&file.name())) == Some(InputFormat::Avro);
    for file in files.iter().filter(is_avro).filter(|file| file.is_regular()) {
        let declared = table_of_file(file)?;
        match (&chosen, declared) {
            (None, None) => return Ok(None),
            (None, declared) => chosen = declared,
            (Some(first), Some(next)) if first.name == next.name && first.columns == next.columns => {}
            (Some(first), _) => {
                return Err(SourceError::OtherTable { first: first.file.clone(), other: file.name() });
            }
        }
    }
    if let (Some(chosen), Some(table)) = (&chosen, table)
        && !chosen.is_named(table)
    {
        return Err(SourceError::NoSuchTable {
            path: chosen.file.clone(),
            table: table.to_owned(),
            found: vec![chosen.name.clone()],
        });
    }
    Ok(chosen)
}

/// Returns the table that a file belongs to, if Spanner exported it.
fn table_of_file(input: &InputPath) -> Result<Option<DeclaredTable>, SourceError> {
    let schema = read_schema(&input.name(), open_decompressed(input)?)?;
    if !schema.is_of_spanner() || !is_table(&schema) {
        return Ok(None);
    }
    let name = schema.property("spannerName").or(schema.property("name")).unwrap_or_default().to_owned();
    let is_postgres = schema.is_of_postgres();
    let exported = AvroTable { name, schema, files: Vec::new(), first: input.name() };
    let statements = statements_with_ancestors(&exported, std::slice::from_ref(&exported), is_postgres);
    declare(&exported, statements, is_postgres).map(Some)
}

/// Whether a schema describes a table, and not a view, a sequence, a model or a change stream.
fn is_table(schema: &AvroSchema) -> bool {
    let others = [
        "spannerEntity",
        "spannerViewQuery",
        "sequenceKind",
        "sequenceOption_0",
        "spannerChangeStreamForClause",
    ];
    !schema.fields.is_empty() && others.iter().all(|name| schema.property(name).is_none())
}

fn declare(
    table: &AvroTable<'_>,
    statements: String,
    is_postgres: bool,
) -> Result<DeclaredTable, SourceError> {
    let AvroTable { name, schema, first, .. } = table;
    let of_statement =
        read_ddl(&statement(table, is_postgres), first, None).map_err(|error| SourceError::Refused {
            file: first.clone(),
            problem: format!("its declarations of Spanner cannot be read: {error}"),
            advice: "export the table as text".to_owned(),
        })?;
    let mut declared = DeclaredTable {
        file: first.clone(),
        name: name.clone(),
        layout: TableLayout::Row,
        form: DataForm::Named,
        spanner: Some(statements),
        ..of_statement
    };
    let is_list = |name: &str| {
        let field = schema.fields.iter().find(|field| field.name == name);
        let sql_type = field.and_then(|field| field.property("sqlType")).unwrap_or_default();
        sql_type.starts_with("ARRAY") || sql_type.contains('[')
    };
    declared.columns.retain(|column| !is_list(&column.name));
    for field in &schema.fields {
        let Some(expression) = field.property("generationExpression") else { continue };
        if can_generate(schema, &field.name) {
            let text = format!(
                "column '{}' is generated and not exported; it is computed as {expression}",
                field.name
            );
            declared.notes.push(Remark::on_column("generated_column_computed", &field.name, text));
            continue;
        }
        let text = format!(
            "column '{}' is generated as {expression} and not exported; it has no values here",
            field.name
        );
        declared.notes.push(Remark::on_column("generated_column_left_out", &field.name, text));
        declared.columns.retain(|column| column.name != field.name);
        if declared.primary_key.contains(&field.name) {
            let text = format!(
                "the declared primary key ({}) cannot be judged without '{}'",
                declared.primary_key.join(", "),
                field.name
            );
            declared.notes.push(Remark::on_column("primary_key_not_exported", &field.name, text));
            declared.primary_key.clear();
        }
    }
    Ok(declared)
}

/// Returns the statements of a table, of its ancestors and of the tables within it, parents first.
fn statements_with_ancestors(table: &AvroTable<'_>, all: &[AvroTable<'_>], is_postgres: bool) -> String {
    let parent_of = |table: &AvroTable<'_>| -> Option<&AvroTable<'_>> {
        let parent = table.schema.property("spannerParent")?;
        all.iter().find(|other| other.name == parent)
    };
    // A chain of parents is as long as there are tables, unless it is a circle.
    let ancestors = |table: &AvroTable<'_>| {
        let mut chain = vec![table.name.clone()];
        let mut next = parent_of(table);
        while let Some(parent) = next.filter(|parent| !chain.contains(&parent.name)) {
            chain.push(parent.name.clone());
            next = parent_of(parent);
        }
        chain
    };
    let own = ancestors(table);
    let mut family: Vec<(usize, &AvroTable<'_>)> = all
        .iter()
        .map(|other| (ancestors(other), other))
        .filter(|(chain, other)| own.contains(&other.name) || chain.contains(&table.name))
        .map(|(chain, other)| (chain.len(), other))
        .collect();
    family.sort_by_key(|(depth, _)| *depth);
    let mut text = String::new();
    for (_, member) in &family {
        text.push_str(&statement(member, is_postgres));
        text.push_str(";\n");
    }
    for (_, member) in &family {
        for index in member.schema.numbered("spannerIndex") {
            text.push_str(index.trim_end_matches(';'));
            text.push_str(";\n");
        }
    }
    text
}

/// Returns the statement that declares a table.
fn statement(table: &AvroTable<'_>, is_postgres: bool) -> String {
    let AvroTable { name, schema, .. } = table;
    let quoted = |name: &str| if is_postgres { format!("\"{name}\"") } else { format!("`{name}`") };
    let dotted = |name: &str| name.split('.').map(quoted).collect::<Vec<_>>().join(".");
    let mut parts: Vec<String> =
        schema.fields.iter().map(|field| column(field, &quoted(&field.name), is_postgres)).collect();
    let key: Vec<&str> = schema.numbered("spannerPrimaryKey");
    let key = match (key.is_empty(), schema.property("spannerPrimaryKey")) {
        (true, Some(whole)) => whole.to_owned(),
        _ => key.join(", "),
    };
    let parent = schema.property("spannerParent").map(|parent| {
        let how = schema.property("spannerInterleaveType").unwrap_or("IN PARENT");
        let on_delete = schema.property("spannerOnDeleteAction").map(|action| format!(" ON DELETE {action}"));
        format!(" INTERLEAVE {how} {}{}", dotted(parent), on_delete.unwrap_or_default().to_uppercase())
    });
    let parent = parent.unwrap_or_default();
    let name = dotted(name);
    if is_postgres {
        // The order of PostgreSQL's keys is ascending; its primary keys cannot express that.
        let key = key.replace(" ASC", "");
        parts.push(format!("PRIMARY KEY ({key})"));
        return format!("CREATE TABLE {name} (\n  {}\n){parent}", parts.join(",\n  "));
    }
    let comma = if parent.is_empty() { "" } else { "," };
    format!("CREATE TABLE {name} (\n  {}\n) PRIMARY KEY ({key}){comma}{parent}", parts.join(",\n  "))
}

fn column(field: &AvroField, name: &str, is_postgres: bool) -> String {
    let sql_type = field.property("sqlType").unwrap_or(if is_postgres { "text" } else { "STRING(MAX)" });
    let is_stated = field.property("notNull").map(|text| text.eq_ignore_ascii_case("true"));
    let generated = field.property("generationExpression").map(|expression| {
        let stored = field.property("stored").is_none_or(|stored| stored.eq_ignore_ascii_case("true"));
        let stored = if stored { " STORED" } else { "" };
        match is_postgres {
            true => format!(" GENERATED ALWAYS AS ({expression}){stored}"),
            false => format!(" AS ({expression}){stored}"),
        }
    });
    let is_required = is_stated.unwrap_or(!field.nullable);
    let required = if is_required { " NOT NULL" } else { "" };
    format!("{name} {sql_type}{required}{}", generated.unwrap_or_default())
}

#[cfg(test)]
#[path = "spanner_tests.rs"]
mod tests;
