//! Names and limits of column types.

use super::*;

#[test]
fn every_type_parses_from_what_it_prints_in_any_case() {
    for column_type in ColumnType::ALL.into_iter().chain([ColumnType::ObjectId]) {
        assert_eq!(column_type.to_string().parse(), Ok(column_type));
        assert_eq!(column_type.to_string().to_uppercase().parse(), Ok(column_type));
    }
}

#[test]
fn decimals_are_checked_at_the_ends_of_their_limits() {
    assert_eq!("Decimal(35,35)".parse(), Ok(ColumnType::Decimal { precision: 35, scale: 35 }));
    assert_eq!("decimal( 1 , 0 )".parse(), Ok(ColumnType::Decimal { precision: 1, scale: 0 }));
    for text in ["Decimal(36,0)", "Decimal(0,0)", "Decimal(5,6)"] {
        assert!(matches!(text.parse::<ColumnType>(), Err(ColumnTypeError::Decimal { .. })), "{text}");
    }
    for text in ["Decimal(5)", "Decimal(a,b)", "Decimal(5,2", "Decimals"] {
        assert!(matches!(text.parse::<ColumnType>(), Err(ColumnTypeError::Unknown { .. })), "{text}");
    }
}

#[test]
fn the_ends_of_time_are_those_of_ydb() {
    assert_eq!(ColumnType::Date.value_range(), Some(ValueRange { min: 0, max: 49_672 }));
    let timestamp64 = ColumnType::Timestamp64.value_range().unwrap();
    assert_eq!(timestamp64, ValueRange { min: -4_611_669_897_600_000_000, max: 4_611_669_811_199_999_999 });
}

#[test]
fn key_types_are_those_of_the_ydb_documentation() {
    let keys: Vec<String> =
        ColumnType::ALL.into_iter().filter(|t| t.is_key_type()).map(|t| t.to_string()).collect();
    assert_eq!(
        keys.join(" "),
        "Int32 Int64 Uint8 Uint16 Uint32 Uint64 Utf8 String Date Datetime Timestamp Datetime64 Timestamp64"
    );
}
