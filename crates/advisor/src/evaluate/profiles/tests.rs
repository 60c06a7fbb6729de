//! Merged profiles against one evaluation of all rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use arrow::compute::{concat_batches, take_record_batch};
use parquet::arrow::ArrowWriter;

use super::*;
use crate::evaluate::{AdvisorOptions, AdvisorReport, Evaluation, LateRows, advise};
use evenkeel_input::source::{Export, InputOptions, InputPath};
use evenkeel_model::units::{ByteSize, Micros, PartitionCount};
use evenkeel_stats::sketch::fold;
use evenkeel_testkit::AdEvents;

struct Days {
    folder: tempfile::TempDir,
    files: Vec<PathBuf>,
}

impl Days {
    /// Writes rows into files that are cut at the given rows.
    fn new(rows: &RecordBatch, cuts: &[usize]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ends = cuts.iter().copied().chain([rows.num_rows()]);
        let mut begin = 0;
        let mut files = Vec::new();
        for (number, end) in ends.enumerate() {
            let path = folder.path().join(format!("day{number}.parquet"));
            write(&path, &rows.slice(begin, end - begin));
            files.push(path);
            begin = end;
        }
        Self { folder, files }
    }

    fn export(files: &[PathBuf]) -> Export {
        let inputs: Vec<InputPath> = files.iter().cloned().map(InputPath::File).collect();
        Export::open(&inputs, InputOptions::default(), &Default::default()).unwrap()
    }

    fn whole(&self, options: &AdvisorOptions) -> AdvisorReport {
        advise(&Self::export(&self.files), options.clone(), &|_| (), &AtomicBool::new(false)).unwrap()
    }

    /// Saves a profile of each file, and reads it back.
    fn profiles(&self, options: &AdvisorOptions, most_bytes: u64) -> Vec<Profile> {
        let save = |(number, file): (usize, &PathBuf)| {
            let export = Self::export(std::slice::from_ref(file));
            let stop = AtomicBool::new(false);
            let (_, profile) = advise_and_save(&export, options.clone(), most_bytes, &|_| (), &stop).unwrap();
            let path = self.folder.path().join(format!("{number}.ek"));
            profile.write(&path).unwrap();
            Profile::read(&path).unwrap()
        };
        self.files.iter().enumerate().map(save).collect()
    }
}

