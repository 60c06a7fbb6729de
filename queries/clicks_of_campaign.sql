-- Clicks of one campaign in the last hour.
-- Parameters: campaign; now, by default the newest event in the table.
SELECT count(*) AS clicks
FROM t
WHERE campaign_id = $campaign
  AND event_type = 'click'
  AND event_timestamp > $now - INTERVAL '1 hour'
  AND event_timestamp <= $now
