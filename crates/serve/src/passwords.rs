//! Users and their passwords: SCRAM-SHA-256 (RFC 5802, RFC 7677).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use pgwire::api::auth::sasl::scram::{SCRAM_ITERATIONS, gen_salted_password};
use pgwire::api::auth::{AuthSource, LoginInfo, Password};
use pgwire::error::PgWireResult;
use ring::digest::{SHA256, digest};
use thiserror::Error;

use evenkeel_model::bounded::{CREDENTIALS, ReadError, quote_path, read_text};
use evenkeel_model::secret_files::{OF_OTHERS, mode_beyond};

/// Bytes of a salt.
const SALT: usize = 16;

/// Error of a password file.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the fields are named in the messages")]
pub enum PasswordError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(
        "{path}: other users can read it (mode {mode:03o}); run 'chmod 600 {shown}'",
        path = quote_path(path), shown = path.display()
    )]
    Readable { path: PathBuf, mode: u32 },
    #[error("{path}, line {line}: write USER:PASSWORD, with neither of them empty", path = quote_path(path))]
    Line { path: PathBuf, line: usize },
    #[error("{path}, line {line}: the user is named twice", path = quote_path(path))]
    Repeated { path: PathBuf, line: usize },
    #[error("{path}: there is no user; write a line USER:PASSWORD for each", path = quote_path(path))]
    Empty { path: PathBuf },
}

/// Salted passwords of users. The passwords themselves are not kept.
#[derive(Clone)]
pub struct Passwords {
    users: BTreeMap<String, (Vec<u8>, Vec<u8>)>,
    /// Source of salts for unknown names, which are indistinguishable from those of users.
    decoy: [u8; SALT],
}

impl std::fmt::Debug for Passwords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Passwords").field("users", &self.users.len()).finish_non_exhaustive()
    }
}

impl Passwords {
    /// Reads a file with a line `USER:PASSWORD` for each user. Empty lines and lines that begin
    /// with `#` are skipped; a password may have colons.
    ///
    /// # Errors
    /// [`PasswordError`] if it cannot be read, can be read by others, or has no user.
    pub fn read(path: &Path) -> Result<Self, PasswordError> {
        if let Some(mode) = mode_beyond(path, OF_OTHERS) {
            return Err(PasswordError::Readable { path: path.to_owned(), mode });
        }
        let text = read_text(path, CREDENTIALS)?;
        let mut users = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let pair =
                line.split_once(':').filter(|(user, password)| !user.is_empty() && !password.is_empty());
            let Some((user, password)) = pair else {
                return Err(PasswordError::Line { path: path.to_owned(), line: number });
            };
            let salt = rand::random::<[u8; SALT]>().to_vec();
            let salted = gen_salted_password(password, &salt, SCRAM_ITERATIONS);
            if users.insert(user.to_owned(), (salt, salted)).is_some() {
                return Err(PasswordError::Repeated { path: path.to_owned(), line: number });
            }
        }
        if users.is_empty() {
            return Err(PasswordError::Empty { path: path.to_owned() });
        }
        Ok(Self { users, decoy: rand::random() })
    }
}

#[async_trait]
impl AuthSource for Passwords {
    /// For an unknown name, returns a random password, so that the exchange does not reveal whether
    /// the user exists.
    async fn get_password(&self, login: &LoginInfo) -> PgWireResult<Password> {
        let user = login.user().unwrap_or_default();
        if let Some((salt, salted)) = self.users.get(user) {
            return Ok(Password::new(Some(salt.clone()), salted.clone()));
        }
        let mixed = [self.decoy.as_slice(), user.as_bytes()].concat();
        let salt = digest(&SHA256, &mixed).as_ref().iter().take(SALT).copied().collect();
        Ok(Password::new(Some(salt), rand::random::<[u8; 32]>().to_vec()))
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("users");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn only_a_file_of_its_owner_is_read() {
        let (_folder, path) = file("ada:secret", 0o644);
        assert!(matches!(Passwords::read(&path), Err(PasswordError::Readable { mode: 0o644, .. })));
        let (_folder, path) = file("# users\n\nada:se:cret\nbob:x\n", 0o600);
        assert_eq!(Passwords::read(&path).unwrap().users.len(), 2);
    }

    #[test]
    fn lines_that_are_not_users_are_refused() {
        for (text, line) in [("ada", 1), ("ada:x\n:y", 2), ("ada:", 1)] {
            let (_folder, path) = file(text, 0o600);
            let refused = Passwords::read(&path).unwrap_err();
            assert!(matches!(refused, PasswordError::Line { line: actual, .. } if actual == line), "{text}");
        }
        let (_folder, path) = file("ada:x\nada:y", 0o600);
        assert!(matches!(Passwords::read(&path), Err(PasswordError::Repeated { line: 2, .. })));
        let (_folder, path) = file("# nobody\n", 0o600);
        assert!(matches!(Passwords::read(&path), Err(PasswordError::Empty { .. })));
        assert!(matches!(Passwords::read(Path::new("/none")), Err(PasswordError::Read(_))));
    }

    #[tokio::test]
    async fn a_name_that_is_no_user_looks_like_one() {
        let (_folder, path) = file("ada:secret", 0o600);
        let passwords = Passwords::read(&path).unwrap();
        let salt = async |user: &str| {
            let login = LoginInfo::new(Some(user), None, String::new());
            passwords.get_password(&login).await.unwrap().salt().unwrap().to_vec()
        };
        assert_eq!(salt("eve").await, salt("eve").await);
        assert_ne!(salt("eve").await, salt("mallory").await);
        assert_eq!(salt("eve").await.len(), salt("ada").await.len());
    }
}
