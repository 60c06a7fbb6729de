//! `scheme.pb` of a YDB dump: a `Ydb.Table.CreateTableRequest` as text.

use std::collections::HashSet;

use crate::source::declared::{DataForm, DeclaredTable, TableLayout};
use crate::source::scheme_error::SchemeError;
use crate::source::systems::ydb::text_proto::Message;
use evenkeel_model::bounded::quote;
use evenkeel_model::remark::Remark;
use evenkeel_model::table::{Column, ColumnType, Ttl};
use evenkeel_model::units::Micros;

fn wrong(problem: impl Into<String>) -> SchemeError {
    SchemeError::Table { problem: problem.into() }
}

/// Reads the text of `scheme.pb`; `file` and `name` are the names of the file and of the table.
///
/// # Errors
/// [`SchemeError`] if the text does not declare a table.
pub fn read_scheme(text: &str, file: &str, name: &str) -> Result<DeclaredTable, SchemeError> {
    read_message(&Message::parse(text)?, file, name)
}

/// Reads the table that a message declares.
pub(super) fn read_message(message: &Message, file: &str, name: &str) -> Result<DeclaredTable, SchemeError> {
    let mut notes = Vec::new();
    let columns = message.messages("columns").map(|column| read_column(column, &mut notes));
    let columns: Vec<Column> = columns.collect::<Result<_, _>>()?;
    if columns.is_empty() {
        return Err(wrong("it declares no columns"));
    }
    let mut seen = HashSet::new();
    if let Some(column) = columns.iter().find(|column| !seen.insert(column.name.as_str())) {
        return Err(wrong(format!("it declares column '{}' twice", quote(&column.name))));
    }
    let primary_key = message.texts("primary_key");
    let settings = message.message("partitioning_settings");
    let is_column = message.word("store_type").is_some_and(|word| word == "STORE_TYPE_COLUMN");
    let layout = if is_column { TableLayout::Column } else { TableLayout::Row };
    let mut partition_key = settings.map(|settings| settings.texts("partition_by")).unwrap_or_default();
    if is_column && partition_key.is_empty() {
        partition_key.clone_from(&primary_key);
    }
    if !is_column {
        partition_key.clear();
    }
    for name in primary_key.iter().chain(&partition_key) {
        if !columns.iter().any(|column| column.name == *name) {
            return Err(wrong(format!("a key names column '{}', which it does not declare", quote(name))));
        }
    }
    let ttl = message.message("ttl_settings").and_then(|settings| read_ttl(settings, &mut notes));
    Ok(DeclaredTable {
        file: file.to_owned(),
        name: name.to_owned(),
        layout,
        partitions: read_partitions(message, settings, layout),
        columns: columns.into_iter().map(Into::into).collect(),
        primary_key,
        partition_key,
        ttl,
        notes,
        form: DataForm::YdbDump,
        ..DeclaredTable::default()
    })
}

/// Returns the number of partitions: the hash partitions of a column table, or the ranges of a row
/// table as declared or dumped.
fn read_partitions(message: &Message, settings: Option<&Message>, layout: TableLayout) -> Option<u64> {
    let splits = message.message("partition_at_keys");
    let ranges = splits.map(|splits| splits.messages("split_points").count() as u64 + 1);
    let least = || settings.and_then(|settings| settings.number("min_partitions_count"));
    let declared = match layout {
        TableLayout::Column => least(),
        TableLayout::Row | TableLayout::Unknown => ranges.or_else(|| message.number("uniform_partitions")),
    };
    declared.filter(|count| *count > 0)
}

fn read_column(message: &Message, notes: &mut Vec<Remark>) -> Result<Column, SchemeError> {
    let name = message.text("name").filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| wrong("a column has no name"))?;
    let declared = message.message("type");
    let declared = declared.ok_or_else(|| wrong(format!("column '{}' has no type", quote(&name))))?;
    let (item, is_optional) = match declared.message("optional_type") {
        Some(optional) => (optional.message("item").unwrap_or(optional), true),
        None => (declared, false),
    };
    let not_null = message.word("not_null").is_some_and(|word| matches!(word, "true" | "True" | "t" | "1"));
    let (column_type, remark) = read_type(item, &name)?;
    notes.extend(remark);
    // Types of PostgreSQL are nullable without being optional.
    let takes_null = is_optional || item.has("pg_type");
    Ok(Column { name, column_type, nullable: takes_null && !not_null })
}

