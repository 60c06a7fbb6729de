//! Infers columns from a sample file.

use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, TimeUnit};

use crate::source::avro::NUMBERS_AS_TEXT;
use crate::source::error::{SourceError, wrong_separator};
use crate::source::extended_json::Kind;
use crate::source::format::InputFormat;
use crate::source::guess::{Guess, NUMBERS, TIMES, holds};
use crate::source::input_path::InputPath;
use crate::source::input_path::RemoteFile;
use crate::source::ndjson;
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
            let reason = "a sample must be a file, because it is read twice".to_owned();
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
        None => ndjson_guesses(input_path)?,
    };
    check_lengths(guesses.iter().map(|(name, _)| name.as_str()), &input_path.name())?;
    of_path.retain(|name| guesses.iter().all(|(column, _)| column != name));
    guesses.extend(of_path.iter().map(|name| (name.clone(), Guess::in_path())));
    let sample = guess_columns(input_path, options, guesses)?;
    Ok(Sample { of_path, ..sample })
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
        for (name, guess) in &mut guesses {
            let cells = batch.column_by_name(name).and_then(|array| cast(array, &DataType::Binary).ok());
            if let Some(cells) = cells.as_ref().and_then(|cells| cells.as_binary_opt::<i32>()) {
                guess.look_at(cells, &options.text_of(name));
            }
        }
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

