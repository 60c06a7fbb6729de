//! Tokens of statements: the ends of statements, brackets, elements and keys.

use proptest::prelude::*;

use super::*;

/// Returns the tokens of one statement.
fn tokens(text: &str) -> Vec<Token> {
    let mut statements = statements(text).unwrap();
    assert_eq!(statements.len(), 1, "{text}");
    statements.remove(0)
}

#[test]
fn statements_end_at_semicolons_outside_texts_names_and_comments() {
    for (text, expected) in [
        ("", &[0][..]),
        ("a b; c", &[2, 1]),
        ("a;;b;", &[1, 0, 1, 0]),
        ("'a;b' \"c;d\" `e;f`", &[3]),
        ("a -- b; c\n, /* d; /* e; */ f; */ g", &[3]),
        ("a (b; c)", &[3, 2]),
    ] {
        let lengths: Vec<usize> = statements(text).unwrap().iter().map(Vec::len).collect();
        assert_eq!(lengths, expected, "{text}");
    }
    for text in ["a 'b", "\"a", "/* a"] {
        assert!(statements(text).is_err(), "{text}");
    }
}

#[test]
fn brackets_are_nested_no_deeper_than_the_maximum() {
    let nested = |depth: usize| format!("a{}b{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(tokens(&nested(MAX_DEPTH)).len(), 2 * MAX_DEPTH + 2);
    assert!(statements(&nested(MAX_DEPTH + 1)).unwrap_err().contains("nested more than"));
    // Brackets one after another are not nested, also if some were never opened.
    assert!(statements(&"(a) ) ".repeat(2 * MAX_DEPTH)).is_ok());
    assert!(statements(&format!("'{}'", "(".repeat(2 * MAX_DEPTH))).is_ok());
}

proptest! {
    #[test]
    fn elements_with_brackets_of_any_kind_are_split_at_the_commas_between_them(
        elements in proptest::collection::vec(proptest::sample::select(vec![
            "id int", "price decimal(10, 2)", "tags ARRAY<STRING(20)>", "m map<text, int>",
            "s ARRAY<STRUCT<x INT64, y ARRAY<INT64>>>", "v tuple<int, frozen<list<int>>>, w int",
            "check (a < b)", "p int check (p >= 0 and p < 9)", "q int default 1 >> 2",
            "check (a < b and (c, d) > (e, f))", "e text[1, 2]", "f int default 'a, (b'",
            "PRIMARY KEY ((a, b), c)", "",
        ]), 0..8),
        list in "[,]{0,2}",
    ) {
        let text = elements.join(",") + &list;
        let tokens = tokens(&text);
        let found = Tokens::new(&tokens).split_at_commas();
        let found: Vec<Vec<Token>> = found.iter().map(|part| part.tokens.to_vec()).collect();
        // One of the elements is two.
        let parts = elements.iter().flat_map(|element| match element.strip_suffix(", w int") {
            Some(first) => vec![first, "w int"],
            None => vec![*element],
        });
        let parts = parts.filter(|part| !part.is_empty());
        let of_part = |part: &str| statements(part).unwrap().remove(0);
        let expected: Vec<Vec<Token>> = parts.map(of_part).collect();
        prop_assert_eq!(found, expected, "{}", text);
    }
}

#[test]
fn a_group_ends_at_its_own_bracket_or_at_the_end() {
    for (text, inside, after) in [
        ("(a (b) c) d", "a b c", "d"),
        ("() d (e)", "", "d e"),
        ("((a))", "a", ""),
        ("(a (b) c", "a b c", ""),
        ("(", "", ""),
    ] {
        let tokens = tokens(text);
        let mut rest = Tokens::new(&tokens);
        assert_eq!(rest.group().unwrap().words().join(" "), inside, "{text}");
        assert_eq!(rest.words().join(" "), after, "{text}");
    }
    let tokens = tokens("a (b)");
    let mut rest = Tokens::new(&tokens);
    assert!(rest.group().is_none() && rest.words() == ["a", "b"], "nothing is skipped");
}

#[test]
fn a_key_has_columns_and_those_in_inner_brackets_at_its_beginning_are_of_the_partition() {
    for (text, columns, of_partition) in [
        ("a", "a", ""),
        ("(a)", "a", ""),
        ("(a, b DESC, `c d` ASC)", "a,b,c d", ""),
        ("((a, b), c)", "a,b,c", "a,b"),
        ("((a))", "a", "a"),
        ("(a, (b, c))", "a,b,c", ""),
        ("()", "", ""),
    ] {
        let key = Tokens::new(&tokens(text)).key().unwrap();
        let found = (key.columns.join(","), key.of_partition.join(","));
        assert_eq!(found, (columns.to_owned(), of_partition.to_owned()), "{text}");
    }
    assert!(Tokens::new(&tokens("7")).key().is_none());
    assert!(Tokens::new(&[]).key().is_none());
}

#[test]
fn a_key_is_found_wherever_its_words_are_and_only_if_brackets_follow() {
    let key = |text: &str| {
        let tokens = tokens(text);
        let mut rest = Tokens::new(&tokens);
        let found = rest.key_after(&["PRIMARY", "KEY"]).map(|key| key.columns.join(","));
        (found, rest.words().join(" "))
    };
    let found = |columns: &str, rest: &str| (Some(columns.to_owned()), rest.to_owned());
    assert_eq!(key("ADD CONSTRAINT c primary key (a, b) x"), found("a,b", "x"));
    assert_eq!(key("PRIMARY KEY CLUSTERED (a)"), found("a", ""));
    assert_eq!(key("PRIMARY KEY USING INDEX i").0, None);
    assert_eq!(key("UNIQUE KEY PRIMARY (a)"), (None, "UNIQUE KEY PRIMARY a".to_owned()));
    assert_eq!(key("KEY"), (None, "KEY".to_owned()));
}

#[test]
fn words_that_begin_constraints_are_names_in_quotes() {
    for word in CONSTRAINTS {
        let lower = word.to_ascii_lowercase();
        for text in [format!("{word} (a)"), format!("{lower} a (b)")] {
            assert!(Tokens::new(&tokens(&text)).is_constraint(), "{text}");
        }
        for text in [format!("`{lower}` int"), format!("\"{word}\" int"), format!("{word}_1 int")] {
            assert!(!Tokens::new(&tokens(&text)).is_constraint(), "{text}");
        }
    }
    assert!(!Tokens::new(&[]).is_constraint());
}

#[test]
fn names_numbers_and_calls_are_read_from_left_to_right() {
    let all = tokens("if s.\"T x\".`y` 7 -1 Now (x) a.");
    let mut rest = Tokens::new(&all);
    assert!(!rest.skips("ELSE") && rest.skips("IF") && !rest.skips("IF"));
    assert_eq!(rest.number(), None, "a name is not skipped");
    assert_eq!(rest.qualified_name().as_deref(), Some("s.T x.y"));
    assert_eq!((rest.number(), rest.number()), (Some(7), None));
    assert_eq!(rest.word(), None, "a sign is no word");
    assert_eq!(rest.number(), Some(1));
    assert!(rest.is_call("NOW") && !rest.is_call("x"));
    assert!(rest.skips("now") && rest.is_open() && rest.group().is_some());
    assert_eq!(rest.qualified_name(), None, "a name cannot end with a point");
    assert!(rest.is_at_end() && rest.peek().is_none() && rest.advance().is_none());
    // The value of a text in quotes is no word.
    let all = tokens("SELECT f('t, x', 'it''s', \"c\", 7)");
    let rest = Tokens::new(&all);
    assert_eq!(rest.texts(), ["t, x", "it's"]);
    assert_eq!(rest.words(), ["SELECT", "f", "c"]);
    assert!(rest.has(&["select", "F"]) && !rest.has(&["f", "c"]));
}
