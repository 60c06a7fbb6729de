//! JSON, and the extended JSON of MongoDB.

use std::fmt::Write as _;

use md5::{Digest, Md5};

use crate::common::{done, json, run};
use crate::other_systems::{through_a_table, write};

#[test]
fn strings_that_a_whole_number_would_change_are_refused_further_on() {
    let dir = tempfile::tempdir().unwrap();
    for odd in ["00005", "+7", " 7"] {
        let rows: String = (0..200_000).map(|id| format!("{{\"id\":\"{id}\"}}\n")).collect();
        write(dir.path(), "d.ndjson", format!("{rows}{{\"id\":\"{odd}\"}}\n"));
        let found = run(dir.path(), "evaluate {}/d.ndjson");
        assert!(
            found.code != 0 && found.stderr.contains("line 200001, column 'id'"),
            "{odd}: {}",
            found.stderr
        );
        let error = through_a_table(dir.path(), "{}/d.ndjson", "id", "id", "").unwrap_err();
        assert!(error.contains("a whole number would change"), "{odd}: {error}");
    }
}

#[test]
fn extended_json_of_mongodb_is_the_same_in_every_spelling() {
    let spellings = [
        "{\"_id\":{\"$oid\":\"546651e74bf6e4cb017c5312\"},\"n\":5,\"big\":9007199254740993,\"x\":1.5,\"ts\":{\"$date\":\"2021-07-06T10:18:12.036Z\"},\"u\":{\"$binary\":{\"base64\":\"YfDEBFyzEeeQe6YAatPboA==\",\"subType\":\"04\"}},\"sub\":{\"a\":[1]}}",
        "{\"_id\":{\"$oid\":\"546651e74bf6e4cb017c5312\"},\"n\":{\"$numberInt\":\"5\"},\"big\":{\"$numberLong\":\"9007199254740993\"},\"x\":{\"$numberDouble\":\"1.5\"},\"ts\":{\"$date\":{\"$numberLong\":\"1625566692036\"}},\"u\":{\"$binary\":{\"base64\":\"YfDEBFyzEeeQe6YAatPboA==\",\"subType\":\"04\"}},\"sub\":{\"a\":[1]}}",
        "{\"_id\":{\"$oid\":\"546651e74bf6e4cb017c5312\"},\"n\":5,\"big\":{\"$numberLong\":\"9007199254740993\"},\"x\":1.5,\"ts\":{\"$date\":1625566692036},\"u\":{\"$binary\":\"YfDEBFyzEeeQe6YAatPboA==\",\"$type\":\"04\"},\"sub\":{\"a\":[1]}}",
    ];
    let other = "{\"_id\":{\"$oid\":\"546651e74bf6e4cb017c5313\"},\"ts\":{\"$date\":\"2021-07-07T00:00:00Z\"},\"n\":null}";
    let expected = "{\"_id\":\"546651e74bf6e4cb017c5312\",\"n\":5,\"big\":9007199254740993,\"x\":1.5,\"ts\":\"2021-07-06T10:18:12.036\",\
                    \"u\":\"61f0c404-5cb3-11e7-907b-a6006ad3dba0\",\"sub\":{\"a\":[1]}}";
    for spelling in spellings {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "m.json", format!("{spelling}\n{other}\n"));
        let rows = through_a_table(dir.path(), "{}/m.json", "_id", "_id", "").unwrap();
        let first = rows.lines().next().unwrap();
        let (first, expected): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(first).unwrap(), serde_json::from_str(expected).unwrap());
        let nested =
            |value: &serde_json::Value| value["sub"].as_str().map_or(value["sub"].to_string(), str::to_owned);
        assert_eq!(nested(&first), nested(&expected), "{spelling}");
        for name in ["_id", "n", "big", "x", "ts", "u"] {
            assert_eq!(first[name], expected[name], "{name} of {spelling}");
        }
    }
}

#[test]
fn object_ids_are_a_type_of_their_own_which_mongodb_hashes() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (mut json_text, mut csv, mut plain) = (String::new(), "_id,n\n".to_owned(), String::new());
    for number in 0..400u64 {
        let id = format!("{:08x}{:016x}", 0x6543_2100 + number, number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        writeln!(json_text, "{{\"_id\":{{\"$oid\":\"{id}\"}},\"n\":{number}}}").unwrap();
        writeln!(csv, "ObjectId({}),{number}", id.to_uppercase()).unwrap();
        writeln!(plain, "{{\"_id\":\"{id}\",\"n\":{number}}}").unwrap();
    }
    write(dir, "m.json", &json_text);
    write(dir, "m.csv", csv);
    write(dir, "text.json", plain);
    let evaluated = |file: &str, placement: &str| {
        let arguments = format!(
            "evaluate {{}}/{file} --partition-key _id --no-primary-keys --partitions 8 --placement {placement} --format json"
        );
        json(dir, &arguments)
    };
    let rows =
        |report: &serde_json::Value| report["candidates"][0]["placements"][0]["rows_per_partition"].clone();
    let of_json = evaluated("m.json", "mongodb");
    assert_eq!(of_json["columns"][0]["type"], "ObjectId");
    assert_eq!(rows(&of_json), rows(&evaluated("m.csv", "mongodb --type _id:objectid")));
    assert_ne!(rows(&of_json), rows(&evaluated("text.json", "mongodb")), "text hashes otherwise");
    // The same 12 bytes by hand: seed 0, canonical type 35, MD5, 8 chunks around 0.
    let mut expected = [0u64; 8];
    for line in json_text.lines() {
        let id: serde_json::Value = serde_json::from_str(line).unwrap();
        let id = id["_id"]["$oid"].as_str().unwrap();
        let bytes = (0..12).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap());
        let input: Vec<u8> = [0, 0, 0, 0, 35, 0, 0, 0].into_iter().chain(bytes).collect();
        let digest: [u8; 16] = Md5::digest(&input).into();
        let hash = i64::from_le_bytes(digest[..8].try_into().unwrap());
        let step = i64::MAX / 8 * 2;
        expected[(-3..=3).filter(|boundary| hash >= boundary * step).count()] += 1;
    }
    assert_eq!(rows(&of_json), serde_json::json!(expected));
    // Other systems, and tables, have the text.
    assert_eq!(rows(&evaluated("m.json", "ydb")), rows(&evaluated("text.json", "ydb")));
    let proposed = evaluated("m.json", "ydb");
    assert_eq!(proposed["candidates"][0]["type_obstacle"], serde_json::Value::Null);
    for file in ["m.json", "m.csv"] {
        let table = format!("{{}}/t{}", usize::from(file == "m.csv"));
        let created =
            done(dir, &format!("create {table} --like {{}}/{file} --primary-key _id --partitions 2"));
        assert!(created.contains("_id Utf8 NOT NULL"), "{created}");
        done(dir, &format!("ingest {table} {{}}/{file}"));
    }
    let refused = run(dir, "create {}/t7 --column _id:objectid:not-null --primary-key _id");
    assert!(refused.code == 2 && refused.stderr.contains("declare it as _id:Utf8"), "{}", refused.stderr);
    let typed = run(dir, "evaluate {}/m.csv --type n:objectid --partition-key n");
    assert!(typed.stderr.contains("is not an ObjectId of 24 hexadecimal digits"), "{}", typed.stderr);
}
