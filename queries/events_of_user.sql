-- All events of one user in time order.
-- Parameter: user.
SELECT event_timestamp, campaign_id, ad_id, event_type, event_id
FROM t
WHERE user_id = $user
ORDER BY event_timestamp, campaign_id
