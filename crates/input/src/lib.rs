//! Files of other systems: exports read as batches of columns, and results written.

pub mod sink;
pub mod source;
