//! Types of both dialects, and what is no type.

use proptest::prelude::{prop_assert, prop_assert_eq, proptest};
use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::Tokenizer;

use super::*;

fn tokens(text: &str) -> Vec<TokenWithSpan> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location().unwrap();
    tokens.into_iter().filter(|token| !matches!(token.token, Token::Whitespace(_) | Token::EOF)).collect()
}

fn read(text: &str) -> Result<TypeText, TypeProblem> {
    read_type(&tokens(text))
}

#[test]
fn types_of_both_dialects_are_read_to_their_end_and_no_further() {
    for (text, name, is_key_type) in [
        ("int64", "INT64", true),
        ("String(10)", "STRING", true),
        ("STRING(max)", "STRING", true),
        ("character varying(10)", "VARCHAR", true),
        ("varchar", "VARCHAR", true),
        ("double precision", "DOUBLE PRECISION", true),
        ("numeric(10, 2)", "NUMERIC", true),
        ("timestamp with time zone", "TIMESTAMP", true),
        ("spanner.commit_timestamp", "COMMIT_TIMESTAMP", true),
        ("spanner.tokenlist", "TOKENLIST", false),
        ("jsonb", "JSONB", false),
        ("ARRAY<STRING(MAX)>", "ARRAY<STRING>", false),
        ("ARRAY<FLOAT32>(vector_length=>128)", "ARRAY<FLOAT32>", false),
        ("bigint[3]", "BIGINT[]", false),
        ("text[][]", "TEXT[][]", false),
        ("a.b.Message", "PROTO", false),
        ("`INT64`", "PROTO", false),
    ] {
        let expected = TypeText { tokens: tokens(text).len(), name: name.to_owned(), is_key_type };
        assert_eq!(read(text), Ok(expected.clone()), "{text}");
        assert_eq!(read(&format!("{text} NOT NULL")), Ok(expected), "{text} NOT NULL");
    }
}

#[test]
fn every_name_of_a_type_is_one_and_so_is_what_is_to_be_written_instead() {
    let text = |name: &str| match name {
        "STRING" | "BYTES" => format!("{name}(5)"),
        _ => name.to_owned(),
    };
    for (names, is_key_type) in [(&KEY_TYPES[..], true), (&OTHER_TYPES[..], false)] {
        for name in names {
            assert_eq!(read(&text(name)).unwrap().is_key_type, is_key_type, "{name}");
        }
    }
    for (unknown, instead) in INSTEAD {
        let problem = read(unknown).unwrap_err();
        assert_eq!((problem.token, problem.next), (0, format!("use {instead}")), "{unknown}");
        let known = instead.split(" or ").flat_map(|part| part.split(", "));
        for known in known.filter(|part| !part.contains(' ') || *part == "double precision") {
            let text = known.replace("(n)", "(7)").replace("<type>", "<INT64>");
            assert!(text == "interleaved" || read(&text).is_ok(), "{unknown}: {text}");
        }
    }
}

#[test]
fn a_length_is_within_the_limit_of_its_type() {
    for (name, longest) in [("STRING", 2_621_440), ("varchar", 2_621_440), ("BYTES", 10_485_760)] {
        for (length, is_taken) in [(1, true), (longest, true), (longest + 1, false), (0, false)] {
            assert_eq!(read(&format!("{name}({length})")).is_ok(), is_taken, "{name}({length})");
        }
    }
    // The token that is wrong, from 0 on.
    for (text, token) in [
        ("STRING", 1),
        ("BYTES NOT NULL", 1),
        ("STRING(1.5)", 2),
        ("STRING(99999999999999999999)", 2),
        ("varchar(MAX)", 2),
        ("STRING()", 2),
        ("STRING(5", 3),
        ("ARRAY<STRING>", 3),
    ] {
        assert_eq!(read(text).map_err(|problem| problem.token), Err(token), "{text}");
    }
}

const PIECES: [&str; 22] = [
    "ARRAY",
    "<",
    ">",
    "(",
    ")",
    "[",
    "]",
    ".",
    ",",
    "7",
    "MAX",
    "STRING",
    "INT64",
    "numeric",
    "timestamp",
    "with",
    "time",
    "zone",
    "spanner",
    "double",
    "precision",
    "`m`",
];

proptest! {
    #[test]
    fn any_tokens_are_read_as_a_type_at_their_start_or_refused(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES.to_vec()), 0..9),
    ) {
        let tokens = tokens(&pieces.join(" "));
        match read_type(&tokens) {
            // The tokens after a type are not part of it.
            Ok(read) => prop_assert_eq!(read_type(&tokens[..read.tokens]), Ok(read)),
            Err(problem) => {
                prop_assert!(problem.token <= tokens.len(), "{:?}", problem);
                prop_assert!(!problem.problem.is_empty() && !problem.next.is_empty(), "{:?}", problem);
            }
        }
    }
}
