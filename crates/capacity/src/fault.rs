//! Faults of nodes.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use evenkeel_model::bounded::quote;
use evenkeel_model::units::Micros;

/// A node of a design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeChoice {
    /// Node by its number, from 0 on.
    Number(usize),
    /// Node with the highest total load.
    Hottest,
}

/// A point in time of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossTime {
    /// This long after the first window begins.
    After(Micros),
    /// Start of the window with the most rows.
    Busiest,
}

/// A node with reduced capacity: `2:0.5`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slow {
    /// Node that is slow.
    pub node: NodeChoice,
    /// Remaining share of its capacity, and of the capacity of its partitions: above 0 and at most
    /// 1.
    pub factor: f64,
}

/// A node that is lost permanently: `2@6h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Node that is lost.
    pub node: NodeChoice,
    /// Time of the loss.
    pub at: LossTime,
}

/// One fault, from which the cluster does not recover while rows arrive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RequestedFault {
    /// A node with reduced capacity from the first row on.
    Slow(Slow),
    /// A node that is lost permanently.
    Lost(Lost),
}

/// Error for text that is not a fault.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{found}': {expected}", found = quote(found))]
pub struct FaultError {
    found: String,
    expected: &'static str,
}

impl RequestedFault {
    /// Returns the faulty node.
    #[must_use]
    pub fn node(&self) -> NodeChoice {
        match self {
            Self::Slow(slow) => slow.node,
            Self::Lost(lost) => lost.node,
        }
    }
}

fn node(text: &str) -> Option<NodeChoice> {
    if text.trim().eq_ignore_ascii_case("hottest") {
        return Some(NodeChoice::Hottest);
    }
    text.trim().parse().ok().map(NodeChoice::Number)
}

impl FromStr for Slow {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let error = |expected| FaultError { found: text.to_owned(), expected };
        let syntax = "write a node and the remaining share of its capacity, such as 2:0.5 or hottest:0.5; \
            nodes are counted from 0";
        let (number, factor) = text.split_once(':').ok_or_else(|| error(syntax))?;
        let node = node(number).ok_or_else(|| error(syntax))?;
        let factor: f64 = factor.trim().parse().map_err(|_| error(syntax))?;
        let is_share = factor > 0.0 && factor <= 1.0;
        is_share
            .then_some(Self { node, factor })
            .ok_or_else(|| error("the remaining share is above 0 and at most 1; for a lost node use --lost"))
    }
}

impl FromStr for Lost {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let expected = "write a node and the time of its loss after the first row, such as 2@6h, \
            2@busiest or hottest@busiest; nodes are counted from 0";
        let lost = || {
            let (number, at) = text.split_once('@')?;
            let at = match at.trim() {
                busiest if busiest.eq_ignore_ascii_case("busiest") => LossTime::Busiest,
                length => LossTime::After(length.parse().ok()?),
            };
            Some(Self { node: node(number)?, at })
        };
        lost().ok_or_else(|| FaultError { found: text.to_owned(), expected })
    }
}

impl fmt::Display for NodeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Hottest => f.write_str("hottest"),
        }
    }
}

impl fmt::Display for RequestedFault {
    /// Writes the fault as it is parsed, after its command-line option.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Slow(Slow { node, factor }) => write!(f, "--slow {node}:{factor}"),
            Self::Lost(Lost { node, at: LossTime::After(after) }) => write!(f, "--lost {node}@{after}"),
            Self::Lost(Lost { node, at: LossTime::Busiest }) => write!(f, "--lost {node}@busiest"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_parse_as_they_print() {
        for text in ["2:0.5", "hottest:1"] {
            assert_eq!(RequestedFault::Slow(text.parse().unwrap()).to_string(), format!("--slow {text}"));
        }
        for text in ["0@6h", "hottest@busiest", "3@90s"] {
            assert_eq!(RequestedFault::Lost(text.parse().unwrap()).to_string(), format!("--lost {text}"));
        }
    }

    #[test]
    fn what_is_no_fault_is_refused_with_the_reason() {
        for text in ["2:0", "2:-1", "2:1.5", "2:NaN"] {
            let error = text.parse::<Slow>().unwrap_err().to_string();
            assert!(error.contains("above 0 and at most 1"), "{error}");
        }
        for text in ["", "2", "x:0.5", "-1:0.5", "2:half"] {
            assert!(text.parse::<Slow>().unwrap_err().to_string().contains("such as 2:0.5"), "{text}");
        }
        for text in ["", "2", "2@", "x@1h", "2@1", "2@0s", "2@never"] {
            assert!(text.parse::<Lost>().unwrap_err().to_string().contains("such as 2@6h"), "{text}");
        }
    }
}
