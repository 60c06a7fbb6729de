//! The schema that a simulation recommends.

use crate::schema::Dialect;
use crate::simulate::declaration::Declaration;
use crate::simulate::declared::{Declared, Parent};
use crate::simulate::result::Simulation;
use crate::simulate::strategy::{Strategy, StrategyName};
use evenkeel_model::table::Column;

/// Statements that declare the recommended schema.
#[derive(Debug)]
pub struct RecommendedSchema<'a> {
    /// The simulation that recommends it.
    pub simulation: &'a Simulation,
    /// Dialect of the statements.
    pub dialect: Dialect,
}

impl RecommendedSchema<'_> {
    /// Returns the statements for a table, or a comment with the reason why no schema is written.
    #[must_use]
    pub fn table(&self, name: &str, columns: &[Column], declared: &Declared) -> String {
        // A single requested strategy needs no recommendation.
        let recommended = match self.simulation.strategies.as_slice() {
            [only] => Some(only.strategy),
            _ => self.simulation.recommended,
        };
        let Some(strategy) = recommended.and_then(StrategyName::table) else {
            return "-- no strategy is recommended, so there is no schema; --strategies NAME prints that of one \
                strategy\n"
                .to_owned();
        };
        let declaration = Declaration {
            name,
            columns,
            key: &declared.primary_key,
            indexes: &declared.indexes,
            parent: declared.parent.as_ref(),
            nullable: &self.simulation.nullable,
            declared: Some(declared),
            ttl: None,
        };
        let statements = declaration.statements(strategy, self.dialect);
        statements.unwrap_or_else(|| format!("-- no schema is written for strategy {strategy}\n"))
    }

    /// Returns the statements for a parent and its children.
    #[must_use]
    pub fn tree(&self, parent: (&str, &[Column], &Declared), child: (&str, &[Column], &Declared)) -> String {
        let (parent_name, parent_columns, parent) = parent;
        let (name, columns, child) = child;
        let Some(recommended) = self.simulation.recommended else {
            return "-- neither is recommended, so there is no schema\n".to_owned();
        };
        let together = recommended == StrategyName::Interleaved;
        let declaration = |name, columns, key| Declaration {
            name,
            columns,
            key,
            indexes: &[],
            parent: None,
            nullable: &self.simulation.nullable,
            declared: None,
            ttl: None,
        };
        let mut parent_table = declaration(parent_name, parent_columns, parent.primary_key.as_slice());
        parent_table.declared = Some(parent);
        let in_parent = Parent { name: parent_name.to_owned(), key: parent.primary_key.clone() };
        let mut child_table = declaration(name, columns, child.primary_key.as_slice());
        child_table.declared = Some(child);
        child_table.parent = together.then_some(&in_parent);
        let statements =
            [&parent_table, &child_table].map(|table| table.statements(Strategy::Declared, self.dialect));
        statements.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }
}
