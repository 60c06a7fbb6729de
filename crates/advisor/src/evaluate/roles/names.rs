//! Hints that the name of a column gives about its role.
//!
//! Names are weaker evidence than values: they are matched by whole words ("count" is not in
//! "account"), and add at most [`WEIGHT`] to a score.

use std::collections::HashMap;

use crate::evaluate::roles::words::{
    AMOUNT_ENDINGS, AMOUNT_HEADS, AMOUNTS, AREAS, ATTRIBUTES, AXES, BEFORE, BIRTH, CALENDAR, CONTACTS,
    CONTENTS, COUNTED, DIMENSIONS, ENTITIES, EVENTS, IDENTIFIERS, LABELS, LATER, LINES, LOADS, MEASURES,
    NOT_IDS, NUMBERS, RECEIPT, RECURRING, STEPS, TEXTS, TIMES, TRANSMISSION, UNITS, WHOLES,
};

/// Weight of a hint.
pub(super) const WEIGHT: f64 = 2.5;

/// Kind of thing that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    Identifier,
    /// Thing that has identifiers: a user, a device.
    Entity,
    Time,
    Dimension,
    /// Property of a thing, rarely looked up however many values it has: a title, a brand.
    Attribute,
    Measure,
    Text,
    Line,
}

/// Whether the name of a time says that it is later than what a row is about.
pub(crate) fn is_later(name: &str) -> bool {
    let is_later = |word: &String| {
        LATER.contains(&word.as_str())
            || ["lastmodified", "lastupdate"].iter().any(|part| word.contains(part))
    };
    words(name).iter().any(is_later) || is_of_receipt(name)
}

/// Whether the name of a time is that of the receipt of a row.
pub(crate) fn is_of_receipt(name: &str) -> bool {
    words(name).iter().any(|word| RECEIPT.contains(&word.as_str()))
}

/// Whether the name of a time is that of the creation of a record.
pub(crate) fn is_of_creation(name: &str) -> bool {
    const CREATION: &[&str] = &["create", "created", "creation", "insert", "inserted", "erdat"];
    words(name).iter().any(|word| CREATION.contains(&word.as_str()))
}

/// Whether the name is that of the user who created a record: `CREATED_BY`, `create_uid`.
pub(crate) fn is_of_creator(name: &str) -> bool {
    let is_user = |word: &String| ["by", "uid", "user", "nam"].contains(&word.as_str());
    is_of_creation(name) && words(name).last().is_some_and(is_user)
}

/// Whether the name of a time is that of a birth.
pub(crate) fn is_of_birth(name: &str) -> bool {
    words(name).iter().any(|word| BIRTH.contains(&word.as_str()))
}

/// Whether the name is that of a reference to a row that came before.
pub(super) fn is_of_before(name: &str) -> bool {
    words(name).iter().any(|word| BEFORE.contains(&word.as_str()))
}

/// Whether the name is that of the number of a message or a load that brought rows.
pub(super) fn is_of_transmission(name: &str) -> bool {
    let words = words(last_part(name));
    // A control number, but no control group; an interchange, whatever it is called.
    let is_word = |word: &String| TRANSMISSION.contains(&word.as_str());
    let is_control = |word: &str| ["ctl", "control"].contains(&word);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., of, last] if NUMBERS.contains(last) && is_control(of) => true,
        _ => words.iter().any(is_word),
    }
}

/// Whether the name is that of the run that brought a row from another system: `etl_batch_id`.
pub(super) fn is_of_load(name: &str) -> bool {
    let words = words(last_part(name));
    let is_batch = |word: &String| word == "batch";
    words.iter().any(|word| LOADS.contains(&word.as_str()))
        || words.iter().any(is_batch) && words.iter().any(|word| word == "load")
}

/// Whether the name is that of a transaction: `tx_id`, `xid`.
pub(super) fn is_of_commit(name: &str) -> bool {
    const COMMITS: &[&str] = &["tx", "txn", "txid", "xid", "transaction", "gtid"];
    has_word(name, COMMITS)
}

