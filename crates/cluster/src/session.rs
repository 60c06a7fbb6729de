//! Sessions of clients, the scheduler and executors: they know the same functions and decode the same plans.

use std::sync::Arc;

use ballista_core::config::BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK;
use ballista_core::extension::SessionConfigExt;
use datafusion::common::Result;
use datafusion::execution::SessionState;
use datafusion::prelude::SessionConfig;

use crate::{ClientSecurity, MESSAGE_BYTES};
use evenkeel_engine::query::{aggregates, functions};

/// What every process of a cluster begins with.
pub(super) fn base_config() -> SessionConfig {
    SessionConfig::new_with_ballista()
}

/// The settings of a client's session: `partitions` is how many tasks a stage has. They travel with each job.
pub(super) fn client_config(security: &ClientSecurity, partitions: usize) -> SessionConfig {
    let mut config = base_config()
        .with_target_partitions(partitions.max(1))
        // One partition a task: a task takes one core, and our nodes see one partition at a time.
        .set_usize(BALLISTA_SCHEDULER_MAX_PARTITIONS_PER_TASK, 1)
        // A side of a join that is sent to every task would be joined by each alone, as if the others had no rows: in outer and anti joins
        // and in EXCEPT, rows would come that have their match elsewhere.
        .with_ballista_broadcast_join_threshold_bytes(0)
        .with_ballista_broadcast_join_threshold_rows(0)
        .with_ballista_use_tls(security.is_encrypted())
        .with_ballista_grpc_client_max_message_size(MESSAGE_BYTES)
        .with_ballista_override_create_grpc_client_endpoint(security.hook());
    let options = config.options_mut();
    options.sql_parser.enable_ident_normalization = false;
    options.optimizer.repartition_file_scans = false;
    options.execution.parquet.pushdown_filters = true;
    // DataFusion 55.2 pushes the limit of a sort below a sort-merge join, where it cuts what the join needs: EXCEPT with ORDER BY and LIMIT
    // gives rows that it should take away.
    options.optimizer.prefer_hash_join = true;
    options.optimizer.hash_join_single_partition_threshold = 0;
    options.optimizer.hash_join_single_partition_threshold_rows = 0;
    config
}

/// A session with our functions.
pub(super) fn state_of(config: SessionConfig) -> Result<SessionState> {
    let mut state = ballista_core::utils::default_session_builder(config)?;
    for function in functions() {
        datafusion::execution::FunctionRegistry::register_udf(&mut state, Arc::new(function))?;
    }
    for function in aggregates() {
        datafusion::execution::FunctionRegistry::register_udaf(&mut state, Arc::new(function))?;
    }
    Ok(state)
}
