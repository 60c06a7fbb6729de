//! Models the range splits of Spanner on an export, and reads and writes its schemas.

pub mod schema;
pub mod simulate;
