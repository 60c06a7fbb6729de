//! Rejects statements that parse but that Spanner would reject: names that are undeclared or
//! declared twice, unknown types, invalid keys. Simulating such statements would model a different
//! table.

use std::fmt::Display;

use sqlparser::tokenizer::Location;

use crate::schema::error::SchemaError;
use crate::schema::placed::{ParsedStatements, PlacedIndex, PlacedTable, Reference};
use crate::schema::tables::SchemaKey;
use crate::schema::types::TypeProblem;
use evenkeel_model::bounded::quote;

/// Limits on the columns of a key and on the depth of interleaving (Spanner, "Quotas and limits").
const MOST_KEY_COLUMNS: usize = 16;
const MOST_LEVELS: usize = 7;

fn alike(a: &str, b: &str) -> bool {
    a.eq_ignore_ascii_case(b)
}

fn error(at: Location, statement: &str, problem: String, next: impl Into<String>) -> SchemaError {
    let (line, column) = (at.line, at.column);
    SchemaError::Refused { line, column, statement: statement.to_owned(), problem, next: next.into() }
}

/// Returns the first name that occurs twice.
fn repeated<'a, T>(names: impl Iterator<Item = (&'a str, T)>) -> Option<(&'a str, T)> {
    let mut seen: Vec<&str> = Vec::new();
    for (name, place) in names {
        if seen.iter().any(|known| alike(known, name)) {
            return Some((name, place));
        }
        seen.push(name);
    }
    None
}

/// Lists the names of some columns, at most a dozen.
fn few<'a>(names: impl Iterator<Item = &'a String>) -> String {
    const MOST: usize = 12;
    let names: Vec<String> = names.map(|name| quote(name).to_string()).collect();
    let shown = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown} and {} more", names.len() - MOST) } else { shown }
}

impl ParsedStatements {
    pub(super) fn check(&self) -> Result<(), SchemaError> {
        let names = self.tables.iter().map(|table| (table.table.name.as_str(), table.at));
        if let Some((name, at)) = repeated(names) {
            let name = quote(name);
            let next = "leave one of them out, or rename it";
            return Err(error(
                at,
                &format!("CREATE TABLE {name}"),
                format!("table {name} is declared twice"),
                next,
            ));
        }
        self.tables.iter().try_for_each(|table| self.check_table(table))?;
        let names = self.tables.iter().map(|table| (table.table.name.as_str(), table.at));
        let names = names.chain(self.indexes.iter().map(|index| (index.index.name.as_str(), index.at)));
        if let Some((name, at)) = repeated(names) {
            let name = quote(name);
            let next = "tables and indexes share their names: rename it";
            return Err(error(
                at,
                &format!("CREATE INDEX {name}"),
                format!("the name {name} is taken"),
                next,
            ));
        }
        self.indexes.iter().try_for_each(|index| self.check_index(index))
    }

    fn table(&self, name: &str) -> Option<&PlacedTable> {
        self.tables.iter().find(|table| alike(&table.table.name, name))
    }

    fn declared(&self) -> String {
        few(self.tables.iter().map(|table| &table.table.name))
    }

    fn check_table(&self, placed: &PlacedTable) -> Result<(), SchemaError> {
        let table = &placed.table;
        let statement = format!("CREATE TABLE {}", quote(&table.name));
        let names = table.columns.iter().zip(&placed.columns);
        if let Some((name, at)) =
            repeated(names.clone().map(|(column, place)| (column.name.as_str(), place.at)))
        {
            let problem = format!("column {} is declared twice", quote(name));
            return Err(error(at, &statement, problem, "names differ by more than their case: rename one"));
        }
        for (column, place) in names {
            if let Err((at, TypeProblem { problem, next, .. })) = &place.column_type {
                return Err(error(
                    *at,
                    &statement,
                    format!("column {}: {problem}", quote(&column.name)),
                    next.as_str(),
                ));
            }
        }
        if table.primary_key.is_empty() {
            let problem = format!("table {} has no primary key", quote(&table.name));
            return Err(error(
                placed.at,
                &statement,
                problem,
                "write PRIMARY KEY (columns) after the columns",
            ));
        }
        self.check_key(placed, &table.primary_key, &placed.key, &statement, "the primary key")?;
        for reference in &placed.references {
            self.check_reference(placed, reference, &statement)?;
        }
        match (&table.parent, placed.parent) {
            (Some(parent), Some(at)) => self.check_parent(placed, parent, at, &statement),
            _ => Ok(()),
        }
    }

