//! Operations of arithmetic whose results are checked.

use std::fmt;

use datafusion::logical_expr::Operator;

/// An operation whose result can leave the range of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in crate::query) enum Operation {
    Add,
    Subtract,
    Multiply,
}

impl Operation {
    pub(in crate::query) const ALL: [Self; 3] = [Self::Add, Self::Subtract, Self::Multiply];

    pub(in crate::query) fn from_operator(operator: Operator) -> Option<Self> {
        match operator {
            Operator::Plus => Some(Self::Add),
            Operator::Minus => Some(Self::Subtract),
            Operator::Multiply => Some(Self::Multiply),
            _ => None,
        }
    }

    pub(in crate::query) fn operator(self) -> Operator {
        match self {
            Self::Add => Operator::Plus,
            Self::Subtract => Operator::Minus,
            Self::Multiply => Operator::Multiply,
        }
    }

    pub(in crate::query) fn from_function(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    pub(in crate::query) fn name(self) -> &'static str {
        match self {
            Self::Add => "checked_add",
            Self::Subtract => "checked_subtract",
            Self::Multiply => "checked_multiply",
        }
    }

    pub(in crate::query) fn sign(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.sign())
    }
}
