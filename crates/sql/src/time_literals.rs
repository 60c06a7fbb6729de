//! Points in time as SQL literals.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{DataType, Expr, TypedString, Value, VisitorMut};

use crate::walk::walk_mut;

/// Decimal places of the seconds in a table's points in time.
const MICROSECOND_PLACES: u64 = 6;

/// Reads literals such as `TIMESTAMP '3000-01-01'` and `'3000-01-01'::timestamp` as microseconds,
/// the precision of points in time in a table and of TIMESTAMP in the SQL standard.
///
/// DataFusion reads them as nanoseconds, which hold only the years 1677 to 2262: comparing a
/// Timestamp64 column with any other year would fail. A literal with more than six decimal places
/// stays in nanoseconds, so that no digit is lost, and so does one with a declared precision.
pub fn read_times_in_microseconds(statement: &mut Statement) {
    if let Statement::Statement(statement) = statement {
        let _ = walk_mut(statement.as_mut(), &mut TimeLiterals);
    }
}

struct TimeLiterals;

impl VisitorMut for TimeLiterals {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::TypedString(TypedString { data_type, value, .. }) if fits(&value.value) => {
                declare(data_type)
            }
            Expr::Cast { expr, data_type, .. } => {
                if let Expr::Value(value) = expr.as_ref()
                    && fits(&value.value)
                {
                    declare(data_type);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn declare(data_type: &mut DataType) {
    match data_type {
        DataType::Timestamp(precision @ None, _) => *precision = Some(MICROSECOND_PLACES),
        DataType::Datetime(precision @ None) => *precision = Some(MICROSECOND_PLACES),
        _ => {}
    }
}

/// Whether a text has at most six decimal places.
fn fits(value: &Value) -> bool {
    let (Value::SingleQuotedString(text) | Value::DoubleQuotedString(text)) = value else { return false };
    let places = text.split_once('.').map_or("", |(_, places)| places);
    places.bytes().take_while(u8::is_ascii_digit).count() as u64 <= MICROSECOND_PLACES
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn read(sql: &str) -> String {
        let mut statement = DFParser::parse_sql(sql).unwrap().pop_front().unwrap();
        read_times_in_microseconds(&mut statement);
        statement.to_string()
    }

    #[test]
    fn literals_have_microseconds_unless_they_say_otherwise() {
        for (sql, expected) in [
            ("SELECT TIMESTAMP '3000-01-01 00:00:00'", "SELECT TIMESTAMP(6) '3000-01-01 00:00:00'"),
            ("SELECT '1500-01-01'::timestamp", "SELECT '1500-01-01'::TIMESTAMP(6)"),
            (
                "SELECT 1 FROM t WHERE a IN (SELECT CAST('3000-01-01 00:00:00.123456' AS TIMESTAMP))",
                "SELECT 1 FROM t WHERE a IN (SELECT CAST('3000-01-01 00:00:00.123456' AS TIMESTAMP(6)))",
            ),
        ] {
            assert_eq!(read(sql), expected);
        }
        for unchanged in [
            "SELECT TIMESTAMP '2000-01-01 00:00:00.123456789'",
            "SELECT TIMESTAMP(3) '2000-01-01'",
            "SELECT CAST(a AS TIMESTAMP) FROM t",
            "SELECT DATE '3000-01-01', 'TIMESTAMP'",
        ] {
            assert_eq!(read(unchanged), unchanged);
        }
    }
}
