//! Columns of numbers that are correlated: a highest and a lowest price, two offsets.

use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::evaluate::roles::epochs::MOSTLY_ASCENDING;
use crate::evaluate::roles::names::Hint;
use crate::evaluate::roles::profile::Profile;

/// Smallest share of rows with a distinct value in columns that are compared with others.
const MOSTLY_OWN: f64 = 0.25;
/// Fewest values of columns that are compared.
const MIN_CORRELATED: usize = 10;
/// Correlation above which two columns of numbers measure about the same.
const CORRELATED: f64 = 0.995;

/// Finds, for each column of numbers from a wide range, the first other one that is correlated with
/// it, although rows are not ordered by them. Identifiers are not correlated.
pub(super) fn companions(columns: &[Profile<'_>]) -> Vec<Option<usize>> {
    let is_wide = |profile: &&Profile<'_>| {
        profile.distinct >= MIN_CORRELATED
            && profile.distinct as f64 > MOSTLY_OWN * profile.rows as f64
            && profile.ascends < MOSTLY_ASCENDING
            && profile.hint != Some(Hint::Identifier)
    };
    let standardized: Vec<Option<Vec<f64>>> = columns
        .par_iter()
        .map(|column| {
            let numbers = Some(column).filter(is_wide)?.numbers.as_deref()?;
            standardized(numbers)
        })
        .collect();
    let companion = |(at, own): (usize, &Option<Vec<f64>>)| {
        let own = own.as_ref()?;
        let go_along = |other: &usize| {
            let others = standardized.get(*other).and_then(Option::as_deref);
            *other != at && others.is_some_and(|others| are_correlated(own, others))
        };
        (0..standardized.len()).find(go_along)
    };
    standardized.par_iter().enumerate().map(companion).collect()
}

/// Numbers less their mean, as a vector of length 1; `None` if all are equal.
fn standardized(numbers: &[i128]) -> Option<Vec<f64>> {
    let mean = numbers.iter().map(|number| *number as f64).sum::<f64>() / numbers.len().max(1) as f64;
    let deviations: Vec<f64> = numbers.iter().map(|number| *number as f64 - mean).collect();
    let length = deviations.iter().map(|deviation| deviation * deviation).sum::<f64>().sqrt();
    (length > 0.0).then(|| deviations.iter().map(|deviation| deviation / length).collect())
}

/// Whether the correlation after Pearson is at least [`CORRELATED`]. The squared distance of two
/// standardized vectors is 2 (1 - correlation), and most pairs exceed that after a few rows.
fn are_correlated(a: &[f64], b: &[f64]) -> bool {
    let most = 2.0 * (1.0 - CORRELATED);
    let mut distance = 0.0;
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| {
            distance += (a - b) * (a - b);
            distance <= most
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's correlation by its definition.
    fn correlation(a: &[i128], b: &[i128]) -> f64 {
        let rows = a.len() as f64;
        let mean = |numbers: &[i128]| numbers.iter().sum::<i128>() as f64 / rows;
        let product = |a: &[i128], b: &[i128]| {
            let (mean_a, mean_b) = (mean(a), mean(b));
            a.iter().zip(b).map(|(a, b)| (*a as f64 - mean_a) * (*b as f64 - mean_b)).sum::<f64>()
        };
        product(a, b) / (product(a, a) * product(b, b)).sqrt()
    }

    proptest::proptest! {
        #[test]
        fn the_distance_of_standardized_numbers_tells_their_correlation(
            rows in proptest::collection::vec((-1000_i128..1000, -30_i128..30), 3..60), scale in 1_i128..50) {
            let a: Vec<i128> = rows.iter().map(|(a, _)| *a).collect();
            let b: Vec<i128> = rows.iter().map(|(a, noise)| a * scale + noise).collect();
            let (Some(za), Some(zb)) = (standardized(&a), standardized(&b)) else { return Ok(()) };
            let correlation = correlation(&a, &b);
            if (correlation - CORRELATED).abs() > 1e-9 {
                proptest::prop_assert_eq!(are_correlated(&za, &zb), correlation > CORRELATED);
            }
        }
    }

    #[test]
    fn equal_numbers_have_no_companion() {
        assert_eq!(standardized(&[7, 7, 7]), None);
        assert_eq!(standardized(&[]), None);
    }
}