/// Whether the name is that of a place in the log of a database: `lsn`, `scn`.
pub(crate) fn is_of_log(name: &str) -> bool {
    const LOGS: &[&str] = &["lsn", "scn", "gtid", "binlog", "wal"];
    has_word(name, LOGS)
}

/// Whether the name is that of what messages are part of: `channel_id`, `thread`.
pub(super) fn is_of_talk(name: &str) -> bool {
    const TALKS: &[&str] = &[
        "channel",
        "conversation",
        "conv",
        "chat",
        "room",
        "thread",
        "dialog",
        "dialogue",
        "forum",
        "topic",
    ];
    has_word(name, TALKS)
}

/// Whether the name is that of who wrote a message: `author_id`, `sender`.
pub(super) fn is_of_author(name: &str) -> bool {
    const AUTHORS: &[&str] = &["author", "sender", "poster", "speaker", "commenter", "writer"];
    has_word(name, AUTHORS)
}

/// Whether the name is that of a step of a traced request.
pub(super) fn is_of_span(name: &str) -> bool {
    has_word(name, &["span"])
}

/// Whether the name is that of a traced request.
pub(super) fn is_of_trace(name: &str) -> bool {
    has_word(name, &["trace"])
}

/// Whether the name is that of a step in time: a sample, a tick.
pub(super) fn is_of_step(name: &str) -> bool {
    has_word(name, STEPS)
}

/// Whether the name is that of a number that an operating system gives to processes.
pub(super) fn is_of_process(name: &str) -> bool {
    matches!(
        words(last_part(name)).iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
        [.., "process" | "proc", "id"] | [.., "pid" | "processid" | "procid"]
    )
}

/// Whether the name is that of a number that an operating system gives to threads.
pub(super) fn is_of_thread(name: &str) -> bool {
    matches!(
        words(last_part(name)).iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
        [.., "thread", "id"] | [.., "tid" | "threadid"]
    )
}

/// Whether the name, of an export or of its time, says that its rows are events.
pub(crate) fn is_of_events(name: &str) -> bool {
    words(name).iter().any(|word| EVENTS.contains(&word.as_str()))
}

/// Whether two names have the same first word, which is a thing: `session_line` and `session_id`.
pub(super) fn share_a_noun(a: &str, b: &str) -> bool {
    let (a, b) = (words(last_part(a)), words(last_part(b)));
    let is_thing = |word: &&String| !IDENTIFIERS.contains(&word.as_str()) && !LINES.contains(&word.as_str());
    a.len() > 1 && a.first() == b.first() && a.first().filter(is_thing).is_some()
}

/// Whether the name says no more than that the column identifies something: `id`, `uuid`.
pub(crate) fn is_bare_id(name: &str) -> bool {
    words(name).iter().all(|word| IDENTIFIERS.contains(&word.as_str()))
}

/// Whether the column identifies what the export has rows of: `id`, or `trade_id` in
/// `stock_trades`.
pub(super) fn is_of_rows(column: &str, export: &str) -> bool {
    let column = words(column);
    let nouns: Vec<&String> = column.iter().filter(|word| !IDENTIFIERS.contains(&word.as_str())).collect();
    if nouns.len() == column.len() {
        return false;
    }
    let export = words(export);
    let row = export.iter().rev().find(|word| word.chars().any(char::is_alphabetic));
    match (nouns.as_slice(), row) {
        // A "uid" is that of a user.
        ([], _) => column.iter().all(|word| ["id", "pk", "uuid", "guid"].contains(&word.as_str())),
        ([noun], Some(row)) => *noun == row || plural(noun) == *row,
        _ => false,
    }
}

fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// Whether the name is that of a thing whose rows are its parts.
pub(super) fn is_whole(name: &str) -> bool {
    let words = words(name);
    let is_whole = |word: &String| {
        let stem = ["key", "id"].iter().find_map(|suffix| word.strip_suffix(suffix)).unwrap_or(word);
        WHOLES.contains(&word.as_str()) || WHOLES.contains(&stem)
    };
    // "order_id" and "session", but not "order_date".
    match words.as_slice() {
        [.., whole, last] if IDENTIFIERS.contains(&last.as_str()) => is_whole(whole),
        [.., last] => is_whole(last),
        [] => false,
    }
}

