//! Placement of rows: the partition that each of the supported systems gives to a key.

pub mod placement;
pub mod transform;
