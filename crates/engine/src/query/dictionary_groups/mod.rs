//! Groups by texts that are found by the codes of dictionaries.
//!
//! DataFusion hashes and compares the text of each row. A portion has a dictionary for each row
//! group, so one number per text and dictionary says all about its rows:
//!
//! ```text
//! OrderedScan with dictionaries: city = codes 2 0 2 1 of [Bonn, Kiel, Ulm]
//!   Texts, of each column: codes ─► numbers, the same in all dictionaries of a stream
//!     Members: the numbers of one column, or of several ─► groups
//!       Groups: accumulators by group ─► their states or results, as those of AggregateExec
//! ```
//! A text is hashed at most once for each dictionary that has it. One column needs no other table:
//! its numbers are the groups, so only texts that rows refer to get one. The groups of several
//! columns are found in an array, if their texts are few, and else, or if other expressions are
//! among the keys, in DataFusion's table of groups, by number instead of by text. If the texts of
//! one of several keys hardly repeat within the first dictionaries, those of 4,000 rows, groups are
//! found by its texts from then on: looking up a text and then its number would take longer.
//!
//! The rule [`GroupByDictionaries`] replaces aggregations that read a scan, partial or single ones.
//! If memory does not suffice, a partial aggregation returns the states of the groups so far and
//! starts again; a single one leaves the groups to an aggregation of DataFusion, which spills. If
//! nearly every row is a group of its own, a partial aggregation converts rows to states without
//! grouping them.

mod exec;
mod grouping;
mod groups;
mod members;
mod rule;
mod texts;

pub(super) use rule::GroupByDictionaries;

#[cfg(test)]
mod tests;
