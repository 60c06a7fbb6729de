//! Runs the fuzz targets on mutations of a corpus, without guidance by coverage and therefore many
//! times faster. See `fuzz/README.md`.

// The targets are compiled here and in the tests of `evenkeel`, whose paths they use.
extern crate self as evenkeel;

use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

pub use evenkeel_advisor::evaluate;
pub use evenkeel_input::source;
pub use evenkeel_model::{table, text_value, units};
pub use evenkeel_placement::placement;
pub use evenkeel_store::{log, portion};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

#[path = "../mutations.rs"]
mod mutations;
#[path = "../targets.rs"]
mod targets;

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Longest input, in bytes.
const MAX_BYTES: usize = 4096;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [corpora, seconds, seed, names @ ..] = arguments.as_slice() else {
        panic!("write mutate FOLDER-OF-CORPORA SECONDS-PER-TARGET SEED [TARGET ...]");
    };
    let seconds: u64 = seconds.parse().expect("seconds are a number");
    let seed: u64 = seed.parse().expect("the seed is a number");
    let chosen = targets::TARGETS.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|n| n == name));
    let mut all = 0;
    for (name, target) in chosen {
        let folder = Path::new(corpora).join(name);
        let files = fs::read_dir(&folder).expect("the corpus is a folder");
        let seeds: Vec<Vec<u8>> =
            files.map(|file| fs::read(file.expect("listed").path()).expect("readable")).collect();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let report = std::panic::take_hook();
        let crash = format!("crash-{name}-{seed}");
        // A panic of the ORC decoder is caught and becomes an error.
        if *name == "orc" {
            std::panic::set_hook(Box::new(|_| ()));
        } else {
            std::panic::set_hook(Box::new(move |panic| {
                INPUT.with_borrow(|input| fs::write(&crash, input).expect("the input can be written"));
                eprintln!("{panic}\nthe input is in {crash}");
                std::process::abort();
            }));
        }
        let (start, mut runs, mut slowest) = (Instant::now(), 0_u64, Duration::ZERO);
        let mut last = start;
        while last - start < Duration::from_secs(seconds) {
            let mut bytes = mutations::mutate(&mut random, &seeds);
            bytes.truncate(MAX_BYTES);
            INPUT.with_borrow_mut(|input| input.clone_from(&bytes));
            target(&bytes);
            let now = Instant::now();
            if now - last > Duration::from_secs(1) {
                // Once more, since the machine may have been busy.
                target(&bytes);
                if now.elapsed() > Duration::from_secs(1) {
                    fs::write(format!("slow-{name}-{seed}-{runs}"), &bytes).expect("the input can be written");
                }
                slowest = slowest.max(now.elapsed());
            }
            last = Instant::now();
            runs += 1;
        }
        std::panic::set_hook(report);
        all += runs;
        println!("{name}: {runs} runs in {seconds} s from {} seeds, the slowest {slowest:?}", seeds.len());
    }
    println!("{all} runs");
}
