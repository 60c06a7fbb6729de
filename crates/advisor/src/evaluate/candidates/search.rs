//! Search for candidates in rows from all over the inputs, each with the reason why it was kept or
//! dropped. The pass over all rows confirms or withdraws what it can.

use std::collections::HashSet;

use ahash::AHashSet;
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::concat;
use serde::Serialize;

use crate::evaluate::candidates::unique_keys::{MOST_KEY_COLUMNS, minimal_unique, rows_once};
use crate::evaluate::figures::uniqueness::{UniqueBy, Uniqueness};
use crate::evaluate::roles::dependencies::Dependencies;
use crate::evaluate::roles::profile::{Form, Profile};
use crate::evaluate::roles::{Role, RoleReport, infer_roles};
use evenkeel_input::source::RowsAcross;
use evenkeel_model::table::{Candidate, Column, ColumnType};
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::Function;
use evenkeel_stats::sketch::{column_identities, fold};

/// Maximum number of rows that are inspected.
pub(crate) const ROWS_LOOKED_AT: usize = 100_000;
/// Approximate limit on the bytes of these rows, if rows are wide.
pub(crate) const BYTES_LOOKED_AT: usize = 64 << 20;
/// Maximum number of single columns that are evaluated, besides row ids.
const MOST_SINGLES: usize = 4;
/// Maximum number of row ids that are evaluated.
const MOST_ROW_IDS: usize = 1;
/// Maximum number of columns that are paired with each other.
const MOST_PAIRED: usize = 3;
/// Repeats expected by chance from which finding none is evidence of a natural key.
const EVIDENCE: f64 = 5.0;
/// Repeats expected by chance for each row that repeats a natural key.
const REPEATS_PER_EXCEPTION: f64 = 100.0;
/// Maximum number of natural keys that primary keys are made of.
const MOST_VARIANTS: usize = 2;
/// Maximum number of partition keys that primary keys are made for.
const MOST_LIKELY: usize = 2;
/// Maximum number of primary keys that are evaluated.
const MOST_PRIMARY_KEYS: usize = 6;

/// Candidate that was considered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConsideredCandidate {
    /// Columns of the key.
    pub key: Vec<String>,
    /// Whether it is a candidate for the partition key or the primary key.
    #[serde(rename = "role")]
    pub purpose: Purpose,
    /// Whether it is evaluated.
    pub kept: bool,
    /// Reason why it was kept or dropped.
    pub reason: String,
    /// Whether it was dropped because the inspected rows have too few values, and these are not all
    /// rows.
    #[serde(skip)]
    pub(crate) too_few_values: bool,
}

/// Purpose of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Determines which partition a row goes to.
    PartitionKey,
    /// Determines the order of rows, and makes each one unique.
    PrimaryKey,
}

/// Search for candidates in rows of an export.
pub(crate) struct Finder<'a> {
    columns: Vec<Profile<'a>>,
    roles: Vec<RoleReport>,
    keys: Vec<UniqueKey>,
    rows: usize,
    /// Whether these are all rows.
    whole: bool,
    time: Option<String>,
    fewest_partitions: usize,
    function: Function,
}

/// Columns that distinguish the inspected rows.
#[derive(Debug, Clone)]
struct UniqueKey {
    columns: Vec<usize>,
    /// Whether chance alone would have made some rows equal.
    by_nature: bool,
}

/// Whether a system accepts keys of a type: YDB, or the system of `function`.
fn takes(function: Function, column_type: ColumnType) -> bool {
    match function {
        Function::Ydb(_) => column_type.is_key_type(),
        Function::System(system) => {
            !matches!(column_type, ColumnType::Decimal { .. }) && system.refuses(column_type).is_none()
        }
    }
}

