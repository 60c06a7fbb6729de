//! Tests of the whole: one binary, because each one links DataFusion.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that fails should stop and say so"
)]

mod arithmetic;
mod at_a_time;
mod bounds;
mod browser;
#[cfg(feature = "cluster")]
mod cluster;
#[cfg(feature = "cluster")]
mod cluster_faults;
mod commands;
mod commit_boundary;
mod common;
mod crash;
mod crash_objects;
mod databases;
mod deletes;
mod delta;
mod edges;
mod evaluate;
mod exports;
mod fixture;
mod flights;
mod formats;
mod fuzz;
mod guide;
mod hooked_store;
mod interleavings;
mod joins;
mod limits;
mod local_joins;
#[cfg(target_os = "linux")]
mod many_cores;
mod masking;
mod model;
mod nodes;
mod objects;
mod ordered_reads;
mod other_systems;
mod placements;
mod plans;
mod processes;
mod profiles;
mod refusals;
mod scenarios;
mod scripted_store;
mod shapes;
mod simulate;
mod sql_server;
mod store;
mod three_valued;
mod upgrade_watch;
mod ydb_versions;
