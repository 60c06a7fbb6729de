//! Evaluation of partition keys and primary keys on an export, and the advice that follows.

pub mod evaluate;
pub mod lint;
