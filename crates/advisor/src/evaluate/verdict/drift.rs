//! Comparison of two evaluations: this one and a baseline that was saved as JSON.

use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

/// Relative change above which a figure is notable.
const NOTABLE: f64 = 0.2;

/// Error for a baseline that cannot be compared with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the baseline cannot be compared with: {reason} ('evenkeel evaluate --format json' writes a baseline)"
)]
pub struct BaselineError {
    /// Reason why it cannot be compared with.
    pub reason: String,
}

/// Value of one figure in the baseline and now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Drift {
    /// Key, and the number of partitions if the figure depends on it.
    pub subject: String,
    /// Name of the figure.
    pub figure: String,
    /// Value in the baseline.
    pub before: Value,
    /// Value in this evaluation.
    pub now: Value,
    /// Whether the change deserves attention: more than a fifth, or a different word.
    pub notable: bool,
}

/// Figures of a candidate that are compared.
const OF_CANDIDATE: [&str; 3] = ["/distinct/estimate", "/null_rows", "/heavy_hitters/0/share"];
/// Figures of a placement that are compared.
const OF_PLACEMENT: [&str; 6] = [
    "/max_over_mean",
    "/cv",
    "/effective_partitions",
    "/verdict",
    "/over_time/effective_partitions/median",
    "/over_time/pattern",
];
/// Figures of a primary key that are compared.
const OF_PRIMARY_KEY: [&str; 4] =
    ["/duplicate_rows", "/conflicting_rows", "/in_order_fraction", "/layout/write_amplification"];

/// Compares an evaluation with a baseline, both as JSON. Keys that only one of them has are named.
///
/// # Errors
/// [`BaselineError`] if the baseline is not the JSON of an evaluation.
pub fn compare(baseline: &Value, now: &Value) -> Result<Vec<Drift>, BaselineError> {
    if baseline.get("candidates").is_none_or(|candidates| !candidates.is_array()) {
        return Err(BaselineError { reason: "it is not the JSON of an evaluation".to_owned() });
    }
    let common = |list: &str, key: &str| !pairs(baseline, now, list, &[key]).is_empty();
    if !common("candidates", "partition_key") && !common("primary_keys", "columns") {
        let reason = "it has no key in common with this evaluation; name the same keys in both".to_owned();
        return Err(BaselineError { reason });
    }
    let mut drifts = Vec::new();
    push(&mut drifts, "the export", "rows", baseline.get("rows"), now.get("rows"));
    for figure in ["partition_key", "primary_key", "partitions"] {
        let path = format!("/recommendation/{figure}");
        push(&mut drifts, "the recommendation", figure, baseline.pointer(&path), now.pointer(&path));
    }
    only_one_has(&mut drifts, baseline, now, "candidates", "partition_key");
    only_one_has(&mut drifts, baseline, now, "primary_keys", "columns");
    // The numbers that replace masked values differ from export to export.
    let masked = |value: &Value| value.get("masked") == Some(&Value::Bool(true));
    let masked = masked(baseline) || masked(now);
    for (before, now) in pairs(baseline, now, "candidates", &["partition_key"]) {
        let subject = format!("HASH({})", names(now.get("partition_key")));
        for figure in OF_CANDIDATE {
            push(&mut drifts, &subject, figure, before.pointer(figure), now.pointer(figure));
        }
        if let Some(fresh) = fresh_heavy_keys(before, now).filter(|_| !masked) {
            drifts.push(fresh_drift(&subject, fresh));
        }
        for (before, now) in pairs(before, now, "placements", &["function", "partitions"]) {
            let subject = format!("{subject} over {}", now.get("partitions").unwrap_or(&Value::Null));
            for figure in OF_PLACEMENT {
                push(&mut drifts, &subject, figure, before.pointer(figure), now.pointer(figure));
            }
        }
    }
    for (before, now) in pairs(baseline, now, "primary_keys", &["columns"]) {
        let subject = format!("PRIMARY KEY ({})", names(now.get("columns")));
        for figure in OF_PRIMARY_KEY {
            push(&mut drifts, &subject, figure, before.pointer(figure), now.pointer(figure));
        }
    }
    Ok(drifts)
}

/// Reports the keys that only one of the evaluations has.
fn only_one_has(drifts: &mut Vec<Drift>, before: &Value, now: &Value, list: &str, key: &str) {
    let (before, now) = (keys_of(before, list, key), keys_of(now, list, key));
    let evaluated = |is: bool| Value::from(if is { "evaluated" } else { "not evaluated" });
    let all = before.iter().chain(now.iter().filter(|key| !before.contains(key)));
    for key in all.filter(|key| before.contains(key) != now.contains(key)) {
        drifts.push(Drift {
            subject: format!("({})", names(Some(key))),
            figure: list.replace('_', " "),
            before: evaluated(before.contains(key)),
            now: evaluated(now.contains(key)),
            notable: true,
        });
    }
}

