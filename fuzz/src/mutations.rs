//! Mutations of a corpus.

use rand::{Rng, RngExt};

/// Words of the formats, so that mutations get further than chance would take them.
const WORDS: [&str; 24] = [
    "\"",
    "{",
    "}",
    ",",
    "\n",
    "\r\n",
    "NULL",
    "null",
    "-1",
    "18446744073709551616",
    "1e400",
    "\u{feff}",
    "é",
    "\0",
    "NOT NULL",
    "PRIMARY KEY (",
    "Timestamp",
    "Decimal(22,9)",
    "2026-01-01T00:00:00Z",
    "\\u0000",
    "0x",
    "--",
    "/*",
    "`",
];

/// Changes one of the seeds in some places.
pub(crate) fn mutate(random: &mut impl Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.random_range(0..seeds.len())].clone();
    for _ in 0..random.random_range(1..6) {
        let at = random.random_range(0..=bytes.len());
        let end = (at + random.random_range(0..40)).min(bytes.len());
        match random.random_range(0..8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = random.random(),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let piece = bytes[at..end].to_vec();
                let to = random.random_range(0..=bytes.len());
                bytes.splice(to..to, piece);
            }
            5 => {
                let other = &seeds[random.random_range(0..seeds.len())];
                let start = random.random_range(0..=other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[start..]);
            }
            6 => {
                let word = WORDS[random.random_range(0..WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
            _ => {
                // A piece of another seed holds the words of its format.
                let other = &seeds[random.random_range(0..seeds.len())];
                let start = random.random_range(0..=other.len());
                let end = (start + random.random_range(0..24)).min(other.len());
                bytes.splice(at..at, other[start..end].iter().copied());
            }
        }
    }
    bytes
}
