//! Window frames over columns to which DataFusion cannot add an offset.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use datafusion::optimizer::AnalyzerRule;

use crate::query::analysis::expression_schema::rewrite_expressions;
use crate::query::walk::WalkPlan;

/// Allows window functions to be ordered by columns of bytes, UUIDs and durations.
///
/// If no frame is given, SQL uses RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW. DataFusion 55
/// refuses RANGE over a type to which it cannot add an offset, even if the frame has no offset. A
/// frame without offsets has the same rows in GROUPS, which requires nothing of the type. The rule
/// must run before types are coerced.
#[derive(Debug)]
pub(in crate::query) struct FramesWithoutOffsets;

impl AnalyzerRule for FramesWithoutOffsets {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries_dyn(|plan| {
            let LogicalPlan::Window(window) = &plan else { return Ok(Transformed::no(plan)) };
            let schema = std::sync::Arc::clone(window.input.schema());
            rewrite_expressions(plan, |expr| match expr {
                Expr::WindowFunction(function) => in_groups(function, &schema),
                other => Ok(Transformed::no(other)),
            })
        })
        .map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "FramesWithoutOffsets"
    }
}

fn in_groups(
    mut function: Box<WindowFunction>,
    schema: &datafusion::common::DFSchema,
) -> Result<Transformed<Expr>> {
    let params = &mut function.params;
    let frame = &params.window_frame;
    let has_no_offset = [&frame.start_bound, &frame.end_bound].into_iter().all(is_no_offset);
    let mut takes_no_offset = false;
    for sort in &params.order_by {
        takes_no_offset |= cannot_be_added_to(&sort.expr.get_type(schema)?);
    }
    let change = frame.units == WindowFrameUnits::Range && has_no_offset && takes_no_offset;
    if change {
        params.window_frame = WindowFrame::new_bounds(
            WindowFrameUnits::Groups,
            frame.start_bound.clone(),
            frame.end_bound.clone(),
        );
    }
    Ok(Transformed::new_transformed(Expr::WindowFunction(function), change))
}

fn is_no_offset(bound: &WindowFrameBound) -> bool {
    match bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(offset) | WindowFrameBound::Following(offset) => {
            ScalarValue::is_null(offset)
        }
    }
}

fn cannot_be_added_to(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
            | DataType::FixedSizeBinary(_)
            | DataType::Duration(_)
            | DataType::Interval(_)
    )
}
