//! `pg_stat_activity`: the state and the last statement of each connection.

use arrow::datatypes::{DataType, Field};
use chrono::{DateTime, Utc};

use crate::activity::Activity;
use crate::catalog::functions::Caller;
use crate::catalog::tables::row::{Row, Value, row, text, time};
use crate::catalog::tables::{DATABASE, DATABASE_OID, OWNER_OID};
use crate::types::oid_field;

/// Stands for the statements of other users, as in PostgreSQL.
const HIDDEN: &str = "<insufficient privilege>";

pub(super) fn activity_columns() -> Vec<Field> {
    vec![
        oid_field("datid", true),
        text("datname"),
        Field::new("pid", DataType::Int32, true),
        Field::new("leader_pid", DataType::Int32, true),
        oid_field("usesysid", true),
        text("usename"),
        text("application_name"),
        text("client_addr"),
        text("client_hostname"),
        Field::new("client_port", DataType::Int32, true),
        time("backend_start"),
        time("xact_start"),
        time("query_start"),
        time("state_change"),
        text("wait_event_type"),
        text("wait_event"),
        text("state"),
        text("backend_xid"),
        text("backend_xmin"),
        Field::new("query_id", DataType::Int64, true),
        text("query"),
        text("backend_type"),
    ]
}

/// Returns a row for each connection. Users see the statements of their own connections.
pub(super) fn activity_rows(caller: &Caller) -> Vec<Row> {
    let activities = caller.connections.activities();
    activities.iter().map(|(process, activity)| activity_row(*process, activity, &caller.user)).collect()
}

fn activity_row(process: i32, activity: &Activity, user: &str) -> Row {
    let mut row = row! {
        datid: DATABASE_OID,
        datname: DATABASE,
        pid: process,
        usesysid: OWNER_OID,
        usename: activity.user.as_str(),
        application_name: activity.application.as_str(),
        backend_type: "client backend",
    };
    if activity.user != user {
        row.insert("query", HIDDEN.into());
        return row;
    }
    let moment = |time: Option<DateTime<Utc>>| time.map_or(Value::Null, Value::Time);
    row.extend(row! {
        client_addr: activity.client.ip().to_string(),
        client_port: i32::from(activity.client.port()),
        backend_start: Value::Time(activity.connected),
        xact_start: moment(activity.transaction_began),
        query_start: moment(activity.statement_began),
        state_change: Value::Time(activity.changed),
        state: activity.state.name(),
        query: activity.statement.as_str(),
    });
    row
}
