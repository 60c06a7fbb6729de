//! Portions of a table as files that DataFusion scans.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::Session;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::{Partitioning, PhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;

use crate::query::scan::key_order::key_ordering;
use crate::query::scan::ordered_scan::OrderedScan;
use crate::query::scan::portion_readers::PortionReaders;
use crate::query::scan::portion_statistics::portion_statistics;
use crate::query::scan::scan_filters::with_conditions;
use evenkeel_model::table::TableSpec;
use evenkeel_storage::TableStorage;
use evenkeel_store::log::PortionEntry;

/// Freedom that DataFusion has with the file groups of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) enum FileGroups {
    /// DataFusion may cut and shuffle them between cores.
    MayBeCut,
    /// DataFusion may not change them: each is an input of a merge. A declared partitioning, even
    /// an unknown one, pins them.
    ArePinned,
}

/// Files of the portions of a table.
#[derive(Debug)]
pub(in crate::query) struct PortionFiles {
    storage: TableStorage,
    spec: Arc<TableSpec>,
    /// Columns of the table with the types that queries see.
    schema: SchemaRef,
    /// URL of the files for DataFusion.
    url: ObjectStoreUrl,
}

impl PortionFiles {
    pub(in crate::query) fn try_new(
        storage: TableStorage,
        spec: Arc<TableSpec>,
        schema: SchemaRef,
    ) -> Result<Self> {
        let url = ObjectStoreUrl::parse(format!("evenkeel://{}", storage.id().simple()))?;
        Ok(Self { storage, spec, schema, url })
    }

    pub(in crate::query) fn storage(&self) -> &TableStorage {
        &self.storage
    }

    pub(in crate::query) fn spec(&self) -> &TableSpec {
        &self.spec
    }

    pub(in crate::query) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(in crate::query) fn url(&self) -> &ObjectStoreUrl {
        &self.url
    }

    /// Lets the session read the files.
    pub(in crate::query) fn register(&self, state: &dyn Session) {
        let store = Arc::clone(self.storage.store());
        state.runtime_env().register_object_store(self.url.as_ref(), store);
    }

    /// Returns a plain scan with one file group per entry of `groups`, each in key order, and with
    /// the columns `projection` of the table. `predicate` avoids reading row groups if possible.
    pub(in crate::query) fn scan(
        &self,
        state: &dyn Session,
        groups: &[Vec<Arc<PortionEntry>>],
        freedom: FileGroups,
        projection: &[usize],
        limit: Option<usize>,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let file_group = |group: &Vec<Arc<PortionEntry>>| {
            Ok(FileGroup::new(group.iter().map(|portion| self.file(portion)).collect::<Result<_>>()?))
        };
        let pinned = freedom == FileGroups::ArePinned;
        let portions = groups.iter().flatten().map(Arc::as_ref);
        let ordering = key_ordering(&self.schema, self.spec.primary_key());
        let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
        let readers = PortionReaders::new(Arc::clone(self.storage.store()), cache);
        let source = self.source(state, readers.clone(), predicate)?;
        let config = FileScanConfigBuilder::new(self.url.clone(), Arc::new(source))
            .with_file_groups(groups.iter().map(file_group).collect::<Result<_>>()?)
            .with_output_partitioning(pinned.then(|| Partitioning::UnknownPartitioning(groups.len())))
            .with_output_ordering(ordering.into_iter().collect())
            .with_statistics(portion_statistics(&self.spec, &self.schema, portions))
            .with_projection_indices(Some(projection.to_vec()))?
            .with_limit(limit)
            .build();
        Ok(OrderedScan::plan(config, readers, self.storage.is_local()))
    }

    fn source(
        &self,
        state: &dyn Session,
        readers: PortionReaders,
        predicate: Option<&Arc<dyn PhysicalExpr>>,
    ) -> Result<ParquetSource> {
        let options = TableParquetOptions {
            global: state.config_options().execution.parquet.clone(),
            ..TableParquetOptions::default()
        };
        let readers = if predicate.is_some() { readers.with_pages() } else { readers };
        let source = ParquetSource::new(TableSchema::from(Arc::clone(&self.schema)))
            .with_table_parquet_options(options)
            .with_pushdown_filters(true)
            .with_reorder_filters(true)
            .with_enable_page_index(true)
            .with_bloom_filter_on_read(true)
            .with_parquet_file_reader_factory(Arc::new(readers));
        match predicate {
            Some(predicate) => with_conditions(&source, predicate),
            None => Ok(source),
        }
    }

    /// Returns the path of a portion, as scans name it.
    pub(in crate::query) fn path(&self, portion: &PortionEntry) -> Result<String> {
        let path = self.storage.path(&portion.path);
        path.map(|path| path.to_string()).map_err(|error| DataFusionError::External(Box::new(error)))
    }

    fn file(&self, portion: &PortionEntry) -> Result<PartitionedFile> {
        let file = PartitionedFile::new(self.path(portion)?, portion.bytes);
        let statistics = portion_statistics(&self.spec, &self.schema, std::iter::once(portion));
        Ok(file.with_statistics(Arc::new(statistics)))
    }
}
