//! Names of columns that indicate a join between two tables.

/// Names of the id column within its own table.
const OWN_IDS: &[&str] = &["id", "key", "uuid", "guid", "pk", "code", "no", "number"];
/// Longest prefix that abbreviates the table, as in `o_orderkey`.
const LONGEST_PREFIX: usize = 3;

/// Relation of the names of two columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameRelation {
    /// Equal names.
    Same,
    /// One names the other's table, or they differ in a prefix that abbreviates the table.
    Refers,
}

/// Compares the names of columns of two tables; `None` if they indicate no join.
pub(super) fn alike(left: (&str, &str), right: (&str, &str)) -> Option<NameRelation> {
    let (a, b) = (plain(left.1), plain(right.1));
    if is_own_id(left.1) || is_own_id(right.1) {
        let refers = is_reference(left, right.1) || is_reference(right, left.1);
        return refers.then_some(NameRelation::Refers);
    }
    if a == b {
        return Some(NameRelation::Same);
    }
    let stripped = |name: &str| {
        let (prefix, rest) = name.split_once('_')?;
        let short = prefix.chars().count() <= LONGEST_PREFIX && rest.chars().count() > LONGEST_PREFIX;
        short.then(|| plain(rest))
    };
    let without_prefix = stripped(left.1).zip(stripped(right.1)).is_some_and(|(a, b)| a == b);
    without_prefix.then_some(NameRelation::Refers)
}

/// Whether `name` combines the name of a table and of its id, such as `user_id` for `users.id`.
fn is_reference((table, id): (&str, &str), name: &str) -> bool {
    let (name, id) = (plain(name), plain(id));
    is_own_id(&id)
        && singulars(table).into_iter().any(|table| name == table || name.strip_suffix(&id) == Some(&table))
}

fn is_own_id(name: &str) -> bool {
    OWN_IDS.contains(&plain(name).as_str())
}

/// Forms of a table's name that columns may begin with.
fn singulars(table: &str) -> Vec<String> {
    let plural = plain(table);
    let mut forms = vec![plural.clone()];
    forms.extend(plural.strip_suffix("ies").map(|stem| format!("{stem}y")));
    forms.extend(plural.strip_suffix("es").map(str::to_owned));
    forms.extend(plural.strip_suffix('s').map(str::to_owned));
    forms
}

/// A name in lower case, without word separators.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_refer_to_each_other_are_found() {
        for (left, right, expected) in [
            (("orders", "o_orderkey"), ("lineitem", "l_orderkey"), Some(NameRelation::Refers)),
            (("users", "id"), ("events", "user_id"), Some(NameRelation::Refers)),
            (("users", "id"), ("events", "userId"), Some(NameRelation::Refers)),
            (("categories", "id"), ("items", "category_id"), Some(NameRelation::Refers)),
            (("events", "user_id"), ("sessions", "user_id"), Some(NameRelation::Same)),
            (("devices", "uuid"), ("readings", "device_uuid"), Some(NameRelation::Refers)),
            (("users", "id"), ("events", "id"), None),
            (("users", "id"), ("events", "campaign_id"), None),
            (("orders", "o_orderkey"), ("lineitem", "l_partkey"), None),
            (("a", "x_id"), ("b", "y_id"), None),
        ] {
            assert_eq!(alike(left, right), expected, "{left:?} {right:?}");
            assert_eq!(alike(right, left), expected, "{right:?} {left:?}");
        }
    }
}
