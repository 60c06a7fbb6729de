//! The shared files of the AWS tools: `~/.aws/credentials` and `~/.aws/config`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::error::StorageError;
use evenkeel_model::bounded::{CREDENTIALS, read_text};

/// Settings of one profile. The credentials file takes precedence over the config file.
pub(super) struct Profile {
    name: String,
    /// Whether `AWS_PROFILE` names the profile.
    named: bool,
    values: HashMap<String, String>,
}

/// Settings with which the AWS tools obtain the keys of a profile from elsewhere.
const KEYS_FROM_ELSEWHERE: [&str; 6] = [
    "role_arn",
    "web_identity_token_file",
    "sso_session",
    "sso_start_url",
    "login_session",
    "credential_process",
];

impl Profile {
    /// Returns the profile that `AWS_PROFILE` names, or `default`. A file that does not exist has
    /// no settings.
    ///
    /// # Errors
    /// [`StorageError::Profile`] if `AWS_PROFILE` names a profile that neither file has, or a file
    /// cannot be read.
    pub(super) fn from_environment() -> Result<Self, StorageError> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let file = |variable: &str, name: &str| {
            let named = std::env::var_os(variable).map(PathBuf::from);
            named.or_else(|| Some(home.as_ref()?.join(".aws").join(name)))
        };
        let credentials = file("AWS_SHARED_CREDENTIALS_FILE", "credentials");
        let config = file("AWS_CONFIG_FILE", "config");
        let named = std::env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
        Self::read(named.as_deref(), credentials.as_deref(), config.as_deref())
    }

    fn read(
        named: Option<&str>,
        credentials: Option<&Path>,
        config: Option<&Path>,
    ) -> Result<Self, StorageError> {
        let name = named.unwrap_or("default");
        let of_credentials = section(&read_file(credentials)?, &[name.to_owned()]);
        let of_config = section(&read_file(config)?, &[format!("profile {name}"), name.to_owned()]);
        if let (Some(name), None, None) = (named, &of_credentials, &of_config) {
            let files = [credentials, config].into_iter().flatten().map(|path| path.display().to_string());
            let reason =
                format!("there is no profile '{name}' in {}", files.collect::<Vec<_>>().join(" or "));
            return Err(StorageError::Profile { reason });
        }
        let mut values = of_config.unwrap_or_default();
        values.extend(of_credentials.unwrap_or_default());
        Ok(Self { name: name.to_owned(), named: named.is_some(), values })
    }

    /// Whether `AWS_PROFILE` names the profile; false if the variable is unset or empty.
    pub(super) fn is_named(&self) -> bool {
        self.named
    }

    /// Refuses a profile that contains no keys and obtains them in a way not supported here.
    ///
    /// # Errors
    /// [`StorageError::Profile`], which names the alternative.
    pub(super) fn check_keys(&self) -> Result<(), StorageError> {
        if self.get("aws_access_key_id").is_some() {
            return Ok(());
        }
        let Some(setting) = KEYS_FROM_ELSEWHERE.into_iter().find(|setting| self.get(setting).is_some())
        else {
            return Ok(());
        };
        let name = &self.name;
        let reason = format!(
            "profile '{name}' gets its keys by {setting}, which only the tools of AWS support. Let them \
                put the keys into the environment: \
             eval \"$(aws configure export-credentials --profile {name} --format env)\""
        );
        Err(StorageError::Profile { reason })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }
}

fn read_file(path: Option<&Path>) -> Result<String, StorageError> {
    let Some(path) = path else { return Ok(String::new()) };
    match read_text(path, CREDENTIALS) {
        Ok(text) => Ok(text),
        Err(error) if error.is_not_found() => Ok(String::new()),
        Err(error) => Err(StorageError::Profile { reason: error.to_string() }),
    }
}

/// Returns the settings below the first heading that is one of `names`. Ignores indented lines,
/// which belong to the settings of individual services.
fn section(text: &str, names: &[String]) -> Option<HashMap<String, String>> {
    let heading = |line: &str| Some(line.strip_prefix('[')?.split_once(']')?.0.trim().to_owned());
    let mut lines = text.lines().skip_while(|line| !heading(line).is_some_and(|name| names.contains(&name)));
    lines.next()?;
    let settings = lines.take_while(|line| heading(line).is_none());
    let settings = settings.filter(|line| !line.starts_with(['#', ';', ' ', '\t']));
    Some(
        settings
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_come_before_settings_and_other_profiles_say_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (credentials, config) = (folder.path().join("credentials"), folder.path().join("config"));
        std::fs::write(
            &credentials,
            "# keys\n[default]\naws_access_key_id = A\n\n[other]\naws_access_key_id=B\nregion = x\n",
        )
        .unwrap();
        std::fs::write(&config, "[default]\nregion = r\ns3 =\n  max_concurrent_requests = 3\n[profile other]\nregion = s\nendpoint_url = http://h\n").unwrap();
        let read = |named| Profile::read(named, Some(&credentials), Some(&config));
        let profile = read(None).unwrap();
        assert_eq!((profile.get("aws_access_key_id"), profile.get("region")), (Some("A"), Some("r")));
        assert_eq!(profile.get("max_concurrent_requests"), None);
        let other = read(Some("other")).unwrap();
        assert_eq!((other.get("aws_access_key_id"), other.get("region")), (Some("B"), Some("x")));
        assert_eq!(other.get("endpoint_url"), Some("http://h"));
        assert!(read(Some("nobody")).err().unwrap().to_string().contains("no profile 'nobody'"));
        assert!(profile.check_keys().is_ok() && other.check_keys().is_ok());
        let absent = folder.path().join("absent");
        assert!(Profile::read(None, Some(&absent), None).unwrap().get("region").is_none());
    }

    #[test]
    fn a_profile_with_keys_from_elsewhere_is_refused_with_the_next_step() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config");
        let read = |named, setting: &str| {
            let heading = if named == Some("dev") { "profile dev" } else { "default" };
            std::fs::write(&config, format!("[{heading}]\nregion = r\n{setting}\n")).unwrap();
            Profile::read(named, None, Some(&config)).unwrap()
        };
        for setting in KEYS_FROM_ELSEWHERE {
            let dev = read(Some("dev"), &format!("{setting} = x"));
            let message = dev.check_keys().unwrap_err().to_string();
            assert!(message.contains(&format!("profile 'dev' gets its keys by {setting}")), "{message}");
            assert!(
                message.contains("aws configure export-credentials --profile dev --format env"),
                "{message}"
            );
            let keys = format!("{setting} = x\naws_access_key_id = A");
            assert!(read(Some("dev"), &keys).check_keys().is_ok());
        }
        let unnamed = read(None, "sso_session = x");
        assert!(!unnamed.is_named());
        assert!(unnamed.check_keys().unwrap_err().to_string().contains("--profile default"));
        assert!(read(None, "source_profile = x").check_keys().is_ok());
    }
}
