//! Counts and figures: distinct and heavy keys, skew and what chance explains of it, windows of time, what a partition sustains.

pub mod numbering;
pub mod overlap;
pub mod sketch;
pub mod skew;
pub mod throughput;
pub mod windows;
