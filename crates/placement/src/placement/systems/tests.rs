//! Tests of every system against values that it published or printed.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, DictionaryArray, Int16Array, Int32Array, Int64Array, LargeStringArray,
    StringArray, StringViewArray, UInt64Array, new_empty_array, new_null_array,
};
use arrow::datatypes::Int32Type;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::placement::parse_key;

/// One line of a fixture.
struct Line {
    place: String,
    types: Vec<ColumnType>,
    key: Vec<ArrayRef>,
    hash: Option<String>,
    partitions: Vec<(u32, u32)>,
}

fn type_of(name: &str) -> ColumnType {
    match name {
        "float" => ColumnType::Float,
        other => other.parse().unwrap(),
    }
}

fn array_of(column_type: ColumnType, text: Option<&str>) -> ArrayRef {
    let Some(text) = text else { return new_null_array(&column_type.arrow_type(), 1) };
    if column_type == ColumnType::String {
        let digits = text.strip_prefix("0x").unwrap();
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
        let bytes: Vec<u8> = (0..digits.len()).step_by(2).map(byte).collect();
        return Arc::new(BinaryArray::from_iter_values([bytes]));
    }
    if text == "NULL" && column_type == ColumnType::Utf8 {
        return Arc::new(StringArray::from(vec![text]));
    }
    match column_type {
        ColumnType::Double => Arc::new(arrow::array::Float64Array::from(vec![text.parse::<f64>().unwrap()])),
        ColumnType::Float => Arc::new(arrow::array::Float32Array::from(vec![text.parse::<f32>().unwrap()])),
        _ => parse_key(&[column_type], &[text.to_owned()])
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .remove(0),
    }
}

fn lines(name: &str) -> Vec<Line> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/placements")
        .join(format!("{name}.tsv"));
    let text = std::fs::read_to_string(&path).unwrap();
    let line = |(number, line): (usize, &str)| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [types, key, hash, partitions] = fields.as_slice() else { panic!("{name}: {line}") };
        let types: Vec<ColumnType> = types.split(',').map(type_of).collect();
        let values: Vec<Option<String>> = serde_json::from_str(key).unwrap();
        Line {
            place: format!("{name}.tsv, line {}: {key}", number + 1),
            key: types.iter().zip(&values).map(|(t, value)| array_of(*t, value.as_deref())).collect(),
            types,
            hash: (*hash != "-").then(|| (*hash).to_owned()),
            partitions: partitions
                .split(',')
                .filter(|pair| *pair != "-")
                .map(|pair| {
                    let (count, partition) = pair.split_once(':').unwrap();
                    (count.parse().unwrap(), partition.parse().unwrap())
                })
                .collect(),
        }
    };
    text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')).map(line).collect()
}

fn hashes(system: &dyn System, types: &[ColumnType], key: &[ArrayRef]) -> Vec<u64> {
    let mut hashes = Vec::new();
    system.hash(&KeyColumns::read(system, types, key).unwrap(), &mut hashes);
    hashes
}

