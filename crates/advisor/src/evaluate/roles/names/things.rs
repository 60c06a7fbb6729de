//! Names of things: people, talks, ledgers, processes, and the wholes that rows are parts of.

use crate::evaluate::roles::names::hint::Hint;
use crate::evaluate::roles::names::hints::hint;
use crate::evaluate::roles::names::unspaced::{is_unspaced_label, is_unspaced_whole, unspaced_recurs};
use crate::evaluate::roles::names::words::{has_word, last_part, plural, words};
use crate::evaluate::roles::words::{
    CONTACTS, EVENTS, HANDLED, IDENTIFIERS, LABELS, LINES, NUMBERS, RECURRING, STAFF, STORED, TENANTS, WHOLES,
};

/// Whether the name denotes a container of messages: `channel_id`, `thread`.
pub(in crate::evaluate::roles) fn denotes_talk(name: &str) -> bool {
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

/// Whether the name denotes the author of a message: `author_id`, `sender`.
pub(in crate::evaluate::roles) fn denotes_author(name: &str) -> bool {
    const AUTHORS: &[&str] = &["author", "sender", "poster", "speaker", "commenter", "writer"];
    has_word(name, AUTHORS)
}

/// Whether the name denotes a stream of messages: `topic`, `kafka_topic`.
pub(crate) fn denotes_topic(name: &str) -> bool {
    ends_with_word(name, "topic")
}

/// Whether the name denotes a part of a stream of messages: `partition`.
pub(crate) fn denotes_log_partition(name: &str) -> bool {
    ends_with_word(name, "partition")
}

/// Whether the name denotes the position of a message in its part of a stream: `offset`.
pub(crate) fn denotes_offset(name: &str) -> bool {
    ends_with_word(name, "offset")
}

fn ends_with_word(name: &str, ending: &str) -> bool {
    words(last_part(name)).last().is_some_and(|word| word == ending)
}

/// Whether the name denotes one view of a page: `page_view_id`.
pub(in crate::evaluate::roles) fn denotes_page_view(name: &str) -> bool {
    let words = words(last_part(name));
    let identifies = |last: &str| IDENTIFIERS.contains(&last);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., "page" | "screen", "view", last] | [.., "pageview" | "screenview", last] => identifies(last),
        [.., last] => ["pageviewid", "screenviewid"].contains(last),
        [] => false,
    }
}

/// Whether the name denotes the place of a stored file: `cv_file`, `avatar_url`.
pub(in crate::evaluate::roles) fn denotes_stored(name: &str) -> bool {
    words(last_part(name)).last().is_some_and(|word| STORED.contains(&word.as_str()))
}

/// Whether the name denotes one of those that share a system: `tenant_id`, `org`, `MANDT`.
pub(crate) fn denotes_tenant(name: &str) -> bool {
    match words(last_part(name)).as_slice() {
        [tenant] => TENANTS.contains(&tenant.as_str()),
        [.., tenant, last] => TENANTS.contains(&tenant.as_str()) && IDENTIFIERS.contains(&last.as_str()),
        [] => false,
    }
}

/// Whether the name denotes what a change did to a row: `__op`, `change_type`.
pub(in crate::evaluate::roles) fn denotes_operation(name: &str) -> bool {
    let words = words(last_part(name));
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., "op" | "dml"] | ["operation"] => true,
        [.., "cdc" | "change" | "dml" | "row", last] => ["operation", "op", "type", "kind"].contains(last),
        _ => false,
    }
}

/// Whether the name denotes the bases of a variant, beside positions: `REF`, `alt_allele`.
pub(in crate::evaluate::roles) fn denotes_allele(name: &str) -> bool {
    has_word(name, &["ref", "alt", "allele", "alleles", "allele1", "allele2", "genotype"])
}

/// Whether the name says that a row is deleted: `__deleted`, `is_deleted`.
pub(in crate::evaluate::roles) fn denotes_deletion(name: &str) -> bool {
    has_word(name, &["deleted", "tombstone"])
}

/// Words for the ends of something.
const FIRST: &[&str] = &["first", "start", "begin", "from", "min", "low", "lower"];
const LAST: &[&str] = &["last", "final", "end", "to", "max", "high", "upper", "until"];

/// Whether a name may denote one end of something: `first_update_id`.
pub(in crate::evaluate::roles) fn has_end(name: &str) -> bool {
    has_word(name, FIRST) || has_word(name, LAST)
}

/// If two names denote the ends of something, such as `first_update_id` and `final_update_id`,
/// returns whether the first name denotes the start.
pub(in crate::evaluate::roles) fn is_first_of(name: &str, other: &str) -> Option<bool> {
    let bound = |name: &str| {
        let words = words(last_part(name));
        let at =
            words.iter().position(|word| [FIRST, LAST].iter().any(|all| all.contains(&word.as_str())))?;
        let is_first = words.get(at).is_some_and(|word| FIRST.contains(&word.as_str()));
        let others: Vec<String> = words.iter().take(at).chain(words.iter().skip(at + 1)).cloned().collect();
        Some((is_first, others))
    };
    let ((own, words), (of_other, others)) = (bound(name)?, bound(other)?);
    (own != of_other && !words.is_empty() && words == others).then_some(own)
}

