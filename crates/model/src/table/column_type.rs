//! Column types of YDB that have an Arrow equivalent.

use std::fmt;
use std::str::FromStr;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, TimeUnit};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bounded::quote;

/// A column type, by its YQL name.
///
/// Times are UTC. `Datetime` counts seconds and `Timestamp` microseconds; both are held as Arrow
/// timestamps without a zone. Parquet has no type for seconds, so `Datetime` is stored in whole
/// milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[allow(missing_docs, reason = "the variants are the YQL names")]
pub enum ColumnType {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float,
    Double,
    Decimal {
        precision: u8,
        scale: i8,
    },
    Utf8,
    String,
    Json,
    JsonDocument,
    Yson,
    Uuid,
    Date,
    Datetime,
    Timestamp,
    Interval,
    Date32,
    Datetime64,
    Timestamp64,
    Interval64,
    /// Of MongoDB, not of YDB, which keeps its text of 24 hexadecimal digits.
    ObjectId,
}

/// Error for a type name or an Arrow type that is not a supported column type.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ColumnTypeError {
    /// The name is unknown.
    #[error(
        "unknown column type '{found}'; known types: Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, \
         Uint64, Float, Double, Decimal(p,s), Utf8, String, Json, JsonDocument, Yson, Uuid, Date, Datetime, \
         Timestamp, Interval, Date32, Datetime64, Timestamp64, Interval64, ObjectId{}",
        sql_hint(found), found = quote(found)
)]
    Unknown {
        /// The text that was given.
        found: String,
    },
    /// YDB knows the type, but Arrow has no equivalent.
    #[error("column type '{found}' has no equivalent in Arrow and cannot be stored; use Utf8 or \
        Decimal(p,s)", found = quote(found))]
    NoArrowTwin {
        /// The text that was given.
        found: String,
    },
    /// A decimal outside YDB's limits.
    #[error("Decimal({precision},{scale}): precision is 1 to {max} and scale 0 to precision", max = ColumnType::MAX_DECIMAL_PRECISION)]
    Decimal {
        /// Total number of digits.
        precision: u64,
        /// Number of digits after the point.
        scale: u64,
    },
    /// An Arrow type without a YDB column type.
    #[error("Arrow type {found} has no YDB column type; leave the column out or convert it to text")]
    NoYdbType {
        /// The Arrow type.
        found: DataType,
    },
}

/// Values that a time type can hold, in units of its Arrow type: `[min, max]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRange {
    /// Smallest value.
    pub min: i64,
    /// Largest value.
    pub max: i64,
}

/// 2106-01-01T00:00:00Z in seconds: the end of YDB's unsigned time types (`MAX_TIMESTAMP` in
/// `yql/essentials/minikql/mkql_type_ops.h`).
const END_OF_UNSIGNED_TIME_SECONDS: i64 = 4_291_747_200;
const SECONDS_PER_DAY: i64 = 86_400;
/// -144169-01-01 and 148107-12-31 in days and seconds: the ends of YDB's 64-bit time types.
const MIN_DATE32_DAYS: i64 = -53_375_809;
const MAX_DATE32_DAYS: i64 = 53_375_807;
const MIN_DATETIME64_SECONDS: i64 = MIN_DATE32_DAYS * SECONDS_PER_DAY;
const MAX_DATETIME64_SECONDS: i64 = (MAX_DATE32_DAYS + 1) * SECONDS_PER_DAY - 1;

impl ColumnType {
    /// Every type of YDB once; Decimal with its default precision and scale.
    pub const ALL: [Self; 26] = [
        Self::Bool,
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::Uint8,
        Self::Uint16,
        Self::Uint32,
        Self::Uint64,
        Self::Float,
        Self::Double,
        Self::Decimal { precision: 22, scale: 9 },
        Self::Utf8,
        Self::String,
        Self::Json,
        Self::JsonDocument,
        Self::Yson,
        Self::Uuid,
        Self::Date,
        Self::Datetime,
        Self::Timestamp,
        Self::Interval,
        Self::Date32,
        Self::Datetime64,
        Self::Timestamp64,
        Self::Interval64,
    ];

    /// The largest decimal precision of YDB.
    pub const MAX_DECIMAL_PRECISION: u8 = 35;

