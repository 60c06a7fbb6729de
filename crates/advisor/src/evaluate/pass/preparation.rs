//! Preparation of batches before they are counted: each independently, so that all cores can work.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take_record_batch;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::evaluate::EvaluateError;
use crate::evaluate::pass::batch::{KeyParts, KeyedBatch};
use crate::evaluate::pass::time_column::Clock;
use evenkeel_model::table::Candidate;
use evenkeel_model::units::{Micros, PartitionId};
use evenkeel_placement::placement::{JointPlacement, PlacementError};
use evenkeel_stats::windows::{MomentAxis, MomentRows, TimeAxis, WindowedRows};

/// Candidate for the partition key, as known before the first row.
#[derive(Debug)]
pub(crate) struct CandidatePlan {
    pub(crate) candidate: Candidate,
    /// Positions of the parts of the key.
    pub(crate) key: Vec<usize>,
    /// Functions that do not accept it, each with the reason.
    pub(crate) left_out: Vec<String>,
    /// Placements of the key, in groups that share cells.
    pub(crate) placements: Vec<Arc<JointPlacement>>,
}

/// Data on a key in a batch, known before its rows are counted.
pub(crate) struct BatchKeys {
    /// Identities of the keys; `None` if the key has one part, whose identities are used directly.
    pub(crate) identities: Option<Vec<u64>>,
    /// Cells of every row, for each group of placements; `None` while keys are few, and looked up
    /// by number.
    pub(crate) cells: Option<Vec<Vec<PartitionId>>>,
}

impl CandidatePlan {
    fn prepare(&self, batch: &KeyedBatch, numbered: bool) -> Result<BatchKeys, EvaluateError> {
        let identities = match self.key.as_slice() {
            [_] => None,
            _ => Some(batch.identities(&self.key)),
        };
        let cells = if numbered { None } else { Some(self.cells(batch)?) };
        Ok(BatchKeys { identities, cells })
    }

    /// Computes the cells of every row, for each group of placements.
    pub(crate) fn cells(&self, batch: &KeyedBatch) -> Result<Vec<Vec<PartitionId>>, EvaluateError> {
        let failed = |source| EvaluateError::Placement { key: self.candidate.to_string(), source };
        let columns: Vec<_> = batch.parts_of(&self.key).map(|part| part.array.clone()).collect();
        let mut hashes = Hashes::default();
        let of_group = |placement: &Arc<JointPlacement>| {
            let mut cells = Vec::with_capacity(batch.rows);
            let hashes = hashes.for_batch(placement, &columns).map_err(failed)?;
            placement.assign_hashes(hashes, &columns, &mut cells).map_err(failed)?;
            Ok(cells)
        };
        self.placements.iter().map(of_group).collect()
    }
}

