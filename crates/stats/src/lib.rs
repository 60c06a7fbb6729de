//! Counts and figures: distinct and heavy keys, skew and the part of it that chance explains,
//! windows of time, and the rate that a partition sustains.

pub mod numbering;
pub mod overlap;
pub mod sketch;
pub mod skew;
pub mod throughput;
pub mod windows;
