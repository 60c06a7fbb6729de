//! Files of other systems: reads exports as batches of columns, and writes results.

pub mod floats;
pub mod sink;
pub mod source;
