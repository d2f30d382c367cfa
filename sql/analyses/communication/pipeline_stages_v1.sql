-- Pipeline stages in each step: micro-batches, compute, bubble, and the slowest stage.
--
-- Stages are derived from which ranks send to each other, and which rank sends first (stage 0 sends before it has
-- received anything). The analysis covers the operations launched in a step, from the first to the last computation of
-- the step (the span). compute_ns, exposed_other_ns, send_alone_ns, receive_alone_ns and idle_ns sum to span_ns. The
-- bubble is receive-only and idle time within the span. warm_up_ns and cool_down_ns are the rank's waits before and
-- after its span, from the first to the last computation of its pipeline. There are no rows if no rank sends to
-- another, or if every rank starts by sending, as in a ring. A pipeline fed from both ends cannot be distinguished from
-- two pipelines.
--
-- Title: Pipeline stages
-- Shown: stage, rank, step, span_ns, compute_ns, bubble_ns, bubble_pct, p2p_wait_ns, slowest_stage
-- Also: pipeline bubble, pipeline parallel
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight pipeline parallel page
-- Needs: sends and receives that record their ranks, between stages of a pipeline
-- Chart:
--   mark = "stack"
--   title = "Where the time of pipeline stages goes"
--   notes = [
--     "Mean step of each rank, from the first to the last computation of the pipeline. Sends and receives count only",
--     "while nothing else runs. The bubble is receives and idle time, without warm-up and cool-down.",
--   ]
--   bar = ["stage", "rank"]
--   mean = "step"
--   legend = "Part"
--   whole = "the pipeline's time"
--   parts.warm_up_ns = ["warm-up", "#8C96A0"]
--   parts.compute_ns = ["compute", "computation"]
--   parts.exposed_other_ns = ["collectives, copies", "memory"]
--   parts.send_alone_ns = ["sends", "communication"]
--   parts.receive_alone_ns = ["receives", "wait"]
--   parts.idle_ns = "idle"
--   parts.cool_down_ns = ["cool-down", "#DDE2E6"]
CREATE OR REPLACE MACRO pipeline_stages_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                VARCHAR         Run name.
--   pipeline           INTEGER         Pipeline, identified by its lowest first-stage rank.
--   stage              INTEGER         Pipeline stage, from 0.
--   stage_count        BIGINT [count]  Number of stages of the run.
--   rank               INTEGER         Rank of the process.
--   step               BIGINT          Profiler step; NULL if the trace has no steps and the row covers all of it.
--   micro_batch_count  BIGINT [count]  Number of messages sent to later stages; for the last stage, number of messages received from earlier stages. Each tensor and each part of the model counts separately.
--   span_ns            BIGINT [ns]     Time from the start of the first to the end of the last computation of the step: the sum of compute_ns, exposed_other_ns, send_alone_ns, receive_alone_ns and idle_ns.
--   compute_ns         BIGINT [ns]     Time with a computation kernel running.
--   exposed_other_ns   BIGINT [ns]     Time in collectives, copies or memsets, not overlapped by compute.
--   send_alone_ns      BIGINT [ns]     Time in sends, not overlapped by compute, collectives, copies or memsets.
--   receive_alone_ns   BIGINT [ns]     Time in receives with no other activity.
--   idle_ns            BIGINT [ns]     Time with no activity on the device.
--   bubble_ns          BIGINT [ns]     receive_alone_ns + idle_ns.
--   bubble_pct         DOUBLE [%]      bubble_ns as a share of span_ns.
--   warm_up_ns         BIGINT [ns]     Time from the pipeline's first computation in the step to the rank's first computation.
--   cool_down_ns       BIGINT [ns]     Time from the rank's last computation in the step to the pipeline's last computation.
--   pipeline_ns        BIGINT [ns]     Time from the pipeline's first to its last computation: warm-up, span and cool-down.
--   waiting_pct        DOUBLE [%]      Bubble, warm-up and cool-down as a share of pipeline_ns.
--   p2p_wait_ns        BIGINT [ns]     Time that sends and receives spend waiting for their partners; NULL if unknown.
--   stage_compute_ns   DOUBLE [ns]     Mean compute time of the stage's ranks in the step.
--   slowest_stage      INTEGER         Stage with the longest compute time in the step.
--   imbalance_pct      DOUBLE [%]      Difference between the compute times of the slowest stage and the rank's stage, as a share of the compute time of the slowest stage.
WITH
    staged AS MATERIALIZED (
        SELECT s.* FROM lib.pipeline_ranks(runs) AS s
    ),
    -- Use all ranks of a pipeline; filter the requested ranks at the end.
    messages AS MATERIALIZED (
        SELECT m.*, a.stage AS src_stage, b.stage AS dst_stage
        FROM lib.p2p_messages(runs) AS m
        LEFT JOIN staged AS a ON a.run = m.run AND a.rank = m.src_rank
        LEFT JOIN staged AS b ON b.run = m.run AND b.rank = m.dst_rank
    ),
    ops AS MATERIALIZED (
        SELECT
            {'run': g.run, 'rank': g.rank, 'span': g.span, 'step': g.step} AS lane, g.ts, g.dur,
            m.is_send, m.dst_stage > m.src_stage AS is_forward, m.wait_ns,
            CASE
                WHEN g.class = 'computation' THEN 1
                WHEN m.is_send THEN 3
                WHEN NOT m.is_send THEN 4
                ELSE 2
            END AS layer
        FROM lib.launched_gpu_ops(runs, NULL, steps, include_last_profiler_step) AS g
        JOIN staged AS s ON s.run = g.run AND s.rank = g.rank
        LEFT JOIN messages AS m ON m.run = g.run AND m.rank = g.rank AND m.event_id = g.event_id
        -- A trace without steps counts as one step; otherwise, operations outside steps are excluded.
        WHERE g.step IS NOT NULL OR NOT EXISTS (FROM steps AS p WHERE p.run = g.run AND p.rank = g.rank)
    ),
    counted AS (
        SELECT
            o.lane,
            count_if(o.is_send AND o.is_forward) AS sent,
            count_if(NOT o.is_send AND o.is_forward) AS received,
            sum(o.wait_ns)::BIGINT AS waited
        FROM ops AS o
        GROUP BY o.lane
    ),
    spans AS MATERIALIZED (
        SELECT o.lane, min(o.ts) AS from_ts, max(o.ts + o.dur) AS to_ts
        FROM ops AS o
        WHERE o.layer = 1
        GROUP BY o.lane
    ),
    pieces AS MATERIALIZED (
        SELECT o.lane, o.layer, greatest(o.ts, s.from_ts) AS ts, least(o.ts + o.dur, s.to_ts) - greatest(o.ts, s.from_ts) AS dur
        FROM ops AS o
        JOIN spans AS s ON s.lane = o.lane
        WHERE o.ts + o.dur > s.from_ts AND o.ts < s.to_ts
    ),
    parts AS (
        SELECT
            g.lane,
            sum(CASE WHEN g.layer = 1 THEN g.dur ELSE 0 END)::BIGINT AS computed,
            sum(CASE WHEN g.layer = 2 THEN g.dur ELSE 0 END)::BIGINT AS other,
            sum(CASE WHEN g.layer = 3 THEN g.dur ELSE 0 END)::BIGINT AS sending,
            sum(CASE WHEN g.layer = 4 THEN g.dur ELSE 0 END)::BIGINT AS receiving,
            sum(CASE WHEN g.layer = 0 THEN g.dur ELSE 0 END)::BIGINT AS idle
        FROM lib.layer_segments('pieces') AS g
        GROUP BY g.lane
    ),
    known AS (
        SELECT
            s.lane, s.lane.run AS run, s.lane.rank AS rank, s.lane.span AS recording, s.lane.step AS step,
            r.pipeline, r.stage, r.stage_count,
            s.to_ts - s.from_ts AS span,
            s.from_ts - c.ahead_ns - round(c.drift * (s.from_ts - c.mid_ts))::BIGINT AS from_ns,
            s.to_ts - c.ahead_ns - round(c.drift * (s.to_ts - c.mid_ts))::BIGINT AS to_ns,
            coalesce(p.computed, 0) AS computed, coalesce(p.other, 0) AS other, coalesce(p.sending, 0) AS sending,
            coalesce(p.receiving, 0) AS receiving, coalesce(p.idle, 0) AS idle
        FROM spans AS s
        LEFT JOIN parts AS p ON p.lane = s.lane
        JOIN staged AS r ON r.run = s.lane.run AND r.rank = s.lane.rank
        JOIN lib.clock_offsets(runs) AS c ON c.run = s.lane.run AND c.rank = s.lane.rank AND c.span = s.lane.span
    ),
    averaged AS (
        SELECT k.run, k.recording, k.step, k.stage, sum(k.computed) / count(*) AS mean_computed
        FROM known AS k
        GROUP BY k.run, k.recording, k.step, k.stage
    ),
    slowest AS (
        SELECT a.run, a.recording, a.step, max(a.mean_computed) AS most, arg_max(a.stage, (a.mean_computed, -a.stage)) AS stage
        FROM averaged AS a
        GROUP BY a.run, a.recording, a.step
    ),
    whole AS (
        SELECT
            k.*,
            k.from_ns - min(k.from_ns) OVER together AS warm_up,
            max(k.to_ns) OVER together - k.to_ns AS cool_down
        FROM known AS k
        WINDOW together AS (PARTITION BY k.run, k.recording, k.pipeline, k.step)
    )
