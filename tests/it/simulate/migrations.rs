//! Keys that are migrated, and functions that transform keys.

use crate::common::{done, json, run};

#[test]
fn key_transforms_are_functions_of_sql() {
    let dir = tempfile::tempdir().unwrap();
    done(dir.path(), "create {}/t --ddl data/ad_events.sql");
    let value = |sql: &str| {
        let output = crate::common::evenkeel()
            .arg("query")
            .arg(dir.path().join("t"))
            .args(["-c", &format!("SELECT {sql} AS x"), "--format", "csv"])
            .output()
            .unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap()
        );
        text.lines().last().unwrap().to_owned()
    };
    assert_eq!(value("farm_fingerprint('foo')"), "6150913649986995171");
    assert_eq!(value("farm_fingerprint(1, 'foo', true)"), "-1541654101129638711");
    assert_eq!(value("bit_reverse(100, true)"), "1369094286720630784");
    assert_eq!(value("bit_reverse(100, false)"), "2738188573441261568");
    assert_eq!(value("bit_reverse(-100, true)"), "-7133701809754865665");
    assert_eq!(value("shard_id(10, 'foo')"), "1");
    assert_eq!(value("farm_fingerprint(2, 'apple', false) % 10"), "9");
    assert_eq!(value("shard_id(10, 3, 'true')"), "8");
    // As printed in docs of the placement: Utf8 'abc' of 12 and of 64.
    assert_eq!(value("ydb_partition(12, 'abc')"), "3");
    assert_eq!(value("ydb_partition(64, 'abc')"), "17");
    assert_eq!(value("ydb_partition(64, arrow_cast(42, 'UInt64'))"), "45");
    assert!(value("shard_id(0, 'a')").contains("1 to 100000"), "{}", value("shard_id(0, 'a')"));
    // What has no value has no fingerprint, and what does not fit is told.
    for null in
        ["farm_fingerprint(NULL)", "farm_fingerprint('a', NULL)", "shard_id(4, NULL)", "bit_reverse(NULL)"]
    {
        assert!(["", "\"\"", "NULL"].contains(&value(null).as_str()), "{null}: {}", value(null));
    }
    assert_eq!(
        value("farm_fingerprint(arrow_cast('1.50', 'Decimal128(10, 2)'))"),
        value("farm_fingerprint('1.5')")
    );
    for (wrong, message) in [
        ("bit_reverse('abc')", "bit_reverse needs a whole number"),
        ("bit_reverse(arrow_cast(18446744073709551615, 'UInt64'))", "18446744073709551615"),
        ("bit_reverse(1.9)", "bit_reverse needs a whole number"),
        ("shard_id(2.7, 'foo')", "a whole number"),
        ("farm_fingerprint(1.5)", "cast them to text first"),
        ("farm_fingerprint(make_array(1, 2))", "cast them to text first"),
    ] {
        assert!(value(wrong).contains(message), "{wrong}: {}", value(wrong));
    }
    assert!(value("shard_id(4)").contains("write shard_id(N, value, ...)"), "{}", value("shard_id(4)"));
}

