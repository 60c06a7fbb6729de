//! Walks through plans and expressions. DataFusion's are compiled again for each closure, with code
//! for every kind of node. These call them with any closure, through `dyn`, so that they are
//! compiled once for each type of tree; they are named like DataFusion's, with `_dyn` after the
//! name.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

type Rewrite<'f, N> = &'f mut dyn FnMut(N) -> Result<Transformed<N>>;
type Visit<'f, 'n, N> = &'f mut dyn FnMut(&'n N) -> Result<TreeNodeRecursion>;

/// Walks through trees of nodes.
pub(in crate::query) trait Walk: TreeNode {
    fn transform_up_dyn(
        self,
        mut f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let f: Rewrite<'_, Self> = &mut f;
        self.transform_up(f)
    }

    fn transform_down_dyn(
        self,
        mut f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let f: Rewrite<'_, Self> = &mut f;
        self.transform_down(f)
    }

    fn map_children_dyn(
        self,
        mut f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let f: Rewrite<'_, Self> = &mut f;
        self.map_children(f)
    }

    fn apply_dyn<'n>(
        &'n self,
        mut f: impl FnMut(&'n Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let f: Visit<'_, 'n, Self> = &mut f;
        self.apply(f)
    }

    fn apply_children_dyn<'n>(
        &'n self,
        mut f: impl FnMut(&'n Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let f: Visit<'_, 'n, Self> = &mut f;
        self.apply_children(f)
    }

    fn exists_dyn(&self, mut f: impl FnMut(&Self) -> Result<bool>) -> Result<bool> {
        let f: &mut dyn FnMut(&Self) -> Result<bool> = &mut f;
        self.exists(f)
    }
}

impl<N: TreeNode> Walk for N {}

/// Walks through plans that also enter the plans of subqueries, and through the expressions of a
/// node.
pub(in crate::query) trait WalkPlan: Sized {
    fn transform_up_with_subqueries_dyn(
        self,
        f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>>;
    fn transform_down_with_subqueries_dyn(
        self,
        f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>>;
    fn apply_with_subqueries_dyn(
        &self,
        f: impl FnMut(&Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion>;
    fn map_expressions_dyn(
        self,
        f: impl FnMut(Expr) -> Result<Transformed<Expr>>,
    ) -> Result<Transformed<Self>>;
}

impl WalkPlan for LogicalPlan {
    fn transform_up_with_subqueries_dyn(
        self,
        mut f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let f: Rewrite<'_, Self> = &mut f;
        self.transform_up_with_subqueries(f)
    }

    fn transform_down_with_subqueries_dyn(
        self,
        mut f: impl FnMut(Self) -> Result<Transformed<Self>>,
    ) -> Result<Transformed<Self>> {
        let f: Rewrite<'_, Self> = &mut f;
        self.transform_down_with_subqueries(f)
    }

    fn apply_with_subqueries_dyn(
        &self,
        mut f: impl FnMut(&Self) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let f: &mut dyn FnMut(&Self) -> Result<TreeNodeRecursion> = &mut f;
        self.apply_with_subqueries(f)
    }

    fn map_expressions_dyn(
        self,
        mut f: impl FnMut(Expr) -> Result<Transformed<Expr>>,
    ) -> Result<Transformed<Self>> {
        let f: Rewrite<'_, Expr> = &mut f;
        self.map_expressions(f)
    }
}
