//! Conditions on one text column, evaluated once for each text of a dictionary.
//!
//! ```text
//! dictionary of a row group   apple  box   cat
//! name LIKE '%o%'             false  true  false
//! rows                        0 2 1 0 1  ->  false false true false true
//! ```
//! A dictionary may have texts of rows that other conditions have left out. If evaluating a
//! condition on the texts of a dictionary fails, it is evaluated on the rows instead, which only
//! fails if one of them makes it fail.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, RecordBatch, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UInt32Type};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{ColumnarValue, Operator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};

use crate::query::scan::dictionaries::{Views, is_on_values};
use crate::query::scan::kept_rows::true_rows;
use crate::query::walk::Walk;

/// A dictionary is evaluated as a whole if it has at most this many texts for each row read.
const TEXTS_PER_ROW: usize = 4;

/// A condition on one column of a file, which is read with dictionaries. It selects rows, maybe as
/// a part of a conjunction or disjunction: NULL counts as false.
#[derive(Debug)]
pub(super) struct DictionaryCondition {
    /// The condition on rows without dictionaries.
    plain: Arc<dyn PhysicalExpr>,
    column: Column,
    /// The condition on rows of only that column, and their schema.
    alone: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    latest: Mutex<(Views, Latest)>,
}

/// Results of the condition on the latest dictionary.
#[derive(Debug, Default)]
struct Latest {
    /// Rows that had its codes.
    rows: usize,
    /// Whether the condition is true for each of its texts.
    of_texts: Option<Vec<bool>>,
    /// Whether the condition is true for NULL.
    of_null: Option<bool>,
    /// Whether evaluating the condition on a dictionary has failed.
    fails: bool,
}

impl DictionaryCondition {
    /// Returns a condition in the form for a file with these columns: parts of it on a single
    /// column that is read with dictionaries are evaluated on them.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub(super) fn on_dictionaries(
        condition: Arc<dyn PhysicalExpr>,
        columns: &Schema,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        if is_on_values(&condition) {
            let column = collect_columns(&condition).into_iter().next();
            let field = column.and_then(|column| columns.fields().get(column.index()));
            return Ok(match field.map(|field| field.data_type()) {
                Some(DataType::Dictionary(_, texts)) => {
                    Arc::new(Self::try_new(condition, &Views::data_type(texts))?)
                }
                _ => condition,
            });
        }
        let Some([left, right]) = connected(&condition) else { return Ok(condition) };
        let both = [left, right].map(|part| Self::on_dictionaries(Arc::clone(part), columns));
        condition.with_new_children(both.into_iter().collect::<Result<_>>()?)
    }

    fn try_new(plain: Arc<dyn PhysicalExpr>, views: &DataType) -> Result<Self> {
        let columns = collect_columns(&plain);
        let mut columns = columns.into_iter();
        let (Some(column), None) = (columns.next(), columns.next()) else {
            return internal_err!("a condition on a dictionary is on one column");
        };
        let schema = Arc::new(Schema::new(vec![Field::new(column.name(), views.clone(), true)]));
        let alone = reassign_expr_columns(Arc::clone(&plain), &schema)?;
        Ok(Self { plain, column, alone, schema, latest: Mutex::default() })
    }

    /// Returns a condition for another stream of rows: one that knows no dictionary yet.
    ///
    /// # Errors
    /// None that a caller can cause.
    pub(super) fn of_stream(condition: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let anew = |node: Arc<dyn PhysicalExpr>| match node.downcast_ref::<Self>() {
            Some(known) => {
                let anew = Self::try_new(Arc::clone(&known.plain), known.schema.field(0).data_type())?;
                Ok(Transformed::new(Arc::new(anew) as _, true, TreeNodeRecursion::Jump))
            }
            None => Ok(Transformed::no(node)),
        };
        Arc::clone(condition).transform_down_dyn(anew).data()
    }

    /// Whether the condition is true for each of some texts.
    fn of_texts(&self, texts: ArrayRef) -> Result<BooleanBuffer> {
        let texts = RecordBatch::try_new(Arc::clone(&self.schema), vec![texts])?;
        let values = self.alone.evaluate(&texts)?.into_array(texts.num_rows())?;
        Ok(true_rows(as_boolean_array(&values)?))
    }

    /// Evaluates the condition on the dictionary of some rows, if that pays off and has not failed.
    ///
    /// # Errors
    /// Lack of memory.
    fn look_at_texts(
        &self,
        rows: &DictionaryArray<UInt32Type>,
        views: &mut Views,
        latest: &mut Latest,
    ) -> Result<()> {
        let pays_off = rows.values().len() <= latest.rows.saturating_mul(TEXTS_PER_ROW);
        if latest.of_texts.is_none() && pays_off && !latest.fails {
            match self.of_texts(views.all(rows)?) {
                Ok(of_texts) => latest.of_texts = Some(of_texts.iter().collect()),
                Err(_) => latest.fails = true,
            }
        }
        if latest.of_null.is_none() && rows.keys().null_count() > 0 && !latest.fails {
            match self.of_texts(new_null_array(self.schema.field(0).data_type(), 1)) {
                Ok(of_null) => latest.of_null = Some(of_null.value(0)),
                Err(_) => latest.fails = true,
            }
        }
        Ok(())
    }
}