SELECT
    w.run,
    w.pipeline,
    w.stage,
    w.stage_count,
    w.rank,
    w.step,
    CASE WHEN w.stage < w.stage_count - 1 THEN n.sent ELSE n.received END::BIGINT AS micro_batch_count,
    w.span AS span_ns,
    w.computed AS compute_ns,
    w.other AS exposed_other_ns,
    w.sending AS send_alone_ns,
    w.receiving AS receive_alone_ns,
    w.idle AS idle_ns,
    w.receiving + w.idle AS bubble_ns,
    100 * ((w.receiving + w.idle) / nullif(w.span, 0)) AS bubble_pct,
    w.warm_up AS warm_up_ns,
    w.cool_down AS cool_down_ns,
    w.warm_up + w.span + w.cool_down AS pipeline_ns,
    100 * ((w.warm_up + w.receiving + w.idle + w.cool_down) / nullif(w.warm_up + w.span + w.cool_down, 0)) AS waiting_pct,
    n.waited AS p2p_wait_ns,
    a.mean_computed AS stage_compute_ns,
    l.stage AS slowest_stage,
    100 * ((l.most - a.mean_computed) / nullif(l.most, 0)) AS imbalance_pct
FROM whole AS w
JOIN averaged AS a ON a.run = w.run AND a.recording = w.recording AND a.step IS NOT DISTINCT FROM w.step AND a.stage = w.stage
JOIN slowest AS l ON l.run = w.run AND l.recording = w.recording AND l.step IS NOT DISTINCT FROM w.step
JOIN counted AS n ON n.lane = w.lane
WHERE lib.is_requested(ranks, w.rank)
ORDER BY w.run, w.recording, w.step, w.pipeline, w.stage, w.rank
