//! Types and values of parameters, as a client and a query give them.

use arrow::datatypes::Schema;
use bytes::Bytes;
use datafusion::common::ScalarValue;

use super::*;

/// A query whose parameters have these types, or are cast to these.
fn described(parameters: &[(&str, Option<DataType>)], casts: &[(&str, DataType)]) -> QueryDescription {
    let parameters = parameters.iter().map(|(name, data_type)| ((*name).to_owned(), data_type.clone()));
    let casts = casts.iter().map(|(name, data_type)| ((*name).to_owned(), data_type.clone()));
    let (parameters, casts) = (parameters.collect(), casts.collect());
    QueryDescription { parameters, casts, ..nothing_known(Arc::new(Schema::empty())) }
}

fn text(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

fn binary(number: i64) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(&number.to_be_bytes()))
}

#[test]
fn the_type_of_the_client_goes_before_that_of_the_query_and_that_before_a_cast() {
    let query = described(
        &[("1", Some(DataType::Int64)), ("2", None), ("3", None)],
        &[("1", DataType::Utf8), ("2", DataType::Date32)],
    );
    for (count, declared, expected) in [
        (3, vec![], vec![Type::INT8, Type::DATE, Type::TEXT]),
        (3, vec![Some(Type::INT4)], vec![Type::INT4, Type::DATE, Type::TEXT]),
        (1, vec![None, Some(Type::UNKNOWN), Some(Type::BOOL)], vec![Type::INT8, Type::DATE, Type::BOOL]),
        (4, vec![], vec![Type::INT8, Type::DATE, Type::TEXT, Type::TEXT]),
        (0, vec![], vec![]),
    ] {
        let expected: Vec<u32> = expected.iter().map(Type::oid).collect();
        assert_eq!(parameter_types(count, &declared, Some(&query)), expected, "{count} {declared:?}");
    }
    let unknown = parameter_types(2, &[Some(Type::INT4)], None);
    assert_eq!(unknown, [Type::INT4.oid(), Type::TEXT.oid()]);
}

#[test]
fn values_are_read_in_the_format_and_the_type_of_each() {
    let query = described(&[("1", Some(DataType::Int64)), ("2", Some(DataType::Int64))], &[]);
    let read = |given: &[Option<Bytes>], formats: &[i16], declared: &[Option<Type>]| {
        read_parameters(2, given, formats, declared, Some(&query)).unwrap()
    };
    let as_text = |text: &str| Some(Parameter::Text(text.to_owned()));
    let number = |number: Option<i64>| Some(Parameter::Value(ScalarValue::Int64(number)));
    assert_eq!(read(&[text("7"), text("x")], &[], &[]), [as_text("7"), as_text("x")]);
    assert_eq!(read(&[text("7"), binary(8)], &[0, 1], &[]), [as_text("7"), number(Some(8))]);
    // One format is that of all.
    assert_eq!(read(&[binary(7), binary(8)], &[1], &[]), [number(Some(7)), number(Some(8))]);
    assert_eq!(read(&[None, None], &[1], &[]), [number(None), number(None)]);
    let declared = [Some(Type::UNKNOWN), Some(Type::INT4)];
    assert_eq!(read(&[text("7"), text("8")], &[], &declared), [as_text("7"), number(Some(8))]);
}

#[test]
fn binary_values_have_the_type_that_they_are_cast_to_if_the_query_needs_none() {
    let query = described(&[("1", None)], &[("1", DataType::Int64)]);
    let read = |given: Option<Bytes>, formats: &[i16], declared: &[Option<Type>]| {
        read_parameters(1, &[given], formats, declared, Some(&query)).unwrap().remove(0)
    };
    let value = |value: ScalarValue| Some(Parameter::Value(value));
    assert_eq!(read(binary(7), &[1], &[]), value(ScalarValue::Int64(Some(7))));
    assert_eq!(read(binary(7), &[1], &[Some(Type::UNKNOWN)]), value(ScalarValue::Int64(Some(7))));
    let short = Some(Bytes::from_static(&[0, 7]));
    assert_eq!(read(short, &[1], &[Some(Type::INT2)]), value(ScalarValue::Int16(Some(7))));
    assert_eq!(read(text("7"), &[], &[]), value(ScalarValue::Utf8(Some("7".to_owned()))));
}

#[test]
fn values_that_the_query_does_not_need_are_not_read() {
    let query = described(&[("2", Some(DataType::Int64))], &[]);
    let garbage = Some(Bytes::from_static(&[0xff]));
    let read = read_parameters(2, &[garbage, binary(1)], &[7, 1], &[], Some(&query)).unwrap();
    assert_eq!(read, [None, Some(Parameter::Value(ScalarValue::Int64(Some(1))))]);
    assert_eq!(read_parameters(1, &[binary(1)], &[], &[], None).unwrap(), [None::<Parameter>]);
    assert!(read_parameters(0, &[], &[], &[], None).unwrap().is_empty());
}

#[test]
fn too_few_values_other_formats_and_bytes_that_are_no_value_are_refused() {
    let query = described(&[("1", Some(DataType::Int64)), ("2", Some(DataType::Int64))], &[]);
    let refused = |given: &[Option<Bytes>], formats: &[i16]| {
        read_parameters(2, given, formats, &[], Some(&query)).unwrap_err().code
    };
    assert_eq!(refused(&[text("7")], &[]), SqlState::PROTOCOL_VIOLATION);
    assert_eq!(refused(&[text("7"), text("8"), text("9")], &[]), SqlState::PROTOCOL_VIOLATION);
    assert_eq!(refused(&[text("7"), text("8")], &[0, 0, 0]), SqlState::PROTOCOL_VIOLATION);
    assert_eq!(refused(&[text("7"), text("8")], &[2]), SqlState::PROTOCOL_VIOLATION);
    assert_eq!(refused(&[binary(7), text("8")], &[1]), SqlState::INVALID_BINARY);
}