/// Returns the initial guesses for NDJSON. JSON has its own types; only strings, and numbers of
/// unknown size, are guessed.
fn ndjson_guesses(input: &InputPath) -> Result<Vec<(String, Guess)>, SourceError> {
    let stream = BufReader::new(open_decompressed(input)?);
    let members = ndjson::kinds(stream, SAMPLE_RECORDS).map_err(|(line, problem)| SourceError::Infer {
        file: input.name(),
        reason: format!(
            "line {line}: {problem} (one JSON object per line is expected; 'jq -c .' writes them so)"
        ),
    })?;
    let guess = |kinds: &BTreeSet<Kind>| {
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
    };
    Ok(members.into_iter().map(|(name, kinds)| (name, guess(&kinds))).collect())
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
            for (name, guess) in &mut guesses {
                if let Some((_, cells)) = columns.iter().find(|(column, _)| column == name) {
                    guess.look_at(cells, &options.text_of(name));
                }
            }
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
    Ok(Sample { columns: columns.collect(), notes, without_values, guessed, of_path: BTreeSet::new() })
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
mod tests {
    use evenkeel_model::text_value::{TextFormat, TimestampFormat};

    use super::*;

    fn inferred(name: &str, content: &str) -> Result<Vec<(String, String)>, SourceError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        let columns = infer_columns(&path, &InputOptions::default())?;
        Ok(columns.columns.into_iter().map(|c| (c.name, c.column_type.to_string())).collect())
    }

    fn types(columns: &[(String, String)]) -> Vec<&str> {
        columns.iter().map(|(_, t)| t.as_str()).collect()
    }

    #[test]
    fn csv_columns_get_the_most_special_type_that_fits_all_values() {
        let columns = inferred(
            "a.csv",
            "i,u,f,b,d,t,s,zip,none,1or2\n1,1,1,true,2026-01-31,2026-01-31T10:00:00Z,x,00123,,1\n\
             -2,18446744073709551615,1.5,FALSE,2026-02-01,2026-01-31,2026-01-31,10001,,two\n",
        )
        .unwrap();
        let expected =
            ["Int64", "Uint64", "Double", "Bool", "Date", "Timestamp", "Utf8", "Utf8", "Utf8", "Utf8"];
        assert_eq!(types(&columns), expected);
    }

    #[test]
    fn names_longer_than_any_system_takes_are_refused_in_every_format() {
        let name = "k".repeat(LONGEST_NAME + 1);
        for (file, text) in [
            ("a.csv", format!("{name},u\n1,2\n")),
            ("a.tsv", format!("u\t{name}\n1\t2\n")),
            ("a.ndjson", format!("{{\"{name}\":1}}\n")),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(file);
            std::fs::write(&path, text).unwrap();
            let refused = infer_columns(&path, &InputOptions::default()).unwrap_err().to_string();
            assert!(refused.contains(file) && refused.contains("a name of 4097 bytes"), "{refused}");
            assert!(refused.len() < 1_000, "{refused}");
        }
    }

    #[test]
    fn no_type_is_guessed_that_would_lose_digits_or_years() {
        let columns = inferred(
            "a.csv",
            "big,old,instant\n123456789012345678901234567890,1950-01-01,1950-01-01T00:00:00Z\n",
        );
        assert_eq!(types(&columns.unwrap()), ["Utf8", "Date32", "Timestamp64"]);
        let columns =
            inferred("a.jsonl", "{\"a\": 18446744073709551615, \"b\": 99999999999999999999, \"c\": 1.5}\n");
        assert_eq!(types(&columns.unwrap()), ["Uint64", "Utf8", "Double"]);
        let columns = inferred("a.csv", "skipped,kept\n9007199254740993.0,9007199254740994.0\n1.5,1.5\n");
        assert_eq!(types(&columns.unwrap()), ["Utf8", "Double"]);
    }

    #[test]
    fn a_time_and_a_serial_number_are_no_number() {
        let rows = |fraction: fn(u32) -> String| -> String {
            (0..200).map(|row| format!("16647655{:02}.{}\n", row / 4, fraction(row))).collect()
        };
        let calls = format!("id\n{}", rows(|row| (91_000 + row * 7).to_string()));
        assert_eq!(types(&inferred("a.csv", &calls).unwrap()), ["Utf8"]);
        let times = format!("ts\n{}", rows(|row| format!("{:06}", row * 4_871 % 1_000_000)));
        assert_eq!(types(&inferred("a.csv", &times).unwrap()), ["Double"]);
    }

    #[test]
    fn a_first_row_is_no_header_even_if_it_does_not_fit_the_type_of_the_others() {
        for text in [
            "10,1.5\n20,2\n30,3\n",
            "10.5,x\n20,y\n30,z\n",
            "1e3,a\n5,b\n",
            "99999999999999999999,5\n2,6\n3,7\n",
            "10,2026-01-01 10:00:00\n20,2026-01-02\n",
        ] {
            assert!(matches!(inferred("a.csv", text), Err(SourceError::HeaderLikeRow { .. })), "{text}");
        }
        assert!(inferred("a.csv", "1a,2b\n1,2\n").is_ok());
    }

    #[test]
    fn long_and_empty_headings_do_not_shift_types() {
        let long = "x".repeat(70);
        let columns = inferred("a.csv", &format!("k,{long},,b\n1,text,,2026-01-31\n")).unwrap();
        assert_eq!(columns[1].0, long);
        assert_eq!(types(&columns), ["Int64", "Utf8", "Date"]);
    }

    #[test]
    fn numbers_that_lose_digits_are_noted() {
        let note = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.csv");
            std::fs::write(&path, format!("n\n1.5\n{text}\n")).unwrap();
            infer_columns(&path, &InputOptions::default()).unwrap().notes
        };
        let lost = [Note::DigitsLost { column: "n".to_owned() }];
        assert_eq!(note("12345678901234567890.123456789"), lost);
        assert_eq!(note("-0.1234567890123456789"), lost);
        for kept in ["0.12345678901234567", "0.000000000000000000001", "1.5e300", "1234567890.1234567"] {
            assert!(note(kept).is_empty(), "{kept}");
        }
    }

    #[test]
    fn what_an_option_would_read_is_noted_and_the_option_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let text = "id;net;gross;day;at;until;code\n\
            1;1.234,50;9,99;31.01.2026;1/31/2026 9:30 PM;2/28/2026 10:00 PM;1,2,3\n\
            2;7;10,5;01.02.2026;2/1/2026 12:05 AM;3/1/2026 1:00 AM;4,5\n";
        std::fs::write(&path, text).unwrap();
        let options = InputOptions { delimiter: Some(b';'), ..InputOptions::default() };
        let inferred = infer_columns(&path, &options).unwrap();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let expected = [
            Note::DecimalCommas { columns: names(&["net", "gross"]) },
            Note::LocalTimes { columns: names(&["day"]), formats: names(&["%d.%m.%Y"]) },
            Note::LocalTimes { columns: names(&["at", "until"]), formats: names(&["%m/%d/%Y %I:%M %p"]) },
        ];
        assert_eq!(inferred.notes, expected);

        let column_timestamps = inferred.notes.iter().filter_map(|note| match note {
            Note::LocalTimes { columns, formats } => Some((columns, formats.first()?)),
            _ => None,
        });
        let column_timestamps = column_timestamps.flat_map(|(columns, format)| {
            columns.iter().map(move |column| (column.clone(), TimestampFormat::Strftime(format.clone())))
        });
        let options = InputOptions {
            column_timestamps: column_timestamps.collect(),
            text: TextFormat { decimal_comma: true, ..TextFormat::default() },
            ..options
        };
        let read = infer_columns(&path, &options).unwrap();
        assert_eq!(read.notes, []);
        let types: Vec<String> = read.columns.iter().map(|column| column.column_type.to_string()).collect();
        assert_eq!(types, ["Int64", "Double", "Double", "Date", "Timestamp", "Timestamp", "Utf8"]);
    }

    #[test]
    fn no_option_is_named_that_would_misread_a_column() {
        let noted = |text: &str, batch_rows: usize| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.csv");
            std::fs::write(&path, text).unwrap();
            let options = InputOptions { delimiter: Some(b';'), batch_rows, ..InputOptions::default() };
            let notes = infer_columns(&path, &options).unwrap().notes;
            notes.iter().map(|note| note.code().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(noted("a\n1,5\n2,25\n", 100), ["decimal_commas"]);
        for (what, text) in [
            ("thousands", "a\n140,991\n596,953\n"),
            ("points in another column", "a;b\n1,5;1.5\n2,5;45.123\n"),
            ("leading zeros", "a\n05,17\n1,5\n"),
            ("lists", "a\n1,5,7\n1,5\n"),
        ] {
            assert!(noted(text, 100).is_empty(), "{what}");
        }
        // All rows count, in any batches.
        let late = noted("a;b\n1,5;31.01.2026\nsoon;later\n", 1);
        assert!(!late.iter().any(|code| code == "decimal_commas" || code == "local_times"), "{late:?}");
    }

    #[test]
    fn ndjson_keeps_the_types_of_json_and_finds_times_in_strings() {
        let columns = inferred(
            "a.jsonl",
            "{\"i\": 1, \"s\": \"1\", \"z\": \"01\", \"t\": \"2026-01-31T10:00:00Z\", \"l\": [1], \"b\": true}\n{\"i\": 2, \"f\": 1.5}\n",
        )
        .unwrap();
        let by_name: std::collections::BTreeMap<_, _> = columns.into_iter().collect();
        let expected = [
            ("b", "Bool"),
            ("f", "Double"),
            ("i", "Int64"),
            ("l", "Json"),
            ("s", "Int64"),
            ("t", "Timestamp"),
            ("z", "Utf8"),
        ];
        assert_eq!(by_name, expected.into_iter().map(|(n, t)| (n.to_owned(), t.to_owned())).collect());
    }

    #[test]
    fn a_column_that_is_text_for_a_few_values_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let row = |row: usize| match row {
            150 => "soon,x,a\n".to_owned(),
            row => format!("2026-01-31T10:00:00Z,{row},{}\n", if row % 2 == 0 { "1" } else { "b" }),
        };
        std::fs::write(&path, format!("at,n,mixed\n{}", (0..300).map(row).collect::<String>())).unwrap();
        let sample = infer_columns(&path, &InputOptions::default()).unwrap();
        assert!(sample.columns.iter().all(|column| column.column_type == ColumnType::Utf8));
        assert_eq!(sample.notes.len(), 2, "{:?}", sample.notes);
        assert!(
            sample.notes[0].to_string().contains("'at'") && sample.notes[0].to_string().contains("'soon'"),
            "{:?}",
            sample.notes
        );
        assert!(
            sample.notes[1].to_string().contains("Int64") && sample.notes[1].to_string().contains("'x'"),
            "{:?}",
            sample.notes
        );
    }

    #[test]
    fn a_file_without_records_is_refused() {
        assert!(matches!(inferred("a.csv", "a,b\n"), Err(SourceError::NoRecord { .. })));
        assert!(matches!(inferred("a.csv", ""), Err(SourceError::Empty { .. })));
    }
}
