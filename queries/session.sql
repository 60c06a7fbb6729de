\d
\set campaign 1
SELECT count(*) AS clicks FROM t
WHERE event_type = 'click' AND campaign_id = $campaign;
\x on
SELECT user_id, count(*) AS events FROM t GROUP BY user_id ORDER BY events DESC LIMIT 2;
