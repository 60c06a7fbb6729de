//! Real alternatives to the recommended partition key: when to choose each, and its price.

use crate::evaluate::candidates::workload::{StatementReport, listed};
use crate::evaluate::figures::recommendation::{Alternative, AlternativeKind, RankedKey};
use crate::evaluate::roles::Role;
use crate::evaluate::verdict::knowledge::Knowledge;
use evenkeel_model::units::{ByteRate, PartitionCount};
use evenkeel_stats::skew::Verdict;

/// Maximum number of alternatives, besides the current key.
const MOST: usize = 3;
/// Multiple of the recommended key's rate above which another key is called more even.
const MORE_EVEN: f64 = 1.2;
/// Difference in cost below which the current key is as good.
const AS_GOOD: f64 = 0.03;

/// Recommended key, with which alternatives are compared.
pub(super) struct Recommended<'a> {
    pub(super) key: &'a RankedKey,
    pub(super) partitions: PartitionCount,
    pub(super) statements: &'a [StatementReport],
    pub(super) knowledge: &'a Knowledge<'a>,
}

impl Recommended<'_> {
    /// Finds the alternatives among the ranked keys: the current key, keys that answer statements
    /// from fewer partitions, another entity, one without NULL, the recommended key with a second
    /// column, and the most even one.
    pub(super) fn alternatives(&self, ranking: &[RankedKey], current: Option<&[String]>) -> Vec<Alternative> {
        let others: Vec<&RankedKey> = ranking
            .iter()
            .filter(|key| key.partition_key != self.key.partition_key && key.obstacle.is_none())
            .collect();
        let mut alternatives: Vec<Alternative> = Vec::new();
        let mut add = |kind: AlternativeKind, key: &RankedKey, when: String| {
            if !alternatives.iter().any(|known| known.partition_key == key.partition_key) {
                let (partition_key, price) = (key.partition_key.clone(), self.price(key));
                alternatives.push(Alternative { kind, partition_key, when, price });
            }
        };
        let now = current.and_then(|current| others.iter().find(|key| key.partition_key == current));
        if let Some(now) = now {
            add(AlternativeKind::Current, now, self.price_of_current(now));
        }
        for key in &others {
            let names = self.answered_better_by(key);
            if !names.is_empty() {
                let when = format!("if {} matter most: fewer partitions answer them", listed(&names));
                add(AlternativeKind::Statements, key, when);
            }
        }
        let entity = others.iter().find(|key| key.qualifies && self.is_entity(key));
        if let Some(entity) = entity {
            let column = entity.partition_key.join(", ");
            add(AlternativeKind::Entity, entity, format!("if most reads name one {column}"));
        }
        let complete = others.iter().find(|key| key.qualifies && key.null_rows == 0);
        if let Some(complete) = complete.filter(|_| self.key.null_rows > 0) {
            let own = self.key.partition_key.join(", ");
            add(AlternativeKind::Complete, complete, format!("if rows without {own} cannot be given one"));
        }
        let is_split = |key: &&&RankedKey| {
            key.partition_key.len() > self.key.partition_key.len()
                && !key.partition_key.iter().any(|column| self.is_amount(column))
                && self.key.partition_key.iter().all(|column| key.partition_key.contains(column))
        };
        if self.key.verdict != Verdict::Even
            && self.key.verdict != Verdict::FewRows
            && let Some(split) = others.iter().filter(is_split).find(|key| key.qualifies)
        {
            let own = self.key.partition_key.join(", ");
            add(AlternativeKind::Split, split, format!("if one {own} grows too large for a partition"));
        }
        let fastest = others.iter().max_by(|a, b| a.sustained_rate.total_cmp(&b.sustained_rate));
        if let Some(fastest) = fastest.filter(|key| key.sustained_rate > MORE_EVEN * self.key.sustained_rate)
        {
            add(AlternativeKind::MostEven, fastest, "if inserts matter more than reads".to_owned());
        }
        let has_current = usize::from(now.is_some());
        alternatives.truncate(MOST + has_current);
        alternatives
    }

    /// Whether a column may hold amounts, which no one would hash.
    fn is_amount(&self, column: &str) -> bool {
        self.knowledge.report(column).is_some_and(|report| report.is_vague || report.role == Role::Measure)
    }

    fn is_entity(&self, key: &RankedKey) -> bool {
        let [only] = key.partition_key.as_slice() else { return false };
        let mut roles = self.knowledge.roles.iter();
        roles.any(|report| report.column == *only && report.role == Role::Entity && !report.is_doubtful())
    }

    /// Names of the statements that fewer partitions answer under `key`.
    fn answered_better_by(&self, key: &RankedKey) -> Vec<String> {
        let reach = |statement: &StatementReport, key: &RankedKey| {
            statement.under(&key.partition_key).map(|visit| visit.reach)
        };
        let better =
            self.statements.iter().filter(|statement| reach(statement, key) < reach(statement, self.key));
        better.map(|statement| statement.statement.clone()).collect()
    }

    fn price_of_current(&self, now: &RankedKey) -> String {
        if now.qualifies && now.cost <= self.key.cost + AS_GOOD {
            "the key that the table has now: keep it, the recommended one is hardly better".to_owned()
        } else if now.qualifies {
            "the key that the table has now: it is even enough, so change it only for the reads".to_owned()
        } else {
            format!(
                "the key that the table has now: {}, so changing it is worth the rewrite",
                now.verdict.word()
            )
        }
    }

    /// Returns the cost of a key: the partitions that a read visits, and the rate of inserts.
    fn price(&self, key: &RankedKey) -> String {
        let own = self.key.partition_key.join(" and ");
        let reads = match (key.mean_partitions_read, self.key.mean_partitions_read) {
            (Some(read), Some(own)) => {
                let (read, own) = (format!("{read:.1}"), format!("{own:.1}"));
                match read == own {
                    true => format!("a statement visits {read} partitions on average under either key"),
                    false => format!("a statement visits {read} partitions on average instead of {own}"),
                }
            }
            _ if key.partition_key.iter().all(|column| self.key.partition_key.contains(column)) => {
                format!("a read of one {} visits one partition", key.partition_key.join(" and "))
            }
            _ => format!("a read of one {own} visits all {} partitions instead of one", self.partitions),
        };
        let (rate, own) =
            (ByteRate(key.sustained_rate).to_string(), ByteRate(self.key.sustained_rate).to_string());
        match rate == own {
            true => format!("{reads}, at the same rate of inserts"),
            false => format!("{reads}, and it sustains {rate} of inserts instead of {own}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::roles::RoleReport;

    fn key(columns: &[&str], cost: f64, rate: f64, verdict: Verdict) -> RankedKey {
        RankedKey {
            partition_key: columns.iter().map(|column| (*column).to_owned()).collect(),
            qualifies: rate >= 10.0,
            cost,
            verdict,
            sustained_rate: rate,
            rate_if_even: 16.0,
            mean_partitions_read: None,
            statements_on_all: 0,
            mean_key_bytes: 8.0,
            null_rows: 0,
            obstacle: None,
        }
    }

    fn roles(columns: &[(&str, Role)]) -> Vec<RoleReport> {
        let role = |(column, role): &(&str, Role)| RoleReport {
            column: (*column).to_owned(),
            role: *role,
            evidence: Vec::new(),
            copy_of: None,
            shares_values_with: None,
            determines: Vec::new(),
            counts_within: Vec::new(),
            holds_parts: false,
            is_of_rows: false,
            is_label: false,
            is_kind: false,
            is_obscure: false,
            recurs: false,
            is_contact: false,
            is_reference: false,
            is_vague: false,
            is_address: false,
            is_page: false,
            is_member: false,
            times: None,
            null_share: 0.0,
            given: false,
        };
        columns.iter().map(role).collect()
    }

    fn kinds_and_keys(ranking: &[RankedKey], current: Option<&[String]>) -> Vec<(AlternativeKind, String)> {
        let roles = roles(&[("user", Role::Entity), ("ad", Role::Entity), ("at", Role::Time)]);
        let knowledge =
            Knowledge { roles: &roles, natural_key: &[], identifying: &[], joined: &[], of_events: false };
        let recommended = Recommended {
            key: &ranking[0],
            partitions: PartitionCount::new(16).unwrap(),
            statements: &[],
            knowledge: &knowledge,
        };
        let alternatives = recommended.alternatives(ranking, current);
        assert!(
            alternatives
                .iter()
                .all(|alternative| !alternative.price.is_empty() && !alternative.when.is_empty())
        );
        alternatives
            .into_iter()
            .map(|alternative| (alternative.kind, alternative.partition_key.join(",")))
            .collect()
    }

    #[test]
    fn another_entity_and_the_most_even_key_are_offered_once_each() {
        let ranking = [
            key(&["user"], 0.4, 12.0, Verdict::Even),
            key(&["ad"], 0.5, 11.0, Verdict::Even),
            key(&["user", "at"], 1.3, 15.9, Verdict::Even),
            key(&["ad", "at"], 1.3, 15.6, Verdict::Even),
        ];
        assert_eq!(
            kinds_and_keys(&ranking, None),
            [(AlternativeKind::Entity, "ad".to_owned()), (AlternativeKind::MostEven, "user,at".to_owned()),]
        );
        let current = ["ad".to_owned()];
        assert_eq!(kinds_and_keys(&ranking, Some(&current))[0], (AlternativeKind::Current, "ad".to_owned()));
    }

    #[test]
    fn a_heavy_key_is_offered_with_a_second_column_and_an_even_one_is_not() {
        let ranking =
            [key(&["user"], 0.4, 12.0, Verdict::HeavyKeys), key(&["user", "ad"], 0.9, 12.1, Verdict::Even)];
        assert_eq!(kinds_and_keys(&ranking, None), [(AlternativeKind::Split, "user,ad".to_owned())]);
        let even = [key(&["user"], 0.4, 12.0, Verdict::Even), key(&["user", "ad"], 0.9, 12.1, Verdict::Even)];
        assert_eq!(kinds_and_keys(&even, None), []);
    }
}
