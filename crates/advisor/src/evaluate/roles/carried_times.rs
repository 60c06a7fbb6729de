//! Times that the values of a column carry.

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::compute::{concat, take};
use evenkeel_model::time_reading::TimeReading;
use serde::{Deserialize, Serialize};

/// Number of values that show whether a column may carry points in time.
const FEW: usize = 2_000;

/// Points in time that the values of a column carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedTimes {
    /// Way to read them.
    pub reading: TimeReading,
    /// First of the sampled rows, in microseconds since 1970.
    pub earliest_micros: i64,
    /// Last of the sampled rows, in microseconds since 1970.
    pub latest_micros: i64,
}

impl CarriedTimes {
    /// Replaces the times by offsets from the first.
    pub(crate) fn mask(&mut self) {
        self.latest_micros = self.latest_micros.saturating_sub(self.earliest_micros);
        self.earliest_micros = 0;
    }

    pub(super) fn from_arrays(arrays: &[&ArrayRef]) -> Option<Self> {
        // For most columns a few values show that they carry no times.
        let first = arrays.first()?;
        let values: Vec<&dyn Array> = arrays.iter().map(|array| array.as_ref() as &dyn Array).collect();
        let carries = |array: &ArrayRef| TimeReading::detect(array).is_some();
        if first.len() > FEW && first.null_count() == 0 {
            let step = u32::try_from(first.len() / FEW).unwrap_or(1).max(1);
            let places: UInt32Array =
                (0..u32::try_from(first.len()).unwrap_or(u32::MAX)).step_by(step as usize).collect();
            if !carries(&take(first, &places, None).ok()?) {
                return None;
            }
        }
        let all = concat(&values).ok()?;
        let (reading, earliest_micros, latest_micros) = TimeReading::detect(&all)?;
        Some(Self { reading, earliest_micros, latest_micros })
    }
}
