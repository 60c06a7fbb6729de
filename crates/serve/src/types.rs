//! Types of Arrow as types of PostgreSQL.
//!
//! | Arrow | PostgreSQL |
//! |---|---|
//! | Boolean | bool |
//! | Int8, Int16, UInt8 | int2 |
//! | Int32, UInt16 | int4 |
//! | Int64, UInt32 | int8 |
//! | UInt64 | numeric(20, 0), as int8 ends at 2^63 - 1 |
//! | Float16, Float32 | float4 |
//! | Float64 | float8 |
//! | Decimal | numeric of the same precision and scale |
//! | text | text |
//! | binary | bytea; of 16 bytes, uuid |
//! | Date | date |
//! | Time | time |
//! | Timestamp | timestamp, or timestamptz if it has a time zone |
//! | Duration, Interval | interval |
//! | lists of these | arrays of these |
//! | structs, maps, lists of lists | text |

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use pgwire::api::Type;
use pgwire::messages::data::FieldDescription;

/// Metadata key that marks a number as the identifier of an object.
const OID_KEY: &str = "pg.oid_alias";
/// Metadata key that marks a text as one character.
const CHAR_KEY: &str = "pg.char";

/// Metadata of lists that PostgreSQL writes as numbers between blanks.
const VECTOR_KEY: &str = "pg.int2vector";

/// A type of PostgreSQL with its modifier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PgType {
    pub(crate) base: Type,
    /// Precision and scale of a numeric; -1 if unspecified.
    pub(crate) modifier: i32,
}

/// Returns the type that a column has for clients.
pub(crate) fn pg_type(field: &Field) -> PgType {
    let has = |key: &str| field.metadata().contains_key(key);
    let base = match field.data_type() {
        DataType::Int32 if has(OID_KEY) => Type::OID,
        DataType::List(_) if has(VECTOR_KEY) => Type::INT2_VECTOR,
        DataType::Utf8 if has(CHAR_KEY) => Type::CHAR,
        other => return from_arrow(other),
    };
    PgType { base, modifier: -1 }
}

/// Field of a catalog table that holds identifiers.
pub(crate) fn oid_field(name: &str, nullable: bool) -> Field {
    let marked = [(OID_KEY.to_owned(), "oid".to_owned())];
    Field::new(name, DataType::Int32, nullable).with_metadata(marked.into())
}

/// Field of a list of numbers of objects.
pub(crate) fn oid_element() -> Field {
    let marked = [(OID_KEY.to_owned(), "oid".to_owned())];
    Field::new_list_field(DataType::Int64, true).with_metadata(marked.into_iter().collect())
}

/// Field of a catalog table that holds the numbers of columns; `is_vector` if PostgreSQL has it as
/// a vector, not as an array.
pub(crate) fn numbers_field(name: &str, is_vector: bool) -> Field {
    let field = Field::new_list(name, Field::new_list_field(DataType::Int16, true), true);
    let marked = is_vector.then(|| (VECTOR_KEY.to_owned(), String::new()));
    field.with_metadata(marked.into_iter().collect())
}

/// Returns the type for values of an Arrow type.
pub(crate) fn from_arrow(data_type: &DataType) -> PgType {
    let plain = |base| PgType { base, modifier: -1 };
    match data_type {
        DataType::Boolean => plain(Type::BOOL),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => plain(Type::INT2),
        DataType::Int32 | DataType::UInt16 => plain(Type::INT4),
        DataType::Int64 | DataType::UInt32 => plain(Type::INT8),
        DataType::UInt64 => numeric(20, 0),
        DataType::Float16 | DataType::Float32 => plain(Type::FLOAT4),
        DataType::Float64 => plain(Type::FLOAT8),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => numeric(*precision, *scale),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => plain(Type::BYTEA),
        DataType::FixedSizeBinary(16) => plain(Type::UUID),
        DataType::FixedSizeBinary(_) => plain(Type::BYTEA),
        DataType::Date32 | DataType::Date64 => plain(Type::DATE),
        DataType::Time32(_) | DataType::Time64(_) => plain(Type::TIME),
        DataType::Timestamp(_, None) => plain(Type::TIMESTAMP),
        DataType::Timestamp(_, Some(_)) => plain(Type::TIMESTAMPTZ),
        DataType::Duration(_) | DataType::Interval(_) => plain(Type::INTERVAL),
        DataType::Dictionary(_, values) => from_arrow(values),
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            let is_oid = field.metadata().contains_key(OID_KEY);
            let element = if is_oid { plain(Type::OID) } else { from_arrow(field.data_type()) };
            // Lists of lists may be ragged, which arrays are not.
            match array_of(&element.base) {
                Some(base) => PgType { base, modifier: element.modifier },
                None => plain(Type::TEXT),
            }
        }
        _ => plain(Type::TEXT),
    }
}

