//! Dumps of PostgreSQL as text: statements that declare tables, then the rows of each in the text
//! format of COPY, then keys. Scripts of others with such statements are read in the same way.
//!
//! ```text
//! CREATE TABLE public.events (id bigint NOT NULL, ...);
//! COPY public.events (id, ...) FROM stdin;
//! 1   ...
//! \.
//! ALTER TABLE ONLY public.events ADD CONSTRAINT events_pkey PRIMARY KEY (id);
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, Read};

use crate::source::ddl::{AttachedPartition, CopyStatement, read_attach, read_copy, read_name, read_tables};
use crate::source::declared::{DataForm, DeclaredColumn, DeclaredTable, TableLayout};
use crate::source::error::SourceError;
use crate::source::escaped::EscapedFields;
use crate::source::format::MAX_RECORD_BYTES;
use crate::source::input_path::InputPath;
use crate::source::lines::LineReader;
use crate::source::options::{InputOptions, Section};
use crate::source::raw::{RawBatch, RawPart, RawReader};
use crate::source::stored::open_decompressed;
use crate::source::stream::buffered;
use crate::source::systems::pg_lines::{Line, Statements};
use evenkeel_model::bounded::quote;
use evenkeel_model::remark::Remark;

/// Maximum size of the statements that declare tables.
const MAX_STATEMENT_BYTES: usize = 16 << 20;
/// Line that ends the rows of a table.
const END: &[u8] = b"\\.";

/// First words of statements with which scripts begin.
const FIRST_WORDS: [&str; 9] =
    ["ALTER", "BEGIN", "COPY", "CREATE", "DROP", "INSERT", "SET", "START", "TRUNCATE"];

/// Whether a comment is the title of a dump of one database.
fn is_title(line: &str) -> bool {
    line.starts_with("-- PostgreSQL database dump") || line.starts_with("-- Greenplum Database database dump")
}

/// Whether the first bytes of a file show a dump of one database, or statements with a section of
/// rows.
pub(in crate::source) fn is_dump(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && *line != "--");
    first.is_some_and(is_title)
        || (is_script(&text)
            && text.lines().any(|line| line.starts_with("COPY ") && read_copy(line).is_some()))
}

/// Whether a text begins with an SQL statement.
pub(super) fn is_script(text: &str) -> bool {
    let word = after_comments(text).split([' ', '\n', '\r', ';']).next().unwrap_or_default();
    FIRST_WORDS.iter().any(|first| word.eq_ignore_ascii_case(first))
}

/// Returns a text without the comments, the commands of psql and the blanks that it begins with.
fn after_comments(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let comment = match rest.as_bytes() {
            [b'/', b'*', ..] => rest.split_once("*/"),
            [b'-', b'-', ..] | [b'#' | b'\\', ..] => rest.split_once('\n'),
            _ => None,
        };
        match comment {
            Some((_, after)) => rest = after.trim_start(),
            None => return rest,
        }
    }
}

/// Returns the tables of a dump, in the order of their declarations; partitions are part of their
/// parents.
///
/// # Errors
/// [`SourceError`] if the dump cannot be read, or has its rows as INSERT statements.
pub(in crate::source) fn tables(input: &InputPath) -> Result<Vec<DeclaredTable>, SourceError> {
    let file = input.name();
    let error = |source| SourceError::Read { file: file.clone(), source };
    let mut stream = buffered(open_decompressed(input)?);
    let mut outline = Outline::default();
    let mut line = Vec::new();
    let mut number = 0u64;
    loop {
        line.clear();
        number += 1;
        let count = (&mut stream).take(MAX_RECORD_BYTES as u64 + 1).read_until(b'\n', &mut line);
        match count.map_err(error)? {
            0 => break,
            count if count > MAX_RECORD_BYTES => {
                return Err(SourceError::RecordTooLong { file, line: number });
            }
            _ => outline.line(line.trim_ascii_end()),
        }
        if outline.statements.len() > MAX_STATEMENT_BYTES {
            return Err(SourceError::Refused {
                file,
                problem: format!("the pg_dump has more than {} MiB of statements", MAX_STATEMENT_BYTES >> 20),
                advice: "dump the table alone: pg_dump --table NAME".to_owned(),
            });
        }
    }
    outline.tables(&file)
}

/// The parts of a dump other than its rows.
#[derive(Default)]
struct Outline {
    /// Statements that declare tables and their keys.
    statements: String,
    place: Statements,
    is_declaration: bool,
    is_in_rows: bool,
    /// Statements of the sections with rows.
    copies: Vec<CopyStatement>,
    /// Tables with rows as INSERT statements.
    inserted: BTreeSet<String>,
    /// The first section with rows in a form that pg_dump does not write.
    other_copy: Option<String>,
    /// Whether it has the title that pg_dump writes, and then also a last line.
    has_title: bool,
    is_complete: bool,
}

