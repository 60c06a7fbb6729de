//! Sessions: names of tables, planning, and execution that a caller can stop.

pub(in crate::query) mod catalog;
pub(in crate::query) mod database;
pub(in crate::query) mod explanation;
pub(in crate::query) mod newest_time;
pub(in crate::query) mod parsing;
pub(in crate::query) mod progress;
pub(in crate::query) mod run_queries;
pub(in crate::query) mod runtime;
pub(in crate::query) mod session_state;
pub(in crate::query) mod stoppable;
pub(in crate::query) mod system;
pub(in crate::query) mod table_session;
pub(in crate::query) mod tasks;
