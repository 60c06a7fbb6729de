//! Which portions a compaction merges, and which it drops.

use proptest::prelude::{Just, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::*;
use evenkeel_model::table::{KeyRange, KeyValue};
use evenkeel_model::units::{PartitionId, Version};
use evenkeel_stats::overlap::depths;

const TARGET: u64 = 6400;

fn policy() -> CompactionPolicy {
    CompactionPolicy { max_depth: 3, target: ByteSize(TARGET), fan_in: 4 }
}

fn portion(version: u64, min: i64, max: i64, bytes: u64) -> Arc<PortionEntry> {
    let range =
        |min: i64, max: i64| KeyRange { min: vec![KeyValue::Int(min)], max: vec![KeyValue::Int(max)] };
    Arc::new(PortionEntry {
        path: format!("v{version} {min}..{max}"),
        partition: PartitionId(0),
        sequence: Sequence { version: Version(version), ordinal: 0 },
        rows: bytes / 10,
        bytes,
        column_ranges: vec![range(min, max)],
        key_range: range(min, max),
        xxh3: String::new(),
        deletes: false,
    })
}

fn versions(merges: &[Merge]) -> Vec<Vec<u64>> {
    merges.iter().map(|merge| merge.portions.iter().map(|p| p.sequence.version.0).collect()).collect()
}

fn decided(portions: &[Arc<PortionEntry>]) -> Vec<Vec<u64>> {
    versions(&policy().decide(portions, Scope::Policy, None, 100).merges)
}

#[test]
fn decisions_by_table() {
    let many =
        |n: u64, bytes: u64| (0..n).map(|i| portion(i, i as i64 * 10, i as i64 * 10 + 5, bytes)).collect();
    let cases: [(&str, Portions, Vec<Vec<u64>>); 9] = [
        ("nothing", vec![], vec![]),
        ("one portion", vec![portion(1, 0, 9, 1)], vec![]),
        (
            "three deep is allowed",
            vec![portion(1, 0, 9, 9), portion(2, 0, 9, 9), portion(3, 0, 9, 9)],
            vec![],
        ),
        (
            "four deep: the cheapest neighbours in age, and as many as are as cheap",
            vec![portion(1, 0, 9, 900), portion(2, 0, 9, 800), portion(3, 0, 9, 10), portion(4, 0, 9, 10)],
            vec![vec![3, 4]],
        ),
        (
            "portions between in age and key belong to the set",
            vec![
                portion(1, 0, 9, 500),
                portion(2, 0, 4, 1),
                portion(3, 20, 29, 1),
                portion(4, 0, 29, 1),
                portion(5, 0, 9, 900),
            ],
            vec![vec![2, 3, 4]],
        ),
        ("neighbours without overlap stay while they are few", many(3, 300), vec![]),
        ("and are merged once they are many", many(4, 300), vec![vec![0, 1, 2, 3]]),
        ("or once they fill the target", many(3, 1590), vec![]),
        ("large ones stay", many(9, TARGET / 4), vec![]),
    ];
    for (name, portions, expected) in cases {
        assert_eq!(decided(&portions), expected, "{name}");
    }
    // Two are enough if they fill three quarters of the target; bounds are tried from the
    // smallest.
    let filled =
        [portion(1, 0, 5, 1590), portion(2, 10, 15, 1590), portion(3, 20, 25, 1590), portion(4, 30, 35, 100)];
    assert_eq!(decided(&filled), [vec![1, 2, 3, 4]]);
}

#[test]
fn everything_becomes_one_run_and_a_run_stays() {
    let portions = [portion(1, 0, 9, 1), portion(2, 20, 29, 1), portion(3, 40, 49, 1)];
    let all = policy().decide(&portions, Scope::Everything, None, 100);
    assert_eq!(versions(&all.merges), [vec![1, 2, 3]]);
    let run = [portion(7, 0, 9, TARGET), portion(7, 20, 29, 1)];
    assert!(policy().decide(&run, Scope::Everything, None, 100).is_empty());
    let crumbs = [portion(7, 0, 9, 1), portion(7, 20, 29, 1), portion(7, 30, 39, 1)];
    assert_eq!(versions(&policy().decide(&crumbs, Scope::Everything, None, 100).merges), [vec![7, 7, 7]]);
    let deep: Vec<_> = (0..7).map(|version| portion(version, 0, 9, 1)).collect();
    let chunks = policy().decide(&deep, Scope::Everything, None, 3);
    assert_eq!(versions(&chunks.merges), [vec![0, 1, 2], vec![3, 4, 5]]);
}

#[test]
fn expired_portions_go_unless_they_would_uncover_what_they_replaced() {
    let expiry = Expiry { column: 0, oldest_kept: KeyValue::Int(50) };
    let expired = |portions: &[Arc<PortionEntry>]| {
        let decision = policy().decide(portions, Scope::Policy, Some(&expiry), 100);
        let dropped: Vec<u64> = decision.expired.iter().map(|p| p.sequence.version.0).collect();
        (dropped, versions(&decision.merges))
    };
    assert_eq!(expired(&[portion(1, 0, 49, 1), portion(2, 10, 50, 1)]), (vec![1], vec![vec![2]]));
    // Portion 1 is partly alive. Portion 2 may hide rows of it, so it is not dropped yet.
    assert_eq!(expired(&[portion(1, 0, 90, 1), portion(2, 10, 40, 1)]), (vec![], vec![vec![1]]));
    assert_eq!(expired(&[portion(1, 10, 40, 1), portion(2, 0, 49, 1)]), (vec![1, 2], vec![]));
    assert_eq!(expired(&[portion(1, 45, 90, 1)]), (vec![], vec![]));
    let all = policy().decide(&[portion(1, 45, 90, 1)], Scope::Everything, Some(&expiry), 100);
    assert!(all.merges[0].hides_nothing);
}

#[test]
fn deletes_go_once_nothing_older_is_left() {
    let deletes = |version: u64, min: i64, max: i64| {
        Arc::new(PortionEntry { deletes: true, ..portion(version, min, max, 10).as_ref().clone() })
    };
    let dropped = |portions: &[Arc<PortionEntry>]| {
        let decision = policy().decide(portions, Scope::Policy, None, 100);
        decision.expired.iter().map(|p| p.sequence.version.0).collect::<Vec<_>>()
    };
    assert_eq!(dropped(&[deletes(1, 0, 9)]), [1]);
    assert_eq!(dropped(&[portion(1, 0, 9, 1), deletes(2, 5, 20)]), [0u64; 0]);
    assert_eq!(dropped(&[portion(1, 0, 9, 1), deletes(2, 10, 20)]), [2]);
    // Deletes affect neither newer rows nor rows of the same commit.
    assert_eq!(dropped(&[deletes(1, 0, 9), portion(1, 0, 9, 1), portion(2, 0, 9, 1)]), [1]);
    assert_eq!(dropped(&[deletes(1, 0, 9), deletes(2, 0, 9)]), [1, 2]);
    // A merge of new portions keeps them as long as an older one shares keys.
    let old = portion(1, 0, 9, TARGET);
    let more = [old, deletes(2, 0, 9), portion(3, 0, 9, 10), portion(4, 0, 9, 10)];
    let merges = policy().decide(&more, Scope::Policy, None, 100).merges;
    assert_eq!(versions(&merges), [vec![2, 3, 4]]);
    assert!(merges[0].keeps_deletes());
    let all = policy().decide(&more, Scope::Everything, None, 100).merges;
    assert!(!all[0].keeps_deletes());
    // Rows and deletes of one run are as merged as can be.
    let run = [portion(1, 0, 9, TARGET), portion(5, 0, 9, TARGET * 3 / 8), deletes(5, 0, 9)];
    assert!(policy().decide(&run, Scope::Policy, None, 100).is_empty());
}

/// Applies a decision to the metadata, as if no key occurred twice.
fn carry_out(portions: &mut Vec<Arc<PortionEntry>>, decision: &Decision, written: &mut u64) {
    portions.retain(|portion| !contains(&decision.expired, portion));
    for merge in &decision.merges {
        portions.retain(|portion| !contains(&merge.portions, portion));
        let (deletes, rows): (Portions, Portions) =
            merge.portions.iter().cloned().partition(|portion| portion.deletes);
        if let Some(hull) = hull(&deletes).filter(|_| merge.keeps_deletes()) {
            let bytes = deletes.iter().map(|portion| portion.bytes).sum();
            let (KeyValue::Int(min), KeyValue::Int(max)) = (&hull.min[0], &hull.max[0]) else { panic!() };
            let of_run = portion(merge.sequence().unwrap().version.0, *min, *max, bytes);
            portions.push(Arc::new(PortionEntry { deletes: true, ..of_run.as_ref().clone() }));
        }
        let Some(hull) = hull(&rows) else { continue };
        let (KeyValue::Int(min), KeyValue::Int(max)) = (&hull.min[0], &hull.max[0]) else { panic!() };
        let pieces = (merge.bytes() / TARGET).max(1).min((max - min).max(1) as u64);
        let width = (max - min) / pieces as i64;
        for piece in 0..pieces as i64 {
            let end = if piece + 1 == pieces as i64 { *max } else { min + (piece + 1) * width - 1 };
            portions.push(portion(
                merge.sequence().unwrap().version.0,
                min + piece * width,
                end.max(min + piece * width),
                merge.bytes() / pieces,
            ));
        }
        *written += merge.bytes();
    }
}

/// Bytes rewritten per ingested byte, and the greatest depth left after any batch.
fn amplification(batches: u64, batch: impl Fn(u64) -> Arc<PortionEntry>) -> (f64, u64) {
    let policy = CompactionPolicy { max_depth: 8, target: ByteSize(TARGET), fan_in: 64 };
    let (mut portions, mut came, mut written, mut deepest) = (Vec::new(), 0, 0, 0);
    for version in 0..batches {
        let new = batch(version);
        came += new.bytes;
        portions.push(new);
        loop {
            let decision = policy.decide(&portions, Scope::Policy, None, 100);
            if decision.is_empty() {
                break;
            }
            carry_out(&mut portions, &decision, &mut written);
        }
        let ranges: Vec<_> =
            portions.iter().map(|p| (p.key_range.min.clone(), p.key_range.max.clone())).collect();
        deepest = deepest.max(depths(&ranges).into_iter().max().unwrap());
    }
    (written as f64 / came as f64, deepest)
}

#[test]
fn appended_data_is_hardly_rewritten_and_scattered_data_is() {
    let appended = amplification(300, |v| portion(v, v as i64 * 1000, v as i64 * 1000 + 999, 200));
    let late = amplification(300, |v| portion(v, v as i64 * 1000 - 1500, v as i64 * 1000 + 999, 200));
    let scattered = amplification(300, |v| portion(v, 0, 1_000_000, 200));
    println!("appended {appended:?}, with late rows {late:?}, scattered {scattered:?}");
    assert!(appended.0 <= 1.0, "{appended:?}");
    assert!(late.0 <= 1.5, "{late:?}");
    assert!(scattered.0 > 2.0 && scattered.0 < 8.0, "{scattered:?}");
    assert!(appended.1 == 1 && late.1 <= 8 && scattered.1 <= 8);
}

proptest! {
    #[test]
    fn every_merge_keeps_the_order_of_ages_and_asking_ends(
        shapes in proptest::collection::vec(
            (0i64..60, 0i64..30, prop_oneof![1u64..50, Just(2000u64), Just(30_000u64)], proptest::bool::weighted(0.25)),
            1..40
        ),
        max_runs in 2usize..6,
        everything in proptest::prelude::any::<bool>(),
        max_depth in 1usize..5,
        oldest_kept in proptest::option::of(0i64..60),
    ) {
        let of_shape = |((min, width, bytes, deletes), version): (&(i64, i64, u64, bool), u64)| {
            let rows = portion(version, *min, min + width, *bytes);
            Arc::new(PortionEntry { deletes: *deletes, ..rows.as_ref().clone() })
        };
        let mut portions: Vec<_> = shapes.iter().zip(1..).map(of_shape).collect();
        let has_deletes = shapes.iter().any(|shape| shape.3);
        let scope = if everything { Scope::Everything } else { Scope::Policy };
        let policy = || CompactionPolicy { max_depth, ..policy() };
        let expiry = oldest_kept.map(|kept| Expiry { column: 0, oldest_kept: KeyValue::Int(kept) });
        let mut rounds = 0;
        loop {
            let decision = policy().decide(&portions, scope, expiry.as_ref(), max_runs);
            if decision.is_empty() { break; }
            let mut seen = decision.expired.clone();
            for merge in &decision.merges {
                for member in &merge.portions {
                    prop_assert!(!contains(&seen, member), "a portion in two sets");
                    seen.push(Arc::clone(member));
                }
                let hull = hull(&merge.portions).unwrap();
                let deep = deepest(&merge.portions).unwrap().len();
                // The rows and the deletes of a run overlap.
                let most = max_runs * if has_deletes { 2 } else { 1 };
                prop_assert!(deep <= most, "{deep} runs at one time, {max_runs} are allowed");
                let (oldest, newest) = (merge.portions[0].sequence, merge.sequence().unwrap());
                let outside = |other: &&Arc<PortionEntry>| {
                    !contains(&merge.portions, other) && !contains(&decision.expired, other)
                };
                for other in portions.iter().filter(outside) {
                    let between = other.sequence > oldest && other.sequence < newest;
                    prop_assert!(!(between && hull.overlaps(&other.key_range)), "{} is torn", other.path);
                }
            }
            let mut written = 0;
            carry_out(&mut portions, &decision, &mut written);
            rounds += 1;
            // Rewriting partly expired portions changes nothing here, since no rows are
            // dropped.
            if expiry.is_some() && rounds > 3 { break; }
            prop_assert!(rounds < 200, "it does not end");
        }
        if expiry.is_none() && !everything {
            let ranges: Vec<_> =
                portions.iter().map(|p| (p.key_range.min.clone(), p.key_range.max.clone())).collect();
            // The rows and the deletes of one run may overlap.
            let most = if has_deletes { max_depth.max(2) } else { max_depth };
            prop_assert!(depths(&ranges).into_iter().max().unwrap_or(0) <= most as u64);
        }
        if expiry.is_none() && everything {
            let ages: std::collections::BTreeSet<_> = portions.iter().map(|p| p.sequence).collect();
            // Of deletes alone nothing is left.
            let has_rows = shapes.iter().any(|shape| !shape.3);
            prop_assert_eq!(ages.len(), usize::from(has_rows));
        }
    }
}