    /// Checks that the columns of a key exist, occur once, and have types that a key may have.
    fn check_key(
        &self,
        table: &PlacedTable,
        key: &[SchemaKey],
        places: &[Location],
        statement: &str,
        role: &str,
    ) -> Result<(), SchemaError> {
        for (part, at) in key.iter().zip(places) {
            let position = self.column(table, &part.column, *at, statement, role)?;
            let column_type = table.columns.get(position).and_then(|column| column.column_type.as_ref().ok());
            if let Some(column_type) = column_type.filter(|column_type| !column_type.is_key_type) {
                let problem = format!(
                    "{} has the type {}, which keys cannot have",
                    quote(&part.column),
                    quote(&column_type.name)
                );
                return Err(error(
                    *at,
                    statement,
                    problem,
                    "choose another column, or store a part of this one in a separate column",
                ));
            }
        }
        let names = key.iter().map(|part| part.column.as_str()).zip(places);
        if let Some((name, at)) = repeated(names) {
            let problem = format!("{role} names {} twice", quote(name));
            return Err(error(*at, statement, problem, "name each column once"));
        }
        if let Some(at) = places.get(MOST_KEY_COLUMNS) {
            let problem = format!("{role} has {} columns", key.len());
            return Err(error(*at, statement, problem, format!("a key has at most {MOST_KEY_COLUMNS}")));
        }
        Ok(())
    }

    /// Returns the position of a column in the table.
    fn column(
        &self,
        table: &PlacedTable,
        name: &str,
        at: Location,
        statement: &str,
        role: &str,
    ) -> Result<usize, SchemaError> {
        let position = table.table.columns.iter().position(|column| alike(&column.name, name));
        position.ok_or_else(|| {
            let columns = few(table.table.columns.iter().map(|column| &column.name));
            let (name, table) = (quote(name), quote(&table.table.name));
            let problem = format!("{role} names {name}, which is not a column of {table}");
            error(at, statement, problem, format!("declare it; {table} has {columns}"))
        })
    }

    fn check_reference(
        &self,
        table: &PlacedTable,
        reference: &Reference,
        statement: &str,
    ) -> Result<(), SchemaError> {
        let role = "a foreign key";
        for (name, at) in &reference.columns {
            self.column(table, name, *at, statement, role)?;
        }
        let (name, at) = &reference.table;
        let Some(referenced) = self.table(name) else {
            let problem = format!("{role} references {}, which is not declared here", quote(name));
            let next =
                format!("add its statement, or leave the foreign key out; declared are {}", self.declared());
            return Err(error(*at, statement, problem, next));
        };
        for (name, at) in &reference.referenced {
            self.column(referenced, name, *at, statement, role)?;
        }
        Ok(())
    }

    fn check_parent(
        &self,
        child: &PlacedTable,
        parent: &str,
        at: Location,
        statement: &str,
    ) -> Result<(), SchemaError> {
        let name = quote(parent);
        let Some(parent) = self.table(parent) else {
            let problem = format!("it is interleaved in {name}, which is not declared here");
            let next = format!(
                "add the statement of {name}, or leave INTERLEAVE out to model the keys alone; declared are {}",
                self.declared()
            );
            return Err(error(at, statement, problem, next));
        };
        self.check_ancestors(child, parent, at, statement)?;
        check_key_prefix(child, parent, at, statement)
    }

