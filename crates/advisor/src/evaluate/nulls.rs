//! Keys in which some rows have NULL.

/// Share of the rows with NULL up to which a key is a choice. Key columns are NOT NULL, but so few
/// rows can be given a value before they are loaded.
const MOST_TO_FILL_IN: f64 = 0.05;

/// Whether so few rows have NULL in a key that a table can have it once they are given a value.
pub(crate) fn can_be_filled_in(null_rows: u64, rows: u64) -> bool {
    null_rows as f64 <= MOST_TO_FILL_IN * rows as f64
}
