//! Names of times, and of columns that order rows in time: loads, transactions, steps.

use crate::evaluate::roles::names::words::{has_word, last_part, words};
use crate::evaluate::roles::words::{
    BEFORE, BIRTH, BOUNDS, CALENDAR, IDENTIFIERS, LATER, LOADS, NUMBERS, PERIODS, RECEIPT, RECORDED, STEPS,
    TIMES, TRANSMISSION,
};

/// Distance of a time from the event of the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lateness {
    /// The event itself, as far as the name says.
    Event,
    /// The moment when the event was recorded.
    Recorded,
    /// The receipt of the record, the end of the event, or a change.
    Later,
}

/// Returns the distance from the event that the name of a time suggests.
pub(crate) fn lateness(name: &str) -> Lateness {
    let is_later = |word: &String| {
        LATER.contains(&word.as_str()) || RECEIPT.contains(&word.as_str()) || has_last_change(word)
    };
    let words = words(name);
    if words.iter().any(is_later) {
        Lateness::Later
    } else if words.iter().any(|word| RECORDED.contains(&word.as_str())) {
        Lateness::Recorded
    } else {
        Lateness::Event
    }
}

/// Whether the name of a time suggests that it is later than the event of the row.
pub(crate) fn is_later(name: &str) -> bool {
    lateness(name) > Lateness::Event
}

/// Whether the name of a time denotes the record or the receipt of an event.
pub(crate) fn denotes_receipt(name: &str) -> bool {
    let is_receipt = |word: &String| RECEIPT.contains(&word.as_str()) || RECORDED.contains(&word.as_str());
    words(name).iter().any(is_receipt)
}

/// Whether the name of a time denotes the creation of a record.
pub(crate) fn denotes_creation(name: &str) -> bool {
    const CREATION: &[&str] = &["create", "created", "creation", "insert", "inserted", "erdat"];
    words(name).iter().any(|word| CREATION.contains(&word.as_str()))
}

/// Whether the name of a time denotes the last change of a record: `LastModifiedDate`.
pub(crate) fn denotes_change(name: &str) -> bool {
    const CHANGES: &[&str] = &[
        "updated",
        "update",
        "modified",
        "modification",
        "changed",
        "edited",
        "mtime",
        "aedat",
        "geändert",
        "modifié",
        "modificado",
        "изменено",
    ];
    words(name).iter().any(|word| CHANGES.contains(&word.as_str()) || has_last_change(word))
}

/// Whether a word, written together, denotes the last change: `LASTMODIFIEDDATE`.
fn has_last_change(word: &str) -> bool {
    ["lastmodified", "lastupdate"].iter().any(|part| word.contains(part))
        || (word.starts_with("last") && ["update", "seen", "contact"].iter().any(|end| word.ends_with(end)))
}

/// Whether the name denotes the user who created a record: `CREATED_BY`, `create_uid`.
pub(crate) fn denotes_creator(name: &str) -> bool {
    let is_user = |word: &String| ["by", "uid", "user", "nam"].contains(&word.as_str());
    denotes_creation(name) && words(name).last().is_some_and(is_user)
}

/// Whether the name may denote the start or end time of a thing: `gameStart`.
pub(in crate::evaluate::roles) fn denotes_bound(name: &str) -> bool {
    words(last_part(name)).last().is_some_and(|word| BOUNDS.contains(&word.as_str()))
}

/// Whether the name of a time denotes a birth.
pub(crate) fn denotes_birth(name: &str) -> bool {
    words(name).iter().any(|word| BIRTH.contains(&word.as_str()))
}

/// Whether the name denotes a reference to an earlier row.
pub(in crate::evaluate::roles) fn denotes_before(name: &str) -> bool {
    words(name).iter().any(|word| BEFORE.contains(&word.as_str()))
}

/// Whether the name denotes the number of a message or a load that delivered rows.
pub(in crate::evaluate::roles) fn denotes_transmission(name: &str) -> bool {
    let words = words(last_part(name));
    // A control number, but not a control group; an interchange in any case.
    let is_word = |word: &String| TRANSMISSION.contains(&word.as_str());
    let is_control = |word: &str| ["ctl", "control"].contains(&word);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., previous, last] if NUMBERS.contains(last) && is_control(previous) => true,
        _ => words.iter().any(is_word),
    }
}

/// Whether the name denotes the run that loaded a row from another system: `etl_batch_id`.
pub(in crate::evaluate::roles) fn denotes_load(name: &str) -> bool {
    let words = words(last_part(name));
    let is_batch = |word: &String| word == "batch";
    words.iter().any(|word| LOADS.contains(&word.as_str()))
        || words.iter().any(is_batch) && words.iter().any(|word| word == "load")
}

