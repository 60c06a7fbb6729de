//! First columns of keys, as text.

use crate::simulate::design::row_plan::RowPlan;
use crate::simulate::error::SimulateError;
use crate::simulate::splits::{DatabaseOutcome, HeatMap, SplitFigures};

/// Formats as text the first column of the start keys of splits and heat-map ranges.
pub(crate) fn name_keys(plans: &[&RowPlan], outcome: &mut DatabaseOutcome) -> Result<(), SimulateError> {
    let plan_of = |space: usize| plans.iter().find(|plan| plan.space == space);
    for (number, space) in outcome.spaces.iter_mut().enumerate() {
        let Some(plan) = plan_of(number) else { continue };
        let begun: Vec<&mut SplitFigures> =
            space.splits.iter_mut().filter(|split| !split.start.bytes.is_empty()).collect();
        let texts = plan.encoder.first_column(begun.iter().map(|split| split.start.first_column()))?;
        begun.into_iter().zip(texts).for_each(|(split, text)| split.starts_at = Some(text));
    }
    let HeatMap { spaces, starts, starts_at, .. } = &mut outcome.heat;
    for (space, start) in spaces.iter().zip(starts) {
        let key = || std::iter::once(start.first_column());
        let text = plan_of(*space).map(|plan| plan.encoder.first_column(key())).transpose()?;
        starts_at.push(text.unwrap_or_default().pop().unwrap_or_default());
    }
    Ok(())
}
