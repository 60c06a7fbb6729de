//! Dumps of YDB: `ydb tools dump`, `ydb export s3` and `ydb export nfs`.
//!
//! ```text
//! dump/ads/events/scheme.pb      columns, keys, partitions, time to live
//!                 data_00.csv    rows without a header; also .csv.zst and .parquet
//!                 data_00.csv.sha256  checksum of the decompressed file; only in exports
//!                 metadata.json  only in exports to S3 and NFS: one data file per partition
//! ```

mod describe;
mod folder;
mod rows;
mod scheme;
mod text_proto;

pub use crate::source::systems::ydb::describe::read_describe;
pub(in crate::source) use crate::source::systems::ydb::folder::{is_data_file, table_of_files, tables};
pub(in crate::source) use crate::source::systems::ydb::rows::DumpReader;
pub use crate::source::systems::ydb::scheme::read_scheme;
