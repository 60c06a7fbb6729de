//! Notes of a result in the form that programs read.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

/// A note of a result: a code for programs, and a sentence for people. The wording of the sentence
/// may change, the code does not.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Remark {
    code: Cow<'static, str>,
    /// The column that the note is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<String>,
    text: String,
}

impl Remark {
    /// Creates a note that is not about a single column.
    #[must_use]
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code: Cow::Borrowed(code), column: None, text: text.into() }
    }

    /// Creates a note on one column.
    #[must_use]
    pub fn on_column(code: &'static str, column: &str, text: impl Into<String>) -> Self {
        Self { column: Some(column.to_owned()), ..Self::new(code, text) }
    }

    /// Returns the kind of the note, in lower case with underscores.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the sentence.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_has_the_code_the_column_if_there_is_one_and_the_sentence() {
        let of_all = Remark::new("input_empty", "a.csv is empty");
        assert_eq!(
            serde_json::to_value(&of_all).unwrap(),
            json!({"code": "input_empty", "text": "a.csv is empty"})
        );
        let of_column = Remark::on_column("ttl_left_out", "at", "the time to live is left out");
        let expected =
            json!({"code": "ttl_left_out", "column": "at", "text": "the time to live is left out"});
        assert_eq!(serde_json::to_value(&of_column).unwrap(), expected);
        for remark in [of_all, of_column] {
            let text = serde_json::to_string(&remark).unwrap();
            assert_eq!(serde_json::from_str::<Remark>(&text).unwrap(), remark);
        }
    }
}
