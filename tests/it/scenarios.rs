//! The scenario queries on the partitioned table and on a naive scan of the same rows.

use arrow::array::RecordBatch;
use datafusion::common::{ParamValues, ScalarValue};
use evenkeel::Table;
use evenkeel::generate::{AdEvents, ad_events_definition};
use evenkeel::ingest::IngestOptions;
use evenkeel::query::Params;
use evenkeel::table::{TableDefinition, TableSpec};

use crate::common::{done, json, naive, project, rows, run, states};

fn spec(partition_key: &[&str]) -> TableSpec {
    let partition_key = partition_key.iter().map(|name| (*name).to_owned()).collect();
    TableSpec::new(TableDefinition { partition_key, ..ad_events_definition().unwrap() }).unwrap()
}

fn events() -> Vec<RecordBatch> {
    let options =
        AdEvents { rows: 20_000, users: 300, duplicate_share: 0.05, late_share: 0.1, ..AdEvents::default() };
    options.batches(4_000).unwrap().map(Result::unwrap).collect()
}

async fn table(dir: &tempfile::TempDir, spec: &TableSpec, batches: &[RecordBatch]) -> Table {
    let mut table = Table::create(dir.path().join("t"), spec).await.unwrap();
    for batch in batches {
        let stream = futures::stream::iter([Ok::<_, std::io::Error>(batch.clone())]);
        table.ingest(stream, &IngestOptions::default()).await.unwrap();
    }
    table
}

