//! The pass over an export, which counts all candidates.
//!
//! ```text
//! reader -> blocks of batches
//!   -> preparation: KeyedBatch (identities, hash input, bytes, windows), each batch alone
//!   -> partition_key: PartitionKeyCounter (cells: rows by cell, window and batch; distinct keys)
//!   -> primary_key: PrimaryKeyCounter (repeated keys, order of arrival, layout)
//!   -> figures
//! ```
//! `loads` counts bytes by window, too. `shards` distributes the counting over machines, and
//! `state` has the counts as bytes; `examples` reads a second time for rows that share a key.

pub(super) mod batch;
pub(super) mod budgets;
pub(super) mod cells;
pub(super) mod context;
pub(super) mod counters;
pub(super) mod evaluator;
pub(super) mod examples;
pub(super) mod layout;
pub(super) mod loads;
pub(super) mod partition_key;
pub(super) mod plans;
pub(super) mod preparation;
pub(super) mod primary_key;
pub(super) mod reader;
pub(super) mod shards;
pub(super) mod share;
pub(super) mod state;
pub(super) mod time_column;