/// Returns a type, and a remark if its values are read as text.
fn read_type(item: &Message, column: &str) -> Result<(ColumnType, Option<Remark>), SchemeError> {
    let as_text = |type_name: &str| {
        let text = format!("column '{}' of type {type_name} is read as text", quote(column));
        Ok((ColumnType::Utf8, Some(Remark::on_column("type_read_as_text", column, text))))
    };
    if let Some(decimal) = item.message("decimal_type") {
        let part = |name: &str| decimal.number(name).unwrap_or(0);
        let text = format!("Decimal({},{})", part("precision"), part("scale"));
        let column_type = text.parse::<ColumnType>();
        return Ok((
            column_type.map_err(|error| wrong(format!("column '{}': {error}", quote(column))))?,
            None,
        ));
    }
    if let Some(pg) = item.message("pg_type") {
        return as_text(&pg.text("type_name").unwrap_or_default());
    }
    let Some(id) = item.word("type_id") else {
        let kind = item.names().next().unwrap_or("none").trim_end_matches("_type").to_owned();
        return Err(wrong(format!("column '{}' has a type that tables do not have: {kind}", quote(column))));
    };
    let column_type = match id {
        "BOOL" => ColumnType::Bool,
        "INT8" => ColumnType::Int8,
        "UINT8" => ColumnType::Uint8,
        "INT16" => ColumnType::Int16,
        "UINT16" => ColumnType::Uint16,
        "INT32" => ColumnType::Int32,
        "UINT32" => ColumnType::Uint32,
        "INT64" => ColumnType::Int64,
        "UINT64" => ColumnType::Uint64,
        "FLOAT" => ColumnType::Float,
        "DOUBLE" => ColumnType::Double,
        "DATE" => ColumnType::Date,
        "DATETIME" => ColumnType::Datetime,
        "TIMESTAMP" => ColumnType::Timestamp,
        "INTERVAL" => ColumnType::Interval,
        "DATE32" => ColumnType::Date32,
        "DATETIME64" => ColumnType::Datetime64,
        "TIMESTAMP64" => ColumnType::Timestamp64,
        "INTERVAL64" => ColumnType::Interval64,
        "STRING" => ColumnType::String,
        "UTF8" => ColumnType::Utf8,
        "YSON" => ColumnType::Yson,
        "JSON" => ColumnType::Json,
        "UUID" => ColumnType::Uuid,
        "JSON_DOCUMENT" => ColumnType::JsonDocument,
        "DYNUMBER" => return as_text("DyNumber"),
        "TZ_DATE" => return as_text("TzDate"),
        "TZ_DATETIME" => return as_text("TzDatetime"),
        "TZ_TIMESTAMP" => return as_text("TzTimestamp"),
        other => {
            return Err(wrong(format!("column '{}' has an unknown type: {}", quote(column), quote(other))));
        }
    };
    Ok((column_type, None))
}

