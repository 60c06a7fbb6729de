//! Functions whose value is the same for all arguments and connections.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::ScalarUDF;

use crate::catalog::functions::row_function::{constant, text};
use crate::catalog::tables::{DATABASE, OWNER};
use crate::settings::SERVER_VERSION;

/// Functions about definitions, comments and addresses, which no object here has.
const WITHOUT_TEXT: [&str; 14] = [
    "json_build_object",
    "pg_get_viewdef",
    "pg_get_ruledef",
    "pg_get_triggerdef",
    "pg_get_functiondef",
    "pg_get_function_result",
    "pg_get_function_arguments",
    "pg_get_function_identity_arguments",
    "pg_get_serial_sequence",
    "pg_tablespace_location",
    "shobj_description",
    "col_description",
    "inet_server_addr",
    "inet_client_addr",
];

/// Functions about visibility and privileges: every object is visible and readable.
const ALWAYS_TRUE: [&str; 15] = [
    "pg_type_is_visible",
    "pg_function_is_visible",
    "pg_operator_is_visible",
    "pg_collation_is_visible",
    "pg_opclass_is_visible",
    "pg_opfamily_is_visible",
    "pg_conversion_is_visible",
    "pg_statistics_obj_is_visible",
    "pg_ts_config_is_visible",
    "pg_ts_dict_is_visible",
    "pg_ts_parser_is_visible",
    "pg_ts_template_is_visible",
    "has_column_privilege",
    "has_function_privilege",
    "pg_has_role",
];

/// Returns the functions that are constants.
pub(super) fn constants() -> Vec<ScalarUDF> {
    let mut all = server_functions();
    all.extend(WITHOUT_TEXT.map(|name| constant(name, ScalarValue::Utf8(None))));
    all.push(constant("inet_server_port", ScalarValue::Int32(None)));
    all.extend(ALWAYS_TRUE.map(|name| constant(name, ScalarValue::Boolean(Some(true)))));
    all.push(constant("has_sequence_privilege", ScalarValue::Boolean(Some(false))));
    all
}

/// Functions about the server and its database.
fn server_functions() -> Vec<ScalarUDF> {
    vec![
        constant("version", text(version())),
        constant("current_database", text(DATABASE)),
        constant("current_catalog", text(DATABASE)),
        constant("current_schema", text("public")),
        constant("pg_is_in_recovery", ScalarValue::Boolean(Some(false))),
        constant("pg_is_wal_replay_paused", ScalarValue::Boolean(Some(false))),
        constant("pg_my_temp_schema", ScalarValue::Int32(Some(0))),
        constant("txid_current", ScalarValue::Int64(Some(1))),
        constant("pg_current_xact_id", ScalarValue::Int64(Some(1))),
        constant("pg_export_snapshot", text("00000001-00000001-1")),
        constant(
            "pg_postmaster_start_time",
            ScalarValue::TimestampMicrosecond(Some(0), Some("+00:00".into())),
        ),
        constant("pg_conf_load_time", ScalarValue::TimestampMicrosecond(Some(0), Some("+00:00".into()))),
        constant("getdatabaseencoding", text("UTF8")),
        constant("pg_stat_get_numscans", ScalarValue::Int64(Some(0))),
        constant("pg_indexes_size", ScalarValue::Int64(Some(0))),
        constant("pg_get_userbyid", text(OWNER)),
    ]
}

/// Version shown to clients.
fn version() -> String {
    format!("PostgreSQL {SERVER_VERSION} (evenkeel {}, read-only)", env!("CARGO_PKG_VERSION"))
}
