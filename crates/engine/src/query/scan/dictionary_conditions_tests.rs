//! Conditions on dictionaries keep the rows that they keep without.

use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{BinaryArray, StringArray, StringViewArray, UInt32Array};
use datafusion::common::DFSchema;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{
    Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, cast, col, lit, not,
};
use datafusion::prelude::SessionContext;
use proptest::prelude::*;

use super::*;

/// A file's columns, of which `text` is read with dictionaries, and `n` is another.
fn schema(texts: DataType) -> Schema {
    let coded = DataType::Dictionary(Box::new(DataType::UInt32), Box::new(texts));
    Schema::new(vec![Field::new("n", DataType::Int64, true), Field::new("text", coded, true)])
}

/// A condition on the texts of rows without dictionaries.
fn condition(condition: &Expr, texts: DataType) -> Arc<dyn PhysicalExpr> {
    let columns = vec![Field::new("n", DataType::Int64, true), Field::new("text", texts, true)];
    let columns = DFSchema::try_from(Schema::new(columns)).unwrap();
    let state = SessionStateBuilder::new().with_default_features().build();
    SessionContext::new_with_state(state).create_physical_expr(condition.clone(), &columns).unwrap()
}

fn batch(rows: DictionaryArray<UInt32Type>) -> RecordBatch {
    let n: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![0; rows.len()]));
    let schema = schema(rows.values().data_type().clone());
    RecordBatch::try_new(Arc::new(schema), vec![n, Arc::new(rows)]).unwrap()
}

/// The same rows without dictionaries.
fn plain(batch: &RecordBatch) -> RecordBatch {
    let rows = batch.column(1).as_dictionary::<UInt32Type>();
    let n = Arc::clone(batch.column(0));
    let texts = arrow::compute::take(rows.values(), rows.keys(), None).unwrap();
    let texts = evenkeel_model::table::as_view(&texts).unwrap();
    RecordBatch::try_from_iter_with_nullable([("n", n, true), ("text", texts, true)]).unwrap()
}

/// Positions of the rows that a condition keeps.
fn kept(condition: &Arc<dyn PhysicalExpr>, rows: &RecordBatch) -> Result<Vec<usize>> {
    let values = condition.evaluate(rows)?.into_array(rows.num_rows())?;
    Ok(true_rows(as_boolean_array(&values)?).set_indices().collect())
}

fn conditions() -> Vec<Expr> {
    let text = || col("text");
    vec![
        text().like(lit("%a%")),
        text().not_like(lit("a%")),
        text().eq(lit("b")),
        text().gt_eq(lit("b")).and(text().lt(lit("ca"))),
        text().is_null(),
        text().is_not_null(),
        not(text().eq(lit("a"))),
        text().in_list(vec![lit("a"), lit("bc"), lit("")], false),
        text().in_list(vec![lit("a"), lit("b"), lit("c"), lit("ab"), lit("bc")], true),
        // True for NULL.
        text().eq(lit("a")).is_not_true(),
        datafusion::functions::expr_fn::character_length(text()).gt(lit(1i32)),
        datafusion::functions::expr_fn::upper(text()).eq(lit("AB")),
    ]
}

proptest! {
    /// Several dictionaries, one after another, each with several batches, of which some are slices.
    #[test]
    fn a_condition_keeps_the_rows_that_it_keeps_without_dictionaries(
        dictionaries in prop::collection::vec(
            (
                prop::collection::vec("[abc]{0,3}", 1..40),
                prop::collection::vec(prop::collection::vec(prop::option::of(any::<u32>()), 0..30), 1..4),
                0..3usize,
            ),
            1..4,
        )
    ) {
        for expression in conditions() {
            let on_rows = condition(&expression, DataType::Utf8View);
            let on_texts = DictionaryCondition::on_dictionaries(Arc::clone(&on_rows), &schema(DataType::Utf8));
            let on_texts = on_texts.unwrap();
            prop_assert!(on_texts.is::<DictionaryCondition>());
            for (texts, batches, skipped) in &dictionaries {
                let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
                for codes in batches {
                    let code = |code: &Option<u32>| Some((*code)? % texts.len() as u32);
                    let codes: UInt32Array = codes.iter().map(code).collect();
                    let rows = DictionaryArray::try_new(codes, Arc::clone(&texts)).unwrap();
                    let whole = batch(rows);
                    let rows = whole.slice(*skipped.min(&whole.num_rows()), whole.num_rows().saturating_sub(*skipped));
                    prop_assert_eq!(kept(&on_texts, &rows).unwrap(), kept(&on_rows, &plain(&rows)).unwrap());
                }
            }
        }
    }
}

#[test]
fn bytes_are_compared_as_bytes() {
    let on_rows = condition(&col("text").eq(lit(vec![0xffu8, 1])), DataType::BinaryView);
    let on_texts = DictionaryCondition::on_dictionaries(on_rows, &schema(DataType::Binary)).unwrap();
    let texts = BinaryArray::from_iter_values([&[0xffu8, 1][..], &[0xff], &[]]);
    let codes = UInt32Array::from(vec![Some(1), Some(0), None, Some(2), Some(0)]);
    let rows = batch(DictionaryArray::try_new(codes, Arc::new(texts)).unwrap());
    assert_eq!(kept(&on_texts, &rows).unwrap(), [1, 4]);
}

