//! Writes `CREATE TABLE`.

use std::fmt::Write as _;

use crate::schema::dialect::Dialect;
use crate::schema::draft::{IndexDraft, KeyFront, TableDraft};
use crate::schema::names::{quote, type_name};
use crate::schema::write::caveats::caveats;
use crate::schema::write::front::front_columns;
use crate::schema::write::index::{key_part, write_index};
use crate::schema::write::sequence::write_sequence;
use crate::schema::write::shard::{generated_column, shard_expression};
use evenkeel_model::table::{Column, ColumnType};

impl TableDraft {
    /// Returns the statements that declare the table and its indexes.
    pub(crate) fn write(&self, dialect: Dialect) -> String {
        let mut text = String::new();
        let sequence = format!("{}_ids", self.name);
        if self.front == KeyFront::BitReversed {
            text.push_str(&write_sequence(&sequence, None, None, dialect));
            text.push('\n');
        }
        for caveat in caveats(self, dialect) {
            let _ = writeln!(text, "-- {caveat}");
        }
        let _ = writeln!(text, "CREATE TABLE {} (", quote(&self.name, dialect));
        let front = front_columns(self, &sequence, dialect);
        let columns = front.iter().cloned();
        let columns = columns.chain(own_columns(self, dialect)).chain(index_shards(self, dialect));
        for (name, declaration) in columns {
            let _ = writeln!(text, "  {} {declaration},", quote(&name, dialect));
        }
        text.push_str(&key_and_clauses(self, &front, dialect));
        for index in &self.indexes {
            text.push('\n');
            text.push_str(&write_index(self, index, dialect));
        }
        text
    }
}

/// Returns the columns of the table itself, with their declarations.
fn own_columns(table: &TableDraft, dialect: Dialect) -> Vec<(String, String)> {
    if let Some(declared) = &table.declared {
        return declared.clone();
    }
    let declaration = |column: &Column| {
        let in_key = table.in_key(&column.name);
        let has_null = table.nullable.contains(&column.name);
        let not_null = if in_key && !has_null || !column.nullable { " NOT NULL" } else { "" };
        // The PostgreSQL dialect does not allow numeric in a key or an index.
        let in_index = |index: &IndexDraft| index.columns.iter().any(|part| part.column == column.name);
        let ordered = in_key || table.indexes.iter().any(in_index);
        let column_type = match (ordered, column.column_type, dialect) {
            (true, ColumnType::Uint64, Dialect::Postgres) => ColumnType::Int64,
            (_, other, _) => other,
        };
        (column.name.clone(), format!("{}{not_null}", type_name(column_type, dialect)))
    };
    table.columns.iter().map(declaration).collect()
}

/// Returns the generated columns in front of indexes, except columns that are already declared.
fn index_shards(table: &TableDraft, dialect: Dialect) -> Vec<(String, String)> {
    let column = |index: &IndexDraft| {
        let shard = index.shard.as_ref()?;
        if table.declared.is_some() && shard.name.is_some() {
            return None;
        }
        let columns = index.shard_columns();
        let expression = shard_expression(table, &columns, shard.shards, shard.signed, dialect);
        let declaration = generated_column(&expression, table.not_null(&columns), dialect);
        Some((table.shard_column(index, dialect), declaration))
    };
    table.indexes.iter().filter_map(column).collect()
}

/// Returns the end of the statement: the primary key, the parent and the remaining clauses.
fn key_and_clauses(table: &TableDraft, front: &[(String, String)], dialect: Dialect) -> String {
    let mut parts: Vec<String> = front.iter().map(|(column, _)| quote(column, dialect)).collect();
    parts.extend(table.key.iter().map(|part| match dialect {
        Dialect::GoogleSql => key_part(part, dialect),
        // Primary keys of the PostgreSQL dialect are always ascending.
        Dialect::Postgres => quote(&part.column, dialect),
    }));
    let parts = parts.join(", ");
    let clauses = clauses(table, dialect);
    match dialect {
        Dialect::GoogleSql => {
            let clauses: String = clauses.iter().map(|clause| format!(",\n  {clause}")).collect();
            format!(") PRIMARY KEY ({parts}){clauses};\n")
        }
        Dialect::Postgres => {
            let clauses: String = clauses.iter().map(|clause| format!(" {clause}")).collect();
            format!("  PRIMARY KEY ({parts})\n){clauses};\n")
        }
    }
}

/// Returns the clauses that follow the key.
fn clauses(table: &TableDraft, dialect: Dialect) -> Vec<String> {
    let parent = table.parent.as_ref();
    let mut clauses: Vec<String> =
        parent.map(|parent| format!("INTERLEAVE IN PARENT {}", quote(parent, dialect))).into_iter().collect();
    match clauses.last_mut() {
        _ if table.clauses.is_empty() => {}
        // ON DELETE belongs to the INTERLEAVE clause and follows it without a comma.
        Some(parent) if table.clauses.starts_with("ON ") => {
            let _ = write!(parent, " {}", table.clauses);
        }
        _ => clauses.push(table.clauses.clone()),
    }
    clauses
}
