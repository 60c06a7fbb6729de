//! Credentials of stores: found in the environment or on a virtual machine, or missing.

use std::path::Path;

use crate::common::{Run, evenkeel};

/// The program without what the environment says of stores, in a home directory that says nothing
/// either.
fn without_credentials(home: &Path) -> std::process::Command {
    let mut command = evenkeel();
    for (name, _) in std::env::vars_os() {
        let of_store = |prefix: &str| name.to_string_lossy().starts_with(prefix);
        if ["AWS_", "GOOGLE_", "AZURE_", "SERVICE_ACCOUNT"].into_iter().any(of_store) {
            command.env_remove(name);
        }
    }
    command.env("HOME", home);
    command
}

#[test]
fn without_credentials_it_is_said_what_to_set() {
    /// Nothing listens there.
    const NOWHERE: &str = "http://127.0.0.1:9";
    let home = tempfile::tempdir().unwrap();
    for (arguments, settings, message) in [
        (
            "inspect s3://bucket/t",
            vec![("AWS_METADATA_ENDPOINT", NOWHERE)],
            "no credentials for s3://bucket: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
        ),
        (
            "evaluate s3://bucket/x.csv",
            vec![("AWS_METADATA_ENDPOINT", NOWHERE)],
            "no credentials for s3://bucket: set AWS_ACCESS_KEY_ID",
        ),
        (
            "inspect gs://bucket/t",
            vec![("GCE_METADATA_HOST", "127.0.0.1:9"), ("GCE_METADATA_IP", "127.0.0.1:9")],
            "no credentials for gs://bucket: set GOOGLE_APPLICATION_CREDENTIALS",
        ),
        (
            "inspect az://container/t",
            vec![("AZURE_STORAGE_ACCOUNT_NAME", "account"), ("AZURE_MSI_ENDPOINT", NOWHERE)],
            "no credentials for az://container: set AZURE_STORAGE_ACCOUNT_KEY",
        ),
        ("inspect az://container/t", vec![], "set AZURE_STORAGE_ACCOUNT_NAME"),
    ] {
        let output = without_credentials(home.path())
            .args(arguments.split_whitespace())
            .envs(settings)
            .output()
            .unwrap();
        let run = Run::from(output);
        assert!(run.code == 1 && run.stderr.contains(message), "{arguments}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{arguments}: {}", run.stderr);
    }
}

#[test]
fn a_profile_whose_keys_come_from_elsewhere_is_refused_unless_the_environment_has_keys() {
    let home = tempfile::tempdir().unwrap();
    let config = home.path().join("config");
    std::fs::write(&config, "[profile dev]\nsso_session = work\nregion = eu-west-1\n").unwrap();
    let inspect = |keys: &[(&str, &str)]| {
        let mut command = without_credentials(home.path());
        command.args(["inspect", "s3://bucket/t"]).env("AWS_CONFIG_FILE", &config).env("AWS_PROFILE", "dev");
        command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:9").env("EVENKEEL_STORE_TIMEOUT", "1");
        Run::from(command.envs(keys.iter().copied()).output().unwrap())
    };
    let refused = inspect(&[]);
    let next = "aws configure export-credentials --profile dev --format env";
    assert!(refused.code == 1 && refused.stderr.contains(next), "{}", refused.stderr);
    for settings in [
        [("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "b")].as_slice(),
        &[("AWS_SKIP_SIGNATURE", "true")],
    ] {
        let asked = inspect(settings);
        assert!(
            asked.stderr.contains("127.0.0.1:9") && !asked.stderr.contains("profile"),
            "{}",
            asked.stderr
        );
    }
}

/// What a virtual machine of AWS finds: its credentials, and a store with one object, which it
/// serves to nobody else.
fn virtual_machine(object: &'static [u8]) -> String {
    use std::io::{BufRead, BufReader, Write};

    const CREDENTIALS: &str = r#"{"AccessKeyId": "KEYOFMACHINE", "SecretAccessKey": "s", "Token": "t",
                                  "Expiration": "2999-01-01T00:00:00Z"}"#;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let lines = BufReader::new(connection.try_clone().unwrap()).lines();
            let head: Vec<String> =
                lines.map(std::result::Result::unwrap).take_while(|line| !line.is_empty()).collect();
            let asked = head[0].split(' ').take(2).collect::<Vec<_>>().join(" ");
            let of_machine = head.iter().any(|line| line.contains("Credential=KEYOFMACHINE/"));
            let range = head.iter().find_map(|line| {
                let line = line.to_lowercase();
                let (from, to) = line.strip_prefix("range: bytes=")?.split_once('-')?;
                Some((from.parse::<usize>().unwrap(), to.parse::<usize>().unwrap()))
            });
            let (status, more, body) = match (asked.as_str(), range) {
                ("PUT /latest/api/token", _) => ("200 OK", String::new(), b"token".as_slice()),
                ("GET /latest/meta-data/iam/security-credentials/", _) => {
                    ("200 OK", String::new(), b"role".as_slice())
                }
                ("GET /latest/meta-data/iam/security-credentials/role", _) => {
                    ("200 OK", String::new(), CREDENTIALS.as_bytes())
                }
                (_, Some((from, to))) if of_machine => {
                    let range = format!("Content-Range: bytes {from}-{to}/{}\r\n", object.len());
                    ("206 Partial Content", range, &object[from..=to])
                }
                ("HEAD /bucket/x.csv", None) if of_machine => ("200 OK", String::new(), object),
                _ => ("403 Forbidden", String::new(), b"".as_slice()),
            };
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\nETag: \"1\"\r\n\
                 Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n{more}\r\n",
                body.len()
            );
            connection.write_all(head.as_bytes()).unwrap();
            if !asked.starts_with("HEAD") {
                connection.write_all(body).unwrap();
            }
        }
    });
    url
}

#[test]
fn a_virtual_machine_reads_a_sample_from_a_store_by_its_own_credentials() {
    let home = tempfile::tempdir().unwrap();
    let url = virtual_machine(b"k,at,v\n1,2026-01-01T00:00:00Z,a\n2,2026-01-02T00:00:00Z,b\n");
    let mut command = without_credentials(home.path());
    command.envs([("AWS_METADATA_ENDPOINT", &url), ("AWS_ENDPOINT_URL", &url)]);
    command.current_dir(home.path()).args("create u --like s3://bucket/x.csv --primary-key k".split(' '));
    let created = Run::from(command.output().unwrap());
    assert_eq!(created.code, 0, "{}", created.stderr);
    for column in ["k Int64 NOT NULL", "at Timestamp", "v Utf8"] {
        assert!(created.stdout.contains(column), "{}", created.stdout);
    }
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1);
}
