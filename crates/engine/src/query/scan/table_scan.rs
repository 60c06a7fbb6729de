//! A scan of a table: its columns, conditions and projection, before any file is opened.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{ScalarValue, Statistics};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use parquet::file::metadata::ParquetMetaData;

use crate::query::scan::dictionaries::{Readable, read_with_dictionary, returned_schema};
use crate::query::scan::first_rows::Wanted;

/// A scan, in terms of the columns of the table.
#[derive(Debug)]
pub(super) struct TableScan {
    /// Columns of the table.
    pub(super) columns: SchemaRef,
    pub(super) projection: ProjectionExprs,
    /// Schema of the rows that the scan returns.
    pub(super) output: SchemaRef,
    /// Positions of the columns that it returns with dictionaries.
    pub(super) dictionaries: Arc<[usize]>,
    /// Names of the columns that are read with dictionaries, from files that have them.
    coded: Vec<String>,
    pub(super) predicate: Option<Arc<dyn PhysicalExpr>>,
    /// Columns of the projection and of the conditions.
    read: HashSet<Column>,
    /// Whether the conditions may be evaluated in another order.
    pub(super) may_be_reordered: bool,
    /// Maximum number of values of a list by which row groups are excluded.
    pub(super) max_in_list_size: usize,
    /// The first rows, if only these are needed.
    pub(super) wanted: Option<Wanted>,
}

impl TableScan {
    /// Prepares a scan of the columns of a table.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if the table does not have the
    /// columns of the projection.
    pub(super) fn new(
        columns: SchemaRef,
        projection: ProjectionExprs,
        predicate: Option<Arc<dyn PhysicalExpr>>,
        may_be_reordered: bool,
        max_in_list_size: usize,
    ) -> Result<Self> {
        let output = Arc::new(projection.project_schema(&columns)?);
        let readable = Readable::new(&projection, predicate.as_ref());
        let coded = readable.in_conditions().map(|column| column.name().to_owned()).collect();
        let parts = projection.expr_iter().chain(predicate.clone());
        let read = parts.flat_map(|part| collect_columns(&part)).collect();
        let wanted = None;
        let dictionaries = Arc::default();
        Ok(Self {
            columns,
            projection,
            output,
            dictionaries,
            coded,
            predicate,
            read,
            may_be_reordered,
            max_in_list_size,
            wanted,
        })
    }

    /// The same scan, returning columns at some positions with dictionaries. If something else in the
    /// scan needs the texts of rows, the column is read without.
    pub(super) fn with_dictionaries(mut self, dictionaries: &Arc<[usize]>) -> Self {
        self.output = returned_schema(&self.output, dictionaries);
        self.dictionaries = Arc::clone(dictionaries);
        let readable = Readable::new(&self.projection, self.predicate.as_ref());
        let parts = dictionaries.iter().filter_map(|position| self.projection.as_ref().get(*position));
        let columns = parts.filter_map(|part| part.expr.downcast_ref::<Column>());
        let columns = columns.filter(|column| readable.has(column));
        self.coded.extend(columns.map(|column| column.name().to_owned()));
        self
    }

    /// Returns a column of the table as it is read from a file; `None` if the table does not have
    /// it.
    pub(super) fn read_as(&self, name: &str, file: &ParquetMetaData) -> Option<Field> {
        let field = self.columns.field_with_name(name).ok()?;
        let has_dictionary = self.coded.iter().any(|coded| coded == name);
        let coded = has_dictionary.then(|| read_with_dictionary(field, file)).flatten();
        Some(coded.unwrap_or_else(|| field.clone()))
    }

    /// Whether a file has dictionaries of the same columns as the files whose columns are `others`,
    /// as far as the scan reads them with dictionaries.
    pub(super) fn has_same_dictionaries(&self, file: &ParquetMetaData, others: &Schema) -> bool {
        self.coded.iter().all(|name| {
            let Ok(other) = others.field_with_name(name) else { return true };
            self.read_as(name, file).is_some_and(|read| read.data_type() == other.data_type())
        })
    }

    /// The same scan, looking for the first rows.
    pub(super) fn with_first_rows(mut self, wanted: Wanted) -> Self {
        let parts = wanted.condition.iter().chain([&wanted.first.key]);
        let columns: HashSet<Column> = parts.flat_map(collect_columns).collect();
        self.coded.retain(|coded| columns.iter().all(|column| column.name() != coded));
        self.read.extend(columns);
        self.wanted = Some(wanted);
        self
    }

    /// Position of the column by which only the first rows are needed, if it is a column.
    pub(super) fn first_column(&self) -> Option<usize> {
        Some(self.wanted.as_ref()?.first.key.downcast_ref::<Column>()?.index())
    }

    /// Returns the columns of a file that the scan reads and that have one value in all of its
    /// rows: they need not be decoded.
    pub(super) fn constants(&self, file: &Statistics) -> Constants {
        let value = |column: &Column| {
            let known = file.column_statistics.get(column.index())?;
            let field = self.columns.fields().get(column.index())?;
            match (&known.min_value, &known.max_value, &known.null_count) {
                (Precision::Exact(min), Precision::Exact(max), Precision::Exact(0))
                    if min == max && !min.is_null() =>
                {
                    min.cast_to(field.data_type()).ok()
                }
                _ => None,
            }
        };
        self.read.iter().filter_map(|column| Some((column.name().to_owned(), value(column)?))).collect()
    }
}

/// Values of columns that have the same value in all rows of a file.
pub(super) type Constants = HashMap<String, ScalarValue>;
