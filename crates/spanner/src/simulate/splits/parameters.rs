//! Parameters of the model.

use serde::Serialize;

use evenkeel_model::units::{ByteSize, Micros};

/// Assumptions of the model. All of them are shown with its results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelParameters {
    /// Size at which a split divides, in bytes.
    #[serde(rename = "split_size_bytes")]
    pub split_size: ByteSize,
    /// Capacity of a split in rows per second, which is a score of 100. There is no public figure;
    /// CockroachDB splits a range by load from 2500 requests per second.
    #[serde(rename = "split_rate_rows_per_second")]
    pub split_rate: f64,
    /// Score at which a split starts to sample the keys of its writes.
    pub warm: f64,
    /// Score at which a split is divided by load.
    pub hot: f64,
    /// Length of the windows over which scores are measured.
    #[serde(rename = "window_micros")]
    pub window: Micros,
    /// Number of rows of the real table that each row of the export represents.
    pub scale: f64,
    /// Number of these rows that arrive at the time of the exported row; the others exist before.
    pub load_scale: f64,
    /// Number of windows from the decision to divide a split until it is divided.
    pub delay_windows: u32,
    /// Number of windows for which two neighbours divided by load must have been quiet before they
    /// are joined again.
    pub quiet_windows: u32,
    /// Number of servers that splits are spread over.
    pub servers: usize,
    /// Share of a window's sampled keys at which a single key makes dividing useless.
    pub single_row_share: f64,
    /// Share of a window's sampled keys beyond the range of the previous window at which dividing
    /// is useless.
    pub moving_share: f64,
    /// Parameters of key sampling.
    pub sampling: Sampling,
    /// Seed of the random samples of keys.
    pub seed: u64,
}

/// Parameters of the key samples that determine boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sampling {
    /// Maximum number of keys that a split samples of its rows; they determine the boundary when it
    /// divides by size, and how rows and bytes are shared between the parts.
    pub size_keys: usize,
    /// Maximum number of keys that a warm split samples in one window; they determine the boundary
    /// when it divides by load.
    pub load_keys: usize,
    /// Minimum number of sampled keys needed to split by load.
    pub fewest_load_keys: usize,
    /// Smallest share that a boundary between roots of interleaved rows may leave on either side.
    /// If it would leave less, a more even boundary may separate the rows of one root.
    pub root_share: f64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { size_keys: 512, load_keys: 128, fewest_load_keys: 8, root_share: 0.2 }
    }
}

impl Default for ModelParameters {
    fn default() -> Self {
        Self {
            split_size: ByteSize(8 << 30),
            split_rate: 2500.0,
            warm: 50.0,
            hot: 100.0,
            window: Micros::MINUTE,
            scale: 1.0,
            load_scale: 1.0,
            delay_windows: 2,
            quiet_windows: 60,
            servers: 4,
            single_row_share: 0.99,
            moving_share: 0.9,
            sampling: Sampling::default(),
            seed: 1,
        }
    }
}

impl ModelParameters {
    /// Returns the score of a split that received `rows` rows of the export in one window.
    pub(crate) fn score(&self, rows: u64) -> f64 {
        100.0 * rows as f64 * self.load_scale / (self.split_rate * self.window.seconds())
    }

    /// Returns the rate, in rows of the real table per second, that corresponds to a score.
    #[must_use]
    pub fn rows_per_second(&self, score: f64) -> f64 {
        score / 100.0 * self.split_rate
    }

    /// Returns the number of rows of the export in one window that make a split hot.
    pub(crate) fn hot_rows(&self) -> f64 {
        self.hot / 100.0 * self.split_rate * self.window.seconds() / self.load_scale
    }

    /// Returns the size, in bytes of the export, at which a split divides.
    pub(crate) fn scaled_size(&self) -> f64 {
        self.split_size.0 as f64 / self.scale
    }
}
