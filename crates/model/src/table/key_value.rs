//! Values of key columns as they appear in the log and in reports.

use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::table::ColumnType;

/// One value of a key column, interpreted by the type of the column: times are numbers in the unit
/// of the column's Arrow type. Key types are exact, so the derived order is the order of the
/// column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyValue {
    /// Signed integers and times.
    Int(i64),
    /// Unsigned integers.
    Uint(u64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl KeyValue {
    /// Formats the value for people: times as RFC 3339 without a zone, bytes as hexadecimal.
    #[must_use]
    pub fn display(&self, column_type: ColumnType) -> String {
        match (self, column_type) {
            (Self::Int(days), ColumnType::Date | ColumnType::Date32) => days
                .checked_mul(86_400)
                .and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0))
                .map_or_else(|| days.to_string(), |time| time.format("%Y-%m-%d").to_string()),
            (Self::Int(millis), ColumnType::Datetime | ColumnType::Datetime64) => {
                chrono::DateTime::from_timestamp_millis(*millis)
                    .map_or_else(|| millis.to_string(), |time| time.format("%Y-%m-%dT%H:%M:%S").to_string())
            }
            (Self::Int(micros), ColumnType::Timestamp | ColumnType::Timestamp64) => {
                chrono::DateTime::from_timestamp_micros(*micros).map_or_else(
                    || micros.to_string(),
                    |time| time.format("%Y-%m-%dT%H:%M:%S%.f").to_string(),
                )
            }
            (other, _) => other.to_string(),
        }
    }
}

impl fmt::Display for KeyValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Uint(value) => value.fmt(f),
            Self::Text(value) => f.write_str(value),
            Self::Bytes(value) => value.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

/// The closed range `[min, max]` of whole primary keys in one portion: its first and last key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRange {
    /// Key of the first row.
    #[serde(deserialize_with = "short_list")]
    pub min: Vec<KeyValue>,
    /// Key of the last row.
    #[serde(deserialize_with = "short_list")]
    pub max: Vec<KeyValue>,
}

/// Reads a list of values. Most have one, for which no more memory is allocated than it needs: a
/// table has thousands of portions, and each has several lists.
fn short_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<KeyValue>, D::Error> {
    struct ShortList;

    impl<'de> Visitor<'de> for ShortList {
        type Value = Vec<KeyValue>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of values")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut values = Vec::from_iter(list.next_element()?);
            while let Some(value) = list.next_element()? {
                values.push(value);
            }
            Ok(values)
        }
    }

    deserializer.deserialize_seq(ShortList)
}

impl KeyRange {
    /// Whether the two closed ranges share a key.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }

    /// Formats the range as `(a, b) .. (c, d)`, each value by its column type.
    #[must_use]
    pub fn display(&self, types: &[ColumnType]) -> String {
        let key = |values: &[KeyValue]| {
            let parts: Vec<String> =
                values.iter().zip(types).map(|(value, column_type)| value.display(*column_type)).collect();
            format!("({})", parts.join(", "))
        };
        format!("{} .. {}", key(&self.min), key(&self.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(min: i64, max: i64) -> KeyRange {
        KeyRange { min: vec![KeyValue::Int(min)], max: vec![KeyValue::Int(max)] }
    }

    #[test]
    fn closed_ranges_overlap_when_they_touch() {
        assert!(range(1, 5).overlaps(&range(5, 9)));
        assert!(!range(1, 5).overlaps(&range(6, 9)));
        assert!(range(1, 9).overlaps(&range(3, 4)));
    }

    #[test]
    fn values_are_shown_by_their_type() {
        let micros = KeyValue::Int(1_357_034_400_000_000);
        assert_eq!(micros.display(ColumnType::Timestamp), "2013-01-01T10:00:00");
        assert_eq!(KeyValue::Int(1_000_001).display(ColumnType::Timestamp), "1970-01-01T00:00:01.000001");
        assert_eq!(KeyValue::Int(0).display(ColumnType::Date), "1970-01-01");
        assert_eq!(KeyValue::Bytes(vec![0, 255]).display(ColumnType::String), "00ff");
        assert_eq!(KeyValue::Int(i64::MAX).display(ColumnType::Timestamp64), i64::MAX.to_string());
    }

    #[test]
    fn values_survive_json() {
        for value in [
            KeyValue::Int(i64::MIN),
            KeyValue::Uint(u64::MAX),
            KeyValue::Text("é".into()),
            KeyValue::Bytes(vec![0]),
        ] {
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<KeyValue>(&json).unwrap(), value);
        }
    }
}
