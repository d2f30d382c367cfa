-- Expert-parallel exchanges of each rank, with their exposed time and the part of it spent waiting for another rank.
--
-- The wait of a call is how much longer it takes than on the fastest rank.
CREATE OR REPLACE MACRO lib._advice_experts(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process.
--   subject      VARCHAR         Library and role of the calls with the longest total exposed time.
--   event_count  BIGINT [count]  Number of kernels.
--   affected_ns  BIGINT [ns]     Total duration of these kernels.
--   exposed_ns   BIGINT [ns]     Part of affected_ns during which the rank does not compute.
--   wait_ns      BIGINT [ns]     Part of exposed_ns spent waiting; NULL for a single rank, or if calls cannot be matched.
--   event_id     BIGINT          event_id of the call with the longest exposed time.
WITH
    _calls AS MATERIALIZED (
        SELECT c.*, c.dur - c.overlapped_ns AS exposed_ns
        FROM lib.expert_calls(runs, ranks, steps, include_last_profiler_step) AS c
    ),
    _roles AS (
        SELECT c.run, c.rank, c.comm_library || ' ' || c.comm_role AS subject, sum(c.exposed_ns) AS exposed_ns
        FROM _calls AS c
        GROUP BY ALL
    ),
    _subjects AS (
        SELECT r.run, r.rank, arg_max(r.subject, (r.exposed_ns, r.subject)) AS subject FROM _roles AS r GROUP BY r.run, r.rank
    )
SELECT
    c.run AS run, c.rank AS rank, any_value(s.subject) AS subject, count(*) AS event_count, sum(c.dur)::BIGINT AS affected_ns,
    sum(c.exposed_ns)::BIGINT AS exposed_ns,
    CASE WHEN count(c.fastest_ns) = count(*) THEN sum(least(c.dur - c.fastest_ns, c.exposed_ns))::BIGINT END AS wait_ns,
    arg_max(c.event_id, (c.exposed_ns, -c.event_id)) AS event_id
FROM _calls AS c
JOIN _subjects AS s ON s.run = c.run AND s.rank = c.rank
GROUP BY c.run, c.rank
