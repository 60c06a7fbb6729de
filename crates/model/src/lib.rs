//! Vocabulary of all other crates: columns and their types, keys, units, notes, findings, and
//! messages of bounded length.

pub mod bounded;
mod clock;
pub mod finding;
mod local_times;
pub mod masked_path;
pub mod note;
mod note_text;
pub mod remark;
pub mod secret_files;
mod spelled_dates;
pub mod table;
pub mod text_value;
mod time_digits;
pub mod time_reading;
pub mod units;
pub mod values;
pub mod wire;
pub mod workload;
