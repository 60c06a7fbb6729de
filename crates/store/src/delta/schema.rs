//! Columns of a table in the terms of Delta.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::delta::error::DeltaError;
use evenkeel_model::table::{Column, ColumnType, TableSpec};

/// The schema, as the protocol writes it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Schema {
    r#type: String,
    fields: Vec<Field>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Field {
    name: String,
    r#type: String,
    nullable: bool,
    metadata: BTreeMap<String, String>,
}

/// Key in a field's metadata for the type of the column.
const TYPE_KEY: &str = "evenkeel.type";

/// Returns the Delta type of a column.
///
/// Timestamps have no time zone, because the files store them without one; their values are UTC.
/// Delta has no unsigned integers, so these take the next larger type. Uint64 has no larger type,
/// so its values must be small enough. An Interval is a number of microseconds.
pub(super) fn delta_type(column_type: ColumnType) -> String {
    match column_type {
        ColumnType::Bool => "boolean",
        ColumnType::Int8 => "byte",
        ColumnType::Int16 | ColumnType::Uint8 => "short",
        ColumnType::Int32 | ColumnType::Uint16 => "integer",
        ColumnType::Int64
        | ColumnType::Uint32
        | ColumnType::Uint64
        | ColumnType::Interval
        | ColumnType::Interval64 => "long",
        ColumnType::Float => "float",
        ColumnType::Double => "double",
        ColumnType::Decimal { precision, scale } => return format!("decimal({precision},{scale})"),
        ColumnType::Utf8 | ColumnType::ObjectId | ColumnType::Json | ColumnType::JsonDocument => "string",
        ColumnType::String | ColumnType::Yson | ColumnType::Uuid => "binary",
        ColumnType::Date | ColumnType::Date32 => "date",
        ColumnType::Datetime | ColumnType::Datetime64 | ColumnType::Timestamp | ColumnType::Timestamp64 => {
            "timestamp_ntz"
        }
    }
    .to_owned()
}

/// Returns a comment for readers about aspects that the type does not express.
fn comment(column_type: ColumnType) -> Option<&'static str> {
    match column_type {
        ColumnType::Interval | ColumnType::Interval64 => Some("microseconds"),
        ColumnType::Uuid => Some("16 bytes, as written"),
        time if time.is_timestamp() => Some("UTC"),
        _ => None,
    }
}

/// Whether a column is stored as a type other than the one Delta declares, which some readers only
/// accept with a conversion.
pub(super) fn is_converted(column_type: ColumnType) -> bool {
    matches!(column_type, ColumnType::Uint64 | ColumnType::Interval | ColumnType::Interval64)
}

/// Returns the columns of a table except those in `without`.
///
/// # Errors
/// [`DeltaError`] if a column in `without` does not exist, no column is left, or two differ only in
/// case.
pub(super) fn exported_columns(spec: &TableSpec, without: &[String]) -> Result<Vec<Column>, DeltaError> {
    let known = |name: &str| spec.columns().iter().any(|column| column.name == name);
    if let Some(name) = without.iter().find(|name| !known(name)) {
        let declared = spec.columns().iter().map(|column| column.name.clone()).collect();
        return Err(DeltaError::UnknownColumn { name: name.clone(), declared });
    }
    let columns: Vec<Column> =
        spec.columns().iter().filter(|column| !without.contains(&column.name)).cloned().collect();
    if columns.is_empty() {
        return Err(DeltaError::NoColumns);
    }
    let mut seen: HashMap<String, &str> = HashMap::new();
    for column in &columns {
        if let Some(first) = seen.insert(column.name.to_lowercase(), &column.name) {
            return Err(DeltaError::Case { first: first.to_owned(), second: column.name.clone() });
        }
    }
    Ok(columns)
}

