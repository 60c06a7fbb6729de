//! The numbers of the model.

use serde::Serialize;

use evenkeel_model::units::{ByteSize, Micros};

/// What the model assumes. All of it is shown with its results.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelParameters {
    /// Bytes at which a split divides.
    #[serde(rename = "split_size_bytes")]
    pub split_size: ByteSize,
    /// Rows per second that one split takes: a score of 100. No public figure exists; CockroachDB splits a range by load from 2500 requests per
    /// second on.
    #[serde(rename = "split_rate_rows_per_second")]
    pub split_rate: f64,
    /// Score from which a split is watched.
    pub warm: f64,
    /// Score from which it is divided by load.
    pub hot: f64,
    /// Length of the windows that scores are for.
    #[serde(rename = "window_micros")]
    pub window: Micros,
    /// So many rows of the real table each row of the export stands for.
    pub scale: f64,
    /// Of these, so many that come at its time; the others have come before.
    pub load_scale: f64,
    /// Windows from the decision to divide a split until it is divided.
    pub delay_windows: u32,
    /// Windows that two neighbours divided by load must have been quiet for before they are joined again.
    pub quiet_windows: u32,
    /// Servers that splits are spread over.
    pub servers: usize,
    /// Share of the sampled keys of a window that one key has where dividing does not help.
    pub single_row_share: f64,
    /// Share of the sampled keys beyond all of the window before, where dividing does not help.
    pub moving_share: f64,
    /// How keys are sampled.
    pub sampling: Sampling,
    /// Seed of all samples.
    pub seed: u64,
}

/// By how many keys splits know where to divide.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Sampling {
    /// Keys that a split keeps of its rows, at most: where to divide by size, and what either part has, is told by them.
    pub size_keys: usize,
    /// Keys that a warm split keeps of one window, at most: where to divide by load is told by them.
    pub load_keys: usize,
    /// Fewer of these say nothing.
    pub fewest_load_keys: usize,
    /// A boundary at the root of interleaved rows leaves at least this share on either side; else rows of one root are parted.
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
    /// The score of a split that took so many rows of the export in one window.
    #[must_use]
    pub fn score(&self, rows: u64) -> f64 {
        100.0 * rows as f64 * self.load_scale / (self.split_rate * self.window.seconds())
    }

    /// Rows of the real table per second that make a score.
    #[must_use]
    pub fn rows_per_second(&self, score: f64) -> f64 {
        score / 100.0 * self.split_rate
    }

    /// Rows of the export in one window from which a split is hot.
    #[must_use]
    pub fn hot_rows(&self) -> f64 {
        self.hot / 100.0 * self.split_rate * self.window.seconds() / self.load_scale
    }

    /// Bytes of the export at which a split divides.
    #[must_use]
    pub fn scaled_size(&self) -> f64 {
        self.split_size.0 as f64 / self.scale
    }
}
