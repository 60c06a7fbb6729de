//! Numbers in options, and the ranges that they must be in.

/// Reads a number above 0; digits may be grouped with underscores.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    let number =
        text.replace('_', "").parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    number.ok_or_else(|| "write a number above 0".to_owned())
}

/// Reads a share, which is a number from 0 on.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share >= 0.0 && share.is_finite());
    share.ok_or_else(|| "write a share such as 0.1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_above_0_are_read_and_others_refused() {
        assert_eq!(positive("2_500.5"), Ok(2500.5));
        assert_eq!(positive("1e3"), Ok(1000.0));
        for wrong in ["0", "-1", "inf", "nan", "", "_", "2 500"] {
            assert!(positive(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn shares_may_be_0_but_not_negative() {
        assert_eq!(share("0"), Ok(0.0));
        assert_eq!(share("0.25"), Ok(0.25));
        for wrong in ["-0.1", "inf", "nan", "", "half"] {
            assert!(share(wrong).is_err(), "{wrong:?}");
        }
    }
}