fn write(path: &Path, batch: &RecordBatch) {
    let file = std::fs::File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn merged(profiles: Vec<Profile>) -> AdvisorReport {
    let stop = AtomicBool::new(false);
    advise_merged(profiles, AdvisorOptions::default(), None, &stop).unwrap().0
}

/// Events in the order of their time.
fn events(rows: u64) -> RecordBatch {
    let events = AdEvents { rows, users: 900, duplicate_share: 0.02, ..AdEvents::default() };
    let batches: Vec<RecordBatch> = events.batches(10_000).unwrap().map(Result::unwrap).collect();
    let all = concat_batches(&batches[0].schema(), &batches).unwrap();
    let time = all.column_by_name("event_timestamp").unwrap();
    let order = arrow::compute::sort_to_indices(time, None, None).unwrap();
    take_record_batch(&all, &order).unwrap()
}

fn named() -> AdvisorOptions {
    let keys = |keys: &[&str]| keys.iter().map(|key| key.parse().unwrap()).collect();
    let partitions = [16, 5].map(|count| PartitionCount::new(count).unwrap());
    AdvisorOptions {
        evaluate: EvaluateOptions {
            partition_keys: keys(&["user_id", "campaign_id", "hour(event_timestamp)", "user_id, event_id"]),
            primary_keys: keys(&["event_timestamp, user_id, campaign_id", "user_id, event_timestamp"]),
            partitions: partitions.to_vec(),
            batch_rows: 500,
            ..EvaluateOptions::default()
        },
        ..AdvisorOptions::default()
    }
}

/// Figures that do not depend on the places of rows.
fn figures(report: AdvisorReport) -> Evaluation {
    let mut evaluation = report.evaluation;
    evaluation.primary_keys.iter_mut().for_each(|key| key.examples.clear());
    for key in &mut evaluation.primary_keys {
        key.repeated.clear();
    }
    evaluation
}

#[test]
fn merged_profiles_have_the_figures_of_one_pass() {
    let rows = events(9_000);
    let days = Days::new(&rows, &[2_000, 2_500, 6_500]);
    for window in [None, Some(Micros::HOUR)] {
        let options = named();
        let options =
            AdvisorOptions { evaluate: EvaluateOptions { window, ..options.evaluate.clone() }, ..options };
        let whole = days.whole(&options);
        assert!(whole.evaluation.primary_keys[0].duplicate_rows > 0);
        let mut profiles = days.profiles(&options, DEFAULT_PROFILE_BYTES);
        profiles.rotate_left(2);
        let report = merged(profiles);
        assert_eq!(report.profiles.len(), 4);
        assert_eq!(
            (&report.recommendation.partition_key, &report.recommendation.primary_key),
            (&whole.recommendation.partition_key, &whole.recommendation.primary_key)
        );
        assert!(!report.notes.iter().any(|note| note.code() == "profiles_overlap"));
        let (mut merged, whole) = (figures(report), figures(whole));
        // Keys that begin with the user overlap, but nothing is unknown.
        for key in &mut merged.primary_keys {
            assert!(key.late.at_most.take().is_none_or(|most| most == key.late.rows), "{:?}", key.late);
        }
        assert_eq!(merged, whole);
    }
}

#[test]
fn profiles_of_merged_profiles_merge_on() {
    let rows = events(6_000);
    let days = Days::new(&rows, &[1_500, 3_000, 4_500]);
    let options = named();
    let all = days.profiles(&options, DEFAULT_PROFILE_BYTES);
    let stop = AtomicBool::new(false);
    let mut so_far = all[0].clone();
    for next in &all[1..] {
        let both = vec![so_far, next.clone()];
        let (_, profile) =
            advise_merged(both, AdvisorOptions::default(), Some(DEFAULT_PROFILE_BYTES), &stop).unwrap();
        so_far = Profile::from_bytes("so_far.ek", &profile.unwrap().to_bytes().unwrap()).unwrap();
    }
    assert_eq!(so_far.header.parts.len(), 4);
    let twice = advise_merged(vec![so_far.clone(), all[2].clone()], AdvisorOptions::default(), None, &stop);
    assert!(matches!(twice, Err(ProfileError::Twice { rows: 1_500, .. })), "{:?}", twice.map(|_| ()));
    assert_eq!(figures(merged(vec![so_far])), figures(merged(all)));
}

#[test]
fn a_small_profile_has_estimates_within_their_bounds() {
    let rows = 900_000i64;
    let id: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..rows).map(|row| {
            if row % 20 == 0 { row % 7 } else { (fold(row.cast_unsigned(), 3) >> 1).cast_signed() }
        })));
    let at: ArrayRef =
        Arc::new(TimestampMicrosecondArray::from_iter_values((0..rows).map(|row| row * 1_000_000)));
    let text: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("c{}", row % 300))));
    let rows = RecordBatch::try_from_iter([("id", id), ("at", at), ("text", text)]).unwrap();
    let days = Days::new(&rows, &[300_000, 600_000]);
    let keys = |keys: &[&str]| keys.iter().map(|key| key.parse().unwrap()).collect();
    let options = AdvisorOptions {
        evaluate: EvaluateOptions {
            partition_keys: keys(&["id", "text"]),
            primary_keys: keys(&["at, id", "id"]),
            partitions: vec![PartitionCount::new(16).unwrap()],
            batch_rows: 50_000,
            ..EvaluateOptions::default()
        },
        ..AdvisorOptions::default()
    };
    let whole = days.whole(&options).evaluation;
    let profiles = days.profiles(&options, 50_000);
    assert_eq!(profiles[0].reduced_keys(), ["HASH(id)", "PRIMARY KEY (at, id)", "PRIMARY KEY (id)"]);
    let report = merged(profiles);
    // Disjoint times show that no key with the time repeats; nothing is known about the other.
    let columns = |key: &crate::evaluate::PrimaryKeyReport| key.columns.join(", ");
    assert_eq!(report.evaluation.primary_keys.iter().map(columns).collect::<Vec<_>>(), ["at, id"]);
    assert!(report.notes.iter().any(|note| note.code() == "repeats_unknown"));
    let (key, truth) = (&report.evaluation.primary_keys[0], &whole.primary_keys[0]);
    assert_eq!((key.distinct_keys, key.duplicate_rows), (truth.distinct_keys, truth.duplicate_rows));
    let (id, truth) = (&report.evaluation.candidates[0], &whole.candidates[0]);
    assert!(!id.distinct.exact && report.evaluation.candidates[1] == whole.candidates[1]);
    assert!((id.distinct.lower..=id.distinct.upper).contains(&truth.distinct.estimate), "{:?}", id.distinct);
    assert_eq!(id.placements[0].rows_per_partition, truth.placements[0].rows_per_partition);
    let seven: Vec<u64> = truth.heavy_hitters.iter().take(7).map(|heavy| heavy.rows).collect();
    for (heavy, rows) in id.heavy_hitters.iter().zip(seven) {
        assert!(heavy.rows <= rows && rows <= heavy.rows + heavy.error, "{heavy:?} {rows}");
    }
}

