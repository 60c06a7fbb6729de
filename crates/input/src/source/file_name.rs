//! File formats derived from file names.

use std::path::Path;

use crate::source::format::InputFormat;

/// Returns the format of a file's ending, after removing `.gz` or `.zst`.
pub(super) fn format_of_name(path: &Path) -> Option<InputFormat> {
    let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
    let name = [".gz", ".zst", ".zstd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
    let (_, ending) = name.rsplit_once('.')?;
    // Dataflow numbers its files after the ending: rows.avro-00000-of-00010.
    match ending.split_once('-').map_or(ending, |(ending, _)| ending) {
        "parquet" | "pq" => Some(InputFormat::Parquet),
        "csv" | "tsv" => Some(InputFormat::Csv),
        "ndjson" | "jsonl" | "json" => Some(InputFormat::Ndjson),
        "arrow" | "ipc" | "arrows" | "feather" => Some(InputFormat::Arrow),
        "avro" => Some(InputFormat::Avro),
        "orc" => Some(InputFormat::Orc),
        _ => None,
    }
}

/// Whether a file's ending means that its fields are separated by tabs.
pub(super) fn is_tab_separated(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    name.split('.').skip(1).any(|part| part == "tsv")
}
