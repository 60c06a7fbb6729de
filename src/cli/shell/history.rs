//! The history file.

use std::fs;
use std::io;
use std::path::PathBuf;

/// Variable with the path of the file; if it is empty, nothing is kept.
const VARIABLE: &str = "EVENKEEL_HISTORY";

/// Signs of passwords and keys, in lower case.
const SECRETS: [&str; 11] = [
    "password",
    "passwd",
    "secret",
    "token",
    "access_key",
    "accesskey",
    "api_key",
    "apikey",
    "signature=",
    "credential",
    "private key",
];

/// Whether a line may contain a password or a key, and is not kept.
pub(super) fn may_hold_secret(line: &str) -> bool {
    let lower = line.to_lowercase();
    // Also a user with a password in a URL, and the signature in URLs of Azure.
    let has_user = lower.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '\'', '"', ' ']).next().unwrap_or_default();
        authority.contains('@')
    });
    has_user
        || lower.contains("sig=")
        || SECRETS.iter().any(|secret| lower.contains(secret))
        || lower.split(|c: char| !c.is_ascii_alphanumeric()).any(is_of_secret)
}

/// Whether a word names a password, or is a key in a common format.
fn is_of_secret(word: &str) -> bool {
    matches!(word, "pw" | "pwd" | "pass" | "passphrase" | "bearer" | "sk" | "pat" | "ghp" | "xoxb")
        || (word.starts_with("akia") && word.len() == 20)
        || (word.starts_with("eyj") && word.len() > 12)
}

/// Returns the path of the file, which exists and which no other user can read; `None` if nothing
/// is kept.
///
/// # Errors
/// An error of the file system.
pub(super) fn file() -> io::Result<Option<PathBuf>> {
    let Some(path) = path() else { return Ok(None) };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(file);
    Ok(Some(path))
}

fn path() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return Some(PathBuf::from(path)).filter(|path| !path.as_os_str().is_empty());
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::home_dir().map(|home| home.join(".local/state"));
    Some(state.or_else(home)?.join("evenkeel").join("history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_passwords_and_keys_are_not_kept() {
        for secret in [
            "SELECT 'password=x'",
            "\\i https://user:pass@host/a.sql",
            "SELECT 1 -- aws_secret_access_key",
            "\\set token abc",
            "\\o az://c/f?sig=abc",
            "\\set pw hunter2",
            "SELECT 'Bearer abc'",
            "SELECT 'AKIAIOSFODNN7EXAMPLE'",
            "SELECT '-----BEGIN RSA PRIVATE KEY-----'",
            "SELECT 'sk-live-4242'",
            "SELECT 'eyJhbGciOiJIUzI1NiJ9.e30.abc'",
        ] {
            assert!(may_hold_secret(secret), "{secret}");
        }
        for plain in ["SELECT * FROM events;", "\\o s3://bucket/key", "SELECT 'a@b' FROM t;"] {
            assert!(!may_hold_secret(plain), "{plain}");
        }
    }
}
