//! Cost of a workload, compared with a count of every read.

use super::*;

/// Each entity alone, and each with each other.
fn by_force(workload: &Workload<'_>, key: &[String]) -> f64 {
    let mut sum = 0.0;
    for (entity, weight) in &workload.entities {
        let alone = workload.visits(key, &entity.iter().collect::<Vec<_>>());
        let others = workload.entities.iter().filter(|(other, _)| other != entity);
        let rest: f64 = others.clone().map(|(_, share)| share).sum();
        let pairs: f64 = others
            .map(|(other, share)| {
                share / rest * workload.visits(key, &entity.iter().chain(other).collect::<Vec<_>>())
            })
            .sum();
        sum += weight * ((1.0 - SECOND_ENTITY) * alone + SECOND_ENTITY * pairs);
    }
    sum
}

#[test]
fn reads_of_pairs_of_entities_are_those_of_each_with_each_other() {
    let knowledge =
        Knowledge { roles: &[], natural_key: &[], identifying: &[], joined: &[], of_events: false };
    let named = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let weights = [0.4, 0.3, 0.15, 0.1, 0.05];
    let entities = [vec!["a"], vec!["b"], vec!["b", "c"], vec!["d"], vec!["a", "d", "e"]];
    let entities = entities.iter().zip(weights).map(|(names, weight)| (named(names), weight)).collect();
    let workload = Workload {
        knowledge: &knowledge,
        entities,
        entity_reads: 0.5,
        codes: Vec::new(),
        joins: Vec::new(),
        partitions: 16.0,
    };
    for key in [vec!["a"], vec!["b"], vec!["a", "b"], vec!["a", "c"], vec!["x"], vec!["c", "d", "e"]] {
        let key = named(&key);
        let (found, expected) = (workload.entity_reads(&key), by_force(&workload, &key));
        assert!((found - expected).abs() < 1e-12, "{key:?}: {found} and {expected}");
    }
}
