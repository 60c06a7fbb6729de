//! `evenkeel ddl`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::Table;
use evenkeel::simulate::{KeyOrder, Strategy};
use evenkeel::spanner::Dialect;
use evenkeel::table::{TableSpec, write_create_table};

use crate::cli::{Failure, Output};

/// Shards in front of a key of one column of time.
const SHARDS: u32 = 16;

/// Print the statements that declare a table: YQL, or those of Spanner.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel ddl events > events.sql
  evenkeel ddl events --target spanner --strategy shard-16

'evenkeel simulate splits' tells which strategy suits the rows.")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// What the statements are for: ydb, spanner (GoogleSQL) or spanner-postgres.
    #[arg(long, default_value = "ydb")]
    target: Target,

    /// How the key of Spanner is chosen, as in 'simulate splits' [default: declared; where a time leads the key swapped, or shard-16 where
    /// it is alone].
    #[arg(long, value_name = "NAME")]
    strategy: Option<Strategy>,
}

/// What statements are for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    Ydb,
    Spanner(Dialect),
}

impl std::str::FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "ydb" { Ok(Self::Ydb) } else { text.parse().map(Self::Spanner) }
    }
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let table = Table::open(&args.dir).await?;
    let spec = table.spec();
    match args.target {
        Target::Ydb if args.strategy.is_some() => Err(Failure::wrong_usage(
            "--strategy is about keys of Spanner; give --target spanner or spanner-postgres",
        )),
        Target::Ydb => out.text(&write_create_table(spec)),
        Target::Spanner(dialect) => {
            let key: Vec<KeyOrder> = spec
                .primary_key_columns()
                .map(|column| KeyOrder { column: column.name.clone(), descending: false })
                .collect();
            let strategy = args.strategy.unwrap_or_else(|| usual(spec));
            let schema = strategy.schema(spec.name(), spec.columns(), &key, dialect).ok_or_else(|| {
                Failure::wrong_usage(format!(
                    "strategy {strategy} is there to be compared with; no schema is written for it"
                ))
            })?;
            if args.strategy.is_none() && strategy != Strategy::Declared {
                out.note(&format!("a time leads the primary key, so the key is that of strategy {strategy}; --strategy takes another"));
            }
            out.text(&schema)
        }
    }
}

/// A key that a time does not lead.
fn usual(spec: &TableSpec) -> Strategy {
    let mut key = spec.primary_key_columns();
    match (key.next().is_some_and(|column| column.column_type.is_time()), key.next()) {
        (false, _) => Strategy::Declared,
        (true, Some(second)) if !second.column_type.is_time() => Strategy::Swapped,
        (true, _) => Strategy::Shards(SHARDS),
    }
}
