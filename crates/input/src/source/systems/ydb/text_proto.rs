//! Text form of protocol buffers, the subset used by the schema files of YDB.
//!
//! ```text
//! message  = { name [":"] value [";" | ","] }
//! value    = "{" message "}" | "<" message ">" | "[" [value {"," value}] "]"
//!          | string {string} | word
//! string   = '"' characters with C escapes '"', or the same with single quotes
//! ```
//! Words are numbers and names of enum values; `#` begins a comment. A list is read as a repeated
//! field.

use crate::source::scheme_error::SchemeError;

/// Maximum nesting of messages.
const MAX_DEPTH: usize = 64;

/// A message: its fields in the order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message {
    fields: Vec<(String, Value)>,
}

/// Value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Message(Message),
    Text(Vec<u8>),
    Word(String),
}

impl Message {
    /// Parses a whole file.
    ///
    /// # Errors
    /// [`SchemeError`] with the line of the first character that cannot be read.
    pub(super) fn parse(text: &str) -> Result<Self, SchemeError> {
        let mut parser = Parser { text: text.as_bytes(), at: 0, line: 1 };
        let message = parser.message(None, 0)?;
        Ok(message)
    }

    /// Adds a field.
    pub(super) fn push(&mut self, name: &str, value: Value) {
        self.fields.push((name.to_owned(), value));
    }

    /// Returns the values of a field.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.fields.iter().filter(move |(field, _)| field == name).map(|(_, value)| value)
    }

    /// Returns the last message of a field, which is the one that counts.
    pub(super) fn message<'a>(&'a self, name: &'a str) -> Option<&'a Self> {
        self.all(name).filter_map(Value::message).last()
    }

    /// Returns the messages of a repeated field.
    pub(super) fn messages<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Self> {
        self.all(name).filter_map(Value::message)
    }

    /// Returns the last text of a field.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.texts(name).pop()
    }

    /// Returns the texts of a repeated field.
    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        let text = |value: &Value| match value {
            Value::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            Value::Message(_) | Value::Word(_) => None,
        };
        self.all(name).filter_map(text).collect()
    }

    /// Returns the last word of a field: a number or the name of an enum value.
    pub(super) fn word<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).filter_map(Value::word).last()
    }

    /// Returns the last number of a field.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.word(name)?.parse().ok()
    }

    /// Whether a field is there at all, even as an empty message.
    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(field, _)| field == name)
    }

    /// Returns the names of the fields, in order.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|(name, _)| name.as_str())
    }
}

impl Value {
    fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Text(_) | Self::Word(_) => None,
        }
    }

    fn word(&self) -> Option<&str> {
        match self {
            Self::Word(word) => Some(word),
            // In JSON, words and long numbers are texts.
            Self::Text(text) => std::str::from_utf8(text).ok(),
            Self::Message(_) => None,
        }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
}

