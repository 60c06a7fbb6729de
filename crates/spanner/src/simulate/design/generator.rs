//! Key columns that the database generates.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryArray, Int64Array, StringArray};
use arrow::datatypes::DataType;

use uuid::Uuid;

use crate::simulate::strategy::UuidForm;
use evenkeel_placement::transform::{BitReversedSequence, UuidSource};

/// Generator of the columns in front of a key.
#[derive(Debug)]
pub(super) enum Generator {
    /// Last number of an ascending sequence.
    Sequence(i64),
    BitReversed(Box<BitReversedSequence>),
    Uuid(Box<UuidSource>, UuidForm),
}

impl Generator {
    /// Type of the generated columns.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Uuid(_, UuidForm::Text) => DataType::Utf8,
            Self::Uuid(_, UuidForm::Bytes) => DataType::Binary,
            Self::Sequence(_) | Self::BitReversed(_) | Self::Uuid(_, UuidForm::TwoIntegers) => {
                DataType::Int64
            }
        }
    }

    /// Returns the generated columns of one key per time.
    pub(super) fn generate(&mut self, times: &[i64]) -> Vec<ArrayRef> {
        match self {
            Self::Sequence(last) => {
                let first = *last + 1;
                *last += times.len() as i64;
                vec![Arc::new(Int64Array::from_iter_values(first..=*last))]
            }
            Self::BitReversed(sequence) => {
                vec![Arc::new(Int64Array::from_iter_values(sequence.by_ref().take(times.len())))]
            }
            Self::Uuid(source, form) => {
                uuid_columns(times.iter().map(|micros| source.next_at(*micros)), *form)
            }
        }
    }
}

/// Returns UUIDs in one of their forms: one column, or the two halves of each.
fn uuid_columns(uuids: impl Iterator<Item = Uuid>, form: UuidForm) -> Vec<ArrayRef> {
    match form {
        UuidForm::Text => vec![Arc::new(StringArray::from_iter_values(uuids.map(|uuid| uuid.to_string())))],
        UuidForm::Bytes => vec![Arc::new(BinaryArray::from_iter_values(uuids.map(Uuid::into_bytes)))],
        UuidForm::TwoIntegers => {
            let halves = |uuid: Uuid| {
                let (high, low) = uuid.as_u64_pair();
                (high.cast_signed(), low.cast_signed())
            };
            let (high, low): (Vec<i64>, Vec<i64>) = uuids.map(halves).unzip();
            vec![Arc::new(Int64Array::from(high)), Arc::new(Int64Array::from(low))]
        }
    }
}
