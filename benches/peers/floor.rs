//! The floor of an ingest and of an evaluation: the same rows, decoded, or decoded and encoded
//! again by the same Parquet library, with nothing in between; no partitions, no sorting, no
//! commit. One file per core at a time.
//!
//! `floor (decode | encode | portions) CORES OUT FILE...` prints rows and seconds as JSON. `encode`
//! writes as the library does by default, with zstd; `portions` with the encodings and row groups
//! of this project's portions.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "a bench that fails should stop")]

use std::fs::File;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;

use evenkeel::generate::ad_events_definition;
use evenkeel::portion::PortionEncoder;
use evenkeel::table::TableSpec;
use evenkeel::units::PartitionId;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

const BATCH_ROWS: usize = 1 << 15;

fn read(path: &Path) -> ParquetRecordBatchReader {
    let file = File::open(path).unwrap();
    ParquetRecordBatchReaderBuilder::try_new(file).unwrap().with_batch_size(BATCH_ROWS).build().unwrap()
}

fn decode(path: &Path) -> u64 {
    read(path).map(|batch| black_box(batch.unwrap()).num_rows() as u64).sum()
}

fn encode(path: &Path, out: &Path) -> u64 {
    let reader = read(path);
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default()));
    let schema = arrow::array::RecordBatchReader::schema(&reader);
    let target = File::create(out.join(path.file_name().unwrap())).unwrap();
    let mut writer = ArrowWriter::try_new(target, schema, Some(properties.build())).unwrap();
    let mut rows = 0;
    for batch in reader {
        let batch = batch.unwrap();
        rows += batch.num_rows() as u64;
        writer.write(&batch).unwrap();
    }
    writer.into_inner().unwrap().sync_all().unwrap();
    rows
}

fn portions(path: &Path, out: &Path, spec: &TableSpec) -> u64 {
    let mut encoder = PortionEncoder::new(spec, PartitionId(0));
    for batch in read(path) {
        encoder.push(&batch.unwrap().with_schema(spec.schema().clone()).unwrap()).unwrap();
    }
    let portion = encoder.finish().unwrap();
    let target = out.join(path.file_name().unwrap());
    std::fs::write(&target, &portion.bytes).unwrap();
    File::open(&target).unwrap().sync_all().unwrap();
    portion.rows
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let [work, cores, out, files @ ..] = arguments.as_slice() else {
        println!("usage: floor (decode | encode | portions) CORES OUT FILE...");
        return;
    };
    let out = PathBuf::from(out);
    std::fs::create_dir_all(&out).unwrap();
    let spec = TableSpec::new(ad_events_definition().unwrap()).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(cores.parse().unwrap()).build().unwrap();
    let started = Instant::now();
    let rows: u64 = pool.install(|| {
        let of_file = |file: &String| match work.as_str() {
            "decode" => decode(Path::new(file)),
            "encode" => encode(Path::new(file), &out),
            _ => portions(Path::new(file), &out, &spec),
        };
        files.par_iter().map(of_file).sum()
    });
    println!("{{\"rows\": {rows}, \"seconds\": {:.4}}}", started.elapsed().as_secs_f64());
}