    /// Rejects cycles and chains of parents that are too long.
    fn check_ancestors(
        &self,
        child: &PlacedTable,
        parent: &PlacedTable,
        at: Location,
        statement: &str,
    ) -> Result<(), SchemaError> {
        let (mut above, mut levels) = (Some(parent), 1);
        while let Some(table) = above {
            if alike(&table.table.name, &child.table.name) {
                let problem = format!("it is interleaved in itself, by way of {}", parent_name(child));
                return Err(error(
                    at,
                    statement,
                    problem,
                    "a table is interleaved in one that is declared before it",
                ));
            }
            levels += 1;
            if levels > MOST_LEVELS {
                let problem = format!("more than {MOST_LEVELS} tables are interleaved in each other");
                return Err(error(at, statement, problem, "leave INTERLEAVE out of the lowest"));
            }
            above = table.table.parent.as_ref().and_then(|parent| self.table(parent));
        }
        Ok(())
    }

    fn check_index(&self, placed: &PlacedIndex) -> Result<(), SchemaError> {
        let index = &placed.index;
        let statement = format!("CREATE INDEX {}", quote(&index.name));
        let Some(table) = self.table(&index.table) else {
            let problem = format!(
                "index {} is of table {}, which is not declared here",
                quote(&index.name),
                quote(&index.table)
            );
            let next = format!("add its statement; declared are {}", self.declared());
            return Err(error(placed.table, &statement, problem, next));
        };
        self.check_key(table, &index.columns, &placed.columns, &statement, "the index")?;
        for (name, at) in index.storing.iter().zip(&placed.storing) {
            self.column(table, name, *at, &statement, "STORING")?;
        }
        let stored = index.storing.iter().map(String::as_str).zip(&placed.storing);
        let keys = index.columns.iter().map(|part| part.column.as_str()).zip(&placed.columns);
        if let Some((name, at)) = repeated(keys.chain(stored)) {
            let problem = format!("the index has {} twice", quote(name));
            return Err(error(
                *at,
                &statement,
                problem,
                "name each column once, in its key or after STORING",
            ));
        }
        match (&index.interleaved_in, placed.parent) {
            (Some(parent), Some(at)) if self.table(parent).is_none() => {
                let problem = format!("it is interleaved in {}, which is not declared here", quote(parent));
                let next =
                    format!("add its statement, or leave INTERLEAVE out; declared are {}", self.declared());
                Err(error(at, &statement, problem, next))
            }
            _ => Ok(()),
        }
    }
}

/// Checks that the key of a child begins with that of its parent.
fn check_key_prefix(
    child: &PlacedTable,
    parent: &PlacedTable,
    at: Location,
    statement: &str,
) -> Result<(), SchemaError> {
    let (theirs, ours) = (&parent.table.primary_key, &child.table.primary_key);
    let type_of = |table: &PlacedTable, name: &str| {
        let position = table.table.columns.iter().position(|column| alike(&column.name, name))?;
        let column_type = table.columns.get(position)?.column_type.as_ref().ok()?;
        Some(column_type.name.clone())
    };
    for (number, key) in theirs.iter().enumerate() {
        let own = ours.get(number);
        let is_same = own.is_some_and(|own| {
            alike(&own.column, &key.column)
                && own.descending == key.descending
                && type_of(child, &own.column) == type_of(parent, &key.column)
        });
        if !is_same {
            let place = child.key.get(number).copied().unwrap_or(at);
            let key_of_parent = few(theirs.iter().map(|key| &key.column));
            let problem = format!(
                "its key does not begin with that of {}, in which it is interleaved",
                parent_name(child)
            );
            let next = format!("let it begin with {key_of_parent}, of the same types and in the same order");
            return Err(error(place, statement, problem, next));
        }
    }
    Ok(())
}