/// Number of names from which they are counted: `cat1` to `cat9`.
const MANY_COUNTED: usize = 4;

/// Whether each of several names is one of many that differ only in the number at their end.
pub(super) fn counted<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<bool> {
    let stem = |name: &'n str| name.trim_end_matches(|c: char| c.is_ascii_digit());
    let mut sizes: HashMap<&str, usize> = HashMap::new();
    for name in names.clone().filter(|name| stem(name) != *name) {
        *sizes.entry(stem(name)).or_default() += 1;
    }
    names
        .map(|name| stem(name) != name && sizes.get(stem(name)).is_some_and(|size| *size >= MANY_COUNTED))
        .collect()
}

/// Whether the name is that of a name: what a thing is called beside its id.
pub(super) fn is_label(name: &str) -> bool {
    words(last_part(name)).last().is_some_and(|word| LABELS.contains(&word.as_str()))
}

/// Whether the name is that of a thing that comes back: "user_id", "customer", "o_custkey".
pub(super) fn recurs(name: &str) -> bool {
    let words = words(last_part(name));
    let stem = |word: &str| {
        let stem = ["key", "id", "sk"].iter().find_map(|suffix| word.strip_suffix(suffix));
        RECURRING.contains(&stem.unwrap_or(word)) || RECURRING.contains(&word)
    };
    match words.as_slice() {
        [.., thing, last] if IDENTIFIERS.contains(&last.as_str()) || NUMBERS.contains(&last.as_str()) => {
            stem(thing)
        }
        [.., last] => stem(last),
        [] => false,
    }
}

/// Whether the name is that of an address or a number by which a person is reached.
pub(super) fn is_contact(name: &str) -> bool {
    let words = words(last_part(name));
    let is_contact = |word: &str| CONTACTS.contains(&word);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., contact, last] if NUMBERS.contains(last) => is_contact(contact),
        [.., last] => is_contact(last),
        [] => false,
    }
}

/// Whether the name is that of what stands for a thing beside its id: its hash, its address.
pub(crate) fn is_derived(name: &str) -> bool {
    words(name)
        .iter()
        .any(|word| ["hash", "hashed", "ip", "masked", "md5", "sha1", "sha256"].contains(&word.as_str()))
}

/// Whether the name of a number is that of a row of a calendar: "date_sk", "day_id", "timekey".
pub(super) fn is_of_calendar(name: &str) -> bool {
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

/// Whether the name of a number is that of a part of the day: "hour", "settlement_period".
pub(super) fn is_of_part_of_day(name: &str) -> bool {
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

/// Whether the name is that of a code, which things have: "precinct_code".
pub(super) fn is_of_code(name: &str) -> bool {
    const CODES: &[&str] = &["code", "cd", "codes", "kode", "codigo", "código", "codice"];
    let words = words(last_part(name));
    words.len() > 1 && words.last().is_some_and(|word| CODES.contains(&word.as_str()))
}

/// Whether the name is that of something that ledgers have beside their blocks.
pub(super) fn is_of_transaction(name: &str) -> bool {
    const OF_LEDGERS: &[&str] = &[
        "hash",
        "tx",
        "txid",
        "txhash",
        "txn",
        "transaction",
        "miner",
        "gas",
        "from",
        "to",
        "sender",
        "receiver",
        "recipient",
        "wallet",
        "contract",
        "token",
        "validator",
    ];
    words(name).iter().any(|word| OF_LEDGERS.contains(&word.as_str()))
}

/// Whether the name is that of the number of a block of a ledger.
pub(super) fn is_of_block(name: &str) -> bool {
    let words = words(last_part(name));
    let is_number = |word: &str| NUMBERS.contains(&word) || ["height", "index", "id"].contains(&word);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., "block", last] => is_number(last),
        [.., last] => ["block", "blocknumber", "blocknum", "blockheight"].contains(last),
        [] => false,
    }
}

