//! Infers columns from a sample file.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, TimeUnit};
use rayon::iter::{IntoParallelRefMutIterator, ParallelIterator};

use crate::source::avro::NUMBERS_AS_TEXT;
use crate::source::error::{SourceError, wrong_separator};
use crate::source::extended_json::Kind;
use crate::source::format::InputFormat;
use crate::source::guess::{Guess, NUMBERS, TIMES, holds};
use crate::source::input_path::InputPath;
use crate::source::input_path::RemoteFile;
use crate::source::ndjson::{self, Members};
use crate::source::open::Input;
use crate::source::options::InputOptions;
use crate::source::raw::RawCells;
use crate::source::remote_listing::{self, RemotePlace};
use crate::source::sample::Sample;
use crate::source::stored::open_decompressed;
use crate::source::wide_times::{SAMPLE_RECORDS, first_extremes, widen_times};
use evenkeel_model::bounded::quote;
use evenkeel_model::note::Note;
use evenkeel_model::table::{Column, ColumnType};
use evenkeel_storage::Place;

/// Greatest number of bytes of the name of a column.
const LONGEST_NAME: usize = 4_096;

/// Infers the columns of a file, given as a path or as a URL of an object store, with their YDB
/// types. A column is nullable unless the file declares it NOT NULL. Columns with dates and times
/// outside 1970 to 2105 are Date32 and Timestamp64; this is read from the statistics of Parquet
/// files, and from the first 100,000 records of other columnar files. Text files are judged by
/// their first 100,000 records, too: whole numbers are Int64 (Uint64 if they need it), other
/// numbers Double, dates Date, points in time Timestamp (Date32 and Timestamp64 outside 1970 to
/// 2105), everything else Utf8. Numbers with leading zeros or a plus sign, and numbers with more
/// digits than Double holds exactly, are text.
///
/// # Errors
/// [`SourceError`] if the file cannot be read or has no records.
pub fn infer_columns(path: &Path, options: &InputOptions) -> Result<Sample, SourceError> {
    let name = || path.display().to_string();
    let input = match Place::parse(path)? {
        Place::Local(path) if path.exists() && !path.is_file() => {
            let reason = match path.is_dir() {
                true => "it is a folder: name one of its files as the sample",
                false => "a sample must be a file, because it is read twice",
            };
            let reason = reason.to_owned();
            return Err(SourceError::Infer { file: name(), reason });
        }
        Place::Local(path) => InputPath::File(path),
        Place::Remote(url) => {
            let files = match remote_listing::find(&name(), &url)? {
                RemotePlace::Files(files) => files,
                RemotePlace::Folder(folder) => folder.data_files(),
            };
            let [file] = <[RemoteFile; 1]>::try_from(files).map_err(|files| SourceError::Infer {
                file: name(),
                reason: format!("a sample must be one file, but it names {}", files.len()),
            })?;
            InputPath::Remote(file)
        }
    };
    let mut sample = infer_input(&input, options)?;
    sample.read_path(&[input], options);
    Ok(sample)
}

/// Infers the columns of an input that is a file or a copy; see [`infer_columns`].
///
/// Fails with [`SourceError::Infer`] if a column has a name of more than [`LONGEST_NAME`] bytes.
pub(super) fn infer_input(input_path: &InputPath, options: &InputOptions) -> Result<Sample, SourceError> {
    if let Some(columns) = &options.declared {
        return Ok(Sample::declared(columns.clone(), Vec::new()));
    }
    let sample = infer_unlimited(input_path, options)?;
    check_lengths(sample.columns.iter().map(|column| column.name.as_str()), &input_path.name())?;
    Ok(sample)
}

/// Rejects names that no system accepts and that every line of output would repeat.
fn check_lengths<'a>(mut names: impl Iterator<Item = &'a str>, file: &str) -> Result<(), SourceError> {
    let Some(long) = names.find(|name| name.len() > LONGEST_NAME) else { return Ok(()) };
    let reason = format!(
        "a column has a name of {} bytes, '{}'; at most {LONGEST_NAME} are read. If there is no header, name the columns \
         with --names id,user_id,...",
        long.len(),
        quote(long),
    );
    Err(SourceError::Infer { file: file.to_owned(), reason })
}

