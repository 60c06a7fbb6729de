//! Conditions that are evaluated after decoding, for scans that keep rows close to each other, and
//! for small reads.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::BatchCoalescer;
use arrow::datatypes::Schema;
use datafusion::common::cast::as_boolean_array;
use datafusion::error::{DataFusionError, Result};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use crate::query::scan::density::Density;
use crate::query::scan::dictionary_conditions::DictionaryCondition;
use crate::query::scan::first_rows::{Best, WantedOfFile};
use crate::query::scan::kept_rows::{Cost, KeptRows};
use crate::query::scan::scan_filters::cost;

/// Conditions on decoded rows.
#[derive(Debug, Clone)]
pub(super) struct LateFilter {
    /// Positions of the columns of the file to decode, in order.
    pub(super) decoded: Vec<usize>,
    /// Positions of the columns to return among those.
    returned: Vec<usize>,
    /// Conditions, each with the positions of its columns among those decoded.
    parts: Vec<(Vec<usize>, Cost, Arc<dyn PhysicalExpr>)>,
    /// The key of the first rows and the condition of the sort, if only these rows are needed, each
    /// with the positions of its columns.
    key: Option<(Vec<usize>, Arc<dyn PhysicalExpr>)>,
    of_sort: Option<(Vec<usize>, Arc<dyn PhysicalExpr>)>,
}

impl LateFilter {
    /// Prepares conditions, in this order, and what is wanted of the first rows, on rows of which
    /// some columns, in order, are to be returned.
    ///
    /// # Errors
    /// [`DataFusionError`] if a condition has a column that the file does not have.
    pub(super) fn new(
        conditions: &[Arc<dyn PhysicalExpr>],
        first: Option<&WantedOfFile>,
        returned: &[usize],
        columns: &Schema,
    ) -> Result<Self> {
        let (key, of_sort) =
            (first.map(|first| &first.key), first.and_then(|first| first.condition.as_ref()));
        let read = conditions.iter().chain(key).chain(of_sort).flat_map(collect_columns);
        let mut decoded: Vec<usize> = read.map(|column| column.index()).collect();
        decoded.extend(returned);
        decoded.sort_unstable();
        decoded.dedup();
        let among = |file: &[usize]| -> Vec<usize> {
            file.iter().filter_map(|column| decoded.binary_search(column).ok()).collect()
        };
        let on_own_columns = |part: &Arc<dyn PhysicalExpr>| {
            let mut own: Vec<usize> = collect_columns(part).iter().map(|column| column.index()).collect();
            own.sort_unstable();
            own.dedup();
            let part = reassign_expr_columns(Arc::clone(part), &columns.project(&own)?)?;
            Ok::<_, DataFusionError>((among(&own), part))
        };
        let condition = |part: &Arc<dyn PhysicalExpr>| {
            on_own_columns(part).map(|(own, reassigned)| (own, cost(part, columns), reassigned))
        };
        let parts = conditions.iter().map(condition).collect::<Result<Vec<_>>>()?;
        let key = key.map(on_own_columns).transpose()?;
        let of_sort = of_sort.map(on_own_columns).transpose()?;
        Ok(Self { returned: among(returned), parts, key, of_sort, decoded })
    }

    /// The same filter for one stream of rows. What conditions learn of a stream stays with it.
    fn of_stream(&self) -> Result<Self> {
        let anew = |(columns, cost, part): &(Vec<usize>, Cost, Arc<dyn PhysicalExpr>)| {
            let part = DictionaryCondition::of_stream(part)?;
            Ok::<_, DataFusionError>((columns.clone(), *cost, part))
        };
        let parts = self.parts.iter().map(anew).collect::<Result<Vec<_>>>()?;
        Ok(Self { parts, ..self.clone() })
    }

    /// Cost of each condition.
    pub(super) fn costs(&self) -> Vec<Cost> {
        self.parts.iter().map(|(_, cost, _)| *cost).collect()
    }

    /// Returns for each row whether it is kept, by conditions in an order, and whether it may be
    /// among the best.
    fn kept(&self, rows: &RecordBatch, order: &[usize], best: Option<&Arc<Best>>) -> Result<BooleanArray> {
        let mut kept = KeptRows::new(rows.num_rows());
        for (columns, cost, part) in order.iter().filter_map(|position| self.parts.get(*position)) {
            kept.retain(rows.project(columns)?, *cost, |rows| values_of(part, rows))?;
        }
        if let Some((best, (columns, key))) = best.zip(self.key.as_ref()) {
            kept.retain_of_kept(rows.project(columns)?, |rows| {
                best.keep(&key.evaluate(rows)?.into_array(rows.num_rows())?)
            })?;
            if let Some((columns, condition)) = &self.of_sort {
                kept.retain_of_kept(rows.project(columns)?, |rows| values_of(condition, rows))?;
            }
        }
        Ok(kept.finish())
    }

    /// Returns the rows that the conditions keep, and that may be among the best if these are given,
    /// in batches of `batch_size` rows. A batch ends early where a dictionary changes. `density` says
    /// how many rows each condition keeps.
    ///
    /// # Errors
    /// [`DataFusionError`] if a condition cannot be prepared.
    pub(super) fn filtered<S>(
        &self,
        rows: S,
        density: &Density,
        best: Option<Arc<Best>>,
        batch_size: usize,
    ) -> Result<BoxStream<'static, Result<RecordBatch>>>
    where
        S: Stream<Item = Result<RecordBatch>> + Send + Unpin + 'static,
    {
        let order = density.order(&self.costs());
        let filter = self.of_stream()?;
        let (waiting, dictionaries, is_done) = (None, Vec::new(), false);
        let state = Filtering { filter, order, best, batch_size, waiting, dictionaries, is_done };
        let kept = futures::stream::try_unfold((rows, state), |(mut rows, mut state)| async move {
            loop {
                if let Some(batch) = state.next_batch() {
                    return Ok(Some((batch, (rows, state))));
                }
                if state.is_done {
                    return Ok(None);
                }
                match rows.next().await.transpose()? {
                    Some(decoded) => {
                        if let Some(batch) = state.add(&decoded)? {
                            return Ok(Some((batch, (rows, state))));
                        }
                    }
                    None => state.finish()?,
                }
            }
        });
        Ok(kept.boxed())
    }
}

