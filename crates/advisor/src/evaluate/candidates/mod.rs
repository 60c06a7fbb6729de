//! Candidates that are found automatically, and statements that favour some of them.

pub(super) mod search;
pub(super) mod unique_keys;
pub(super) mod workload;
