-- Cost of each process group on each rank: collectives, duration, bus bandwidth, and exposed communication.
--
-- Exposed communication is communication that is not overlapped by compute. Steps and precedence (transfer before wait)
-- are as in step_accounting. Time in which a single group is exposed belongs to that group. Time in which several
-- groups are exposed is reported in a separate row (part = several groups); exposed_shared_ns is a group's part of this
-- time. Over all rows of a rank, exposed_transfer_ns, exposed_unmatched_ns and exposed_wait_ns therefore sum exactly to
-- the same columns of step_accounting. For a group, overlapped, transfer, unmatched, wait and shared time sum to
-- communication_ns. collective_count,
-- bytes and wait_ns cover the kernels launched in the steps; all other times are clipped to the steps. If a rank has a
-- device, gloo on its host exposes nothing, so the times of gloo groups are NULL. If waiting is unknown because
-- collectives are unmatched, their time is exposed_unmatched_ns.
--
-- To select a kind of parallelism, filter by kind: WHERE kind = 'dp'. The kind comes from the group's description, or
-- from a layout such as tp2,dp4 (first dimension innermost, as Megatron lays out tp, cp, dp, pp).
--
-- Title: Cost of each process group
-- Shown: rank, pg_name, communication_ns, exposed_transfer_ns, exposed_unmatched_ns, exposed_wait_ns, exposed_pct, kind, collective_count, pg_desc, part, bytes, busbw_gbps
-- Also: nccl, nccl time, communication time, all reduce, allreduce, collectives time, communication, collectives cost
-- Status: stable
-- Since: 0.1
-- Reference: msprof-analyze comparison of uncovered communication, computational_op_masking
-- Needs: GPU activity that communicates
CREATE OR REPLACE MACRO process_group_costs_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Parallel dimensions of the job and their sizes, innermost first, as in tp2,dp4; NULL: taken from the group
    -- descriptions.
    layout VARCHAR := NULL
) AS TABLE
-- Columns:
--   run                   VARCHAR         Run name.
--   rank                  INTEGER         Rank of the process.
--   part                  VARCHAR         group, or several groups for time in which more than one group is exposed.
--   pg_name               VARCHAR         Process group name; NULL if not recorded.
--   pg_desc               VARCHAR         Process group description.
--   pg_ranks              VARCHAR         Ranks of the group as JSON; NULL if unknown.
--   group_size            BIGINT [1]      Number of ranks in the group; if not recorded, number of ranks found to take part.
--   kind                  VARCHAR         Kind of parallelism: dp, tp, pp, ep, cp, mp (several kinds of model parallelism), a combination from the layout (tp+dp), or NULL.
--   kind_source           VARCHAR         layout or description; NULL if the kind is unknown.
--   collective_count      BIGINT [count]  Number of collectives.
--   sized_count           BIGINT [count]  Number of collectives with a recorded size.
--   bytes                 BIGINT [bytes]  Total message size of the collectives with a recorded size, as defined by nccl-tests; NULL if no size is recorded.
--   communication_ns      BIGINT [ns]     Time with a collective of this group running: transfer and wait, overlapped or exposed, clipped to the steps.
--   overlapped_ns         BIGINT [ns]     Part of communication_ns overlapped by compute.
--   exposed_transfer_ns   BIGINT [ns]     Part of communication_ns spent in transfers, overlapped by neither compute nor another group.
--   exposed_wait_ns       BIGINT [ns]     Part of communication_ns spent waiting for another rank, overlapped by neither compute nor another group.
--   exposed_shared_ns     BIGINT [ns]     Part of communication_ns overlapped by other groups but not by compute; the row several groups includes this time once.
--   exposed_unmatched_ns  BIGINT [ns]     Part of communication_ns in transfer or wait, which of the two is unknown, overlapped by neither compute nor another group.
--   exposed_pct           DOUBLE [%]      Exposed transfer, unmatched and wait time of the row as a share of recorded step time, as in step_accounting.
--   wait_ns               BIGINT [ns]     Sum of the waits of the group's collectives until the last rank arrives, exposed or overlapped; NULL if none is matched.
--   busbw_gbps            DOUBLE [GB/s]   Bus bandwidth: bytes times nccl-tests factors / transfer time, over collectives for which both are known.
WITH
    windows AS MATERIALIZED (
        SELECT p.run, p.rank, p.ts, p.ts + p.step_ns AS end_ts, p.recorded_ns
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
    ),
    labels AS MATERIALIZED (
        SELECT l.* FROM lib.group_labels(runs, layout) AS l WHERE lib.is_requested(ranks, l.rank)
    ),
    parts AS MATERIALIZED (
        SELECT
            NOT m.on_host OR d.rank IS NULL AS is_swept,
            m.run, m.rank, l.group_id, m.ts, m.dur, m.ts + m.dur AS end_ts, lib.waits_are_known(m.found_count, m.end_times_match, m.is_p2p, m.on_host) AS is_known, m.wait_ns, m.transfer_ns,
            lib.message_bytes(m.collective, m.elem_type, m.in_elems, m.out_elems) AS size,
            l.group_count, lib.busbw_factor(m.collective, l.group_count) * l.group_count AS factor,
            lib.is_requested(steps, m.step) AND (include_last_profiler_step OR NOT m.in_last_step) AS is_counted
        FROM matched_collectives AS m
        JOIN labels AS l
            ON l.run = m.run AND l.rank = m.rank AND l.channel_id = m.channel_id AND l.label_name IS NOT DISTINCT FROM m.pg_name
        LEFT JOIN lib.device_ranks(runs, ranks) AS d ON d.run = m.run AND d.rank = m.rank
    ),
    spans AS (
        SELECT {'run': p.run, 'rank': p.rank, 'group_id': p.group_id} AS lane, p.ts, p.dur FROM parts AS p WHERE p.is_swept
    ),
    stretches AS MATERIALIZED (
        SELECT m.lane.run AS run, m.lane.rank AS rank, m.lane.group_id AS group_id, m.ts, m.ts + m.dur AS end_ts
        FROM lib.merged_intervals('spans') AS m
    ),
    -- One number identifies run and rank: sorting by one column takes half as long.
    lanes AS MATERIALIZED (
        SELECT w.run, w.rank, row_number() OVER (ORDER BY w.run, w.rank) AS lane
        FROM (SELECT DISTINCT s.run, s.rank FROM windows AS s) AS w
    ),
    -- Layers: 1 computation, 2 transfer, 3 transfer without a match. Counters: 1 groups, 2 windows.
    pieces AS (
        SELECT s.run, s.rank, s.ts, s.end_ts, 0 AS layer, 1 AS count_1, 0 AS count_2 FROM stretches AS s
        UNION ALL
        SELECT g.run, g.rank, g.ts, g.ts + g.dur, 1, 0, 0
        FROM gpu_ops AS g
        WHERE
            g.class = 'computation' AND NOT g.is_suspect AND g.dur > 0
            AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        UNION ALL
        SELECT p.run, p.rank, p.ts + CASE WHEN p.is_known THEN p.wait_ns ELSE 0 END, p.end_ts, CASE WHEN p.is_known THEN 2 ELSE 3 END, 0, 0
        FROM parts AS p
        WHERE p.is_swept AND p.end_ts > p.ts + CASE WHEN p.is_known THEN p.wait_ns ELSE 0 END
        UNION ALL
        SELECT w.run, w.rank, w.ts, w.end_ts, 0, 0, 1 FROM windows AS w
    ),
    lane_pieces AS MATERIALIZED (
        SELECT l.lane, p.* EXCLUDE (run, rank) FROM pieces AS p JOIN lanes AS l ON l.run = p.run AND l.rank = p.rank
    ),
    told AS (
        SELECT
            s.lane, s.ts AS at_ts, s.layer, s.count_1 AS open_groups,
            -- Time inside two windows counts twice, as it does in overlapping steps.
            s.dur::HUGEINT * s.count_2 AS ns
        FROM lib.counted_segments('lane_pieces') AS s
    ),
    exposed AS MATERIALIZED (
        SELECT
            t.lane, t.at_ts, t.open_groups,
            t.ns AS all_ns,
            CASE WHEN t.layer = 1 THEN t.ns ELSE 0 END AS overlapped_ns,
            CASE WHEN t.layer = 2 THEN t.ns ELSE 0 END AS transfer_ns,
            CASE WHEN t.layer = 3 THEN t.ns ELSE 0 END AS unmatched_ns,
            CASE WHEN t.layer = 0 THEN t.ns ELSE 0 END AS wait_ns
        FROM told AS t
    ),
    -- Prefix sums from the start of the trace: the time in an interval is the value at its end minus the value at its
    -- start.
    marks AS (
        SELECT
            e.lane, e.at_ts,
            sum(e.all_ns) OVER earlier AS all_ns,
            sum(e.overlapped_ns) OVER earlier AS overlapped_ns,
            sum(CASE WHEN e.open_groups = 1 THEN e.transfer_ns ELSE 0 END) OVER earlier AS transfer_ns,
            sum(CASE WHEN e.open_groups = 1 THEN e.unmatched_ns ELSE 0 END) OVER earlier AS unmatched_ns,
            sum(CASE WHEN e.open_groups = 1 THEN e.wait_ns ELSE 0 END) OVER earlier AS wait_ns,
            sum(CASE WHEN e.open_groups > 1 THEN e.transfer_ns + e.unmatched_ns + e.wait_ns ELSE 0 END) OVER earlier AS shared_ns
        FROM exposed AS e
        WINDOW earlier AS (PARTITION BY e.lane ORDER BY e.at_ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),
    measured AS (
        SELECT
            s.run, s.rank, s.group_id,
            sum(b.all_ns - coalesce(a.all_ns, 0))::BIGINT AS all_ns,
            sum(b.overlapped_ns - coalesce(a.overlapped_ns, 0))::BIGINT AS overlapped_ns,
            sum(b.transfer_ns - coalesce(a.transfer_ns, 0))::BIGINT AS transfer_ns,
            sum(b.unmatched_ns - coalesce(a.unmatched_ns, 0))::BIGINT AS unmatched_ns,
            sum(b.wait_ns - coalesce(a.wait_ns, 0))::BIGINT AS wait_ns,
            sum(b.shared_ns - coalesce(a.shared_ns, 0))::BIGINT AS shared_ns
        FROM stretches AS s
        JOIN lanes AS l ON l.run = s.run AND l.rank = s.rank
        JOIN marks AS a ON a.lane = l.lane AND a.at_ts = s.ts
        JOIN marks AS b ON b.lane = l.lane AND b.at_ts = s.end_ts
        WHERE s.end_ts > s.ts
        GROUP BY s.run, s.rank, s.group_id
    ),
    counted AS (
        SELECT
            p.run, p.rank, p.group_id, count(*) AS collective_count, count(p.size) AS sized_count, sum(p.size)::BIGINT AS bytes,
            sum(p.wait_ns)::BIGINT AS wait_ns,
            -- The factors times the group size are integers, and a sum of integers does not depend on the order of
            -- summation.
            sum(p.size::HUGEINT * round(p.factor)::BIGINT) FILTER (p.transfer_ns > 0) / any_value(p.group_count)
            / sum(p.transfer_ns) FILTER (p.transfer_ns > 0 AND p.size * p.factor IS NOT NULL) AS busbw_gbps
        FROM parts AS p
        WHERE p.is_counted
        GROUP BY p.run, p.rank, p.group_id
    ),
    groups AS (
        SELECT
            l.run, l.rank, l.group_id, any_value(l.group_name) AS pg_name, any_value(l.group_desc) AS pg_desc,
            any_value(l.group_ranks) AS pg_ranks, any_value(l.group_count) AS group_size, any_value(l.group_kind) AS kind,
            any_value(l.kind_source) AS kind_source
        FROM labels AS l
        GROUP BY l.run, l.rank, l.group_id
    ),
    swept AS (
        SELECT DISTINCT p.run, p.rank, p.group_id, 0::BIGINT AS nothing FROM parts AS p WHERE p.is_swept
    ),
    totals AS (
        SELECT w.run, w.rank, sum(w.recorded_ns) AS ns FROM windows AS w GROUP BY w.run, w.rank
    ),
    several AS (
        SELECT
            l.run, l.rank,
            sum(e.transfer_ns)::BIGINT AS transfer_ns, sum(e.unmatched_ns)::BIGINT AS unmatched_ns, sum(e.wait_ns)::BIGINT AS wait_ns
        FROM exposed AS e
        JOIN lanes AS l ON l.lane = e.lane
        WHERE e.open_groups > 1
        GROUP BY l.run, l.rank
        HAVING sum(e.transfer_ns) + sum(e.unmatched_ns) + sum(e.wait_ns) > 0
    ),
    costs AS (
        SELECT
            g.run, g.rank, 'group' AS part, g.group_id, g.pg_name, g.pg_desc, g.pg_ranks, g.group_size, g.kind, g.kind_source,
            coalesce(c.collective_count, 0) AS collective_count, coalesce(c.sized_count, 0) AS sized_count, c.bytes,
            coalesce(m.all_ns, s.nothing) AS communication_ns, coalesce(m.overlapped_ns, s.nothing) AS overlapped_ns,
            coalesce(m.transfer_ns, s.nothing) AS transfer_ns, coalesce(m.wait_ns, s.nothing) AS exposed_wait_ns, coalesce(m.shared_ns, s.nothing) AS shared_ns,
            coalesce(m.unmatched_ns, s.nothing) AS unmatched_ns, c.wait_ns, c.busbw_gbps
        FROM groups AS g
        LEFT JOIN swept AS s ON s.run = g.run AND s.rank = g.rank AND s.group_id = g.group_id
        LEFT JOIN measured AS m ON m.run = g.run AND m.rank = g.rank AND m.group_id = g.group_id
        LEFT JOIN counted AS c ON c.run = g.run AND c.rank = g.rank AND c.group_id = g.group_id
        WHERE c.collective_count > 0 OR m.all_ns > 0
        UNION ALL
        SELECT
            s.run, s.rank, 'several groups', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
            NULL, NULL, s.transfer_ns, s.wait_ns, NULL, s.unmatched_ns, NULL, NULL
        FROM several AS s
    )
SELECT
    c.run,
    c.rank,
    c.part,
    c.pg_name,
    c.pg_desc,
    c.pg_ranks,
    c.group_size,
    c.kind,
    c.kind_source,
    c.collective_count,
    c.sized_count,
    c.bytes,
    c.communication_ns,
    c.overlapped_ns,
    c.transfer_ns AS exposed_transfer_ns,
    c.exposed_wait_ns,
    c.shared_ns AS exposed_shared_ns,
    c.unmatched_ns AS exposed_unmatched_ns,
    100 * ((c.transfer_ns + c.unmatched_ns + c.exposed_wait_ns) / nullif(t.ns, 0)) AS exposed_pct,
    c.wait_ns,
    c.busbw_gbps
FROM costs AS c
LEFT JOIN totals AS t ON t.run = c.run AND t.rank = c.rank
ORDER BY c.run, c.rank, c.part, c.group_id