#[test]
fn late_rows_of_profiles_that_overlap_have_bounds() {
    // Both days count the same keys from the first to the last, so that the second day is late.
    let rows = 8_000i64;
    let key: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..rows).map(|row| (row % 4_000) * 3 + row / 4_000)));
    let at: ArrayRef =
        Arc::new(TimestampMicrosecondArray::from_iter_values((0..rows).map(|row| row * 60_000_000)));
    let late: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(
        // The second day begins before the end of the first.
        (0..rows).map(|row| (row - if row < 4_000 { 0 } else { 1_000 }) * 60_000_000 + row % 2),
    ));
    let rows = RecordBatch::try_from_iter([("k", key), ("at", at), ("late", late)]).unwrap();
    let days = Days::new(&rows, &[4_000]);
    for (time, primary_key) in [("at", "k"), ("late", "late, k"), ("at", "at, k")] {
        let options = AdvisorOptions {
            evaluate: EvaluateOptions {
                partition_keys: vec!["k".parse().unwrap()],
                primary_keys: vec![primary_key.parse().unwrap()],
                partitions: vec![PartitionCount::new(4).unwrap()],
                time: Some(time.to_owned()),
                batch_rows: 1_000,
                ..EvaluateOptions::default()
            },
            ..AdvisorOptions::default()
        };
        let truth = days.whole(&options).evaluation.primary_keys.remove(0).late;
        let late =
            merged(days.profiles(&options, DEFAULT_PROFILE_BYTES)).evaluation.primary_keys.remove(0).late;
        let LateRows { rows, at_most, reach } = late;
        if primary_key.starts_with("at") {
            assert_eq!((rows, at_most), (0, None));
            continue;
        }
        let most = at_most.unwrap();
        assert!(rows <= truth.rows && truth.rows <= most, "{rows} {most} {}", truth.rows);
        assert!(most - rows <= 4 * 40, "{rows} {most}");
        if let (Some(actual), Some(truth)) = (reach, truth.reach) {
            assert_eq!(actual.max_micros, truth.max_micros);
            for (actual, truth) in actual.rows_by_more_than.into_iter().zip(truth.rows_by_more_than) {
                assert!(actual <= truth && truth - actual <= 4 * 40, "{actual} {truth}");
            }
        }
    }
}

#[test]
fn keys_that_only_some_count_are_left_out_with_a_note() {
    let days = Days::new(&events(2_000), &[1_000]);
    let one = named();
    let mut other = one.clone();
    other.evaluate.partition_keys.remove(1);
    other.evaluate.primary_keys.remove(0);
    let stop = AtomicBool::new(false);
    let save = |file: usize, options: &AdvisorOptions| {
        let export = Days::export(&days.files[file..=file]);
        advise_and_save(&export, options.clone(), 1 << 20, &|_| (), &stop).unwrap().1
    };
    let report = merged(vec![save(0, &one), save(1, &other)]);
    assert_eq!((report.evaluation.candidates.len(), report.evaluation.primary_keys.len()), (3, 1));
    let missing = report.notes.iter().filter(|note| note.code() == "keys_not_in_all_profiles");
    assert_eq!(missing.count(), 1);
    other.evaluate.partition_keys = vec!["ad_id".parse().unwrap()];
    let both = vec![save(0, &one), save(1, &other)];
    let refused = advise_merged(both, AdvisorOptions::default(), None, &stop);
    assert!(matches!(refused, Err(ProfileError::NoCommonKey { .. })));
    // Options that change what is counted.
    let partitions = vec![PartitionCount::new(7).unwrap()];
    for (option, changed) in [
        ("--partitions or --nodes", EvaluateOptions { partitions, ..one.evaluate.clone() }),
        ("--window", EvaluateOptions { window: Some(Micros::DAY), ..one.evaluate.clone() }),
        ("--batch", EvaluateOptions { batch_rows: 7, ..one.evaluate.clone() }),
    ] {
        let changed = AdvisorOptions { evaluate: changed, ..one.clone() };
        let both = vec![save(0, &one), save(1, &changed)];
        let refused = advise_merged(both, AdvisorOptions::default(), None, &stop).unwrap_err();
        assert!(
            matches!(refused, ProfileError::Options { option: differing, .. } if differing == option),
            "{refused}"
        );
    }
    // Memory may differ.
    let more = EvaluateOptions { memory: ByteSize::mib(2048), ..one.evaluate.clone() };
    merged(vec![save(0, &one), save(1, &AdvisorOptions { evaluate: more, ..one.clone() })]);
}

