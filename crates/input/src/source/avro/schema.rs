//! The schema of an Avro file: the fields of its rows, and the properties that Spanner adds.

use serde_json::{Map, Value};

/// Precision above which a decimal is the numeric type of Spanner's PostgreSQL dialect, whose bytes
/// are not encoded as a decimal.
const MAX_PRECISION: u64 = 76;

/// Schema of the rows of a file.
#[derive(Debug, Clone)]
pub(in crate::source) struct AvroSchema {
    /// Text for the decoder of rows.
    pub(super) text: String,
    pub(in crate::source) fields: Vec<AvroField>,
    /// Properties of the record other than its name and fields.
    properties: Map<String, Value>,
}

/// A field of the rows.
#[derive(Debug, Clone)]
pub(in crate::source) struct AvroField {
    pub(in crate::source) name: String,
    /// Whether its values are numbers of any size, as Spanner writes them.
    pub(super) is_numeric: bool,
    /// Whether it is nullable.
    pub(in crate::source) nullable: bool,
    properties: Map<String, Value>,
}

impl AvroField {
    /// Returns a text property of the field.
    pub(in crate::source) fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
}

impl AvroSchema {
    /// Reads a schema.
    ///
    /// # Errors
    /// The problem, if the rows of the schema are not records.
    pub(in crate::source) fn parse(text: &str) -> Result<Self, String> {
        let schema: Value = serde_json::from_str(text).map_err(|error| format!("its schema: {error}"))?;
        let Value::Object(mut record) = schema else { return Err("its rows are not records".to_owned()) };
        if record.get("type").and_then(Value::as_str) != Some("record") {
            return Err("its rows are not records".to_owned());
        }
        let is_of_spanner = record.get("googleStorage").and_then(Value::as_str) == Some("CloudSpanner");
        let mut fields = Vec::new();
        for field in record.get_mut("fields").and_then(Value::as_array_mut).into_iter().flatten() {
            let Value::Object(properties) = field else { continue };
            let Some(name) = properties.get("name").and_then(Value::as_str).map(str::to_owned) else {
                return Err("a field of its schema has no name".to_owned());
            };
            let of_type = properties.entry("type").or_insert(Value::Null);
            // Elsewhere, such decimals remain bytes.
            let is_numeric = take_numeric(of_type) && is_of_spanner;
            let nullable = is_nullable(of_type);
            fields.push(AvroField { name, is_numeric, nullable, properties: properties.clone() });
        }
        let text = Value::Object(record.clone()).to_string();
        Ok(Self { text, fields, properties: record })
    }

    /// Whether Spanner exported the file.
    pub(in crate::source) fn is_of_spanner(&self) -> bool {
        self.property("googleStorage") == Some("CloudSpanner")
    }

    /// Whether Spanner exported the file from a database in its PostgreSQL dialect, which alone
    /// quotes the columns of keys like this.
    pub(in crate::source) fn is_of_postgres(&self) -> bool {
        self.property("spannerPrimaryKey_0").is_some_and(|key| key.starts_with('"'))
    }

    /// Returns a text property of the record.
    pub(in crate::source) fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Returns numbered text properties in order: `name_0`, `name_1`, ...
    pub(in crate::source) fn numbered(&self, name: &str) -> Vec<&str> {
        (0..).map_while(|number: u32| self.property(&format!("{name}_{number}"))).collect()
    }
}

/// Whether values of a type may be null.
fn is_nullable(of_type: &Value) -> bool {
    match of_type {
        Value::Array(options) => options.iter().any(is_nullable),
        other => other.as_str() == Some("null"),
    }
}

/// Turns decimals of more digits than the decoder reads into bytes, at any depth; returns whether
/// the type, or one option of it, was such a decimal.
fn take_numeric(of_type: &mut Value) -> bool {
    match of_type {
        Value::Array(options) => {
            // Every option, also after the first such decimal.
            options.iter_mut().filter_map(|option| take_numeric(option).then_some(())).count() > 0
        }
        Value::Object(properties) => {
            let precision = properties.get("precision").and_then(Value::as_u64).unwrap_or_default();
            let is_decimal = properties.get("logicalType").and_then(Value::as_str) == Some("decimal");
            if is_decimal && precision > MAX_PRECISION {
                *of_type = Value::String("bytes".to_owned());
                return true;
            }
            for name in ["items", "values"] {
                if let Some(inner) = properties.get_mut(name) {
                    take_numeric(inner);
                }
            }
            for field in properties.get_mut("fields").and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(inner) = field.get_mut("type") {
                    take_numeric(inner);
                }
            }
            false
        }
        _ => false,
    }
}