/// Whether the name is that of an address.
pub(super) fn is_of_address(name: &str) -> bool {
    words(name).last().is_some_and(|word| ["address", "addr"].contains(&word.as_str()))
}

/// Whether the name is that of a number that counts: an offset, an index, but no item.
pub(super) fn is_of_count(name: &str) -> bool {
    words(last_part(name)).last().is_some_and(|word| LINES.contains(&word.as_str()) && word != "item")
}

/// Whether the name of a number is that of several things, which it counts: "requests",
/// "new_users".
pub(super) fn counts_things(name: &str) -> bool {
    let is_plural = |word: &String| {
        COUNTED.contains(&word.as_str()) || ENTITIES.iter().any(|thing| plural(thing) == *word)
    };
    words(last_part(name)).last().is_some_and(is_plural)
}

/// Whether the name is that of the number of a row in its file, as pandas and SQL write them.
pub(super) fn is_row_number(name: &str) -> bool {
    match words(name).iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["unnamed", number] | ["level", number] => number.bytes().all(|byte| byte.is_ascii_digit()),
        ["index" | "rownum" | "rownumber" | "rn"] | ["row", "num" | "number" | "nr" | "no"] => true,
        ["index", "level", number] => number.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

/// Whether the name says no more than that the column numbers something: `n`, `seq`, `row_number`.
pub(crate) fn is_bare_number(name: &str) -> bool {
    const COUNTS: &[&str] =
        &["n", "i", "no", "nr", "num", "number", "seq", "sequence", "idx", "index", "serial", "counter"];
    is_row_number(name) || words(name).iter().all(|word| COUNTS.contains(&word.as_str()))
}

/// Whether the name of a number is that of an amount of a thing, with the amount first, as in many
/// languages: "massa_voertuig", "saldo_cuenta".
pub(super) fn is_amount_of_thing(name: &str) -> bool {
    let words = words(without_brackets(last_part(name)));
    let is_amount = words.first().is_some_and(|word| AMOUNT_HEADS.contains(&word.as_str()));
    words.len() > 1 && is_amount && hint(name) == Some(Hint::Entity)
}

/// Whether the name of a number ends with its unit: "dwell_days".
pub(super) fn is_in_unit(name: &str) -> bool {
    const OF_TIME: &[&str] = &["seconds", "minutes", "hours", "days", "weeks", "months", "years"];
    let words = words(without_brackets(last_part(name)));
    let is_unit = |word: &String| UNITS.contains(&word.as_str()) || OF_TIME.contains(&word.as_str());
    words.len() > 1 && words.last().is_some_and(is_unit)
}

/// Whether the name of a number that is no point in time is that of a length of time: "air_time".
pub(super) fn is_duration(name: &str) -> bool {
    words(last_part(name)).last().is_some_and(|word| word == "time")
}

/// The name of a field within the structures that hold it: "orig_h" of "id.orig_h".
fn last_part(name: &str) -> &str {
    name.rsplit('.').find(|part| !part.is_empty()).unwrap_or(name)
}

/// Whether one of the words of a name, apart from what it is nested in, is among others.
fn has_word(name: &str, others: &[&str]) -> bool {
    words(last_part(name)).iter().any(|word| others.contains(&word.as_str()))
}

/// The name without what is in brackets behind it, such as a unit: "price (EUR)".
fn without_brackets(name: &str) -> &str {
    let outside = name.split(['(', '[']).next().unwrap_or(name);
    if outside.trim().is_empty() { name } else { outside }
}

/// Words that a column name consists of, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut lower = false;
    // The letters of a unit stay together: "dBm", "kWh".
    let is_unit =
        |part: &str| part.chars().any(char::is_uppercase) && UNITS.contains(&part.to_lowercase().as_str());
    let with_units = |part: &str| {
        let letters = part.trim_end_matches(|c: char| !c.is_alphanumeric());
        if is_unit(letters) { part.to_lowercase() } else { part.to_owned() }
    };
    let name: String = name.split_inclusive(|c: char| !c.is_alphanumeric()).map(with_units).collect();
    for c in name.chars() {
        if !c.is_alphanumeric() {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
            lower = false;
            continue;
        }
        if c.is_uppercase() && lower {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        lower = c.is_lowercase() || c.is_ascii_digit();
        word.extend(c.to_lowercase());
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

/// Fewest letters of a thing that is recognized within a longer word.
const LETTERS_OF_A_THING: usize = 6;

/// Whether a word consists of a thing and a word for its number: "accountnum".
fn is_number_of_thing(word: &str) -> bool {
    ENTITIES.iter().any(|thing| word.strip_prefix(thing).is_some_and(|rest| NUMBERS.contains(&rest)))
}

/// Whether a word ends with a thing: "orderaccount".
fn ends_with_thing(word: &str) -> bool {
    ENTITIES.iter().any(|thing| thing.len() >= LETTERS_OF_A_THING && word.ends_with(thing))
}

/// Returns what the name hints at, the most telling word last: "event_type" is a type, "user_id" an
/// identifier, "time_hour" a time.
pub(super) fn hints(name: &str) -> Vec<Hint> {
    let words = words(without_brackets(last_part(name)));
    let of = |word: &str| {
        // A prefix or suffix that stands for an identifier, as in "orderkey" and "userid".
        let is_word = NOT_IDS.iter().any(|ending| word.ends_with(ending));
        let joined = ["key", "id", "uuid", "nummer", "nr"]
            .iter()
            .any(|suffix| word.len() > suffix.len() + 2 && word.ends_with(suffix) && !is_word);
        let is_amount = AMOUNTS.iter().any(|amount| word.starts_with(amount) || word.ends_with(amount))
            || AMOUNT_ENDINGS.iter().any(|ending| word.ends_with(ending))
            || word.strip_suffix("area").is_some_and(|of| AREAS.contains(&of))
            || (words.len() > 1 && (UNITS.contains(&word) || AXES.contains(&word)));
        [
            (IDENTIFIERS.contains(&word) || joined || is_number_of_thing(word), Hint::Identifier),
            (LINES.contains(&word), Hint::Line),
            (TIMES.contains(&word), Hint::Time),
            (MEASURES.contains(&word) || is_amount, Hint::Measure),
            (TEXTS.contains(&word), Hint::Text),
            (ATTRIBUTES.contains(&word), Hint::Attribute),
            (DIMENSIONS.contains(&word), Hint::Dimension),
            (ENTITIES.contains(&word) || ends_with_thing(word), Hint::Entity),
        ]
        .into_iter()
        .find_map(|(matches, hint)| matches.then_some(hint))
    };
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        // "num_items" counts; "num_factura" is the number of one.
        ["num", .., last] if last.ends_with('s') => vec![Hint::Measure],
        ["num", ..] => vec![Hint::Identifier],
        [_, .., "in", "currency"] | [_, .., "in", _, "currency"] => vec![Hint::Measure],
        // How long a request took.
        [.., "time", "taken" | "spent" | "elapsed"] => vec![Hint::Measure],
        // "line_no" counts lines, "order_no" is that of an order.
        [.., thing, last] if NUMBERS.contains(last) && LINES.contains(thing) => vec![Hint::Line],
        [.., last] if words.len() > 1 && NUMBERS.contains(last) => vec![Hint::Identifier],
        // The hash of a content is no identity: equal contents have equal ones.
        [.., of, "hash"] if TEXTS.contains(of) || CONTENTS.contains(of) => vec![Hint::Attribute],
        // "from" and "to" name things only if nothing else does.
        all => {
            let ends = |word: &&&str| ["from", "to"].contains(*word);
            let found: Vec<Hint> =
                all.iter().filter(|word| !ends(word)).filter_map(|word| of(word)).collect();
            if found.is_empty() {
                all.iter().filter(ends).filter_map(|word| of(word)).collect()
            } else {
                found
            }
        }
    }
}

/// Returns the role that the name speaks for: that of its last telling word.
pub(super) fn hint(name: &str) -> Option<Hint> {
    let hints = hints(name);
    // "user_count" counts users, "amount_id" identifies amounts; but "from" and "to" alone name
    // ends.
    hints.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_a_number_are_counted_if_they_are_many() {
        let names = ["uid", "cat1", "cat2", "cat10", "cat7", "card1", "card2", "7", "catalog"];
        let expected = [false, true, true, true, true, false, false, false, false];
        assert_eq!(counted(names.into_iter()), expected);
    }

    #[test]
    fn words_count_as_a_whole_and_the_last_decides() {
        for (name, expected) in [
            ("user_id", Some(Hint::Identifier)),
            ("userId", Some(Hint::Identifier)),
            ("l_orderkey", Some(Hint::Identifier)),
            ("account", Some(Hint::Entity)),
            ("discount", Some(Hint::Measure)),
            ("event_type", Some(Hint::Dimension)),
            ("user_count", Some(Hint::Measure)),
            ("created_at", Some(Hint::Time)),
            ("l_linenumber", Some(Hint::Line)),
            ("c_comment", Some(Hint::Text)),
            ("durationMs", Some(Hint::Measure)),
            ("signal_dBm", Some(Hint::Measure)),
            ("db", None),
            ("Kostenstelle", None),
            ("preisliste", None),
            ("Listenpreis", Some(Hint::Measure)),
            ("Verbrauch kWh", Some(Hint::Measure)),
            ("num_items", Some(Hint::Measure)),
            ("seatNum", Some(Hint::Identifier)),
            ("num_factura", Some(Hint::Identifier)),
            ("case_no", Some(Hint::Identifier)),
            ("entry_seq_no", Some(Hint::Line)),
            ("line_number", Some(Hint::Line)),
            ("grid", None),
            ("pricepaid", Some(Hint::Measure)),
            ("is_valid", Some(Hint::Dimension)),
            ("content_hash", Some(Hint::Attribute)),
            ("tx_hash", Some(Hint::Identifier)),
            ("sha256", Some(Hint::Attribute)),
            ("distance_to_roads", Some(Hint::Measure)),
            ("to", Some(Hint::Entity)),
            ("X Coordinate (State Plane)", Some(Hint::Measure)),
            ("Amount [customer currency]", Some(Hint::Measure)),
            ("(id)", Some(Hint::Identifier)),
            ("xyz", None),
            ("c1", None),
            ("id.orig_h", None),
            ("payload.user_id", Some(Hint::Identifier)),
            ("src_port", Some(Hint::Attribute)),
            ("airport", None),
        ] {
            assert_eq!(hint(name), expected, "{name}");
        }
    }

    #[test]
    fn keys_of_calendars_and_numbers_of_blocks_are_times_by_their_names() {
        for name in ["ss_sold_date_sk", "DateKey", "day_id", "dim_time_sk", "monthid"] {
            assert!(is_of_calendar(name), "{name}");
        }
        for name in ["date", "update_id", "holiday_kind", "id", "customer_sk", "runtime", ""] {
            assert!(!is_of_calendar(name), "{name}");
        }
        for name in ["block_number", "blockNumber", "block", "block_height"] {
            assert!(is_of_block(name), "{name}");
        }
        for name in ["block_hash", "blocked", "number", "height", "block_size", ""] {
            assert!(!is_of_block(name), "{name}");
        }
    }

    #[test]
    fn amounts_of_things_are_told_from_numbers_of_things() {
        for name in ["massa_ledig_voertuig", "saldo_cuenta", "poids_colis"] {
            assert!(is_amount_of_thing(name), "{name}");
        }
        for name in [
            "gas_meter",
            "power_station",
            "cost_account",
            "balance_account",
            "saldo",
            "voertuig_massa",
            "peso_vehiculo_id",
            "",
        ] {
            assert!(!is_amount_of_thing(name), "{name}");
        }
    }

    #[test]
    fn people_and_devices_come_back_and_their_properties_do_not() {
        for name in ["user_id", "customer", "o_custkey", "card_no", "payload.deviceId"] {
            assert!(recurs(name), "{name}");
        }
        for name in ["user_count", "order_id", "card_type", "id", "hosted", "payment_intent", ""] {
            assert!(!recurs(name), "{name}");
        }
    }

    #[test]
    fn wholes_are_named_with_and_without_the_word_for_an_identifier() {
        for name in ["conversation_id", "orderId", "l_orderkey", "SESSION", "chat_room_id", "accountid"] {
            assert!(is_whole(name), "{name}");
        }
        for name in ["order_date", "user_id", "session_length", "id", "", "reorder", "sender_id"] {
            assert!(!is_whole(name), "{name}");
        }
    }

    #[test]
    fn the_id_of_the_rows_is_named_like_the_export() {
        for (column, export) in [
            ("trade_id", "stock_trades"),
            ("messageId", "mailbox-messages"),
            ("id", "x"),
            ("entry_id", "entries_2026"),
        ] {
            assert!(is_of_rows(column, export), "{column} {export}");
        }
        for (column, export) in [
            ("order_id", "order_items"),
            ("user_id", "events"),
            ("trades", "trades"),
            ("uid", "plays"),
            ("", ""),
        ] {
            assert!(!is_of_rows(column, export), "{column} {export}");
        }
    }

    #[test]
    fn numbers_of_rows_are_told_from_those_of_things() {
        for name in ["n", "seq", "Row_Number", "NR", "index", "Unnamed: 0", "seq_no"] {
            assert!(is_bare_number(name), "{name}");
        }
        for name in ["ITEM_NO", "visit_id", "id", "order_number", "c1", "invoice_nr", "serial_id"] {
            assert!(!is_bare_number(name), "{name}");
        }
    }

    #[test]
    fn names_of_contacts_units_creators_and_lines_are_told_from_others() {
        for (is_one, names, others) in [
            (
                is_contact as fn(&str) -> bool,
                vec!["email", "Mailing Address Telephone Number", "fax_no", "user.phone"],
                vec!["phone_model", "number", "mail_id", "telephone_exchange_code"],
            ),
            (
                is_in_unit,
                vec!["dwell_days", "wait_minutes", "powerKw"],
                vec!["days", "line_no", "seq", "weekday"],
            ),
            (is_of_commit, vec!["tx_id", "xid", "source.txId"], vec!["tax_id", "taxi", "text"]),
            (is_of_talk, vec!["channel_id", "ThreadId", "room"], vec!["roommate", "chatty"]),
            (is_of_author, vec!["author_id", "senderId"], vec!["authority", "authorized_by"]),
            (is_of_creator, vec!["CREATED_BY", "create_uid"], vec!["created_at", "updated_by", "creation"]),
            (
                is_of_transaction,
                vec!["txHash", "from", "gas_used", "transaction_index"],
                vec!["lot", "borough", "block", "zipcode"],
            ),
            (
                |name| hint(name) == Some(Hint::Measure),
                vec!["lotarea", "bldgarea", "time-taken", "CostInBillingCurrency"],
                vec!["tarea", "area", "community_area", "currency"],
            ),
        ] {
            assert!(names.iter().all(|name| is_one(name)), "{names:?}");
            assert!(!others.iter().any(|name| is_one(name)), "{others:?}");
        }
        assert!(share_a_noun("session_line_num", "session_id") && share_a_noun("orderLine", "order"));
        assert!(!share_a_noun("line_no", "line_id") && !share_a_noun("seq", "seq_id"));
        assert!(!share_a_noun("session_line_num", "process_id"));
    }

    #[test]
    fn times_of_receipt_and_of_the_end_are_later() {
        for name in ["received_at", "updatedAt", "END_TIME", "kafka_ingested"] {
            assert!(is_later(name), "{name}");
        }
        for name in ["measured_at", "created", "event_time", "sent_at", "started_at"] {
            assert!(!is_later(name), "{name}");
        }
    }

    #[test]
    fn the_last_telling_word_decides() {
        assert_eq!(hint("event_type"), Some(Hint::Dimension));
        assert_eq!(hint("user_id"), Some(Hint::Identifier));
        assert_eq!(hint("userCount"), Some(Hint::Measure));
        assert_eq!(hint("time_hour"), Some(Hint::Dimension));
        assert_eq!(hint("grid"), None);
    }
}
