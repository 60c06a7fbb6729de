//! Conditions in the form that a scan receives.
//!
//! The reader of Parquet evaluates each part of a conjunction separately: it decodes the columns of
//! a part for the rows that all previous parts have kept, and combines the selections. That pays
//! off if a part keeps few rows, since pages without any are skipped. If each keeps a fair share,
//! as ranges of measures do, combining selections takes longer than evaluating all parts on all
//! rows.
//!
//! ```text
//! a AND b AND c  ->  WholeConjunction(a AND b) AND ForPages(a) AND ForPages(b) AND c
//! ```
//! [`WholeConjunction`] is one conjunct for the reader. [`ForPages`] filters no rows: it only lets
//! page statistics exclude pages, which DataFusion 55 tries for conditions on one column.
//!
//! DataFusion may evaluate the conjuncts in the order of the bytes that they read. A conjunct that
//! can fail would then run before its guard, as in `b <> 0 AND c > 1 AND a / b > 1`, so such
//! conditions are ordered here: first those that cannot fail, then the others as written, divisions
//! and casts last.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::and_kleene;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileSource, ParquetSource};
use datafusion::functions::core::file_row_index;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::expressions::{
    Column, DynamicFilterPhysicalExpr, DynamicFilterTracking, InListExpr, IsNotNullExpr, IsNullExpr, Literal,
    NotExpr,
};
use datafusion::physical_expr::utils::{collect_columns, split_conjunction};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, conjunction};
use datafusion::physical_plan::joins::HashTableLookupExpr;

use crate::query::optimization::guards::{Guarded, can_fail, compares, risk};
use crate::query::scan::dictionary_conditions::{DictionaryCondition, selecting_parts};
use crate::query::scan::kept_rows::Cost;
use crate::query::walk::Walk;

/// Values of a list that are compared one after another about as fast as they are looked up.
const FEW_VALUES: usize = 4;

/// Returns a scan with conditions in their fastest form.
pub(in crate::query) fn with_conditions(
    source: &ParquetSource,
    predicate: &Arc<dyn PhysicalExpr>,
) -> Result<ParquetSource> {
    let predicate = arranged(predicate, source.table_schema().table_schema())?;
    let is_reordered = may_be_reordered(&predicate);
    Ok(source.with_predicate(predicate).with_reorder_filters(is_reordered))
}

/// Whether the reader may evaluate conditions in the order of the bytes that they read: none can
/// fail.
fn may_be_reordered(predicate: &Arc<dyn PhysicalExpr>) -> bool {
    !split_conjunction(predicate).into_iter().any(can_fail)
}

/// Whether conditions can be evaluated on any rows.
pub(super) fn may_see_all_rows(conditions: &[Arc<dyn PhysicalExpr>]) -> bool {
    conditions.iter().all(|part| match part.downcast_ref::<WholeConjunction>() {
        Some(together) => !can_fail(&together.parts),
        None => !can_fail(part),
    })
}

/// Conditions of a scan, as far as they are known.
pub(super) enum Conditions {
    /// No longer change; `None` if there are none.
    Settled(Option<Arc<dyn PhysicalExpr>>),
    /// May still change.
    Open,
}

/// Returns the conditions of a scan with the values that no longer change.
pub(super) fn settled(predicate: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Conditions> {
    match DynamicFilterTracking::classify(predicate) {
        DynamicFilterTracking::Static => return Ok(Conditions::Settled(Some(Arc::clone(predicate)))),
        DynamicFilterTracking::AllComplete => {}
        DynamicFilterTracking::Watching(_) => return Ok(Conditions::Open),
    }
    let mut parts = Vec::new();
    for part in split_conjunction(predicate) {
        match part.downcast_ref::<DynamicFilterPhysicalExpr>() {
            Some(filter) => {
                // They are on the same columns. Joins compare the rows again, so that values alone
                // can be left out.
                let found = filter.current()?;
                let found = split_conjunction(&found).into_iter().filter(|part| !part.is::<Literal>());
                parts.extend(together(found.cloned().collect(), schema)?);
            }
            None => parts.push(Arc::clone(part)),
        }
    }
    Ok(Conditions::Settled((!parts.is_empty()).then(|| conjunction(parts))))
}

/// Returns conditions in the form in which they are evaluated together. Those that are cheap can
/// also exclude pages.
fn together(parts: Vec<Arc<dyn PhysicalExpr>>, schema: &Schema) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
    if parts.len() < 2 {
        return Ok(parts);
    }
    let mut all = vec![Arc::new(WholeConjunction { parts: conjunction(parts.iter().cloned()) }) as _];
    for part in parts.iter().filter(|part| is_cheap(part, schema)) {
        all.push(Arc::new(ForPages::new(part, schema)?) as _);
    }
    Ok(all)
}

/// Returns the conditions of a scan that are evaluated on rows, in their order.
pub(super) fn evaluated_parts(predicate: &Arc<dyn PhysicalExpr>) -> Vec<Arc<dyn PhysicalExpr>> {
    let parts = split_conjunction(predicate).into_iter();
    parts.filter(|part| part.downcast_ref::<ForPages>().is_none()).cloned().collect()
}