/// Returns the text of a number that Spanner's PostgreSQL dialect wrote: a byte 0, the scale in
/// four bytes, and the digits as one number; a byte 1 is NaN. `None` for other bytes.
pub(super) fn numeric_text(bytes: &[u8]) -> Option<String> {
    let (kind, rest) = bytes.split_first()?;
    match kind {
        1 => Some("NaN".to_owned()),
        0 => {
            let (scale, digits) = rest.split_first_chunk::<4>()?;
            let scale = usize::try_from(i32::from_be_bytes(*scale)).ok().filter(|scale| *scale <= 16_383)?;
            // 131,072 digits before the point and 16,383 after it need less than 61,300 bytes.
            (!digits.is_empty() && digits.len() < 61_300).then(|| decimal_text(digits, scale))
        }
        _ => None,
    }
}

/// Returns the text of a number in two's complement, divided by 10 to the power of `scale`.
fn decimal_text(bytes: &[u8], scale: usize) -> String {
    let is_negative = bytes.first().is_some_and(|byte| *byte >= 0x80);
    let mut magnitude: Vec<u8> = bytes.to_vec();
    if is_negative {
        let mut carry = true;
        for byte in magnitude.iter_mut().rev() {
            let (sum, over) = (!*byte).overflowing_add(u8::from(carry));
            (*byte, carry) = (sum, over);
        }
    }
    // Nine decimal digits at a time, the lowest first.
    let mut groups: Vec<u32> = Vec::new();
    for byte in magnitude {
        let mut carry = u64::from(byte);
        for group in &mut groups {
            let value = u64::from(*group) * 256 + carry;
            *group = (value % 1_000_000_000) as u32;
            carry = value / 1_000_000_000;
        }
        if carry > 0 {
            groups.push(carry as u32);
        }
    }
    let digits: String = groups.iter().rev().map(|group| format!("{group:09}")).collect();
    let digits = format!("{:0>width$}", digits.trim_start_matches('0'), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if is_negative { "-" } else { "" };
    let fraction = fraction.trim_end_matches('0');
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_are_their_text() {
        let number = |scale: i32, digits: &[u8]| {
            numeric_text(&[&[0], scale.to_be_bytes().as_slice(), digits].concat())
        };
        assert_eq!(number(2, &[0x30, 0x39]).unwrap(), "123.45");
        assert_eq!(number(0, &[0xff]).unwrap(), "-1");
        assert_eq!(number(3, &[0xff]).unwrap(), "-0.001");
        assert_eq!(number(0, &[0]).unwrap(), "0");
        assert_eq!(number(2, &[0, 100]).unwrap(), "1");
        assert_eq!(number(0, &[0x80]).unwrap(), "-128");
        let wide = number(0, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
        assert_eq!(wide, "340282366920938463463374607431768211456");
        assert_eq!(numeric_text(&[1]).unwrap(), "NaN");
        for bytes in [&[][..], &[0], &[0, 0, 0, 0, 0], &[2, 0], &[0, 0xff, 0xff, 0xff, 0xff, 1]] {
            assert_eq!(numeric_text(bytes), None, "{bytes:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn numbers_of_128_bits_agree_with_the_language(value: i128, scale in 0u32..30) {
            let text = decimal_text(&value.to_be_bytes(), scale as usize);
            let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
            let digits = format!("{whole}{fraction:0<width$}", width = scale as usize);
            proptest::prop_assert_eq!(digits.parse::<i128>().unwrap(), value);
        }
    }

    #[test]
    fn decimals_that_the_decoder_refuses_become_bytes() {
        let schema = AvroSchema::parse(
            r#"{"type":"record","name":"T","googleStorage":"CloudSpanner","a":"b","k_0":"x","k_1":"y","fields":[
            {"name":"n","type":["null",{"type":"bytes","logicalType":"decimal","precision":147455,"scale":16383}],"sqlType":"numeric"},
            {"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}}]}"#,
        )
        .unwrap();
        assert!(schema.fields[0].is_numeric && schema.fields[0].nullable);
        assert_eq!(schema.fields[0].property("sqlType"), Some("numeric"));
        assert!(!schema.fields[1].is_numeric && !schema.fields[1].nullable);
        assert!(
            schema.text.contains("\"precision\":38") && !schema.text.contains("147455"),
            "{}",
            schema.text
        );
        assert_eq!((schema.property("a"), schema.numbered("k")), (Some("b"), vec!["x", "y"]));
        for text in ["", "7", "\"long\"", r#"{"type":"array","items":"long"}"#, "["] {
            assert!(AvroSchema::parse(text).is_err(), "{text}");
        }
    }
}
