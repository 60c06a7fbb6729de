//! Functions of PostgreSQL that clients call to learn about a server and its objects.

mod constants;
mod lists;
mod objects;
mod row_function;
mod texts;
mod types;

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::ScalarUDF;

use crate::catalog::functions::constants::constants;
use crate::catalog::functions::lists::list_functions;
use crate::catalog::functions::objects::object_functions;
use crate::catalog::functions::row_function::{as_text, constant, function, text};
use crate::catalog::functions::texts::text_functions;
use crate::catalog::functions::types::type_functions;
use crate::catalog::objects::Relation;
use crate::connections::Connections;

/// The connection that reads the catalog.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) user: String,
    pub(crate) process: i32,
    pub(crate) settings: Vec<(String, String)>,
    /// All connections of the server.
    pub(crate) connections: Arc<Connections>,
}

/// Functions that the library lacks, or only names.
pub(super) fn functions(relations: &Arc<Vec<Relation>>, caller: &Caller) -> Vec<ScalarUDF> {
    let mut all = constants();
    all.extend(text_functions());
    all.extend(list_functions());
    all.extend(type_functions());
    all.extend(object_functions(relations));
    all.extend(caller_functions(caller));
    all
}

/// Functions about the connection.
fn caller_functions(caller: &Caller) -> Vec<ScalarUDF> {
    let settings = caller.settings.clone();
    let now = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    let mut all = vec![
        constant("pg_backend_pid", ScalarValue::Int32(Some(caller.process))),
        function("current_setting", DataType::Utf8, move |args| {
            let name = as_text(args.first()).unwrap_or_default().to_ascii_lowercase();
            ScalarValue::Utf8(settings.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone()))
        }),
        function("statement_timestamp", now, |_| {
            ScalarValue::TimestampMicrosecond(
                Some(chrono::Utc::now().timestamp_micros()),
                Some("+00:00".into()),
            )
        }),
    ];
    for name in ["session_user", "current_user", "user", "current_role"] {
        all.push(constant(name, text(caller.user.clone())));
    }
    all
}