/// The two conditions of which one is the conjunction or disjunction. If one of them is NULL, it
/// selects the same rows as if that were false.
fn connected(condition: &Arc<dyn PhysicalExpr>) -> Option<[&Arc<dyn PhysicalExpr>; 2]> {
    let binary = condition.downcast_ref::<BinaryExpr>()?;
    matches!(binary.op(), Operator::And | Operator::Or).then(|| [binary.left(), binary.right()])
}

/// Returns the parts of a condition that select rows on their own.
pub(super) fn selecting_parts(condition: &Arc<dyn PhysicalExpr>) -> Vec<&Arc<dyn PhysicalExpr>> {
    match connected(condition) {
        Some(both) => both.into_iter().flat_map(selecting_parts).collect(),
        None => vec![condition],
    }
}

impl PartialEq for DictionaryCondition {
    fn eq(&self, other: &Self) -> bool {
        self.plain.eq(&other.plain)
    }
}

impl Eq for DictionaryCondition {}

impl Hash for DictionaryCondition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.plain.hash(state);
    }
}

impl fmt::Display for DictionaryCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "dictionary({})", self.plain)
    }
}

impl PhysicalExpr for DictionaryCondition {
    fn return_field(&self, _schema: &Schema) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(self.column.name(), DataType::Boolean, false)))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let values = self.column.evaluate(batch)?.into_array(batch.num_rows())?;
        let Some(rows) = values.as_dictionary_opt::<UInt32Type>() else { return self.plain.evaluate(batch) };
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let (views, latest) = &mut *latest;
        if views.enter(rows) {
            (latest.rows, latest.of_texts) = (0, None);
        }
        latest.rows = latest.rows.saturating_add(rows.len());
        self.look_at_texts(rows, views, latest)?;
        let kept = match &latest.of_texts {
            Some(of_texts) if !latest.fails => of_rows(rows, of_texts, latest.of_null.unwrap_or(false)),
            _ => self.of_texts(views.of_rows(rows)?)?,
        };
        Ok(ColumnarValue::Array(Arc::new(BooleanArray::new(kept, None))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.plain]
    }

    /// The new condition knows no dictionary yet.
    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(plain), true) => Ok(Arc::new(Self::try_new(plain, self.schema.field(0).data_type())?)),
            _ => internal_err!("a condition on a dictionary has one child"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plain.fmt_sql(f)
    }

    /// The condition, so that statistics can exclude row groups.
    fn snapshot(&self) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        Ok(Some(Arc::clone(&self.plain)))
    }
}

/// Returns for each row what is known of its text.
fn of_rows(rows: &DictionaryArray<UInt32Type>, of_texts: &[bool], of_null: bool) -> BooleanBuffer {
    let codes = rows.keys().values();
    let of_code = |code: u32| of_texts.get(code as usize).copied().unwrap_or(false);
    let of_codes =
        BooleanBuffer::collect_bool(codes.len(), |row| codes.get(row).copied().is_some_and(of_code));
    match (rows.keys().nulls(), of_null) {
        (None, _) => of_codes,
        (Some(valid), false) => &of_codes & valid.inner(),
        (Some(valid), true) => &of_codes | &!valid.inner(),
    }
}

#[cfg(test)]
#[path = "dictionary_conditions_tests.rs"]
mod tests;
