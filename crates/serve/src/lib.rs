//! Tables served by the PostgreSQL protocol, read-only.
//!
//! ```text
//! socket ── startup (encryption, password) ── connection ── statement
//!                                                 ├─ query on tables ── engine, on its own threads
//!                                                 │    tables: the newest or a pinned version
//!                                                 ├─ query on the catalog ── catalog (pg_catalog)
//!                                                 └─ rows ── values (text, binary) | copy
//! http ── metrics, health
//! ```
//!
//! `pgwire` reads and writes the messages and checks passwords; `datafusion-pg-catalog` has the
//! tables and functions that every server of PostgreSQL has. This crate interprets the messages. No
//! statement writes: only the kinds that [`statement`](self) lists are run, and each plan is
//! checked for side effects.

mod activity;
mod cancel;
mod catalog;
mod column_names;
mod connection;
mod connections;
mod copy;
mod failure;
mod http;
mod metrics;
mod parameters;
mod passwords;
mod rows;
mod server;
mod settings;
mod shared;
mod socket;
mod startup;
mod statement;
mod tables;
mod threads;
mod tls;
mod types;
mod values;

pub use crate::passwords::{PasswordError, Passwords};
pub use crate::server::{ServeError, Server, check_exposure};
pub use crate::shared::ServeOptions;
pub use crate::tables::{ServedTable, ServedTables};
pub use crate::tls::{Tls, TlsError};
