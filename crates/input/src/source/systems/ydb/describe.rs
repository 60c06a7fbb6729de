//! The description of a table as JSON: `ydb scheme describe PATH --format proto-json-base64`, with
//! or without `--stats`.

use serde_json::Value as Json;

use crate::source::declared::{DataForm, DeclaredTable, TableLayout};
use crate::source::scheme_error::SchemeError;
use crate::source::systems::ydb::scheme::read_message;
use crate::source::systems::ydb::text_proto::{Message, Value};

/// Reads the description of a table.
///
/// # Errors
/// [`SchemeError`] if the text is not the description of a table.
pub fn read_describe(text: &str, file: &str) -> Result<DeclaredTable, SchemeError> {
    let wrong = |problem: String| SchemeError::Text { line: 1, problem };
    let json: Json = serde_json::from_str(text)
        .map_err(|error| SchemeError::Text { line: error.line() as u64, problem: error.to_string() })?;
    let Json::Object(_) = &json else { return Err(wrong("it is not an object".to_owned())) };
    let message = message_of(&json);
    let name = message.message("self").and_then(|entry| entry.text("name")).unwrap_or_default();
    let described = read_message(&message, file, &name)?;
    let counted = message.message("table_stats").and_then(|stats| stats.number("partitions"));
    let partitions = match described.layout {
        TableLayout::Column => counted.filter(|count| *count > 0).or(described.partitions),
        _ => described.partitions,
    };
    Ok(DeclaredTable { partitions, form: DataForm::Ordered, ..described })
}

/// Returns an object of JSON as a message: names in the spelling of the declaration, lists as
/// repeated fields, numbers and truth values as words.
fn message_of(json: &Json) -> Message {
    let mut message = Message::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        let name = snake_case(name);
        match value {
            Json::Array(items) => items.iter().for_each(|item| message.push(&name, value_of(item))),
            Json::Null => {}
            item => message.push(&name, value_of(item)),
        }
    }
    message
}

fn value_of(json: &Json) -> Value {
    match json {
        Json::Object(_) => Value::Message(message_of(json)),
        // Texts, names of enum values and numbers of 64 bits are all strings here.
        Json::String(text) => Value::Text(text.clone().into_bytes()),
        other => Value::Word(other.to_string()),
    }
}

/// Turns `partitioningSettings` into `partitioning_settings`; other names are unchanged.
fn snake_case(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_declares_keys_and_partitions_in_either_spelling() {
        let snake = r#"{"self":{"name":"events","type":"COLUMN_TABLE"},"columns":[{"name":"ts","type":{"type_id":"TIMESTAMP"}},
            {"name":"user","type":{"optional_type":{"item":{"type_id":"UINT64"}}}},
            {"name":"price","type":{"optional_type":{"item":{"decimal_type":{"precision":22,"scale":9}}}}}],
            "primary_key":["ts","user"],"partitioning_settings":{"partition_by":["user"],"min_partitions_count":"8"},
            "store_type":"STORE_TYPE_COLUMN","table_stats":{"partitions":"64","rows_estimate":"5"}}"#;
        let camel = snake
            .replace("type_id", "typeId")
            .replace("optional_type", "optionalType")
            .replace("decimal_type", "decimalType")
            .replace("primary_key", "primaryKey")
            .replace("partitioning_settings", "partitioningSettings")
            .replace("partition_by", "partitionBy")
            .replace("min_partitions_count", "minPartitionsCount")
            .replace("store_type", "storeType")
            .replace("table_stats", "tableStats");
        for text in [snake, &camel] {
            let table = read_describe(text, "t.json").unwrap();
            assert_eq!(
                (table.name.as_str(), table.layout, table.partitions),
                ("events", TableLayout::Column, Some(64))
            );
            assert_eq!(
                (table.primary_key.join(","), table.partition_key.join(",")),
                ("ts,user".into(), "user".into())
            );
            let types: Vec<String> =
                table.typed_columns().unwrap().iter().map(|column| column.column_type.to_string()).collect();
            assert_eq!(types, ["Timestamp", "Uint64", "Decimal(22,9)"]);
        }
        for text in ["", "[]", "{}", "{\"columns\": 7}", "{\"columns\":[{\"name\":\"a\"}]}"] {
            assert!(read_describe(text, "t.json").is_err(), "{text}");
        }
    }
}
