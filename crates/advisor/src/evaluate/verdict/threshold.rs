//! Limits on figures, which make an evaluation a check in a pipeline.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

use evenkeel_model::bounded::{names, quote};

/// Limit on a figure: the check fails if the figure meets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Threshold {
    figure: String,
    comparison: Comparison,
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Equal,
}

/// Comparison signs, the longer ones first.
const SIGNS: [(&str, Comparison); 6] = [
    (">=", Comparison::GreaterOrEqual),
    ("<=", Comparison::LessOrEqual),
    ("==", Comparison::Equal),
    (">", Comparison::Greater),
    ("<", Comparison::Less),
    ("=", Comparison::Equal),
];

/// Error for a threshold that is invalid or names an unknown figure.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum ThresholdError {
    #[error(
        "'{found}' is not a threshold; write a figure, one of > >= < <= =, and a number: 'max_over_mean>1.2'", found = quote(found)
)]
    Syntax { found: String },
    #[error("there is no figure '{figure}'; there are: {}", names(known), figure = quote(figure))]
    UnknownFigure { figure: String, known: Vec<String> },
}

/// Figure that meets a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Crossing {
    /// Key of the figure, or the export as a whole.
    pub subject: String,
    /// Full path of the figure.
    pub figure: String,
    /// Value of the figure.
    pub value: f64,
}

impl FromStr for Threshold {
    type Err = ThresholdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let syntax = || ThresholdError::Syntax { found: text.to_owned() };
        let (comparison, figure, limit) = SIGNS
            .into_iter()
            .find_map(|(sign, comparison)| {
                text.split_once(sign).map(|(figure, limit)| (comparison, figure, limit))
            })
            .ok_or_else(syntax)?;
        let figure = figure.trim();
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if figure.is_empty() || !figure.chars().all(name) {
            return Err(syntax());
        }
        let limit = limit.trim().parse::<f64>().ok().filter(|limit| limit.is_finite()).ok_or_else(syntax)?;
        Ok(Self { figure: figure.to_owned(), comparison, limit })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self.comparison {
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Equal => "=",
        };
        write!(f, "{}{sign}{}", self.figure, self.limit)
    }
}

impl Threshold {
    /// Returns the figures of all subjects that meet the threshold. Subjects are JSON objects; a
    /// figure is a number in them, named by its path with dots, or by the end of it.
    ///
    /// # Errors
    /// [`ThresholdError::UnknownFigure`] if no subject has the figure.
    pub fn check(&self, subjects: &[(String, Value)]) -> Result<Vec<Crossing>, ThresholdError> {
        let mut figures: Vec<(&str, String, f64)> = Vec::new();
        for (subject, value) in subjects {
            let mut subject_figures = Vec::new();
            collect_figures(value, "", &mut subject_figures);
            figures.extend(subject_figures.into_iter().map(|(path, value)| (subject.as_str(), path, value)));
        }
        // An exact match takes precedence over paths that only end with the name.
        let exact = figures.iter().any(|(_, path, _)| *path == self.figure);
        let end = format!(".{}", self.figure);
        let meant = |path: &str| if exact { path == self.figure } else { path.ends_with(&end) };
        if !figures.iter().any(|(_, path, _)| meant(path)) {
            let mut known: Vec<String> = figures.into_iter().map(|(_, path, _)| path).collect();
            known.sort();
            known.dedup();
            return Err(ThresholdError::UnknownFigure { figure: self.figure.clone(), known });
        }
        let crossed = figures.iter().filter(|(_, path, value)| meant(path) && self.is_met(*value));
        Ok(crossed
            .map(|(subject, path, value)| Crossing {
                subject: (*subject).to_owned(),
                figure: path.clone(),
                value: *value,
            })
            .collect())
    }

    fn is_met(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::Greater => value > self.limit,
            Comparison::GreaterOrEqual => value >= self.limit,
            Comparison::Less => value < self.limit,
            Comparison::LessOrEqual => value <= self.limit,
            Comparison::Equal => value == self.limit,
        }
    }
}

/// Collects all numbers of an object, with their paths. List entries that are objects are numbered
/// from 0; lists of numbers are not figures.
fn collect_figures(value: &Value, path: &str, figures: &mut Vec<(String, f64)>) {
    match value {
        Value::Number(number) => figures.extend(number.as_f64().map(|number| (path.to_owned(), number))),
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect_figures(value, &path, figures);
            }
        }
        Value::Array(entries) => {
            for (number, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.is_object()) {
                collect_figures(entry, &format!("{path}.{number}"), figures);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crossings(threshold: &str) -> Vec<Crossing> {
        let subjects = [
            (
                "a".to_owned(),
                json!({"max_over_mean": 1.5, "over_time": {"effective_partitions": {"median": 3}}}),
            ),
            (
                "b".to_owned(),
                json!({"max_over_mean": 1.1, "rows_per_partition": [1, 2], "worst": {"max_over_mean": 9},
                       "heavy_hitters": [{"share": 0.5}]}),
            ),
        ];
        threshold.parse::<Threshold>().unwrap().check(&subjects).unwrap()
    }

    #[test]
    fn thresholds_are_met_before_on_and_after_their_limit_as_their_sign_says() {
        assert_eq!(
            crossings("max_over_mean>1.2"),
            [Crossing { subject: "a".into(), figure: "max_over_mean".into(), value: 1.5 }]
        );
        assert_eq!(crossings("max_over_mean > 1.5").len(), 0);
        assert_eq!(crossings("max_over_mean>=1.5").len(), 1);
        assert_eq!(crossings("max_over_mean<=1.1").len(), 1);
        assert_eq!(crossings("max_over_mean<1.1").len(), 0);
        assert_eq!(crossings("max_over_mean=1.1").len(), 1);
        assert_eq!(crossings("effective_partitions.median<4").len(), 1);
        assert_eq!(crossings("heavy_hitters.0.share>=0.5").len(), 1);
    }

    #[test]
    fn what_is_no_threshold_or_no_figure_is_refused() {
        for text in ["", "max_over_mean", ">1", "a b>1", "a>x", "a>inf"] {
            assert!(text.parse::<Threshold>().is_err(), "{text}");
        }
        let threshold: Threshold = "nope>1".parse().unwrap();
        let error = threshold.check(&[("a".to_owned(), json!({"cv": 1}))]).unwrap_err().to_string();
        assert_eq!(error, "there is no figure 'nope'; there are: cv");
        assert_eq!(threshold.to_string(), "nope>1");
    }
}