    /// Returns the Arrow type of values in memory and in files.
    #[must_use]
    pub fn arrow_type(self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::Uint8 => DataType::UInt8,
            Self::Uint16 => DataType::UInt16,
            Self::Uint32 => DataType::UInt32,
            Self::Uint64 => DataType::UInt64,
            Self::Float => DataType::Float32,
            Self::Double => DataType::Float64,
            Self::Decimal { precision, scale } => DataType::Decimal128(precision, scale),
            Self::Utf8 | Self::Json | Self::JsonDocument | Self::ObjectId => DataType::Utf8,
            Self::String | Self::Yson => DataType::Binary,
            Self::Uuid => DataType::FixedSizeBinary(16),
            Self::Date | Self::Date32 => DataType::Date32,
            Self::Datetime | Self::Datetime64 => DataType::Timestamp(TimeUnit::Millisecond, None),
            Self::Timestamp | Self::Timestamp64 => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::Interval | Self::Interval64 => DataType::Duration(TimeUnit::Microsecond),
        }
    }

    /// Returns the YDB type of an export's column if no other is declared: every timestamp becomes
    /// a `Timestamp`, every text `Utf8`.
    ///
    /// # Errors
    /// [`ColumnTypeError::NoYdbType`] for nested types, times of day and the like.
    pub fn from_arrow(data_type: &DataType) -> Result<Self, ColumnTypeError> {
        Ok(match data_type {
            DataType::Boolean => Self::Bool,
            DataType::Int8 => Self::Int8,
            DataType::Int16 => Self::Int16,
            DataType::Int32 => Self::Int32,
            DataType::Int64 => Self::Int64,
            DataType::UInt8 => Self::Uint8,
            DataType::UInt16 => Self::Uint16,
            DataType::UInt32 => Self::Uint32,
            DataType::UInt64 => Self::Uint64,
            DataType::Float16 | DataType::Float32 => Self::Float,
            DataType::Float64 => Self::Double,
            // Writers state the most digits that their type may have; the values rarely have as
            // many.
            DataType::Decimal32(p, s)
            | DataType::Decimal64(p, s)
            | DataType::Decimal128(p, s)
            | DataType::Decimal256(p, s)
                if (0..=Self::MAX_DECIMAL_PRECISION.cast_signed()).contains(s) =>
            {
                Self::Decimal { precision: (*p).min(Self::MAX_DECIMAL_PRECISION), scale: *s }
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => Self::Utf8,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Self::String,
            DataType::FixedSizeBinary(16) => Self::Uuid,
            DataType::FixedSizeBinary(_) => Self::String,
            DataType::Date32 | DataType::Date64 => Self::Date,
            DataType::Timestamp(_, _) => Self::Timestamp,
            DataType::Duration(_) => Self::Interval,
            DataType::Dictionary(_, value) => Self::from_arrow(value)?,
            other => return Err(ColumnTypeError::NoYdbType { found: other.clone() }),
        })
    }

    /// Whether keys of tables may have the type, or the type of its text. YDB takes more:
    /// [`crate::table::YdbVersion`] has its rules.
    #[must_use]
    pub fn is_key_type(self) -> bool {
        matches!(
            self,
            Self::Int32
                | Self::Int64
                | Self::Uint8
                | Self::Uint16
                | Self::Uint32
                | Self::Uint64
                | Self::Utf8
                | Self::String
                | Self::Date
                | Self::Datetime
                | Self::Datetime64
                | Self::Timestamp
                | Self::Timestamp64
                | Self::ObjectId
        )
    }

    /// Returns the type of the values in a table.
    #[must_use]
    pub fn in_table(self) -> Self {
        if self == Self::ObjectId { Self::Utf8 } else { self }
    }

    /// Whether the type is a point in time with a time of day.
    #[must_use]
    pub fn is_timestamp(self) -> bool {
        matches!(self, Self::Datetime | Self::Datetime64 | Self::Timestamp | Self::Timestamp64)
    }

    /// Whether the type is a date or a point in time.
    #[must_use]
    pub fn is_time(self) -> bool {
        self.is_timestamp() || matches!(self, Self::Date | Self::Date32)
    }

    /// Returns the values that a time type can hold; `None` if it can hold all values of its Arrow
    /// type, and for other types.
    #[must_use]
    pub fn value_range(self) -> Option<ValueRange> {
        let (min, max) = match self {
            Self::Date => (0, END_OF_UNSIGNED_TIME_SECONDS / SECONDS_PER_DAY - 1),
            Self::Datetime => (0, (END_OF_UNSIGNED_TIME_SECONDS - 1) * 1000),
            Self::Timestamp => (0, END_OF_UNSIGNED_TIME_SECONDS * 1_000_000 - 1),
            Self::Interval => {
                (-END_OF_UNSIGNED_TIME_SECONDS * 1_000_000 + 1, END_OF_UNSIGNED_TIME_SECONDS * 1_000_000 - 1)
            }
            Self::Date32 => (MIN_DATE32_DAYS, MAX_DATE32_DAYS),
            Self::Datetime64 => (MIN_DATETIME64_SECONDS * 1000, MAX_DATETIME64_SECONDS * 1000),
            Self::Timestamp64 => {
                (MIN_DATETIME64_SECONDS * 1_000_000, MAX_DATETIME64_SECONDS * 1_000_000 + 999_999)
            }
            _ => return None,
        };
        Some(ValueRange { min, max })
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Decimal { precision, scale } => write!(f, "Decimal({precision},{scale})"),
            // The variant names are the YQL names.
            other => write!(f, "{other:?}"),
        }
    }
}

