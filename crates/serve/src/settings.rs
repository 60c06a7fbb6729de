//! Settings of one connection.

use std::collections::BTreeMap;
use std::time::Duration;

use evenkeel_model::units::Version;

use crate::failure::{Failure, SqlState};
use crate::statement::is_utf8;

/// PostgreSQL version whose protocol and catalog are provided.
pub(crate) const SERVER_VERSION: &str = "16.6";
const SERVER_VERSION_NUMBER: &str = "160006";

/// Setting that selects versions of tables.
pub(crate) const VERSION_SETTING: &str = "evenkeel.version";

/// Settings with their initial values. All of them can be shown.
const DEFAULTS: [(&str, &str); 44] = [
    ("application_name", ""),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("client_min_messages", "notice"),
    ("datestyle", "ISO, MDY"),
    ("default_tablespace", ""),
    ("default_transaction_isolation", "read committed"),
    ("default_transaction_read_only", "on"),
    (VERSION_SETTING, ""),
    ("extra_float_digits", "1"),
    ("geqo", "on"),
    ("idle_in_transaction_session_timeout", "0"),
    ("idle_session_timeout", "0"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("intervalstyle", "postgres"),
    ("is_superuser", "off"),
    ("jit", "off"),
    ("lc_collate", "C"),
    ("lc_ctype", "C"),
    ("lc_messages", "C"),
    ("lc_monetary", "C"),
    ("lc_numeric", "C"),
    ("lc_time", "C"),
    ("lock_timeout", "0"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("max_parallel_workers_per_gather", "0"),
    ("row_security", "on"),
    ("search_path", "\"$user\", public"),
    ("server_encoding", "UTF8"),
    ("server_version", SERVER_VERSION),
    ("server_version_num", SERVER_VERSION_NUMBER),
    ("session_authorization", ""),
    ("ssl", "off"),
    ("ssl_renegotiation_limit", "0"),
    ("standard_conforming_strings", "on"),
    ("statement_timeout", "0"),
    ("synchronous_commit", "on"),
    ("timezone", "UTC"),
    ("transaction_isolation", "read committed"),
    ("transaction_read_only", "on"),
    ("work_mem", "0"),
    ("xmloption", "content"),
];

/// Settings that cannot be changed.
const FIXED: [&str; 17] = [
    "in_hot_standby",
    "integer_datetimes",
    "is_superuser",
    "lc_collate",
    "lc_ctype",
    "max_identifier_length",
    "max_index_keys",
    "server_encoding",
    "server_version",
    "server_version_num",
    "session_authorization",
    "ssl",
    "standard_conforming_strings",
    "bytea_output",
    "intervalstyle",
    "transaction_read_only",
    "default_transaction_read_only",
];

/// Settings that are reported to clients initially, and whenever they change, in the spelling
/// that clients look for.
pub(crate) const REPORTED: [(&str, &str); 13] = [
    ("application_name", "application_name"),
    ("client_encoding", "client_encoding"),
    ("datestyle", "DateStyle"),
    ("default_transaction_read_only", "default_transaction_read_only"),
    ("in_hot_standby", "in_hot_standby"),
    ("integer_datetimes", "integer_datetimes"),
    ("intervalstyle", "IntervalStyle"),
    ("is_superuser", "is_superuser"),
    ("server_encoding", "server_encoding"),
    ("server_version", "server_version"),
    ("session_authorization", "session_authorization"),
    ("standard_conforming_strings", "standard_conforming_strings"),
    ("timezone", "TimeZone"),
];

/// Versions of tables by name; the empty name stands for the only table.
pub(crate) type Pins = BTreeMap<String, Version>;

/// Settings of one connection.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    values: BTreeMap<String, String>,
    /// Initial settings of the connection, which RESET restores.
    initial: BTreeMap<String, String>,
    pins: Pins,
}

/// Result of a change of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    /// Warning for the client.
    pub(crate) warning: Option<String>,
}

impl Settings {
    /// Settings of a user's connection, including those of its start-up message. Unknown names are
    /// ignored: drivers send some that only other servers have.
    pub(crate) fn new(user: &str, given: &BTreeMap<String, String>) -> Result<Self, Failure> {
        let mut values: BTreeMap<String, String> =
            DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        values.insert("session_authorization".to_owned(), user.to_owned());
        let mut settings = Self { initial: values.clone(), values, pins: Pins::new() };
        for (name, value) in given {
            let name = name.to_ascii_lowercase();
            if settings.values.contains_key(&name) && !FIXED.contains(&name.as_str()) {
                settings.set(&name, Some(value))?;
            }
        }
        settings.initial = settings.values.clone();
        Ok(settings)
    }