impl<'a> Finder<'a> {
    /// Inspects rows that have the columns `columns`. `given` has roles that the user gave, by
    /// position.
    pub(crate) fn new(
        columns: &'a [Column],
        rows: &RowsAcross,
        time: Option<&str>,
        partitions: &[PartitionCount],
        function: Function,
        given: &[Option<Role>],
    ) -> Self {
        let whole = rows.extent.whole;
        let columns: Vec<Profile<'a>> = columns
            .iter()
            .enumerate()
            .map(|(index, column)| Profile::new(column, index, &rows.batches, whole))
            .collect();
        let roles = infer_roles(&columns, &Dependencies::of(&columns), given);
        let time = time.map(str::to_owned).or_else(|| event_time(&columns, &roles));
        let mut finder = Self {
            rows: rows.batches.iter().map(RecordBatch::num_rows).sum(),
            whole,
            time,
            fewest_partitions: partitions.iter().map(|count| count.len()).min().unwrap_or(1),
            columns,
            roles,
            keys: Vec::new(),
            function,
        };
        finder.keys = finder.unique_keys(&rows.batches);
        finder
    }

    /// Name of the time column: the one that was given, otherwise the one that rows seem to arrive
    /// in the order of.
    pub(crate) fn time(&self) -> Option<&str> {
        self.time.as_deref()
    }

    /// Roles of the columns, in their order.
    pub(crate) fn roles(&self) -> &[RoleReport] {
        &self.roles
    }

    /// Columns that belong to the first natural key of several columns, without the time.
    pub(crate) fn natural_key(&self) -> Vec<String> {
        let key = self.keys.iter().find(|key| key.by_nature && key.columns.len() > 1);
        let columns = key.into_iter().flat_map(|key| &key.columns);
        columns.filter_map(|at| self.columns.get(*at)).map(|column| column.column.name.clone()).collect()
    }

    fn role(&self, at: usize) -> Role {
        self.roles.get(at).map_or(Role::Dimension, |report| report.role)
    }

    fn is_copy(&self, at: usize) -> bool {
        let of = self.roles.get(at).and_then(|report| report.copy_of.as_deref());
        let first = of.and_then(|of| self.columns.iter().position(|column| column.column.name == of));
        first.is_some_and(|first| self.columns.get(first).is_some_and(|first| self.obstacle(first).is_none()))
    }

    fn name(&self, at: usize) -> &str {
        self.columns.get(at).map(|column| column.column.name.as_str()).unwrap_or_default()
    }

    fn is_time(&self, at: usize) -> bool {
        self.time.as_deref() == Some(self.name(at))
    }

    /// Returns why a column cannot be in any key; `None` if it can.
    fn obstacle(&self, profile: &Profile<'_>) -> Option<String> {
        let column_type = profile.column.column_type;
        if !takes(self.function, column_type) {
            let who = self.function.of_ydb().map_or_else(|| self.function.to_string(), |_| "YDB".to_owned());
            let wider = match column_type {
                ColumnType::Int8 | ColumnType::Int16 => "; as Int32 it could be in one",
                ColumnType::Float | ColumnType::Double if matches!(profile.form, Form::Whole(_)) => {
                    "; its numbers are whole, and as Int64 it could be in one"
                }
                ColumnType::Uuid => "; as Utf8 it could be in one",
                _ => "",
            };
            return Some(format!("{who} takes no {column_type} in a key{wider}"));
        }
        if profile.nulls > 0 {
            let (nulls, rows) = (profile.nulls, self.rows_in_words());
            return Some(format!("{nulls} of {rows} have NULL, and key columns are NOT NULL"));
        }
        let constant = profile.is_constant() && !profile.column.column_type.is_time();
        constant.then(|| format!("all of {} have one value", self.rows_in_words()))
    }

    fn rows_in_words(&self) -> String {
        if self.whole { format!("the {} rows", self.rows) } else { format!("{} sampled rows", self.rows) }
    }