/// Suggests the column type for the name of an SQL type.
fn sql_hint(type_name: &str) -> String {
    let name = type_name.trim().to_ascii_lowercase();
    let here = match name.split('(').next().unwrap_or_default().trim() {
        "tinyint" => "Int8",
        "smallint" | "int2" => "Int16",
        "int" | "integer" | "int4" => "Int32",
        "bigint" | "long" => "Int64",
        "real" | "float4" | "float32" => "Float",
        "double precision" | "float8" | "float64" => "Double",
        "boolean" => "Bool",
        "varchar" | "char" | "nvarchar" | "str" => "Utf8",
        "bytea" | "blob" | "binary" | "varbinary" => "String",
        "timestamptz" | "instant" => "Timestamp",
        "numeric" => "Decimal(p,s)",
        _ => return String::new(),
    };
    format!("; {name} is {here} here")
}

impl FromStr for ColumnType {
    type Err = ColumnTypeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.trim().to_ascii_lowercase();
        if let Some(arguments) = name.strip_prefix("decimal") {
            return parse_decimal(arguments).ok_or(ColumnTypeError::Unknown { found: text.to_owned() })?;
        }
        Ok(match name.as_str() {
            "bool" => Self::Bool,
            "int8" => Self::Int8,
            "int16" => Self::Int16,
            "int32" => Self::Int32,
            "int64" => Self::Int64,
            "uint8" => Self::Uint8,
            "uint16" => Self::Uint16,
            "uint32" => Self::Uint32,
            "uint64" => Self::Uint64,
            "float" => Self::Float,
            "double" => Self::Double,
            "utf8" | "text" => Self::Utf8,
            "string" | "bytes" => Self::String,
            "json" => Self::Json,
            "jsondocument" => Self::JsonDocument,
            "yson" => Self::Yson,
            "uuid" => Self::Uuid,
            "date" => Self::Date,
            "datetime" => Self::Datetime,
            "timestamp" => Self::Timestamp,
            "interval" => Self::Interval,
            "date32" => Self::Date32,
            "datetime64" => Self::Datetime64,
            "timestamp64" => Self::Timestamp64,
            "interval64" => Self::Interval64,
            "objectid" => Self::ObjectId,
            "dynumber" | "tzdate" | "tzdatetime" | "tztimestamp" => {
                return Err(ColumnTypeError::NoArrowTwin { found: text.to_owned() });
            }
            _ => return Err(ColumnTypeError::Unknown { found: text.to_owned() }),
        })
    }
}

/// Parses `(p,s)`; `None` for any other form. A bare `decimal` is YDB's Decimal(22,9).
fn parse_decimal(arguments: &str) -> Option<Result<ColumnType, ColumnTypeError>> {
    let arguments = if arguments.trim().is_empty() { "(22,9)" } else { arguments.trim() };
    let (precision, scale) = arguments.strip_prefix('(')?.strip_suffix(')')?.split_once(',')?;
    let precision: u64 = precision.trim().parse().ok()?;
    let scale: u64 = scale.trim().parse().ok()?;
    const { assert!(ColumnType::MAX_DECIMAL_PRECISION <= DECIMAL128_MAX_PRECISION) };
    let valid = (1..=u64::from(ColumnType::MAX_DECIMAL_PRECISION)).contains(&precision) && scale <= precision;
    Some(match (valid, u8::try_from(precision), i8::try_from(scale)) {
        (true, Ok(precision), Ok(scale)) => Ok(ColumnType::Decimal { precision, scale }),
        _ => Err(ColumnTypeError::Decimal { precision, scale }),
    })
}

impl TryFrom<String> for ColumnType {
    type Error = ColumnTypeError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ColumnType> for String {
    fn from(column_type: ColumnType) -> Self {
        column_type.to_string()
    }
}

#[cfg(test)]
#[path = "column_type_tests.rs"]
mod tests;
