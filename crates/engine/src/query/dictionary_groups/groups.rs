//! Groups of rows, with the accumulators of their aggregates.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, UInt32Type};
use datafusion::common::cast::as_boolean_array;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

use crate::query::dictionary_groups::members::Members;
use crate::query::dictionary_groups::texts::Texts;

/// Groups of the rows of a stream.
pub(super) struct Groups {
    keys: Vec<Key>,
    /// Groups by several keys; `None` if the numbers of the only key are the groups.
    members: Option<Members>,
    aggregates: Vec<Aggregate>,
    /// Group of each row of a batch, kept for its memory.
    found: Vec<usize>,
    schema: SchemaRef,
}

/// A key of the groups.
struct Key {
    expr: Arc<dyn PhysicalExpr>,
    /// Numbers of its texts, if groups are found by them.
    texts: Option<Texts>,
}

/// An aggregate, with its state for each group.
struct Aggregate {
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    filter: Option<Arc<dyn PhysicalExpr>>,
    accumulator: Box<dyn GroupsAccumulator>,
}

impl Groups {
    /// Creates the groups of a partial aggregation, whose input returns the keys at some positions
    /// with dictionaries.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if an aggregate has no accumulator
    /// for groups.
    pub(super) fn try_new(partial: &AggregateExec, with_dictionaries: &[usize]) -> Result<Self> {
        let schema = partial.schema();
        // The numbers of an only key are the groups.
        let is_several = partial.group_expr().expr().len() > 1;
        let mut keys = Vec::new();
        let own = partial.group_expr().expr().iter().zip(schema.fields());
        for (position, ((expr, _), field)) in own.enumerate() {
            let has_dictionary = with_dictionaries.contains(&position);
            let texts = has_dictionary.then(|| Texts::try_new(field, is_several)).transpose()?;
            keys.push(Key { expr: Arc::clone(expr), texts });
        }
        let are_numbers = with_dictionaries.len() == keys.len();
        let found_by = columns_found_by(&keys, &schema);
        let members = is_several.then(|| Members::try_new(&found_by, are_numbers)).transpose()?;
        let aggregates = partial.aggr_expr().iter().zip(partial.filter_expr()).map(|(aggregate, filter)| {
            let accumulator = aggregate.create_groups_accumulator()?;
            Ok(Aggregate { arguments: aggregate.expressions(), filter: filter.clone(), accumulator })
        });
        let aggregates = aggregates.collect::<Result<_>>()?;
        Ok(Self { keys, members, aggregates, found: Vec::new(), schema })
    }

    /// Number of groups.
    pub(super) fn len(&self) -> usize {
        match (&self.members, self.keys.as_slice()) {
            (Some(members), _) => members.len(),
            (None, [Key { texts: Some(texts), .. }]) => texts.len(),
            (None, _) => 0,
        }
    }

    /// Adds rows to their groups. A batch with fewer rows than others ends its dictionaries.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if a key or an argument cannot be
    /// evaluated, or an aggregate fails.
    pub(super) fn add(&mut self, rows: &RecordBatch, batch_size: usize) -> Result<()> {
        let values = self.keys.iter().map(|key| evaluated(&key.expr, rows)).collect::<Result<Vec<_>>>()?;
        if rows.num_rows() < batch_size {
            for (key, values) in self.keys.iter_mut().zip(&values) {
                if let (Some(texts), Some(coded)) = (&mut key.texts, values.as_dictionary_opt()) {
                    texts.expect_last(coded);
                }
            }
        }
        self.leave_texts_that_hardly_repeat()?;
        let mut keys = Vec::new();
        let mut counts = Vec::new();
        for (key, values) in self.keys.iter_mut().zip(values) {
            let Some(texts) = &mut key.texts else {
                keys.push(without_dictionary(values)?);
                counts.push(0);
                continue;
            };
            let Some(coded) = values.as_dictionary_opt::<UInt32Type>() else {
                return internal_err!("a scan returned texts without dictionaries");
            };
            match &self.members {
                Some(_) => {
                    let mut numbers = Vec::with_capacity(rows.num_rows());
                    texts.number(coded, &mut numbers, |number| number)?;
                    keys.push(Arc::new(UInt32Array::from(numbers)) as ArrayRef);
                }
                None => {
                    self.found.clear();
                    texts.number(coded, &mut self.found, |number| number as usize)?;
                }
            }
            counts.push(texts.len());
        }
        if let Some(members) = &mut self.members {
            members.find(keys, &counts, &mut self.found)?;
        }
        let groups = self.len();
        for aggregate in &mut self.aggregates {
            let (arguments, filter) = aggregate.evaluated(rows)?;
            let filter = filter.as_ref().map(|filter| as_boolean_array(filter)).transpose()?;
            aggregate.accumulator.update_batch(&arguments, &self.found, filter, groups)?;
        }
        Ok(())
    }

