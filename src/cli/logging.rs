//! What libraries log, on standard error.

use std::io::Write;

struct Lines;

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let text = record.args().to_string();
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(std::io::stderr(), "{}: {line}", record.level().as_str().to_ascii_lowercase());
        }
    }

    fn flush(&self) {}
}

/// Shows what is logged from a level on; `EVENKEEL_LOG` (error, warn, info, debug) sets another one.
pub(crate) fn to_stderr(level: log::LevelFilter) {
    let asked = std::env::var("EVENKEEL_LOG").ok().and_then(|level| level.parse().ok());
    if log::set_logger(&Lines).is_ok() {
        log::set_max_level(asked.unwrap_or(level));
    }
}