fn sql(name: &str) -> String {
    std::fs::read_to_string(project("queries").join(name)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_scenario_gives_the_same_rows_on_both_engines() {
    let batches = events();
    for key in [["user_id", "event_timestamp"].as_slice(), &["user_id"], &["campaign_id"]] {
        let dir = tempfile::tempdir().unwrap();
        let spec = spec(key);
        let states = states(table(&dir, &spec, &batches).await).await;
        let naive = naive(&spec, &batches).await;
        let newest = naive.sql("SELECT max(event_timestamp) FROM t").await.unwrap().collect().await.unwrap();
        let newest = ScalarValue::try_from_array(newest[0].column(0), 0).unwrap();
        let user = "u600000007";
        for (name, ours, theirs) in [
            (
                "clicks_of_campaign.sql",
                vec![("campaign", "1")],
                vec![("campaign", ScalarValue::UInt64(Some(1)))],
            ),
            ("clicks_per_campaign.sql", vec![], vec![]),
            ("events_of_user.sql", vec![("user", user)], vec![("user", ScalarValue::from(user))]),
            ("events_per_user.sql", vec![], vec![]),
        ] {
            let sql = sql(name);
            let params =
                ours.iter().fold(Params::default(), |params, (name, value)| params.with(name, value));
            let mut values = theirs;
            if sql.contains("$now") {
                values.push(("now", newest.clone()));
            }
            let frame = naive.state().create_logical_plan(&sql).await.unwrap();
            let frame = frame.with_param_values(ParamValues::from(values)).unwrap();
            let frame = naive.execute_logical_plan(frame).await.unwrap();
            let expected = rows(&frame.collect().await.unwrap());
            assert!(!expected.is_empty(), "{name}");
            for (state, table) in &states {
                let found = table.session().unwrap().collect(&sql, &params).await.unwrap();
                assert_eq!(rows(&found), expected, "{name} with HASH({key:?}), {state}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_hour_counts_back_from_the_newest_event_or_from_what_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let table = table(&dir, &spec(&["user_id"]), &events()).await;
    let session = table.session().unwrap();
    let clicks = |params: Params| {
        let (session, sql) = (&session, sql("clicks_of_campaign.sql"));
        async move {
            rows(&session.collect(&sql, &params.with("campaign", "1")).await.unwrap())[0][0]
                .parse::<u64>()
                .unwrap()
        }
    };
    let newest = clicks(Params::default()).await;
    assert!(newest > 0);
    assert_eq!(clicks(Params::default().with("now", "2027-01-01T00:00:00Z")).await, 0);
    assert!(clicks(Params::default().with("now", "2026-01-01 12:00:00")).await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_tables_agree_with_the_figures_of_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let table = table(&dir, &spec(&["user_id"]), &events()).await;
    let session = table.session().unwrap();
    let overview = table.inspect().await.unwrap();
    let stats =
        session.collect("SELECT rows, portions FROM sys.partition_stats", &Params::default()).await.unwrap();
    let expected: Vec<Vec<String>> =
        overview.partitions.iter().map(|p| vec![p.stored_rows.to_string(), p.portions.to_string()]).collect();
    assert_eq!(rows(&stats), expected);
    let portions = r#"SELECT count(*), sum(rows), max(version) FROM "t/.sys/primary_index_portion_stats""#;
    let portions = session.collect(portions, &Params::default()).await.unwrap();
    assert_eq!(
        rows(&portions),
        [[overview.portions.to_string(), overview.stored_rows.to_string(), overview.version.to_string()]]
    );
    let skew = session.collect(&sql("partition_skew.sql"), &Params::default()).await.unwrap();
    let figures = evenkeel::skew::SkewFigures::from_counts(
        &overview.partitions.iter().map(|p| p.stored_rows).collect::<Vec<_>>(),
    );
    let found = &rows(&skew)[0];
    assert_eq!(found[1], figures.rows.to_string());
    assert!((found[2].parse::<f64>().unwrap() - figures.max_over_mean).abs() < 1e-9);
    assert!((found[4].parse::<f64>().unwrap() - figures.effective_partitions).abs() < 1e-6);
}

#[test]
fn earlier_versions_are_read_and_the_history_is_listed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column k:int64:not-null --column v:utf8 --primary-key k --partitions 1");
    for (name, rows) in [("a", "1,one\n2,two\n"), ("b", "2,zwei\n3,drei\n"), ("c", "9,neun\n")] {
        std::fs::write(dir.join(format!("{name}.csv")), format!("k,v\n{rows}")).unwrap();
        done(dir, &format!("ingest {{}}/t {{}}/{name}.csv"));
    }
    let rows_at = |version: u64| {
        let run = run(
            dir,
            &format!(
                "query {{}}/t --version {version} --format csv -c SELECT/**/v/**/FROM/**/t/**/ORDER/**/BY/**/k"
            ),
        );
        (run.code, run.stdout.lines().skip(1).collect::<Vec<_>>().join(","), run.stderr)
    };
    for (version, expected) in [(0, ""), (1, "one,two"), (2, "one,zwei,drei"), (3, "one,zwei,drei,neun")] {
        assert_eq!(rows_at(version).1, expected, "version {version}");
    }
    let (code, _, message) = rows_at(4);
    assert_eq!(code, 1);
    assert!(message.contains("has no version 4; its versions are 0 to 3"), "{message}");
    let history = json(dir, "inspect {}/t --history --format json");
    let commits: Vec<(u64, &str, u64)> = history["commits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            (c["version"].as_u64().unwrap(), c["operation"].as_str().unwrap(), c["rows"].as_u64().unwrap())
        })
        .collect();
    assert_eq!(commits, [(0, "create", 0), (1, "upsert", 2), (2, "upsert", 2), (3, "upsert", 1)]);
    assert!(history["commits"][2]["sources"][0].as_str().unwrap().ends_with("b.csv"));
    assert!(done(dir, "inspect {}/t --history").contains("upsert"));
    // The first two portions share key 2; the third begins behind both.
    let overlap = &json(dir, "inspect {}/t --format json")["partitions"][0]["overlap"];
    assert_eq!((&overlap["max_depth"], &overlap["average_depth"]), (&2.into(), &(4.0 / 3.0).into()));
    let older = json(dir, "skew {}/t --version 1 --format json");
    assert_eq!(older["rows"], 2);
}
