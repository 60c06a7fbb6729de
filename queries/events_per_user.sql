-- The users with the most events.
SELECT user_id, count(*) AS events
FROM t
GROUP BY user_id
ORDER BY events DESC, user_id
LIMIT 10
