//! Depth of the tree that a text can form, measured token by token.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token};

use crate::limits::error::{MAX_DEPTH, MAX_DOUBLINGS, MAX_LEVELS, MAX_SET_OPERATIONS, SqlLimitError};

/// Functions that the planner replaces by a CASE in which an argument appears twice.
const DOUBLING: [&str; 5] = ["coalesce", "ifnull", "nvl", "nvl2", "nullif"];

/// A level of parentheses, brackets or CASE.
#[derive(Debug, Default, Clone, Copy)]
struct Level {
    /// Whether it encloses the precision of a decimal.
    of_decimal: bool,
    /// Whether CASE opened it, so that END closes it.
    of_case: bool,
    /// Whether its contents are visited twice.
    doubles: bool,
    /// Operators and keywords since the last AND.
    operators: u32,
    /// Depth of the deepest level closed since the last AND.
    inner: u32,
    /// Number of ANDs since the last OR. `linked_by_and` is the depth of their operands.
    ands: u32,
    linked_by_and: u32,
    /// Number of ORs since the last comma. `linked_by_or` is the depth of their operands.
    ors: u32,
    linked_by_or: u32,
    /// Depth of the text before the last comma.
    before: u32,
    /// Maximum number of nested levels visited twice among those closed inside it.
    inner_doublings: u32,
}

impl Level {
    /// Upper bound on the depth of the tree for the text since the last comma: chains of operators
    /// lean to the left, OR links chains of AND, and AND links all other chains.
    fn depth(&self) -> u32 {
        self.ors.saturating_add(self.linked_by_or.max(self.depth_of_ands()))
    }

    fn depth_of_ands(&self) -> u32 {
        self.ands.saturating_add(self.linked_by_and.max(self.operators.saturating_add(self.inner)))
    }

    fn begin_operand_of_and(&mut self) {
        self.linked_by_and = self.linked_by_and.max(self.operators.saturating_add(self.inner));
        self.ands += 1;
        (self.operators, self.inner) = (0, 0);
    }

    fn begin_operand_of_or(&mut self) {
        self.linked_by_or = self.linked_by_or.max(self.depth_of_ands());
        self.ors += 1;
        (self.operators, self.inner, self.ands, self.linked_by_and) = (0, 0, 0, 0);
    }

    /// Begins another expression on the same level.
    fn begin_expression(&mut self) {
        let before = self.before.max(self.depth());
        let Self { of_case, doubles, inner_doublings, .. } = *self;
        *self = Self { of_case, doubles, inner_doublings, before, ..Self::default() };
    }

    /// Number of nested levels visited twice: those closed inside it, and the level itself.
    fn doublings(&self) -> u32 {
        self.inner_doublings + u32::from(self.doubles)
    }
}

/// Nesting of the text read so far.
#[derive(Debug)]
pub(super) struct Nesting<'a> {
    /// Levels that enclose the innermost one.
    enclosing: Vec<Level>,
    innermost: Level,
    set_operations: u32,
    previous: &'a Token,
}

impl<'a> Nesting<'a> {
    pub(super) fn new() -> Self {
        Self { enclosing: Vec::new(), innermost: Level::default(), set_operations: 0, previous: &Token::EOF }
    }

    /// Whether a number read next is the precision of a decimal.
    pub(super) fn expects_precision(&self) -> bool {
        self.innermost.of_decimal && self.previous == &Token::LParen
    }

    /// Reads the next token.
    pub(super) fn read(&mut self, token: &'a Token) {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => self.open(Level {
                doubles: is_doubling_function(self.previous),
                of_decimal: is_decimal(self.previous),
                ..Level::default()
            }),
            Token::RParen | Token::RBracket | Token::RBrace => self.close(),
            Token::Comma | Token::SemiColon => self.innermost.begin_expression(),
            Token::Word(word) => self.read_keyword(word.keyword),
            // These are planned as functions, and resolving their types recurses deeper.
            Token::StringConcat | Token::Plus | Token::Minus | Token::Mul => self.innermost.operators += 2,
            other if is_sign(other) => self.innermost.operators += 1,
            _ => {}
        }
        self.previous = token;
    }

    fn read_keyword(&mut self, keyword: Keyword) {
        let in_case = self.innermost.of_case;
        match keyword {
            Keyword::NoKeyword => {}
            Keyword::CASE => self.open(Level { of_case: true, ..Level::default() }),
            Keyword::END if in_case => self.close(),
            Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT | Keyword::MINUS => {
                self.set_operations += 1;
                self.innermost.begin_expression();
            }
            Keyword::AND => self.innermost.begin_operand_of_and(),
            Keyword::OR | Keyword::XOR => self.innermost.begin_operand_of_or(),
            Keyword::WHERE | Keyword::HAVING | Keyword::ON => self.innermost.begin_expression(),
            Keyword::WHEN | Keyword::THEN | Keyword::ELSE if in_case => self.innermost.begin_expression(),
            keyword => {
                if keyword == Keyword::SELECT {
                    self.innermost.begin_expression();
                }
                // A keyword after a sign is a name, as in `a + date`; but everything after NOT is
                // its operand.
                self.innermost.operators += u32::from(keyword == Keyword::NOT || !is_sign(self.previous));
                self.innermost.doubles |= is_doubling_keyword(keyword);
            }
        }
    }

    fn open(&mut self, level: Level) {
        self.enclosing.push(std::mem::replace(&mut self.innermost, level));
    }

    /// Closes a level. Its depth becomes the depth of an operand of the enclosing level.
    fn close(&mut self) {
        let Some(mut outer) = self.enclosing.pop() else { return };
        let closed = self.innermost;
        let depth = closed.before.max(closed.depth()).saturating_add(1);
        outer.inner = outer.inner.max(depth);
        outer.inner_doublings = outer.inner_doublings.max(closed.doublings());
        self.innermost = outer;
    }

    /// Checks the limits after a token at `location`.
    pub(super) fn check(&self, location: Location) -> Result<(), SqlLimitError> {
        let Location { line, column } = location;
        if self.enclosing.len() > MAX_LEVELS as usize {
            return Err(SqlLimitError::Levels { line, column });
        }
        if self.innermost.doublings() > MAX_DOUBLINGS {
            return Err(SqlLimitError::Doublings { line, column });
        }
        if self.innermost.depth() > MAX_DEPTH {
            return Err(SqlLimitError::Depth { line, column });
        }
        if self.set_operations > MAX_SET_OPERATIONS {
            return Err(SqlLimitError::SetOperations);
        }
        Ok(())
    }
}

