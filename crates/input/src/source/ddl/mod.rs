//! Tables that statements of other systems declare: names and types of columns, and keys.
//!
//! Statements of PostgreSQL (also Citus and Greenplum), MySQL, ClickHouse, Doris, StarRocks,
//! Cassandra, Spanner and YDB have a common form that is read here; system-specific parts are
//! skipped:
//!
//! ```text
//! CREATE TABLE [IF NOT EXISTS] name ( column type ..., PRIMARY KEY (columns) ) clauses
//!     ORDER BY | PRIMARY KEY | DUPLICATE KEY | UNIQUE KEY (columns)
//!     PARTITION BY HASH (columns) | DISTRIBUTED BY [HASH] (columns) [BUCKETS n]
//!     ENGINE = Distributed(cluster, database, table, key)
//! ALTER TABLE [ONLY] name ADD [CONSTRAINT name] PRIMARY KEY (columns)
//! SELECT create_distributed_table('name', 'column')
//! ```

mod tokens;
mod types;

use sqlparser::tokenizer::Token;
use thiserror::Error;

use crate::source::ddl::tokens::{Tokens, statements};
use crate::source::ddl::types::type_of;
use crate::source::declared::{DeclaredColumn, DeclaredTable, TableLayout};
use evenkeel_model::bounded::{names, quote};

/// Reason why no table is found in statements.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum DdlFileError {
    #[error("{reason}")]
    Text { reason: String },
    #[error("there is no CREATE TABLE with columns")]
    NoTable,
    #[error("there are several tables; name one of them with --table: {}", names(found))]
    SeveralTables { found: Vec<String> },
    #[error("there is no table '{table}'; there are: {}", names(found), table = quote(table))]
    NoSuchTable { table: String, found: Vec<String> },
}

/// Reads the table that statements declare; if there are several, `table` names one.
///
/// # Errors
/// [`DdlFileError`] if there is not exactly one such table.
pub fn read_ddl(text: &str, file: &str, table: Option<&str>) -> Result<DeclaredTable, DdlFileError> {
    let tables = read_tables(text).map_err(|reason| DdlFileError::Text { reason })?;
    let table_names = || tables.iter().map(|table| table.name.clone()).collect::<Vec<_>>();
    let chosen = match (table, tables.as_slice()) {
        (_, []) => return Err(DdlFileError::NoTable),
        (None, [only]) => Some(only),
        (None, _) => return Err(DdlFileError::SeveralTables { found: table_names() }),
        (Some(name), _) => {
            let exact = tables.iter().find(|table| table.name == name);
            let mut named = tables.iter().filter(|table| table.is_named(name));
            let first = named.next();
            if exact.is_none() && named.next().is_some() {
                return Err(DdlFileError::SeveralTables { found: table_names() });
            }
            exact.or(first)
        }
    };
    let chosen = chosen.cloned().ok_or_else(|| DdlFileError::NoSuchTable {
        table: table.unwrap_or_default().to_owned(),
        found: table_names(),
    })?;
    Ok(DeclaredTable { file: file.to_owned(), ..chosen })
}

/// Reads all tables that statements declare.
///
/// # Errors
/// The reason why the text cannot be split into tokens.
pub(super) fn read_tables(text: &str) -> Result<Vec<DeclaredTable>, String> {
    let mut tables: Vec<DeclaredTable> = Vec::new();
    for tokens in statements(text)? {
        let mut tokens = Tokens::new(&tokens);
        if tokens.skips("CREATE") {
            tables.extend(create_table(&mut tokens));
        } else if tokens.skips("ALTER") {
            alter_table(&mut tokens, &mut tables);
        } else if tokens.skips("SELECT") {
            distribute_table(&mut tokens, &mut tables);
        }
    }
    Ok(tables.into_iter().map(with_known_keys).collect())
}

/// The statement before the rows of a table in a dump of PostgreSQL.
pub(super) struct CopyStatement {
    pub(super) table: String,
    pub(super) columns: Vec<String>,
}

