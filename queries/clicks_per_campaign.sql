-- Clicks of every campaign in the last hour, the most clicked first.
-- Parameter: now, by default the newest event in the table.
SELECT campaign_id, count(*) AS clicks
FROM t
WHERE event_type = 'click'
  AND event_timestamp > $now - INTERVAL '1 hour'
  AND event_timestamp <= $now
GROUP BY campaign_id
ORDER BY clicks DESC, campaign_id
LIMIT 10
