//! Expressions that cannot fail, whatever the rows.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable};

use crate::query::optimization::guards::is_comparison;
use crate::query::walk::Walk;

/// Whether the value of an expression depends on nothing but the columns of a row, and can be
/// computed for every row: comparisons of columns and values, and casts that lose nothing. Others
/// must not be evaluated on rows that a join would have removed.
pub(super) fn is_certain(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    let mut is_certain = true;
    expr.apply_dyn(|node| {
        is_certain = match node {
            Expr::BinaryExpr(binary) => is_comparison(binary.op),
            Expr::Cast(cast) => widens(&cast.expr.get_type(schema)?, cast.field.data_type()),
            Expr::Column(_)
            | Expr::Literal(..)
            | Expr::Alias(_)
            | Expr::Between(_)
            | Expr::InList(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsNotNull(_)
            | Expr::IsNotTrue(_)
            | Expr::IsNull(_)
            | Expr::IsTrue(_)
            | Expr::Like(_)
            | Expr::Not(_) => true,
            _ => false,
        };
        Ok(if is_certain { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    })?;
    Ok(is_certain)
}

/// Whether a cast keeps every value.
fn widens(from: &DataType, to: &DataType) -> bool {
    let is_text =
        |data_type: &DataType| matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let bits = |data_type: &DataType| data_type.primitive_width().unwrap_or(0);
    let grows = bits(from) < bits(to);
    from == to
        || (is_text(from) && is_text(to))
        || (from.is_signed_integer() && to.is_signed_integer() && grows)
        || (from.is_unsigned_integer() && to.is_integer() && grows)
}
