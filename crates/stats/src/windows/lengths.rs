//! Usual lengths of windows, in microseconds.

/// Lengths of windows while reading. Each divides the next by at most 5, so that from more than
/// 1000 windows at least 200 are left. In microseconds, from 1 us to about 22 years.
pub(super) const LENGTHS: [i64; 37] = {
    const S: i64 = 1_000_000;
    const M: i64 = 60 * S;
    const H: i64 = 60 * M;
    const D: i64 = 24 * H;
    [
        1,
        2,
        10,
        20,
        100,
        200,
        1_000,
        2_000,
        10_000,
        20_000,
        100_000,
        200_000,
        S,
        2 * S,
        10 * S,
        30 * S,
        M,
        2 * M,
        10 * M,
        30 * M,
        H,
        2 * H,
        4 * H,
        12 * H,
        D,
        2 * D,
        4 * D,
        8 * D,
        16 * D,
        32 * D,
        64 * D,
        128 * D,
        256 * D,
        512 * D,
        1024 * D,
        2048 * D,
        8192 * D,
    ]
};

/// Other common lengths of time, in microseconds.
pub(super) const USUAL: [i64; 12] = {
    const S: i64 = 1_000_000;
    [
        5 * S,
        15 * S,
        20 * S,
        300 * S,
        900 * S,
        1200 * S,
        10_800 * S,
        21_600 * S,
        28_800 * S,
        604_800 * S,
        1_209_600 * S,
        50_000,
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_a_multiple_of_the_one_before_by_at_most_five() {
        for pair in LENGTHS.windows(2) {
            assert!(pair[1] % pair[0] == 0 && pair[1] / pair[0] <= 5, "{pair:?}");
        }
    }
}
