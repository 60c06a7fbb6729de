//! Roles suggested by names.

use crate::evaluate::roles::names::hint::Hint;
use crate::evaluate::roles::names::unspaced::hint_of_unspaced;
use crate::evaluate::roles::names::words::{last_part, without_brackets, words};
use crate::evaluate::roles::words::{
    AGGREGATES, AMOUNT_ENDINGS, AMOUNTS, AREAS, ATTRIBUTES, AXES, CONTENTS, COORDINATES, DIMENSIONS,
    ENTITIES, IDENTIFIERS, LINES, MEASURES, NOT_IDS, NUMBERS, PARTICIPLES, TEXTS, TIMES, UNITS,
};

/// Weight of a hint.
pub(in crate::evaluate::roles) const WEIGHT: f64 = 2.5;

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

/// Whether a word says more than the amount that its name may begin with.
fn says_more(word: &str) -> bool {
    [IDENTIFIERS, DIMENSIONS, ATTRIBUTES, TIMES].iter().any(|words| words.contains(&word))
}

/// Whether a name says how many were what its last word says: "emails_sent", "played". A device that
/// was used is no count, nor is a flag.
fn counts_events(words: &[&str]) -> bool {
    let counts = |noun: &str| {
        let is_other = says_more(noun) || ENTITIES.contains(&noun) || TEXTS.contains(&noun);
        noun.ends_with('s') && noun != "was" && !is_other
    };
    match words {
        [only] => PARTICIPLES.contains(only),
        [.., noun, last] => PARTICIPLES.contains(last) && counts(noun),
        [] => false,
    }
}

/// Whether a word that follows "no" may be the thing that has the number.
fn is_singular(word: &str) -> bool {
    !word.ends_with('s') && !["of", "show", "data", "claim", "value", "answer", "reply"].contains(&word)
}

/// Returns the hints of a name, the most telling word's last: "event_type" is a type, "user_id" an
/// identifier, "time_hour" a time.
pub(in crate::evaluate::roles) fn hints(name: &str) -> Vec<Hint> {
    if let Some(hint) = hint_of_unspaced(name) {
        return vec![hint];
    }
    let words = words(without_brackets(last_part(name)));
    let hint_of = |word: &str| {
        // A prefix or suffix that denotes an identifier, as in "orderkey" and "userid".
        let is_word = NOT_IDS.iter().any(|ending| word.ends_with(ending));
        let joined = ["key", "id", "uuid", "nummer", "nr"]
            .iter()
            .any(|suffix| word.len() > suffix.len() + 2 && word.ends_with(suffix) && !is_word);
        let is_amount = AMOUNTS.iter().any(|amount| word.starts_with(amount) || word.ends_with(amount))
            || AMOUNT_ENDINGS.iter().any(|ending| word.ends_with(ending))
            || word.strip_suffix("area").is_some_and(|stem| AREAS.contains(&stem))
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
        ["num" | "nr" | "nro", .., last] if last.ends_with('s') => vec![Hint::Measure],
        ["nr" | "nro", .., last] if LINES.contains(last) => vec![Hint::Line],
        // In Romance languages, a number comes before its thing: "no_carte". "no_rooms" counts, and
        // "no_of_calls" does.
        ["no" | "numero" | "número" | "numéro", thing, ..] if is_singular(thing) => vec![Hint::Identifier],
        ["num", ..] | ["nr" | "nro", _, ..] => vec![Hint::Identifier],
        // Quantities and amounts in Portuguese: "QT_VOTOS".
        ["qt" | "qtd" | "qtde" | "vl" | "vlr", .., last] if !says_more(last) => vec![Hint::Measure],
        [first, ..] if first.starts_with("numberof") => vec![Hint::Measure],
        [_, .., "in", "currency"] | [_, .., "in", _, "currency"] => vec![Hint::Measure],
        // "tot_claims" counts claims; "total_id" would identify one, and "total_type" is a type.
        [first, .., last] if AGGREGATES.contains(first) && !says_more(last) => vec![Hint::Measure],
        [.., last] if words.iter().any(|word| COORDINATES.contains(&word.as_str())) && !says_more(last) => {
            vec![Hint::Measure]
        }
        // A place that an address was looked up to be in: "geo_city", "geo_dest".
        ["geo", .., last] if !IDENTIFIERS.contains(last) => vec![Hint::Dimension],
        // One half of an identifier of 128 bits.
        [.., previous, "high" | "hi" | "low" | "lo" | "msb" | "lsb"]
            if hint_of(previous) == Some(Hint::Identifier) =>
        {
            vec![Hint::Identifier]
        }
        // The last digits of a card number, which many cards share.
        [.., "last4" | "last6" | "lastfour" | "first4" | "first6" | "masked" | "redacted"]
        | [.., "last" | "first", "4" | "6" | "four" | "six" | "digits"]
        | [.., "last" | "first", "4" | "6" | "four" | "six", "digits"] => vec![Hint::Attribute],
        [_, .., "iban"] => vec![Hint::Identifier],
        // How long a request took.
        [.., "time", "taken" | "spent" | "elapsed"] => vec![Hint::Measure],
        all if counts_events(all) => vec![Hint::Measure],
        // "line_no" counts lines, "order_no" identifies an order.
        [.., thing, last] if NUMBERS.contains(last) && LINES.contains(thing) => vec![Hint::Line],
        [.., last] if words.len() > 1 && NUMBERS.contains(last) => vec![Hint::Identifier],
        // The hash of a content is no identity: equal contents have equal ones.
        [.., previous, "hash"] if TEXTS.contains(previous) || CONTENTS.contains(previous) => {
            vec![Hint::Attribute]
        }
        // "from" and "to" name things only if nothing else does.
        all => {
            let ends = |word: &&&str| ["from", "to"].contains(*word);
            let hints: Vec<Hint> =
                all.iter().filter(|word| !ends(word)).filter_map(|word| hint_of(word)).collect();
            if hints.is_empty() {
                all.iter().filter(ends).filter_map(|word| hint_of(word)).collect()
            } else {
                hints
            }
        }
    }
}

/// Returns the role that the name suggests, by its last telling word.
pub(in crate::evaluate::roles) fn hint(name: &str) -> Option<Hint> {
    let hints = hints(name);
    // "user_count" counts users, "amount_id" identifies amounts; but "from" and "to" alone name
    // ends.
    hints.last().copied()
}
