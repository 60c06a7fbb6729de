//! Keys in which some rows have NULL.

/// Largest share of NULL rows with which a key is still proposed. Key columns are NOT NULL, but
/// this few rows can be filled in before loading.
const MAX_TO_FILL_IN: f64 = 0.05;

/// Whether few enough rows have NULL in a key that they can be filled in before loading.
pub(crate) fn can_be_filled_in(null_rows: u64, rows: u64) -> bool {
    null_rows as f64 <= MAX_TO_FILL_IN * rows as f64
}
