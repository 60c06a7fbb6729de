//! Texts of notes and faults, plain and masked.

use super::*;

const CANARY: &str = "canary";

fn fault() -> Option<Fault> {
    Some(Fault::in_value(CANARY.as_bytes(), "is not of type Int64"))
}

/// Returns the note after `note`: every kind is listed here, so that a new kind does not
/// compile without a test.
fn next(note: &Note) -> Option<Note> {
    let column = "n".to_owned();
    Some(match note {
        Note::NanosecondsRefused { .. } => Note::NanosecondsCut { column },
        Note::NanosecondsCut { .. } => Note::ZoneIgnored { column, zone: "Europe/Moscow".to_owned() },
        Note::ZoneIgnored { .. } => Note::NumbersAsNames { first: "0".to_owned() },
        Note::NumbersAsNames { .. } => {
            Note::ReadWider { column, file_type: ColumnType::Int16, column_type: ColumnType::Int32 }
        }
        Note::ReadWider { .. } => Note::ColumnLeftOut { column, file_type: "List(Int32)".to_owned() },
        Note::ColumnLeftOut { .. } => {
            Note::ReadAsText { column, column_type: ColumnType::Int64, first: fault() }
        }
        Note::ReadAsText { .. } => Note::QuotedNumbers { column, column_type: ColumnType::Int64 },
        Note::QuotedNumbers { .. } => Note::DigitsLost { column },
        Note::DigitsLost { .. } => {
            Note::RowsLeftOut { rows: 2, place: "x.csv, line 7".to_owned(), first: fault() }
        }
        Note::RowsLeftOut { .. } => Note::NoPrimaryKey,
        Note::NoPrimaryKey => Note::PlacementsLeftOut { reason: "Doris".to_owned() },
        Note::PlacementsLeftOut { .. } => {
            Note::CandidatesFromSample { rows: 1, of_rows: 2, places: 1, inputs: 1, of_inputs: 1 }
        }
        Note::CandidatesFromSample { .. } => Note::MoreValuesThanSampled { column },
        Note::MoreValuesThanSampled { .. } => Note::KeySearchCutShort,
        Note::KeySearchCutShort => Note::DecimalCommas { columns: vec![column] },
        Note::DecimalCommas { .. } => {
            Note::LocalTimes { columns: vec!["n".to_owned()], formats: vec!["%d.%m.%Y".to_owned()] }
        }
        Note::LocalTimes { .. } => Note::TimesMasked,
        Note::TimesMasked => Note::OfProfile { file: "mon.ek".to_owned(), more: 1, note: "a".to_owned() },
        Note::OfProfile { .. } => {
            Note::ProfilesOverlap { one: "mon.ek".to_owned(), other: "tue.ek".to_owned() }
        }
        Note::ProfilesOverlap { .. } => Note::InferredFromProfile { file: "mon.ek".to_owned(), rows: 7 },
        Note::InferredFromProfile { .. } => Note::RepeatsUnknown { key: "a, b".to_owned() },
        Note::RepeatsUnknown { .. } => {
            let keys = vec!["HASH(a)".to_owned(); 5];
            Note::KeysNotInAllProfiles { keys, profiles: 2, file: "mon.ek".to_owned() }
        }
        Note::KeysNotInAllProfiles { .. } => Note::NamelessColumns { positions: vec![1] },
        Note::NamelessColumns { .. } => Note::ColumnRenamed { new_name: format!("{column}_2"), column },
        Note::ColumnRenamed { .. } => {
            Note::UnknownColumns { columns: vec![column], file: "x.csv".to_owned() }
        }
        Note::UnknownColumns { .. } => {
            Note::MissingColumns { columns: vec![column], file: "x.csv".to_owned() }
        }
        Note::MissingColumns { .. } => return None,
    })
}

#[test]
fn every_note_is_a_sentence_and_loses_its_values_when_it_is_masked() {
    let first = Note::NanosecondsRefused { column: "n".to_owned() };
    let notes: Vec<Note> = std::iter::successors(Some(first), next).collect();
    let quoting = notes.iter().filter(|note| note.to_string().contains(CANARY)).count();
    assert_eq!(quoting, 2, "those that quote a value do so before they are masked");
    let mut codes = std::collections::BTreeSet::new();
    for mut note in notes.clone() {
        let (text, code, column) = (note.to_string(), note.code(), note.column().map(ToOwned::to_owned));
        let read: Remark = serde_json::from_value(serde_json::to_value(&note).unwrap()).unwrap();
        assert_eq!((read.code(), read.text()), (code, text.as_str()));
        assert_eq!(read, Remark::from(&note));
        note.mask();
        let masked = format!("{note} {}", serde_json::to_value(&note).unwrap());
        assert!(!masked.contains(CANARY), "{masked}");
        assert!(text.starts_with(&note.to_string()), "nothing else is lost: {text} {note}");
        assert_eq!((note.code(), note.column()), (code, column.as_deref()));
        assert!(codes.insert(code), "{code} is of two notes");
    }
    assert_eq!(codes.len(), notes.len());
}

#[test]
fn a_fault_quotes_its_value_on_one_line_of_bounded_length() {
    assert_eq!(Fault::in_value(b"x\ny", "is not JSON").to_string(), "'x\\ny' is not JSON");
    assert_eq!(Fault::in_row("has 3 fields").to_string(), "has 3 fields");
    let long = Fault::in_value(&vec![b'x'; 20 << 20], "is not JSON").to_string();
    assert!(long.chars().count() < 150, "{}", long.len());
}