/// Name of a table's parent, as the table spells it.
fn parent_name(child: &PlacedTable) -> impl Display {
    quote(child.table.parent.as_deref().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use crate::schema::error::SchemaError;
    use crate::schema::parse::parse_schema;

    /// Returns why a schema is refused, with its place.
    fn refused(text: &str) -> Option<String> {
        match parse_schema(text) {
            Err(SchemaError::Refused { line, column, problem, .. }) => {
                Some(format!("{line}:{column} {problem}"))
            }
            other => other.err().map(|error| panic!("{text}: {error}")),
        }
    }

    /// A table in one line, with these key columns of INT64.
    fn table(name: &str, key: &[String], parent: Option<&str>) -> String {
        let columns: String =
            key.iter().map(|column| format!("{} INT64, ", column.replace(" DESC", ""))).collect();
        let parent = parent.map(|parent| format!(", INTERLEAVE IN PARENT {parent}")).unwrap_or_default();
        format!("CREATE TABLE {name} ({columns}) PRIMARY KEY ({}){parent};\n", key.join(", "))
    }

    proptest! {
        #[test]
        fn a_table_is_below_at_most_six_others_and_never_below_itself(parents in proptest::collection::vec(0usize..14, 1..12)) {
            // Table n has the parent with that number; beyond the last, it has none.
            let parent = |table: usize| parents.get(table).copied().filter(|parent| *parent < parents.len());
            let key = ["a".to_owned()];
            let text: String = (0..parents.len())
                .map(|number| table(&format!("t{number}"), &key, parent(number).map(|parent| format!("t{parent}")).as_deref()))
                .collect();
            // Walking up from any table ends after at most seven tables, itself included.
            let ends = |table: usize| {
                let mut above = Some(table);
                (0..7).for_each(|_| above = above.and_then(parent));
                above.is_none()
            };
            let problem = refused(&text);
            prop_assert_eq!(problem.is_none(), (0..parents.len()).all(ends), "{}{:?}", text, problem);
        }

        #[test]
        fn the_key_of_a_child_begins_with_that_of_its_parent(
            parent in proptest::sample::subsequence(vec!["a", "b DESC", "c", "d DESC"], 1..4),
            child in proptest::sample::subsequence(vec!["a", "b", "b DESC", "c", "d DESC"], 1..5),
        ) {
            let [parent, child] = [parent, child].map(|key| key.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>());
            // A key that names a column twice is refused for that.
            let is_unique = !(child.contains(&"b".to_owned()) && child.contains(&"b DESC".to_owned()));
            let text = table("p", &parent, None) + &table("t", &child, Some("p"));
            prop_assert_eq!(refused(&text).is_none(), is_unique && child.starts_with(&parent), "{}", text);
        }
    }

    #[test]
    fn a_key_has_at_most_sixteen_columns() {
        let columns = |count: usize| (0..count).map(|number| format!("c{number}")).collect::<Vec<_>>();
        assert_eq!(refused(&table("t", &columns(16), None)), None);
        let problem = refused(&table("t", &columns(17), None)).unwrap();
        assert!(problem.ends_with("the primary key has 17 columns"), "{problem}");
        // The place of the error is the seventeenth column.
        let text = table("t", &columns(17), None);
        let at = text.rfind("c16").unwrap() + 1;
        assert!(problem.starts_with(&format!("1:{at} ")), "{problem}");
    }

    #[test]
    fn names_are_compared_without_case_and_listed_up_to_a_dozen() {
        let text = table("Users", &["Id".to_owned()], None);
        assert_eq!(refused(&format!("{text}CREATE INDEX i ON USERS(ID)")), None);
        let problem = refused(&format!("{text}CREATE INDEX users ON Users(Id)")).unwrap();
        assert_eq!(problem, "2:14 the name users is taken");
        let tables: String =
            (0..15).map(|number| table(&format!("t{number}"), &["a".to_owned()], None)).collect();
        let error = parse_schema(&format!("{tables}CREATE INDEX i ON u(a)")).unwrap_err().to_string();
        assert!(
            error.ends_with("declared are t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11 and 3 more"),
            "{error}"
        );
    }
}
