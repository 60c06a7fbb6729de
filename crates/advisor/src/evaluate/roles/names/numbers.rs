//! Names of numbers: of rows, amounts and counts.

use std::collections::HashMap;

use crate::evaluate::roles::names::hint::Hint;
use crate::evaluate::roles::names::hints::hint;
use crate::evaluate::roles::names::words::{last_part, plural, without_brackets, words};
use crate::evaluate::roles::words::{AMOUNT_HEADS, COUNTED, ENTITIES, LINES, NUMBERS, UNITS};

/// Smallest number of names that form a numbered series: `cat1` to `cat9`.
const MANY_COUNTED: usize = 4;

/// Whether each of several names is one of many that differ only in the number at their end.
pub(in crate::evaluate::roles) fn counted<'n>(names: impl Iterator<Item = &'n str> + Clone) -> Vec<bool> {
    let stem = |name: &'n str| name.trim_end_matches(|c: char| c.is_ascii_digit());
    let mut sizes: HashMap<&str, usize> = HashMap::new();
    for name in names.clone().filter(|name| stem(name) != *name) {
        *sizes.entry(stem(name)).or_default() += 1;
    }
    names
        .map(|name| stem(name) != name && sizes.get(stem(name)).is_some_and(|size| *size >= MANY_COUNTED))
        .collect()
}

/// Returns a name with `#` in place of each number.
pub(in crate::evaluate::roles) fn without_numbers(name: &str) -> String {
    let mut rest = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '0'..='9' if rest.ends_with('#') => {}
            '0'..='9' => rest.push('#'),
            other => rest.push(other),
        }
    }
    rest
}

/// Whether the name denotes a count: an offset, an index, but not an item.
pub(in crate::evaluate::roles) fn denotes_count(name: &str) -> bool {
    words(last_part(name)).last().is_some_and(|word| LINES.contains(&word.as_str()) && word != "item")
}

/// Whether the name of a number is a plural, which it counts: "requests", "new_users".
pub(in crate::evaluate::roles) fn counts_things(name: &str) -> bool {
    let is_plural = |word: &String| {
        COUNTED.contains(&word.as_str()) || ENTITIES.iter().any(|thing| plural(thing) == *word)
    };
    words(last_part(name)).last().is_some_and(is_plural)
}

/// Whether the name denotes the number of a row in its file, as pandas, R and SQL write them.
pub(in crate::evaluate::roles) fn is_row_number(name: &str) -> bool {
    match words(name).iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["unnamed", number] | ["level", number] => number.bytes().all(|byte| byte.is_ascii_digit()),
        ["index" | "rownum" | "rownumber" | "rowname" | "rownames" | "rn"]
        | ["row", "num" | "number" | "nr" | "no"] => true,
        ["index", "level", number] => number.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

/// Whether the last word of a name denotes a number, which may be written as text: "point_number".
pub(in crate::evaluate::roles) fn denotes_number(name: &str) -> bool {
    let words = words(last_part(name));
    words.last().is_some_and(|word| NUMBERS.contains(&word.as_str()) || LINES.contains(&word.as_str()))
}

/// Whether the name only says that the column numbers something: `n`, `seq`, `row_number`.
pub(crate) fn is_bare_number(name: &str) -> bool {
    const COUNTS: &[&str] =
        &["n", "i", "no", "nr", "num", "number", "seq", "sequence", "idx", "index", "serial", "counter"];
    is_row_number(name) || words(name).iter().all(|word| COUNTS.contains(&word.as_str()))
}

/// Whether the name denotes a chromosome or another sequence of bases.
pub(in crate::evaluate::roles) fn denotes_sequence_of_bases(name: &str) -> bool {
    const SEQUENCES: &[&str] = &["chrom", "chr", "chromosome", "contig", "scaffold", "seqname", "seqid"];
    words(last_part(name)).iter().any(|word| SEQUENCES.contains(&word.as_str()))
}

/// Whether the name of a number denotes a position on a sequence of bases: "pos", "chromStart".
pub(in crate::evaluate::roles) fn denotes_base_position(name: &str) -> bool {
    const POSITIONS: &[&str] =
        &["pos", "position", "start", "end", "stop", "bp", "locus", "coordinate", "coord"];
    words(last_part(name)).iter().any(|word| POSITIONS.contains(&word.as_str()))
}

/// Whether the name of a number denotes an amount of a thing, with the amount first, as in many
/// languages: "massa_voertuig", "saldo_cuenta".
pub(in crate::evaluate::roles) fn is_amount_of_thing(name: &str) -> bool {
    let words = words(without_brackets(last_part(name)));
    let is_amount = words.first().is_some_and(|word| AMOUNT_HEADS.contains(&word.as_str()));
    words.len() > 1 && is_amount && hint(name) == Some(Hint::Entity)
}

/// Whether the name of a number ends with its unit: "dwell_days".
pub(in crate::evaluate::roles) fn is_in_unit(name: &str) -> bool {
    const OF_TIME: &[&str] = &["seconds", "minutes", "hours", "days", "weeks", "months", "years"];
    let words = words(without_brackets(last_part(name)));
    let is_unit = |word: &String| UNITS.contains(&word.as_str()) || OF_TIME.contains(&word.as_str());
    words.len() > 1 && words.last().is_some_and(is_unit)
}
