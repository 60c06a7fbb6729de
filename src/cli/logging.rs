//! What libraries log, on standard error.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The same is told once in so long.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// Characters by which lines are told apart.
const BEGINNING: usize = 40;

struct Lines {
    /// Beginnings of lines, and when they were told.
    told: Mutex<Vec<(String, Instant)>>,
}

static LINES: Lines = Lines { told: Mutex::new(Vec::new()) };

impl Lines {
    fn is_news(&self, line: &str) -> bool {
        let beginning: String = line.chars().filter(|c| !c.is_ascii_digit()).take(BEGINNING).collect();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        told.retain(|(_, at)| now.duration_since(*at) < AGAIN_AFTER);
        let news = told.iter().all(|(known, _)| *known != beginning);
        if news {
            told.push((beginning, now));
        }
        news
    }
}

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            let text = record.args().to_string();
            let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if self.is_news(&line) {
                let _ =
                    writeln!(std::io::stderr(), "{}: {line}", record.level().as_str().to_ascii_lowercase());
            }
        }
    }

    fn flush(&self) {}
}

/// Shows what is logged from a level on; `EVENKEEL_LOG` (error, warn, info, debug) sets another one.
pub(crate) fn to_stderr(level: log::LevelFilter) {
    let asked = std::env::var("EVENKEEL_LOG").ok().and_then(|level| level.parse().ok());
    if log::set_logger(&LINES).is_ok() {
        log::set_max_level(asked.unwrap_or(level));
    }
}
