//! Candidates that are found automatically, and statements that favour some of them.

pub(super) mod considered;
pub(super) mod few_values;
mod key_order;
mod log_coordinates;
mod natural_keys;
mod partition_keys;
mod primary_keys;
mod promotion;
pub(super) mod sampled_columns;
pub(super) mod search;
#[cfg(test)]
mod testing;
mod unique_keys;
pub(super) mod workload;
