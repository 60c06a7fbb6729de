//! Expected cost of a partition key: the share of the partitions that statements visit.
//!
//! Without statements, a prior derived from the roles of the columns replaces them: most reads name
//! one entity, some one row, the others a range of time or everything. An entity is more likely to
//! be named if it has many values that repeat, and its own attributes.

use crate::evaluate::figures::evaluation::Evaluation;
use crate::evaluate::figures::partition_key::PartitionKeyReport;
use crate::evaluate::options::JoinedColumn;
use crate::evaluate::roles::names::{
    denotes_change, denotes_creation, denotes_log, denotes_period, is_bare_id, is_bare_number, is_later,
};
use crate::evaluate::roles::{Role, RoleReport, is_identifier};
use crate::evaluate::verdict::entity_weights::EntityWeights;
use crate::evaluate::verdict::knowledge::Knowledge;
use evenkeel_model::units::PartitionCount;

/// Share of the reads that name one entity, if there is one that has rows to gather.
const ENTITY_READS: f64 = 0.55;
/// Share of the reads that name one row.
const ROW_READS: f64 = 0.15;
/// Share of the reads of a range of time.
const TIME_READS: f64 = 0.15;
/// Share of reads that scan everything.
const SCANS: f64 = 0.15;
/// Share of the reads that join another table, if there is one.
const JOINS: f64 = 0.4;
/// Share of the reads of an entity that name a second one.
const SECOND_ENTITY: f64 = 0.25;
/// Cost of each further column, which a filter must fix before it can prune.
const FURTHER_COLUMN: f64 = 0.02;
/// Cost of a column that reads rarely fix, such as a time.
const RARELY_FIXED: f64 = 0.3;
/// Weight of the prior if statements are given.
const PRIOR_BESIDE_STATEMENTS: f64 = 0.05;

/// Share of the reads of an entity that remain if rows are things with their own ids and names.
const OF_THINGS: f64 = 0.35;
/// Number of row identifiers above which the rows of an export are things, whatever their times.
const IDS_OF_THINGS: usize = 3;
/// Minimum weight of an entity whose rows are its parts.
const OF_PARTS: f64 = 0.25;

/// Reads that a table probably serves.
#[derive(Debug)]
pub(crate) struct Workload<'a> {
    knowledge: &'a Knowledge<'a>,
    /// Entities, each given by its identifying columns, with the share of the entity reads that
    /// name them.
    entities: Vec<(Vec<String>, f64)>,
    /// Share of the reads that name one entity: smaller if no column is a strong entity; the rest
    /// then name a row.
    entity_reads: f64,
    /// Columns with codes of tenants, each with the column of the tenant.
    codes: Vec<(String, String)>,
    /// Columns by which other tables are joined, each with its share of the joins.
    joins: Vec<(String, f64)>,
    partitions: f64,
}

/// Share of all joins that use each column.
fn shares(joined: &[JoinedColumn]) -> Vec<(String, f64)> {
    let sum: f64 = joined.iter().map(|join| join.weight).sum();
    let mut shares: Vec<(String, f64)> = Vec::new();
    for join in joined {
        let share = join.weight / sum.max(f64::MIN_POSITIVE);
        match shares.iter_mut().find(|(column, _)| *column == join.column) {
            Some((_, known)) => *known += share,
            None => shares.push((join.column.clone(), share)),
        }
    }
    shares
}

