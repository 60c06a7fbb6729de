//! Values in text, by column type: what is read and what is refused.

use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::array_value_to_string;

use super::*;

/// Returns the values as text, or the first fault.
fn read(column_type: ColumnType, cells: &[&str]) -> Result<Vec<String>, String> {
    let text = BinaryArray::from_iter_values(cells.iter().map(|c| c.as_bytes()));
    let column = parse_text_column(&text, column_type, &TextFormat::default());
    assert_eq!(column.values.len(), cells.len());
    assert_eq!(column.values.data_type(), &column_type.arrow_type());
    match column.faults.first() {
        Some(fault) => Err(fault.fault.to_string()),
        None => Ok((0..cells.len()).map(|i| array_value_to_string(&column.values, i).unwrap()).collect()),
    }
}

#[test]
fn integers_are_taken_to_the_ends_of_their_width_and_not_beyond() {
    assert_eq!(read(ColumnType::Uint8, &["0", " 255 ", "7.0", "+3"]).unwrap(), ["0", "255", "7", "3"]);
    assert_eq!(read(ColumnType::Int8, &["-128", "127"]).unwrap(), ["-128", "127"]);
    assert_eq!(read(ColumnType::Uint64, &["18446744073709551615"]).unwrap(), ["18446744073709551615"]);
    for text in ["256", "-1", "1.5", "1e2", "", "x", "NaN", ".0", "5."] {
        let error = read(ColumnType::Uint8, &[text]).unwrap_err();
        assert_eq!(error, format!("'{text}' is not of type Uint8 (0 to 255)"));
    }
}

#[test]
fn decimals_are_taken_without_loss_or_not_at_all() {
    let price = ColumnType::Decimal { precision: 5, scale: 2 };
    assert_eq!(read(price, &["1", "-1.5", "999.99", "1.500"]).unwrap(), ["1.00", "-1.50", "999.99", "1.50"]);
    assert!(read(price, &["1.005"]).is_err());
    assert!(read(price, &["1000"]).is_err());
    assert!(read(price, &["abc"]).is_err());
    for digits in [39, 255, 256, 258, 270] {
        assert!(read(price, &[&"8".repeat(digits)]).is_err(), "{digits} digits");
    }
    let zeros = "0".repeat(300);
    assert_eq!(read(price, &[&format!("{zeros}7.5{zeros}")]).unwrap(), ["7.50"]);
}

#[test]
fn numbers_with_a_decimal_comma_are_read_where_that_is_said() {
    let german = TextFormat { decimal_comma: true, ..TextFormat::default() };
    let text = BinaryArray::from_iter_values(["1.234,5", "-7", "0,25"].map(str::as_bytes));
    let column = parse_text_column(&text, ColumnType::Double, &german);
    assert_eq!(column.values.as_primitive::<Float64Type>().values().to_vec(), [1234.5, -7.0, 0.25]);
    let column = parse_text_column(&text, ColumnType::Decimal { precision: 6, scale: 2 }, &german);
    assert!(column.faults.is_empty(), "{:?}", column.faults);
    let wrong = BinaryArray::from_iter_values(["31.01.2026", "1,2,3", "1.5", "1,5.0"].map(str::as_bytes));
    assert_eq!(parse_text_column(&wrong, ColumnType::Double, &german).faults.len(), 4);
    assert_eq!(parse_text_column(&wrong, ColumnType::Int64, &german).faults.len(), 4);
    assert!(!parse_text_column(&text, ColumnType::Double, &TextFormat::default()).faults.is_empty());
}

#[test]
fn wide_times_of_ydb_dumps_are_whole_numbers_and_others_are_spelled() {
    let dump = TextFormat { timestamps: TimestampFormat::YdbDump, ..TextFormat::default() };
    let number = |column_type: ColumnType, cell: &str| {
        let column = parse_text_column(&BinaryArray::from_iter_values([cell.as_bytes()]), column_type, &dump);
        assert!(column.faults.len() <= 1);
        let numbers = cast(&column.values, &DataType::Int64).unwrap();
        let number = numbers.as_primitive::<Int64Type>();
        number.is_valid(0).then(|| number.value(0))
    };
    for (column_type, cell, expected) in [
        (ColumnType::Date, "2105-12-31T00:00:00.000000Z", Some(49_672)),
        (ColumnType::Date, "2105-12-31", Some(49_672)),
        (ColumnType::Date, "2105-12-31T00:00:01.000000Z", None),
        (ColumnType::Datetime, "2038-01-19T03:14:07.000000Z", Some(2_147_483_647_000)),
        (ColumnType::Timestamp, "2019-03-11T16:30:44.314382Z", Some(1_552_321_844_314_382)),
        (ColumnType::Date32, "-12345", Some(-12_345)),
        (ColumnType::Date32, "1970-01-01", None),
        (ColumnType::Datetime64, "-2", Some(-2_000)),
        (ColumnType::Datetime64, "9223372036854775807", None),
        (ColumnType::Timestamp64, "-12345678", Some(-12_345_678)),
        (ColumnType::Interval, "-1000000", Some(-1_000_000)),
    ] {
        assert_eq!(number(column_type, cell), expected, "{column_type} {cell}");
    }
}

#[test]
fn floats_bools_and_uuids_are_read() {
    assert_eq!(read(ColumnType::Double, &["1.5", "-2e3", "inf"]).unwrap(), ["1.5", "-2000.0", "inf"]);
    assert_eq!(
        read(ColumnType::Bool, &["TRUE", "f", "1", "no"]).unwrap(),
        ["true", "false", "true", "false"]
    );
    for text in ["1e999", "-1e999"] {
        assert!(read(ColumnType::Double, &[text]).is_err(), "{text}");
    }
    assert!(read(ColumnType::Float, &["1e39"]).is_err());
    assert_eq!(read(ColumnType::Json, &["{\"a\": [1]}", "null"]).unwrap().len(), 2);
    assert_eq!(read(ColumnType::Json, &["{"]).unwrap_err(), "'{' is not JSON");
    assert!(read(ColumnType::Bool, &["maybe"]).is_err());
    assert_eq!(
        read(ColumnType::Uuid, &["F79C3E09-677c-4bbd-a479-3f349cb785e7"]).unwrap(),
        ["f79c3e09677c4bbda4793f349cb785e7"]
    );
}

#[test]
fn text_that_is_not_utf8_is_a_fault_of_its_row_alone() {
    let text = BinaryArray::from_iter_values([b"ok".as_slice(), b"\xff", b"fine"]);
    let column = parse_text_column(&text, ColumnType::Utf8, &TextFormat::default());
    assert_eq!(column.faults.len(), 1);
    assert_eq!(column.faults[0].row, 1);
    assert_eq!(column.values.as_string::<i32>().value(2), "fine");
    assert!(column.values.is_null(1));
}

#[test]
fn a_fault_leaves_a_null_and_keeps_the_other_rows() {
    let text = BinaryArray::from_iter([Some(b"1".as_slice()), None, Some(b"x"), Some(b"4")]);
    let column = parse_text_column(&text, ColumnType::Int32, &TextFormat::default());
    let values: Vec<_> = column.values.as_primitive::<Int32Type>().iter().collect();
    assert_eq!(values, [Some(1), None, None, Some(4)]);
    assert_eq!(column.faults.len(), 1);
    assert_eq!(column.faults[0].row, 2);
}
