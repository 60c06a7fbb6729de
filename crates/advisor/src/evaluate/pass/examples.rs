//! Values that are found by reading the export once more: examples of rows that share a primary
//! key, and the values of heavy keys that did not stand out.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};

use ahash::AHashSet;
use arrow::array::{ArrayRef, RecordBatch};

use crate::evaluate::EvaluateError;
use crate::evaluate::figures::partition_key::PartitionKeyReport;
use crate::evaluate::figures::primary_key::{DuplicateExample, PrimaryKeyReport};
use crate::evaluate::pass::batch::json_value;
use crate::evaluate::pass::partition_key::{FoundKey, KeyOccurrence};
use evenkeel_input::source::{Export, ExportPlace, OnUnreadable};
use evenkeel_model::table::{Candidate, Column};
use evenkeel_model::values::derived_column;
use evenkeel_stats::sketch::{column_identities, key_identities};

/// Row with one of the keys.
struct Met {
    row: RecordBatch,
    place: String,
}

/// Search for one example.
struct Search {
    report: usize,
    conflicting: bool,
    before: Option<Met>,
    example: Option<DuplicateExample>,
}

/// Finds rows for the repeated keys of `reports`. Reading ends when all are found.
pub(crate) fn find_examples(
    export: &Export,
    on_unreadable: OnUnreadable,
    reports: &mut [PrimaryKeyReport],
    stop: &AtomicBool,
) -> Result<(), EvaluateError> {
    let mut searches: Vec<HashMap<u64, Search>> = Vec::new();
    for (report, key) in reports.iter().enumerate() {
        let search = |conflicting| Search { report, conflicting, before: None, example: None };
        searches.push(key.repeated.iter().map(|known| (known.key, search(known.conflicting))).collect());
    }
    let mut missing: usize = searches.iter().map(HashMap::len).sum();
    if missing == 0 {
        return Ok(());
    }
    let columns = export.columns();
    export.read_columns::<EvaluateError>(on_unreadable, &|_| true, |place, batch| {
        for (report, searches) in
            reports.iter().zip(&mut searches).filter(|(_, searches)| !searches.is_empty())
        {
            let (key, identities) = keys_of(&report.candidate, columns, &batch);
            for (row, identity) in identities.iter().enumerate() {
                if let Some(search) = searches.get_mut(identity).filter(|search| search.example.is_none()) {
                    search.meet(&key, columns, place, &batch, row);
                    missing -= usize::from(search.example.is_some());
                }
            }
        }
        if stop.load(Ordering::Relaxed) { Err(EvaluateError::Interrupted) } else { Ok(missing > 0) }
    })?;
    let examples = searches
        .into_iter()
        .flat_map(HashMap::into_values)
        .filter_map(|search| search.example.map(|example| (search.report, search.conflicting, example)));
    let mut examples: Vec<_> = examples.collect();
    examples.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.2.first.cmp(&b.2.first)));
    for (report, _, example) in examples {
        if let Some(report) = reports.get_mut(report) {
            report.examples.push(example);
        }
    }
    Ok(())
}

/// Finds the values of heavy keys that are known only by identity, and returns them. Reading ends
/// when all are found.
pub(crate) fn find_values(
    export: &Export,
    on_unreadable: OnUnreadable,
    reports: &mut [PartitionKeyReport],
    stop: &AtomicBool,
) -> Result<Vec<FoundKey>, EvaluateError> {
    let mut occurrences = Vec::new();
    let unknown =
        |report: &PartitionKeyReport| report.heavy_hitters.iter().filter(|h| h.identity.is_some()).count();
    let mut missing: usize = reports.iter().map(unknown).sum();
    if missing == 0 {
        return Ok(occurrences);
    }
    let columns = export.columns();
    let candidates = reports.iter().filter(|report| unknown(report) > 0).map(|report| &report.candidate);
    let read: HashSet<String> =
        candidates.flat_map(|key| key.parts()).map(|part| part.column.clone()).collect();
    let is_read = |position: usize| columns.get(position).is_some_and(|column| read.contains(&column.name));
    export.read_columns::<EvaluateError>(on_unreadable, &is_read, |_, batch| {
        for (number, report) in reports.iter_mut().enumerate().filter(|(_, report)| unknown(report) > 0) {
            let (key, identities) = keys_of(&report.candidate, columns, &batch);
            let is_wanted: AHashSet<u64> = report.heavy_hitters.iter().filter_map(|h| h.identity).collect();
            for (row, identity) in
                identities.iter().enumerate().filter(|(_, identity)| is_wanted.contains(identity))
            {
                let hitter = report.heavy_hitters.iter_mut().enumerate();
                let Some((place, hitter)) = hitter.into_iter().find(|(_, h)| h.identity == Some(*identity))
                else {
                    continue;
                };
                hitter.identity = None;
                hitter.key = key.iter().map(|array| json_value(array, row)).collect();
                missing -= 1;
                let values = hitter.key.clone();
                let partitions = report.partitions_of(&key, row)?;
                if place == 0 {
                    report.place_heaviest(&partitions);
                }
                let of_key = KeyOccurrence { values, partitions };
                occurrences.push(FoundKey { partition_key: number, identity: *identity, occurrence: of_key });
            }
        }
        if stop.load(Ordering::Relaxed) { Err(EvaluateError::Interrupted) } else { Ok(missing > 0) }
    })?;
    Ok(occurrences)
}

/// Returns the columns of a key, and its identity in every row.
fn keys_of(candidate: &Candidate, columns: &[Column], batch: &RecordBatch) -> (Vec<ArrayRef>, Vec<u64>) {
    let of_part = |part: &evenkeel_model::table::KeyPart| {
        let position = columns.iter().position(|column| column.name == part.column)?;
        derived_column(batch.columns().get(position)?, part.transform)
    };
    let key: Vec<ArrayRef> = candidate.parts().iter().filter_map(of_part).collect();
    let identities = key_identities(&key);
    (key, identities)
}

impl Search {
    /// Checks a row with the key. The previous row and this one form the example if they differ and
    /// a conflict is wanted, or are identical and a copy is wanted.
    fn meet(
        &mut self,
        key: &[ArrayRef],
        columns: &[Column],
        place: &ExportPlace,
        batch: &RecordBatch,
        row: usize,
    ) {
        let met = Met { row: batch.slice(row, 1), place: place.row_place(row) };
        if let Some(before) = self.before.replace(met)
            && let Some(met) = &self.before
        {
            let differs = columns.iter().zip(before.row.columns().iter().zip(met.row.columns()));
            let differs_in: Vec<String> = differs
                .filter(|(_, (a, b))| column_identities(a) != column_identities(b))
                .map(|(column, _)| column.name.clone())
                .collect();
            if differs_in.is_empty() != self.conflicting {
                self.example = Some(DuplicateExample {
                    key: key.iter().map(|array| json_value(array, row)).collect(),
                    first: before.place,
                    second: met.place.clone(),
                    differs_in,
                });
            }
        }
    }
}