impl<'a> Workload<'a> {
    /// Derives the reads from the roles of columns, and from the values that were counted.
    /// `qualifies` says whether a key is even enough.
    pub(crate) fn expected(
        knowledge: &'a Knowledge<'a>,
        evaluation: &Evaluation,
        partitions: PartitionCount,
        qualifies: impl Fn(&PartitionKeyReport) -> bool,
    ) -> Self {
        let weights = EntityWeights::new(knowledge, evaluation, partitions, qualifies);
        // How evenly an entity spreads decides whether it can place rows, not whether it is read.
        // Rows with their own ids are things themselves, and are read by these ids.
        let ids: Vec<&RoleReport> =
            knowledge.roles.iter().filter(|report| report.role == Role::RowId).collect();
        let has_lines = knowledge.roles.iter().any(|report| report.role == Role::LineNumber);
        let is_of_things = match ids.as_slice() {
            [] => false,
            // An assigned row number says little, and rows that other columns also identify are
            // parts of the things that those columns identify.
            [only] => {
                !knowledge.has_events()
                    && !knowledge.roles.iter().any(|report| report.is_member)
                    && !has_lines
                    && knowledge.natural_key.is_empty()
                    && !is_bare_id(&only.column)
                    && !is_bare_number(&only.column)
                    && !denotes_log(&only.column)
            }
            [_, _, ..] => true,
        };
        // Without an event, rows that have names are things, too, unless they are parts of one.
        let has_event = knowledge
            .roles
            .iter()
            .any(|report| report.role == Role::Time && !is_later(&report.column) && report.copy_of.is_none());
        let has_wholes =
            knowledge.roles.iter().any(|report| report.holds_parts && weights.weight(report) > OF_PARTS);
        let has_many_ids = ids.len() >= IDS_OF_THINGS;
        // Records of events that are changed later are found by their id. The times of creation and
        // change, which many programs add to every table, tell nothing.
        let times = || knowledge.roles.iter().filter(|report| report.role == Role::Time);
        let is_changed = times().any(|report| denotes_change(&report.column) && report.copy_of.is_none());
        let has_own_event = times().any(|report| {
            !denotes_change(&report.column) && !denotes_creation(&report.column) && report.copy_of.is_none()
        });
        let are_records = is_changed
            && has_own_event
            && ids.iter().any(|id| is_bare_id(&id.column) || id.is_of_rows)
            && !knowledge.of_events
            && !has_lines;
        let is_of_things = is_of_things || are_records;
        let of_things = if is_of_things && (!has_event || has_many_ids || are_records) && !has_wholes {
            OF_THINGS
        } else {
            1.0
        };
        let spread = |report: &RoleReport| if is_of_things { 1.0 } else { weights.spread(report) };
        let codes = weights.codes();
        let mut entities = weights.things(&codes);
        let subject = weights.subject;
        if let Some(subject) = subject {
            entities
                .push((subject.partition_key.clone(), weights.usable(subject) * weights.spreads(subject)));
        }
        entities.retain(|(_, weight)| *weight > 0.0);
        let strongest = knowledge
            .roles
            .iter()
            .map(|report| weights.weight(report) / spread(report).max(f64::MIN_POSITIVE))
            .fold(subject.map_or(0.0, |subject| weights.usable(subject)), f64::max);
        let sum: f64 = entities.iter().map(|(_, weight)| weight).sum();
        entities.iter_mut().for_each(|(_, weight)| *weight /= sum.max(f64::MIN_POSITIVE));
        Self {
            knowledge,
            entities,
            entity_reads: ENTITY_READS * of_things * strongest.min(1.0).sqrt(),
            codes,
            joins: shares(knowledge.joined),
            partitions: partitions.len() as f64,
        }
    }

    /// Whether the columns of the key are those of one thing.
    pub(crate) fn is_thing(&self, key: &[String]) -> bool {
        self.entities.iter().any(|(entity, _)| entity == key)
    }

    /// Whether the key is one thing that reads name, and has no kind in it.
    pub(crate) fn is_entity(&self, key: &[String]) -> bool {
        self.is_thing(key) && key.iter().all(|column| self.knowledge.role(column) == Some(Role::Entity))
    }

    /// Whether experts would not hash the key: it has a measure or a text, or only times, alone or
    /// with columns of a few values.
    pub(crate) fn is_makeshift(&self, key: &[String]) -> bool {
        let roles: Vec<Option<Role>> = key.iter().map(|column| self.knowledge.role(column)).collect();
        let bad = |role: &Option<Role>| matches!(role, Some(Role::Measure | Role::Text | Role::Constant));
        let is_count = |role: &Option<Role>| matches!(role, Some(Role::Time | Role::LineNumber));
        let is_vague = |role: &Option<Role>| matches!(role, Some(Role::Time | Role::Dimension));
        let subject: Vec<String> =
            key.iter().filter(|column| self.knowledge.role(column) != Some(Role::Time)).cloned().collect();
        roles.iter().any(bad)
            || roles.iter().all(is_count)
            || (self.knowledge.has_time(key)
                && roles.iter().all(is_vague)
                && !self.knowledge.is_thing(&subject))
    }

    /// Expected share of the partitions that a read visits. `observed` is the share for the given
    /// statements.
    pub(crate) fn cost(&self, key: &[String], max_over_mean: f64, observed: Option<f64>) -> f64 {
        let further = FURTHER_COLUMN * (key.len().max(1) - 1) as f64 + RARELY_FIXED * self.rarely_fixed(key);
        let scans = SCANS * max_over_mean.min(3.0);
        let row_reads = ENTITY_READS + ROW_READS - self.entity_reads;
        let prior =
            self.entity_reads * self.entity_reads(key) + row_reads * self.row_reads(key) + TIME_READS + scans;
        let reads = match observed {
            Some(observed) => observed + PRIOR_BESIDE_STATEMENTS * (prior + further),
            None => prior + further,
        };
        if self.joins.is_empty() { reads } else { (1.0 - JOINS) * reads + JOINS * self.join_reads(key) }
    }

