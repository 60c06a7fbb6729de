//! Visible rows of a snapshot as a table of DataFusion: partitions and portions that a query can
//! match, their files, and the merge that keeps the newest row of each key.

mod before_overlap;
pub(in crate::query) mod count;
mod density;
pub(in crate::query) mod dictionaries;
mod dictionary_conditions;
pub(in crate::query) mod export_table;
mod file_plan;
pub(in crate::query) mod first_rows;
mod kept_rows;
pub(in crate::query) mod key_order;
mod late_filter;
pub(in crate::query) mod merge_runs;
pub(in crate::query) mod named_table;
pub(in crate::query) mod newest_wins;
mod opening;
pub(in crate::query) mod ordered_scan;
pub(in crate::query) mod overlap;
pub(in crate::query) mod portion_files;
pub(in crate::query) mod portion_readers;
mod portion_source;
pub(in crate::query) mod portion_statistics;
pub(in crate::query) mod provider;
pub(in crate::query) mod pruning;
mod row_group_statistics;
pub(in crate::query) mod scan_filters;
pub(in crate::query) mod scan_summary;
mod small_reads;
mod table_scan;
pub(in crate::query) mod visible_scan;
