//! Evaluation of partition keys and primary keys on an export, and the advice that follows.

pub mod evaluate;
pub mod joins;
pub mod lint;
mod role;
pub mod targets;
