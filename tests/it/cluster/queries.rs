//! Queries on a cluster.

use std::path::Path;

use crate::cluster::{TestCluster, query_file};
use crate::common::done;

/// A table of events with keys that come in several commits.
fn table_with_history(dir: &Path) {
    done(dir, "generate ad-events --rows 30000 --rows-per-file 10000 --duplicate-share 0.2 --out {}/in");
    done(dir, "create {}/t --ddl data/ad_events.sql");
    for file in 0..3 {
        done(dir, &format!("ingest {{}}/t {{}}/in/ad-events-000{file}.parquet --compact off"));
    }
}

const QUERIES: [&str; 22] = [
    "SELECT count(*), count(DISTINCT user_id), min(event_timestamp), max(ad_id), sum(event_id % 1000) FROM t",
    "SELECT user_id, count(*) AS n FROM t GROUP BY user_id ORDER BY n DESC, user_id LIMIT 20",
    "SELECT user_id, event_timestamp, campaign_id FROM t ORDER BY event_timestamp, user_id, campaign_id LIMIT 50",
    "SELECT campaign_id, event_type, count(*) FROM t WHERE event_type = 'click' GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT * FROM t WHERE user_id = 'u000000224' ORDER BY event_timestamp, campaign_id",
    "SELECT * FROM t WHERE user_id IN ('u000000224', 'u000005376') AND campaign_id > 5 ORDER BY 1, 2, 4",
    "SELECT count(*) FROM t a JOIN t b ON a.user_id = b.user_id AND a.campaign_id = b.ad_id",
    "SELECT a.campaign_id, count(*) FROM t a LEFT JOIN (SELECT DISTINCT campaign_id FROM t WHERE event_type = 'click') b \
     ON a.campaign_id = b.campaign_id WHERE b.campaign_id IS NULL GROUP BY 1 ORDER BY 1 LIMIT 10",
    "SELECT user_id FROM t WHERE campaign_id < 20 INTERSECT SELECT user_id FROM t WHERE event_type = 'click' ORDER BY 1",
    "SELECT campaign_id FROM t EXCEPT SELECT campaign_id FROM t WHERE event_type = 'click' ORDER BY 1 LIMIT 30",
    "SELECT campaign_id, n, rank() OVER (ORDER BY n DESC, campaign_id) FROM \
     (SELECT campaign_id, count(*) AS n FROM t GROUP BY 1) ORDER BY 3 LIMIT 10",
    "SELECT count(*) FROM t WHERE event_timestamp > $now - INTERVAL '1 hour'",
    "SELECT 1 AS one UNION ALL SELECT count(*) FROM t ORDER BY one",
    "SELECT sum(rows) FROM (SELECT row_count AS rows FROM sys.partition_stats)",
    "SELECT ydb_partition(16, user_id, event_timestamp) AS p, count(*) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT count(*) FROM t WHERE user_id NOT IN (SELECT user_id FROM t WHERE event_type = 'click')",
    "SELECT count(*) FROM t WHERE ad_id NOT IN (SELECT campaign_id FROM t WHERE event_type = 'click')",
    "SELECT count(*) FROM t a WHERE EXISTS (SELECT 1 FROM t b WHERE b.user_id = a.user_id AND b.event_type = 'click')",
    "SELECT count(*), count(b.user_id) FROM t a FULL JOIN (SELECT * FROM t WHERE campaign_id < 30) b ON a.event_id = b.event_id \
     AND a.ad_id % 3 = 0",
    "SELECT count(*) FROM t a, (SELECT DISTINCT event_type FROM t) b WHERE a.event_type <> b.event_type",
    "WITH a AS (SELECT user_id, count(*) n FROM t GROUP BY 1), b AS (SELECT user_id, max(ad_id) m FROM t GROUP BY 1) \
     SELECT sum(n), sum(m % 100), count(*) FROM a JOIN b USING (user_id) WHERE n > 1",
    "SELECT count(*) FROM t WHERE user_id > (SELECT max(user_id) FROM t WHERE campaign_id = 7)",
];

#[test]
fn queries_give_what_they_give_here() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    table_with_history(dir);
    let cluster = TestCluster::start(2);
    for state in ["as ingested", "compacted"] {
        for (number, sql) in QUERIES.iter().enumerate() {
            let file = query_file(dir, &format!("{number}.sql"), sql);
            let query = format!("query {{}}/t {file} --format csv");
            let here = crate::common::run(dir, &query);
            let there = cluster.run(dir, &query);
            assert_eq!(
                (here.code, &here.stdout),
                (there.code, &there.stdout),
                "{state}: {sql}\n{}{}\n{}",
                here.stderr,
                there.stderr,
                cluster.warnings()
            );
        }
        done(dir, "compact {}/t --full");
    }
    // What a query does wrong is told as it is here, at once, and not tried again.
    for sql in [
        "SELECT nothing FROM t",
        "SELECT CAST(user_id AS BIGINT) FROM t",
        "SELECT 1 FROM elsewhere",
        "DROP TABLE t",
    ] {
        let file = query_file(dir, "wrong.sql", sql);
        let query = format!("query {{}}/t {file}");
        let (here, there) = (crate::common::run(dir, &query), cluster.run(dir, &query));
        assert!(here.code > 0 && here.code == there.code, "{sql}");
        let message = there.stderr.trim_start_matches("error: ").trim();
        // Which row is met first is not the same.
        let is_cast = |text: &str| text.contains("Arrow error: Cast error: Cannot cast string 'u");
        let alike = here.stderr.contains(message) || (is_cast(&here.stderr) && is_cast(message));
        assert!(alike && there.stderr.lines().count() == 1, "{}{}", here.stderr, there.stderr);
    }
}
