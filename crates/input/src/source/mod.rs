//! Reads files into batches of a declared schema.
//!
//! ```text
//! arguments -> find_inputs -> Input::open -> RawBatch -> Conform -> Conformed { batch, rejects }
//!             files, folders,  decompress,   text cells   match by name, cast without loss,
//!             globs, stdin     detect format or arrays    check NOT NULL, ranges and key size
//! ```
//! CSV and NDJSON become columns of text cells, Parquet and Arrow stay arrays; both are converted
//! to the table by the same rules. A row that cannot be accepted becomes a [`Reject`] with its
//! place in the file, its column and the reason.

mod arrow_ipc;
mod avro;
mod blank_lines;
mod column_parts;
mod columnar;
mod conform;
mod converters;
mod csv;
mod ddl;
mod declared;
mod delete_marks;
mod deletes;
mod discover;
mod doubt;
mod error;
mod escaped;
mod export;
mod extended_json;
mod file_name;
mod format;
mod format_of_bytes;
mod guess;
mod infer;
mod input_path;
mod lines;
mod lossless;
mod meter;
mod ndjson;
mod open;
mod options;
mod orc;
mod path_columns;
mod quoting;
mod raw;
mod read_ahead;
mod reject;
mod remote;
mod remote_listing;
mod repeated_names;
mod sample;
mod scheme_error;
mod selection;
mod separator;
mod stored;
mod stream;
mod systems;
mod type_names;
mod unquoted;
mod wide_times;

pub use crate::source::arrow_ipc::panics_are_caught;
pub use crate::source::conform::{Conform, Conformed};
pub use crate::source::ddl::{DdlFileError, read_ddl};
pub use crate::source::declared::{DataForm, DeclaredColumn, DeclaredTable, TableLayout};
pub use crate::source::deletes::Deletes;
pub use crate::source::discover::{Inputs, find_inputs};
pub use crate::source::error::SourceError;
pub use crate::source::export::{
    Export, ExportPlace, Extent, OnUnreadable, RowSpan, RowsAcross, Unreadable, row_counts,
};
pub use crate::source::format::InputFormat;
pub use crate::source::infer::infer_columns;
pub use crate::source::input_path::InputPath;
pub use crate::source::input_path::RemoteFile;
pub use crate::source::meter::{Meter, Reading};
pub use crate::source::open::Input;
pub use crate::source::options::{InputOptions, Section};
pub use crate::source::raw::{Positions, RawBatch, RawCells};
pub use crate::source::read_ahead::read_ahead;
pub use crate::source::reject::{Reject, RowPosition};
pub use crate::source::sample::Sample;
pub use crate::source::scheme_error::SchemeError;
pub use crate::source::stream::Fingerprint;
pub use crate::source::systems::ydb::{read_describe, read_scheme};
