//! Abbreviated names of old systems: all names of a table begin with the same two letters, and end
//! with two that tell what they denote: ITITNO and ITTRQT are the number of an item and a quantity.

use crate::evaluate::roles::names::hint::Hint;

/// Fewest names that show a common prefix.
const MIN_NAMES: usize = 6;
/// Letters of the prefix, and fewest and most letters of a name.
const PREFIX: usize = 2;
const SHORTEST: usize = 5;
const LONGEST: usize = 10;

/// Endings by what they denote.
const ENDINGS: &[(Hint, &[&str])] = &[
    (Hint::Line, &["LINE", "LINO", "LNNO"]),
    (Hint::Identifier, &["NO", "NR", "NUM", "ID", "KEY"]),
    (Hint::Time, &["DT", "DTE", "DAT", "TM", "TIM"]),
    (Hint::Measure, &["QT", "QTY", "AM", "AMT", "CST", "COST", "PRC", "PCT", "WGT", "BAL"]),
    (Hint::Dimension, &["TYP", "STS", "STAT", "FLG", "CD", "CODE", "CUR"]),
    (Hint::Text, &["DS", "DSC", "DESC", "TXT", "NM", "NAME"]),
];

/// Returns what names denote by their endings, if all names of a table are abbreviated behind the
/// same prefix; else none.
pub(crate) fn hints_behind_prefix<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<Option<Hint>> {
    let is_abbreviated = |name: &str| {
        (SHORTEST..=LONGEST).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    let mut prefixes = names.clone().map(|name| name.get(..PREFIX));
    let first = prefixes.next().flatten();
    let has_prefix = first.is_some()
        && prefixes.all(|prefix| prefix == first)
        && names.clone().all(is_abbreviated)
        && names.clone().count() >= MIN_NAMES;
    let hint = |name: &str| {
        let rest = name.get(PREFIX..)?;
        let ends = |ending: &&str| rest.ends_with(*ending);
        ENDINGS.iter().find_map(|(hint, endings)| endings.iter().any(ends).then_some(*hint))
    };
    names.map(|name| if has_prefix { hint(name) } else { None }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_tell_behind_a_common_prefix() {
        let names = ["ITCONO", "ITITNO", "ITWHLO", "ITTTYP", "ITSEQN", "ITTRDT", "ITTRQT", "ITUCST"];
        let expected = [
            Some(Hint::Identifier),
            Some(Hint::Identifier),
            None,
            Some(Hint::Dimension),
            None,
            Some(Hint::Time),
            Some(Hint::Measure),
            Some(Hint::Measure),
        ];
        assert_eq!(hints_behind_prefix(names.into_iter()), expected);
        for other in [
            &["ITCONO", "ITITNO", "ITWHLO", "ITTTYP", "ITSEQN", "GLTRDT"][..],
            &["ITCONO", "ITITNO", "ITWHLO"],
            &["item_no", "item_dt", "item_qt", "item_st", "item_nm", "item_cd"],
            &[],
        ] {
            assert!(hints_behind_prefix(other.iter().copied()).iter().all(Option::is_none), "{other:?}");
        }
    }
}
