//! The step from logical plans to physical ones.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchemaRef, Result, internal_err};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{
    Expr, Extension, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, ExtensionPlanner, PhysicalPlanner};

use crate::query::computed_once::exec::{ComputedOnceExec, show_inputs};
use crate::query::computed_once::node::ComputedOnce;
use crate::query::computed_once::rows::SharedRows;

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
        let mut planned = Planned::default();
        for query in queries {
            let input = planned.plan(&query.input, session).await?;
            planned.0.insert(query.alias, Arc::new(SharedRows::of(input)));
        }
        show_inputs(planned.plan(plan, session).await?)
    }
}

/// Returns the queries that are computed once, those that others read first.
fn queries_of(plan: &LogicalPlan) -> Result<Vec<ComputedOnce>> {
    let mut queries: Vec<ComputedOnce> = Vec::new();
    collect_queries(plan, &mut queries)?;
    Ok(queries)
}

fn collect_queries(plan: &LogicalPlan, queries: &mut Vec<ComputedOnce>) -> Result<()> {
    plan.apply_with_subqueries(|plan| {
        let Some(copy) = ComputedOnce::of(plan) else { return Ok(TreeNodeRecursion::Continue) };
        if !queries.iter().any(|query| query.alias == copy.alias) {
            collect_queries(&copy.input, queries)?;
            queries.push(copy.clone());
        }
        Ok(TreeNodeRecursion::Jump)
    })?;
    Ok(())
}

/// Rows of queries that have a plan, by the alias of their copies.
#[derive(Default, Clone)]
struct Planned(HashMap<String, Arc<SharedRows>>);

impl Planned {
    async fn plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let without_inputs = plan.clone().transform_down_with_subqueries(|plan| {
            let Some(copy) = ComputedOnce::of(&plan) else { return Ok(Transformed::no(plan)) };
            let reference = Reference {
                name: copy.name.clone(),
                alias: copy.alias.clone(),
                schema: Arc::clone(plan.schema()),
            };
            let node = Arc::new(reference);
            Ok(Transformed::new(LogicalPlan::Extension(Extension { node }), true, TreeNodeRecursion::Jump))
        })?;
        DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(self.clone())])
            .create_physical_plan(&without_inputs.data, session)
            .await
    }
}

#[async_trait]
impl ExtensionPlanner for Planned {
    async fn plan_extension(
        &self,
        _planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _logical_inputs: &[&LogicalPlan],
        _physical_inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        _context: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(reference) = node.as_any().downcast_ref::<Reference>() else { return Ok(None) };
        let Some(rows) = self.0.get(&reference.alias) else {
            return internal_err!("the query {} in WITH has no plan", reference.name);
        };
        let streams = session.config().target_partitions();
        Ok(Some(Arc::new(ComputedOnceExec::try_new(&reference.name, Arc::clone(rows), streams)?)))
    }
}

/// A copy of a query that has a plan of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reference {
    name: String,
    alias: String,
    schema: DFSchemaRef,
}

impl PartialOrd for Reference {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.alias.partial_cmp(&other.alias)
    }
}

impl UserDefinedLogicalNodeCore for Reference {
    fn name(&self) -> &'static str {
        "ComputedOnce"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        Vec::new()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "ComputedOnce: {}", self.name)
    }

    fn with_exprs_and_inputs(&self, _expressions: Vec<Expr>, _inputs: Vec<LogicalPlan>) -> Result<Self> {
        Ok(self.clone())
    }
}
