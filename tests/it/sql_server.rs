//! Answers SQL statements from standard input for `tests/python/differential.py`, which compares
//! them with those of DuckDB. A process for each statement would spend its time on starting.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use evenkeel::Table;
use evenkeel::query::Params;
use serde_json::{Value, json};

/// Time for one statement. The tables are small: a statement that takes this long works on more
/// rows than it has to.
const LONGEST: Duration = Duration::from_secs(120);

/// A column as JSON: whole numbers as text, points in time as microseconds, floats as Rust prints
/// them, bytes as hexadecimal digits.
fn values(array: &ArrayRef) -> Vec<Value> {
    let cast = |to: &DataType| arrow::compute::cast(array, to).unwrap();
    let each = |value: &dyn Fn(usize) -> String| -> Vec<Value> {
        (0..array.len()).map(|row| if array.is_null(row) { Value::Null } else { value(row).into() }).collect()
    };
    match array.data_type() {
        DataType::Null => vec![Value::Null; array.len()],
        DataType::Boolean => each(&|row| array.as_boolean().value(row).to_string()),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let floats = cast(&DataType::Float64);
            each(&|row| format!("{:?}", floats.as_primitive::<Float64Type>().value(row)))
        }
        DataType::Timestamp(_, _) => {
            let times = cast(&DataType::Timestamp(TimeUnit::Microsecond, None));
            each(&|row| times.as_primitive::<TimestampMicrosecondType>().value(row).to_string())
        }
        DataType::Date32 => {
            let days = arrow::compute::cast(&cast(&DataType::Int32), &DataType::Int64).unwrap();
            each(&|row| days.as_primitive::<Int64Type>().value(row).to_string())
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let bytes = cast(&DataType::Binary);
            let hex = |row| bytes.as_binary::<i32>().value(row).iter().map(|b| format!("{b:02x}")).collect();
            each(&hex)
        }
        _ => {
            let text = cast(&DataType::Utf8);
            each(&|row| text.as_string::<i32>().value(row).to_owned())
        }
    }
}

fn rows(batches: &[RecordBatch]) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<Vec<Value>> = batch.columns().iter().map(values).collect();
        rows.extend(
            (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()),
        );
    }
    rows
}

async fn answer(tables: &mut HashMap<String, Table>, request: &Value) -> Value {
    let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
    let number = |name: &str| usize::try_from(request[name].as_u64().unwrap_or(1)).unwrap();
    let path = text("table");
    if request["reopen"] == true || !tables.contains_key(&path) {
        match Table::open(&path).await {
            Ok(table) => tables.insert(path.clone(), table),
            Err(error) => return json!({ "error": error.to_string() }),
        };
    }
    let session = tables[&path].session().unwrap();
    {
        let state = session.context().state_ref();
        let mut state = state.write();
        let config = state.config_mut();
        *config =
            config.clone().with_target_partitions(number("cores")).with_batch_size(number("batch_rows"));
    }
    match tokio::time::timeout(LONGEST, session.collect(&text("sql"), &Params::default())).await {
        Ok(Ok(batches)) => json!({ "rows": rows(&batches) }),
        Ok(Err(error)) => json!({ "error": error.to_string() }),
        Err(_) => json!({ "error": format!("it takes longer than {} s", LONGEST.as_secs()) }),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a server for tests/python/run_differential.sh"]
async fn statements_from_standard_input() {
    let mut tables = HashMap::new();
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let answer = answer(&mut tables, &request).await;
        // Apart from what the test harness prints.
        writeln!(out, "ANSWER {answer}").unwrap();
        out.flush().unwrap();
    }
}
