//! Types of columns in statements of other systems.

use sqlparser::tokenizer::Token;

use crate::source::ddl::tokens::Tokens;
use evenkeel_model::table::ColumnType;

/// Type of a column.
pub(super) struct DdlType {
    /// `None` if the values must decide.
    pub(super) column_type: Option<ColumnType>,
    /// Whether the type is nullable; ClickHouse types state that.
    pub(super) is_nullable: bool,
}

/// Reads the type of a column, and its arguments.
pub(super) fn type_of(tokens: &mut Tokens<'_>) -> DdlType {
    let none = DdlType { column_type: None, is_nullable: true };
    let Some(name) = tokens.word() else { return none };
    let arguments = tokens.group();
    if let ("Nullable" | "LowCardinality", Some(mut inner)) = (name.as_str(), arguments.clone()) {
        let inner = type_of(&mut inner);
        return DdlType { is_nullable: name == "Nullable" || inner.is_nullable, ..inner };
    }
    let is_unsigned = tokens.skips("UNSIGNED");
    let numbers = arguments.map(|arguments| numbers(&arguments)).unwrap_or_default();
    let is_of_clickhouse = CLICKHOUSE.iter().any(|known| name == *known || name.starts_with("Enum"));
    DdlType { column_type: column_type(&name, &numbers, is_unsigned, tokens), is_nullable: !is_of_clickhouse }
}

/// Types whose spelling is unique to ClickHouse; they are nullable only within `Nullable`.
const CLICKHOUSE: [&str; 16] = [
    "UInt8",
    "UInt16",
    "UInt32",
    "UInt64",
    "UInt128",
    "UInt256",
    "Int128",
    "Int256",
    "Float32",
    "Float64",
    "FixedString",
    "DateTime",
    "DateTime64",
    "Date32",
    "IPv4",
    "IPv6",
];

fn numbers(arguments: &Tokens<'_>) -> Vec<u64> {
    let number = |mut part: Tokens<'_>| part.number();
    arguments.split_at_commas().into_iter().filter_map(number).collect()
}

fn column_type(name: &str, numbers: &[u64], is_unsigned: bool, tokens: &Tokens<'_>) -> Option<ColumnType> {
    // PostgreSQL counts bytes, ClickHouse and YDB bits.
    match name {
        "int8" => return Some(ColumnType::Int64),
        "int4" => return Some(ColumnType::Int32),
        "int2" => return Some(ColumnType::Int16),
        _ => {}
    }
    let signed = |unsigned: ColumnType, signed: ColumnType| Some(if is_unsigned { unsigned } else { signed });
    match name.to_ascii_lowercase().as_str() {
        "bool" | "boolean" => Some(ColumnType::Bool),
        "tinyint" if numbers == [1] => None,
        "tinyint" | "int8" => signed(ColumnType::Uint8, ColumnType::Int8),
        "smallint" | "smallserial" | "int16" => signed(ColumnType::Uint16, ColumnType::Int16),
        "int" | "integer" | "mediumint" | "serial" | "int32" => signed(ColumnType::Uint32, ColumnType::Int32),
        "bigint" | "bigserial" | "int64" | "counter" => signed(ColumnType::Uint64, ColumnType::Int64),
        "uint8" => Some(ColumnType::Uint8),
        "uint16" => Some(ColumnType::Uint16),
        "uint32" => Some(ColumnType::Uint32),
        "uint64" => Some(ColumnType::Uint64),
        "float32" => Some(ColumnType::Float),
        "float" | "double" | "float64" | "float8" | "float4" | "real" => Some(ColumnType::Double),
        "numeric" | "decimal" | "decimalv3" => match numbers {
            [precision] => decimal(*precision, 0),
            [precision, scale, ..] => decimal(*precision, *scale),
            [] => None,
        },
        "uuid" | "timeuuid" => Some(ColumnType::Uuid),
        "json" | "jsonb" => Some(ColumnType::Json),
        "text" | "varchar" | "char" | "character" | "string" | "utf8" | "fixedstring" | "citext" | "name"
        | "enum8" | "enum16" | "enum" | "inet" | "cidr" | "macaddr" | "ipv4" | "ipv6" | "ascii"
        | "tinytext" | "mediumtext" | "longtext" | "largeint" | "array" | "list" | "map" | "tuple"
        | "bpchar" => Some(ColumnType::Utf8),
        // Dates and times may be outside the years of a type.
        "date" | "date32" | "datev2" | "datetime" | "datetime32" | "datetime64" | "datetimev2" | "time"
        | "timetz" | "timestamp" | "timestamptz" | "timestamp64" | "timestamp_ntz" | "interval"
        | "interval64" | "year" | "money" | "bytes" | "bytea" | "blob" | "binary" | "varbinary"
        | "varint" | "int128" | "int256" | "uint128" | "uint256" | "decimal32" | "decimal64"
        | "decimal128" | "decimal256" | "number" | "bignumeric" | "largenumeric" => None,
        // Those that users define, and bits: their values may look like numbers and are not.
        _ => Some(ColumnType::Utf8),
    }
    // int[] of PostgreSQL is a list.
    .filter(|_| tokens.peek() != Some(&Token::LBracket))
}

fn decimal(precision: u64, scale: u64) -> Option<ColumnType> {
    format!("Decimal({precision},{scale})").parse().ok()
}
