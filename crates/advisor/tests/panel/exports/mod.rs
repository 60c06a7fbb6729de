//! The exports, by what they are about, with the answers that experts accept. Some are traps:
//! rows that were sent twice, a single series, columns that look like what they are not.

/// Makes a [`Case`].
macro_rules! case {
    // Columns that only their names tell from others.
    (by name $name:literal, $($rest:tt)*) => {
        $crate::exports::Case { by_name: true, ..case!($name, $($rest)*) }
    };
    ($name:literal, $rows:expr, $accepted:expr, never $never:expr, by $by:expr, $why:literal) => {
        $crate::exports::Case {
            name: $name,
            rows: $rows,
            accepted: $accepted,
            never: $never,
            identified_by: $by,
            why: $why,
            by_name: false,
        }
    };
}

mod advertising;
mod catalogues;
mod finance;
mod goods;
mod institutions;
mod networks;
mod orders;
mod people;
mod registers;
mod science;
mod sensors;
mod streams;
mod systems;
mod tills;
mod transport;
mod web;

use arrow::array::RecordBatch;

use crate::columns::uniform;

/// An export with accepted answers.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) rows: fn() -> RecordBatch,
    /// Partition keys that are accepted; an empty one is the answer that none is good, or a
    /// makeshift that says so.
    pub(crate) accepted: &'static [&'static [&'static str]],
    /// Columns that are in no primary key.
    pub(crate) never: &'static [&'static str],
    /// The primary key contains all columns of one of these sets.
    pub(crate) identified_by: &'static [&'static [&'static str]],
    pub(crate) why: &'static str,
    /// Whether only the names of columns tell the answer, so that nobody could give it without
    /// them.
    pub(crate) by_name: bool,
}

/// Lines of orders: the order of each row, and its number within the order.
fn lines(orders: u64, most: u64, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let counts = uniform(orders as usize, most, seed);
    let (mut order, mut line) = (Vec::new(), Vec::new());
    for (at, count) in counts.iter().enumerate() {
        for number in 0..=*count {
            // Numbers of orders have gaps.
            order.push((at as u64 / 8) * 32 + at as u64 % 8 + 1);
            line.push(number + 1);
        }
    }
    (order, line)
}

/// For each group the same value in all of its rows.
fn by_group(groups: &[u64], below: u64, salt: u64) -> Vec<u64> {
    groups
        .iter()
        .map(|group| (group.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23) ^ salt) % below)
        .collect()
}

/// Whole amounts with a long tail.
fn amounts_of(rows: usize, typical: u64, seed: u64) -> Vec<u64> {
    uniform(rows, 1_000, seed).into_iter().map(|share| typical * 100 / (share + 20)).collect()
}

fn amounts_below_zero(rows: usize, seed: u64) -> Vec<i64> {
    uniform(rows, 60, seed)
        .into_iter()
        .zip(uniform(rows, 100, seed + 1))
        .map(|(a, b)| if b < 90 { a as i64 - 20 } else { (a * b / 10) as i64 })
        .collect()
}

/// Sums of several even numbers below `values`, which crowd around their mean.
fn sums(rows: usize, values: u64, of: u64, seed: u64) -> Vec<u64> {
    let parts: Vec<Vec<u64>> = (0..of).map(|part| uniform(rows, values, seed + 1_000 * part)).collect();
    (0..rows).map(|at| parts.iter().map(|part| part[at]).sum()).collect()
}

/// Long hexadecimal numbers that follow from the values.
fn hexadecimal(values: impl IntoIterator<Item = u64>, salt: u64) -> Vec<String> {
    let part = |value: u64, turn: u32| {
        (value ^ salt << 40).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(turn)
    };
    values.into_iter().map(|value| format!("0x{:016x}{:016x}", part(value, 7), part(value, 31))).collect()
}

/// All exports.
pub(crate) fn cases() -> Vec<Case> {
    [
        advertising::cases(),
        web::cases(),
        orders::cases(),
        goods::cases(),
        finance::cases(),
        sensors::cases(),
        tills::cases(),
        catalogues::cases(),
        transport::cases(),
        people::cases(),
        streams::cases(),
        systems::cases(),
        networks::cases(),
        institutions::cases(),
        registers::cases(),
        science::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
