//! The step from logical plans to physical ones.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::SessionState;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use crate::query::computed_once::ComputedOnce;
use crate::query::computed_once::exec::{ComputedOnceExec, show_inputs};
use crate::query::computed_once::filters::needed_rows;
use crate::query::computed_once::rows::SharedRows;
use crate::query::walk::WalkPlan;

/// Plans statements as DataFusion does, and each query in WITH that is computed once.
#[derive(Debug)]
pub(in crate::query) struct OncePlanner;

#[async_trait]
impl QueryPlanner for OncePlanner {
    async fn create_physical_plan(
        &self,
        plan: &LogicalPlan,
        session: &dyn Session,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let queries = queries_of(plan)?;
        if queries.is_empty() {
            return DefaultPhysicalPlanner::default().create_physical_plan(plan, session).await;
        }
        let Some(state) = session.as_any().downcast_ref::<SessionState>() else {
            return internal_err!("queries in WITH are computed once only in a session of DataFusion");
        };
        // Queries that read others come first: their conditions are then known.
        let mut optimized: Vec<(String, LogicalPlan)> = Vec::with_capacity(queries.len());
        for query in queries.iter().rev() {
            let readers: Vec<&LogicalPlan> =
                std::iter::once(plan).chain(optimized.iter().map(|(_, plan)| plan)).collect();
            let needed = needed_rows(query, &readers)?;
            let needed = state.optimizer().optimize(needed, state, |_, _| {})?;
            optimized.push((query.alias.clone(), needed));
        }
        let mut planned = PlannedRows::default();
        for (alias, query) in optimized.into_iter().rev() {
            let query = planned.plan(&query, session).await?;
            planned.0.insert(alias, Arc::new(SharedRows::new(query)));
        }
        show_inputs(planned.plan(plan, session).await?)
    }
}

/// Returns the queries that are computed once, each after those that it reads.
fn queries_of(plan: &LogicalPlan) -> Result<Vec<ComputedOnce>> {
    let mut queries: Vec<ComputedOnce> = Vec::new();
    collect_queries(plan, &mut queries)?;
    Ok(queries)
}

fn collect_queries(plan: &LogicalPlan, queries: &mut Vec<ComputedOnce>) -> Result<()> {
    plan.apply_with_subqueries_dyn(|plan| {
        if let Some(place) = ComputedOnce::from_plan(plan)
            && !queries.iter().any(|query| query.alias == place.alias)
        {
            collect_queries(&place.query, queries)?;
            queries.push(place.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Rows of queries that have a plan, by the alias of their places.
#[derive(Default, Clone)]
struct PlannedRows(HashMap<String, Arc<SharedRows>>);

impl PlannedRows {
    async fn plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(self.clone())]);
        planner.create_physical_plan(plan, session).await
    }
}

#[async_trait]
impl ExtensionPlanner for PlannedRows {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        _physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(place) = node.as_any().downcast_ref::<ComputedOnce>() else { return Ok(None) };
        let Some(rows) = self.0.get(&place.alias) else {
            return internal_err!("the query {} in WITH has no plan", place.name);
        };
        let streams = session.config().target_partitions();
        Ok(Some(Arc::new(ComputedOnceExec::try_new(&place.name, Arc::clone(rows), streams)?)))
    }
}