impl Parser<'_> {
    fn error(&self, problem: &str) -> SchemeError {
        SchemeError::Text { line: self.line, problem: problem.to_owned() }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn advance(&mut self) {
        self.line += u64::from(self.peek() == Some(b'\n'));
        self.at += 1;
    }

    fn skip_blank(&mut self) {
        while let Some(byte) = self.peek() {
            if byte == b'#' {
                while self.peek().is_some_and(|byte| byte != b'\n') {
                    self.advance();
                }
            } else if byte.is_ascii_whitespace() {
                self.advance();
            } else {
                break;
            }
        }
    }

    /// Skips the byte if it is the next one.
    fn takes(&mut self, byte: u8) -> bool {
        self.skip_blank();
        let is_next = self.peek() == Some(byte);
        if is_next {
            self.advance();
        }
        is_next
    }

    /// Reads fields up to `end`, or to the end of the text.
    fn message(&mut self, end: Option<u8>, depth: usize) -> Result<Message, SchemeError> {
        if depth > MAX_DEPTH {
            return Err(self.error("messages are nested too deep"));
        }
        let mut message = Message::default();
        loop {
            self.skip_blank();
            match (self.peek(), end) {
                (None, None) => return Ok(message),
                (None, Some(_)) => return Err(self.error("a brace is not closed")),
                (Some(byte), Some(end)) if byte == end => {
                    self.advance();
                    return Ok(message);
                }
                _ => {}
            }
            let name = self.name()?;
            let has_colon = self.takes(b':');
            self.skip_blank();
            if self.takes(b'[') {
                while !self.takes(b']') {
                    let value = self.value(depth)?;
                    message.fields.push((name.clone(), value));
                    self.takes(b',');
                }
            } else {
                let is_message = matches!(self.peek(), Some(b'{' | b'<'));
                if !has_colon && !is_message {
                    return Err(self.error(&format!("':' or '{{' is missing after '{name}'")));
                }
                let value = self.value(depth)?;
                message.fields.push((name, value));
            }
            let _ = self.takes(b';') || self.takes(b',');
        }
    }

    fn name(&mut self) -> Result<String, SchemeError> {
        // Names of extensions are in brackets.
        if self.peek() == Some(b'[') {
            return self.until(|byte| byte == b']').map(|name| format!("{name}]")).and_then(|name| {
                if self.takes(b']') { Ok(name) } else { Err(self.error("a bracket is not closed")) }
            });
        }
        self.until(|byte| !(byte.is_ascii_alphanumeric() || byte == b'_'))
    }

    fn until(&mut self, is_end: impl Fn(u8) -> bool) -> Result<String, SchemeError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| !is_end(byte)) {
            self.advance();
        }
        match self.text.get(start..self.at) {
            Some(bytes) if !bytes.is_empty() => Ok(String::from_utf8_lossy(bytes).into_owned()),
            _ => Err(self.error("the name of a field is expected")),
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, SchemeError> {
        self.skip_blank();
        match self.peek() {
            Some(b'{') => {
                self.advance();
                self.message(Some(b'}'), depth + 1).map(Value::Message)
            }
            Some(b'<') => {
                self.advance();
                self.message(Some(b'>'), depth + 1).map(Value::Message)
            }
            Some(quote @ (b'"' | b'\'')) => {
                let mut text = self.string(quote)?;
                // Neighbouring strings are one.
                loop {
                    self.skip_blank();
                    match self.peek() {
                        Some(quote @ (b'"' | b'\'')) => text.extend(self.string(quote)?),
                        _ => return Ok(Value::Text(text)),
                    }
                }
            }
            _ => {
                let is_word =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'.');
                match self.until(|byte| !is_word(byte)) {
                    Ok(word) => Ok(Value::Word(word)),
                    Err(_) => Err(self.error("a value is expected")),
                }
            }
        }
    }

    fn string(&mut self, quote: u8) -> Result<Vec<u8>, SchemeError> {
        self.advance();
        let mut text = Vec::new();
        loop {
            match self.peek() {
                None | Some(b'\n') => return Err(self.error("a quote is not closed")),
                Some(byte) if byte == quote => {
                    self.advance();
                    return Ok(text);
                }
                Some(b'\\') => {
                    self.advance();
                    self.escape(&mut text)?;
                }
                Some(byte) => {
                    text.push(byte);
                    self.advance();
                }
            }
        }
    }

    /// Reads an escape after its backslash.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<(), SchemeError> {
        let Some(byte) = self.peek() else { return Err(self.error("a quote is not closed")) };
        let value = match byte {
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'0'..=b'7' => {
                let value = self.digits(8, 3);
                text.push(u8::try_from(value).map_err(|_| self.error("an octal escape is above \\377"))?);
                return Ok(());
            }
            b'x' | b'X' => {
                self.advance();
                if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                    return Err(self.error("a hexadecimal escape has no digits"));
                }
                let value = self.digits(16, 2);
                text.push(u8::try_from(value).map_err(|_| self.error("a hexadecimal escape is too long"))?);
                return Ok(());
            }
            b'\\' | b'"' | b'\'' | b'?' => byte,
            _ => return Err(self.error("an escape is unknown")),
        };
        text.push(value);
        self.advance();
        Ok(())
    }

    fn digits(&mut self, radix: u32, most: usize) -> u32 {
        let mut value = 0;
        for _ in 0..most {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(radix)) else { break };
            value = value * radix + digit;
            self.advance();
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_texts_words_and_lists_are_read() {
        let text = "# a schema\ncolumns {\n  name: \"a\\\"b\\n\\303\\251\" 'c'\n  type < id: UTF8 >\n}\n\
                    columns: { name: \"x\" };keys: [\"a\", \"b\"] n: -12, f: 1.5e3\nempty {}\n";
        let message = Message::parse(text).unwrap();
        let names: Vec<_> = message.messages("columns").filter_map(|column| column.text("name")).collect();
        assert_eq!(names, ["a\"b\n\u{e9}c", "x"]);
        let column = message.messages("columns").next().unwrap();
        assert_eq!(column.message("type").unwrap().word("id"), Some("UTF8"));
        assert_eq!(message.texts("keys"), ["a", "b"]);
        assert_eq!(
            (message.word("n"), message.word("f"), message.number("n")),
            (Some("-12"), Some("1.5e3"), None)
        );
        assert!(message.has("empty") && !message.has("full"));
    }

    #[test]
    fn text_that_breaks_off_or_has_another_form_is_refused_with_its_line() {
        for (text, line) in [
            ("a: 1\nb {", 2),
            ("a: \"x", 1),
            ("a: \"x\ny\"", 1),
            ("a\nb: 1", 2),
            ("a: \n\n}", 3),
            ("}", 1),
            ("a: \"\\q\"", 1),
            ("a: \"\\xg\"", 1),
            ("a: \"\\777\"", 1),
            ("a: [1", 1),
        ] {
            match Message::parse(text) {
                Err(SchemeError::Text { line: actual, .. }) => assert_eq!(actual, line, "{text:?}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
        assert!(Message::parse(&"a{".repeat(100_000)).is_err());
        assert_eq!(Message::parse("").unwrap(), Message::default());
    }

    proptest::proptest! {
        #[test]
        fn every_text_survives_its_escapes(bytes: Vec<u8>) {
            let escaped: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
            let message = Message::parse(&format!("t: \"{escaped}\"")).unwrap();
            proptest::prop_assert_eq!(message.all("t").next(), Some(&Value::Text(bytes)));
        }

        #[test]
        fn no_text_breaks_the_parser(text: String) {
            let _ = Message::parse(&text);
        }
    }
}
