//! Scans the visible rows of a table.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use arrow::datatypes::SchemaRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::{self, StreamExt, TryStreamExt};
use serde::{Deserialize, Serialize};

use super::{Work, external, read_assignments};
use evenkeel_engine::query::{SnapshotTable, key_ordering};
use evenkeel_model::table::{TableDefinition, TableSpec};
use evenkeel_model::units::Version;
use evenkeel_storage::TableStorage;
use evenkeel_store::log::{PortionEntry, Snapshot};

/// Scan of a table at a version. An assignment is a list of portions of one partition, with all
/// portions that share keys with any of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ScanSpec {
    /// Directory or URL of the table.
    pub place: String,
    pub definition: TableDefinition,
    pub version: Version,
    /// Columns to read, by their positions in the table.
    pub projection: Vec<usize>,
    /// Whether each task has at most one assignment, so that it returns its rows in the order of
    /// the primary key.
    pub ordered: bool,
    /// Whether each partition is read by one task.
    pub whole: bool,
    /// Whether `whole` holds and the plan combines nothing: then the partition key partitions the
    /// rows.
    pub hashed: bool,
}

impl ScanSpec {
    pub(super) fn table(&self) -> Result<TableSpec> {
        TableSpec::new(self.definition.clone()).map_err(|error| DataFusionError::External(Box::new(error)))
    }
}

/// Storages of the tables that this process reads, by location, to reuse their clients and cached
/// facts about files.
static TABLES: LazyLock<Mutex<HashMap<String, TableStorage>>> = LazyLock::new(Mutex::default);

/// Returns the storage of a table.
pub(super) fn storage_of(place: &str) -> Result<TableStorage> {
    let mut tables = TABLES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(storage) = tables.get(place) {
        return Ok(storage.clone());
    }
    let storage = TableStorage::open(Path::new(place)).map_err(external)?;
    tables.insert(place.to_owned(), storage.clone());
    Ok(storage)
}

#[derive(Debug)]
pub(super) struct Scan {
    spec: ScanSpec,
    table: TableSpec,
    /// Predicate that narrows the rows to read; the plan above the scan applies it again.
    predicate: Option<Arc<dyn PhysicalExpr>>,
    schema: SchemaRef,
}

impl Scan {
    pub(super) fn new(spec: &ScanSpec, expressions: &[Arc<dyn PhysicalExpr>]) -> Result<Self> {
        let table = spec.table()?;
        let schema = Arc::new(table.schema().project(&spec.projection)?);
        Ok(Self { spec: spec.clone(), table, predicate: expressions.first().cloned(), schema })
    }

    fn position(&self, column: usize) -> Option<usize> {
        self.spec.projection.iter().position(|projected| *projected == column)
    }
}

impl Work for Scan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn describe(&self) -> String {
        let columns: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        let predicate = self.predicate.as_ref().map(|predicate| format!(", predicate={predicate}"));
        let hashed = if self.spec.hashed { ", hashed" } else { "" };
        format!(
            "TaskExec: scan {} version {}, columns=[{}]{}{hashed}",
            self.table.name(),
            self.spec.version,
            columns.join(", "),
            predicate.unwrap_or_default()
        )
    }

    fn order(&self) -> Option<LexOrdering> {
        let key: Vec<usize> =
            self.table.primary_key().iter().map_while(|column| self.position(*column)).collect();
        self.spec.ordered.then(|| key_ordering(&self.schema, &key)).flatten()
    }

    fn hashed_by(&self) -> Vec<Arc<dyn PhysicalExpr>> {
        let column = |column: &usize| {
            let position = self.position(*column)?;
            let name = self.schema.field(position).name();
            Some(Arc::new(Column::new(name, position)) as Arc<dyn PhysicalExpr>)
        };
        let columns: Option<Vec<_>> = self.table.partition_key().iter().map(column).collect();
        columns.filter(|_| self.spec.hashed).unwrap_or_default()
    }

    fn run(
        &self,
        input: SendableRecordBatchStream,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let (spec, predicate) = (self.spec.clone(), self.predicate.clone());
        let state = SessionStateBuilder::new()
            .with_config(context.session_config().clone())
            .with_runtime_env(context.runtime_env())
            .build();
        let rows = async move {
            let assignments: Vec<Vec<PortionEntry>> = read_assignments(input).await?;
            let storage = storage_of(&spec.place)?;
            let units = stream::iter(assignments).map(move |portions| {
                let portions: Vec<Arc<PortionEntry>> = portions.into_iter().map(Arc::new).collect();
                let snapshot =
                    Snapshot::from_portions(&spec.place, spec.version, spec.definition.clone(), &portions);
                let snapshot = snapshot.map_err(external)?;
                let table = SnapshotTable::with_declared_text(storage.clone(), snapshot)?;
                let plan = table.scan_where(&state, &portions, &spec.projection, predicate.as_ref())?;
                datafusion::physical_plan::execute_stream(plan, Arc::clone(&context))
            });
            Ok::<_, DataFusionError>(units.try_flatten())
        };
        let rows = stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), rows)))
    }
}