fn is_doubling_function(token: &Token) -> bool {
    matches!(token, Token::Word(word) if DOUBLING.iter().any(|name| word.value.eq_ignore_ascii_case(name)))
}

fn is_decimal(token: &Token) -> bool {
    use Keyword as K;
    matches!(token, Token::Word(word) if matches!(word.keyword, K::DECIMAL | K::NUMERIC | K::DEC | K::BIGDECIMAL | K::BIGNUMERIC))
}

fn is_doubling_keyword(keyword: Keyword) -> bool {
    use Keyword as K;
    matches!(keyword, K::SELECT | K::BETWEEN | K::IN | K::LIKE | K::ILIKE | K::SIMILAR)
}

/// Whether a token is an operator sign: neither a word nor a value, separator or bracket.
fn is_sign(token: &Token) -> bool {
    !matches!(
        token,
        Token::EOF
            | Token::Word(_)
            | Token::Number(..)
            | Token::Comma
            | Token::SemiColon
            | Token::LParen
            | Token::RParen
            | Token::LBracket
            | Token::RBracket
            | Token::LBrace
            | Token::RBrace
            | Token::Period
            | Token::Char(_)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::Placeholder(_)
    )
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;
    use datafusion::sql::sqlparser::ast::Expr;
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;
    use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};

    use super::*;

    /// Greatest depth after any token.
    fn measured(sql: &str) -> u32 {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize().unwrap();
        let mut nesting = Nesting::new();
        let mut deepest = 0;
        for token in tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_) | Token::EOF)) {
            nesting.read(token);
            deepest = nesting.innermost.depth().max(deepest);
        }
        deepest
    }

    /// Depth of the tree that the parser makes.
    fn parsed(sql: &str) -> u32 {
        fn depth(expr: &Expr) -> u32 {
            match expr {
                Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
                Expr::UnaryOp { expr, .. } | Expr::IsNull(expr) | Expr::Nested(expr) => 1 + depth(expr),
                _ => 0,
            }
        }
        let parsed = DFParserBuilder::new(sql).build().unwrap().parse_expr().unwrap();
        depth(&parsed.expr)
    }

    fn expressions() -> impl Strategy<Value = String> {
        prop_oneof![Just("a".to_owned()), Just("7".to_owned())].prop_recursive(6, 40, 2, |inner| {
            let binary =
                prop_oneof![Just("+"), Just("*"), Just("%"), Just("||"), Just("="), Just("AND"), Just("OR")];
            prop_oneof![
                (inner.clone(), binary, inner.clone()).prop_map(|(a, sign, b)| format!("{a} {sign} {b}")),
                inner.clone().prop_map(|a| format!("({a})")),
                inner.clone().prop_map(|a| format!("(NOT {a})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a} % NOT {b}")),
                inner.prop_map(|a| format!("({a} IS NULL)")),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_tree_is_deeper_than_measured(sql in expressions()) {
            prop_assert!(measured(&sql) >= parsed(&sql), "{sql}: {} {}", measured(&sql), parsed(&sql));
        }
    }

    #[test]
    fn depth_is_that_of_the_deepest_part() {
        assert_eq!(measured("a"), 0);
        assert_eq!(measured("a = 1 AND b = 2 AND c = 3"), 3);
        assert_eq!(measured("a = 1 OR b = 2 AND c = 3"), 3);
        assert_eq!(measured("a % NOT b % NOT c"), 4);
        assert_eq!(measured("f(a = 1, (b)), c"), 2);
        // Brackets that nothing opened close nothing.
        assert_eq!(measured("a = 1) END"), 2);
    }
}