    /// Changes a setting; `None` returns it to its value at the start.
    pub(crate) fn set(&mut self, name: &str, value: Option<&str>) -> Result<Changed, Failure> {
        let initial = self.initial.get(name).cloned();
        let Some(initial) = initial else { return Err(unknown(name)) };
        let value = value.unwrap_or(&initial).trim().to_owned();
        let mut changed = Changed { warning: None };
        let same = |to: &str| value.eq_ignore_ascii_case(to);
        let invalid = |hint: &str| {
            let message = format!("invalid value for parameter \"{name}\": \"{value}\"; {hint}");
            Err(Failure::new(SqlState::INVALID_PARAMETER, message))
        };
        match name {
            fixed if FIXED.contains(&fixed) && !same(&initial) => {
                let message = format!("parameter \"{name}\" cannot be changed; it is {initial}");
                return Err(Failure::new(SqlState("55P02"), message));
            }
            "client_encoding" if !is_utf8(&value) && !same("sql_ascii") => {
                return invalid("texts are sent in UTF8");
            }
            "client_encoding" => {
                self.values.insert(name.to_owned(), "UTF8".to_owned());
                return Ok(changed);
            }
            "datestyle" if !value.to_ascii_lowercase().starts_with("iso") => {
                return invalid("dates are written as in ISO 8601");
            }
            "datestyle" => return Ok(changed),
            "timezone" => {
                let is_utc = ["utc", "etc/utc", "gmt", "z", "0", "+00", "+00:00", "zulu"]
                    .contains(&value.to_ascii_lowercase().as_str());
                if !is_utc {
                    changed.warning = Some("times are sent in UTC, whatever the time zone".to_owned());
                }
                return Ok(changed);
            }
            "statement_timeout" if timeout(&value).is_none() => {
                return invalid("write milliseconds, or a number with ms, s, min or h");
            }
            VERSION_SETTING => match pins(&value) {
                Some(pins) => self.pins = pins,
                None => {
                    return invalid(
                        "write a version, as in 7, or versions of tables, as in events=7, users=3",
                    );
                }
            },
            _ => {}
        }
        self.values.insert(name.to_owned(), value);
        Ok(changed)
    }

    /// Resets all settings to their initial values.
    pub(crate) fn reset(&mut self) {
        self.values = self.initial.clone();
        self.pins = self.initial.get(VERSION_SETTING).and_then(|value| pins(value)).unwrap_or_default();
    }

    pub(crate) fn get(&self, name: &str) -> Result<&str, Failure> {
        self.values.get(name).map(String::as_str).ok_or_else(|| unknown(name))
    }

    /// All settings by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Pinned versions of tables; others are read at the newest.
    pub(crate) fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Time limit of a statement; `None` if the client sets none.
    pub(crate) fn statement_timeout(&self) -> Option<Duration> {
        let value = self.values.get("statement_timeout").and_then(|value| timeout(value));
        value.filter(|timeout| !timeout.is_zero())
    }
}

fn unknown(name: &str) -> Failure {
    let message = format!("unrecognized configuration parameter \"{name}\"");
    Failure::new(SqlState::UNDEFINED_OBJECT, message)
}

/// Reads a number of milliseconds, or one with a unit.
fn timeout(text: &str) -> Option<Duration> {
    let digits: String = text.trim().chars().take_while(char::is_ascii_digit).collect();
    let number: u64 = digits.parse().ok()?;
    let millis = match text.trim().get(digits.len()..)?.trim() {
        "" | "ms" => 1,
        "s" => 1000,
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(millis)?))
}

/// Reads `7` or `events=7, users=3`; empty text means the newest versions.
fn pins(text: &str) -> Option<Pins> {
    let mut pins = Pins::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (name, version) = part.split_once('=').unwrap_or(("", part));
        let pinned = pins.insert(name.trim().to_owned(), Version(version.trim().parse().ok()?));
        if pinned.is_some() {
            return None;
        }
    }
    let is_mixed = pins.len() > 1 && pins.contains_key("");
    (!is_mixed).then_some(pins)
}

/// Reads the settings in `options` of a start-up message: `-c name=value` and `--name=value`.
pub(crate) fn settings_in_options(options: &str) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let mut words = options.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("--").or_else(|| word.strip_prefix("-c")) {
            Some("") => words.next(),
            setting => setting,
        };
        if let Some((name, value)) = setting.and_then(|setting| setting.split_once('=')) {
            settings.insert(name.replace('-', "_"), value.to_owned());
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Settings {
        let given = given.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Settings::new("ada", &given).unwrap()
    }

    #[test]
    fn settings_return_to_those_of_the_start() {
        let mut settings =
            settings(&[("application_name", "x"), ("Statement_Timeout", "5s"), ("unknown", "1")]);
        assert_eq!(settings.get("session_authorization").unwrap(), "ada");
        settings.set("application_name", Some("y")).unwrap();
        settings.set("evenkeel.version", Some("7")).unwrap();
        assert_eq!(settings.pins().values().copied().collect::<Vec<_>>(), [Version(7)]);
        settings.set("statement_timeout", Some("0")).unwrap();
        assert_eq!(settings.statement_timeout(), None);
        settings.reset();
        assert_eq!(settings.get("application_name").unwrap(), "x");
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(5)));
        assert!(settings.pins().is_empty());
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let mut settings = settings(&[]);
        for (name, value) in [
            ("client_encoding", "LATIN1"),
            ("datestyle", "German"),
            ("standard_conforming_strings", "off"),
            ("default_transaction_read_only", "off"),
            ("statement_timeout", "soon"),
            ("evenkeel.version", "newest"),
            ("evenkeel.version", "7, users=3"),
            ("datafusion.execution.batch_size", "1"),
        ] {
            assert!(settings.set(name, Some(value)).is_err(), "{name} = {value}");
        }
        assert!(settings.set("timezone", Some("Asia/Tokyo")).unwrap().warning.is_some());
        assert_eq!(settings.get("timezone").unwrap(), "UTC");
    }

    #[test]
    fn versions_and_times_are_read() {
        let two = pins("events=7, users = 3").unwrap();
        assert_eq!((two["events"], two["users"]), (Version(7), Version(3)));
        assert_eq!(pins(""), Some(Pins::new()));
        for (text, millis) in [("250", 250), ("2 min", 120_000), ("1h", 3_600_000), ("0", 0)] {
            assert_eq!(timeout(text), Some(Duration::from_millis(millis)), "{text}");
        }
        let options = settings_in_options("-c statement_timeout=5s --search-path=x -c a=b -x");
        assert_eq!(options["statement_timeout"], "5s");
        assert_eq!((options["search_path"].as_str(), options["a"].as_str()), ("x", "b"));
    }
}