/// Rows; a profile written by an earlier version has the first half.
fn pinned() -> RecordBatch {
    let rows = 400i64;
    let number = |row: i64, salt: u64| fold(row.cast_unsigned(), salt) % 97;
    let user: ArrayRef = Arc::new(StringArray::from_iter(
        (0..rows).map(|row| (row % 31 != 0).then(|| format!("user {}", number(row, 5)))),
    ));
    let item: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|row| number(row, 9) as i64)));
    let at = (0..rows).map(|row| 1_700_000_000_000_000 + row * 700_000_000 - row % 5 * 1_000_000_000);
    let at: ArrayRef = Arc::new(TimestampMicrosecondArray::from_iter_values(at));
    RecordBatch::try_from_iter([("user", user), ("item", item), ("at", at)]).unwrap()
}

fn pinned_options() -> AdvisorOptions {
    let keys = |keys: &[&str]| keys.iter().map(|key| key.parse().unwrap()).collect();
    AdvisorOptions {
        evaluate: EvaluateOptions {
            partition_keys: keys(&["user", "item, hour(at)"]),
            primary_keys: keys(&["at, item", "item, user"]),
            partitions: vec![PartitionCount::new(8).unwrap()],
            batch_rows: 50,
            ..EvaluateOptions::default()
        },
        ..AdvisorOptions::default()
    }
}

#[test]
fn a_profile_of_the_first_version_is_still_read() {
    let days = Days::new(&pinned(), &[200]);
    let pinned = Profile::from_bytes("v1.ek", include_bytes!("v1.ek")).unwrap();
    let [first, second] = <[Profile; 2]>::try_from(days.profiles(&pinned_options(), 1 << 20)).unwrap();
    let stop = AtomicBool::new(false);
    let twice = advise_merged(vec![pinned.clone(), first], AdvisorOptions::default(), None, &stop);
    assert!(matches!(twice, Err(ProfileError::Twice { .. })));
    let (mut merged, whole) = (figures(merged(vec![pinned, second])), figures(days.whole(&pinned_options())));
    for key in &mut merged.primary_keys {
        assert!(key.late.at_most.take().is_none_or(|most| most == key.late.rows), "{:?}", key.late);
    }
    assert!(whole.primary_keys[0].late.rows > 0 && whole.primary_keys[1].duplicate_rows > 0);
    // Late rows by time are a lower bound, because the halves overlap.
    let late = |evaluation: &mut Evaluation| {
        evaluation.time_range.as_mut().map(|range| std::mem::take(&mut range.late_rows_by_more_than))
    };
    let mut whole = whole;
    let (actual, truth) = (late(&mut merged).unwrap(), late(&mut whole).unwrap());
    assert!(actual.iter().zip(truth).all(|(actual, truth)| *actual <= truth && truth - actual <= 4));
    for (key, truth) in merged.primary_keys.iter_mut().zip(&whole.primary_keys) {
        let (Some(actual), Some(truth)) = (&mut key.late.reach, &truth.late.reach) else { continue };
        let rows = actual.rows_by_more_than.iter().zip(truth.rows_by_more_than);
        assert!(rows.clone().all(|(actual, truth)| *actual <= truth && truth - actual <= 4));
        actual.rows_by_more_than = truth.rows_by_more_than;
    }
    assert_eq!(merged, whole);
}

/// Writes the profile that [`a_profile_of_the_first_version_is_still_read`] reads. A new version of
/// the format gets a separate file.
#[test]
#[ignore = "writes a file of the project"]
fn write_the_pinned_profile() {
    let days = Days::new(&pinned(), &[200]);
    let first = days.profiles(&pinned_options(), 1 << 20).remove(0);
    first.write(Path::new("src/evaluate/profiles/v1.ek")).unwrap();
}

#[test]
fn damaged_profiles_are_refused() {
    let days = Days::new(&events(1_000), &[]);
    let profile = days.profiles(&named(), 1 << 20).remove(0);
    let bytes = profile.to_bytes().unwrap();
    let refused = |bytes: &[u8]| Profile::from_bytes("x.ek", bytes).map(|_| ()).unwrap_err().to_string();
    assert!(refused(b"user_id,at\n1,2\n").contains("x.ek: is not a profile"));
    let mut newer = bytes.clone();
    newer[17] = 9;
    assert!(refused(&newer).contains("format 9"), "{}", refused(&newer));
    for step in 0..200 {
        let mut changed = bytes.clone();
        let place = 29 + fold(step, 1) as usize % (bytes.len() - 29);
        if step % 2 == 0 {
            changed.truncate(place);
        } else {
            changed[place] ^= 1 << (step % 8);
        }
        // Zstandard ignores some bits; the result is then the same.
        if let Ok(read) = Profile::from_bytes("x.ek", &changed) {
            assert_eq!(read.state, Some(profile.state().unwrap()));
        }
    }
}
