//! `evenkeel spanner ddl`.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use clap::Args as ClapArgs;
use evenkeel::query::Params;
use evenkeel::sink::{OutputFormat, PartFile};
use evenkeel::source::{Export, InputOptions, InputPath, OnUnreadable};
use evenkeel::spanner::schema::Dialect;
use evenkeel::spanner::simulate::splits::ModelParameters;
use evenkeel::spanner::simulate::{
    Declaration, KeyOrder, SimulateOptions, Simulation, Strategy, StrategyName,
};
use evenkeel::sql::quoted_name;
use evenkeel::table::{TableSpec, only_time_column};
use evenkeel::{Table, report};

use crate::cli::query::write;
use crate::cli::spanner::replay::in_background;
use crate::cli::workplace::Workplace;
use crate::cli::{Failure, Output};

/// Number of shards in front of a key of one time column.
const SHARDS: u32 = 16;

/// Print the statements that declare a table in Spanner, with a key that suits its rows.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  evenkeel spanner ddl events
  evenkeel spanner ddl events --target spanner-postgres --strategy shard-16

Without --strategy, the rows of the table are replayed through the model of 'evenkeel spanner simulate', \
in the order of their times, and the statements are those of the strategy that it recommends. To make splits divide \
even with few rows, the rows are scaled up to sixteen full splits.")]
pub(crate) struct Args {
    /// Directory of the table.
    dir: PathBuf,

    /// Dialect: spanner (GoogleSQL) or spanner-postgres.
    #[arg(long, default_value = "spanner")]
    target: Dialect,

    /// Strategy for the key in Spanner, as in 'spanner simulate' [default: the one recommended for
    /// the rows of the table].
    #[arg(long, value_name = "NAME")]
    strategy: Option<Strategy>,

    /// Time column that gives the arrival of rows [default: the only column of points in time, else
    /// the only date column, else the key's].
    #[arg(long, value_name = "COLUMN", conflicts_with = "strategy")]
    time: Option<String>,
}

pub(crate) async fn run(args: Args, out: &mut Output) -> Result<(), Failure> {
    let table = Table::open(&args.dir).await?;
    let spec = table.spec();
    let key: Vec<KeyOrder> = spec
        .primary_key_columns()
        .map(|column| KeyOrder { column: column.name.clone(), descending: false })
        .collect();
    let strategy = match args.strategy {
        Some(strategy) => strategy,
        None => suited(&table, &key, args.time.as_deref(), out).await?,
    };
    let declaration = Declaration {
        name: spec.name(),
        columns: spec.columns(),
        key: &key,
        indexes: &[],
        parent: None,
        nullable: &[],
        declared: None,
        ttl: spec.definition().ttl.as_ref(),
    };
    let schema = declaration.statements(strategy, args.target).ok_or_else(|| {
        Failure::wrong_usage(match strategy {
            Strategy::Swapped => "strategy swapped needs a key of two columns".to_owned(),
            _ => format!("strategy {strategy} is only for comparison; no schema is written for it"),
        })
    })?;
    out.text(&schema)
}

/// Returns the strategy that suits the rows of a table.
async fn suited(
    table: &Table,
    key: &[KeyOrder],
    time: Option<&str>,
    out: &Output,
) -> Result<Strategy, Failure> {
    let spec = table.spec();
    let time = match time {
        Some(name) => match spec.columns().iter().find(|column| column.name == name) {
            Some(column) if column.column_type.is_time() => Some(column),
            Some(_) => {
                return Err(Failure::wrong_usage(format!(
                    "column '{name}' is not a point in time or a date"
                )));
            }
            None => return Err(Failure::wrong_usage(format!("there is no column '{name}'"))),
        },
        None => {
            let only = only_time_column(spec.columns()).and_then(|position| spec.columns().get(position));
            // If there are several time columns, the key may determine which one counts.
            only.or_else(|| spec.primary_key_columns().find(|column| column.column_type.is_time()))
        }
    };
    let by_types = |reason: &str| {
        let strategy = by_type(spec);
        out.note(&format!(
            "{reason}, so the key is chosen by its types: strategy {strategy}; --strategy sets another"
        ));
        strategy
    };
    if table.snapshot().portion_count() == 0 {
        return Ok(by_types("the table has no rows"));
    }
    let Some(time) = time else {
        let times = spec.columns().iter().filter(|column| column.column_type.is_time());
        let times: Vec<&str> = times.map(|column| column.name.as_str()).collect();
        return Ok(by_types(&match times.as_slice() {
            [] => "no column says when rows arrived".to_owned(),
            times => format!("{} may say when rows arrived; choose one with --time", times.join(" and ")),
        }));
    };
    let simulation = simulated(table, key, &time.name, out).await?;
    simulation.notes.iter().for_each(|note| out.note(note.text()));
    if let Some(reason) = &simulation.unsure {
        return Ok(by_types(reason));
    }
    let recommended: Option<Strategy> = simulation.recommended.and_then(StrategyName::table);
    let Some(strategy) = recommended else {
        out.note(
            "no strategy cools the hot splits of these rows, so the key of the table is kept; 'evenkeel \
                spanner simulate' shows why",
        );
        return Ok(Strategy::Declared);
    };
    out.note(&format!(
        "by the rows of the table, each standing for {}, in a model of Spanner's splits: strategy \
            {strategy}, {}; --strategy sets another",
        report::count(simulation.parameters.scale.round() as u64),
        strategy.words()
    ));
    Ok(strategy)
}