fn infer_unlimited(input_path: &InputPath, options: &InputOptions) -> Result<Sample, SourceError> {
    let input = Input::open_unknown(input_path, &[], options)?;
    if let Some(schema) = input.file_schema() {
        let mut sample = columns_of_schema(schema);
        if input.format() == InputFormat::Parquet {
            widen_times(&mut sample.columns, schema, |column| input.extremes(column));
        } else {
            let extremes = first_extremes(&sample.columns, input_path, options)?;
            widen_times(&mut sample.columns, schema, |column| extremes.get(column).copied());
        }
        sample.of_path = input.path_columns().cloned().collect();
        if input.format() == InputFormat::Avro {
            let schema = Arc::clone(schema);
            read_texts(&mut sample, &schema, input_path, options)?;
        }
        return Ok(sample);
    }
    if let Some(typed) = input.declared_columns() {
        let columns = typed.columns.iter().filter(|column| !column.name.is_empty()).cloned().collect();
        return Ok(Sample::declared(columns, typed.notes.clone()));
    }
    let mut of_path: BTreeSet<String> = input.path_columns().cloned().collect();
    let mut of_path_if_missing = BTreeSet::new();
    let mut guesses: Vec<(String, Guess)> = match input.column_names() {
        Some(mut names) => {
            names.retain(|name| !of_path.contains(name));
            single_column_hint(&input, &names)?
                .into_iter()
                .filter(|name| !name.is_empty())
                .map(|name| {
                    let guess = options.types.get(&name).map_or_else(Guess::any, |known| Guess::only(*known));
                    (name, guess)
                })
                .collect()
        }
        None => {
            let guess = |(name, kinds): (String, BTreeSet<Kind>)| {
                // Objects without a value for it have that of the path, which may be any text.
                let is_filled = of_path.contains(&name) && kinds.contains(&Kind::Null);
                let guess = if is_filled { Guess::any() } else { guess_of(&kinds) };
                if is_filled {
                    of_path_if_missing.insert(name.clone());
                }
                (name, guess)
            };
            members(input_path)?.into_iter().map(guess).collect()
        }
    };
    check_lengths(guesses.iter().map(|(name, _)| name.as_str()), &input_path.name())?;
    of_path.retain(|name| guesses.iter().all(|(column, _)| column != name));
    guesses.extend(of_path.iter().map(|name| (name.clone(), Guess::in_path())));
    let sample = guess_columns(input_path, options, guesses)?;
    Ok(Sample { of_path, of_path_if_missing, ..sample })
}

/// Rejects a single heading that contains another separator: it is not one column.
fn single_column_hint(input: &Input, names: &[String]) -> Result<Vec<String>, SourceError> {
    match (names, wrong_separator(names)) {
        ([only], Some(separator)) => Err(SourceError::Infer {
            file: input.name().to_owned(),
            reason: format!(
                "it has one column, '{only}'; is the delimiter a different one? Try --delimiter '{separator}'"
            ),
        }),
        _ => Ok(names.to_vec()),
    }
}

fn columns_of_schema(schema: &Schema) -> Sample {
    let mut sample = Sample::declared(Vec::new(), Vec::new());
    for field in schema.fields() {
        match ColumnType::from_arrow(field.data_type()) {
            Ok(column_type) => {
                if matches!(field.data_type(), DataType::Timestamp(TimeUnit::Nanosecond, _)) {
                    sample.notes.push(Note::NanosecondsRefused { column: field.name().clone() });
                }
                sample.columns.push(Column {
                    name: field.name().clone(),
                    column_type,
                    nullable: field.is_nullable(),
                });
            }
            Err(_) => sample.notes.push(Note::ColumnLeftOut {
                column: field.name().clone(),
                file_type: field.data_type().to_string(),
            }),
        }
    }
    sample
}

