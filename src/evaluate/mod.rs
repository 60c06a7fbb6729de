//! Keys under evaluation, before any table exists: where each would send the rows of an export, in total and over time.

mod balance;
mod candidate;

pub use balance::{BalanceOverTime, EvaluateError, KeyBalance, KeyBalanceReport};
pub use candidate::{Candidate, CandidateError, KeyPart, Transform};