/// Replays the rows of a table in the order of their times, under the strategies for which a schema
/// can be written.
async fn simulated(table: &Table, key: &[KeyOrder], time: &str, out: &Output) -> Result<Simulation, Failure> {
    let spec = table.spec();
    let workplace = Workplace::open(None)?;
    let path = workplace.path().join("rows.parquet");
    let sql = format!("SELECT * FROM t ORDER BY {} NULLS FIRST", quoted_name(time));
    let result = table.session()?.query(&sql, &Params::default()).await?;
    let file = PartFile::create(&path)?;
    write(result, BufWriter::new(file.file()), OutputFormat::Parquet).await?.flush()?;
    file.publish()?;
    let types = spec.columns().iter().map(|column| (column.name.clone(), column.column_type)).collect();
    let opening = tokio::task::spawn_blocking(move || {
        Export::open(&[InputPath::File(path)], InputOptions::default(), &types)
    });
    let mut strategies = vec![Strategy::Declared];
    if key.len() > 1 {
        strategies.push(Strategy::Swapped);
    }
    strategies.extend([Strategy::Shards(SHARDS), Strategy::BitReversed]);
    let options = SimulateOptions {
        primary_key: key.to_vec(),
        partition_key: Vec::new(),
        indexes: Vec::new(),
        strategies,
        judged: None,
        shard_columns: Vec::new(),
        parameters: ModelParameters::default(),
        find_scale: true,
        rate: None,
        time: Some(time.to_owned()),
        owner: None,
        presplits: 0,
        transaction_rows: 100,
        on_unreadable: OnUnreadable::Fail,
    };
    in_background(opening.await??, None, options, out).await
}

/// Chooses a strategy without looking at rows: the key must not begin with a time.
fn by_type(spec: &TableSpec) -> Strategy {
    let mut key = spec.primary_key_columns();
    match (key.next().is_some_and(|column| column.column_type.is_time()), key.next()) {
        (false, _) => Strategy::Declared,
        (true, Some(second)) if !second.column_type.is_time() => Strategy::Swapped,
        (true, _) => Strategy::Shards(SHARDS),
    }
}

#[cfg(test)]
mod tests {
    use evenkeel::table::{Column, ColumnType, PlacementFunction, TableDefinition};
    use evenkeel::units::PartitionCount;

    use super::*;

    /// Returns the strategy for a table whose key has columns of these types.
    fn strategy(key: &[ColumnType]) -> Strategy {
        let names: Vec<String> = (0..key.len()).map(|number| format!("k{number}")).collect();
        let column = |(name, column_type): (&String, &ColumnType)| Column::required(name, *column_type);
        let definition = TableDefinition {
            name: "t".to_owned(),
            columns: names.iter().zip(key).map(column).collect(),
            primary_key: names.clone(),
            partition_key: names[..1].to_vec(),
            partitions: PartitionCount::new(4).unwrap(),
            placement: PlacementFunction::Ydb,
            ttl: None,
        };
        by_type(&TableSpec::new(definition).unwrap())
    }

    #[test]
    fn a_key_that_begins_with_a_time_gets_another_column_or_a_shard_in_front() {
        use ColumnType::{Date, Timestamp, Uint64, Utf8};
        assert_eq!(strategy(&[Utf8]), Strategy::Declared);
        assert_eq!(strategy(&[Uint64, Timestamp]), Strategy::Declared);
        assert_eq!(strategy(&[Timestamp, Uint64]), Strategy::Swapped);
        assert_eq!(strategy(&[Timestamp]), Strategy::Shards(SHARDS));
        assert_eq!(strategy(&[Date, Timestamp, Utf8]), Strategy::Shards(SHARDS));
    }
}