#[test]
fn migrated_keys_never_meet_those_to_come() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, values: &[String]| {
        let rows: String = values.iter().map(|value| format!("{value},x\n")).collect();
        std::fs::write(dir.path().join(name), format!("id,note\n{rows}")).unwrap();
    };
    let reverse = |value: u64| (value << 1).reverse_bits();
    write("counted.csv", &(1..=3000).map(|id| (id * 2).to_string()).collect::<Vec<_>>());
    write("reversed.csv", &(1..=1000).map(|id| reverse(id).to_string()).collect::<Vec<_>>());
    let uuids: Vec<String> = (0..500_u128)
        .map(|n| format!("{:032X}", n * 0x1_0000_0000_0001_4000_8000 + 0x4000_8000_0000_0000_0000))
        .collect();
    write("uuids.csv", &uuids);
    let migrate =
        |name: &str| json(dir.path(), &format!("spanner migrate {{}}/{name} --key id --format json"));

    let counted = migrate("counted.csv");
    assert_eq!(
        (&counted["kind"], &counted["skip_range"]),
        (&"sequential".into(), &serde_json::json!([1, 8192]))
    );
    assert_eq!((&counted["tried"], &counted["collisions"]), (&1_000_000.into(), &0.into()));
    assert!(counted["ddl"].as_str().unwrap().contains("skip_range_max = 8192"));
    let reversed = migrate("reversed.csv");
    assert_eq!(
        (&reversed["kind"], &reversed["counters"]),
        (&"bit_reversed".into(), &serde_json::json!([1, 1000]))
    );
    assert_eq!((&reversed["start_counter"], &reversed["collisions"]), (&1101.into(), &0.into()));

    let text = migrate("uuids.csv");
    assert_eq!((&text["kind"], &text["to_normalize"]), (&"uuid".into(), &500.into()));
    // Written over, as the statements want them; a second time nothing is left to do.
    done(dir.path(), "spanner migrate {}/uuids.csv --key id --output {}/lower.csv");
    let lower: String =
        uuids.iter().map(|uuid| format!("{},x\n", uuid::Uuid::parse_str(uuid).unwrap())).collect();
    assert_eq!(std::fs::read_to_string(dir.path().join("lower.csv")).unwrap(), format!("id,note\n{lower}"));
    done(dir.path(), "spanner migrate {}/lower.csv --key id --output {}/lower.parquet");
    assert_eq!(migrate("lower.parquet")["to_normalize"], 0);
    assert!(text["ddl"].as_str().unwrap().contains("STRING(36) NOT NULL DEFAULT (GENERATE_UUID())"));

    let twice = [&uuids[..], &[uuids[7].to_lowercase()]].concat();
    write("twice.csv", &twice);
    write("none.csv", &["abc".to_owned()]);
    write("negative.csv", &["-5".to_owned(), "7".to_owned()]);
    for (arguments, code, message) in [
        ("twice.csv --key id", 1, "line 502, column 'id': 00000000-0007-4000-8000-0008c0038000 occurs twice"),
        ("none.csv --key id", 1, "line 2, column 'id': 'abc' is neither a UUID nor a number"),
        ("counted.csv --key nope", 2, "there is no column 'nope'"),
        ("counted.csv --key id --kind uuid", 1, "column 'id' holds numbers"),
        ("negative.csv --key id --kind bit-reversed", 1, "has negative values"),
        ("counted.csv --key id --headroom x", 2, "write a share such as 0.1"),
        ("counted.csv --key id --output {}/x.csv", 2, "--output rewrites UUIDs; 'id' has numbers"),
        ("uuids.csv --key id --output {}/x.xls", 2, "unknown file extension"),
        ("uuids.csv --key id --output {}/uuids.csv", 2, "uuids.csv is an input; write to another file"),
    ] {
        let refused = run(dir.path(), &format!("spanner migrate {{}}/{arguments}"));
        assert_eq!(refused.code, code, "{arguments}: {}", refused.stderr);
        assert!(refused.stderr.contains(message), "{arguments}: {}", refused.stderr);
    }
    assert_eq!(migrate("negative.csv")["skip_range"], serde_json::json!([1, 8]));
}

#[test]
fn numbers_without_order_are_not_migrated_by_a_sequence() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, values: &[u64]| {
        let rows: String = values.iter().map(|value| format!("{value}\n")).collect();
        std::fs::write(dir.path().join(name), format!("id\n{rows}")).unwrap();
    };
    // Random numbers of 63 bits.
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 1
    };
    write("random.csv", &(0..50).map(|_| random()).collect::<Vec<_>>());
    write("edges.csv", &[1, u64::MAX >> 1]);
    for name in ["random.csv", "edges.csv"] {
        for kind in ["", "--kind bit-reversed"] {
            let refused = run(dir.path(), &format!("spanner migrate {{}}/{name} --key id {kind}"));
            assert!(
                refused.code == 1 && refused.stderr.contains("Generate new keys as UUIDs")
                    || refused.stderr.contains("generate new keys as UUIDs"),
                "{name} {kind}: {}{}",
                refused.stdout,
                refused.stderr
            );
        }
    }
}
