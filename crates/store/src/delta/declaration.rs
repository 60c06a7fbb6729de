//! Declaration of a table in the terms of the Delta protocol.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::delta::action::{Format, MetaData, Protocol};
use crate::delta::names::APPLICATION;
use crate::delta::schema::Schema;
use evenkeel_model::table::{Column, TableSpec};

/// Name of the protocol feature for timestamps without a time zone.
const TIMES_WITHOUT_ZONE: &str = "timestampNtz";

/// First versions of the protocol with named features: for readers and for writers.
const READER_WITH_FEATURES: u32 = 3;
const WRITER_WITH_FEATURES: u32 = 7;

/// Time for which Delta tools keep files that the newest version does not name: forever, as far as
/// the setting can express it. It stops tools that vacuum without checking the features.
const RETENTION: &str = "interval 36500 days";

/// Setting that lists the columns whose statistics readers may use, and the setting for no such
/// columns.
const STATISTICS_OF: &str = "delta.dataSkippingStatsColumns";
const NO_STATISTICS: (&str, &str) = ("delta.dataSkippingNumIndexedCols", "0");

/// Returns the features that readers and writers must support: timestamps without a time zone, if
/// the table has or ever had any; and for writers a feature that no tool supports.
pub(super) fn protocol(columns: &[Column], before: Option<&Protocol>) -> Protocol {
    let had_times = before.is_some_and(|before| before.min_reader_version >= READER_WITH_FEATURES);
    let times = had_times || columns.iter().any(|column| column.column_type.is_timestamp());
    let features = |features: &[&str]| Some(features.iter().map(|feature| (*feature).to_owned()).collect());
    match times {
        true => Protocol {
            min_reader_version: READER_WITH_FEATURES,
            min_writer_version: WRITER_WITH_FEATURES,
            reader_features: features(&[TIMES_WITHOUT_ZONE]),
            writer_features: features(&[TIMES_WITHOUT_ZONE, APPLICATION]),
        },
        false => Protocol {
            min_reader_version: 1,
            min_writer_version: WRITER_WITH_FEATURES,
            reader_features: None,
            writer_features: features(&[APPLICATION]),
        },
    }
}

/// Returns the columns whose statistics a version publishes.
pub(super) fn published_columns(metadata: &MetaData) -> Vec<String> {
    let published = metadata.configuration.get(STATISTICS_OF).cloned().flatten().unwrap_or_default();
    published.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Builds the metadata of the table; the id and the creation time of the version `before` stay.
/// Readers may use the statistics of the published columns only.
pub(super) fn metadata(
    spec: &TableSpec,
    columns: &[Column],
    published: &[String],
    before: Option<&MetaData>,
    millis: i64,
) -> Result<MetaData, serde_json::Error> {
    let definition = spec.definition();
    let statistics = match published {
        [] => (NO_STATISTICS.0, NO_STATISTICS.1.to_owned()),
        published => (STATISTICS_OF, published.join(",")),
    };
    let configuration = [
        statistics,
        ("delta.deletedFileRetentionDuration", RETENTION.to_owned()),
        // A tool that writes a checkpoint would treat the commits before it as superfluous.
        ("delta.enableExpiredLogCleanup", false.to_string()),
        ("evenkeel.partitionKey", serde_json::json!(definition.partition_key).to_string()),
        ("evenkeel.partitions", definition.partitions.to_string()),
        ("evenkeel.placement", definition.placement.to_string()),
        ("evenkeel.primaryKey", serde_json::json!(definition.primary_key).to_string()),
    ];
    let schema = serde_json::to_string(&Schema::from_columns(columns))?;
    Ok(MetaData {
        id: before.map_or_else(|| Uuid::new_v4().to_string(), |before| before.id.clone()),
        name: Some(definition.name.clone()),
        format: Format { provider: "parquet".to_owned(), options: BTreeMap::new() },
        schema_string: schema,
        partition_columns: Vec::new(),
        configuration: configuration.map(|(key, value)| (key.to_owned(), Some(value))).into(),
        created_time: before.map_or(Some(millis), |before| before.created_time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenkeel_model::table::ColumnType;

    #[test]
    fn readers_need_to_know_times_once_there_were_any_and_writers_always_more() {
        let plain = [Column::required("k", ColumnType::Int64), Column::nullable("d", ColumnType::Date)];
        let times = [Column::nullable("at", ColumnType::Datetime)];
        let first = protocol(&plain, None);
        assert_eq!(
            (first.min_reader_version, first.min_writer_version, &first.reader_features),
            (1, 7, &None)
        );
        assert_eq!(first.writer_features, Some(vec!["evenkeel".to_owned()]));
        let second = protocol(&times, Some(&first));
        assert_eq!((second.min_reader_version, second.min_writer_version), (3, 7));
        assert_eq!(second.reader_features, Some(vec!["timestampNtz".to_owned()]));
        assert_eq!(second.writer_features, Some(vec!["timestampNtz".to_owned(), "evenkeel".to_owned()]));
        assert_eq!(protocol(&plain, Some(&second)), second, "earlier versions are still read");
    }
}
