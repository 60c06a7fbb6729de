//! Paths without the values that the names of folders hold: `tenant=acme/part-0.parquet`.

/// Stands for the value of a folder.
const MASKED: &str = "(masked)";

/// Replaces the values of folders such as `tenant=acme` in a path.
#[must_use]
pub fn masked_path(path: &str) -> String {
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    let folders = parts.len().saturating_sub(1);
    for folder in parts.iter_mut().take(folders) {
        if let Some((name, _)) = folder.split_once('=').filter(|(name, _)| !name.is_empty()) {
            *folder = format!("{name}={MASKED}");
        }
    }
    parts.join("/")
}

/// Replaces the values of folders in all paths of a text. Values with blanks are recognized in
/// quotes only, unless `with_blanks` is set, which may mask other parts of the text.
#[must_use]
pub fn masked_paths(text: &str, with_blanks: bool) -> String {
    let mut masked = String::with_capacity(text.len());
    let (mut rest, mut is_quoted) = (text, false);
    while let Some(at) = rest.find('=') {
        let (before, after) = rest.split_at(at);
        masked.push_str(before);
        masked.push('=');
        is_quoted ^= before.matches('\'').count() % 2 == 1;
        let value = after.get(1..).unwrap_or_default();
        let ends = |c: char| {
            matches!(c, '/' | '\n' | '\'' | '"' | '=') || (c.is_whitespace() && !with_blanks && !is_quoted)
        };
        let end = value.find(ends).filter(|end| value.get(*end..).is_some_and(|rest| rest.starts_with('/')));
        let has_name = before.ends_with(|c: char| !c.is_whitespace() && !"/'\"".contains(c));
        rest = match end.filter(|end| has_name && *end > 0) {
            Some(end) => {
                masked.push_str(MASKED);
                value.get(end..).unwrap_or_default()
            }
            None => value,
        };
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_folders_are_masked_and_those_of_files_stay() {
        for (path, masked) in [
            ("m/tenant=acme/day=2026-01-01/f.csv", "m/tenant=(masked)/day=(masked)/f.csv"),
            ("tenant=acme corp/f=1.csv", "tenant=(masked)/f=1.csv"),
            ("a/b.csv", "a/b.csv"),
            ("s3://bucket/t=x/f", "s3://bucket/t=(masked)/f"),
            ("=x/f", "=x/f"),
        ] {
            assert_eq!(masked_path(path), masked);
        }
    }

    #[test]
    fn paths_within_commands_and_messages_are_masked() {
        for (text, with_blanks, masked) in [
            (
                "evenkeel create t --like m/t=acme/f.csv --column a=b c/d",
                false,
                "evenkeel create t --like m/t=(masked)/f.csv --column a=b c/d",
            ),
            (
                "create --like 'm/t=a b/u=c/f' x=1 /y",
                false,
                "create --like 'm/t=(masked)/u=(masked)/f' x=1 /y",
            ),
            ("m/t=a b/f.csv, line 3: no", true, "m/t=(masked)/f.csv, line 3: no"),
            ("x = 3, and nothing else", true, "x = 3, and nothing else"),
            ("'key=value'", false, "'key=value'"),
        ] {
            assert_eq!(masked_paths(text, with_blanks), masked);
        }
    }
}
