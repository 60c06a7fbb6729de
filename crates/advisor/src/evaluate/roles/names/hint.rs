//! Kinds of things that names of columns denote.

/// Kind of thing that a name denotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    Identifier,
    /// Thing that has identifiers: a user, a device.
    Entity,
    Time,
    Dimension,
    /// Property of a thing, rarely looked up however many values it has: a title, a brand.
    Attribute,
    Measure,
    Text,
    Line,
}
