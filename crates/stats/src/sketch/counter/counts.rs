//! The three ways to count: by number, spilled, or by sketches.

use crate::sketch::counter::numbered::Numbered;
use crate::sketch::counter::sketches::Sketches;
use crate::sketch::counter::spilled::Spilled;
use crate::sketch::part_file::SpillError;
use evenkeel_model::wire::{Wire, WireError, WireReader};

/// Rows per key, without the values of the keys.
#[derive(Debug)]
pub(super) enum Counts {
    Numbered(Numbered),
    Spilled(Spilled),
    Sketched(Box<Sketches>),
}

impl Counts {
    /// Returns the known rows of a key, a lower bound if more may be found.
    pub(super) fn rows_of(&self, identity: u64) -> u64 {
        match self {
            Self::Numbered(numbered) => numbered.rows_of(identity),
            Self::Spilled(spilled) => spilled.rows_at_hand(identity),
            Self::Sketched(sketches) => sketches.rows_of(identity).0,
        }
    }

    /// Like [`Counts::each`], but keeps the counts.
    pub(super) fn visit(&self, mut count: impl FnMut(u64, u64)) -> Result<(), SpillError> {
        match self {
            Self::Numbered(numbered) => numbered.each(count),
            Self::Spilled(spilled) => spilled.visit(&mut count)?,
            Self::Sketched(_) => {}
        }
        Ok(())
    }

    /// Visits every key with its rows, some several times; visits nothing if sketches count.
    pub(super) fn each(self, mut count: impl FnMut(u64, u64)) -> Result<(), SpillError> {
        match self {
            Self::Numbered(numbered) => numbered.each(count),
            Self::Spilled(spilled) => spilled.each(&mut count)?,
            Self::Sketched(_) => {}
        }
        Ok(())
    }
}

/// One byte gives the kind of counts that follows.
impl Wire for Counts {
    fn put(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Numbered(numbered) => {
                bytes.push(0);
                numbered.put(bytes);
            }
            Self::Spilled(spilled) => {
                bytes.push(1);
                spilled.put(bytes);
            }
            Self::Sketched(sketches) => {
                bytes.push(2);
                sketches.put(bytes);
            }
        }
    }

    fn take(left: &mut WireReader<'_>) -> Result<Self, WireError> {
        Ok(match left.bytes(1)? {
            [0] => Self::Numbered(Numbered::take(left)?),
            [1] => Self::Spilled(Spilled::take(left)?),
            [2] => Self::Sketched(Box::new(Sketches::take(left)?)),
            _ => return Err(WireError("unknown kind of counts")),
        })
    }
}
