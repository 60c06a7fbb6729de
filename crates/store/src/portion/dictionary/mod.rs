//! Encodes one column chunk of repeated values: each distinct value once, in order, and small
//! numbers for the rows.
//!
//! The alternative is the library's own writer, which encodes the other columns. This one differs
//! in cost and result: values are hashed once, as views; the dictionary is sorted, so that it
//! compresses well and the range of a page follows from its numbers; the Bloom filter takes each
//! distinct value once and is sized for them. If a dictionary would be larger than the plain
//! values, the plain values are written.
mod chunk;
mod column;
pub(super) mod hybrid;
mod interner;
mod kind;
mod sorted;
mod statistics;

pub(super) use column::DictionaryColumn;
