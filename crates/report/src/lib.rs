//! Renders results as text for people. It computes nothing: every figure is also available as a
//! value.

mod answer;
mod delta;
mod evaluation;
mod explain;
mod findings;
mod grid;
mod html;
mod ingest;
mod joins;
mod keys;
mod lint;
mod maintenance;
mod migration;
mod nodes;
mod overview;
mod simulation;
mod skew;
#[cfg(test)]
mod testing;
mod values;

pub use answer::answer;
pub use delta::delta_export;
pub use evaluation::{assessment, drifts};
pub use explain::explanation;
pub use grid::{Heading, Layout, batches, count, counted, grid, percent, records};
pub use html::{html, html_fragment, html_of_tables, simulation_html};
pub use ingest::ingest;
pub use joins::{joins, table_heading};
pub use keys::keys;
pub use lint::{lint, placements};
pub use maintenance::{check, clean, compaction, repartition_plan};
pub use migration::migration;
pub use nodes::nodes;
pub use overview::{files, history, overview};
pub use simulation::simulation;
pub use skew::skew;
pub use values::{instant, key_text, rate, spark, spark_of};
