//! Keys written as text: `42`, `abc`, `2024-01-31T10:00:00Z`.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, new_null_array};
use thiserror::Error;

use evenkeel_model::table::ColumnType;
use evenkeel_model::text_value::{TextFormat, parse_text_column};
use evenkeel_model::units::counted;

/// A key literal that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum KeyLiteralError {
    #[error(
        "the key has {} ({types}), but {} given",
        counted(*expected as u64, "column"),
        if *found == 1 { "one value was".to_owned() } else { format!("{found} values were") }
    )]
    Count { expected: usize, types: String, found: usize },
    #[error("value {position} of the key: {reason}")]
    Value { position: usize, reason: String },
}

/// Reads one key, a value per column, as arrays of one row. The text `NULL` means NULL.
///
/// # Errors
/// [`KeyLiteralError`] if the number of values or one value does not fit the types.
pub fn parse_key(types: &[ColumnType], values: &[String]) -> Result<Vec<ArrayRef>, KeyLiteralError> {
    if types.len() != values.len() {
        let names: Vec<String> = types.iter().map(ToString::to_string).collect();
        return Err(KeyLiteralError::Count {
            expected: types.len(),
            types: names.join(", "),
            found: values.len(),
        });
    }
    let mut columns = Vec::with_capacity(types.len());
    for (position, (column_type, value)) in types.iter().zip(values).enumerate() {
        if value == "NULL" {
            columns.push(new_null_array(&column_type.arrow_type(), 1));
            continue;
        }
        let text = Arc::new(BinaryArray::from_iter_values([value.as_bytes()]));
        let column = parse_text_column(&text, *column_type, &TextFormat::default());
        if let Some(fault) = column.faults.into_iter().next() {
            return Err(KeyLiteralError::Value { position: position + 1, reason: fault.fault.to_string() });
        }
        columns.push(column.values);
    }
    Ok(columns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::hash::hash_keys;

    fn hash(column_type: ColumnType, value: &str) -> u64 {
        let columns = parse_key(&[column_type], &[value.to_owned()]).unwrap();
        hash_keys(&[(column_type, Arc::clone(&columns[0]))]).unwrap()[0]
    }

    #[test]
    fn literals_hash_like_the_published_vectors() {
        assert_eq!(hash(ColumnType::Uint64, "42"), 0xb556_806f_b6d1_4353);
        assert_eq!(hash(ColumnType::Int64, "-1"), 9_642_548_396_912_002_761);
        assert_eq!(hash(ColumnType::Utf8, "abc"), 0x44bc_2cf5_ad77_0999);
        assert_eq!(hash(ColumnType::Utf8, "NULL"), 0xef46_db37_51d8_e999);
        let micros = 1_357_034_400_000_000i64;
        assert_eq!(
            hash(ColumnType::Timestamp, "2013-01-01T10:00:00Z"),
            crate::placement::hash_bytes(&micros.to_le_bytes())
        );
    }

    #[test]
    fn a_wrong_literal_says_which_value_and_why() {
        let error =
            parse_key(&[ColumnType::Uint8, ColumnType::Uint8], &["1".into(), "256".into()]).unwrap_err();
        assert!(error.to_string().starts_with("value 2 of the key: '256'"), "{error}");
        let error = parse_key(&[ColumnType::Uint8], &[]).unwrap_err();
        assert_eq!(error.to_string(), "the key has 1 column (Uint8), but 0 values were given");
    }
}