#[test]
fn a_text_that_no_row_has_does_not_make_a_condition_fail() {
    let number = cast(col("text"), DataType::Int64);
    let on_rows = condition(&number.gt(lit(1i64)), DataType::Utf8View);
    let on_texts = DictionaryCondition::on_dictionaries(on_rows, &schema(DataType::Utf8)).unwrap();
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["1", "2", "three"]));
    let rows = |codes: &[Option<u32>]| {
        let codes = UInt32Array::from(codes.to_vec());
        batch(DictionaryArray::try_new(codes, Arc::clone(&texts)).unwrap())
    };
    let numbers = [Some(0), Some(1), None, Some(1)];
    assert_eq!(kept(&on_texts, &rows(&numbers)).unwrap(), [1, 3]);
    let error = kept(&on_texts, &rows(&[Some(0), Some(2)])).unwrap_err().to_string();
    assert!(error.contains("three"), "{error}");
    assert_eq!(kept(&on_texts, &rows(&numbers)).unwrap(), [1, 3]);
}

/// Counts the texts of which it returns the length.
#[derive(Debug)]
struct CountedLength {
    signature: Signature,
    texts: Arc<AtomicUsize>,
}

impl PartialEq for CountedLength {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.texts, &other.texts)
    }
}

impl Eq for CountedLength {}

impl Hash for CountedLength {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.texts).hash(state);
    }
}

impl ScalarUDFImpl for CountedLength {
    fn name(&self) -> &'static str {
        "counted_length"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let texts = args.args[0].to_array(args.number_rows)?;
        self.texts.fetch_add(texts.len(), Ordering::Relaxed);
        let texts: &StringViewArray = texts.as_string_view();
        let lengths = texts.iter().map(|text| text.map(|text| text.len() as i64));
        Ok(ColumnarValue::Array(Arc::new(lengths.collect::<arrow::array::Int64Array>())))
    }
}

#[test]
fn each_text_is_evaluated_once_unless_few_rows_are_read() {
    let evaluated = Arc::new(AtomicUsize::new(0));
    let signature = Signature::any(1, Volatility::Immutable);
    let length = ScalarUDF::from(CountedLength { signature, texts: Arc::clone(&evaluated) });
    let on_rows = condition(&length.call(vec![col("text")]).eq(lit(2i64)), DataType::Utf8View);
    let on_texts = DictionaryCondition::on_dictionaries(on_rows, &schema(DataType::Utf8)).unwrap();
    let evaluate = |texts: &ArrayRef, rows: u32| {
        let codes = UInt32Array::from_iter_values((0..rows).map(|row| row % texts.len() as u32));
        let rows = batch(DictionaryArray::try_new(codes, Arc::clone(texts)).unwrap());
        kept(&on_texts, &rows).unwrap();
        evaluated.swap(0, Ordering::Relaxed)
    };
    let texts = |count: u32| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..count).map(|text| format!("{text}"))))
    };
    let (few, many) = (texts(100), texts(1_000));
    // At once, and never again.
    assert_eq!([evaluate(&few, 1_000), evaluate(&few, 1_000), evaluate(&few, 7)], [100, 0, 0]);
    // 200 rows are few for 1,000 texts.
    assert_eq!([evaluate(&many, 100), evaluate(&many, 100), evaluate(&many, 100)], [100, 100, 1_000]);
    assert_eq!([evaluate(&few, 50), evaluate(&few, 50)], [100, 0]);
    let of_another = DictionaryCondition::of_stream(&on_texts).unwrap();
    assert_eq!(&of_another, &on_texts);
    assert!(
        of_another.downcast_ref::<DictionaryCondition>().unwrap().latest.lock().unwrap().1.of_texts.is_none()
    );
}

#[test]
fn conditions_on_several_columns_or_on_others_are_left_alone() {
    let joint = datafusion::functions::expr_fn::repeat(col("text"), col("n")).eq(lit("aa"));
    for expression in [col("n").gt(lit(1i64)), joint, lit(true)] {
        let plain = condition(&expression, DataType::Utf8View);
        let same = DictionaryCondition::on_dictionaries(Arc::clone(&plain), &schema(DataType::Utf8)).unwrap();
        assert!(!same.exists_dyn(|node| Ok(node.is::<DictionaryCondition>())).unwrap() && same == plain);
    }
}

#[test]
fn parts_of_a_disjunction_are_evaluated_on_the_columns_that_they_are_on() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let codes = UInt32Array::from(vec![Some(0), Some(1), None, Some(2), None]);
    let coded = batch(DictionaryArray::try_new(codes, texts).unwrap());
    let n: ArrayRef = Arc::new(arrow::array::Int64Array::from(vec![None, None, None, Some(5), Some(5)]));
    let coded = RecordBatch::try_new(coded.schema(), vec![n, Arc::clone(coded.column(1))]).unwrap();
    let (is_a, is_five) = (col("text").eq(lit("a")), col("n").eq(lit(5i64)));
    for (expression, expected) in [
        (is_a.clone().or(is_five.clone()), vec![0, 3, 4]),
        (is_a.clone().or(is_five.clone().and(col("text").eq(lit("c")))), vec![0, 3]),
        (is_five.clone().and(col("text").is_null().or(is_a.clone())), vec![4]),
        // NULL below NOT is not false.
        (not(is_five.clone()).or(is_a.clone()), vec![0]),
        (not(is_a.clone()).or(is_five), vec![1, 3, 4]),
    ] {
        let on_rows = condition(&expression, DataType::Utf8View);
        let on_texts = DictionaryCondition::on_dictionaries(on_rows, &schema(DataType::Utf8)).unwrap();
        assert!(on_texts.exists_dyn(|node| Ok(node.is::<DictionaryCondition>())).unwrap());
        let of_stream = DictionaryCondition::of_stream(&on_texts).unwrap();
        assert_eq!(kept(&on_texts, &coded).unwrap(), expected, "{expression}");
        assert_eq!(kept(&of_stream, &coded).unwrap(), expected, "{expression}");
    }
}