/// Reads the time to live; if rows are not deleted by the age of a time column, adds a note.
fn read_ttl(settings: &Message, notes: &mut Vec<Remark>) -> Option<Ttl> {
    let mut modes = settings.names().filter_map(|name| Some((name, settings.message(name)?)));
    let (mode, mode_settings) = modes.find(|(_, mode)| mode.has("column_name"))?;
    let column = mode_settings.text("column_name")?;
    if mode.starts_with("value_since_unix_epoch") {
        let text = format!(
            "the time to live goes by the numbers in column '{}'; here it needs a date or time column, and is left out",
            quote(&column)
        );
        notes.push(Remark::on_column("ttl_left_out", &column, text));
        return None;
    }
    let tiers = settings.messages("tiers").chain(mode_settings.messages("tiers"));
    let deleted =
        tiers.filter(|tier| tier.has("delete")).filter_map(|tier| tier.number("apply_after_seconds"));
    let seconds = mode_settings.number("expire_after_seconds").or_else(|| deleted.last());
    let Some(seconds) = seconds else {
        let text = "the tiers of the time to live delete no rows, and are left out";
        notes.push(Remark::new("ttl_left_out", text));
        return None;
    };
    let keep = Micros::new(i64::try_from(seconds).ok()?.checked_mul(1_000_000)?);
    Some(Ttl { column, keep })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, column_type: &str) -> String {
        format!("columns {{\n  name: \"{name}\"\n  type {{\n    {column_type}\n  }}\n}}\n")
    }

    fn optional(type_id: &str) -> String {
        format!("optional_type {{ item {{ type_id: {type_id} }} }}")
    }

    fn table(text: &str) -> DeclaredTable {
        read_scheme(text, "scheme.pb", "ads/events").unwrap()
    }

    #[test]
    fn a_column_table_declares_both_keys_and_its_partitions() {
        let text = [
            column("ts", "type_id: TIMESTAMP"),
            column("user", &optional("UINT64")),
            column("price", "optional_type { item { decimal_type { precision: 22 scale: 9 } } }"),
            "primary_key: \"ts\"\nprimary_key: \"user\"\n".to_owned(),
            "ttl_settings { date_type_column { column_name: \"ts\" expire_after_seconds: 86400 } }\n"
                .to_owned(),
            "partitioning_settings { partition_by: \"user\" min_partitions_count: 64 }\n".to_owned(),
            "store_type: STORE_TYPE_COLUMN\n".to_owned(),
        ]
        .concat();
        let table = table(&text);
        assert_eq!((table.layout, table.partitions), (TableLayout::Column, Some(64)));
        assert_eq!(
            (table.primary_key.clone(), table.partition_key.clone()),
            (vec!["ts".into(), "user".into()], vec!["user".into()])
        );
        let decimal = ColumnType::Decimal { precision: 22, scale: 9 };
        let expected = [
            Column::required("ts", ColumnType::Timestamp),
            Column::nullable("user", ColumnType::Uint64),
            Column::nullable("price", decimal),
        ];
        assert_eq!(table.typed_columns().unwrap(), expected);
        assert_eq!(table.ttl, Some(Ttl { column: "ts".into(), keep: Micros::DAY }));
        // Without PARTITION BY, the whole primary key is hashed.
        let whole = super::read_scheme(&text.replace("partition_by: \"user\"", ""), "scheme.pb", "").unwrap();
        assert_eq!(whole.partition_key, ["ts", "user"]);
    }

    #[test]
    fn a_row_table_has_ranges_and_their_number() {
        let text = column("id", &optional("UTF8")) + "primary_key: \"id\"\n";
        let partitions_of = |more: &str| {
            let table = table(&format!("{text}{more}"));
            assert_eq!((table.layout, table.partition_key.len()), (TableLayout::Row, 0));
            table.partitions
        };
        assert_eq!(partitions_of("partitioning_settings { min_partitions_count: 1 }"), None);
        assert_eq!(partitions_of("uniform_partitions: 8"), Some(8));
        assert_eq!(partitions_of("partition_at_keys { split_points { type {} } split_points {} }"), Some(3));
        assert_eq!(partitions_of("partition_at_keys { }"), Some(1));
    }

    #[test]
    fn every_type_is_known_and_those_without_an_equivalent_are_text() {
        let names = [
            "BOOL",
            "INT8",
            "INT16",
            "INT32",
            "INT64",
            "UINT8",
            "UINT16",
            "UINT32",
            "UINT64",
            "FLOAT",
            "DOUBLE",
            "UTF8",
            "STRING",
            "JSON",
            "JSON_DOCUMENT",
            "YSON",
            "UUID",
            "DATE",
            "DATETIME",
            "TIMESTAMP",
            "INTERVAL",
            "DATE32",
            "DATETIME64",
            "TIMESTAMP64",
            "INTERVAL64",
        ];
        let text: String = names.iter().map(|name| column(name, &format!("type_id: {name}"))).collect();
        let mut types: Vec<String> =
            table(&text).typed_columns().unwrap().iter().map(|c| c.column_type.to_string()).collect();
        assert_eq!(types.len() + 1, ColumnType::ALL.len());
        types.sort();
        types.dedup();
        assert_eq!(types.len(), names.len());
        let text =
            column("d", &optional("DYNUMBER")) + &column("p", "pg_type { type_name: \"pgint4\" oid: 23 }");
        let odd = table(&text);
        assert!(odd.columns.iter().all(|column| column.column_type == Some(ColumnType::Utf8)));
        assert!(
            odd.notes[0].text().contains("'d' of type DyNumber")
                && odd.notes[1].text().contains("of type pgint4")
                && odd.columns[1].nullable,
            "{:?}",
            odd.notes
        );
    }

    #[test]
    fn tiers_that_delete_are_a_time_to_live_and_others_are_noted() {
        let text = column("ts", "type_id: TIMESTAMP") + &column("n", "type_id: UINT32");
        let ttl_of = |ttl: &str| {
            let table = table(&format!("{text}ttl_settings {{ {ttl} }}"));
            (table.ttl.map(|ttl| ttl.to_string()), table.notes.len())
        };
        let tiers = "date_type_column_v1 { column_name: \"ts\" } tiers { apply_after_seconds: 60 evict_to_external_storage { } } \
                     tiers { apply_after_seconds: 3600 delete { } }";
        assert_eq!(ttl_of(tiers), (Some("ts=1h".to_owned()), 0));
        let kept = "date_type_column_v1 { column_name: \"ts\" } tiers { apply_after_seconds: 60 evict_to_external_storage { } }";
        assert_eq!(ttl_of(kept), (None, 1));
        let number = "value_since_unix_epoch { column_name: \"n\" column_unit: UNIT_SECONDS expire_after_seconds: 60 }";
        assert_eq!(ttl_of(number), (None, 1));
    }

    #[test]
    fn what_declares_no_table_is_refused() {
        let id = column("id", "type_id: UTF8");
        for (text, problem) in [
            (String::new(), "it declares no columns"),
            ("columns {".to_owned(), "line 1: a brace is not closed"),
            ("columns { name: \"a\" }".to_owned(), "column 'a' has no type"),
            ("columns { type { type_id: UTF8 } }".to_owned(), "a column has no name"),
            (format!("{id}{id}"), "declares column 'id' twice"),
            (column("id", "type_id: QUATERNION"), "has an unknown type: QUATERNION"),
            (column("id", "list_type { item { type_id: UTF8 } }"), "a type that tables do not have: list"),
            (column("id", "decimal_type { precision: 99 scale: 1 }"), "column 'id': Decimal(99,1)"),
            (format!("{id}primary_key: \"nope\""), "a key names column 'nope'"),
        ] {
            let error = read_scheme(&text, "scheme.pb", "").unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
