//! Joins between the tables of a schema, and whether they are local.

use super::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::evaluate::{EvaluateOptions, advise};
use crate::joins::report::hashes_alike;
use arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch};
use evenkeel_input::source::{InputOptions, find_inputs};
use evenkeel_model::finding::{FindingCode, Severity};
use evenkeel_model::table::ColumnType;
use evenkeel_placement::placement::Function;
use parquet::arrow::ArrowWriter;

type Columns = Vec<(&'static str, ArrayRef)>;

/// Exports of tables, each in a separate file.
struct Exports {
    _folder: tempfile::TempDir,
    exports: Vec<(&'static str, Export)>,
}

impl Exports {
    fn write(tables: Vec<(&'static str, Columns)>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = |(name, columns): (&'static str, Columns)| {
            let rows = RecordBatch::try_from_iter(columns).unwrap();
            let path = folder.path().join(format!("{name}.parquet"));
            let mut writer =
                ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), rows.schema(), None).unwrap();
            writer.write(&rows).unwrap();
            writer.close().unwrap();
            let inputs = find_inputs(&[path.display().to_string()], None).unwrap();
            (name, Export::open(&inputs.paths, InputOptions::default(), &Default::default()).unwrap())
        };
        let exports = tables.into_iter().map(open).collect();
        Self { _folder: folder, exports }
    }

    fn tables(&self) -> Vec<TableExport<'_>> {
        let partitions = vec![PartitionCount::new(16).unwrap(), PartitionCount::new(64).unwrap()];
        let options = |name: &str| AdvisorOptions {
            evaluate: EvaluateOptions { partitions: partitions.clone(), ..EvaluateOptions::default() },
            table: name.to_owned(),
            ..AdvisorOptions::default()
        };
        let tables = self.exports.iter();
        tables
            .map(|(name, export)| TableExport { name: (*name).to_owned(), export, options: options(name) })
            .collect()
    }

    fn joins(&self, named: &[&str]) -> Result<Vec<Join>, JoinError> {
        find_joins(&self.tables(), &named.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    fn advise(&self, named: &[&str]) -> TablesReport {
        let stop = AtomicBool::new(false);
        let advise = |export: &Export, options| advise(export, options, &|_| (), &stop);
        advise_tables(&self.tables(), &self.joins(named).unwrap(), &advise).unwrap()
    }
}

fn numbers(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn mixed(n: i64, below: i64) -> i64 {
    ((n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 17) as i64 % below
}

fn prices(rows: i64) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values((0..rows).map(|n| mixed(n, 99_991) as f64 / 7.0)))
}

/// Orders of customers, and their lines, four to an order, as TPC-H names them.
fn orders_and_lines(line_key: impl Fn(Vec<i64>) -> ArrayRef) -> Exports {
    let (orders, lines) = (20_000i64, 80_000i64);
    Exports::write(vec![
        (
            "customer",
            vec![("c_custkey", numbers((0..2_000).map(|n| n * 3 + 1))), ("c_acctbal", prices(2_000))],
        ),
        (
            "orders",
            vec![
                ("o_orderkey", numbers((0..orders).map(|n| n * 5 + 7))),
                ("o_custkey", numbers((0..orders).map(|n| mixed(n, 2_000) * 3 + 1))),
                ("o_totalprice", prices(orders)),
            ],
        ),
        (
            "lineitem",
            vec![
                ("l_orderkey", line_key((0..lines).map(|n| n / 4 * 5 + 7).collect())),
                ("l_linenumber", numbers((0..lines).map(|n| n % 4 + 1))),
                ("l_partkey", numbers((0..lines).map(|n| mixed(n + 9, 7_000)))),
                ("l_extendedprice", prices(lines)),
            ],
        ),
    ])
}

fn joins_of(report: &TablesReport) -> Vec<String> {
    let mut joins: Vec<String> = report.joins.iter().map(JoinReport::to_string).collect();
    joins.sort();
    joins
}

#[test]
fn the_joins_of_a_schema_are_found_and_the_largest_is_local() {
    let report = orders_and_lines(numbers).advise(&[]);
    assert_eq!(
        joins_of(&report),
        ["customer.c_custkey = orders.o_custkey", "orders.o_orderkey = lineitem.l_orderkey"]
    );
    let keys: Vec<&[String]> =
        report.tables.iter().map(|table| table.report.recommendation.partition_key.as_slice()).collect();
    assert_eq!(keys, [["c_custkey"], ["o_orderkey"], ["l_orderkey"]]);
    for join in &report.joins {
        assert_eq!(join.local, join.left.table == "orders", "{join:?}");
        assert_eq!(join.moved_bytes == 0, join.local);
        assert!(join.hashes_alike && join.inferred);
        assert_eq!(join.right.values_found, 1.0);
        assert!(join.left.joined_figures.is_some() && join.right.joined_figures.is_some(), "{join:?}");
    }
    assert!(report.join_findings.is_empty(), "{:?}", report.join_findings);
    let counts: Vec<u32> = report.tables.iter().map(|table| table.report.recommendation.partitions).collect();
    assert_eq!(counts.first(), counts.last());
}

#[test]
fn widths_that_hash_differently_are_a_problem() {
    let narrow = |values: Vec<i64>| -> ArrayRef {
        Arc::new(Int32Array::from_iter_values(values.into_iter().map(|value| value as i32)))
    };
    let report = orders_and_lines(narrow).advise(&["orders.o_orderkey=lineitem.l_orderkey"]);
    let join = report.joins.first().unwrap();
    assert!(!join.hashes_alike && !join.local && !join.inferred, "{join:?}");
    let finding = report.join_findings.first().unwrap();
    assert_eq!((finding.code, finding.severity), (FindingCode::JoinTypes, Severity::Problem));
    assert!(finding.message.contains("o_orderkey is of type Int64"), "{}", finding.message);
}

#[test]
fn equal_types_hash_alike_and_systems_differ_on_widths() {
    let ydb = Function::default();
    assert!(hashes_alike(ydb, ColumnType::Utf8, ColumnType::Utf8));
    assert!(!hashes_alike(ydb, ColumnType::Int32, ColumnType::Int64));
    assert!(!hashes_alike(ydb, ColumnType::Int64, ColumnType::Utf8));
    // The specification of Iceberg asks for it: int and long have equal hashes.
    assert!(hashes_alike("iceberg".parse().unwrap(), ColumnType::Int32, ColumnType::Int64));
}

#[test]
fn joins_that_do_not_exist_are_refused_with_what_there_is() {
    let exports = orders_and_lines(numbers);
    let error = |text: &str| exports.joins(&[text]).unwrap_err().to_string();
    assert!(error("a.b=orders.o_orderkey").contains("there is no table 'a'; the tables are: customer"));
    for text in ["o_orderkey", "orders.o_orderkey", "a.b=c.d", "orders.o_orderkey=orders.o_custkey", ""] {
        assert!(error(text).contains("the tables are: customer, orders, lineitem"), "{}", error(text));
    }
    let missing = error("orders.o_orderkey=lineitem.order");
    assert!(missing.contains("table lineitem has no column 'order'; it has: l_orderkey"), "{missing}");
    assert!(exports.joins(&[" orders.o_orderkey = lineitem.l_orderkey "]).is_ok());
}

#[test]
fn ids_with_a_point_are_the_same_and_one_partition_is_always_local() {
    let doubles: ArrayRef =
        Arc::new((0..4_000).map(|n| (n % 9 > 0).then(|| f64::from(n % 1_000))).collect::<Float64Array>());
    let exports = Exports::write(vec![
        ("people", vec![("id", numbers(0..1_000)), ("age", numbers((0..1_000).map(|n| n % 90)))]),
        ("visits", vec![("person_id", doubles), ("visit", numbers(0..4_000))]),
    ]);
    let named = exports.joins(&["people.id=visits.person_id"; 2]).unwrap();
    assert_eq!(named.len(), 1, "a join counts once");
    assert_eq!(named.first().unwrap().contained.1, 1.0);
    let mut tables = exports.tables();
    for table in &mut tables {
        table.options.evaluate.partitions = vec![PartitionCount::ONE];
    }
    let stop = AtomicBool::new(false);
    let advise = |export: &Export, options| advise(export, options, &|_| (), &stop);
    let report = advise_tables(&tables, &named, &advise).unwrap();
    assert!(report.joins.first().unwrap().local, "{:?}", report.joins);
}

#[test]
fn names_alone_and_values_alone_make_no_join() {
    let exports = Exports::write(vec![
        ("users", vec![("id", numbers(0..1_000)), ("score", numbers((0..1_000).map(|n| n % 7)))]),
        ("visits", vec![("user_id", numbers(5_000..9_000)), ("page", numbers(0..4_000))]),
        ("rooms", vec![("id", numbers(0..500)), ("floor", numbers((0..500).map(|n| n % 9)))]),
    ]);
    assert_eq!(exports.joins(&[]).unwrap(), []);
    let named = exports.advise(&["users.id=visits.user_id"]);
    assert_eq!(named.join_findings.first().map(|finding| finding.code), Some(FindingCode::JoinFindsNothing));
}

#[test]
fn exports_of_one_table_are_not_taken_for_several() {
    let columns =
        |from: i64| vec![("id", numbers(from..from + 10)), ("at", numbers(0..10)), ("x", prices(10))];
    let parts = Exports::write(vec![("a", columns(0)), ("b", columns(10))]);
    let both: Vec<&Export> = parts.exports.iter().map(|(_, export)| export).collect();
    assert!(!are_different_tables(&both));
    let schema = orders_and_lines(numbers);
    let all: Vec<&Export> = schema.exports.iter().map(|(_, export)| export).collect();
    assert!(are_different_tables(&all));
    let twice = Exports::write(vec![("a", columns(0)), ("a", columns(10))]);
    assert!(matches!(twice.joins(&[]), Err(JoinError::SameName { .. })));
}
