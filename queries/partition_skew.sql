-- How even the stored rows are, from the system tables: fullest partition over the mean, idle fraction (the part of a
-- parallel scan that the average partition waits), effective partitions (inverse Simpson index), empty partitions.
SELECT count(*) AS partitions,
       CAST(sum(stored) AS BIGINT) AS stored_rows,
       max(stored) / avg(stored) AS max_over_mean,
       1 - avg(stored) / max(stored) AS idle_fraction,
       power(sum(stored), 2) / sum(stored * stored) AS effective_partitions,
       count(*) FILTER (WHERE stored = 0) AS empty_partitions,
       sum(portions) AS portions,
       sum(bytes) AS bytes
FROM (SELECT CAST(rows AS DOUBLE) AS stored, portions, bytes FROM sys.partition_stats)
