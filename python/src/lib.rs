//! The Python package `evenkeel`: what its classes and functions, which are written in Python, run
//! natively.
//!
//! ```text
//! evenkeel.evaluate, capacity, ...  command.rs: a command of the program, with its result captured
//! evenkeel.Table                    table.rs: a handle of a table; query.rs: rows of a query;
//!                                   provider.rs: the table for the package `datafusion`
//! evenkeel.place                    place.rs: partitions of whole arrays
//! frames and streams                source.rs: batches of any Arrow object; ingest.rs: into a
//! table;
//!                                   producer.rs: threads that read them
//! all of them                       waiting.rs: threads, Ctrl-C, progress, forks
//! ```

mod command;
mod errors;
mod ingest;
mod params;
mod place;
mod producer;
mod provider;
mod query;
mod report;
mod source;
mod table;
mod waiting;

#[global_allocator]
static ALLOCATOR: evenkeel::cli::Allocator = evenkeel::cli::Allocator;

/// Natively implemented parts of the package.
#[pyo3::pymodule]
mod _evenkeel {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::command::{compare, main, run};
    #[pymodule_export]
    use crate::place::place;
    #[pymodule_export]
    use crate::producer::stop_sources;
    #[pymodule_export]
    use crate::query::Rows;
    #[pymodule_export]
    use crate::source::spool;
    #[pymodule_export]
    use crate::table::NativeTable;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        evenkeel::cli::hide_caught_panics();
        crate::waiting::know_main_thread(module.py())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("DATAFUSION_MAJOR", datafusion_ffi::version())
    }
}
