//! Parsed statements, with the places of their names in the text.

use sqlparser::tokenizer::Location;

use crate::schema::tables::{SchemaIndex, SchemaTable};
use crate::schema::types::{TypeProblem, TypeText};

/// A table with the locations of its names.
pub(super) struct PlacedTable {
    pub(super) table: SchemaTable,
    pub(super) at: Location,
    pub(super) columns: Vec<PlacedColumn>,
    pub(super) key: Vec<Location>,
    pub(super) parent: Option<Location>,
    pub(super) references: Vec<Reference>,
}

/// Location and type of a column.
pub(super) struct PlacedColumn {
    pub(super) at: Location,
    pub(super) column_type: PlacedType,
}

/// A type, or the location of a problem and its description.
pub(super) type PlacedType = Result<TypeText, (Location, TypeProblem)>;

/// A foreign key, with the locations of its names.
pub(super) struct Reference {
    pub(super) columns: Vec<(String, Location)>,
    pub(super) table: (String, Location),
    pub(super) referenced: Vec<(String, Location)>,
}

/// An index with the locations of its names.
pub(super) struct PlacedIndex {
    pub(super) index: SchemaIndex,
    pub(super) at: Location,
    pub(super) table: Location,
    pub(super) columns: Vec<Location>,
    pub(super) storing: Vec<Location>,
    pub(super) parent: Option<Location>,
}

/// Parsed tables and indexes, before they are checked against each other.
#[derive(Default)]
pub(super) struct ParsedStatements {
    pub(super) tables: Vec<PlacedTable>,
    pub(super) indexes: Vec<PlacedIndex>,
}
