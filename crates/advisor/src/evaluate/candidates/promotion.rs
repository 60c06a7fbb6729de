//! Roles that a natural key gives its columns: names of things, numbers of lines, and the things
//! that have them.

use crate::evaluate::candidates::sampled_columns::SampledColumns;
use crate::evaluate::roles::Role;
use crate::evaluate::roles::forms::Form;
use crate::evaluate::roles::names::{Hint, is_label};
use crate::evaluate::roles::numbering::{EQUAL_PARENTS, are_equally_many, counts_lines_of};
use crate::evaluate::roles::profile::{Profile, codes_together, distinct_together, rows_of_codes};

/// If one part of a key has this many times the values of the other parts, it identifies a thing
/// alone.
const MANY_TIMES: usize = 20;
/// Fewest texts that may label the things within others.
const MIN_LABELS: usize = 10;
/// Mean number of wholes that have a label from which it means another thing in each of them.
const SHARED: f64 = 1.5;
/// Mean number of words below which texts are single words.
const ONE_WORD: f64 = 1.1;
/// Fewest groups of rows of a whole, each of which has all its things.
const MIN_GROUPS: usize = 2;
/// Share of the rows in groups that have all things of their whole above which the others are taken
/// for incomplete.
const MOSTLY_WHOLE: f64 = 0.9;

