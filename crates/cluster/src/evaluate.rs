//! Evaluation whose single pass over the rows is distributed over executors.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::AsArray;
use datafusion::physical_plan::ExecutionPlan;

use crate::nodes::{CountAssignment, CountSpec, TaskExec, TaskSpec, assignments};
use crate::spilled_result::Batches;
use crate::{Cluster, ClusterError};
use evenkeel_advisor::evaluate::{
    CountRows, EvaluateError, EvaluateOptions, Evaluation, Evaluator, Share, assemble, spans, whole_shares,
};
use evenkeel_input::source::{Export, OnUnreadable, RowSpan, Unreadable, row_counts};

/// Row ranges per core, so that a slow range does not delay the others for long.
const SPANS_PER_CORE: usize = 2;

/// Interval between checks of the stop flag.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Counts on the cluster; must be called on a thread that may block.
impl CountRows for Cluster {
    fn count_rows(
        &self,
        export: &Export,
        options: &EvaluateOptions,
        on_unreadable: OnUnreadable,
        stop: &AtomicBool,
    ) -> Result<(Evaluation, Unreadable), EvaluateError> {
        Ok(count(self, export, options, on_unreadable, stop)?)
    }
}

impl From<ClusterError> for EvaluateError {
    fn from(error: ClusterError) -> Self {
        match error {
            ClusterError::Evaluate(error) => error,
            ClusterError::Job { reason, too_large } => Self::Elsewhere { reason, too_large },
            error => Self::Elsewhere { reason: error.to_string(), too_large: false },
        }
    }
}

fn count(
    cluster: &Cluster,
    export: &Export,
    options: &EvaluateOptions,
    on_unreadable: OnUnreadable,
    stop: &AtomicBool,
) -> Result<(Evaluation, Unreadable), ClusterError> {
    // Report wrong options before anything is sent.
    Evaluator::new(export.columns(), options.clone())?;
    let inputs =
        export.inputs().iter().map(|input| super::ingest::shared(cluster, input).map(|(input, _)| input));
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let rows = row_counts(&inputs, export.options()).map_err(EvaluateError::from)?;
    let cores = cluster.size().cores.max(1);
    let parts: Vec<Option<RowSpan>> = match &rows {
        Some(counts) => {
            let total = counts.iter().sum();
            let cut = spans(options, on_unreadable, total, cores * SPANS_PER_CORE);
            cut.into_iter().map(|rows| Some(RowSpan { rows, row_counts: counts.clone() })).collect()
        }
        // The number of rows of a text file is unknown before it is read, so one task reads all.
        None => vec![None],
    };
    let wholes = whole_shares(export.columns(), options, parts.len())?;
    let of_parts = parts.iter().cloned().map(|span| (Share::PartitionKeys, span));
    let all: Vec<(Share, Option<RowSpan>)> =
        wholes.iter().map(|share| (*share, None)).chain(of_parts).collect();
    // The shares of all rows take longest, so they start first.
    let tasks: Vec<Vec<CountAssignment>> =
        (0..).zip(all).map(|(number, (share, span))| vec![CountAssignment { number, share, span }]).collect();
    let spec = CountSpec {
        inputs,
        reading: export.options().clone(),
        columns: export.columns().to_vec(),
        options: options.clone(),
        on_unreadable,
    };
    let leaf = assignments(&tasks)?;
    let plan: Arc<dyn ExecutionPlan> =
        Arc::new(TaskExec::try_new(TaskSpec::Count(Box::new(spec)), Vec::new(), leaf)?);
    let config = cluster.session_config(cores);
    let stopped = async {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let result = cluster.runtime().block_on(async {
        tokio::select! {
            result = cluster.run(&plan, &config) => result,
            () = stopped => Err(EvaluateError::Interrupted.into()),
        }
    })?;
    let mut fetched = result.fetched;
    let mut states = States::new(fetched.batches()?)?;
    if states.0.len() != tasks.len() {
        let reason = format!("{} of {} shares of the rows were reported", states.0.len(), tasks.len());
        return Err(ClusterError::Manifest { reason });
    }
    let mut unreadable = Unreadable::default();
    let counted = states.0.split_off(&(wholes.len() as u64));
    let counted: Vec<Vec<u8>> = counted
        .into_values()
        .map(|state| {
            unreadable.merge(state.unreadable);
            state.bytes
        })
        .collect();
    let whole: Vec<Vec<u8>> = states.0.into_values().map(|state| state.bytes).collect();
    Ok((assemble(export.columns(), options, counted, whole)?, unreadable))
}

/// Results of tasks, by assignment number.
struct States(BTreeMap<u64, State>);

#[derive(Default)]
struct State {
    unreadable: Unreadable,
    bytes: Vec<u8>,
}

impl States {
    fn new(batches: Batches) -> Result<Self, ClusterError> {
        let wrong = |reason: &str| ClusterError::Manifest { reason: reason.to_owned() };
        let mut states: BTreeMap<u64, State> = BTreeMap::new();
        for batch in batches {
            let batch = batch.map_err(|error| wrong(&error.to_string()))?;
            let [assignments, unreadable, pieces] = batch.columns() else {
                return Err(wrong("it has other columns"));
            };
            let (assignments, unreadable) = (assignments.as_string::<i32>(), unreadable.as_string::<i32>());
            for ((assignment, outcome), piece) in
                assignments.iter().zip(unreadable).zip(pieces.as_binary::<i32>())
            {
                let number = assignment
                    .and_then(|assignment| assignment.parse().ok())
                    .ok_or_else(|| wrong("a share has no number"))?;
                let state = match outcome {
                    Some(outcome) => {
                        let unreadable =
                            serde_json::from_str(outcome).map_err(|error| wrong(&error.to_string()))?;
                        if states.insert(number, State { unreadable, bytes: Vec::new() }).is_some() {
                            return Err(wrong("a share of the rows was reported twice"));
                        }
                        states.get_mut(&number)
                    }
                    None => states.get_mut(&number),
                };
                let state = state.ok_or_else(|| wrong("a share lacks its beginning"))?;
                state.bytes.extend_from_slice(piece.unwrap_or_default());
            }
        }
        Ok(Self(states))
    }
}