    /// Share of the partitions that a row of another table finds its rows in.
    fn join_reads(&self, key: &[String]) -> f64 {
        self.joins.iter().map(|(column, share)| share * self.visits(key, &[column])).sum()
    }

    /// Number of columns that reads rarely fix to one value: times, measures, text, and positions
    /// within another column of the key.
    pub(crate) fn rarely_fixed(&self, key: &[String]) -> f64 {
        let is_position = |column: &String| {
            let within = self.knowledge.report(column).map(|report| report.counts_within.as_slice());
            within.is_some_and(|within| within.iter().any(|whole| key.contains(whole)))
        };
        let rarely = |column: &&String| match self.knowledge.role(column) {
            Some(Role::Time | Role::LineNumber | Role::Measure | Role::Text) => true,
            Some(Role::Dimension) => denotes_period(column) || is_position(column),
            _ => false,
        };
        key.iter().filter(rarely).count() as f64
    }

    /// Share of the partitions that a read visits which fixes `fixed`.
    fn visits(&self, key: &[String], fixed: &[&String]) -> f64 {
        if key.iter().all(|column| fixed.contains(&column)) { 1.0 / self.partitions } else { 1.0 }
    }

    fn entity_reads(&self, key: &[String]) -> f64 {
        if self.entities.is_empty() {
            return self.row_reads(key);
        }
        // Every tenant has a customer 1, so such codes alone gather rows with nothing in common.
        if self.codes.iter().any(|(code, tenant)| key.contains(code) && !key.contains(tenant)) {
            return 1.0;
        }
        let one = 1.0 / self.partitions;
        let has_all =
            |entity: &[String], columns: &[&String]| columns.iter().all(|column| entity.contains(column));
        // With many columns, nearly all entities share no column with the key; these have the same
        // cost.
        let (near, far): (Vec<_>, Vec<_>) =
            self.entities.iter().partition(|(entity, _)| key.iter().any(|column| entity.contains(column)));
        let weight_of = |columns: &[&String]| -> f64 {
            near.iter().filter(|(other, _)| has_all(other, columns)).map(|(_, weight)| weight).sum()
        };
        // A second entity with the columns that the first one lacks leads to one partition.
        let reads = |weight: f64, missing_weight: f64| {
            let complement = (missing_weight / (1.0 - weight).max(f64::EPSILON)).min(1.0);
            weight * (1.0 - SECOND_ENTITY * complement * (1.0 - one))
        };
        let of_key = weight_of(&key.iter().collect::<Vec<_>>());
        let far: f64 = far.iter().map(|(_, weight)| reads(*weight, of_key)).sum();
        let near = near.iter().map(|(entity, weight)| {
            let missing: Vec<&String> = key.iter().filter(|column| !entity.contains(column)).collect();
            if missing.is_empty() { weight * one } else { reads(*weight, weight_of(&missing)) }
        });
        far + near.sum::<f64>()
    }

    /// Reads of one row name its id; half of them, or all without an id, name its natural key.
    fn row_reads(&self, key: &[String]) -> f64 {
        let natural: Vec<&String> = self.knowledge.natural_key.iter().collect();
        // If there is a natural key, a column that happens to be unique, such as a phone number, is
        // named no more often than others. No read names a place in the log of a database.
        let is_named = |report: &&RoleReport| {
            report.role == Role::RowId
                && (natural.is_empty() || is_identifier(&report.column))
                && !denotes_log(&report.column)
        };
        let ids: Vec<&String> =
            self.knowledge.roles.iter().filter(is_named).map(|report| &report.column).collect();
        let by_natural = self.visits(key, &natural);
        if ids.is_empty() {
            return by_natural;
        }
        let visits = |entity: &[String]| self.visits(key, &entity.iter().collect::<Vec<_>>());
        let parents: f64 = self.entities.iter().map(|(entity, weight)| weight * visits(entity)).sum();
        let by_id = self.visits(key, &ids);
        0.5 * by_id + 0.5 * by_id.min(if self.entities.is_empty() { by_natural } else { parents })
    }
}

#[cfg(test)]
#[path = "workload_cost_tests.rs"]
mod tests;
