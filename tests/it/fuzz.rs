//! The fuzz targets on their corpus, and on mutations of it. `fuzz/README.md` tells how to run them guided by coverage.

use std::fs;
use std::panic::catch_unwind;

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common::project;

#[path = "../../fuzz/src/targets.rs"]
mod targets;

/// Mutations tried of each target.
const MUTATIONS: usize = 3_000;

/// The corpus of a target.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = project("fuzz/corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

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

fn mutate(random: &mut impl Rng, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.random_range(0..seeds.len())].clone();
    for _ in 0..random.random_range(1..6) {
        let at = random.random_range(0..=bytes.len());
        match random.random_range(0..7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            1 if at < bytes.len() => bytes[at] = random.random(),
            2 => bytes.truncate(at),
            3 => {
                let end = (at + random.random_range(0..40)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let end = (at + random.random_range(0..40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let other = &seeds[random.random_range(0..seeds.len())];
                let start = random.random_range(0..=other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[start..]);
            }
            _ => {
                let word = WORDS[random.random_range(0..WORDS.len())];
                bytes.splice(at..at, word.bytes());
            }
        }
    }
    bytes
}

#[test]
fn no_bytes_make_a_parser_panic() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for (name, target) in targets::TARGETS {
        let seeds = corpus(name);
        assert!(!seeds.is_empty(), "{name} has no corpus");
        let mutations = (0..MUTATIONS).map(|_| mutate(&mut random, &seeds)).collect::<Vec<_>>();
        for bytes in seeds.iter().chain(&mutations) {
            if catch_unwind(|| target(bytes)).is_err() {
                panic!("{name} fails on {:?}; keep it in fuzz/corpus/{name}", String::from_utf8_lossy(bytes));
            }
        }
        println!("{name}: {} files, {MUTATIONS} mutations", seeds.len());
    }
}
