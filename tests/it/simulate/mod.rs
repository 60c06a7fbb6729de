//! Range splits on exports, against what must come out.

mod findings;
mod indexes;
mod migrations;
mod schemas;
mod strategies;
mod times;

use std::path::Path;

use serde_json::Value;

use crate::common::done;

/// Ad events: 100,000 rows over two days.
fn events(dir: &Path) {
    done(dir, "generate ad-events --rows 100000 --out {}/exports");
}

fn strategy<'a>(simulation: &'a Value, name: &str) -> &'a Value {
    let strategies = simulation["strategies"].as_array().unwrap();
    strategies.iter().find(|strategy| strategy["strategy"] == name).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn read<'a>(strategy: &'a Value, kind: &str) -> &'a Value {
    strategy["reads"].as_array().unwrap().iter().find(|read| read["kind"] == kind).unwrap()
}

/// Finds a finding by its code.
fn finding<'a>(simulation: &'a Value, code: &str) -> Option<&'a Value> {
    simulation["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == code)
}
