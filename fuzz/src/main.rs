//! The fuzz targets under libFuzzer; the variable `TARGET` says which one. See `fuzz/README.md`.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;

mod targets;

fn target() -> fn(&[u8]) {
    static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();
    *TARGET.get_or_init(|| {
        let name = std::env::var("TARGET").unwrap_or_default();
        let found = targets::TARGETS.iter().find(|(known, _)| *known == name);
        let names = targets::TARGETS.map(|(name, _)| name).join(", ");
        found.unwrap_or_else(|| panic!("set TARGET to one of {names}")).1
    })
}

fuzz_target!(|data: &[u8]| target()(data));
