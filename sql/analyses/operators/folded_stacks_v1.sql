-- Folded stacks for flame graphs: call chains on the host with their self time on the host and on the device.
--
-- Python frames, nn.Modules, annotations, operators and runtime calls form one chain, whether or not the trace
-- recorded call stacks. Times are self times: over all rows, host_ns sums to all time in host events, and device_ns to
-- the duration of all device operations. Calls with hidden names are attributed to their callers. A chain is also
-- attributed to its caller if it takes less than min_pct of both host time and device time, including its descendants.
-- Device operations belong to the chain that launched them; their durations are summed even if they ran concurrently.
--
-- Title: Flame graph
-- Shown: rank, device_ns, host_ns, call_count, stack
-- Also: flame graph, flamegraph
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps, include_last_profiler_step; calls belong to the step in which they start
-- Reference: torch.profiler export_stacks; Brendan Gregg's folded format
-- Needs: host operators; with_stack for Python frames
-- Report: chart; at most 16 ranks
CREATE OR REPLACE MACRO folded_stacks_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Kinds of names to show: frame, module, annotation, step, operator, runtime; NULL means all.
    kinds VARCHAR[] := NULL,
    -- Names to hide, as a regular expression; NULL: none.
    hidden VARCHAR := NULL,
    -- Minimum share of the rank's host time or device time, including descendants, for a call chain to get its own row
    -- [%]; 0: all.
    min_pct DOUBLE := 0.1
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   stack         VARCHAR         Names separated by semicolons, outermost first; NULL for time outside shown events, and for small outermost chains.
--   depth         BIGINT [1]      Number of names in the stack.
--   call_count    BIGINT [count]  Number of calls of the last name, excluding merged small chains.
--   host_ns       BIGINT [ns]     Host self time.
--   device_count  BIGINT [count]  Number of device operations launched by the chain itself.
--   device_ns     BIGINT [ns]     Total duration of these operations.
WITH
    costs AS MATERIALIZED (
        SELECT c.* FROM lib.costs_by_path(runs, ranks, steps, include_last_profiler_step, kinds, hidden) AS c
    ),
    totals AS (
        SELECT c.run, c.rank, sum(c.host_ns) AS host_ns, sum(c.device_ns) AS device_ns
        FROM costs AS c
        GROUP BY c.run, c.rank
    ),
    chains AS MATERIALIZED (
        SELECT
            c.run, c.rank, c.beginnings[-1] AS chain, c.host_ns, c.device_ns,
            unnest(c.beginnings) AS beginning, generate_subscripts(c.beginnings, 1) AS depth
        FROM costs AS c
    ),
    sizes AS (
        SELECT h.run, h.rank, h.beginning, sum(h.host_ns) AS host_ns, sum(h.device_ns) AS device_ns
        FROM chains AS h
        GROUP BY h.run, h.rank, h.beginning
    ),
    kept AS (
        SELECT z.run, z.rank, z.beginning
        FROM sizes AS z
        JOIN totals AS t ON t.run = z.run AND t.rank = z.rank
        WHERE
            min_pct <= 0
            OR (z.host_ns > 0 AND 100::DOUBLE * z.host_ns >= min_pct * t.host_ns)
            OR (z.device_ns > 0 AND 100::DOUBLE * z.device_ns >= min_pct * t.device_ns)
    ),
    -- Depth to which each chain is shown.
    cut AS (
        SELECT h.run, h.rank, h.chain, max(h.depth) AS depth
        FROM chains AS h
        JOIN kept AS k ON k.run = h.run AND k.rank = h.rank AND k.beginning = h.beginning
        GROUP BY h.run, h.rank, h.chain
    ),
    rows AS MATERIALIZED (
        SELECT
            c.run, c.rank, c.beginnings[u.depth] AS beginning, any_value(u.depth) AS depth, any_value(c.path[:u.depth]) AS path,
            coalesce(sum(c.call_count) FILTER (u.depth = len(c.path)), 0)::BIGINT AS call_count,
            sum(c.host_ns)::BIGINT AS host_ns, sum(c.device_count)::BIGINT AS device_count, sum(c.device_ns)::BIGINT AS device_ns
        FROM costs AS c
        LEFT JOIN cut AS u ON u.run = c.run AND u.rank = c.rank AND u.chain = c.beginnings[-1]
        GROUP BY c.run, c.rank, c.beginnings[u.depth]
    ),
    named AS (
        SELECT d.beginning, unnest(d.path) AS name_hash, generate_subscripts(d.path, 1) AS position
        FROM (SELECT r.beginning, any_value(r.path) AS path FROM rows AS r GROUP BY r.beginning) AS d
    ),
    texts AS (
        -- A semicolon inside a name would start a new level.
        SELECT d.beginning, string_agg(replace(n.name, ';', ':'), ';' ORDER BY d.position) AS stack
        FROM named AS d
        JOIN lib.path_names(runs, ranks) AS n ON n.name_hash = d.name_hash
        GROUP BY d.beginning
    )
SELECT r.run, r.rank, t.stack, coalesce(r.depth, 0) AS depth, r.call_count, r.host_ns, r.device_count, r.device_ns
FROM rows AS r
LEFT JOIN texts AS t ON t.beginning = r.beginning
WHERE r.host_ns <> 0 OR r.device_count > 0 OR r.call_count > 0
ORDER BY r.run, r.rank, t.stack
