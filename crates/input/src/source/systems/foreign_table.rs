//! Tables in the files of other systems.

use crate::source::declared::DeclaredTable;
use crate::source::input_path::InputPath;
use crate::source::systems::checksums::Checksum;

/// A table of another system: its declaration and its data files.
pub(in crate::source) struct ForeignTable {
    pub(in crate::source) declared: DeclaredTable,
    pub(in crate::source) files: Vec<InputPath>,
    /// Checksums of files, to be compared before they are read.
    pub(in crate::source) checksums: Vec<(InputPath, Checksum)>,
}
