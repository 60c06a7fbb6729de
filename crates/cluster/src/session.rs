//! Sessions of clients, the scheduler and executors, with the same functions and the same codec for
//! plans.

use std::sync::Arc;

use ballista_core::config::BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK;
use ballista_core::extension::SessionConfigExt;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::prelude::SessionConfig;

use crate::{ClientSecurity, MESSAGE_BYTES};
use evenkeel_engine::query::{
    aggregates, functions, spill_without_waiting, window_functions, without_filters_of_extremes,
};

/// Returns the base configuration of every process of a cluster.
pub(super) fn base_config() -> SessionConfig {
    SessionConfig::new_with_ballista()
}

/// Returns the settings of a client's session with `partitions` tasks per stage. They are sent with
/// each job.
pub(super) fn client_config(security: &ClientSecurity, partitions: usize) -> SessionConfig {
    let mut config = base_config()
        .with_target_partitions(partitions.max(1))
        // One partition per task: a task takes one core, and our nodes see one partition at a time.
        .set_usize(BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, 1)
        // If a side of a join were sent to every task, each task would join it alone, as if the
        // others had no rows: outer and anti joins and EXCEPT would return rows whose match is in
        // another task.
        .with_ballista_broadcast_join_threshold_bytes(0)
        .with_ballista_broadcast_join_threshold_rows(0)
        .with_ballista_use_tls(security.is_encrypted())
        .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES)
        .with_ballista_override_create_grpc_client_endpoint(security.hook());
    let options = config.options_mut();
    options.sql_parser.enable_ident_normalization = false;
    options.optimizer.repartition_file_scans = false;
    options.execution.parquet.pushdown_filters = true;
    // DataFusion 55 ends windows too early if LEAD reads beyond them.
    options.optimizer.enable_window_limits = false;
    // DataFusion 55.2 pushes the limit of a sort below a sort-merge join, and so drops rows that
    // the join needs: EXCEPT with ORDER BY and LIMIT returns rows that it should remove.
    options.optimizer.prefer_hash_join = true;
    options.optimizer.hash_join_single_partition_threshold = 0;
    options.optimizer.hash_join_single_partition_threshold_rows = 0;
    without_filters_of_extremes(&mut config);
    spill_without_waiting(&mut config);
    config
}

/// Returns a session state with our functions.
pub(super) fn state_of(config: SessionConfig) -> Result<SessionState> {
    let mut state = ballista_core::utils::default_session_builder(config)?;
    for function in functions() {
        datafusion::execution::FunctionRegistry::register_udf(&mut state, Arc::new(function))?;
    }
    for function in aggregates() {
        datafusion::execution::FunctionRegistry::register_udaf(&mut state, Arc::new(function))?;
    }
    for function in window_functions() {
        datafusion::execution::FunctionRegistry::register_udwf(&mut state, Arc::new(function))?;
    }
    Ok(state)
}

#[cfg(test)]
mod tests {
    use ballista_core::extension::SessionConfigHelperExt;

    use super::*;

    #[test]
    fn executors_get_the_settings_of_clients() {
        let sent = client_config(&ClientSecurity::default(), 2).to_key_value_pairs();
        let received = base_config().update_from_key_value_pair(&sent);
        let of = |config: &SessionConfig| config.options().execution.max_spill_file_size_bytes.get();
        assert_eq!(of(&received), 1);
        assert_ne!(of(&base_config()), 1);
        assert!(!received.options().optimizer.enable_window_limits);
        assert!(!received.options().optimizer.enable_aggregate_dynamic_filter_pushdown);
    }
}
