//! Processes that are held up at any request, one or two at once, while others work and clean.

use std::sync::Arc;

use evenkeel::Table;
use object_store::ObjectStore;
use object_store::memory::InMemory;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::crash::{spec, tell};
use crate::hooked_store::HookedStore;
use crate::interleavings::acts::Act::{self, Alter, Clean, Compact, Delete, Export, Insert, Sweep, Upsert};
use crate::interleavings::gates::{Gate, Process, requests};
use crate::interleavings::outcomes::{Outcomes, verify};
use crate::interleavings::{copy, storage, template, whole};

/// One process is held up at a request while others do their work from beginning to end.
async fn held_up(template: &Arc<dyn ObjectStore>, keys: i64, act: Act, at: usize, others: &[Act]) {
    let what = format!("{act:?} held up at request {at}, meanwhile {others:?}");
    let store = copy(template).await;
    let process = Process::begin(&store, act, at).await;
    let mut ended = Vec::new();
    for other in others {
        ended.push((*other, whole(&store, *other, &what).await));
    }
    ended.push((act, process.end(&what).await));
    let acts = others.iter().copied().chain([act]).collect();
    verify(&store, keys, Outcomes { what: &what, acts, ended }).await;
}

const ACTS: [Act; 8] = [Upsert(100), Insert(100), Delete(0), Compact, Alter, Clean, Sweep, Export];

/// What may happen while a process is held up.
const MEANWHILE: &[&[Act]] = &[
    &[Clean],
    &[Sweep],
    &[Upsert(200), Clean],
    &[Insert(200), Sweep],
    &[Compact, Clean],
    &[Alter, Clean],
    &[Compact, Export, Clean],
    &[Delete(1), Compact, Clean],
    &[Upsert(200), Compact, Clean, Upsert(300), Clean],
    &[Upsert(200), Sweep, Alter, Sweep],
    &[Compact, Sweep, Export, Upsert(200), Sweep],
];

#[tokio::test(flavor = "multi_thread")]
async fn a_process_may_be_held_up_at_any_request_while_others_work_and_clean() {
    let every = std::env::var("EVENKEEL_INTERLEAVINGS").is_ok();
    let mut tried = 0;
    for commits in [2, 62, 63] {
        let (template, keys) = template(commits).await;
        for (turn, act) in ACTS.into_iter().enumerate() {
            let requests = requests(&template, act).await;
            let runs = (0..=requests).flat_map(|at| MEANWHILE.iter().map(move |others| (at, *others)));
            // Checkpoints make only a few runs different; a short run takes turns.
            let stride = if every {
                1
            } else if commits == 2 {
                3
            } else {
                29
            };
            for (at, others) in runs.skip(turn % stride).step_by(stride) {
                held_up(&template, keys, act, at, others).await;
                tried += 1;
            }
        }
    }
    tell(&format!("{tried} runs of a process that was held up"));
    assert!(tried > 300, "{tried}");
}

/// Two processes are held up, one within the other's pause, and go on in either order.
#[tokio::test(flavor = "multi_thread")]
async fn two_processes_may_be_held_up_at_once() {
    let runs = std::env::var("EVENKEEL_INTERLEAVINGS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(150);
    let (template, keys) = template(2).await;
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for _ in 0..runs {
        let first = ACTS[random.random_range(0..ACTS.len())];
        let second = match ACTS[random.random_range(0..ACTS.len())] {
            Upsert(_) => Upsert(500),
            Insert(_) => Insert(500),
            other => other,
        };
        let others = MEANWHILE[random.random_range(0..MEANWHILE.len())];
        let at = [random.random_range(0..40), random.random_range(0..40)];
        let first_ends_first = random.random_range(0..2) == 0;
        let what = format!("{first:?} at {}, {second:?} at {}, {others:?}, {first_ends_first}", at[0], at[1]);
        let store = copy(&template).await;
        let (a, b) =
            (Process::begin(&store, first, at[0]).await, Process::begin(&store, second, at[1]).await);
        let mut ended = Vec::new();
        for other in others {
            ended.push((*other, whole(&store, *other, &what).await));
        }
        for process in if first_ends_first { [a, b] } else { [b, a] } {
            ended.push((process.act, process.end(&what).await));
        }
        let acts = others.iter().copied().chain([first, second]).collect();
        verify(&store, keys, Outcomes { what: &what, acts, ended }).await;
    }
    tell(&format!("{runs} runs of two processes that were held up"));
}

/// Somebody else makes the table, fills it and cleans up while its declaration is under way.
#[tokio::test(flavor = "multi_thread")]
async fn a_declaration_that_comes_late_does_not_disturb_a_table() {
    let mut refused = 0;
    for at in 0..6 {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let gate = Arc::new(HookedStore::new(store.clone(), Gate::at(at)));
        let late = storage(gate.clone());
        let mut late = tokio::spawn(async move { Table::create_at(late, &spec(1)).await.map(|_| ()) });
        let mut reached = gate.hooks.reached.subscribe();
        tokio::select! {
            held_up = reached.wait_for(|reached| *reached) => drop(held_up),
            // It makes fewer requests than that.
            ended = &mut late => {
                ended.unwrap().unwrap();
                break;
            }
        }
        if Table::create_at(storage(store.clone()), &spec(1)).await.is_err() {
            // The late one was there already.
            gate.hooks.open.send_replace(true);
            late.await.unwrap().unwrap();
            continue;
        }
        for act in [Upsert(0), Upsert(1), Clean, Upsert(2), Clean] {
            whole(&store, act, "declared").await.unwrap();
        }
        gate.hooks.open.send_replace(true);
        let error = late.await.unwrap().unwrap_err().to_string();
        assert!(error.contains("is a table already") || error.contains("is not empty"), "{error}");
        refused += 1;
        let ended = vec![(Upsert(2), Ok(()))];
        verify(&store, 3, Outcomes { what: "declared", acts: Vec::new(), ended }).await;
    }
    assert!(refused >= 2, "{refused}");
}
