-- The ad-events table of the YDB documentation, "Choosing keys for maximum column-oriented table performance":
-- impressions and clicks of an ad network, spread by user and time, kept in time order.
CREATE TABLE ad_events (
    user_id Utf8 NOT NULL,
    event_timestamp Timestamp NOT NULL,
    event_id Uint64,
    campaign_id Uint64 NOT NULL,
    ad_id Uint64,
    event_type Utf8,
    PRIMARY KEY (event_timestamp, user_id, campaign_id)
)
PARTITION BY HASH(user_id, event_timestamp)
WITH (
    STORE = COLUMN,
    AUTO_PARTITIONING_MIN_PARTITIONS_COUNT = 16
);
