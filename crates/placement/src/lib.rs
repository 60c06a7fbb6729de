//! Placement of rows: the partition to which each of the supported systems assigns a key.

pub mod placement;
pub mod transform;