/// Gives text columns their known types, or the types of their first values: writers of Avro spell
/// dates and times as text.
fn read_texts(
    sample: &mut Sample,
    schema: &Schema,
    input: &InputPath,
    options: &InputOptions,
) -> Result<(), SourceError> {
    let mut guesses: Vec<(String, Guess)> = schema
        .fields()
        .iter()
        .filter(|field| field.data_type() == &DataType::Utf8)
        .map(|field| {
            let guess = match options.types.get(field.name()) {
                Some(known) => Guess::only(*known),
                None if field.metadata().contains_key(NUMBERS_AS_TEXT) => Guess::any(),
                None => Guess::text(),
            };
            (field.name().clone(), guess)
        })
        .collect();
    let names: Vec<String> = guesses.iter().map(|(name, _)| name.clone()).collect();
    sample.guessed = open_guesses(&guesses);
    let mut input = Input::open_unknown(input, &names, options)?;
    let mut records = 0;
    while records < SAMPLE_RECORDS
        && let Some(batch) = input.next_batch()?
    {
        let RawCells::Arrow(batch) = batch.cells else { break };
        guesses.par_iter_mut().for_each(|(name, guess)| {
            let cells = batch.column_by_name(name).and_then(|array| cast(array, &DataType::Binary).ok());
            if let Some(cells) = cells.as_ref().and_then(|cells| cells.as_binary_opt::<i32>()) {
                guess.look_at(cells, &options.text_of(name));
            }
        });
        records += batch.num_rows();
    }
    for (name, guess) in guesses {
        if let Some(column) = sample.columns.iter_mut().find(|column| column.name == name) {
            column.column_type = guess.column_type();
        }
        guess.note(&name).into_iter().for_each(|note| add(&mut sample.notes, note));
        if !guess.seen_value && guess.is_open() {
            sample.without_values.push(name);
        }
    }
    Ok(())
}

/// Adds a note, or merges it with an equal note on other columns.
fn add(notes: &mut Vec<Note>, note: Note) {
    if !notes.iter_mut().any(|known| known.absorb(&note)) {
        notes.push(note);
    }
}

/// Returns the members of the first objects of NDJSON.
fn members(input: &InputPath) -> Result<Members, SourceError> {
    let stream = BufReader::new(open_decompressed(input)?);
    ndjson::kinds(stream, SAMPLE_RECORDS).map_err(|(line, problem)| SourceError::Infer {
        file: input.name(),
        reason: format!(
            "line {line}: {problem} (one JSON object per line is expected; 'jq -c .' writes them so)"
        ),
    })
}

/// Returns the initial guess for a member of NDJSON. JSON has its own types; only strings, and
/// numbers of unknown size, are guessed.
fn guess_of(kinds: &BTreeSet<Kind>) -> Guess {
    let kinds: Vec<Kind> = kinds.iter().copied().filter(|kind| *kind != Kind::Null).collect();
    match kinds.as_slice() {
        [Kind::Number] => Guess::number(),
        [Kind::Bool] => Guess::only(ColumnType::Bool),
        [Kind::ObjectId] => Guess::object_ids(),
        // Nested values are kept as JSON text.
        [Kind::Nested] => Guess::only(ColumnType::Json),
        [] | [Kind::Text] => Guess::json_text(),
        [Kind::Time] | [Kind::Text, Kind::Time] => Guess::text(),
        _ => Guess::only(ColumnType::Utf8),
    }
}

/// Returns the columns whose types are not known.
fn open_guesses(guesses: &[(String, Guess)]) -> BTreeSet<String> {
    guesses.iter().filter(|(_, guess)| guess.is_open()).map(|(name, _)| name.clone()).collect()
}