/// Whether the name denotes a step of a traced request.
pub(in crate::evaluate::roles) fn denotes_span(name: &str) -> bool {
    has_word(name, &["span"])
}

/// Whether the name denotes a traced request.
pub(in crate::evaluate::roles) fn denotes_trace(name: &str) -> bool {
    has_word(name, &["trace"])
}

/// Whether the name denotes a number that an operating system gives to processes.
pub(in crate::evaluate::roles) fn denotes_process(name: &str) -> bool {
    matches!(
        words(last_part(name)).iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
        [.., "process" | "proc", "id"] | [.., "pid" | "processid" | "procid"]
    )
}

/// Whether the name denotes a number that an operating system gives to threads.
pub(in crate::evaluate::roles) fn denotes_thread(name: &str) -> bool {
    matches!(
        words(last_part(name)).iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
        [.., "thread", "id"] | [.., "tid" | "threadid"]
    )
}

/// Whether the name denotes the person who handled what a row is about: "cashier_id", "sales_rep",
/// "approved_by".
pub(crate) fn denotes_staff(name: &str) -> bool {
    let words = words(last_part(name));
    let is_staff = |word: &str| {
        let stem = ["key", "id"].iter().find_map(|suffix| word.strip_suffix(suffix)).unwrap_or(word);
        STAFF.contains(&word) || STAFF.contains(&stem)
    };
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["user", "agent", ..] => false,
        [.., done, "by"] => HANDLED.contains(done),
        [.., staff, last] if IDENTIFIERS.contains(last) || NUMBERS.contains(last) || *last == "code" => {
            is_staff(staff)
        }
        [.., last] => is_staff(last),
        [] => false,
    }
}

/// Whether the name denotes one of the two sides of a game: "white_id", "home_team", "player1".
pub(crate) fn denotes_side(name: &str) -> bool {
    const SIDES: &[&str] = &["white", "black", "home", "away", "visitor", "winner", "loser", "red", "blue"];
    const PLAYERS: &[&str] = &["player", "team", "opponent", "fighter", "club", "side"];
    let words = words(last_part(name));
    let is_numbered = |word: &String| {
        let player = word.trim_end_matches(['1', '2']);
        player != word && PLAYERS.contains(&player)
    };
    words.iter().any(|word| SIDES.contains(&word.as_str()) || is_numbered(word))
        || words.windows(2).any(|pair| {
            matches!(pair, [player, number] if PLAYERS.contains(&player.as_str())
                && ["1", "2", "a", "b"].contains(&number.as_str()))
        })
}

/// Whether the name denotes what happened, or what was measured: "event_name", "action", "metric".
pub(crate) fn denotes_action(name: &str) -> bool {
    has_word(name, &["event", "action", "type", "kind", "op", "operation", "activity", "metric", "name"])
}

/// Whether the name of an export or of its time indicates that its rows are events.
pub(crate) fn denotes_events(name: &str) -> bool {
    words(name).iter().any(|word| EVENTS.contains(&word.as_str()))
}

/// Whether the name of a row id denotes a record, rather than an event: "AppsFlyer ID", but not
/// "id" or "request_id".
pub(in crate::evaluate::roles) fn is_id_of_record(name: &str) -> bool {
    const OCCURRENCES: &[&str] = &[
        "flow",
        "conn",
        "connection",
        "packet",
        "request",
        "req",
        "message",
        "msg",
        "record",
        "row",
        "transaction",
        "txn",
        "tx",
        "query",
        "call",
        "visit",
        "view",
    ];
    let words = words(last_part(name));
    let occurs = |word: &String| EVENTS.contains(&word.as_str()) || OCCURRENCES.contains(&word.as_str());
    words.len() > 1 && hint(name) == Some(Hint::Identifier) && !words.iter().any(occurs)
}

/// Whether the name of a number denotes one of the two ports of a connection: "src_port", "dport".
pub(crate) fn denotes_port_of_connection(name: &str) -> bool {
    const ENDS: &[&str] = &[
        "src",
        "source",
        "dst",
        "dest",
        "destination",
        "local",
        "remote",
        "client",
        "server",
        "orig",
        "resp",
    ];
    match words(last_part(name)).iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., end, "port"] => ENDS.contains(end),
        [.., joined] => {
            let end = joined.strip_suffix("port");
            end.is_some_and(|end| ENDS.contains(&end) || ["s", "d"].contains(&end))
        }
        [] => false,
    }
}

/// Whether the name denotes a thing whose rows are its parts.
pub(in crate::evaluate::roles) fn is_whole(name: &str) -> bool {
    let words = words(name);
    let is_whole = |word: &String| {
        let stem = ["key", "id"].iter().find_map(|suffix| word.strip_suffix(suffix)).unwrap_or(word);
        WHOLES.contains(&word.as_str()) || WHOLES.contains(&stem)
    };
    // "order_id" and "session", but not "order_date".
    match words.as_slice() {
        [.., whole, last] if IDENTIFIERS.contains(&last.as_str()) => is_whole(whole),
        [.., last] => is_whole(last) || is_unspaced_whole(name),
        [] => false,
    }
}