/// Hashes of some keys, reused by consecutive functions of one hash family.
#[derive(Default)]
pub(crate) struct Hashes(Option<(&'static str, Vec<u64>)>);

impl Hashes {
    pub(crate) fn for_batch(
        &mut self,
        placement: &JointPlacement,
        columns: &[ArrayRef],
    ) -> Result<&[u64], PlacementError> {
        let family = placement.hash_family();
        let known = self.0.take().filter(|(known, _)| *known == family);
        let hashes = match known {
            Some((_, hashes)) => hashes,
            None => placement.hash(columns)?,
        };
        Ok(&self.0.insert((family, hashes)).1)
    }
}

/// Batches with their prepared data.
pub(crate) struct PreparedBatches {
    /// Batches, each with whether it ends a batch of the simulated ingest.
    pub(crate) batches: Vec<(KeyedBatch, bool)>,
    /// Data on each partition key, for each batch.
    pub(crate) keys: Vec<Vec<BatchKeys>>,
}

/// Rows of one batch of the simulated ingest.
struct Piece {
    rows: RecordBatch,
    /// Number of rows before these.
    first_row: u64,
    /// Whether the simulated batch ends with these rows.
    ends: bool,
}

/// Prepares batches in the order of their arrival.
#[derive(Debug)]
pub(crate) struct Preparation {
    pub(crate) parts: KeyParts,
    pub(crate) keys: Vec<Arc<CandidatePlan>>,
    /// Whether whole rows are distinguished.
    pub(crate) whole_rows: bool,
    pub(crate) clock: Option<Clock>,
    pub(crate) axis: TimeAxis,
    /// Short windows, if partition keys are counted over time.
    pub(crate) moments: Option<MomentAxis>,
    /// Requested length of windows, and the most windows of that length.
    pub(crate) window: Option<Micros>,
    pub(crate) most_windows: usize,
    /// Rows of a batch of the simulated ingest.
    pub(crate) batch_rows: u64,
    pub(crate) sampling: Option<(f64, ChaCha8Rng)>,
    pub(crate) rows_read: u64,
    pub(crate) rows: u64,
}

impl Preparation {
    /// Prepares batches. `numbered` says for each partition key whether its keys are few enough to
    /// be numbered. If that has changed in the meantime, less is prepared than could be.
    pub(crate) fn prepare(
        &mut self,
        batches: &[RecordBatch],
        numbered: &[bool],
    ) -> Result<PreparedBatches, EvaluateError> {
        let mut pieces = Vec::new();
        for batch in batches {
            self.cut(batch, &mut pieces);
        }
        let (parts, whole_rows, keys) = (&self.parts, self.whole_rows, &self.keys);
        let prepare = |piece: &Piece| {
            let prepared = KeyedBatch::new(&piece.rows, piece.first_row, parts, whole_rows)?;
            let of_key = |(key, numbered): (&Arc<CandidatePlan>, &bool)| key.prepare(&prepared, *numbered);
            let keys = keys.iter().zip(numbered).map(of_key).collect::<Result<Vec<_>, EvaluateError>>()?;
            Ok((prepared, keys))
        };
        let (axis, clock, window, most) = (&mut self.axis, &self.clock, self.window, self.most_windows);
        let moments = &mut self.moments;
        // Windows follow each other in time, so they are found batch by batch, in parallel with the
        // independent preparation of each batch.
        let mut windows = || {
            let of_piece =
                |piece: &Piece| windows_of(piece, axis, moments.as_mut(), clock.as_ref(), window, most);
            pieces.iter().map(of_piece).collect::<Result<Vec<_>, EvaluateError>>()
        };
        let (windows, prepared) = rayon::join(&mut windows, || {
            pieces.par_iter().with_max_len(1).map(prepare).collect::<Result<Vec<_>, EvaluateError>>()
        });
        let mut batches = Vec::with_capacity(pieces.len());
        let mut by_key: Vec<Vec<BatchKeys>> = self.keys.iter().map(|_| Vec::new()).collect();
        for (((mut prepared, keys), windows), piece) in prepared?.into_iter().zip(windows?).zip(&pieces) {
            (prepared.windows, prepared.moments) = windows;
            batches.push((prepared, piece.ends));
            by_key.iter_mut().zip(keys).for_each(|(all, key)| all.push(key));
        }
        Ok(PreparedBatches { batches, keys: by_key })
    }

    /// Adds the preparation of later rows: their axes, and how many were read and kept.
    pub(crate) fn merge(
        &mut self,
        axis: TimeAxis,
        moments: Option<MomentAxis>,
        (read, kept): (u64, u64),
    ) -> Result<(), EvaluateError> {
        if let (Some(own), Some(more)) = (&mut self.moments, moments) {
            own.merge(more);
        }
        let (length, most) = (self.window.unwrap_or(Micros::SECOND), self.most_windows);
        self.axis.merge(axis).ok_or(EvaluateError::TooManyWindows { length, most })?;
        self.rows_read += read;
        self.rows += kept;
        Ok(())
    }

    /// Cuts a batch at the ends of batches of the simulated ingest, and takes the sample.
    fn cut(&mut self, batch: &RecordBatch, pieces: &mut Vec<Piece>) {
        let mut begin = 0;
        while begin < batch.num_rows() {
            // A simulated batch ends after `batch_rows` rows of the export, sampled or not.
            let until_end = self.batch_rows.max(1) - self.rows_read % self.batch_rows.max(1);
            let rows = usize::try_from(until_end).unwrap_or(usize::MAX).min(batch.num_rows() - begin);
            let slice = batch.slice(begin, rows);
            let sampled = self.sampling.as_mut().map(|(fraction, random)| sampled(&slice, *fraction, random));
            let piece = Piece {
                rows: sampled.unwrap_or(slice),
                first_row: self.rows,
                ends: rows as u64 == until_end,
            };
            self.rows_read += rows as u64;
            self.rows += piece.rows.num_rows() as u64;
            pieces.push(piece);
            begin += rows;
        }
    }
}

/// Windows of the rows of a batch: the displayed ones, and the short ones.
type WindowsOfBatch = (Option<WindowedRows>, Option<MomentRows>);

/// Finds the windows of rows, if they have times.
fn windows_of(
    piece: &Piece,
    axis: &mut TimeAxis,
    moments: Option<&mut MomentAxis>,
    clock: Option<&Clock>,
    window: Option<Micros>,
    most: usize,
) -> Result<WindowsOfBatch, EvaluateError> {
    let Some(clock) = clock else { return Ok((None, None)) };
    let times = clock.times(&piece.rows, piece.first_row)?;
    let length = window.unwrap_or(Micros::SECOND);
    let windows = axis.add(&times).ok_or(EvaluateError::TooManyWindows { length, most })?;
    Ok((Some(windows), moments.map(|moments| moments.add(&times))))
}

/// Samples each row independently with probability `fraction`.
fn sampled(batch: &RecordBatch, fraction: f64, random: &mut ChaCha8Rng) -> RecordBatch {
    let rows = (0..batch.num_rows() as u32).filter(|_| random.random_bool(fraction.clamp(0.0, 1.0)));
    let rows = UInt32Array::from_iter_values(rows);
    // Taking rows that exist cannot fail.
    take_record_batch(batch, &rows).unwrap_or_else(|_| batch.slice(0, 0))
}
