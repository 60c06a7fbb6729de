//! Names as words.

use crate::evaluate::roles::words::UNITS;

pub(super) fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ if noun.ends_with(['s', 'x']) || noun.ends_with("ch") => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// The name of a field within the structures that hold it: "orig_h" of "id.orig_h".
pub(super) fn last_part(name: &str) -> &str {
    name.rsplit('.').find(|part| !part.is_empty()).unwrap_or(name)
}

/// Whether a name, without the names that it is nested in, contains one of `others`.
pub(super) fn has_word(name: &str, others: &[&str]) -> bool {
    words(last_part(name)).iter().any(|word| others.contains(&word.as_str()))
}

/// The name without a suffix in brackets, such as a unit: "price (EUR)".
pub(super) fn without_brackets(name: &str) -> &str {
    let outside = name.split(['(', '[']).next().unwrap_or(name);
    if outside.trim().is_empty() { name } else { outside }
}

/// Words that a column name consists of, in lower case.
pub(super) fn words(name: &str) -> Vec<String> {
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