#[test]
fn systems_place_keys_as_they_themselves_do() {
    let mut checked = BTreeSet::new();
    for system in SYSTEMS {
        let about = system.about();
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("../../tests/fixtures/placements/{}.tsv", about.name));
        if !path.exists() {
            continue;
        }
        let mut wrong = Vec::new();
        let all = lines(about.name);
        for line in &all {
            let hash = hashes(*system, &line.types, &line.key)[0];
            let found = about.hash_type.text(hash);
            if line.hash.as_ref().is_some_and(|expected| *expected != found) {
                wrong.push(format!(
                    "{}: {found}, not {}",
                    line.place,
                    line.hash.as_deref().unwrap_or_default()
                ));
            }
            for (count, expected) in &line.partitions {
                let found = system.partition(hash, *count);
                if found != *expected {
                    wrong.push(format!("{}: {found} of {count}, not {expected}", line.place));
                }
            }
        }
        assert!(
            wrong.is_empty(),
            "{} of {}:\n{}",
            wrong.len(),
            all.len(),
            wrong.iter().take(12).cloned().collect::<Vec<_>>().join("\n")
        );
        assert!(!all.is_empty());
        checked.insert(about.name);
    }
    let mut unfounded: Vec<String> = Vec::new();
    // A key type counts as verified only if a value of it was available.
    for system in SYSTEMS.iter().filter(|system| system.about().status == Status::Verified) {
        let name = system.about().name;
        assert!(checked.contains(name), "{name}");
        let types: BTreeSet<String> =
            lines(name).iter().flat_map(|line| &line.types).map(ToString::to_string).collect();
        for column_type in [
            ColumnType::Bool,
            ColumnType::Int32,
            ColumnType::Int64,
            ColumnType::Utf8,
            ColumnType::String,
            ColumnType::Uuid,
            ColumnType::Double,
            ColumnType::Float,
            ColumnType::Date32,
            ColumnType::Timestamp64,
        ] {
            if takes(*system, &[column_type]).is_ok()
                && status_of(*system, &[column_type]) == Status::Verified
            {
                // Integers of both widths share one code path, as do text and bytes.
                let one_way = [["Int32", "Int64"], ["Utf8", "String"]];
                let alike = one_way.iter().any(|pair| {
                    pair.contains(&column_type.to_string().as_str())
                        && pair.iter().any(|name| types.contains(*name))
                });
                if !types.contains(&column_type.to_string()) && !alike {
                    unfounded.push(format!("{name}: {column_type}"));
                }
            }
        }
    }
    assert!(unfounded.is_empty(), "{unfounded:?}");
}

/// Number of partitions that receive at least one of the keys from 0 on.
fn filled(system: &dyn System, column_type: ColumnType, keys: i64, partitions: u32) -> usize {
    let array: ArrayRef = match column_type {
        ColumnType::Int16 => Arc::new(Int16Array::from_iter_values((0..keys).map(|key| key as i16))),
        ColumnType::Int32 => Arc::new(Int32Array::from_iter_values((0..keys).map(|key| key as i32))),
        _ => Arc::new(Int64Array::from_iter_values(0..keys)),
    };
    let hashes = hashes(system, &[column_type], &[array]);
    hashes.iter().map(|hash| system.partition(*hash, partitions)).collect::<BTreeSet<_>>().len()
}

#[test]
fn doris_leaves_buckets_empty_as_issue_66231_says() {
    let doris = system("doris").unwrap();
    assert_eq!(filled(doris, ColumnType::Int16, 512, 512), 256);
    assert_eq!(filled(doris, ColumnType::Int64, 512, 512), 128);
    assert_eq!(filled(doris, ColumnType::Int64, 64, 64), 16);
    // HashDistributionPrunerTest: text of one length, in 300 buckets.
    let texts = |values: &[&str]| Arc::new(StringArray::from(values.to_vec())) as ArrayRef;
    let rows: Vec<[&str; 3]> = ["1323", "2528", "9610", "3893", "6121"]
        .iter()
        .flat_map(|shop| {
            ["9719", "11163"].iter().flat_map(move |item| ["1", "3"].map(|kind| [*shop, *item, kind]))
        })
        .collect();
    let column = |at: usize| texts(&rows.iter().map(|row| row[at]).collect::<Vec<_>>());
    let (date, last) = (texts(&vec!["2019-08-22"; rows.len()]), texts(&vec!["2"; rows.len()]));
    let columns = [date, column(0), column(1), column(2), last];
    let hashes = hashes(doris, &[ColumnType::Utf8; 5], &columns);
    assert_eq!(hashes.iter().map(|hash| doris.partition(*hash, 300)).collect::<BTreeSet<_>>().len(), 20);
    // DppUtilsTest of StarRocks, which hashes these types like Doris.
    let one = |column_type, array: ArrayRef| self::hashes(doris, &[column_type], &[array])[0];
    assert_eq!(one(ColumnType::Int64, Arc::new(Int64Array::from(vec![1]))), 2_844_319_735);
    assert_eq!(one(ColumnType::Int32, new_null_array(&arrow::datatypes::DataType::Int32, 1)), 558_161_692);
}

