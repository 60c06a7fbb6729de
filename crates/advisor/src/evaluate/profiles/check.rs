//! Whether profiles can be merged.

use std::collections::HashMap;

use crate::evaluate::options::EvaluateOptions;
use crate::evaluate::pass::time_column::time_column;
use crate::evaluate::profiles::{Part, Profile, ProfileError};
use evenkeel_model::bounded::quote;
use evenkeel_model::table::Column;

/// Checks that all profiles can be merged.
pub(super) fn check(profiles: &[Profile]) -> Result<(), ProfileError> {
    let Some((first, others)) = profiles.split_first() else { return Err(ProfileError::None) };
    for other in others {
        first.check_columns(&other.name, &other.header.columns)?;
        first.check_options(other)?;
    }
    let mut known: HashMap<u64, (&Profile, &Part)> = HashMap::new();
    for profile in profiles {
        for part in &profile.header.parts {
            if let Some((other, _)) = known.insert(part.checksum, (profile, part)) {
                return Err(ProfileError::Twice {
                    file: profile.name.clone(),
                    other: other.name.clone(),
                    rows: part.rows,
                    input: match part.inputs {
                        0 | 1 => part.first_input.clone(),
                        several => format!("{} and {} more", part.first_input, several - 1),
                    },
                });
            }
        }
    }
    Ok(())
}

impl Profile {
    /// Checks that other rows have the same columns; `file` names them in messages.
    ///
    /// # Errors
    /// [`ProfileError::Columns`].
    pub fn check_columns(&self, file: &str, others: &[Column]) -> Result<(), ProfileError> {
        let failed = |problem: String| ProfileError::Columns { file: file.to_owned(), problem };
        let find = |columns: &[Column], name: &str| columns.iter().find(|c| c.name == name).cloned();
        let own = &self.header.columns;
        for column in own {
            match find(others, &column.name) {
                None => {
                    return Err(failed(format!(
                        "there is no column '{}', which {} has",
                        quote(&column.name),
                        self.name
                    )));
                }
                Some(other) if other.column_type != column.column_type => {
                    return Err(failed(format!(
                        "column '{}' is of type {}, but of type {} in {}",
                        quote(&column.name),
                        other.column_type,
                        column.column_type,
                        self.name
                    )));
                }
                Some(_) => {}
            }
        }
        match others.iter().find(|column| find(own, &column.name).is_none()) {
            Some(more) => {
                Err(failed(format!("there is a column '{}', which {} lacks", quote(&more.name), self.name)))
            }
            None => Ok(()),
        }
    }

    /// Checks that the rows of both were counted in the same way.
    fn check_options(&self, other: &Self) -> Result<(), ProfileError> {
        let (a, b) = (&self.header.options, &other.header.options);
        let list = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
        let words = |options: &EvaluateOptions| {
            let functions: Vec<String> = options.placements.iter().map(ToString::to_string).collect();
            let partitions: Vec<String> = options.partitions.iter().map(ToString::to_string).collect();
            let weights: Vec<String> = options.weights.iter().map(ToString::to_string).collect();
            let time = time_column(&self.header.columns, options).ok().flatten();
            let time = time.map(|time| format!("{}, as {:?}", time.name, time.reading).to_lowercase());
            [
                ("--placement", list(&functions)),
                ("--partitions or --nodes", list(&partitions)),
                ("--weights", list(&weights)),
                ("--time", time.unwrap_or_else(|| "none".to_owned())),
                ("--window", options.window.map_or("none".to_owned(), |window| window.to_string())),
                ("--batch", options.batch_rows.to_string()),
                ("--partition-rate", options.partition_rate.to_string()),
                ("--queries", list(&options.equality_columns)),
            ]
        };
        let different = words(a).into_iter().zip(words(b)).find(|(a, b)| a != b);
        different.map_or(Ok(()), |((option, expected), (_, found))| {
            let (file, other) = (other.name.clone(), self.name.clone());
            Err(ProfileError::Options { file, other, option, found, expected })
        })
    }
}
