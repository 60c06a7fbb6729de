//! What is logged, on standard error.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use log::LevelFilter;

/// The same is told once in so long.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// Characters by which lines are told apart.
const BEGINNING: usize = 40;
/// What Ballista says, and how it is told; none where it says so of every job that ends before it is done. Why a job did is told to its
/// client, and lost executors by a line of ours.
const OF_BALLISTA: [(&str, Option<&str>); 7] = [
    ("Fail to find job", None),
    ("Fail to cancel tasks", None),
    ("Failed to get client for executor", None),
    ("Task has been aborted", None),
    ("Executor failed to run task", None),
    ("Job failed", None),
    ("Executor poll work loop failed", Some("the scheduler does not answer; it is asked again and again")),
];

/// Who runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    /// A command, whose user reads what this program has to say while it waits.
    Client,
    /// A process of a cluster, whose operator also wants to know what libraries warn of.
    Server,
}

struct Lines {
    /// What is asked for in the environment, else who runs.
    level: Result<LevelFilter, Whose>,
    /// Beginnings of lines, and when they were told.
    told: Mutex<Vec<(String, Instant)>>,
}

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
        let ours = metadata.target().starts_with("evenkeel");
        metadata.level()
            <= match (self.level, ours) {
                (Ok(asked), _) => asked,
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
        // Who asks for a level gets every line as it is.
        if let Err(whose) = self.level {
            match OF_BALLISTA.iter().find(|(said, _)| line.starts_with(said)) {
                Some((_, None)) => return,
                Some((_, Some(told))) => (*told).clone_into(&mut line),
                None => {}
            }
            // A command waits for few things, and tells each.
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

/// Shows what is logged; `EVENKEEL_LOG` (error, warn, info, debug) shows everything from a level on.
pub(crate) fn to_stderr(whose: Whose) {
    let asked = std::env::var("EVENKEEL_LOG").ok().and_then(|level| level.parse().ok());
    let lines = Lines { level: asked.ok_or(whose), told: Mutex::default() };
    // Set once: the first one stays.
    if log::set_logger(Box::leak(Box::new(lines))).is_ok() {
        log::set_max_level(asked.unwrap_or(LevelFilter::Info));
    }
}