/// Returns the entries of a list; empty if there is no such list.
fn entries<'a>(value: &'a Value, list: &str) -> &'a [Value] {
    value.get(list).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns one field of every entry of a list.
fn keys_of(value: &Value, list: &str, key: &str) -> Vec<Value> {
    entries(value, list).iter().filter_map(|entry| entry.get(key).cloned()).collect()
}

/// Pairs the entries of a list, in both evaluations, that agree in some fields.
fn pairs<'a>(before: &'a Value, now: &'a Value, list: &str, same: &[&str]) -> Vec<(&'a Value, &'a Value)> {
    let agrees = |a: &Value, b: &Value| same.iter().all(|field| a.get(field) == b.get(field));
    let twin = |now: &'a Value| Some((entries(before, list).iter().find(|before| agrees(before, now))?, now));
    entries(now, list).iter().filter_map(twin).collect()
}

fn names(list: Option<&Value>) -> String {
    let names = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn push(drifts: &mut Vec<Drift>, subject: &str, figure: &str, before: Option<&Value>, now: Option<&Value>) {
    let (Some(before), Some(now)) = (before, now) else { return };
    if before.is_null() && now.is_null() {
        return;
    }
    let notable = match (before.as_f64(), now.as_f64()) {
        (Some(before), Some(now)) => (now - before).abs() > NOTABLE * before.abs(),
        _ => before != now,
    };
    drifts.push(Drift {
        subject: subject.to_owned(),
        figure: figure.trim_start_matches('/').replace('/', "."),
        before: before.clone(),
        now: now.clone(),
        notable,
    });
}

/// Returns the heaviest values that were not among the heaviest before; `None` if no value is new.
fn fresh_heavy_keys(before: &Value, now: &Value) -> Option<Vec<Value>> {
    let keys = |value: &Value| keys_of(value, "heavy_hitters", "key");
    let known = keys(before);
    // Keys that occur once are not heavy, and differ from export to export.
    let heavy = now.pointer("/heavy_hitters/0/share").and_then(Value::as_f64).unwrap_or(0.0) >= 0.01;
    let fresh: Vec<Value> = keys(now).into_iter().take(3).filter(|key| !known.contains(key)).collect();
    (heavy && !fresh.is_empty()).then_some(fresh)
}

fn fresh_drift(subject: &str, fresh: Vec<Value>) -> Drift {
    Drift {
        subject: subject.to_owned(),
        figure: "heaviest values that are new".to_owned(),
        before: Value::Null,
        now: Value::Array(fresh),
        notable: true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluation(max_over_mean: f64, heaviest: &str) -> Value {
        json!({
            "rows": 100,
            "candidates": [{
                "partition_key": ["a"],
                "distinct": {"estimate": 10},
                "heavy_hitters": [{"key": [heaviest], "share": 0.5}],
                "placements": [{"function": "ydb", "partitions": 16, "max_over_mean": max_over_mean, "verdict": "even"}],
            }],
            "primary_keys": [{"columns": ["k"], "duplicate_rows": 0}],
        })
    }

    #[test]
    fn what_changed_by_more_than_a_fifth_is_notable() {
        let drifts = compare(&evaluation(1.0, "x"), &evaluation(1.19, "x")).unwrap();
        assert!(drifts.iter().all(|drift| !drift.notable), "{drifts:?}");
        let drifts = compare(&evaluation(1.0, "x"), &evaluation(1.21, "y")).unwrap();
        let notable: Vec<&str> = drifts.iter().filter(|d| d.notable).map(|d| d.figure.as_str()).collect();
        assert_eq!(notable, ["heaviest values that are new", "max_over_mean"]);
    }

    #[test]
    fn masked_values_are_not_compared() {
        let mut masked = evaluation(1.0, "value 1");
        masked["masked"] = json!(true);
        assert!(compare(&evaluation(1.0, "x"), &masked).unwrap().iter().all(|drift| !drift.notable));
    }

    #[test]
    fn keys_of_one_side_alone_are_named_and_other_json_is_refused() {
        let mut other = evaluation(1.0, "x");
        other["candidates"][0]["partition_key"] = json!(["b"]);
        let drifts = compare(&evaluation(1.0, "x"), &other).unwrap();
        let subjects: Vec<&str> = drifts.iter().map(|drift| drift.subject.as_str()).collect();
        assert_eq!(subjects, ["the export", "(a)", "(b)", "PRIMARY KEY (k)"]);
        assert!(compare(&json!({"rows": 1}), &other).is_err());
        assert!(compare(&json!([]), &other).is_err());
    }
}
