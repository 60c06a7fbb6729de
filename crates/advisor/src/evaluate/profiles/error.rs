//! Reasons why profiles cannot be saved, read or merged.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::evaluate::EvaluateError;
use evenkeel_model::bounded::quote;
use evenkeel_model::units::counted;

/// Reason why a profile cannot be used.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum ProfileError {
    #[error("{file}: cannot read the profile: {source}", file = .file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{file}: cannot write the profile: {source}", file = .file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error(
        "{file}: exists and is not a profile, so it is not replaced; name another file with --save", file = .file.display()
    )]
    Occupied { file: PathBuf },
    #[error(
        "{file}: is not a profile; 'evenkeel evaluate EXPORT --save FILE' writes them, and exports are named before --merge"
    )]
    NotProfile { file: String },
    #[error(
        "{file}: the profile has format {found}, and this version of evenkeel reads {known}; save it again from its rows"
    )]
    Version { file: String, found: u32, known: u32 },
    #[error("{file}: the profile is damaged: {reason}; save it again from its rows")]
    Damaged { file: String, reason: String },
    #[error(
        "{file}: {problem}; only rows with the same columns can be merged (--type gives types when profiles are saved)"
    )]
    Columns { file: String, problem: String },
    #[error(
        "{file}: was saved with another {option} than {other}: {found} instead of {expected}; save both with the same value"
    )]
    Options { file: String, other: String, option: &'static str, found: String, expected: String },
    #[error("{file} and {other} both have the {} of {input}; leave one of them out", counted(*rows, "row"))]
    Twice { file: String, other: String, rows: u64, input: String },
    #[error(
        "{file} and {other} have no partition key in common: ({keys}) and ({other_keys}); save one of them again with --like, which counts the keys of another profile, or name the keys",
        keys = quote(keys), other_keys = quote(other_keys)
    )]
    NoCommonKey { file: String, other: String, keys: String, other_keys: String },
    #[error("there is no profile to merge")]
    None,
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
}
