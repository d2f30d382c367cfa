-- Breakdown of each step into eight roles that are mutually exclusive and sum to the step.
--
-- Each moment counts toward the first role that applies: computation kernel, copy, memset, communication, runtime or
-- driver call, data loader, host operator or annotation, other. Runtime calls and the roles after them are therefore
-- time not overlapped by device activity. Activity on all host threads counts. Steps are as the device sees them: a
-- step is the host step, extended until the work launched in it has ended. Communication is device communication; on a
-- rank without a device, it is gloo communication on the host. A data loader is a torch data loader, or an annotation
-- that names a data loader.
--
-- Title: Step time by role
-- Shown: rank, step, step_ns, kernel_ns, memcpy_ns, communication_ns, data_loader_ns, cpu_exec_ns, other_ns
-- Status: stable
-- Since: 0.1
-- Reference: TensorBoard profiler plugin, step time breakdown
-- Needs: nothing; steps need the profiler's schedule
-- Report: first 6
-- Chart:
--   mark = "stack"
--   title = "Roles of the time of a step"
--   notes = [
--     "Mean device step of each rank. A device step ends when all operations launched in it have ended, so it is",
--     "longer than the host step and overlaps the next one. Each moment counts for the first role that applies,",
--     "from left to right.",
--   ]
--   mean = "step"
--   legend = "Role"
--   whole = "the step"
--   parts.kernel_ns = ["kernel", "computation"]
--   parts.memcpy_ns = ["memcpy", "memory"]
--   parts.memset_ns = ["memset", "#7FCDB4"]
--   parts.communication_ns = "communication"
--   parts.runtime_ns = ["runtime", "runtime call"]
--   parts.data_loader_ns = ["data loader", "data loading"]
--   parts.cpu_exec_ns = ["CPU exec", "#8C96A0"]
--   parts.other_ns = ["other", "#DDE2E6"]
CREATE OR REPLACE MACRO step_breakdown_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run               VARCHAR      Run name.
--   rank              INTEGER      Rank of the process.
--   step              BIGINT       Profiler step; NULL if the trace has no steps and the row covers all of it.
--   step_ns           BIGINT [ns]  Duration of the step as the device sees it: the sum of the eight roles.
--   kernel_ns         BIGINT [ns]  Time with a computation kernel running.
--   memcpy_ns         BIGINT [ns]  Time with a copy running, excluding earlier roles.
--   memset_ns         BIGINT [ns]  Time with a memset running, excluding earlier roles.
--   communication_ns  BIGINT [ns]  Exposed communication: transfer or wait running on the device and no earlier role.
--   runtime_ns        BIGINT [ns]  Time with the host in a runtime or driver call while the device is idle.
--   data_loader_ns    BIGINT [ns]  Time with a data loader open, excluding earlier roles.
--   cpu_exec_ns       BIGINT [ns]  Time with an operator or annotation open on the host, excluding earlier roles.
--   other_ns          BIGINT [ns]  Remaining time, such as Python code outside operators, or waiting.
WITH
    windows AS MATERIALIZED (
        SELECT d.*
        FROM lib.device_steps(runs, ranks, steps, include_last_profiler_step) AS d
    ),
    spans AS (
        SELECT
            g.run, g.rank, g.ts, g.dur,
            CASE
                WHEN g.class = 'computation' THEN 1
                WHEN g.class = 'communication' THEN 4
                WHEN g.kind = 'memset' OR regexp_matches(g.name, 'memset|fillbuffer', 'i') THEN 3
                ELSE 2
            END AS layer
        FROM gpu_ops AS g
        WHERE g.class <> 'sync' AND NOT g.is_suspect AND g.dur > 0 AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        UNION ALL
        SELECT m.run, m.rank, m.ts, m.dur, 4
        FROM lib.swept_collectives(runs, ranks) AS m
        WHERE m.on_host
        UNION ALL
        SELECT r.run, r.rank, r.ts, r.dur, 5
        FROM runtime_calls AS r
        WHERE r.dur > 0 AND lib.is_requested(runs, r.run) AND lib.is_requested(ranks, r.rank)
        UNION ALL
        SELECT a.run, a.rank, a.ts, a.dur, CASE WHEN lib.loads_data(a.name) THEN 6 ELSE 7 END
        FROM annotations AS a
        WHERE
            NOT a.on_gpu AND NOT starts_with(a.name, 'ProfilerStep#') AND a.dur > 0
            AND lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank)
        UNION ALL
        SELECT p.run, p.rank, p.ts, p.dur, 6
        FROM python_calls AS p
        WHERE contains(p.name, 'torch/utils/data/') AND lib.is_requested(runs, p.run) AND lib.is_requested(ranks, p.rank)
        UNION ALL
        -- Events nested in an operator are covered by the operator.
        SELECT c.run, c.rank, c.ts, c.dur, CASE WHEN starts_with(c.name, 'enumerate(Data') THEN 6 ELSE 7 END
        FROM cpu_ops AS c
        WHERE c.parent_op_id IS NULL AND c.dur > 0 AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    roles AS (
        SELECT
            p.run, p.rank, p.step,
            sum(CASE WHEN p.layer = 1 THEN p.ns ELSE 0 END)::BIGINT AS kernel_ns,
            sum(CASE WHEN p.layer = 2 THEN p.ns ELSE 0 END)::BIGINT AS memcpy_ns,
            sum(CASE WHEN p.layer = 3 THEN p.ns ELSE 0 END)::BIGINT AS memset_ns,
            sum(CASE WHEN p.layer = 4 THEN p.ns ELSE 0 END)::BIGINT AS communication_ns,
            sum(CASE WHEN p.layer = 5 THEN p.ns ELSE 0 END)::BIGINT AS runtime_ns,
            sum(CASE WHEN p.layer = 6 THEN p.ns ELSE 0 END)::BIGINT AS data_loader_ns,
            sum(CASE WHEN p.layer = 7 THEN p.ns ELSE 0 END)::BIGINT AS cpu_exec_ns,
            sum(p.ns)::BIGINT AS known_ns
        FROM lib.layers_in_steps('windows', 'spans') AS p
        GROUP BY p.run, p.rank, p.step
    )
SELECT
    w.run,
    w.rank,
    w.step,
    w.to_ts - w.from_ts AS step_ns,
    coalesce(r.kernel_ns, 0) AS kernel_ns,
    coalesce(r.memcpy_ns, 0) AS memcpy_ns,
    coalesce(r.memset_ns, 0) AS memset_ns,
    coalesce(r.communication_ns, 0) AS communication_ns,
    coalesce(r.runtime_ns, 0) AS runtime_ns,
    coalesce(r.data_loader_ns, 0) AS data_loader_ns,
    coalesce(r.cpu_exec_ns, 0) AS cpu_exec_ns,
    w.to_ts - w.from_ts - coalesce(r.known_ns, 0) AS other_ns
FROM windows AS w
LEFT JOIN roles AS r ON r.run = w.run AND r.rank = w.rank AND r.step IS NOT DISTINCT FROM w.step
ORDER BY w.run, w.rank, w.from_ts, w.step