#[test]
fn fingerprints_of_spanner_are_those_of_its_reference() {
    let spanner = system("spanner-shard").unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["foo", "bar", ""]));
    let found = hashes(spanner, &[ColumnType::Utf8], &[texts]);
    let expected =
        ["foo", "bar", ""].map(|text| crate::transform::farm_fingerprint(text.as_bytes()).cast_unsigned());
    assert_eq!(found, expected);
    // Same as the SQL functions, also over several columns.
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(5), Some(-7)]));
    let bytes: ArrayRef = Arc::new(BinaryArray::from_iter_values([b"\xff\x00".as_slice(), b"ab"]));
    let columns = [ids, bytes];
    let fingerprints = crate::transform::fingerprints(&columns).unwrap();
    let actual = hashes(spanner, &[ColumnType::Int64, ColumnType::String], &columns);
    assert_eq!(actual, fingerprints.values().iter().map(|hash| hash.cast_unsigned()).collect::<Vec<_>>());
}

#[test]
fn chunks_of_mongodb_begin_where_its_tests_say() {
    let mongodb = system("mongodb").unwrap();
    let boundaries = |count: u32| -> Vec<i64> {
        // Found by bisection, since no other code computes them.
        (1..count)
            .map(|chunk| {
                let (mut below, mut from) = (i128::from(i64::MIN), i128::from(i64::MAX));
                while below < from {
                    let middle = (below + from).div_euclid(2);
                    match mongodb.partition((middle as i64).cast_unsigned(), count) < chunk {
                        true => below = middle + 1,
                        false => from = middle,
                    }
                }
                from as i64
            })
            .collect()
    };
    assert_eq!(boundaries(2), [0]);
    assert_eq!(boundaries(3), [-3_074_457_345_618_258_602, 3_074_457_345_618_258_602]);
    assert_eq!(boundaries(4), [-4_611_686_018_427_387_902, 0, 4_611_686_018_427_387_902]);
    assert_eq!(
        boundaries(6),
        [
            -6_148_914_691_236_517_204,
            -3_074_457_345_618_258_602,
            0,
            3_074_457_345_618_258_602,
            6_148_914_691_236_517_204
        ]
    );
}

#[test]
fn ranges_of_shards_and_tablets_are_those_that_are_documented() {
    let citus = system("citus").unwrap();
    // create_distributed_table with 32 shards: hashint4 of 0, 1, 2 and 123.
    let partitions = [-272_711_505i32, -1_905_060_026, 1_134_484_726, -205_084_363]
        .map(|hash| citus.partition(u64::from(hash.cast_unsigned()), 32));
    assert_eq!(partitions, [13, 1, 24, 14]);
    assert_eq!(citus.partition(u64::from(i32::MIN.cast_unsigned()), 3), 0);
    // The first of 32 shards in the documentation of pg_dist_shard ends with -2013265921.
    let partition_of = |hash: i32| citus.partition(u64::from(hash.cast_unsigned()), 32);
    assert_eq!((partition_of(-2_013_265_921), partition_of(-2_013_265_920)), (0, 1));
    assert_eq!(citus.partition(u64::from(i32::MAX.cast_unsigned()), 3), 2);
    let yugabyte = system("yugabyte").unwrap();
    let begins: Vec<u64> = (0..6u32)
        .map(|tablet| (0..65_536u64).find(|code| yugabyte.partition(*code, 6) == tablet).unwrap())
        .collect();
    assert_eq!(begins, [0, 0x2AAA, 0x5555, 0x8000, 0xAAAA, 0xD555]);
    // Tokens of nodes: i x (2^64 / N) - 2^63, each tested with its neighbours.
    let cassandra = system("cassandra").unwrap();
    let node_of = |token: i64, nodes| cassandra.partition(token.cast_unsigned(), nodes);
    assert_eq!(
        [node_of(i64::MIN, 4), node_of(i64::MIN + 1, 4), node_of(-(1 << 62), 4), node_of(-(1 << 62) + 1, 4)],
        [0, 1, 1, 2]
    );
    assert_eq!(
        [node_of(0, 4), node_of(1, 4), node_of(1 << 62, 4), node_of((1 << 62) + 1, 4), node_of(i64::MAX, 4)],
        [2, 3, 3, 0, 0]
    );
    assert_eq!(
        [
            node_of(i64::MIN, 3),
            node_of(-3_074_457_345_618_258_603, 3),
            node_of(-3_074_457_345_618_258_602, 3)
        ],
        [0, 1, 2]
    );
}

