//! Formats times, rates and values for people.

use chrono::DateTime;
use serde_json::Value;

use crate::grid::count;
use evenkeel_model::units::ByteRate;

/// Formats a point in time, to the second.
#[must_use]
pub fn instant(micros: i64) -> String {
    DateTime::from_timestamp_micros(micros)
        .map_or_else(|| micros.to_string(), |at| at.format("%Y-%m-%d %H:%M:%S").to_string())
}

/// Formats a rate of rows, with decimals if it is low.
pub(crate) fn rows_per_second(rate: f64) -> String {
    if rate < 10.0 { format!("{rate:.2} rows/s") } else { format!("{} rows/s", count(rate.round() as u64)) }
}

/// Formats the values of a key as one text.
#[must_use]
pub fn key_text(values: &[Value]) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "NULL".to_owned(),
        other => other.to_string(),
    };
    values.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Formats a rate in bytes per second.
pub fn rate(bytes_per_second: f64) -> String {
    ByteRate(bytes_per_second).to_string()
}

/// Draws a bar of one character for each count, in eighths of the largest.
#[must_use]
pub fn spark(counts: &[u64]) -> String {
    let most = counts.iter().copied().max().unwrap_or(0) as f64;
    counts.iter().map(|count| spark_of(*count as f64, most)).collect()
}

/// Returns a bar of one character for a value of `full`; a dot for nothing.
pub fn spark_of(value: f64, full: f64) -> char {
    const EIGHTHS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if value <= 0.0 || full <= 0.0 {
        return '·';
    }
    let eighth = (value / full * 8.0).ceil().clamp(1.0, 8.0) as usize;
    EIGHTHS.get(eighth - 1).copied().unwrap_or('█')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_for_each_count_and_a_dot_for_none() {
        assert_eq!(spark(&[0, 1, 4, 8]), "·▁▄█");
        assert_eq!(spark(&[]), "");
        assert_eq!(spark(&[0, 0]), "··");
    }

    #[test]
    fn instants_and_rates_read_well() {
        assert_eq!(instant(0), "1970-01-01 00:00:00");
        assert_eq!(rate(12_345_678.0), "12.3 MB/s");
        assert_eq!([rate(900.0), rate(1900.0)], ["900 B/s", "1.9 kB/s"]);
    }
}
