//! Evaluations in parts, batches and samples, compared with those of the whole export.

use super::*;
use evenkeel_testkit::{AdEvents, ad_events_definition};

fn evaluator(batches: &[RecordBatch], primary_keys: &[&str]) -> Evaluator {
    let parse = |keys: &[&str]| keys.iter().map(|key| key.parse().unwrap()).collect();
    let options = EvaluateOptions {
        partition_keys: parse(&["user_id", "campaign_id", "hour(event_timestamp)"]),
        primary_keys: parse(primary_keys),
        partitions: vec![PartitionCount::new(16).unwrap(), PartitionCount::new(5).unwrap()],
        batch_rows: 5_000,
        ..EvaluateOptions::default()
    };
    let columns = ad_events_definition().unwrap().columns;
    let mut evaluator = Evaluator::new(&columns, options).unwrap();
    batches.iter().for_each(|batch| evaluator.add(batch).unwrap());
    evaluator
}

fn events(batch_rows: usize) -> Vec<RecordBatch> {
    let options = AdEvents { rows: 20_000, ..AdEvents::default() };
    options.batches(batch_rows).unwrap().map(Result::unwrap).collect()
}

#[test]
fn parts_of_an_export_merge_to_the_whole() {
    let batches = events(5_000);
    let whole = evaluator(&batches, &[]).finish().unwrap();
    let mut merged = evaluator(&batches[..1], &[]);
    merged.merge(evaluator(&batches[1..], &[])).unwrap();
    let merged = merged.finish().unwrap();
    assert_eq!(merged.candidates, whole.candidates);
    assert_eq!((merged.rows, merged.bytes), (whole.rows, whole.bytes));
    let refused =
        evaluator(&batches[..1], &[]).merge(evaluator(&batches[1..], &["event_timestamp, user_id"]));
    assert!(matches!(refused, Err(EvaluateError::NotMergeable)));
}

#[test]
fn figures_do_not_depend_on_how_batches_are_cut() {
    let key = ["event_timestamp, user_id, campaign_id"];
    let whole = evaluator(&events(20_000), &key).finish().unwrap();
    for batch_rows in [333, 5_000] {
        assert_eq!(evaluator(&events(batch_rows), &key).finish().unwrap(), whole, "{batch_rows}");
    }
}

#[test]
fn samples_of_permuted_exports_hold_the_figures_of_the_whole() {
    use arrow::array::UInt32Array;
    use arrow::compute::take_record_batch;
    use rand::seq::SliceRandom;
    const RUNS: usize = 60;
    let [batch] = <[RecordBatch; 1]>::try_from(events(20_000)).unwrap();
    let columns = ad_events_definition().unwrap().columns;
    let keys = ["event_id", "user_id", "campaign_id", "user_id, hour(event_timestamp)", "event_type"];
    let options = EvaluateOptions {
        partition_keys: keys.iter().map(|key| key.parse().unwrap()).collect(),
        partitions: vec![PartitionCount::new(16).unwrap()],
        ..EvaluateOptions::default()
    };
    let evaluate = |batch: &RecordBatch, sample: Option<f64>| {
        let mut evaluator = Evaluator::new(&columns, EvaluateOptions { sample, ..options.clone() }).unwrap();
        evaluator.add(batch).unwrap();
        evaluator.finish().unwrap().candidates
    };
    let truth = evaluate(&batch, None);
    let mut held = vec![[0usize; 5]; keys.len()];
    let mut order: Vec<u32> = (0..20_000).collect();
    let mut random = ChaCha8Rng::seed_from_u64(21);
    for _ in 0..RUNS {
        order.shuffle(&mut random);
        let permuted = take_record_batch(&batch, &UInt32Array::from(order.clone())).unwrap();
        let sampled = evaluate(&permuted, Some(0.05));
        for ((key, truth), held) in sampled.iter().zip(&truth).zip(&mut held) {
            let (placement, whole) = (&key.placements[0], &truth.placements[0].skew);
            let intervals = placement.intervals.as_ref().unwrap();
            let heaviest = key.heavy_hitters[0].share_interval.unwrap();
            let of_heaviest =
                truth.heavy_hitters.iter().find(|hitter| hitter.key == key.heavy_hitters[0].key);
            let of_heaviest = of_heaviest.map_or(heaviest.lower, |hitter| hitter.share);
            let distinct = (key.distinct.lower as f64, key.distinct.upper as f64);
            let figures = [
                (intervals.max_over_mean.lower, intervals.max_over_mean.upper, whole.max_over_mean),
                (intervals.cv.unwrap().lower, intervals.cv.unwrap().upper, whole.cv),
                (intervals.idle_fraction.lower, intervals.idle_fraction.upper, whole.idle_fraction),
                (distinct.0, distinct.1, truth.distinct.estimate as f64),
                (heaviest.lower, heaviest.upper, of_heaviest),
            ];
            for (held, (lower, upper, truth)) in held.iter_mut().zip(figures) {
                *held += usize::from(lower <= truth + 1e-9 && truth <= upper + 1e-9);
            }
        }
    }
    // 57 of 60 runs hold on average; fewer than 51 would be three standard deviations off.
    assert!(held.iter().flatten().all(|held| *held >= 51), "{held:?}");
}
