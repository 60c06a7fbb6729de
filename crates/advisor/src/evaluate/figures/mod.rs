//! Results: plain values that reports render and JSON holds. Nothing here reads data or makes
//! decisions.

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