/// Reads `COPY table (columns) FROM stdin;`; `None` for any other line.
pub(super) fn read_copy(line: &str) -> Option<CopyStatement> {
    if !line.starts_with("COPY ") || !line.trim_end().ends_with("FROM stdin;") {
        return None;
    }
    let statements = statements(line).ok()?;
    let mut tokens = Tokens::new(statements.first()?);
    tokens.advance()?;
    let table = tokens.qualified_name()?;
    let columns = tokens.group()?.split_at_commas().into_iter().map(|mut name| name.word());
    Some(CopyStatement { table, columns: columns.collect::<Option<_>>()? })
}

/// Reads the name of a table at the beginning of a text.
pub(super) fn read_name(text: &str) -> Option<String> {
    // The rest of the text may be rows of any length.
    let short = text.get(..512).unwrap_or(text);
    let end = short.find(" (").or_else(|| short.find(" VALUES")).unwrap_or(short.len());
    let statements = statements(short.get(..end)?).ok()?;
    Tokens::new(statements.first()?).qualified_name()
}

/// A partition of a table of PostgreSQL.
pub(super) struct AttachedPartition {
    pub(super) parent: String,
    pub(super) partition: String,
}

/// Reads `ALTER TABLE [ONLY] parent ATTACH PARTITION partition ...` from statements.
pub(super) fn read_attach(text: &str) -> Vec<AttachedPartition> {
    let statement = |tokens: &Vec<Token>| {
        let mut tokens = Tokens::new(tokens);
        if !(tokens.skips("ALTER") && tokens.skips("TABLE")) {
            return None;
        }
        let _ = tokens.skips("ONLY");
        let parent = tokens.qualified_name()?;
        let attaches = tokens.skips("ATTACH") && tokens.skips("PARTITION");
        let partition = attaches.then(|| tokens.qualified_name())??;
        Some(AttachedPartition { parent, partition })
    };
    statements(text).unwrap_or_default().iter().filter_map(statement).collect()
}

/// Whether a table has this name, with or without its schema.
fn is_named(table: &DeclaredTable, name: &str) -> bool {
    table.name == name || table.name.rsplit(['.', '/']).next() == name.rsplit(['.', '/']).next()
}

/// Reads a statement after its CREATE; `None` if it does not declare a table with columns.
fn create_table(tokens: &mut Tokens<'_>) -> Option<DeclaredTable> {
    // CREATE OR REPLACE TEMPORARY EXTERNAL COLUMN TABLE
    let mut words = 0;
    while !tokens.skips("TABLE") {
        tokens.word()?;
        words += 1;
        if words > 4 {
            return None;
        }
    }
    if tokens.skips("IF") {
        tokens.word()?;
        tokens.word()?;
    }
    let mut table = DeclaredTable { name: tokens.qualified_name()?, ..DeclaredTable::default() };
    // ClickHouse: ON CLUSTER name, UUID '...'
    while !tokens.is_open() {
        tokens.advance()?;
    }
    for mut element in tokens.group()?.split_at_commas() {
        if element.is_constraint() {
            if let Some(key) = element.key_after(&["PRIMARY", "KEY"]) {
                set_primary_key(&mut table, key);
            }
        } else if let Some(column) = column(&mut element, &mut table) {
            table.columns.push(column);
        }
    }
    clauses(tokens, &mut table);
    (!table.columns.is_empty()).then_some(table)
}

/// A list of columns; `of_partition` are the columns in inner brackets: `((a, b), c)`.
pub(super) struct KeyColumns {
    pub(super) columns: Vec<String>,
    pub(super) of_partition: Vec<String>,
}

fn set_primary_key(table: &mut DeclaredTable, key: KeyColumns) {
    table.primary_key = key.columns;
    if !key.of_partition.is_empty() {
        table.partition_key = key.of_partition;
    }
}

/// Removes parts that are not columns from the keys, such as functions.
fn with_known_keys(mut table: DeclaredTable) -> DeclaredTable {
    let known: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    table.primary_key.retain(|name| known.contains(name));
    table.partition_key.retain(|name| known.contains(name));
    table
}

fn has_column(table: &DeclaredTable, name: &str) -> bool {
    table.columns.iter().any(|column| column.name == name)
}