/// Returns what it costs to evaluate one of these conditions on rows of a schema.
pub(super) fn cost(condition: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Cost {
    let looks_up = |node: &Arc<dyn PhysicalExpr>| {
        Ok(node.is::<HashTableLookupExpr>()
            || node.downcast_ref::<InListExpr>().is_some_and(|list| list.list().len() > FEW_VALUES))
    };
    let together = condition.downcast_ref::<WholeConjunction>();
    let has_low_cost = |part: &Arc<dyn PhysicalExpr>| {
        part.is::<DictionaryCondition>()
            || (together.is_some() || is_cheap(part, schema)) && !part.exists_dyn(looks_up).unwrap_or(true)
    };
    let parts = selecting_parts(together.map_or(condition, |together| &together.parts));
    if parts.into_iter().all(has_low_cost) { Cost::Low } else { Cost::High }
}

/// Returns the conditions of a scan in their fastest form. `predicate` may have that form already.
fn arranged(predicate: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
    let mut plain = Vec::new();
    for part in split_conjunction(predicate) {
        match part.downcast_ref::<WholeConjunction>() {
            Some(together) => plain.extend(split_conjunction(&together.parts).into_iter().cloned()),
            None if part.downcast_ref::<ForPages>().is_some() => {}
            None => {
                let written = part.downcast_ref::<Guarded>().map_or(part, Guarded::plain);
                plain.push(Arc::clone(written));
            }
        }
    }
    let (cheap, mut alone): (Vec<_>, Vec<_>) = plain.into_iter().partition(|part| is_cheap(part, schema));
    alone.sort_by_cached_key(risk);
    let alone = alone.into_iter().map(Guarded::both_forms).collect::<Result<Vec<_>>>()?;
    Ok(conjunction(together(cheap, schema)?.into_iter().chain(alone)))
}

/// Whether evaluating a condition on all rows is cheap and cannot fail: it compares columns of
/// fixed width with each other and with values. In `b <> 0 AND a / b > 1`, the division must only
/// see the rows that the comparison has kept. A condition whose value changes during the query,
/// such as the bound of a top-n, stays separate too.
fn is_cheap(part: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    let is_cheap_node = |node: &Arc<dyn PhysicalExpr>| {
        if let Some(column) = node.downcast_ref::<Column>() {
            let field = schema.fields().get(column.index());
            return field.is_some_and(|field| field.data_type().primitive_width().is_some());
        }
        compares(node)
            || node.is::<Literal>()
            || node.is::<InListExpr>()
            || node.is::<IsNullExpr>()
            || node.is::<IsNotNullExpr>()
            || node.is::<NotExpr>()
    };
    let is_other = part.exists_dyn(|node| Ok(!is_cheap_node(node)));
    matches!(is_other, Ok(false)) && !collect_columns(part).is_empty()
}

/// A conjunction that is evaluated as a whole.
#[derive(Debug, Eq)]
struct WholeConjunction {
    parts: Arc<dyn PhysicalExpr>,
}

impl PartialEq for WholeConjunction {
    fn eq(&self, other: &Self) -> bool {
        self.parts.eq(&other.parts)
    }
}

impl Hash for WholeConjunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts.hash(state);
    }
}

impl fmt::Display for WholeConjunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "together({})", self.parts)
    }
}

impl PhysicalExpr for WholeConjunction {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.parts.return_field(schema)
    }

    /// Evaluates all parts on all rows, which is faster here than to select rows for the next part.
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let mut kept: Option<BooleanArray> = None;
        for part in split_conjunction(&self.parts) {
            let selected = part.evaluate(batch)?.into_array(batch.num_rows())?;
            let selected = as_boolean_array(&selected)?;
            let both = match kept {
                None => selected.clone(),
                Some(kept) => and_kleene(&kept, selected)?,
            };
            let is_empty = !both.has_true();
            kept = Some(both);
            if is_empty {
                break;
            }
        }
        Ok(match kept {
            Some(kept) => ColumnarValue::Array(Arc::new(kept)),
            None => ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))),
        })
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.parts]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(parts), true) => Ok(Arc::new(Self { parts })),
            _ => internal_err!("a conjunction evaluated as a whole has one child"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.fmt_sql(f)
    }

    /// The conjunction, so that statistics can exclude row groups.
    fn snapshot(&self) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        Ok(Some(Arc::clone(&self.parts)))
    }
}

/// A condition that is evaluated elsewhere, and can exclude pages here.
#[derive(Debug, Eq)]
struct ForPages {
    part: Arc<dyn PhysicalExpr>,
    /// A function that the reader cannot evaluate: it leaves out conditions that call it.
    barrier: Arc<dyn PhysicalExpr>,
}

impl ForPages {
    fn new(part: &Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Self> {
        let config = Arc::new(ConfigOptions::default());
        let barrier = ScalarFunctionExpr::try_new(file_row_index(), vec![], schema, config)?;
        Ok(Self { part: Arc::clone(part), barrier: Arc::new(barrier) })
    }
}

impl PartialEq for ForPages {
    fn eq(&self, other: &Self) -> bool {
        self.part.eq(&other.part)
    }
}

impl Hash for ForPages {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.part.hash(state);
    }
}

impl fmt::Display for ForPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pages({})", self.part)
    }
}

impl PhysicalExpr for ForPages {
    fn data_type(&self, _schema: &Schema) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn nullable(&self, _schema: &Schema) -> Result<bool> {
        Ok(false)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.part.return_field(schema)
    }

    fn evaluate(&self, _batch: &RecordBatch) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.part, &self.barrier]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match <[_; 2]>::try_from(children) {
            Ok([part, barrier]) => Ok(Arc::new(Self { part, barrier })),
            Err(_) => internal_err!("a condition for pages has two children"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.part.fmt_sql(f)
    }

    /// The condition, so that statistics can exclude pages.
    fn snapshot(&self) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        Ok(Some(Arc::clone(&self.part)))
    }
}

#[cfg(test)]
#[path = "scan_filters_tests.rs"]
mod tests;