impl Schema {
    pub(super) fn from_columns(columns: &[Column]) -> Self {
        let field = |column: &Column| {
            let mut metadata = BTreeMap::from([(TYPE_KEY.to_owned(), column.column_type.to_string())]);
            metadata.extend(comment(column.column_type).map(|text| ("comment".to_owned(), text.to_owned())));
            Field {
                name: column.name.clone(),
                r#type: delta_type(column.column_type),
                nullable: column.nullable,
                metadata,
            }
        };
        Self { r#type: "struct".to_owned(), fields: columns.iter().map(field).collect() }
    }

    /// Whether the schema has a column of this name and type.
    pub(super) fn has(&self, column: &Column) -> bool {
        let column_type = column.column_type.to_string();
        self.fields
            .iter()
            .any(|field| field.name == column.name && field.metadata.get(TYPE_KEY) == Some(&column_type))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_model::table::{PlacementFunction, TableDefinition};
    use evenkeel_model::units::PartitionCount;

    #[test]
    fn every_type_has_one_in_delta_that_holds_its_values() {
        let types: Vec<String> =
            ColumnType::ALL.map(|column_type| format!("{column_type} {}", delta_type(column_type))).into();
        assert_eq!(
            types.join("\n"),
            "Bool boolean\nInt8 byte\nInt16 short\nInt32 integer\nInt64 long\nUint8 short\nUint16 integer\nUint32 long\n\
             Uint64 long\nFloat float\nDouble double\nDecimal(22,9) decimal(22,9)\nUtf8 string\nString binary\nJson string\n\
             JsonDocument string\nYson binary\nUuid binary\nDate date\nDatetime timestamp_ntz\nTimestamp timestamp_ntz\n\
             Interval long\nDate32 date\nDatetime64 timestamp_ntz\nTimestamp64 timestamp_ntz\nInterval64 long"
        );
    }

    #[test]
    fn a_schema_is_written_as_spark_does() {
        let columns =
            [Column::required("at", ColumnType::Timestamp), Column::nullable("u \"x\"", ColumnType::Uint8)];
        let schema = Schema::from_columns(&columns);
        assert_eq!(
            serde_json::to_string(&schema).unwrap(),
            "{\"type\":\"struct\",\"fields\":[\
             {\"name\":\"at\",\"type\":\"timestamp_ntz\",\"nullable\":false,\"metadata\":{\"comment\":\"UTC\",\"evenkeel.type\":\"Timestamp\"}},\
             {\"name\":\"u \\\"x\\\"\",\"type\":\"short\",\"nullable\":true,\"metadata\":{\"evenkeel.type\":\"Uint8\"}}]}"
        );
        assert!(schema.has(&columns[0]) && !schema.has(&Column::nullable("at", ColumnType::Utf8)));
    }

    #[test]
    fn names_that_delta_takes_for_one_are_refused_and_can_be_left_out() {
        let spec = TableSpec::new(TableDefinition {
            name: "t".into(),
            columns: vec![
                Column::required("k", ColumnType::Int64),
                Column::nullable("Straße", ColumnType::Utf8),
                Column::nullable("STRASSE", ColumnType::Utf8),
                Column::nullable("K", ColumnType::Utf8),
            ],
            primary_key: vec!["k".into()],
            partition_key: Vec::new(),
            partitions: PartitionCount::ONE,
            placement: PlacementFunction::Ydb,
            ttl: None,
        })
        .unwrap();
        let export = |without: &[&str]| {
            let without: Vec<String> = without.iter().map(|name| (*name).to_owned()).collect();
            exported_columns(&spec, &without).map(|columns| columns.len())
        };
        let refused = export(&[]).unwrap_err().to_string();
        assert!(
            refused.contains("'k' and 'K' differ only in case") && refused.contains("--without K"),
            "{refused}"
        );
        assert_eq!(export(&["K"]).unwrap(), 3);
        assert!(matches!(export(&["x"]), Err(DeltaError::UnknownColumn { .. })));
        assert!(matches!(export(&["k", "K", "Straße", "STRASSE"]), Err(DeltaError::NoColumns)));
    }
}
