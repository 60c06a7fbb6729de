//! The fuzz targets under libFuzzer; the variable `TARGET` says which one. See `fuzz/README.md`.

#![no_main]

// The targets are compiled here and in the tests of `evenkeel`, whose paths they use.
extern crate self as evenkeel;

use std::sync::OnceLock;

pub use evenkeel_advisor::evaluate;
pub use evenkeel_input::source;
pub use evenkeel_model::{table, text_value, units};
pub use evenkeel_placement::placement;
pub use evenkeel_store::{log, portion};
use libfuzzer_sys::fuzz_target;

mod targets;

fn target() -> fn(&[u8]) {
    static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();
    *TARGET.get_or_init(|| {
        let name = std::env::var("TARGET").unwrap_or_default();
        if name == "orc" {
            // A panic of the decoder is caught and becomes an error; libFuzzer's hook would end the
            // run.
            std::panic::set_hook(Box::new(|_| ()));
        }
        let found = targets::TARGETS.iter().find(|(known, _)| *known == name);
        let names = targets::TARGETS.map(|(name, _)| name).join(", ");
        found.unwrap_or_else(|| panic!("set TARGET to one of {names}")).1
    })
}

fuzz_target!(|data: &[u8]| target()(data));