impl Outline {
    fn line(&mut self, line: &[u8]) {
        if self.is_in_rows {
            self.is_in_rows = line != END;
            return;
        }
        let text = String::from_utf8_lossy(line);
        match self.place.take(line) {
            Line::Other => {
                self.is_complete |= text.starts_with("-- ") && text.ends_with(" database dump complete");
                self.has_title |= is_title(&text);
                return;
            }
            Line::Begins => {
                let starts = |words: &str| text.starts_with(words);
                if let Some(copy) = read_copy(&text) {
                    self.is_in_rows = true;
                    self.copies.push(copy);
                    return;
                }
                if starts("COPY ") && text.to_ascii_lowercase().contains(" from stdin") {
                    self.other_copy.get_or_insert_with(|| text.clone().into_owned());
                }
                if let Some(rest) = text.strip_prefix("INSERT INTO ") {
                    self.inserted.extend(read_name(rest));
                }
                self.is_declaration = starts("ALTER TABLE ") || starts("CREATE ") && text.contains(" TABLE ");
            }
            Line::Continues => {}
        }
        if self.is_declaration {
            self.statements.push_str(&text);
            self.statements.push('\n');
        }
    }

    fn tables(self, file: &str) -> Result<Vec<DeclaredTable>, SourceError> {
        self.check_completeness(file)?;
        let declared = read_tables(&self.statements).map_err(|reason| SourceError::Refused {
            file: file.to_owned(),
            problem: format!("the statements of the pg_dump cannot be read: {reason}"),
            advice: "write the table as CSV: psql -c \"\\copy TABLE TO 'TABLE.csv' CSV HEADER\"".to_owned(),
        })?;
        let parents = Parents::from_statements(&self.statements);
        let mut tables: Vec<DeclaredTable> =
            declared.into_iter().filter(|table| !parents.has_parent(&table.name)).collect();
        self.add_undeclared(&parents, &mut tables);
        for table in &mut tables {
            file.clone_into(&mut table.file);
            self.complete_table(&parents, table);
        }
        Ok(tables)
    }

    /// Checks that the dump has its end, and all rows in the form that pg_dump writes.
    fn check_completeness(&self, file: &str) -> Result<(), SourceError> {
        let refused = |problem: &str, advice: &str| SourceError::Refused {
            file: file.to_owned(),
            problem: problem.to_owned(),
            advice: advice.to_owned(),
        };
        if let Some(copy) = &self.other_copy {
            let problem =
                format!("the pg_dump has rows in a form that pg_dump does not write: {}", quote(copy));
            return Err(refused(&problem, "dump the table with pg_dump, without changing the result"));
        }
        if self.has_title && (!self.is_complete || self.is_in_rows || !self.place.is_between()) {
            return Err(refused(
                "the pg_dump is cut off: 'database dump complete' is missing at its end",
                "dump it again; rows may be missing",
            ));
        }
        if self.is_in_rows || !self.place.is_between() {
            return Err(refused(
                "the statements are cut off: the last one does not end, or its rows do not end with '\\.'",
                "write the file again; rows may be missing",
            ));
        }
        Ok(())
    }

    /// Adds the tables with rows that no statement declares: a dump of rows alone has only names.
    fn add_undeclared(&self, parents: &Parents, tables: &mut Vec<DeclaredTable>) {
        for copy in &self.copies {
            let name = parents.root(&copy.table);
            if !tables.iter().any(|table| table.name == name) {
                let column =
                    |name: &String| DeclaredColumn { name: name.clone(), column_type: None, nullable: true };
                let columns = copy.columns.iter().map(column).collect();
                tables.push(DeclaredTable { name, columns, ..DeclaredTable::default() });
            }
        }
    }

    /// Completes a table by what the sections with its rows say.
    fn complete_table(&self, parents: &Parents, table: &mut DeclaredTable) {
        table.form = DataForm::Section;
        table.layout = TableLayout::Unknown;
        let own: Vec<&CopyStatement> =
            self.copies.iter().filter(|copy| parents.root(&copy.table) == table.name).collect();
        let copied: Vec<&String> = own.iter().flat_map(|copy| &copy.columns).collect();
        // A table that inherits from another declares only its own columns.
        for name in &copied {
            if !table.columns.iter().any(|column| column.name == **name) {
                table.columns.push(DeclaredColumn::untyped(name));
            }
        }
        leave_out_generated(table, &copied);
        table.sections = own.iter().map(|copy| copy.table.clone()).collect();
        table.sections.dedup();
        table.has_other_rows = self.inserted.iter().any(|name| parents.root(name) == table.name);
    }
}

