//! Clusters that are not there, and clusters that ask for a certificate and a token.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::cluster::{Process, TestCluster, cluster};
use crate::common::{Run, arguments, done, evenkeel, json};

#[test]
fn a_cluster_that_is_not_there_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    done(dir, "create {}/t --column k:int64:not-null --primary-key k");
    for (url, message) in [
        ("http://127.0.0.1:9", "no scheduler answers"),
        ("nonsense", "write http://HOST:PORT"),
        ("https://127.0.0.1:9", "--tls-ca"),
        ("ftp://127.0.0.1:9", "write http://HOST:PORT"),
    ] {
        let query = Run::from(
            evenkeel()
                .args(arguments(dir, &format!("query {{}}/t --cluster {url}")))
                .arg("SELECT 1")
                .output()
                .unwrap(),
        );
        assert!(query.code == 1 && query.stderr.contains(message), "{url}: {}", query.stderr);
    }
    let alone = TestCluster::start(0);
    let query = evenkeel()
        .args(arguments(dir, "query {}/t --deadline 1s --cluster"))
        .args([&alone.url, "SELECT count(*) FROM t"])
        .output()
        .unwrap();
    let query = Run::from(query);
    assert!(query.stderr.contains("no executor has registered within 1 s"), "{}", query.stderr);
    let executor = cluster(&["executor", "--scheduler", "http://127.0.0.1:9"]).output().unwrap();
    assert!(Run::from(executor).stderr.contains("no scheduler answers"));
    let open = cluster(&["executor", "--listen", "0.0.0.0:0"]).output().unwrap();
    assert!(Run::from(open).stderr.contains("needs --host"));
}

/// Certificates of an authority of the test's own, made by openssl; none where there is no openssl.
fn certificates(dir: &Path) -> Option<()> {
    let run = |arguments: &str| {
        let status = Command::new("openssl")
            .args(arguments.split_whitespace())
            .current_dir(dir)
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success()).then_some(())
    };
    run("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem")?;
    run("req -newkey rsa:2048 -nodes -subj /CN=node -keyout node.key -out node.csr")?;
    std::fs::write(dir.join("ext"), "subjectAltName=DNS:evenkeel-node\n").ok()?;
    run("x509 -req -in node.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out node.pem")
}

fn mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
}

#[test]
fn with_tls_and_a_token_only_those_are_served_who_have_both() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    if certificates(dir).is_none() {
        return;
    }
    std::fs::write(dir.join("token"), "a token is a secret\n".replace(' ', "-")).unwrap();
    std::fs::write(dir.join("other"), "another-token-altogether").unwrap();
    for secret in ["token", "other", "ca.key", "node.key"] {
        mode(&dir.join(secret), 0o640);
    }
    done(dir, "generate ad-events --rows 20000 --out {}/in");
    done(dir, "create {}/t --ddl data/ad_events.sql");
    let with = |text: &str| arguments(dir, text);
    let server = "--tls-cert {}/node.pem --tls-key {}/node.key --token-file {}/token";
    let client = "--tls-ca {}/ca.pem --tls-name evenkeel-node";
    let scheduler = Process::start(
        evenkeel().args(with(&format!("cluster scheduler --listen 127.0.0.1:0 {server} {client}"))),
    );
    let url = scheduler.line.trim().rsplit(' ').next().unwrap().to_owned();
    assert!(url.starts_with("https://"), "{url}");
    let executor = format!("cluster executor --scheduler {url} --cores 2 {server} {client}");
    let _executors = [(); 2].map(|()| Process::start(evenkeel().args(with(&executor))));
    let ingest = |more: &str| {
        let text = format!("ingest {{}}/t {{}}/in --compact off --cluster {url} --tries 1 {more}");
        Run::from(evenkeel().args(with(&text)).output().unwrap())
    };
    // A secret that others can read is none, whoever would use it.
    std::fs::copy(dir.join("token"), dir.join("exposed")).unwrap();
    mode(&dir.join("exposed"), 0o644);
    let exposed = format!("{server} {client}").replace("/token", "/exposed");
    for text in [
        format!("ingest {{}}/t {{}}/in --cluster {url} {client} --token-file {{}}/exposed"),
        format!("cluster scheduler --listen 127.0.0.1:0 {exposed}"),
        format!("cluster executor --scheduler {url} {}", exposed.replace("/node.key", "/exposed")),
    ] {
        let refused = Run::from(evenkeel().args(with(&text)).output().unwrap());
        assert!(
            refused.code != 0 && refused.stderr.contains("(mode 644); run 'chmod 600"),
            "{}",
            refused.stderr
        );
    }
    let plain_url = url.replace("https", "http");
    let plain = evenkeel().args(with("inspect {}/t --format json")).output().unwrap();
    assert!(Run::from(plain).code == 0);
    for (more, message) in [
        ("", "--tls-ca"),
        (client, "the token is missing or wrong"),
        (&format!("{client} --token-file {{}}/other"), "the token is missing or wrong"),
        ("--tls-ca {}/ca.pem --token-file {}/token", "no scheduler answers"),
        (&format!("{client} --token-file {{}}/ca.key"), "without blanks"),
        (&format!("{client} --token-file {{}}/nowhere"), "No such file"),
    ] {
        let refused = ingest(more);
        assert!(refused.code != 0 && refused.stderr.contains(message), "{more}: {}", refused.stderr);
        assert!(!refused.stderr.contains("a-token"), "{}", refused.stderr);
    }
    let unencrypted = Run::from(
        evenkeel()
            .args(with(&format!("ingest {{}}/t {{}}/in --cluster {plain_url} --token-file {{}}/token")))
            .output()
            .unwrap(),
    );
    assert!(unencrypted.stderr.contains("no scheduler answers"), "{}", unencrypted.stderr);
    let taken = ingest(&format!("{client} --token-file {{}}/token"));
    assert_eq!(taken.code, 0, "{}", taken.stderr);
    assert_eq!(json(dir, "inspect {}/t --format json")["version"], 1);
}
