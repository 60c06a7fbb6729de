//! Writes a column chunk page by page, with its statistics and indexes.

use std::borrow::Cow;

use bytes::Bytes;
use parquet::basic::{BoundaryOrder, Compression, Encoding, PageType, Type};
use parquet::bloom_filter::Sbbf;
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, ColumnIndexBuilder, OffsetIndexBuilder, PageEncodingStats,
};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::portion::compression::{Compressor, Sizes, zstd};
use crate::portion::dictionary::hybrid;
use crate::portion::dictionary::interner::NULL;
use crate::portion::dictionary::kind::Kind;
use crate::portion::dictionary::sorted::SortedValues;
use crate::portion::dictionary::statistics::{Bound, chunk_statistics, lower, upper};
use crate::portion::properties::PAGE_ROWS;

/// Maximum bytes of plain values in a page, except for a single value that is larger.
const PAGE_BYTES: usize = 1 << 20;
/// Number of pages from which the saving of compression is estimated.
const SAMPLED_PAGES: usize = 8;
/// Largest page that is kept, with its compressed form, after it was sampled.
const KEPT_PAGE_BYTES: usize = 1 << 16;
/// False-positive rate of a Bloom filter, which is the library's default.
const FALSE_POSITIVES: f64 = 0.05;

/// An encoded column chunk.
pub(in crate::portion) struct EncodedColumn {
    pub(in crate::portion) bytes: Bytes,
    pub(in crate::portion) close: ColumnCloseResult,
    /// Whether the dictionary was worth its size.
    pub(in crate::portion) repeats: bool,
}

/// Content of a page before compression.
struct PageBody {
    content: Vec<u8>,
    /// Ranks of the smallest and largest value; `None` if there are only NULLs.
    range: Option<(u32, u32)>,
    nulls: usize,
}

/// Writes pages and collects their statistics.
pub(super) struct ChunkWriter {
    values: SortedValues,
    kind: Kind,
    nullable: bool,
    sink: TrackedWrite<Vec<u8>>,
    compressor: Compressor,
    compressed: bool,
    uncompressed: usize,
    dictionary_bytes: Option<usize>,
    offsets: OffsetIndexBuilder,
    /// Ranks of the smallest and largest value of each page, and its NULLs; `None` if it has only
    /// NULLs.
    ranges: Vec<(Option<(u32, u32)>, i64)>,
}

impl ChunkWriter {
    pub(super) fn new(values: SortedValues, kind: Kind, nullable: bool) -> Self {
        Self {
            values,
            kind,
            nullable,
            sink: TrackedWrite::new(Vec::new()),
            compressor: Compressor::new(),
            compressed: true,
            uncompressed: 0,
            dictionary_bytes: None,
            offsets: OffsetIndexBuilder::new(),
            ranges: Vec::new(),
        }
    }

