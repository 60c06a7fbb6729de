//! Which pages are worth compressing, and their compression.
//!
//! Every query that reads a page decompresses it first, and a page that hardly shrinks takes as
//! long as any other. So a column chunk is compressed if that saves at least a third of it.

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;

/// Compression of the chunks that are worth it.
pub(super) fn zstd() -> Compression {
    Compression::ZSTD(ZstdLevel::default())
}

/// Compresses pages with zstd. Creating it takes as long as compressing a page.
pub(super) struct Compressor {
    zstd: zstd::bulk::Compressor<'static>,
}

impl Compressor {
    pub(super) fn new() -> Self {
        let level = ZstdLevel::default().compression_level();
        Self { zstd: zstd::bulk::Compressor::new(level).unwrap_or_default() }
    }

    /// Returns a zstd frame with `body`.
    pub(super) fn compress(&mut self, body: &[u8]) -> Result<Vec<u8>, ParquetError> {
        self.zstd.compress(body).map_err(|error| ParquetError::External(Box::new(error)))
    }

    /// Returns the sizes of `body`.
    pub(super) fn sizes(&mut self, body: &[u8]) -> Result<Sizes, ParquetError> {
        Ok(Sizes { plain: body.len(), compressed: self.compress(body)?.len() })
    }
}

/// Bytes of pages, as they are and compressed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sizes {
    plain: usize,
    compressed: usize,
}

impl Sizes {
    /// Adds `pages` pages, each of `plain` bytes, of which compression leaves `compressed`.
    pub(super) fn add(&mut self, pages: usize, plain: usize, compressed: usize) {
        self.plain += pages * plain;
        self.compressed += pages * compressed;
    }

    /// Whether compression saves at least a third.
    pub(super) fn compression_pays(self) -> bool {
        self.compressed * 3 <= self.plain * 2
    }

    /// Bytes that are stored, and for compressed ones a third of all, which is what reading them
    /// costs in addition.
    pub(super) fn cost(self) -> usize {
        if self.compression_pays() { self.compressed + self.plain / 3 } else { self.plain }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hardly_shrinks_is_not_compressed() {
        let noise: Vec<u8> = (0..30_000_u64).map(|byte| ((byte * byte * 0x9e37_79b9) >> 13) as u8).collect();
        let sizes = Compressor::new().sizes(&noise).unwrap();
        assert!(!sizes.compression_pays() && sizes.cost() == noise.len(), "{sizes:?}");
        let repeated = Compressor::new().sizes(&[7; 30_000]).unwrap();
        assert!(repeated.compression_pays() && repeated.cost() < 10_100, "{repeated:?}");
        let mut both = Sizes::default();
        both.add(1, 30_000, 30_000);
        assert!(!both.compression_pays());
        both.add(2, 30_000, 15_000);
        assert!(both.compression_pays());
        assert!(Compressor::new().sizes(&[]).unwrap().cost() == 0);
    }

    #[test]
    fn bodies_are_restored() {
        for length in [0, 1, 100_000] {
            let body = vec![3; length];
            assert_eq!(
                zstd::bulk::decompress(&Compressor::new().compress(&body).unwrap(), length).unwrap(),
                body
            );
        }
    }
}
