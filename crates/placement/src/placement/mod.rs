//! From the bytes of a partition key to a partition: a storage format, frozen by fixtures. The
//! functions of other systems are in [`systems`].
//!
//! **Hash.** XXH64 with seed 0 over the raw little-endian bytes of the partition-key columns,
//! concatenated in declared order, without separator or length. NULL adds no bytes, and neither
//! does Decimal. Text and byte strings add their bytes. `("ab", "c")` and `("a", "bc")` therefore
//! share a hash. Widths: integers and floating point native, Bool 1, Date 2 (days), Datetime 4
//! (seconds), Timestamp 8 (microseconds), Date32 4, Datetime64 and Timestamp64 8. Sources:
//! ydb-platform/ydb `ydb/core/formats/arrow/hash/calcer.cpp`,
//! `ydb/library/formats/arrow/hash/xx_hash.cpp`.
//!
//! **Partition.** See [`Placement::assign`]; sources:
//! `ydb/core/tx/sharding/{hash_intervals,hash_modulo,hash_slider}.cpp`.
//!
//! | key | XXH64 | `ydb` of 12 / of 64 | `ydb-modulo` of 12 / of 64 |
//! |---|---|---|---|
//! | Uint64 0 | 34c96acdcadb1bbb | 2 / 13 | 11 / 59 |
//! | Uint64 42 | b556806fb6d14353 | 8 / 45 | 3 / 19 |
//! | Utf8 "abc" | 44bc2cf5ad770999 | 3 / 17 | 9 / 25 |

mod assign;
mod function;
mod hash;
mod joint;
mod key_bytes;
mod literal;
mod nesting;
mod scatter;
pub mod systems;

pub use assign::Placement;
pub use function::{Function, FunctionError};
pub use hash::hash_bytes;
pub use joint::JointPlacement;
pub use key_bytes::PlacementError;
pub use literal::{KeyLiteralError, parse_key};
pub use nesting::Nesting;
pub use scatter::Scatter;