    /// Finds the smallest sets of columns that distinguish the rows, natural ones first.
    fn unique_keys(&self, batches: &[RecordBatch]) -> Vec<UniqueKey> {
        let once = rows_once(&self.columns);
        if once.len() < 2 {
            return Vec::new();
        }
        let usable = |at: &usize| {
            self.columns.get(*at).is_some_and(|column| self.obstacle(column).is_none()) && !self.is_copy(*at)
        };
        let all: Vec<usize> = (0..self.columns.len()).filter(usable).collect();
        let (mut first, second): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|at| self.role(*at).can_identify_rows());
        first.sort_by_key(|at| std::cmp::Reverse(self.columns.get(*at).map(|column| column.distinct)));
        let tolerated = once.len() / 1_000;
        let natural = |tolerated| {
            let found = minimal_unique(&self.columns, &first, &once, tolerated);
            self.judged(found.keys, batches, &once, first.len())
        };
        let mut keys = natural(0);
        if !keys.iter().any(|key| key.by_nature) && tolerated > 0 {
            keys.extend(natural(tolerated).into_iter().filter(|key| key.by_nature));
        }
        if keys.is_empty() {
            let with_others: Vec<usize> = first.iter().chain(&second).copied().collect();
            let found = minimal_unique(&self.columns, &with_others, &once, 0);
            keys = self.judged(found.keys, batches, &once, with_others.len());
        }
        keys.sort_by(|a, b| self.rank(a).partial_cmp(&self.rank(b)).unwrap_or(std::cmp::Ordering::Equal));
        keys
    }

    /// Judges keys of `of` columns. Of the many sets of several columns that are tried, some repeat
    /// in no row by chance even if five repeats are expected.
    fn judged(
        &self,
        keys: Vec<Vec<usize>>,
        batches: &[RecordBatch],
        rows: &[u32],
        of: usize,
    ) -> Vec<UniqueKey> {
        let judge = |columns: Vec<usize>| {
            let arrays: Option<Vec<ArrayRef>> = columns
                .iter()
                .map(|at| {
                    let parts: Vec<&dyn Array> = batches
                        .iter()
                        .filter_map(|batch| batch.columns().get(*at))
                        .map(AsRef::as_ref)
                        .collect();
                    concat(&parts).ok()
                })
                .collect();
            let uniqueness = arrays.and_then(|arrays| Uniqueness::of(&arrays, rows.len() as u64));
            let profiles: Vec<&Profile<'_>> = columns.iter().filter_map(|at| self.columns.get(*at)).collect();
            let repeated = rows.len() - distinct_together(&profiles, rows);
            let by_nature = uniqueness.is_some_and(|unique| match unique.by {
                UniqueBy::ManyValues => repeated == 0,
                UniqueBy::Nature => {
                    let tried = ln_sets(of, columns.len());
                    unique.repeats_by_chance
                        >= (EVIDENCE + tried).max(REPEATS_PER_EXCEPTION * repeated as f64)
                }
                UniqueBy::Chance => false,
            });
            UniqueKey { by_nature, columns }
        };
        keys.into_iter().map(judge).collect()
    }

    /// Order of unique keys: natural ones first, then those without times and without text, then the
    /// shortest; entities rather than dimensions.
    fn rank(&self, key: &UniqueKey) -> (bool, usize, usize, f64, usize) {
        let weight = |at: &usize| match self.role(*at) {
            Role::RowId => 0.0,
            Role::Entity => 0.5,
            Role::LineNumber => 0.7,
            Role::Time => 1.0,
            Role::Dimension => 1.2,
            Role::Constant | Role::Measure | Role::Text => 3.0,
        };
        let makeshift = key.columns.iter().filter(|at| !self.role(**at).can_identify_rows()).count();
        let sum: f64 = key.columns.iter().map(weight).sum();
        // A time that is not the event time is an accident in a key.
        let strange =
            key.columns.iter().filter(|at| self.role(**at) == Role::Time && !self.is_time(**at)).count();
        let position = key.columns.iter().sum();
        (!key.by_nature, makeshift + strange, key.columns.len(), sum, position)
    }

    /// How much an entity is likely to be looked up, joined and grouped by, before all rows are
    /// counted.
    fn weight(&self, at: usize) -> f64 {
        let (Some(profile), Some(report)) = (self.columns.get(at), self.roles.get(at)) else { return 0.0 };
        let base = match report.role {
            Role::Entity => 1.0,
            Role::Dimension => 0.2,
            Role::RowId => 0.05,
            _ => return 0.0,
        };
        let fills = (profile.likely / (100.0 * self.fewest_partitions as f64)).min(1.0).sqrt();
        let heavy = profile.heaviest as f64 * self.fewest_partitions as f64 / self.rows.max(1) as f64;
        let natural = self.keys.iter().any(|key| key.by_nature && key.columns.contains(&at));
        base * fills * (1.0 + 0.5 * report.determines.len().min(3) as f64) * if natural { 2.0 } else { 1.0 }
            / heavy.max(1.0)
    }

    /// Finds candidates for the partition key. If `primary_keys` were given, only their columns are
    /// used, because a partition key is part of a primary key.
    pub(crate) fn partition_keys(&self, primary_keys: &[Candidate]) -> Vec<ConsideredCandidate> {
        let within: HashSet<&str> =
            primary_keys.iter().flat_map(Candidate::parts).map(|part| part.column.as_str()).collect();
        let mut found = Considerations::new(Purpose::PartitionKey);
        let allowed = |at: usize| within.is_empty() || within.contains(self.name(at));
        let mut places: Vec<usize> = Vec::new();
        let mut few: Vec<usize> = Vec::new();
        for (at, profile) in self.columns.iter().enumerate() {
            let (name, role) = (self.name(at), self.role(at));
            let fills = profile.likely >= self.fewest_partitions as f64 || profile.distinct == profile.rows;
            if let Some(reason) = self.obstacle(profile) {
                if profile.is_constant() && takes(self.function, profile.column.column_type) {
                    found.drop_for_few_values(&[name], reason, !self.whole);
                } else {
                    found.drop(&[name], reason);
                }
            } else if !allowed(at) {
                found.drop(&[name], "it is in none of the primary keys that were given".to_owned());
            } else if role == Role::Time {
                found.drop(
                    &[name],
                    "a time: rows of one moment would all go to one partition, and no query names it exactly"
                        .to_owned(),
                );
            } else if !role.can_place_rows() {
                found.drop(&[name], format!("a {role}, which no query looks up"));
            } else if let Some(of) =
                self.roles.get(at).and_then(|report| report.copy_of.clone()).filter(|_| self.is_copy(at))
            {
                found.drop(&[name], format!("one-to-one with {of}"));
            } else if !fills {
                few.push(at);
                found.drop_for_few_values(
                    &[name],
                    format!(
                        "cannot fill {} partitions: {} values in {}",
                        self.fewest_partitions,
                        profile.distinct,
                        self.rows_in_words()
                    ),
                    !self.whole,
                );
            } else {
                places.push(at);
            }
        }
        let by_weight = |a: &usize, b: &usize| self.weight(*b).total_cmp(&self.weight(*a));
        places.sort_by(by_weight);
        few.retain(|at| self.role(*at) != Role::Constant);
        few.sort_by_key(|at| std::cmp::Reverse(self.columns.get(*at).map(|column| column.distinct)));
        let (mut ids, others): (Vec<usize>, Vec<usize>) =
            places.iter().partition(|at| self.role(**at) == Role::RowId);
        // Numbers that were assigned one after the other come before other columns that happen to be
        // unique.
        let is_assigned = |at: &usize| match self.columns.get(*at).map(|column| &column.form) {
            Some(Form::Whole(whole)) => whole.tail <= 0.02 && !whole.negative,
            Some(Form::Text(words)) => words.opaque > 0.9,
            _ => false,
        };
        ids.sort_by_key(|at| (!is_assigned(at), *at));
        for (position, at) in others.iter().enumerate() {
            let values = self.columns.get(*at).map_or(0, |profile| profile.distinct);
            let role = self.role(*at);
            if position < MOST_SINGLES {
                let reason = format!("{role} with {values} values in {}", self.rows_in_words());
                found.keep(&[self.name(*at)], reason);
            } else {
                found.drop(
                    &[self.name(*at)],
                    format!(
                        "{MOST_SINGLES} columns are more likely to be looked up; name it with --partition-key"
                    ),
                );
            }
        }
        for (position, at) in ids.iter().enumerate() {
            if position < MOST_ROW_IDS {
                found.keep(&[self.name(*at)], "identifies the row".to_owned());
            } else {
                found.drop(&[self.name(*at)], "another column identifies the row too".to_owned());
            }
        }
        self.pairs(&others, &few, &ids, &allowed, &mut found);
        for key in primary_keys.iter().filter(|key| key.is_plain()) {
            for length in 1..=key.parts().len() {
                let prefix: Vec<&str> =
                    key.parts().iter().take(length).map(|part| part.column.as_str()).collect();
                found.keep(&prefix, "a prefix of a primary key that was given".to_owned());
            }
        }
        if !found.all.iter().any(|candidate| candidate.kept) {
            self.makeshift(&allowed, &mut found);
        }
        found.all
    }

    /// Adds keys of several columns: entities together, and with a column that splits heavy values.
    fn pairs(
        &self,
        others: &[usize],
        few: &[usize],
        ids: &[usize],
        allowed: &dyn Fn(usize) -> bool,
        found: &mut Considerations,
    ) {
        let first: Vec<usize> = others.iter().chain(few).copied().take(MOST_PAIRED).collect();
        for (position, a) in first.iter().enumerate() {
            for b in first.iter().skip(position + 1) {
                let determined = |from: usize, to: usize| {
                    self.roles
                        .get(from)
                        .is_some_and(|report| report.determines.iter().any(|name| name == self.name(to)))
                };
                let values = |at: usize| self.columns.get(at).map_or(0.0, |column| column.likely);
                if !determined(*a, *b)
                    && !determined(*b, *a)
                    && values(*a) * values(*b) >= self.fewest_partitions as f64
                {
                    found.keep(
                        &[self.name(*a), self.name(*b)],
                        "two columns that rows are looked up by".to_owned(),
                    );
                }
            }
        }
        let Some(local) = first.first().copied() else { return };
        if let Some(id) = ids.first() {
            found.keep(
                &[self.name(local), self.name(*id)],
                "with the row id, which splits heavy values".to_owned(),
            );
        }
        let time = (0..self.columns.len()).find(|at| {
            self.is_time(*at)
                && allowed(*at)
                && self.columns.get(*at).is_some_and(|c| self.obstacle(c).is_none())
        });
        if let Some(time) = time {
            found.keep(
                &[self.name(local), self.name(time)],
                "with the time, which splits heavy values".to_owned(),
            );
        }
    }

    /// Adds what is left if no column identifies anything: times and measures, the most values first.
    fn makeshift(&self, allowed: &dyn Fn(usize) -> bool, found: &mut Considerations) {
        let mut left: Vec<usize> = (0..self.columns.len())
            .filter(|at| allowed(*at) && self.columns.get(*at).is_some_and(|c| self.obstacle(c).is_none()))
            .collect();
        left.sort_by_key(|at| {
            let role = self.role(*at);
            (role == Role::Text, std::cmp::Reverse(self.columns.get(*at).map(|column| column.distinct)))
        });
        for at in left.iter().take(2) {
            found.keep(&[self.name(*at)], format!("a {}, as there is nothing better", self.role(*at)));
        }
        if let [a, b, ..] = left.as_slice() {
            found.keep(&[self.name(*a), self.name(*b)], "as there is nothing better".to_owned());
        }
    }

    /// Finds candidates for the primary key: the smallest natural key, with each of the likely
    /// partition keys in it, in the orders that fit reading by time and by entity.
    pub(crate) fn primary_keys(
        &self,
        given: Option<&Candidate>,
        partition_keys: &[ConsideredCandidate],
    ) -> Vec<ConsideredCandidate> {
        let mut found = Considerations::new(Purpose::PrimaryKey);
        let position = |name: &String| self.columns.iter().position(|column| column.column.name == *name);
        let within: Vec<Vec<usize>> = match given.filter(|key| key.is_plain()) {
            Some(key) => vec![key.columns().iter().filter_map(position).collect()],
            None => self.likely_partition_keys(partition_keys),
        };
        let keys: Vec<&UniqueKey> = self.best_unique_keys();
        for (place, partition_key) in within.iter().enumerate() {
            for key in keys.iter().take(if place == 0 { MOST_VARIANTS } else { 1 }) {
                for (order, columns) in self.orders(partition_key, key) {
                    let names: Vec<&str> = columns.iter().map(|at| self.name(*at)).collect();
                    let unique = if key.by_nature {
                        "unique by nature"
                    } else {
                        "unique in these rows, perhaps by chance"
                    };
                    found.keep(&names, format!("{order}; tells {} apart, {unique}", self.rows_in_words()));
                }
            }
            if keys.is_empty() {
                let names = self.most_distinguishing(partition_key);
                let names: Vec<&str> = names.iter().map(|at| self.name(*at)).collect();
                if !names.is_empty() {
                    found.keep(&names, "no columns tell all rows apart; these come closest".to_owned());
                }
            }
        }
        found.all.truncate(MOST_PRIMARY_KEYS);
        found.all
    }

    /// The natural keys; if there are none, the first that is unique by chance.
    fn best_unique_keys(&self) -> Vec<&UniqueKey> {
        let natural: Vec<&UniqueKey> = self.keys.iter().filter(|key| key.by_nature).collect();
        // An identifier of the row needs no alternative.
        if let Some(first) = natural.first()
            && matches!(first.columns.as_slice(), [only] if self.role(*only) == Role::RowId)
        {
            return vec![first];
        }
        if natural.is_empty() { self.keys.iter().take(1).collect() } else { natural }
    }

    /// The partition keys that will most probably be recommended, by the sampled rows.
    fn likely_partition_keys(&self, considered: &[ConsideredCandidate]) -> Vec<Vec<usize>> {
        let kept = considered.iter().filter(|candidate| candidate.kept);
        let mut keys: Vec<Vec<usize>> = kept
            .map(|candidate| {
                let at = |name: &String| self.columns.iter().position(|column| column.column.name == *name);
                candidate.key.iter().filter_map(at).collect()
            })
            .collect();
        keys.truncate(MOST_LIKELY);
        if keys.is_empty() { vec![Vec::new()] } else { keys }
    }

    /// Orders of the columns of a primary key, each with a reason.
    fn orders(&self, partition_key: &[usize], key: &UniqueKey) -> Vec<(&'static str, Vec<usize>)> {
        let time = (0..self.columns.len()).find(|at| {
            self.is_time(*at) && self.columns.get(*at).is_some_and(|column| self.obstacle(column).is_none())
        });
        let rest: Vec<usize> = {
            let mut rest: Vec<usize> = key
                .columns
                .iter()
                .copied()
                .filter(|at| !partition_key.contains(at) && Some(*at) != time)
                .collect();
            // Parents before what is counted within them, the row id last.
            rest.sort_by_key(|at| match self.role(*at) {
                Role::Entity => 0,
                Role::Dimension => 1,
                Role::Time => 2,
                Role::LineNumber => 3,
                _ => 4,
            });
            rest
        };
        let own = partition_key.to_vec();
        // The table of the entities themselves is read by their id; so are lines by their parent.
        let of_rows = rest.is_empty() && own == key.columns;
        let needs_time = time.is_some_and(|time| key.columns.contains(&time));
        let is_event = key.columns.iter().any(|at| self.role(*at) == Role::RowId) && !of_rows;
        match time.filter(|time| !own.contains(time)) {
            Some(time) if needs_time || is_event => vec![
                ("in the order of time", [vec![time], own.clone(), rest.clone()].concat()),
                ("each value's rows together, in the order of time", [own, vec![time], rest].concat()),
            ],
            _ => vec![("the partition key first, then what tells its rows apart", [own, rest].concat())],
        }
    }

    /// The partition key, the time and the columns that distinguish the most rows.
    fn most_distinguishing(&self, partition_key: &[usize]) -> Vec<usize> {
        let mut key = partition_key.to_vec();
        let usable: Vec<usize> = (0..self.columns.len())
            .filter(|at| {
                self.columns.get(*at).is_some_and(|column| self.obstacle(column).is_none())
                    && self.role(*at).can_identify_rows()
                    && !self.is_copy(*at)
            })
            .collect();
        let all: Vec<u32> = (0..u32::try_from(self.rows).unwrap_or(u32::MAX)).collect();
        let distinct = |key: &[usize]| {
            let profiles: Vec<&Profile<'_>> = key.iter().filter_map(|at| self.columns.get(*at)).collect();
            distinct_together(&profiles, &all)
        };
        while key.len() < MOST_KEY_COLUMNS && distinct(&key) < self.rows {
            let others = usable.iter().filter(|at| !key.contains(at));
            let best = others
                .map(|at| (distinct(&[key.as_slice(), &[*at]].concat()), *at))
                .max_by_key(|(distinct, at)| (*distinct, std::cmp::Reverse(*at)));
            match best {
                Some((with, at)) if with > distinct(&key) => key.push(at),
                _ => break,
            }
        }
        if let Some(time) = key.iter().position(|at| self.is_time(*at)) {
            let time = key.remove(time);
            key.insert(0, time);
        }
        key
    }
}

