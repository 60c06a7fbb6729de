//! Logging to standard error.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use log::LevelFilter;

/// Time within which a repeated line is not logged again.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// Number of leading characters that distinguish lines.
const BEGINNING: usize = 40;
/// Messages of Ballista, and their replacements; `None` drops a message that Ballista logs for
/// every job that ends early. The client reports why its job ended, and a line of ours reports lost
/// executors.
const OF_BALLISTA: [(&str, Option<&str>); 7] = [
    ("Fail to find job", None),
    ("Fail to cancel tasks", None),
    ("Failed to get client for executor", None),
    ("Task has been aborted", None),
    ("Executor failed to run task", None),
    ("Job failed", None),
    ("Executor poll work loop failed", Some("the scheduler does not answer; polling continues")),
];

/// Kind of process that logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A command, whose user reads our messages while it runs.
    #[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only commands on a cluster log"))]
    Client,
    /// A process of a cluster, whose operator also needs the warnings of libraries.
    Server,
}

struct Lines {
    /// Level from the environment, else the kind of process.
    level: Result<LevelFilter, Whose>,
    /// Beginnings of logged lines, and when they were logged.
    printed: Mutex<Vec<(String, Instant)>>,
}

impl Lines {
    fn is_news(&self, line: &str) -> bool {
        let beginning: String = line.chars().filter(|c| !c.is_ascii_digit()).take(BEGINNING).collect();
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        printed.retain(|(_, at)| now.duration_since(*at) < AGAIN_AFTER);
        let news = printed.iter().all(|(known, _)| *known != beginning);
        if news {
            printed.push((beginning, now));
        }
        news
    }
}

impl log::Log for Lines {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        let ours = metadata.target().starts_with("evenkeel");
        metadata.level()
            <= match (self.level, ours) {
                (Ok(requested), _) => requested,
                (Err(_), true) => LevelFilter::Info,
                (Err(Whose::Server), false) => LevelFilter::Warn,
                (Err(Whose::Client), false) => LevelFilter::Off,
            }
    }

    fn log(&self, record: &log::Record<'_>) {
        if !self.enabled(record.metadata()) {
            return;
        }
        let text = record.args().to_string();
        let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // An explicit level shows every line unchanged.
        if let Err(whose) = self.level {
            match OF_BALLISTA.iter().find(|(said, _)| line.starts_with(said)) {
                Some((_, None)) => return,
                Some((_, Some(printed))) => (*printed).clone_into(&mut line),
                None => {}
            }
            // A command waits for few things, and logs each of them.
            if whose == Whose::Server && !self.is_news(&line) {
                return;
            }
        }
        let kind = match record.level() {
            log::Level::Info => "note".to_owned(),
            level => level.as_str().to_ascii_lowercase(),
        };
        let _ = writeln!(std::io::stderr(), "{kind}: {line}");
    }

    fn flush(&self) {}
}

/// Logs to standard error; `EVENKEEL_LOG` (error, warn, info, debug) shows everything from a level
/// on.
pub(crate) fn to_stderr(whose: Whose) {
    let requested = std::env::var("EVENKEEL_LOG").ok().and_then(|level| level.parse().ok());
    let lines = Lines { level: requested.ok_or(whose), printed: Mutex::default() };
    // The logger can be set only once: the first one is kept.
    if log::set_logger(Box::leak(Box::new(lines))).is_ok() {
        log::set_max_level(requested.unwrap_or(LevelFilter::Info));
    }
}
