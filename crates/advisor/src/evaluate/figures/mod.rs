//! Results: plain values that reports render and JSON holds, and what follows from counts alone.
//!
//! Nothing here reads an export or compares candidates. For one candidate at a time, it derives
//! from counts and sampled values:
//!
//! - `moment`: the windows in which the balance at a time is judged
//! - `judged_windows`, `over_time`, `pattern`: how the rows of windows are spread, the `AtATime`
//!   with which a verdict is decided, and the pattern of a hot spot
//! - `partition_key`: causes of a skew in words, the verdict without time, partitions of a key
//! - `uniqueness`: whether a key is unique by chance, by nature or by its many values
//! - `interval`: intervals of the figures of a sample
//! - `capacity`, `weights`: the rate that partitions sustain, and the loads of nodes

pub(super) mod capacity;
pub(super) mod evaluation;
pub(super) mod interval;
pub(super) mod judged_windows;
pub(super) mod layout;
pub(super) mod loads;
pub(super) mod merged_profile;
pub(super) mod moment;
pub(super) mod over_time;
pub(super) mod partition_key;
pub(super) mod pattern;
pub(super) mod primary_key;
pub(super) mod recommendation;
pub(super) mod uniqueness;
pub(super) mod weights;
