//! What is logged, on standard error.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use log::LevelFilter;

/// The same is told once in so long.
const AGAIN_AFTER: Duration = Duration::from_secs(30);
/// Characters by which lines are told apart.
const BEGINNING: usize = 40;
/// What Ballista says of every job that ends before it is done. Why it did is told to its client, and lost executors by a line of ours.
const SAID_OF_ENDED_JOBS: [&str; 6] = [
    "Fail to find job",
    "Fail to cancel tasks",
    "Failed to get client for executor",
    "Task has been aborted",
    "Executor failed to run task",
    "Job failed",
];

/// What Ballista says, and how it is told.
const REWORDED: [(&str, &str); 1] =
    [("Executor poll work loop failed", "the scheduler does not answer; it is asked again and again")];

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
        let reworded = REWORDED.iter().find(|(said, _)| self.level.is_err() && line.starts_with(said));
        if let Some((_, told)) = reworded {
            (*told).clone_into(&mut line);
        }
        // Who asks for a level gets every line of it; a command waits for few things.
        let is_told = matches!(self.level, Ok(_) | Err(Whose::Client))
            || (!SAID_OF_ENDED_JOBS.iter().any(|said| line.starts_with(said)) && self.is_news(&line));
        if is_told {
            let kind = match record.level() {
                log::Level::Info => "note".to_owned(),
                level => level.as_str().to_ascii_lowercase(),
            };
            let _ = writeln!(std::io::stderr(), "{kind}: {line}");
        }
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