/// Whether the name denotes a transaction: `tx_id`, `xid`.
pub(in crate::evaluate::roles) fn denotes_commit(name: &str) -> bool {
    const COMMITS: &[&str] = &["tx", "txn", "txid", "xid", "transaction", "gtid"];
    has_word(name, COMMITS)
}

/// Whether the name denotes a place in the log of a database: `lsn`, `scn`.
pub(crate) fn denotes_log(name: &str) -> bool {
    const LOGS: &[&str] = &["lsn", "scn", "gtid", "binlog", "wal"];
    has_word(name, LOGS)
}

/// Whether the name of a number denotes a position in a stream of rows: `seqno`, `offset`.
pub(in crate::evaluate::roles) fn denotes_sequence(name: &str) -> bool {
    const SEQUENCES: &[&str] = &["seq", "seqno", "seqnum", "seqnr", "sequence", "offset", "cursor"];
    match words(last_part(name)).iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => false,
        [.., previous, last] if NUMBERS.contains(last) => SEQUENCES.contains(previous),
        [.., last] => SEQUENCES.contains(last),
    }
}

/// Whether the name denotes a step in time: a sample, a tick.
pub(in crate::evaluate::roles) fn denotes_step(name: &str) -> bool {
    has_word(name, STEPS)
}

/// Whether the name of a number denotes a row of a calendar: "date_sk", "day_id", "timekey".
pub(in crate::evaluate::roles) fn denotes_calendar(name: &str) -> bool {
    let words = words(last_part(name));
    let is_unit = |word: &str| CALENDAR.contains(&word);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., unit, last] if IDENTIFIERS.contains(last) => is_unit(unit),
        [.., last] => {
            let stem = ["key", "id", "sk"].iter().find_map(|suffix| last.strip_suffix(suffix));
            stem.is_some_and(is_unit)
        }
        [] => false,
    }
}

/// Whether the name is that of the dates of astronomers, which are days with fractions.
pub(in crate::evaluate::roles) fn denotes_julian_date(name: &str) -> bool {
    has_word(name, &["mjd", "jd", "bjd", "hjd", "tjd"])
}

/// Whether the name denotes a year, but not the year of a thing: "Year" and "fiscal_year", but not
/// "birth_year" or "model_year".
pub(in crate::evaluate::roles) fn denotes_year(name: &str) -> bool {
    const YEARS: &[&str] = &["year", "yr", "jahr", "annee", "année", "ano", "año", "anno", "rok", "год"];
    const KINDS: &[&str] = &["fiscal", "calendar", "school", "academic", "report", "reporting", "season"];
    let is_year = |word: &str| YEARS.contains(&word);
    match words(last_part(name)).iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [year] => is_year(year),
        [kind, year] => is_year(year) && KINDS.contains(kind),
        _ => false,
    }
}

/// Whether the name denotes a time, a part of a calendar, or how far ahead a forecast looks:
/// "year", "time_code", "lead_h".
pub(crate) fn denotes_period(name: &str) -> bool {
    const AHEAD: &[&str] = &["lead", "forecast", "fcst", "horizon"];
    const UNITS: &[&str] =
        &["h", "hr", "hrs", "hour", "hours", "minute", "minutes", "days", "step", "steps", "horizon"];
    let is_period = |word: &str| TIMES.contains(&word) || CALENDAR.contains(&word) || PERIODS.contains(&word);
    match words(last_part(name)).iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., ahead, last] if AHEAD.contains(ahead) && UNITS.contains(last) => true,
        [.., period, last] if IDENTIFIERS.contains(last) || *last == "code" => is_period(period),
        [.., last] => is_period(last),
        [] => false,
    }
}

/// Whether the name of a number denotes a part of the day: "hour", "settlement_period".
pub(in crate::evaluate::roles) fn denotes_part_of_day(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "hour",
        "hours",
        "hr",
        "hh",
        "hora",
        "heure",
        "stunde",
        "uur",
        "ora",
        "period",
        "interval",
        "halfhour",
        "quarterhour",
    ];
    words(last_part(name)).last().is_some_and(|word| PARTS.contains(&word.as_str()))
}

/// Whether the name of a number that is not a point in time denotes a duration: "air_time".
pub(in crate::evaluate::roles) fn is_duration(name: &str) -> bool {
    words(last_part(name)).last().is_some_and(|word| word == "time")
}
