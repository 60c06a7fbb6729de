//! Name and parameters of the function that maps a row to its partition.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::bounded::quote;
use crate::units::{decimal_seconds, micros_of_decimal_seconds};

/// A YDB placement function, by name. The name is part of a table's format: its meaning never
/// changes.
///
/// The functions themselves, with their sources, are in `placement`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlacementFunction {
    /// `CONSISTENCY_64`: N equal intervals of the hash. YDB's default.
    #[default]
    Ydb,
    /// `MODULO_N`: hash modulo N.
    YdbModulo,
    /// `CLOUD_LOGS`: a sliding group of active partitions.
    YdbCloudLogs {
        /// Number of partitions that receive writes at one time (default 10; at most N are used).
        active: u32,
        /// Microseconds until the next group takes over (default 5 minutes).
        period_micros: u64,
    },
}

impl PlacementFunction {
    /// `CLOUD_LOGS` with YDB's defaults (`ydb/core/tx/sharding/hash_slider.h`).
    pub const CLOUD_LOGS_DEFAULT: Self = Self::YdbCloudLogs { active: 10, period_micros: 5 * 60 * 1_000_000 };

    /// Returns the name used on the command line and in JSON.
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
    /// Prints the name, followed by the parameters if they are not the defaults:
    /// `ydb-cloud-logs:20:60`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::YdbCloudLogs { active, period_micros } if *self != Self::CLOUD_LOGS_DEFAULT => {
                write!(f, "{}:{active}:{}", self.name(), decimal_seconds(*period_micros))
            }
            _ => f.write_str(self.name()),
        }
    }
}

/// Error for an unknown placement function.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "unknown placement function '{found}'; known: ydb, ydb-modulo, ydb-cloud-logs, and \
     ydb-cloud-logs:ACTIVE:SECONDS with the active partitions and the seconds, to six decimals, until the next group takes over", found = quote(found)
)]
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
            name => cloud_logs(name).ok_or_else(|| PlacementFunctionError { found: text.to_owned() }),
        }
    }
}

/// Parses `ydb-cloud-logs:ACTIVE:SECONDS`.
fn cloud_logs(text: &str) -> Option<PlacementFunction> {
    let (active, seconds) = text.strip_prefix("ydb-cloud-logs:")?.split_once(':')?;
    let period_micros = micros_of_decimal_seconds(seconds).filter(|micros| *micros > 0)?;
    let active = active.parse().ok().filter(|active| *active > 0)?;
    Some(PlacementFunction::YdbCloudLogs { active, period_micros })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_period_prints_as_it_parses(
            active in 1u32..,
            period_micros in prop_oneof![1u64..=u64::MAX, 1u64..10_000_000_000],
        ) {
            let function = PlacementFunction::YdbCloudLogs { active, period_micros };
            prop_assert_eq!(function.to_string().parse(), Ok(function));
        }
    }

    #[test]
    fn functions_print_as_they_parse() {
        for text in ["ydb", "ydb-modulo", "ydb-cloud-logs", "ydb-cloud-logs:20:60", "ydb-cloud-logs:1:0.5"] {
            assert_eq!(text.parse::<PlacementFunction>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "md5",
            "ydb-cloud-logs:0:60",
            "ydb-cloud-logs:1:0",
            "ydb-cloud-logs:1",
            "ydb-cloud-logs:1:nan",
            "ydb-cloud-logs:1:0.0000001",
        ] {
            assert!(text.parse::<PlacementFunction>().is_err(), "{text}");
        }
    }
}