/// The time column that rows seem to arrive in the order of: points in time before dates, full
/// columns before those with NULLs, sorted ones first.
fn event_time(columns: &[Profile<'_>], roles: &[RoleReport]) -> Option<String> {
    let times = columns.iter().zip(roles).filter(|(column, report)| {
        column.column.column_type.is_time() && report.role == Role::Time && column.filled() * 2 > column.rows
    });
    let rank = |column: &Profile<'_>| {
        let nulls = (column.nulls * 100).div_ceil(column.rows.max(1));
        (!column.column.column_type.is_timestamp(), nulls, !column.rises)
    };
    let best = times.min_by_key(|(column, _)| rank(column));
    best.map(|(column, _)| column.column.name.clone())
}

/// Number of distinct combinations of the values of columns in some rows.
fn distinct_together(columns: &[&Profile<'_>], rows: &[u32]) -> usize {
    let key = |row: &u32| {
        columns.iter().fold(0u64, |key, column| {
            fold(key, u64::from(column.codes.get(*row as usize).copied().unwrap_or(0)) + 1)
        })
    };
    rows.iter().map(key).collect::<AHashSet<u64>>().len()
}

/// Natural logarithm of the number of sets of `size` of `of` columns.
fn ln_sets(of: usize, size: usize) -> f64 {
    (0..size.min(of)).map(|taken| ((of - taken) as f64 / (taken + 1) as f64).ln()).sum()
}

/// Candidates considered so far, each once.
struct Considerations {
    purpose: Purpose,
    all: Vec<ConsideredCandidate>,
}

impl Considerations {
    fn new(purpose: Purpose) -> Self {
        Self { purpose, all: Vec::new() }
    }

    fn add(&mut self, key: &[&str], kept: bool, reason: String) {
        let key: Vec<String> = key.iter().map(|name| (*name).to_owned()).collect();
        match self.all.iter_mut().find(|known| known.key == key) {
            // A given prefix is evaluated, whatever else speaks against it.
            Some(known) if kept && !known.kept => {
                *known = ConsideredCandidate { kept, reason, ..known.clone() }
            }
            Some(_) => {}
            None => self.all.push(ConsideredCandidate {
                key,
                purpose: self.purpose,
                kept,
                reason,
                too_few_values: false,
            }),
        }
    }

    fn drop_for_few_values(&mut self, key: &[&str], reason: String, may_change: bool) {
        self.drop(key, reason);
        if let Some(last) = self.all.last_mut().filter(|last| last.key == key) {
            last.too_few_values = may_change;
        }
    }

    fn keep(&mut self, key: &[&str], reason: String) {
        self.add(key, true, reason);
    }

    fn drop(&mut self, key: &[&str], reason: String) {
        self.add(key, false, reason);
    }
}

/// Counter, in the pass over all rows, of the values of columns that were dropped because the
/// inspected rows have too few.
#[derive(Debug)]
pub(crate) struct FewValues {
    columns: Vec<Counted>,
    /// Number of values from which a column would not have been dropped.
    enough: usize,
    rows: u64,
}

#[derive(Debug)]
struct Counted {
    name: String,
    position: usize,
    values: AHashSet<u64>,
    /// Value of the last row, which the next row usually has too.
    last: Option<u64>,
}

impl FewValues {
    pub(crate) fn new(
        considered: &[ConsideredCandidate],
        columns: &[Column],
        partitions: &[PartitionCount],
    ) -> Self {
        let doubtful = considered.iter().filter(|candidate| candidate.too_few_values && !candidate.kept);
        let counted = doubtful.filter_map(|candidate| {
            let name = candidate.key.first()?;
            let position = columns.iter().position(|column| column.name == *name)?;
            Some(Counted { name: name.clone(), position, values: AHashSet::new(), last: None })
        });
        let enough = partitions.iter().map(|count| count.len()).min().unwrap_or(1).max(2);
        Self { columns: counted.collect(), enough, rows: 0 }
    }

    /// Drops the columns that the pass does not read.
    pub(crate) fn keep_only(&mut self, asked: &[bool]) {
        self.columns.retain(|column| asked.get(column.position) == Some(&true));
    }

    /// Counts rows, in any order.
    pub(crate) fn count(&mut self, batches: &[RecordBatch]) {
        for batch in batches {
            self.rows += batch.num_rows() as u64;
            for column in &mut self.columns {
                let Some(array) = batch.columns().get(column.position) else { continue };
                if column.values.len() >= self.enough {
                    continue;
                }
                for value in column_identities(array) {
                    if column.last != Some(value) {
                        column.values.insert(value);
                        column.last = Some(value);
                    }
                }
            }
        }
    }

    /// Updates the reason of each column from the values in all rows, and returns the columns that
    /// should not have been dropped.
    pub(crate) fn settle(self, considered: &mut [ConsideredCandidate]) -> Vec<String> {
        let mut withdrawn = Vec::new();
        for Counted { name, values, .. } in self.columns {
            let Some(candidate) =
                considered.iter_mut().find(|c| c.too_few_values && c.key == [name.as_str()])
            else {
                continue;
            };
            let (values, rows) = (values.len(), self.rows);
            candidate.reason = if values >= self.enough {
                withdrawn.push(name.clone());
                format!(
                    "{}, but the {rows} rows have {} or more: name it with --partition-key to have it evaluated",
                    candidate.reason, self.enough
                )
            } else if values <= 1 {
                format!("all of the {rows} rows have one value")
            } else {
                format!("cannot fill {} partitions: {values} values in the {rows} rows", self.enough)
            };
        }
        withdrawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_input::source::Extent;
    use evenkeel_testkit::{AdEvents, ad_events_definition};

    fn found(
        primary_keys: &[&str],
        partition_key: Option<&str>,
    ) -> (Vec<ConsideredCandidate>, Vec<ConsideredCandidate>) {
        let columns = ad_events_definition().unwrap().columns;
        let options = AdEvents { rows: 20_000, duplicate_share: 0.0, ..AdEvents::default() };
        let batches: Vec<RecordBatch> = options.batches(5_000).unwrap().map(Result::unwrap).collect();
        let partitions = [PartitionCount::new(16).unwrap()];
        let extent = Extent { rows: 20_000, whole: true, places: 1, inputs: 1, of_inputs: 1 };
        let rows = RowsAcross { batches, extent };
        let finder = Finder::new(&columns, &rows, None, &partitions, Function::default(), &[]);
        assert_eq!(finder.time(), Some("event_timestamp"));
        let primary_keys: Vec<Candidate> = primary_keys.iter().map(|key| key.parse().unwrap()).collect();
        let partition_key = partition_key.map(|key| key.parse().unwrap());
        let partition_keys = finder.partition_keys(&primary_keys);
        let found = finder.primary_keys(partition_key.as_ref(), &partition_keys);
        (partition_keys, found)
    }

    fn kept(considered: &[ConsideredCandidate]) -> Vec<String> {
        considered.iter().filter(|c| c.kept).map(|c| c.key.join(", ")).collect()
    }

    #[test]
    fn what_may_serve_is_kept_and_what_cannot_is_dropped_with_the_reason() {
        let (partition_keys, primary_keys) = found(&[], None);
        let names = kept(&partition_keys);
        for key in ["user_id", "campaign_id", "event_id", "ad_id, user_id"] {
            assert!(names.iter().any(|name| name == key), "{key}: {names:?}");
        }
        for (column, reason) in [("event_type", "cannot fill 16 partitions"), ("event_timestamp", "a time")] {
            let dropped = partition_keys.iter().find(|c| c.key == [column]).unwrap();
            assert!(!dropped.kept && dropped.reason.contains(reason), "{dropped:?}");
        }
        let names = kept(&primary_keys);
        for key in ["event_timestamp, user_id, event_id", "user_id, event_timestamp, event_id"] {
            assert!(names.iter().any(|name| name == key), "{key}: {names:?}");
        }
    }

    #[test]
    fn keys_that_are_given_bound_those_that_are_found() {
        let (partition_keys, _) = found(&["event_timestamp, user_id, campaign_id"], None);
        let names = kept(&partition_keys);
        assert!(names.iter().all(|name| !name.contains("event_id")), "{names:?}");
        assert!(names.iter().any(|name| name == "event_timestamp, user_id"), "{names:?}");
        let (_, primary_keys) = found(&[], Some("campaign_id"));
        assert!(kept(&primary_keys).iter().all(|key| key.contains("campaign_id")), "{primary_keys:?}");
    }
}