    /// From now on finds groups by the texts themselves that hardly repeat, instead of by numbers.
    fn leave_texts_that_hardly_repeat(&mut self) -> Result<()> {
        let hardly_repeats = |key: &Key| key.texts.as_ref().is_some_and(Texts::hardly_repeat);
        let Some(members) = self.members.as_mut().filter(|_| self.keys.iter().any(hardly_repeats)) else {
            return Ok(());
        };
        let mut groups = members.emit()?;
        for (key, found_by) in self.keys.iter_mut().zip(&mut groups) {
            if hardly_repeats(key)
                && let Some(mut texts) = key.texts.take()
            {
                *found_by = take(&texts.emit()?, found_by, None)?;
            }
        }
        *members = Members::table_of(&columns_found_by(&self.keys, &self.schema), &groups)?;
        Ok(())
    }

    /// Returns the states of all groups, and forgets these; `None` if there are none.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if an aggregate fails.
    pub(super) fn states(&mut self) -> Result<Option<RecordBatch>> {
        let schema = Arc::clone(&self.schema);
        self.emit(&schema, |aggregate| aggregate.state(EmitTo::All))
    }

    /// Returns the results of all groups, with the schema of the aggregation, and forgets these;
    /// `None` if there are none.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if an aggregate fails.
    pub(super) fn results(&mut self, schema: &SchemaRef) -> Result<Option<RecordBatch>> {
        self.emit(schema, |aggregate| Ok(vec![aggregate.evaluate(EmitTo::All)?]))
    }

    fn emit(
        &mut self,
        schema: &SchemaRef,
        of_aggregate: impl Fn(&mut dyn GroupsAccumulator) -> Result<Vec<ArrayRef>>,
    ) -> Result<Option<RecordBatch>> {
        if self.len() == 0 {
            return Ok(None);
        }
        let found_by = self.members.as_mut().map(Members::emit).transpose()?;
        let mut columns = Vec::new();
        for (position, key) in self.keys.iter_mut().enumerate() {
            let found_by = found_by.as_ref().and_then(|keys| keys.get(position));
            columns.push(match (&mut key.texts, found_by) {
                (Some(texts), Some(numbers)) => take(&texts.emit()?, numbers, None)?,
                (Some(texts), None) => texts.emit()?,
                (None, Some(values)) => Arc::clone(values),
                (None, None) => return internal_err!("a key has no values"),
            });
        }
        for aggregate in &mut self.aggregates {
            columns.extend(of_aggregate(aggregate.accumulator.as_mut())?);
        }
        self.found = Vec::new();
        Ok(Some(RecordBatch::try_new(Arc::clone(schema), columns)?))
    }

    /// Returns rows as states of a group each.
    ///
    /// # Errors
    /// [`DataFusionError`](datafusion::error::DataFusionError) if a key or an argument cannot be
    /// evaluated, or an aggregate fails.
    pub(super) fn converted(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let mut columns = Vec::new();
        for key in &self.keys {
            columns.push(without_dictionary(evaluated(&key.expr, rows)?)?);
        }
        for aggregate in &self.aggregates {
            let (arguments, filter) = aggregate.evaluated(rows)?;
            let filter = filter.as_ref().map(|filter| as_boolean_array(filter)).transpose()?;
            columns.extend(aggregate.accumulator.convert_to_state(&arguments, filter)?);
        }
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }

    /// Bytes in memory.
    pub(super) fn size(&self) -> usize {
        let texts = self.keys.iter().filter_map(|key| key.texts.as_ref()).map(Texts::size).sum::<usize>();
        let states = self.aggregates.iter().map(|aggregate| aggregate.accumulator.size()).sum::<usize>();
        let members = self.members.as_ref().map_or(0, Members::size);
        texts + states + members + self.found.capacity() * size_of::<usize>()
    }
}

impl Aggregate {
    /// Returns the arguments and the filter of rows.
    fn evaluated(&self, rows: &RecordBatch) -> Result<(Vec<ArrayRef>, Option<ArrayRef>)> {
        let arguments =
            self.arguments.iter().map(|argument| evaluated(argument, rows)).collect::<Result<_>>()?;
        let filter = self.filter.as_ref().map(|filter| evaluated(filter, rows)).transpose()?;
        Ok((arguments, filter))
    }
}

/// Columns by which groups are found: the numbers of texts, or else keys.
fn columns_found_by(keys: &[Key], schema: &Schema) -> SchemaRef {
    let column = |(key, field): (&Key, &FieldRef)| match key.texts {
        Some(_) => Arc::new(Field::new(field.name(), DataType::UInt32, false)),
        None => Arc::clone(field),
    };
    Arc::new(Schema::new(keys.iter().zip(schema.fields()).map(column).collect::<Vec<_>>()))
}

/// Returns the texts of rows.
fn without_dictionary(values: ArrayRef) -> Result<ArrayRef> {
    Ok(match values.as_dictionary_opt::<UInt32Type>() {
        Some(coded) => take(coded.values(), coded.keys(), None)?,
        None => values,
    })
}

fn evaluated(expr: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<ArrayRef> {
    expr.evaluate(rows)?.into_array(rows.num_rows())
}
