//! The name and parameters of the function that sends a row to its partition.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A placement function of YDB, by name. The name is part of a table's format: what it stands for never changes.
///
/// The functions themselves, with their sources, are in `placement`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementFunction {
    /// `CONSISTENCY_64`: N equal intervals of the hash. The default of YDB.
    #[default]
    Ydb,
    /// `MODULO_N`: hash modulo N.
    YdbModulo,
    /// `CLOUD_LOGS`: a sliding group of active partitions.
    YdbCloudLogs {
        /// Partitions that take writes at one time (default 10, at most N are used).
        active: u32,
        /// Microseconds until the next group takes over (default 5 minutes).
        period_micros: u64,
    },
}

impl PlacementFunction {
    /// `CLOUD_LOGS` with the defaults of YDB (`ydb/core/tx/sharding/hash_slider.h`).
    pub const CLOUD_LOGS_DEFAULT: Self = Self::YdbCloudLogs { active: 10, period_micros: 5 * 60 * 1_000_000 };

    /// The name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ydb => "ydb",
            Self::YdbModulo => "ydb-modulo",
            Self::YdbCloudLogs { .. } => "ydb-cloud-logs",
        }
    }
}

impl fmt::Display for PlacementFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A placement function that is not known.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown placement function '{found}'; known: ydb, ydb-modulo, ydb-cloud-logs")]
pub struct PlacementFunctionError {
    /// The text that was given.
    pub found: String,
}

impl FromStr for PlacementFunction {
    type Err = PlacementFunctionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim().to_ascii_lowercase().as_str() {
            "ydb" => Ok(Self::Ydb),
            "ydb-modulo" => Ok(Self::YdbModulo),
            "ydb-cloud-logs" => Ok(Self::CLOUD_LOGS_DEFAULT),
            _ => Err(PlacementFunctionError { found: text.to_owned() }),
        }
    }
}