/// Whether the name denotes a name of a thing, in addition to its id.
pub(crate) fn is_label(name: &str) -> bool {
    is_unspaced_label(name)
        || words(last_part(name)).last().is_some_and(|word| LABELS.contains(&word.as_str()))
}

/// Whether the name denotes a thing that recurs: "user_id", "customer", "o_custkey".
pub(in crate::evaluate::roles) fn recurs(name: &str) -> bool {
    const KINDS_OF_IDS: &[&str] =
        &["pseudo", "anonymous", "anon", "unique", "global", "internal", "external", "hashed"];
    let words = words(last_part(name));
    let stem = |word: &str| {
        let stem = ["key", "id", "sk"].iter().find_map(|suffix| word.strip_suffix(suffix));
        RECURRING.contains(&stem.unwrap_or(word)) || RECURRING.contains(&word)
    };
    let identifies = |last: &str| IDENTIFIERS.contains(&last) || NUMBERS.contains(&last);
    match words.as_slice() {
        // A user is known by another id to each system: "user_pseudo_id".
        [.., thing, kind, last] if identifies(last) && KINDS_OF_IDS.contains(&kind.as_str()) => stem(thing),
        [.., thing, last] if identifies(last) => stem(thing),
        [.., last] => stem(last) || unspaced_recurs(name),
        [] => false,
    }
}

/// Whether the name denotes a contact address or number of a person.
pub(in crate::evaluate::roles) fn is_contact(name: &str) -> bool {
    let words = words(last_part(name));
    let is_contact = |word: &str| CONTACTS.contains(&word);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., contact, last] if NUMBERS.contains(last) => is_contact(contact),
        [.., last] => is_contact(last),
        [] => false,
    }
}

/// Whether the name denotes something derived from a thing, such as its hash or its address.
pub(crate) fn is_derived(name: &str) -> bool {
    words(name)
        .iter()
        .any(|word| ["hash", "hashed", "ip", "masked", "md5", "sha1", "sha256"].contains(&word.as_str()))
}

/// Whether the name denotes a code of a thing: "precinct_code".
pub(in crate::evaluate::roles) fn denotes_code(name: &str) -> bool {
    const CODES: &[&str] = &["code", "cd", "codes", "kode", "codigo", "código", "codice"];
    let words = words(last_part(name));
    words.len() > 1 && words.last().is_some_and(|word| CODES.contains(&word.as_str()))
}

/// Whether the name denotes something that ledgers have in addition to blocks.
pub(in crate::evaluate::roles) fn denotes_transaction(name: &str) -> bool {
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

/// Whether the name denotes the number of a block of a ledger.
pub(in crate::evaluate::roles) fn denotes_block(name: &str) -> bool {
    let words = words(last_part(name));
    let is_number = |word: &str| NUMBERS.contains(&word) || ["height", "index", "id"].contains(&word);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [.., "block", last] => is_number(last),
        [.., last] => ["block", "blocknumber", "blocknum", "blockheight"].contains(last),
        [] => false,
    }
}

/// Whether the name denotes an address.
pub(in crate::evaluate::roles) fn denotes_address(name: &str) -> bool {
    words(name).last().is_some_and(|word| ["address", "addr"].contains(&word.as_str()))
}

/// First word of a name, if it denotes a thing: "session" of `session_line` and `session_id`.
pub(in crate::evaluate::roles) fn noun(name: &str) -> Option<String> {
    let is_thing = |word: &String| !IDENTIFIERS.contains(&word.as_str()) && !LINES.contains(&word.as_str());
    words(last_part(name)).into_iter().next().filter(is_thing)
}

/// Whether a name has several words.
pub(in crate::evaluate::roles) fn has_several_words(name: &str) -> bool {
    words(last_part(name)).len() > 1
}

/// Whether the name only says that the column identifies something: `id`, `uuid`.
pub(crate) fn is_bare_id(name: &str) -> bool {
    words(name).iter().all(|word| IDENTIFIERS.contains(&word.as_str()))
}

/// Whether the column identifies the rows of the export: `id`, or `trade_id` in `stock_trades`.
pub(in crate::evaluate::roles) fn is_of_rows(column: &str, export: &str) -> bool {
    let column = words(column);
    let nouns: Vec<&String> = column.iter().filter(|word| !IDENTIFIERS.contains(&word.as_str())).collect();
    if nouns.len() == column.len() {
        return false;
    }
    let export = words(export);
    let row = export.iter().rev().find(|word| word.chars().any(char::is_alphabetic));
    match (nouns.as_slice(), row) {
        // A "uid" identifies a user.
        ([], _) => column.iter().all(|word| ["id", "pk", "uuid", "guid"].contains(&word.as_str())),
        ([noun], Some(row)) => *noun == row || plural(noun) == *row,
        _ => false,
    }
}