/// Modifier of `numeric(precision, scale)`: both in one number, plus the four bytes of a header
/// that PostgreSQL counts.
fn numeric(precision: u8, scale: i8) -> PgType {
    let modifier = match u8::try_from(scale) {
        Ok(scale) => ((i32::from(precision) << 16) | i32::from(scale)) + 4,
        Err(_) => -1,
    };
    PgType { base: Type::NUMERIC, modifier }
}

/// Types with the types of their arrays.
const ARRAYS: [(Type, Type); 17] = [
    (Type::INT2, Type::INT2_VECTOR),
    (Type::BOOL, Type::BOOL_ARRAY),
    (Type::OID, Type::OID_ARRAY),
    (Type::INT2, Type::INT2_ARRAY),
    (Type::INT4, Type::INT4_ARRAY),
    (Type::INT8, Type::INT8_ARRAY),
    (Type::NUMERIC, Type::NUMERIC_ARRAY),
    (Type::FLOAT4, Type::FLOAT4_ARRAY),
    (Type::FLOAT8, Type::FLOAT8_ARRAY),
    (Type::TEXT, Type::TEXT_ARRAY),
    (Type::BYTEA, Type::BYTEA_ARRAY),
    (Type::UUID, Type::UUID_ARRAY),
    (Type::DATE, Type::DATE_ARRAY),
    (Type::TIME, Type::TIME_ARRAY),
    (Type::TIMESTAMP, Type::TIMESTAMP_ARRAY),
    (Type::TIMESTAMPTZ, Type::TIMESTAMPTZ_ARRAY),
    (Type::INTERVAL, Type::INTERVAL_ARRAY),
];

fn array_of(element: &Type) -> Option<Type> {
    ARRAYS.iter().rev().find(|(candidate, _)| candidate == element).map(|(_, array)| array.clone())
}

/// Returns the type of the elements of an array; `None` for other types.
pub(crate) fn element_of(array: &Type) -> Option<Type> {
    ARRAYS.iter().find(|(_, candidate)| candidate == array).map(|(element, _)| element.clone())
}

/// Size of the values of a type in bytes; -1 if it varies.
pub(crate) fn size_of(base: &Type) -> i16 {
    match *base {
        Type::BOOL | Type::CHAR => 1,
        Type::INT2 => 2,
        Type::INT4 | Type::FLOAT4 | Type::DATE | Type::OID => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ => 8,
        Type::UUID | Type::INTERVAL => 16,
        _ => -1,
    }
}

/// Describes a column of a result. `format` is 0 for text and 1 for binary.
pub(crate) fn describe(field: &Field, format: i16) -> FieldDescription {
    let PgType { base, modifier } = pg_type(field);
    FieldDescription::new(field.name().clone(), 0, 0, base.oid(), size_of(&base), modifier, format)
}

/// Returns the Arrow type for values of a parameter type, if there is one.
pub(crate) fn to_arrow(base: &Type) -> Option<DataType> {
    use arrow::datatypes::{IntervalUnit, TimeUnit};
    Some(match *base {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 | Type::OID => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 => DataType::Float64,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::CHAR | Type::JSON => DataType::Utf8,
        Type::BYTEA => DataType::Binary,
        Type::UUID => DataType::FixedSizeBinary(16),
        Type::DATE => DataType::Date32,
        Type::TIME => DataType::Time64(TimeUnit::Microsecond),
        Type::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("+00:00"))),
        Type::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => {
            let element = to_arrow(&element_of(base)?)?;
            DataType::List(Arc::new(Field::new_list_field(element, true)))
        }
    })
}