/// Leaves out the generated columns of a table: their values are not dumped. `copied` has the
/// columns of its rows; without any, all columns stay.
fn leave_out_generated(table: &mut DeclaredTable, copied: &[&String]) {
    let is_left_out = |name: &String| !copied.is_empty() && !copied.contains(&name);
    for column in table.columns.iter().filter(|column| is_left_out(&column.name)) {
        let name = &column.name;
        let text = format!("column '{name}' is generated and not dumped; it has no values here");
        table.notes.push(Remark::on_column("generated_column_left_out", name, text));
    }
    if table.primary_key.iter().any(is_left_out) {
        table.primary_key.clear();
    }
    table.columns.retain(|column| !is_left_out(&column.name));
}

/// The parent of each partition.
struct Parents(BTreeMap<String, String>);

impl Parents {
    fn from_statements(statements: &str) -> Self {
        let attached = read_attach(statements).into_iter();
        Self(attached.map(|AttachedPartition { parent, partition }| (partition, parent)).collect())
    }

    fn has_parent(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Name of the table that a table is part of, itself if it is no partition.
    fn root(&self, name: &str) -> String {
        let mut name = name.to_owned();
        // A chain of parents is no longer than there are tables, unless it is a circle.
        for _ in 0..self.0.len() {
            match self.0.get(&name) {
                Some(parent) => name.clone_from(parent),
                None => break,
            }
        }
        name
    }
}

/// Reads the rows of one table of a dump.
pub(in crate::source) struct DumpSectionReader {
    file: String,
    lines: LineReader<EscapedFields>,
    section: Section,
    place: Statements,
    is_in_section: bool,
}

impl DumpSectionReader {
    pub(in crate::source) fn open(
        file: &str,
        stream: Box<dyn Read + Send>,
        requested: &[String],
        options: &InputOptions,
    ) -> Result<Self, SourceError> {
        let Some(section) = options.section.clone() else {
            return Err(SourceError::Foreign {
                file: file.to_owned(),
                what: "a pg_dump".to_owned(),
                advice: "name it as a file, because its keys follow the rows and it is read twice".to_owned(),
            });
        };
        let lines = LineReader::open(file, stream, section.columns.clone(), requested, options.batch_rows);
        Ok(Self { file: file.to_owned(), lines, section, place: Statements::default(), is_in_section: false })
    }

    /// Moves to the next section with rows of the table; returns whether there is one.
    fn find_section(&mut self) -> Result<bool, SourceError> {
        let mut is_in_others = false;
        while let Some(line) = self.lines.next_line()? {
            if is_in_others {
                is_in_others = line != END;
            } else if self.place.take(line) == Line::Begins
                && line.starts_with(b"COPY ")
                && let Some(copy) = read_copy(&String::from_utf8_lossy(line))
            {
                if self.section.tables.contains(&copy.table) {
                    self.lines.begin(copy.columns);
                    return Ok(true);
                }
                is_in_others = true;
            }
        }
        Ok(false)
    }

    /// Reads the next rows of the table, in whichever section they are.
    fn next<T>(
        &mut self,
        read: impl Fn(&mut LineReader<EscapedFields>) -> Result<Option<T>, SourceError>,
    ) -> Result<Option<T>, SourceError> {
        loop {
            if !self.is_in_section && !self.find_section()? {
                return Ok(None);
            }
            self.is_in_section = true;
            if let Some(rows) = read(&mut self.lines)? {
                return Ok(Some(rows));
            }
            if !self.lines.has_met_end() {
                return Err(SourceError::Refused {
                    file: self.file.clone(),
                    problem: "the pg_dump ends within the rows of the table".to_owned(),
                    advice: "dump it again; rows are missing".to_owned(),
                });
            }
            self.is_in_section = false;
        }
    }
}

impl RawReader for DumpSectionReader {
    fn next_batch(&mut self) -> Result<Option<RawBatch>, SourceError> {
        self.next(LineReader::read_batch)
    }

    fn next_part(&mut self) -> Result<Option<RawPart>, SourceError> {
        self.next(LineReader::read_part)
    }

    fn unknown_columns(&self) -> Vec<String> {
        self.lines.unknown_columns()
    }

    fn column_names(&self) -> Option<Vec<String>> {
        Some(self.section.columns.clone())
    }
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
