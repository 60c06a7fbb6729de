//! Casts of batches to the types of a table, and rows that are rejected.

use arrow::array::{
    Date32Array, Float64Array, Int64Array, StringArray, StringViewArray, TimestampMicrosecondArray,
    TimestampMillisecondArray, TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
};

use arrow::datatypes::TimestampMicrosecondType;

use super::*;
use evenkeel_model::table::{PlacementFunction, TableDefinition};
use evenkeel_model::units::PartitionCount;

fn spec(columns: Vec<Column>) -> Arc<TableSpec> {
    let primary_key = vec![columns[0].name.clone()];
    let definition = TableDefinition {
        name: "t".into(),
        columns,
        primary_key,
        partition_key: vec![],
        partitions: PartitionCount::new(2).unwrap(),
        placement: PlacementFunction::Ydb,
        ttl: None,
    };
    Arc::new(TableSpec::new(definition).unwrap())
}

fn key_and(column_type: ColumnType) -> Arc<TableSpec> {
    spec(vec![Column::required("k", ColumnType::Int64), Column::nullable("v", column_type)])
}

fn conform(spec: &Arc<TableSpec>, columns: Vec<(&str, ArrayRef)>) -> Result<Conformed, SourceError> {
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true))).unwrap();
    Conform::new("file", spec, &InputOptions::default()).conform((batch, 1).into())
}

fn keys(rows: usize) -> (&'static str, ArrayRef) {
    ("k", Arc::new(Int64Array::from_iter_values(0..rows as i64)))
}

fn reasons(conformed: &Conformed) -> Vec<String> {
    conformed.rejects.iter().map(ToString::to_string).collect()
}

#[test]
fn values_that_fit_are_cast_and_others_are_rejected_with_place_and_reason() {
    let cases: Vec<(ColumnType, ArrayRef, &str)> = vec![
        (ColumnType::Uint8, Arc::new(Int64Array::from(vec![7, 256])), "'256' is outside Uint8"),
        (
            ColumnType::Int64,
            Arc::new(UInt64Array::from(vec![7, u64::MAX])),
            "'18446744073709551615' is outside Int64",
        ),
        (
            ColumnType::Int32,
            Arc::new(Float64Array::from(vec![7.0, 7.5])),
            "'7.5' would lose precision as Int32",
        ),
        (
            ColumnType::Float,
            Arc::new(Float64Array::from(vec![0.5, 0.1])),
            "'0.1' would lose precision as Float",
        ),
        (
            ColumnType::Double,
            Arc::new(Int64Array::from(vec![1 << 53, (1 << 53) + 1])),
            "'9007199254740993' would lose precision as Double",
        ),
        (
            ColumnType::Timestamp,
            Arc::new(TimestampNanosecondArray::from(vec![1_000, 1_001])),
            "'1970-01-01T00:00:00.000001001' would lose precision as Timestamp",
        ),
        (
            ColumnType::Timestamp,
            Arc::new(TimestampMicrosecondArray::from(vec![0, -1])),
            "'1969-12-31T23:59:59.999999' is outside Timestamp (1970 to 2105); Timestamp64 holds it",
        ),
        (
            ColumnType::Datetime,
            Arc::new(TimestampMillisecondArray::from(vec![1000, 1001])),
            "'1970-01-01T00:00:01.001' would lose precision as Datetime",
        ),
        (
            ColumnType::Date,
            Arc::new(Date32Array::from(vec![49_672, 49_673])),
            "'2106-01-01' is outside Date (1970 to 2105); Date32 holds it",
        ),
        (
            ColumnType::Uint64,
            Arc::new(StringViewArray::from(vec!["7", "x"])),
            "'x' is not of type Uint64 (0 to 2^64 - 1)",
        ),
        (
            ColumnType::Timestamp,
            Arc::new(StringArray::from(vec!["2026-01-31 10:00", "soon"])),
            "'soon' is not a point in time such as 2026-01-31T10:00:00Z (create and ingest read other spellings with --timestamp-format)",
        ),
    ];
    for (column_type, array, reason) in cases {
        let conformed = conform(&key_and(column_type), vec![keys(2), ("v", array)]).unwrap();
        assert_eq!(conformed.batch.num_rows(), 1, "{column_type}");
        assert_eq!(reasons(&conformed), [format!("file, row 2, column 'v': {reason}")]);
    }
}

