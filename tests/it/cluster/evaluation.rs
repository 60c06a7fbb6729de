//! Evaluations on a cluster.

use crate::cluster::{TestCluster, query_file};
use crate::common::{done, json};

#[test]
fn an_evaluation_gives_the_figures_that_it_gives_here() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "generate ad-events --rows 90000 --rows-per-file 30000 --duplicate-share 0.05 --out {}/in");
    done(dir, "create {}/u --ddl data/ad_events.sql");
    done(dir, "ingest {}/u {}/in --compact off");
    let all = query_file(dir, "all.sql", "SELECT * FROM t ORDER BY event_timestamp");
    done(dir, &format!("query {{}}/u {all} --output {{}}/rows.csv"));
    // Numbers that systems without unsigned integers cannot hold.
    let large: String = (0..1000u64).map(|row| format!("{}\n", u64::MAX - row)).collect();
    std::fs::write(dir.join("large.csv"), format!("k\n{large}")).unwrap();
    let cluster = TestCluster::start(2);
    let figures = |mut found: serde_json::Value| {
        found.as_object_mut().unwrap().remove("seconds");
        found
    };
    for arguments in [
        "{}/in",
        "{}/in --partition-key user_id --partition-key campaign_id,event_type --no-primary-keys --partitions 16,48",
        "{}/in --primary-key event_timestamp,user_id --primary-key user_id,event_timestamp,campaign_id --placement doris,ydb",
        "{}/in --partition-key user_id --memory 256MiB --window 1h --batch 7000",
        "{}/rows.csv --partition-key user_id,campaign_id",
        "{}/large.csv --partition-key k --no-primary-keys --placement all",
        "{}/in --sample 0.1 --partition-key user_id",
    ] {
        let evaluate = format!("evaluate {arguments} --format json");
        let (here, there) = (figures(json(dir, &evaluate)), figures(cluster.json(dir, &evaluate)));
        for (name, value) in here.as_object().unwrap() {
            assert_eq!(*value, there[name], "{arguments}: {name}");
        }
    }
    std::fs::write(dir.join("bad.csv"), format!("k,v\n{}x,y\n", "2,3\n".repeat(150_000))).unwrap();
    for arguments in
        ["{}/bad.csv --partition-key k", "{}/in --partition-key nothing", "{}/none --partition-key k"]
    {
        let evaluate = format!("evaluate {arguments}");
        let (here, there) = (crate::common::run(dir, &evaluate), cluster.run(dir, &evaluate));
        assert_eq!((here.code, here.stderr), (there.code, there.stderr), "{arguments}");
    }
    let skipped = "evaluate {}/bad.csv --partition-key k --on-error skip --format json";
    assert_eq!(figures(json(dir, skipped)), figures(cluster.json(dir, skipped)));
}
