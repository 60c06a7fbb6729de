-- How even the stored rows are, from the system tables: fullest partition over the mean, idle fraction (the part of a
-- parallel scan that the average partition waits), effective partitions (inverse Simpson index), empty partitions.
SELECT count(*) AS partitions,
       sum(rows) AS rows,
       max(rows) AS fullest,
       max(rows) / avg(rows) AS max_over_mean,
       1 - avg(rows) / max(rows) AS idle_fraction,
       power(sum(CAST(rows AS DOUBLE)), 2) / sum(power(CAST(rows AS DOUBLE), 2)) AS effective_partitions,
       count(*) FILTER (WHERE rows = 0) AS empty_partitions,
       sum(portions) AS portions,
       sum(bytes) AS bytes
FROM sys.partition_stats
