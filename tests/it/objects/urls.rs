//! URLs of stores: those that name a place on the disk, no place, or a store that refuses.

use crate::common::{Run, done, evenkeel, json, test_store};

fn refused(arguments: &str) -> Run {
    let run = Run::from(
        evenkeel().args(arguments.split_whitespace()).env("EVENKEEL_STORE_TIMEOUT", "2").output().unwrap(),
    );
    assert_ne!(run.code, 0, "{arguments}");
    assert_eq!(run.stderr.trim().lines().count(), 1, "{}", run.stderr);
    assert!(!run.stderr.contains("panicked") && !run.stderr.contains("<?xml"), "{}", run.stderr);
    run
}

#[test]
fn urls_that_name_no_place_are_refused() {
    for (arguments, message) in [
        ("query http://host/t -c x", "stores are s3://BUCKET/, gs://BUCKET/ and az://CONTAINER/"),
        ("inspect s3:///t", "the bucket is missing"),
        ("evaluate s3://key:secret@bucket/x.csv", "credentials do not belong in a URL"),
        ("inspect file:///nowhere/at/all", "there is no such directory"),
    ] {
        let refused = refused(arguments);
        assert!(refused.stderr.contains(message), "{}", refused.stderr);
        assert!(!refused.stderr.contains("secret"), "{}", refused.stderr);
    }
    #[cfg(not(feature = "cloud"))]
    assert!(refused("inspect s3://bucket/t").stderr.contains("--features cloud"));
}

#[test]
fn paths_may_be_given_as_urls() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.csv"), "k\n1\n2\n").unwrap();
    done(dir.path(), "create file://{}/u --column k:int64:not-null --primary-key k");
    done(dir.path(), "ingest file://{}/u file://{}/a.csv");
    assert_eq!(json(dir.path(), "inspect {}/u --format json")["rows"], 2);
}

#[test]
fn a_store_that_is_not_there_or_refuses_is_told_in_one_line() {
    if test_store().is_none() {
        return;
    }
    let told = refused("inspect s3://no-such-bucket/t");
    assert!(told.stderr.contains("NoSuchBucket: "), "{}", told.stderr);
    assert!(told.stderr.contains("create the bucket first"), "{}", told.stderr);
    let unreachable = Run::from(
        evenkeel()
            .args(["inspect", "s3://elsewhere/t"])
            .env("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
            .env("EVENKEEL_STORE_TIMEOUT", "1")
            .output()
            .unwrap(),
    );
    assert!(unreachable.code == 1 && unreachable.stderr.contains("127.0.0.1:9"), "{}", unreachable.stderr);
}
