//! Replays an export through a model of Spanner's range splits.
//!
//! Every row of the export is inserted, in arrival order, into the key space that each strategy
//! defines. The public facts about Spanner and the assumptions of the model are described in
//! [`splits`].

mod advice;
mod arrivals;
mod columns;
mod declaration;
mod declared;
mod design;
mod error;
mod family;
mod index;
mod interleave;
mod key;
mod load;
mod migrate;
mod pairing;
mod reads;
mod recommended;
mod replay;
mod result;
mod runner;
mod scale;
pub mod splits;
mod strategy;
mod survey;
mod table;

pub use crate::simulate::advice::{AS_GOOD, HARMLESS, few_digits};
pub use crate::simulate::declaration::Declaration;
pub use crate::simulate::declared::{Declared, Parent, WrittenTable};
pub use crate::simulate::error::SimulateError;
pub use crate::simulate::index::{IndexSpec, IndexSpecError, parse_key_order};
pub use crate::simulate::interleave::simulate_interleaved;
pub use crate::simulate::key::KeyOrder;
pub use crate::simulate::migrate::{KeyKind, Migration, migrate, normalize_uuids};
pub use crate::simulate::pairing::{PairingError, declared_pair, declared_table};
pub use crate::simulate::recommended::RecommendedSchema;
pub use crate::simulate::replay::simulate;
pub use crate::simulate::result::{
    IndexReport, Load, RateSource, ReadKind, ReadReport, SimulateOptions, Simulation, StrategyReport,
};
pub use crate::simulate::strategy::{Strategy, StrategyError, StrategyName, UuidForm};