impl SampledColumns<'_> {
    /// Takes the texts of a natural key for names of things, which are looked up, and its measures
    /// for numbers of rows. A text that alone distinguishes the rows is their id.
    pub(super) fn promote(&mut self, key: &[usize]) {
        for at in key {
            let column = self.columns.get(*at);
            let is_id = key.len() == 1 && column.is_some_and(Profile::is_unique);
            // A message or a comment is no name, although no two rows may share it; a title without
            // blanks is the name of a page.
            let is_name = |column: &Profile<'_>| {
                is_label(&column.column.name)
                    && matches!(&column.form, Form::Text(words) if words.may_be_names(ONE_WORD))
                    && column.distinct * 2 < column.rows
            };
            let is_content = column.is_some_and(|column| column.hint == Some(Hint::Text) && !is_name(column));
            let Some(report) = self.roles.get_mut(*at).filter(|report| !report.given) else { continue };
            report.role = match report.role {
                Role::Text if is_id => Role::RowId,
                Role::Text if !is_content => Role::Entity,
                Role::Measure => Role::LineNumber,
                _ => continue,
            };
            report.evidence = vec!["no columns distinguish rows without it".to_owned()];
        }
    }

    /// Takes the columns within which another one of a natural key counts for the thing that has
    /// the lines: the orders of each district of each warehouse.
    pub(super) fn promote_parents(&mut self, key: &[usize]) {
        if key.len() < 3 || self.has_time(key) {
            return;
        }
        let parents_of =
            |line: usize| -> Vec<usize> { key.iter().copied().filter(|at| *at != line).collect() };
        // A text whose name tells nothing may label things within others; a product is the same
        // one in each store.
        let may_label = |at: &usize| {
            let is_free = self.roles.get(*at).is_some_and(|report| {
                !report.given && report.counts_within.is_empty() && report.role.can_place_rows()
            });
            let is_label = |column: &Profile<'_>| {
                column.hint.is_none() && column.numbers.is_none() && column.distinct >= MIN_LABELS
            };
            is_free && self.columns.get(*at).is_some_and(is_label)
        };
        let counts = |line: &usize| {
            let profiles: Vec<&Profile<'_>> =
                parents_of(*line).iter().filter_map(|at| self.columns.get(*at)).collect();
            let is_free =
                self.roles.get(*line).is_some_and(|report| !report.given && report.counts_within.is_empty());
            is_free && self.columns.get(*line).is_some_and(|column| counts_lines_of(column, &profiles))
        };
        let line = key.iter().copied().find(counts);
        let within = |at: usize| Some((at, self.whole_of_things(at, &parents_of(at))?));
        let mut labels = key.iter().copied().filter(may_label).filter_map(within);
        let part =
            line.and_then(within).or_else(|| labels.find(|(label, whole)| self.has_own(*whole, *label)));
        if let Some((part, whole)) = part {
            self.promote_part(part, whole);
            return;
        }
        let Some(line) = line else { return };
        let parents = parents_of(line);
        let names =
            |places: &[usize]| -> Vec<String> { places.iter().map(|at| self.name(*at).to_owned()).collect() };
        let Some(main) = parents.iter().copied().max_by_key(|at| self.distinct(*at)) else { return };
        let others: Vec<usize> = parents.iter().copied().filter(|at| *at != main).collect();
        let most_of_others = others.iter().map(|at| self.distinct(*at)).max().unwrap_or(0);
        // A person with a few kinds of vaccines is one without them, too.
        let stands_alone = self.distinct(main) > MANY_TIMES * most_of_others;
        let (of_line, of_main) = (names(&parents), names(&others));
        let of_main = (!stands_alone).then_some((main, Role::Entity, of_main));
        for (at, role, within) in [Some((line, Role::LineNumber, of_line)), of_main].into_iter().flatten() {
            if let Some(report) = self.roles.get_mut(at).filter(|report| !report.given) {
                let evidence = match role {
                    Role::LineNumber => format!("counts within each {}", within.join(", ")),
                    _ => format!("identifies the thing of the lines together with {}", within.join(" and ")),
                };
                (report.role, report.counts_within) = (role, within);
                (report.evidence, report.is_vague, report.holds_parts) = (vec![evidence], false, true);
            }
        }
    }

    /// Takes a column for the things within each value of another one.
    fn promote_part(&mut self, part: usize, whole: usize) {
        let within = self.name(whole).to_owned();
        if let Some(report) = self.roles.get_mut(part) {
            report.evidence = vec![format!("distinguishes things within each {within}")];
            (report.role, report.counts_within, report.is_vague) = (Role::Entity, vec![within], false);
        }
    }

    /// Whether the values of `whole` have some values of another column each, rather than all of
    /// them, and share these.
    fn has_own(&self, whole: usize, part: usize) -> bool {
        let both: Vec<&Profile<'_>> = [whole, part].iter().filter_map(|at| self.columns.get(*at)).collect();
        let pairs = distinct_together(&both, 0..self.rows);
        let parts = self.distinct(part);
        pairs * 2 <= self.distinct(whole) * parts && pairs as f64 >= SHARED * parts as f64
    }

    /// Returns the parent within which a column numbers things rather than lines: each of them has
    /// a row for each combination of the other parents, as a precinct of a county has for each
    /// candidate.
    fn whole_of_things(&self, number: usize, parents: &[usize]) -> Option<usize> {
        let number = self.columns.get(number)?;
        let all: Vec<&Profile<'_>> = parents.iter().filter_map(|at| self.columns.get(*at)).collect();
        let (groups, group_count) = codes_together(&all);
        let rows_of_groups = rows_of_codes(&groups, group_count);
        let numbers_things = |whole: &&usize| {
            let Some(whole) = self.columns.get(**whole) else { return false };
            let (things, thing_count) = codes_together(&[whole, number]);
            let mut seen = vec![false; thing_count];
            let is_first = |thing: &u32| {
                seen.get_mut(*thing as usize).is_some_and(|seen| !std::mem::replace(seen, true))
            };
            let firsts: Vec<bool> = things.iter().map(is_first).collect();
            let of_things: Vec<u32> =
                whole.codes.iter().zip(firsts).filter(|(_, first)| *first).map(|(whole, _)| *whole).collect();
            let things_of_wholes = rows_of_codes(&of_things, whole.distinct);
            let is_whole = |(group, whole): &(&u32, &u32)| {
                rows_of_groups.get(**group as usize) == things_of_wholes.get(**whole as usize)
            };
            let in_whole_groups = groups.iter().zip(&whole.codes).filter(is_whole).count();
            // If all have equally many, they have the same ones, such as the months of each year.
            !are_equally_many(things_of_wholes.iter().map(|things| *things as i128), EQUAL_PARENTS)
                && group_count >= MIN_GROUPS * whole.distinct
                && in_whole_groups as f64 >= MOSTLY_WHOLE * groups.len() as f64
        };
        let mut wholes = parents.to_vec();
        wholes.sort_by_key(|at| std::cmp::Reverse(self.distinct(*at)));
        wholes.iter().find(numbers_things).copied()
    }
}

#[cfg(test)]
#[path = "promotion_tests.rs"]
mod tests;
