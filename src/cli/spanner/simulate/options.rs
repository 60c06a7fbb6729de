//! Options of a replay, checked.

use evenkeel::source::OnUnreadable;
use evenkeel::spanner::simulate::splits::{ModelParameters, Sampling};
use evenkeel::spanner::simulate::{Declared, KeyOrder, SimulateOptions, Strategy};
use evenkeel::table::Column;

use crate::cli::spanner::replay::GUIDE;
use crate::cli::spanner::simulate::args::{Args, Scale};
use crate::cli::{Failure, Output};

/// Returns the options of a replay.
pub(super) fn options(
    args: &Args,
    declared: &Declared,
    columns: &[Column],
    out: &Output,
) -> Result<SimulateOptions, Failure> {
    if args.model.fewest_load_keys > args.model.load_keys {
        return Err(Failure::wrong_usage(
            "--fewest-load-keys is more than --load-keys, so that no split is ever divided by load; raise \
             --load-keys too",
        ));
    }
    let strategies = strategies(args, declared, columns, out);
    Ok(SimulateOptions {
        primary_key: declared.primary_key.clone(),
        partition_key: args.partition_key.clone(),
        indexes: declared.indexes.clone(),
        strategies,
        judged: declared.strategy,
        shard_columns: declared.shard_columns.clone(),
        parameters: parameters(args),
        find_scale: matches!(args.scale, Scale::Auto),
        rate: args.rate,
        time: args.time.clone(),
        owner: args.owner.clone(),
        presplits: usize::try_from(args.presplit).unwrap_or(usize::MAX),
        transaction_rows: args.transaction,
        on_unreadable: if args.skip_unreadable { OnUnreadable::Skip } else { OnUnreadable::Fail },
    })
}

/// Returns the strategies to compare: the one that represents the declared key, then the given ones
/// or the guide's.
fn strategies(args: &Args, declared: &Declared, columns: &[Column], out: &Output) -> Vec<Strategy> {
    let compared = match args.strategies.as_slice() {
        [] => strategies_of_guide(args, declared, columns, out),
        given => given.to_vec(),
    };
    let mut strategies = Vec::new();
    // The strategy that represents the declared key is judged in its place.
    let replaced = |strategy: &Strategy| declared.strategy.is_some() && *strategy == Strategy::Declared;
    for strategy in declared.strategy.iter().chain(&compared) {
        if !strategies.contains(strategy) && !replaced(strategy) {
            strategies.push(*strategy);
        }
    }
    strategies
}

/// Returns the strategies of the guide that fit the key.
fn strategies_of_guide(args: &Args, declared: &Declared, columns: &[Column], out: &Output) -> Vec<Strategy> {
    let is_time = |part: &KeyOrder| {
        let alike = |column: &&Column| column.name.eq_ignore_ascii_case(&part.column);
        columns.iter().find(alike).is_some_and(|column| column.column_type.is_time())
    };
    let mut strategies: Vec<Strategy> = GUIDE.split(',').filter_map(|name| name.parse().ok()).collect();
    strategies.retain(|strategy| match strategy {
        Strategy::Swapped => declared.primary_key.len() > 1,
        Strategy::Descending => declared.primary_key.iter().any(is_time),
        _ => true,
    });
    if strategies.len() < GUIDE.split(',').count() && args.interleave.is_empty() {
        out.note("left out: swapped if the key has one column, desc if it has no time");
    }
    strategies
}

/// Returns the assumptions of the model.
fn parameters(args: &Args) -> ModelParameters {
    let model = &args.model;
    ModelParameters {
        split_size: model.split_size,
        split_rate: model.split_rate,
        window: model.window,
        scale: if let Scale::Fixed(scale) = args.scale { scale } else { 1.0 },
        load_scale: 1.0,
        delay_windows: model.split_delay,
        quiet_windows: model.merge_after,
        servers: usize::try_from(args.servers).unwrap_or(usize::MAX),
        warm: model.warm,
        hot: model.hot,
        single_row_share: model.single_row_share,
        moving_share: model.moving_share,
        sampling: Sampling {
            size_keys: model.size_keys as usize,
            load_keys: model.load_keys as usize,
            fewest_load_keys: model.fewest_load_keys as usize,
            root_share: model.root_share,
        },
        seed: model.seed,
    }
}