#[test]
fn keys_that_a_system_does_not_take_are_refused_with_the_reason() {
    let refused = |name: &str, types: &[ColumnType]| {
        let arrays: Vec<ArrayRef> = types.iter().map(|t| new_empty_array(&t.arrow_type())).collect();
        KeyColumns::read(system(name).unwrap(), types, &arrays).unwrap_err().to_string()
    };
    assert_eq!(
        refused("iceberg", &[ColumnType::Int32, ColumnType::Int32]),
        "iceberg hashes one column; the key has 2"
    );
    assert_eq!(
        refused("kudu", &[ColumnType::Double]),
        "kudu accepts no Double in a key: a key takes no such type"
    );
    let decimal = ColumnType::Decimal { precision: 22, scale: 9 };
    assert!(refused("spark", &[decimal]).contains("is not modelled"));
    // An unsigned number too large for any signed one.
    let large: ArrayRef = Arc::new(UInt64Array::from(vec![u64::MAX]));
    let error =
        KeyColumns::read(system("kudu").unwrap(), &[ColumnType::Uint64], &[large]).unwrap_err().to_string();
    assert!(error.contains("kudu has no unsigned integers"), "{error}");
}

proptest! {
    #[test]
    fn every_row_is_in_one_partition_whatever_holds_it(
        texts in proptest::collection::vec(proptest::option::of("[a-zäß0-9]{0,40}"), 1..30), numbers in proptest::collection::vec(any::<i64>(), 30),
        partitions in 1u32..3000,
    ) {
        let numbers = Int64Array::from(numbers[..texts.len()].to_vec());
        let number: ArrayRef = Arc::new(numbers);
        let plain: ArrayRef = Arc::new(StringArray::from(texts.clone()));
        let twins: [ArrayRef; 3] = [
            Arc::new(LargeStringArray::from(texts.clone())),
            Arc::new(StringViewArray::from_iter(texts.clone())),
            Arc::new(texts.iter().map(Option::as_deref).collect::<DictionaryArray<Int32Type>>()),
        ];
        for system in SYSTEMS {
            let about = system.about();
            let mut types = vec![ColumnType::Utf8];
            if system.refuses(ColumnType::Utf8).is_some() {
                let placed_hashes = hashes(*system, &[ColumnType::Int64], std::slice::from_ref(&number));
                prop_assert!(placed_hashes.iter().all(|hash| system.partition(*hash, partitions) < partitions), "{}", about.name);
                continue;
            }
            let more: &[ArrayRef] = if about.most_columns > 1 { std::slice::from_ref(&number) } else { &[] };
            types.extend(more.iter().map(|_| ColumnType::Int64));
            let with = |text: &ArrayRef| [std::slice::from_ref(text), more].concat();
            let expected = hashes(*system, &types, &with(&plain));
            prop_assert_eq!(expected.len(), texts.len());
            prop_assert!(expected.iter().all(|hash| system.partition(*hash, partitions) < partitions), "{}", about.name);
            for twin in &twins {
                prop_assert_eq!(&hashes(*system, &types, &with(twin)), &expected, "{} {}", about.name, twin.data_type());
            }
            // Hashing row by row gives the same as all at once.
            for (row, hash) in expected.iter().enumerate() {
                let one: Vec<ArrayRef> = with(&plain).iter().map(|array| array.slice(row, 1)).collect();
                prop_assert_eq!(hashes(*system, &types, &one)[0], *hash, "{}", about.name);
            }
        }
    }
}
