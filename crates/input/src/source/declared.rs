//! Tables declared by an export, or by a statement next to it.

use std::fmt;

use serde::{Deserialize, Serialize};

use evenkeel_model::remark::Remark;
use evenkeel_model::table::{Column, ColumnType, Ttl};

/// Arrangement of the rows of a declared table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableLayout {
    /// Hash partitions of columns.
    Column,
    /// Rows in ranges of the primary key.
    Row,
    /// The declaration does not say.
    #[default]
    Unknown,
}

impl fmt::Display for TableLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Column => "column table",
            Self::Row => "row table",
            Self::Unknown => "table",
        })
    }
}

/// A declared column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredColumn {
    /// Name of the column.
    pub name: String,
    /// Type of its values; `None` if the values must decide, as for dates and for numbers without a
    /// precision.
    pub column_type: Option<ColumnType>,
    /// Whether the column is nullable.
    pub nullable: bool,
}

impl DeclaredColumn {
    /// Creates a column whose type is inferred from its values.
    pub(super) fn untyped(name: &str) -> Self {
        Self { name: name.to_owned(), column_type: None, nullable: true }
    }
}

impl From<Column> for DeclaredColumn {
    fn from(column: Column) -> Self {
        Self { name: column.name, column_type: Some(column.column_type), nullable: column.nullable }
    }
}

/// Names and spelling of columns in the data files of a declared table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DataForm {
    /// Text of a YDB dump: declared columns in order, spelled as YDB does.
    YdbDump,
    /// The files name their columns.
    Named,
    /// Text that may have no header: declared columns in order.
    #[default]
    Ordered,
    /// Like [`Self::Ordered`], with NULL as an empty field without quotes, and `""` as empty text.
    OrderedQuoted,
    /// Tab-separated text with backslash escapes, without a header: declared columns in order.
    Escaped,
    /// The rows are a part of a file that also has statements and other tables.
    Section,
}

/// A table as its export or a statement declares it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredTable {
    /// File of the declaration.
    pub file: String,
    /// Name of the table; for a dump of folders its path in the dump, empty if the folder is the
    /// table.
    pub name: String,
    /// Arrangement of its rows.
    pub layout: TableLayout,
    /// Columns, in order.
    pub columns: Vec<DeclaredColumn>,
    /// Columns of the primary key, or else of the sorting key, in order; empty if there is neither.
    pub primary_key: Vec<String>,
    /// Columns whose hash determines the partition, in order; empty for ranges.
    pub partition_key: Vec<String>,
    /// Number of partitions; `None` if it is not declared.
    pub partitions: Option<u64>,
    /// Time to live of rows.
    pub ttl: Option<Ttl>,
    /// Remarks on declarations that have no equivalent here, one sentence each.
    pub notes: Vec<Remark>,
    /// Whether each data file holds the rows of one partition of the database.
    pub has_file_per_partition: bool,
    /// Form of its data files.
    pub form: DataForm,
    /// Names of the tables whose rows belong to this one, in a file of several tables: itself, and
    /// its partitions.
    pub sections: Vec<String>,
    /// Whether each segment or node has all rows.
    pub is_replicated: bool,
    /// Whether some of its rows are elsewhere, in a form that is not read.
    pub has_other_rows: bool,
    /// Statements of Spanner that declare the table, its ancestors and its indexes.
    pub spanner: Option<String>,
}

impl DeclaredTable {
    /// Whether a name denotes this table, with or without its schema or folder.
    #[must_use]
    pub fn is_named(&self, name: &str) -> bool {
        let last = |name: &str| name.rsplit(['.', '/']).next().unwrap_or_default().to_owned();
        self.name == name || (!name.contains(['.', '/']) && last(&self.name) == name)
    }

    /// Returns the columns, if all their types are declared.
    #[must_use]
    pub fn typed_columns(&self) -> Option<Vec<Column>> {
        let column = |column: &DeclaredColumn| {
            let DeclaredColumn { name, column_type, nullable } = column;
            Some(Column { name: name.clone(), column_type: (*column_type)?, nullable: *nullable })
        };
        self.columns.iter().map(column).collect()
    }
}