fn guess_columns(
    path: &InputPath,
    options: &InputOptions,
    mut guesses: Vec<(String, Guess)>,
) -> Result<Sample, SourceError> {
    let names: Vec<String> = guesses.iter().map(|(name, _)| name.clone()).collect();
    let guessed = open_guesses(&guesses);
    let mut input = Input::open_unknown(path, &names, options)?;
    let mut records = 0;
    let mut broken = None;
    while records < SAMPLE_RECORDS
        && let Some(batch) = input.next_batch()?
    {
        broken = broken.or(batch.broken.into_iter().next());
        if let RawCells::Text(columns) = &batch.cells {
            guesses.par_iter_mut().for_each(|(name, guess)| {
                if let Some((_, cells)) = columns.iter().find(|(column, _)| column == name) {
                    guess.look_at(cells, &options.text_of(name));
                }
            });
            records += columns.first().map_or(0, |(_, cells)| cells.len());
        }
    }
    if let Some(reject) = broken.filter(|_| records == 0) {
        return Err(SourceError::Unreadable { reject: Box::new(reject) });
    }
    if records == 0 {
        return Err(SourceError::NoRecord { file: input.name().to_owned() });
    }
    let mut notes = Vec::new();
    let nameless = input.column_names().into_iter().flatten().zip(1..);
    let nameless: Vec<usize> =
        nameless.filter(|(name, _)| name.is_empty()).map(|(_, position)| position).collect();
    notes.extend((!nameless.is_empty()).then_some(Note::NamelessColumns { positions: nameless }));
    notes.extend(input.renamed_columns().iter().map(|renamed| Note::ColumnRenamed {
        column: renamed.name.clone(),
        new_name: renamed.new_name.clone(),
    }));
    if options.names.is_empty() && !options.header_given && input.format() != InputFormat::Ndjson {
        notes.extend(check_names(input.name(), &guesses, options)?);
    }
    // An option for all columns would misread numbers with decimal points.
    let has_points = guesses.iter().any(|(_, guess)| guess.has_decimal_points());
    let is_misleading = |note: &Note| has_points && matches!(note, Note::DecimalCommas { .. });
    let of_columns = guesses.iter().filter_map(|(name, guess)| guess.note(name));
    of_columns.filter(|note| !is_misleading(note)).for_each(|note| add(&mut notes, note));
    let unknown = guesses.iter().filter(|(_, guess)| !guess.seen_value && guess.is_open());
    let without_values = unknown.map(|(name, _)| name.clone()).collect();
    let columns = guesses.into_iter().map(|(name, guess)| Column::nullable(name, guess.column_type()));
    let sample = Sample::declared(columns.collect(), notes);
    Ok(Sample { without_values, guessed, ..sample })
}

/// Refuses a header that looks like a row: every column of numbers or times has a number or a time
/// instead of a name. Consecutive numbers, and years, are accepted as names, with a note.
fn check_names(
    file: &str,
    guesses: &[(String, Guess)],
    options: &InputOptions,
) -> Result<Option<Note>, SourceError> {
    let typed = guesses.iter().filter(|(_, guess)| {
        guess.seen_value && !guess.is_of_path && guess.column_type() != ColumnType::Utf8
    });
    let typed: Vec<(&String, ColumnType)> = typed.map(|(name, guess)| (name, guess.column_type())).collect();
    let is_null = |name: &str| {
        ["", "\\N", "null", "na", "n/a", "nan", "none", "-"]
            .iter()
            .any(|null| name.eq_ignore_ascii_case(null))
    };
    let fits = |(name, column_type): &(&String, ColumnType)| {
        let cell = BinaryArray::from_iter_values([name.as_bytes()]);
        let holds_as = |column_type| holds(&cell, column_type, &options.text_of(name)).is_ok();
        // A row need not fit the type that the other rows have: 1.5 above whole numbers, a time
        // above dates.
        let is_number = NUMBERS.contains(column_type)
            && (holds_as(ColumnType::Double) || name.trim().parse::<f64>().is_ok_and(f64::is_finite));
        let is_time = column_type.is_time() && TIMES.into_iter().any(holds_as);
        holds_as(*column_type) || is_number || is_time
    };
    let numbers: Option<Vec<i64>> = typed.iter().map(|(name, _)| name.parse().ok()).collect();
    let are_names = numbers.is_some_and(|numbers| {
        let follows = |pair: &[i64]| matches!(pair, [a, b] if a.checked_add(1) == Some(*b));
        let is_sequence = numbers.len() > 1 && numbers.windows(2).all(follows);
        is_sequence || numbers.iter().all(|number| (1900..2100).contains(number))
    });
    let (nulls, typed): (Vec<_>, Vec<_>) = typed.into_iter().partition(|(name, _)| is_null(name));
    let Some((name, column_type)) = typed.first().or(nulls.first()) else { return Ok(None) };
    if !typed.iter().all(fits) {
        return Ok(None);
    }
    if are_names {
        return Ok(Some(Note::NumbersAsNames { first: (*name).clone() }));
    }
    Err(SourceError::HeaderLikeRow {
        file: file.to_owned(),
        name: (*name).clone(),
        column_type: *column_type,
    })
}

#[cfg(test)]
#[path = "infer_tests.rs"]
mod tests;
