//! Columns, types and placements that are counted for each candidate.

use arrow::array::ArrayRef;

use crate::evaluate::EvaluateError;
use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::batch::KeyParts;
use crate::evaluate::pass::primary_key::{Condition, ConditionKind, PrimaryKeyPlan};
use crate::evaluate::pass::time_column::TimeColumn;
use evenkeel_model::table::{Candidate, Column, ColumnType};
use evenkeel_model::units::PartitionCount;
use evenkeel_placement::placement::{Function, Placement, PlacementError};

/// Maximum number of columns fixed by statements that are tried as conditions.
const MAX_EQUALITY_COLUMNS: usize = 8;

/// Inputs for the plan of a primary key.
pub(super) struct PrimaryKeyInputs<'a> {
    pub(super) options: &'a EvaluateOptions,
    pub(super) columns: &'a [Column],
    pub(super) time: Option<&'a TimeColumn>,
    pub(super) placements: &'a [(Function, PartitionCount)],
}

impl PrimaryKeyInputs<'_> {
    pub(super) fn plan(
        &self,
        candidate: &Candidate,
        given: Option<&Candidate>,
        parts: &mut KeyParts,
        budget: usize,
    ) -> Result<PrimaryKeyPlan, EvaluateError> {
        let key = parts.resolve(candidate, self.columns)?;
        let types = types_of(parts, &key);
        // The longest candidate that the key contains, the first of several; otherwise the whole
        // key, as in YDB if nothing is declared.
        let within =
            self.options.partition_keys.iter().filter(|partition_key| candidate.contains(partition_key));
        let within =
            within.reduce(|best, next| if next.parts().len() > best.parts().len() { next } else { best });
        let partition_key = given.or(within).unwrap_or(candidate).clone();
        let placed = parts.resolve(&partition_key, self.columns)?;
        let placed_types = types_of(parts, &placed);
        // If the functions need another key, the default one remains, which accepts any.
        let mut all = self.placements.to_vec();
        all.extend(self.placements.first().map(|(_, partitions)| (Function::default(), *partitions)));
        let (function, partitions) = placeable(&partition_key, &placed_types, &all)?
            .0
            .into_iter()
            .next()
            .ok_or(EvaluateError::NoRows)?;
        let conditions = self.conditions(parts)?;
        Ok(PrimaryKeyPlan {
            conditions,
            candidate: candidate.clone(),
            placement: Placement::new(function, partitions, placed_types),
            batch_rows: self.options.batch_rows,
            key,
            types,
            partition_key,
            placed,
            budget,
        })
    }

    /// Returns conditions on ranges of the time column, and on values of the columns that
    /// statements fix, whether these are in the key or not.
    fn conditions(&self, parts: &mut KeyParts) -> Result<Vec<Condition>, EvaluateError> {
        let time = self.time.filter(|time| time.reading.is_time_alone());
        let time = time.map(|time| (&time.name, ConditionKind::TimeRanges(time.reading)));
        let equal = self
            .options
            .equality_columns
            .iter()
            .filter(|name| self.time.is_none_or(|time| time.name != **name));
        let equal = equal.take(MAX_EQUALITY_COLUMNS).map(|name| (name, ConditionKind::Equal));
        let mut conditions = Vec::new();
        for (name, kind) in time.into_iter().chain(equal) {
            let column = Candidate::from_columns(std::slice::from_ref(name));
            for part in parts.resolve(&column, self.columns)? {
                if let Some(resolved) = parts.get(part) {
                    conditions.push(Condition {
                        name: name.clone(),
                        part,
                        column_type: resolved.column_type,
                        kind,
                    });
                }
            }
        }
        Ok(conditions)
    }
}

/// Placements that can serve a key, and the reasons why others cannot.
pub(super) type Placeable = (Vec<(Function, PartitionCount)>, Vec<String>);

/// Finds the placements that can serve a key, by placing an empty batch: a type without a byte
/// layout is refused, and a function that needs another key is left out, with the reason, unless no
/// function remains.
pub(super) fn placeable(
    candidate: &Candidate,
    types: &[ColumnType],
    placements: &[(Function, PartitionCount)],
) -> Result<Placeable, EvaluateError> {
    let empty: Vec<ArrayRef> = types.iter().map(|t| arrow::array::new_empty_array(&t.arrow_type())).collect();
    let (mut refused, mut left_out) = (None, Vec::new());
    let mut served = Vec::new();
    for (function, partitions) in placements {
        match Placement::new(*function, *partitions, types.to_vec()).assign(&empty) {
            Ok(_) => served.push((*function, *partitions)),
            Err(source) => {
                let reason = match &source {
                    PlacementError::System { .. } => source.to_string(),
                    _ => format!("{function}: {source}"),
                };
                if !left_out.contains(&reason) {
                    left_out.push(reason);
                }
                refused = Some(EvaluateError::Placement { key: candidate.to_string(), source });
            }
        }
    }
    match (served.is_empty(), refused) {
        (true, Some(error)) => Err(error),
        _ => Ok((served, left_out)),
    }
}

pub(super) fn types_of(parts: &KeyParts, key: &[usize]) -> Vec<ColumnType> {
    key.iter().filter_map(|position| parts.get(*position)).map(|part| part.column_type).collect()
}