    fn plain(&self, rank: u32, out: &mut Vec<u8>) {
        let value = self.values.get(rank);
        if matches!(self.kind, Kind::Text | Kind::Bytes) {
            out.extend_from_slice(&(value.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(value);
    }

    /// Splits the rows of the chunk into pages: of equally many rows with a dictionary
    /// (`repeats`), and otherwise of limited size.
    pub(super) fn pages<'a>(&self, ranks: &'a [u32], repeats: bool) -> Vec<&'a [u32]> {
        let mut pages = Vec::new();
        let mut rest = ranks;
        while !rest.is_empty() {
            let rows = if repeats { rest.len().min(PAGE_ROWS) } else { self.plain_page_rows(rest) };
            let (page, after) = rest.split_at(rows);
            pages.push(page);
            rest = after;
        }
        pages
    }

    /// Number of rows that make a page of plain values, at least one.
    fn plain_page_rows(&self, ranks: &[u32]) -> usize {
        let mut bytes = 0;
        let fits = |rank: &&u32| {
            bytes += self.values.plain_length(**rank);
            bytes <= PAGE_BYTES
        };
        ranks.iter().take(PAGE_ROWS).take_while(fits).count().max(1)
    }

    /// Writes all pages: numbers of `bits` each after a dictionary, or plain values if `bits` is
    /// `None`. They are compressed if that is worth it, judging by the dictionary and some pages.
    pub(super) fn write(&mut self, pages: &[&[u32]], bits: Option<u32>) -> Result<(), ParquetError> {
        let mut sizes = Sizes::default();
        let mut dictionary = None;
        if bits.is_some() {
            let body = self.dictionary_body();
            let compressed = self.compressor.compress(&body)?;
            sizes.add(1, body.len(), compressed.len());
            dictionary = Some((body, compressed));
        }
        let step = pages.len().div_ceil(SAMPLED_PAGES).max(1);
        let mut sampled = Vec::with_capacity(SAMPLED_PAGES);
        for ranks in pages.iter().step_by(step) {
            let body = self.page_body(ranks, bits);
            let compressed = self.compressor.compress(&body.content)?;
            sizes.add(step, body.content.len(), compressed.len());
            let is_kept = body.content.len() <= KEPT_PAGE_BYTES;
            sampled.push(is_kept.then_some((body, compressed)));
        }
        self.compressed = sizes.compression_pays();
        if let Some((body, compressed)) = dictionary {
            self.dictionary(body, compressed)?;
        }
        let mut sampled = sampled.into_iter();
        for (index, ranks) in pages.iter().enumerate() {
            let ready = if index % step == 0 { sampled.next().flatten() } else { None };
            let (body, compressed) = match ready {
                Some((body, compressed)) => (body, Some(compressed)),
                None => (self.page_body(ranks, bits), None),
            };
            self.page(ranks.len(), body, compressed, bits.is_some())?;
        }
        Ok(())
    }

    fn dictionary(&mut self, body: Vec<u8>, compressed: Vec<u8>) -> Result<(), ParquetError> {
        let length = body.len();
        let page = Page::DictionaryPage {
            buf: if self.compressed { compressed } else { body }.into(),
            num_values: self.values.len(),
            encoding: Encoding::PLAIN,
            is_sorted: true,
        };
        let (_, bytes) = self.append(page, length)?;
        self.dictionary_bytes = Some(bytes);
        Ok(())
    }

    fn append(&mut self, page: Page, uncompressed: usize) -> Result<(u64, usize), ParquetError> {
        let page = CompressedPage::new(page, uncompressed);
        let written = SerializedPageWriter::new(&mut self.sink).write_page(page)?;
        self.uncompressed += written.uncompressed_size;
        Ok((written.offset, written.compressed_size))
    }

    fn dictionary_body(&self) -> Vec<u8> {
        let mut body = Vec::new();
        (0..self.values.len()).for_each(|rank| self.plain(rank, &mut body));
        body
    }

    fn page_body(&self, ranks: &[u32], bits: Option<u32>) -> PageBody {
        let mut content = if self.nullable { definition_levels(ranks) } else { Vec::new() };
        let present = if ranks.contains(&NULL) {
            Cow::Owned(ranks.iter().copied().filter(|rank| *rank != NULL).collect())
        } else {
            Cow::Borrowed(ranks)
        };
        match bits {
            Some(bits) => {
                content.push(bits as u8);
                hybrid::encode(&present, bits, &mut content);
            }
            None => present.iter().for_each(|rank| self.plain(*rank, &mut content)),
        }
        let range = present.iter().min().copied().zip(present.iter().max().copied());
        PageBody { content, range, nulls: ranks.len() - present.len() }
    }

    /// Writes a page of `rows` rows, whose compressed content may be known.
    fn page(
        &mut self,
        rows: usize,
        body: PageBody,
        compressed: Option<Vec<u8>>,
        repeats: bool,
    ) -> Result<(), ParquetError> {
        let PageBody { content, range, nulls } = body;
        self.ranges.push((range, nulls as i64));
        let length = content.len();
        let content = if self.compressed { self.frame(&content, compressed)? } else { content };
        let page = Page::DataPage {
            buf: content.into(),
            num_values: rows as u32,
            encoding: if repeats { Encoding::RLE_DICTIONARY } else { Encoding::PLAIN },
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        let (offset, bytes) = self.append(page, length)?;
        self.offsets.append_row_count(rows as i64);
        self.offsets.append_offset_and_size(offset as i64, bytes as i32);
        Ok(())
    }

    /// Returns a zstd frame with a page, whose compressed form may be known; without compression if
    /// that saves less than a sixteenth.
    fn frame(&mut self, content: &[u8], compressed: Option<Vec<u8>>) -> Result<Vec<u8>, ParquetError> {
        let compressed = compressed.map_or_else(|| self.compressor.compress(content), Ok)?;
        Ok(if compressed.len() * 16 > content.len() * 15 { stored(content) } else { compressed })
    }

    fn bounds(&self, range: (u32, u32)) -> (Bound, Bound) {
        let (low, high) = (self.values.get(range.0), self.values.get(range.1));
        match self.kind {
            Kind::Signed | Kind::Unsigned => {
                (Bound { bytes: low.to_vec(), exact: true }, Bound { bytes: high.to_vec(), exact: true })
            }
            Kind::Text => (lower(low, true), upper(high, true)),
            Kind::Bytes => (lower(low, false), upper(high, false)),
        }
    }

    /// Finishes the chunk of `rows` rows; with a dictionary if its values are worth it (`repeats`).
    pub(super) fn finish(
        self,
        descriptor: &ColumnDescPtr,
        rows: usize,
        nulls: usize,
        repeats: bool,
        bloom_filter: bool,
    ) -> Result<EncodedColumn, ParquetError> {
        let column_index = self.column_index(descriptor.physical_type()).build()?;
        let statistics = self.statistics(descriptor.physical_type(), nulls);
        let filter = bloom_filter.then(|| self.bloom_filter()).transpose()?;
        let (encodings, pages) = encodings(repeats, self.ranges.len());
        let bytes = Bytes::from(self.sink.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(ColumnDescPtr::clone(descriptor))
            .set_compression(if self.compressed { zstd() } else { Compression::UNCOMPRESSED })
            .set_encodings(encodings)
            .set_page_encoding_stats(pages)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(self.uncompressed as i64)
            .set_num_values(rows as i64)
            .set_data_page_offset(self.dictionary_bytes.unwrap_or(0) as i64)
            .set_dictionary_page_offset(self.dictionary_bytes.map(|_| 0))
            .set_statistics(statistics)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: rows as u64,
            metadata,
            bloom_filter: filter,
            column_index: Some(column_index),
            offset_index: Some(self.offsets.build()),
        };
        Ok(EncodedColumn { bytes, close, repeats })
    }

    /// Ranges of the pages.
    fn column_index(&self, physical: Type) -> ColumnIndexBuilder {
        let mut index = ColumnIndexBuilder::new(physical);
        for (range, nulls) in &self.ranges {
            match range.map(|range| self.bounds(range)) {
                Some((min, max)) => index.append(false, min.bytes, max.bytes, *nulls),
                None => index.append(true, Vec::new(), Vec::new(), *nulls),
            }
        }
        index.set_boundary_order(boundary_order(&self.ranges));
        index
    }

    /// Statistics of the whole chunk.
    fn statistics(&self, physical: Type, nulls: usize) -> Statistics {
        let whole = self.ranges.iter().filter_map(|(range, _)| *range);
        let whole = whole.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let range = whole.map(|range| self.bounds(range));
        chunk_statistics(physical, self.kind == Kind::Unsigned, range, nulls as u64)
    }

    /// Filter of the distinct values, sized for them.
    fn bloom_filter(&self) -> Result<Sbbf, ParquetError> {
        let mut filter = Sbbf::new_with_ndv_fpp(u64::from(self.values.len().max(1)), FALSE_POSITIVES)?;
        (0..self.values.len()).for_each(|rank| filter.insert(self.values.get(rank)));
        Ok(filter)
    }
}

/// Returns a zstd frame of uncompressed bytes. Packed numbers hardly compress, but would take as
/// long to decompress as if they did.
///
/// The format is defined in RFC 8878: a header with the size of the content, and blocks of type
/// Raw.
fn stored(body: &[u8]) -> Vec<u8> {
    const MAGIC: u32 = 0xFD2F_B528;
    /// One segment, and a content size of four bytes.
    const DESCRIPTOR: u8 = 0b1010_0000;
    const MAX_BYTES: usize = 1 << 17;
    let mut frame = Vec::with_capacity(body.len() + 16 + body.len() / MAX_BYTES * 3);
    frame.extend(MAGIC.to_le_bytes());
    frame.push(DESCRIPTOR);
    frame.extend((body.len() as u32).to_le_bytes());
    let mut rest = body;
    loop {
        let (block, after) = rest.split_at(rest.len().min(MAX_BYTES));
        let header = (block.len() as u32) << 3 | u32::from(after.is_empty());
        frame.extend(header.to_le_bytes().iter().take(3));
        frame.extend_from_slice(block);
        rest = after;
        if rest.is_empty() {
            return frame;
        }
    }
}

/// Returns the definition levels of a page, which mark the rows with a value, with their length in
/// front.
fn definition_levels(ranks: &[u32]) -> Vec<u8> {
    let levels: Vec<u32> = ranks.iter().map(|rank| u32::from(*rank != NULL)).collect();
    let mut encoded = Vec::new();
    hybrid::encode(&levels, 1, &mut encoded);
    let mut body = (encoded.len() as u32).to_le_bytes().to_vec();
    body.extend_from_slice(&encoded);
    body
}

/// Returns the encodings of a chunk with `data_pages`, and the number of its pages by encoding.
fn encodings(repeats: bool, data_pages: usize) -> (Vec<Encoding>, Vec<PageEncodingStats>) {
    let data =
        |encoding| PageEncodingStats { page_type: PageType::DATA_PAGE, encoding, count: data_pages as i32 };
    if !repeats {
        return (vec![Encoding::RLE, Encoding::PLAIN], vec![data(Encoding::PLAIN)]);
    }
    let dictionary =
        PageEncodingStats { page_type: PageType::DICTIONARY_PAGE, encoding: Encoding::PLAIN, count: 1 };
    let encodings = vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY];
    (encodings, vec![dictionary, data(Encoding::RLE_DICTIONARY)])
}

/// Returns whether the ranges of pages rise or fall from page to page. Pages of NULLs have no
/// range.
fn boundary_order(ranges: &[(Option<(u32, u32)>, i64)]) -> BoundaryOrder {
    let known: Vec<(u32, u32)> = ranges.iter().filter_map(|(range, _)| *range).collect();
    if known.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1) {
        BoundaryOrder::ASCENDING
    } else if known.is_sorted_by(|a, b| a.0 >= b.0 && a.1 >= b.1) {
        BoundaryOrder::DESCENDING
    } else {
        BoundaryOrder::UNORDERED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_bytes_are_a_frame_of_zstd() {
        for length in [0, 1, 1000, (1 << 17) - 1, 1 << 17, (1 << 17) + 1, 3 << 17] {
            let body: Vec<u8> = (0..length).map(|byte: usize| (byte * byte % 251) as u8).collect();
            let frame = stored(&body);
            assert!(frame.len() <= body.len() + 12 + 3 * (body.len() >> 17), "{length}");
            assert_eq!(zstd::bulk::decompress(&frame, length).unwrap(), body, "{length}");
            assert_eq!(zstd::stream::decode_all(frame.as_slice()).unwrap(), body, "{length}");
        }
    }
}