/// Values of a condition.
fn values_of(condition: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<BooleanArray> {
    let values = condition.evaluate(rows)?.into_array(rows.num_rows())?;
    Ok(as_boolean_array(&values)?.clone())
}

/// Rows that are kept, until there are enough for a batch.
struct Filtering {
    filter: LateFilter,
    /// Order of the conditions.
    order: Vec<usize>,
    best: Option<Arc<Best>>,
    batch_size: usize,
    waiting: Option<BatchCoalescer>,
    /// Dictionaries of the latest rows.
    dictionaries: Vec<ArrayRef>,
    is_done: bool,
}

impl Filtering {
    /// Filters decoded rows. Rows without columns only have a number, and are returned at once.
    fn add(&mut self, decoded: &RecordBatch) -> Result<Option<RecordBatch>> {
        let kept = self.filter.kept(decoded, &self.order, self.best.as_ref())?;
        let returned = decoded.project(&self.filter.returned)?;
        if returned.num_columns() == 0 {
            let options = RecordBatchOptions::new().with_row_count(Some(kept.true_count()));
            let rows = RecordBatch::try_new_with_options(returned.schema(), Vec::new(), &options)?;
            return Ok((rows.num_rows() > 0).then_some(rows));
        }
        let batch_size = self.batch_size;
        let waiting = self.waiting.get_or_insert_with(|| BatchCoalescer::new(returned.schema(), batch_size));
        let dictionaries = dictionaries(returned.columns());
        if !are_same(&self.dictionaries, &dictionaries) {
            waiting.finish_buffered_batch()?;
        }
        self.dictionaries = dictionaries;
        waiting.push_batch_with_filter(returned, &kept)?;
        Ok(None)
    }

    fn next_batch(&mut self) -> Option<RecordBatch> {
        self.waiting.as_mut()?.next_completed_batch()
    }

    fn finish(&mut self) -> Result<(), DataFusionError> {
        self.is_done = true;
        match &mut self.waiting {
            Some(waiting) => Ok(waiting.finish_buffered_batch()?),
            None => Ok(()),
        }
    }
}

/// Dictionaries of the columns that have one.
fn dictionaries(columns: &[ArrayRef]) -> Vec<ArrayRef> {
    let coded = columns.iter().filter_map(|column| column.as_any_dictionary_opt());
    coded.map(|coded| Arc::clone(coded.values())).collect()
}

/// Whether the dictionaries of rows are those of the rows before them, if there were any. A batch
/// with the codes of two row groups would have a dictionary of the texts of both, which takes longer
/// to make than another batch.
fn are_same(before: &[ArrayRef], dictionaries: &[ArrayRef]) -> bool {
    let mut both = before.iter().zip(dictionaries);
    both.all(|(before, dictionary)| before.to_data().ptr_eq(&dictionary.to_data()))
}

#[cfg(test)]
mod tests {
    use arrow::array::{DictionaryArray, Int64Array, StringArray, UInt32Array};
    use datafusion::physical_expr::expressions::{col, lit};
    use futures::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn no_batch_has_the_codes_of_two_dictionaries() {
        let batch = |texts: &ArrayRef, rows: i64| {
            let codes = UInt32Array::from_iter_values((0..rows).map(|row| (row % 2) as u32));
            let coded: ArrayRef = Arc::new(DictionaryArray::try_new(codes, Arc::clone(texts)).unwrap());
            let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
            RecordBatch::try_from_iter([("n", numbers), ("text", coded)]).unwrap()
        };
        let (one, other): (ArrayRef, ArrayRef) =
            (Arc::new(StringArray::from(vec!["a", "b"])), Arc::new(StringArray::from(vec!["c", "d"])));
        let rows = [batch(&one, 10), batch(&one, 10), batch(&other, 10), batch(&other, 30), batch(&one, 10)];
        let schema = rows[0].schema();
        let odd = datafusion::physical_expr::expressions::binary(
            col("n", &schema).unwrap(),
            datafusion::logical_expr::Operator::GtEq,
            lit(5i64),
            &schema,
        );
        let filter = LateFilter::new(&[odd.unwrap()], None, &[0, 1], &schema).unwrap();
        let rows = futures::stream::iter(rows.map(Ok));
        let kept = filter.filtered(rows, &Density::default(), None, 16).unwrap();
        let kept: Vec<RecordBatch> = kept.try_collect().await.unwrap();
        let shape = |batch: &RecordBatch| {
            let texts = Arc::clone(batch.column(1).as_any_dictionary().values());
            let texts = texts.as_string::<i32>();
            (batch.num_rows(), texts.len(), texts.value(0).to_owned())
        };
        let expected = [(10, 2, "a"), (16, 2, "c"), (14, 2, "c"), (5, 2, "a")];
        let expected = expected.map(|(rows, texts, first)| (rows, texts, first.to_owned()));
        assert_eq!(kept.iter().map(shape).collect::<Vec<_>>(), expected);
    }
}