/// Reads a column; a PRIMARY KEY after it is the primary key of the table.
fn column(tokens: &mut Tokens<'_>, table: &mut DeclaredTable) -> Option<DeclaredColumn> {
    let name = tokens.word()?;
    // ClickHouse exports neither computed columns nor insert-only ones.
    if ["MATERIALIZED", "ALIAS", "EPHEMERAL"].iter().any(|word| tokens.has(&[word])) {
        return None;
    }
    let column_type = type_of(tokens);
    let is_key = tokens.has(&["PRIMARY", "KEY"]);
    if is_key {
        table.primary_key = vec![name.clone()];
    }
    let nullable = column_type.is_nullable && !tokens.has(&["NOT", "NULL"]) && !is_key;
    Some(DeclaredColumn { name, column_type: column_type.column_type, nullable })
}

/// Reads the clauses after the columns.
fn clauses(tokens: &mut Tokens<'_>, table: &mut DeclaredTable) {
    let mut sorting_key = None;
    while !tokens.is_at_end() {
        if tokens.is_call("Distributed") {
            let _ = tokens.advance();
            let arguments = tokens.group().map(|group| group.split_at_commas()).unwrap_or_default();
            let key = arguments.get(3).map(Tokens::words).unwrap_or_default();
            table.partition_key = key.into_iter().filter(|name| has_column(table, name)).collect();
        } else if tokens.skips("PRIMARY") {
            if let Some(key) = tokens.key_after(&["KEY"]) {
                set_primary_key(table, key);
            }
        } else if tokens.skips("ORDER") || tokens.skips("DUPLICATE") || tokens.skips("UNIQUE") {
            let _ = tokens.skips("BY") || tokens.skips("KEY");
            sorting_key = sorting_key.or(tokens.key());
        } else if tokens.skips("DISTRIBUTED") {
            table.is_replicated |= tokens.skips("REPLICATED");
            let _ = tokens.skips("BY") && tokens.skips("HASH");
            if let Some(key) = tokens.key() {
                table.partition_key = key.columns;
            }
        } else if tokens.skips("PARTITION") {
            if tokens.skips("BY")
                && tokens.skips("HASH")
                && let Some(key) = tokens.key()
            {
                table.partition_key = key.columns;
            }
        } else if tokens.skips("STORE") {
            let _ = tokens.advance();
            if tokens.skips("COLUMN") {
                table.layout = TableLayout::Column;
            }
        } else if tokens.skips("BUCKETS") || tokens.skips("PARTITIONS") {
            table.partitions = tokens.number().or(table.partitions);
        } else if tokens.skips("AUTO_PARTITIONING_MIN_PARTITIONS_COUNT") {
            let _ = tokens.advance();
            table.partitions = tokens.number().or(table.partitions);
        } else {
            let _ = tokens.advance();
        }
    }
    if let Some(key) = sorting_key.filter(|_| table.primary_key.is_empty()) {
        table.primary_key = key.columns;
    }
}

/// Reads a statement after its ALTER.
fn alter_table(tokens: &mut Tokens<'_>, tables: &mut [DeclaredTable]) {
    if !tokens.skips("TABLE") {
        return;
    }
    if tokens.skips("IF") {
        let _ = tokens.word();
    }
    let _ = tokens.skips("ONLY");
    let Some(name) = tokens.qualified_name() else { return };
    let Some(table) = tables.iter_mut().find(|table| table.name == name) else { return };
    if let Some(key) = tokens.key_after(&["PRIMARY", "KEY"]) {
        set_primary_key(table, key);
    }
}

/// Reads a call after its SELECT.
fn distribute_table(tokens: &mut Tokens<'_>, tables: &mut [DeclaredTable]) {
    if !tokens.skips("create_distributed_table") {
        return;
    }
    let Some(arguments) = tokens.group() else { return };
    let texts = arguments.texts();
    let [name, column, ..] = texts.as_slice() else { return };
    if let Some(table) = tables.iter_mut().find(|table| is_named(table, name))
        && has_column(table, column)
    {
        table.partition_key = vec![column.clone()];
    }
}

#[cfg(test)]
mod tests;
