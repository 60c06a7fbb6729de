//! Reads the keys of Spanner schemas in both dialects, and writes schemas.

mod check;
mod dialect;
mod draft;
mod error;
mod names;
mod parse;
mod placed;
mod tables;
mod types;
mod write;

pub use crate::schema::dialect::Dialect;
pub use crate::schema::draft::ShardFront;
pub(crate) use crate::schema::draft::{IndexDraft, KeyFront, TableDraft};
pub use crate::schema::error::SchemaError;
pub use crate::schema::parse::parse_schema;
pub use crate::schema::tables::{Made, Schema, SchemaColumn, SchemaIndex, SchemaKey, SchemaTable, Shard};
pub use crate::schema::write::{MadeKey, write_migrated_table};