#[test]
fn an_instant_is_the_same_in_every_unit_and_zone() {
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(TimestampSecondArray::from(vec![1_357_034_400]).with_timezone("America/New_York")),
        Arc::new(TimestampNanosecondArray::from(vec![1_357_034_400_000_000_000])),
    ];
    for array in arrays {
        let conformed = conform(&key_and(ColumnType::Timestamp), vec![keys(1), ("v", array)]).unwrap();
        let values = conformed.batch.column(1).as_primitive::<TimestampMicrosecondType>();
        assert_eq!(values.value(0), 1_357_034_400_000_000);
    }
}

#[test]
fn integers_are_times_only_with_a_unit() {
    let spec = key_and(ColumnType::Timestamp);
    let numbers = || vec![keys(1), ("v", Arc::new(Int64Array::from(vec![1_357_034_400])) as ArrayRef)];
    assert!(matches!(conform(&spec, numbers()), Err(SourceError::ColumnType { .. })));
    let text = TextFormat { timestamps: "unix-s".parse().unwrap(), ..TextFormat::default() };
    let options = InputOptions { text, ..InputOptions::default() };
    let batch = RecordBatch::try_from_iter(numbers()).unwrap();
    let conformed = Conform::new("file", &spec, &options).conform((batch, 1).into()).unwrap();
    assert_eq!(
        conformed.batch.column(1).as_primitive::<TimestampMicrosecondType>().value(0),
        1_357_034_400_000_000
    );
}

#[test]
fn a_number_is_no_time_and_a_time_no_number() {
    let micros = || Arc::new(TimestampMicrosecondArray::from(vec![0])) as ArrayRef;
    let cases: Vec<(ColumnType, ArrayRef)> = vec![
        (ColumnType::Timestamp, Arc::new(Float64Array::from(vec![1.7e9]))),
        (ColumnType::Date, Arc::new(Int64Array::from(vec![1]))),
        (ColumnType::Interval, Arc::new(Int64Array::from(vec![1]))),
        (ColumnType::Int64, micros()),
        (ColumnType::Double, micros()),
        (ColumnType::Int64, Arc::new(arrow::array::DurationSecondArray::from(vec![1]))),
        (ColumnType::Bool, Arc::new(Int64Array::from(vec![1]))),
    ];
    for (column_type, array) in cases {
        let refused = conform(&key_and(column_type), vec![keys(1), ("v", array)]);
        assert!(matches!(refused, Err(SourceError::ColumnType { .. })), "{column_type}");
    }
}

#[test]
fn a_column_of_nulls_alone_fits_every_type() {
    for column_type in [ColumnType::Utf8, ColumnType::Timestamp, ColumnType::Uuid] {
        let nulls: ArrayRef = Arc::new(arrow::array::NullArray::new(2));
        let conformed = conform(&key_and(column_type), vec![keys(2), ("v", nulls)]).unwrap();
        assert_eq!(conformed.batch.column(1).null_count(), 2);
    }
}

#[test]
fn columns_are_matched_by_name_and_missing_ones_are_null_or_refused() {
    let table = spec(vec![
        Column::required("k", ColumnType::Int64),
        Column::required("must", ColumnType::Utf8),
        Column::nullable("may", ColumnType::Utf8),
    ]);
    let text = || Arc::new(StringArray::from(vec!["x"])) as ArrayRef;
    let conformed = conform(&table, vec![("other", text()), ("must", text()), keys(1)]).unwrap();
    assert_eq!(conformed.batch.schema(), *table.schema());
    assert!(conformed.batch.column(2).is_null(0));
    let error = conform(&table, vec![("Must", text()), keys(1)]).unwrap_err().to_string();
    assert!(error.contains("has no column 'must'") && error.contains("case-sensitive"), "{error}");
    assert!(matches!(conform(&table, vec![("a", text())]), Err(SourceError::NoCommonColumn { .. })));
}

#[test]
fn nulls_where_there_are_none_are_rejected_and_the_rest_lands() {
    let keys: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let conformed = conform(&key_and(ColumnType::Utf8), vec![("k", keys)]).unwrap();
    assert_eq!(conformed.batch.num_rows(), 2);
    assert_eq!(reasons(&conformed), ["file, row 2, column 'k': is NULL, the primary-key column is NOT NULL"]);
}

#[test]
fn a_key_of_more_than_one_megabyte_is_rejected() {
    let table = spec(vec![Column::required("k", ColumnType::Utf8)]);
    let long = "x".repeat(MAX_KEY_BYTES);
    let array: ArrayRef = Arc::new(StringArray::from(vec![long.clone(), format!("{long}y")]));
    let conformed = conform(&table, vec![("k", array)]).unwrap();
    assert_eq!(conformed.batch.num_rows(), 1);
    assert!(
        conformed.rejects[0].reason.to_string().contains("1048577 bytes"),
        "{}",
        conformed.rejects[0].reason
    );
}
