//! The fuzz targets on their corpus, and on mutations of it. `fuzz/README.md` tells how to run them
//! guided by coverage.

use std::fs;
use std::panic::catch_unwind;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::common::project;

#[path = "../../fuzz/src/mutations.rs"]
mod mutations;
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

#[test]
fn no_bytes_make_a_parser_panic() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for (name, target) in targets::TARGETS {
        let seeds = corpus(name);
        assert!(!seeds.is_empty(), "{name} has no corpus");
        let mutations = (0..MUTATIONS).map(|_| mutations::mutate(&mut random, &seeds)).collect::<Vec<_>>();
        for bytes in seeds.iter().chain(&mutations) {
            if catch_unwind(|| target(bytes)).is_err() {
                panic!("{name} fails on {:?}; keep it in fuzz/corpus/{name}", String::from_utf8_lossy(bytes));
            }
        }
        println!("{name}: {} files, {MUTATIONS} mutations", seeds.len());
    }
}
