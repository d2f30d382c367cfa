-- Collectives that gloo ran on the host, recorded as annotations because there are no kernels.
--
-- The trace does not record the group of a call. Each group has two threads of its own, created together with the
-- group. If a rank has twice as many gloo threads as groups, threads and groups correspond in creation order, so the
-- thread identifies the group. A rank with one group needs no thread. Otherwise the group is unknown. Sends run on
-- the caller's thread. Their partner is known only for a rank with one group, because ranks are numbered within a
-- group.
CREATE OR REPLACE MACRO lib._gloo_calls(
    runs
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   span          INTEGER         Recording of the rank.
--   event_id      BIGINT          event_id of the annotation.
--   ts            BIGINT [ns]     Start, relative to the run's first event.
--   dur           BIGINT [ns]     Duration.
--   step          BIGINT          Profiler step.
--   in_last_step  BOOLEAN         Whether it starts in or after the rank's last step.
--   op_id         BIGINT          event_id of the innermost enclosing operator.
--   name          VARCHAR         Name of the annotation, with the shapes.
--   collective    VARCHAR         Kind of collective: all_reduce, send, …
--   pg_name       VARCHAR         Process group name.
--   pg_desc       VARCHAR         Process group description.
--   pg_ranks      VARCHAR         Global ranks of the process group.
--   group_size    BIGINT [count]  Number of ranks in the process group.
--   elem_type     VARCHAR         Element type.
--   in_elems      BIGINT [count]  Number of elements of the first input.
--   src_rank      BIGINT          Sending rank of a point-to-point operation.
--   dst_rank      BIGINT          Receiving rank of a point-to-point operation.
WITH
    _calls AS MATERIALIZED (
        SELECT a.run, a.rank, a.span, a.event_id, a.ts, a.dur, a.tid, a.step, a.in_last_step, a.parent_id, substr(a.name, 6) AS collective,
            a.input_dims ->> '$[0]' AS dims, nullif(a.input_types ->> '$[0]', '') AS elem_type
        FROM annotations AS a
        WHERE starts_with(a.name, 'gloo:') AND NOT a.on_gpu AND lib.is_requested(runs, a.run)
    ),
    _groups AS (
        SELECT
            p.run, p.rank, p.pg_name, p.pg_desc, p.pg_ranks, p.pg_size,
            row_number() OVER (PARTITION BY p.run, p.rank ORDER BY try_cast(p.pg_name AS BIGINT), p.pg_name) AS position,
            count(*) OVER (PARTITION BY p.run, p.rank) AS n
        FROM process_groups AS p
        WHERE contains(p.backend_config, 'gloo') AND lib.is_requested(runs, p.run)
    ),
    _threads AS (
        SELECT
            t.run, t.rank, t.span, t.tid,
            row_number() OVER (PARTITION BY t.run, t.rank, t.span ORDER BY t.tid) AS position,
            count(*) OVER (PARTITION BY t.run, t.rank, t.span) AS n
        FROM (SELECT DISTINCT c.run, c.rank, c.span, c.tid FROM _calls AS c WHERE c.parent_id IS NULL) AS t
    )
SELECT
    c.run, c.rank, c.span, c.event_id, c.ts, c.dur, c.step, c.in_last_step, o.event_id AS op_id,
    'gloo:' || c.collective || ' ' || coalesce(translate(c.dims, '0123456789', 'abcdefghij'), '') AS name,
    c.collective,
    g.pg_name, g.pg_desc, g.pg_ranks, g.pg_size AS group_size,
    c.elem_type,
    TRY_CAST(list_product(list_transform(regexp_extract_all(c.dims, '\d+'), lambda d: TRY_CAST(d AS DOUBLE))) AS BIGINT) AS in_elems,
    CASE WHEN g.n = 1 AND c.collective = 'recv' THEN try_cast(o.concrete_inputs ->> '$[2]' AS BIGINT) + w.first_rank END AS src_rank,
    CASE WHEN g.n = 1 AND c.collective = 'send' THEN try_cast(o.concrete_inputs ->> '$[2]' AS BIGINT) + w.first_rank END AS dst_rank
FROM _calls AS c
JOIN ranks AS w ON w.run = c.run AND w.rank = c.rank
LEFT JOIN _threads AS t ON t.run = c.run AND t.rank = c.rank AND t.span = c.span AND t.tid = c.tid
LEFT JOIN _groups AS g ON g.run = c.run AND g.rank = c.rank AND (g.n = 1 OR (t.n = 2 * g.n AND (t.position - 1) // 2 + 1 = g.position))
LEFT JOIN cpu_ops AS o ON o.run = c.run AND o.rank = c.rank AND o.event_id = c.parent_id
