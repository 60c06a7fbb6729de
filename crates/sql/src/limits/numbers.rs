//! Numbers that would change when they are read.

use datafusion::sql::sqlparser::tokenizer::Location;

use crate::limits::error::{DOUBLE_DIGITS, MAX_PRECISION, SqlLimitError};

/// Refuses the precision of a decimal that no decimal has.
pub(super) fn check_precision(number: &str, location: Location) -> Result<(), SqlLimitError> {
    let Location { line, column } = location;
    if number.parse::<u64>().is_ok_and(|digits| digits > MAX_PRECISION) {
        return Err(SqlLimitError::Precision { number: number.to_owned(), line, column });
    }
    Ok(())
}

/// Refuses a number that would be read as an infinite Double, and one that would lose digits as a
/// Double: a Decimal that has the number would not equal it.
pub(super) fn check_number(number: &str, location: Location) -> Result<(), SqlLimitError> {
    let Location { line, column } = location;
    let number = number.to_owned();
    if number.parse::<f64>().is_ok_and(f64::is_infinite) {
        return Err(SqlLimitError::Double { number, line, column });
    }
    let is_whole = number.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole && number.parse::<u64>().is_err() {
        return Err(SqlLimitError::Integer { number, line, column });
    }
    if let Some((whole, fraction)) = number.split_once('.')
        && !fraction.contains(['e', 'E'])
    {
        let digits = format!("{whole}{}", fraction.trim_end_matches('0'));
        if digits.trim_start_matches('0').len() > DOUBLE_DIGITS {
            let scale = fraction.len();
            let precision = whole.trim_start_matches('0').len() + scale;
            return Err(SqlLimitError::Digits { number, precision, scale, line, column });
        }
    }
    Ok(())
}
