-- Problems with the data in the traces, the analyses that they limit, and how to fix them.
--
-- severity: error (numbers are affected or data is lost), warning (an analysis is limited) or note. value is the
-- measurement that triggered the rule. rank is NULL if the finding applies to the whole run.
--
-- Title: What limits these numbers
-- Shown: rank, severity, finding, message, remedy
-- Also: doctor, trace quality, what is missing
-- Status: stable
-- Since: 0.1
-- Reference: capture health, as requested by users of HTA and Kineto
-- Needs: nothing
-- Scope: runs, ranks; flaws of a capture do not belong to a step
CREATE OR REPLACE MACRO findings_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Report device operations without a launch if they exceed this share of all device operations [%].
    unlinked_above_pct DOUBLE := 1.0,
    -- Report unrecorded device work if it takes at least this share of the recording [%].
    unrecorded_above_pct DOUBLE := 1.0,
    -- Report time that may be either idle or earlier work if it takes at least this share of the recording [%].
    undecided_above_pct DOUBLE := 10.0,
    -- Report replayed graphs without a capture if their kernels take at least this share of GPU time [%].
    uncaptured_above_pct DOUBLE := 10.0,
    -- Report the first step as a start-up transient if it is longer than this multiple of the median step.
    transient_above_ratio DOUBLE := 2.0,
    -- Report start times of ranks that differ by more than this limit [ns].
    start_spread_above_ns BIGINT := 1000000000
) AS TABLE
-- Columns:
--   run           VARCHAR     Run name.
--   rank          INTEGER     Rank of the process; NULL for a finding about the run.
--   severity      VARCHAR     Severity of the finding: error, warning or note.
--   finding       VARCHAR     Name of the rule.
--   value         DOUBLE [1]  Measurement that triggered the rule: a share in % for rules with a threshold in %, ns for starts_apart, a multiple of the median step for start_up_transient, otherwise a count, or the number of a rank or capture; NULL if there is none.
--   message_code  VARCHAR     Code of the message in the table messages.
--   message       VARCHAR     Description of the finding.
--   limits        VARCHAR     Consequence for the analyses.
--   remedy        VARCHAR     Recommended fix.
WITH
    -- Ranks that use a GPU, as calls to its runtime or its properties show.
    gpu_users AS (
        SELECT r.run, r.rank FROM runtime_calls AS r WHERE lib.is_requested(runs, r.run) AND lib.is_requested(ranks, r.rank)
        UNION
        SELECT d.run, d.rank FROM devices AS d WHERE lib.is_requested(runs, d.run) AND lib.is_requested(ranks, d.rank)
    ),
    dumped AS (
        SELECT DISTINCT g.run, g.rank FROM fr_groups AS g WHERE lib.is_requested(runs, g.run)
    ),
    health AS (
        SELECT h.*
        FROM lib.rank_health(runs, ranks) AS h
    ),
    unrecorded_kinds AS (
        SELECT
            u.run, u.rank, u.kind, sum(u.dur)::BIGINT AS ns,
            -- Several gaps may belong to the same launches; count these launches once.
            max(u.launch_count) AS launch_count
        FROM unrecorded_time AS u
        WHERE lib.is_requested(runs, u.run) AND lib.is_requested(ranks, u.rank)
        GROUP BY u.run, u.rank, u.kind
    ),
    unrecorded AS (
        SELECT k.*, r.dur AS rank_ns
        FROM unrecorded_kinds AS k
        JOIN ranks AS r ON r.run = k.run AND r.rank = k.rank
        WHERE 100::DOUBLE * k.ns >= CASE k.kind WHEN 'undecided' THEN undecided_above_pct ELSE unrecorded_above_pct END * r.dur
    ),
    served AS (
        SELECT DISTINCT i.run, i.rank FROM lib.annotated_iterations(runs, ranks) AS i
    ),
    -- Replays of a server whose iterations neither an annotation, a frame nor a period shows; a training job has steps.
    unexplained_iterations AS (
        SELECT c.run, c.rank, count(*) AS replay_count
        FROM runtime_calls AS c
        JOIN health AS h ON h.run = c.run AND h.rank = c.rank AND h.step_count = 0
        WHERE contains(c.name, 'GraphLaunch') AND (c.run, c.rank) NOT IN (SELECT (i.run, i.rank) FROM lib.serving_iterations(runs, ranks) AS i)
        GROUP BY c.run, c.rank
    ),
    unexplained_replays AS (
        SELECT
            g.run, g.rank,
            100 * coalesce(sum(g.dur) FILTER (contains(c.name, 'GraphLaunch') AND m.event_id IS NULL), 0) / nullif(sum(g.dur), 0) AS replayed_pct
        FROM gpu_ops AS g
        LEFT JOIN runtime_calls AS c ON c.run = g.run AND c.rank = g.rank AND c.event_id = g.launch_id
        LEFT JOIN graph_matches AS m ON m.run = g.run AND m.rank = g.rank AND m.event_id = g.event_id
        WHERE lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank) AND g.class <> 'sync' AND NOT g.is_suspect
        GROUP BY g.run, g.rank
    ),
    run_facts AS (
        SELECT
            h.run,
            count(*) AS requested_count,
            any_value(w.rank_count) AS rank_count,
            max(h.world_size) AS world_size,
            count(DISTINCT h.world_size) AS world_sizes,
            list(DISTINCT h.world_size ORDER BY h.world_size) AS stated_world_sizes,
            list(DISTINCT h.backend ORDER BY h.backend) FILTER (h.backend IS NOT NULL) AS backends,
            max(h.rank) - any_value(w.first_rank) AS last_rank,
            list(h.rank ORDER BY h.rank) FILTER (NOT h.has_base_time) AS ranks_without_base_time,
            max(h.offset_ns) AS start_spread_ns,
            count(*) FILTER (h.has_base_time) AS aligned_count,
            sum(h.gpu_op_count) AS gpu_op_count,
            min(h.step_count) AS least_steps,
            max(h.step_count) AS most_steps
        FROM health AS h
        -- Counts all ranks of the run, because a rank that is not requested is not missing. first_rank is above 0 if the
        -- roles before it are not in the store.
        JOIN (SELECT k.run, count(*) AS rank_count, min(k.first_rank) AS first_rank FROM ranks AS k GROUP BY k.run) AS w ON w.run = h.run
        GROUP BY h.run
    ),
    mismatches AS (
        SELECT
            m.run, m.differs_in = 'missing' AS is_missing, count(DISTINCT m.collective_id) AS collective_count,
            arg_min(m, (m.start_ns, m.collective_id, m.rank)) AS first
        FROM lib.mismatched_collectives(runs) AS m
        GROUP BY m.run, m.differs_in = 'missing'
        HAVING bool_or(lib.is_requested(ranks, m.rank))
    ),
    found AS (
        SELECT h.run, h.rank, 'error' AS severity, 'lost_spans' AS finding, h.lost_count::DOUBLE AS value,
            CASE
                WHEN h.lost_pct IS NULL THEN lib.message('findings.lost_end', {'event_count': h.event_count, 'byte_offset': h.first_loss_offset, 'loss': h.first_loss})
                ELSE lib.message('findings.lost_spans', {'is_truncated': h.is_truncated, 'span_count': h.lost_count, 'lost_pct': h.lost_pct, 'event_count': h.lost_event_count, 'byte_offset': h.first_loss_offset, 'loss': h.first_loss})
            END AS message
        FROM health AS h
        WHERE h.lost_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'repaired_events', h.repaired_count,
            lib.message('findings.repaired_events', {'event_count': h.repaired_count, 'repair': regexp_replace(h.first_repair, '^repaired: ', '')})
        FROM health AS h
        WHERE h.repaired_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'odd_arguments', h.odd_argument_count,
            lib.message('findings.odd_arguments', {'value_count': h.odd_argument_count, 'argument': h.first_odd_argument})
        FROM health AS h
        WHERE h.odd_argument_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'error', 'suspect_durations', h.suspect_count,
            lib.message('findings.suspect_durations', {'op_count': h.suspect_count, 'sum_ns': h.suspect_ns})
        FROM health AS h
        WHERE h.suspect_count > 0
        UNION ALL
        SELECT v.run, v.rank, CASE WHEN v.rule IN ('collectives_without_metadata', 'sequence_numbers_shared') THEN 'note' ELSE 'warning' END, v.rule, v.violation_count,
            CASE v.rule
                WHEN 'kernels_before_launch' THEN lib.message('findings.kernels_before_launch', {'violation_count': v.violation_count, 'checked_count': v.checked_count, 'worst_ns': v.worst_ns})
                WHEN 'waits_without_record' THEN lib.message('findings.waits_without_record', {'violation_count': v.violation_count, 'checked_count': v.checked_count})
                WHEN 'waits_before_record' THEN lib.message('findings.waits_before_record', {'violation_count': v.violation_count, 'checked_count': v.checked_count})
                WHEN 'syncs_before_kernels' THEN lib.message('findings.syncs_before_kernels', {'violation_count': v.violation_count, 'checked_count': v.checked_count, 'worst_ns': v.worst_ns})
                WHEN 'collectives_without_metadata' THEN lib.message('findings.collectives_without_metadata', {'violation_count': v.violation_count, 'checked_count': v.checked_count})
                WHEN 'sequence_numbers_shared' THEN lib.message('findings.sequence_numbers_shared', {'violation_count': v.violation_count, 'checked_count': v.checked_count, 'example': v.example})
            END
        FROM lib._trace_violations(runs, ranks) AS v
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'no_events', 0,
            lib.message('findings.no_events', NULL)
        FROM health AS h
        LEFT JOIN dumped AS d ON d.run = h.run AND d.rank = h.rank
        WHERE h.event_count = 0 AND NOT h.is_summary AND d.rank IS NULL
        UNION ALL
        SELECT d.run, d.rank, 'warning', 'damaged_artifact', NULL,
            lib.message('findings.damaged_artifact', {'reason': d.reason})
        FROM lib.damaged_artifacts(runs) AS d
        WHERE lib.is_requested(ranks, d.rank)
        UNION ALL
        SELECT h.run, h.rank, 'note', 'dump_only', NULL,
            lib.message('findings.dump_only', NULL)
        FROM health AS h
        JOIN dumped AS d ON d.run = h.run AND d.rank = h.rank
        WHERE h.event_count = 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'summary_only', NULL,
            lib.message('findings.summary_only', NULL)
        FROM health AS h
        WHERE h.is_summary
        UNION ALL
        SELECT h.run, h.rank, CASE WHEN h.uses_gpu THEN 'warning' ELSE 'note' END, 'no_gpu_activity', 0,
            CASE WHEN h.uses_gpu THEN lib.message('findings.no_gpu_activity', NULL) ELSE lib.message('findings.no_gpu', NULL) END
        FROM (
            SELECT c.*, u.rank IS NOT NULL OR coalesce(contains(c.backend, 'ccl'), false) AS uses_gpu
            FROM health AS c
            LEFT JOIN gpu_users AS u ON u.run = c.run AND u.rank = c.rank
        ) AS h
        WHERE h.gpu_op_count = 0 AND h.event_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'unlinked_gpu_ops', 100 * h.unlinked_gpu_op_count / h.gpu_op_count,
            lib.message('findings.unlinked_gpu_ops', {'unlinked_count': h.unlinked_gpu_op_count, 'op_count': h.gpu_op_count})
        FROM health AS h
        WHERE h.gpu_op_count > 0 AND 100 * h.unlinked_gpu_op_count / h.gpu_op_count > unlinked_above_pct
        UNION ALL
        SELECT u.run, u.rank, 'warning', 'unrecorded_before', 100::DOUBLE * u.ns / u.rank_ns,
            lib.message('findings.unrecorded_before', {'before_ns': u.ns, 'before_pct': 100::DOUBLE * u.ns / u.rank_ns})
        FROM unrecorded AS u
        WHERE u.kind = 'before'
        UNION ALL
        SELECT u.run, u.rank, 'error', 'unrecorded_lost', 100::DOUBLE * u.ns / u.rank_ns,
            lib.message('findings.unrecorded_lost', {'launch_count': u.launch_count, 'lost_ns': u.ns, 'lost_pct': 100::DOUBLE * u.ns / u.rank_ns})
        FROM unrecorded AS u
        -- The finding lost_spans reports a file that is cut off.
        WHERE u.kind = 'lost' AND u.launch_count IS NOT NULL
        UNION ALL
        SELECT u.run, u.rank, 'warning', 'unrecorded_after', 100::DOUBLE * u.ns / u.rank_ns,
            lib.message('findings.unrecorded_after', {'after_ns': u.ns, 'after_pct': 100::DOUBLE * u.ns / u.rank_ns})
        FROM unrecorded AS u
        WHERE u.kind = 'after'
        UNION ALL
        SELECT u.run, u.rank, 'note', 'undecided_start', 100::DOUBLE * u.ns / u.rank_ns,
            lib.message('findings.undecided_start', {'undecided_ns': u.ns, 'undecided_pct': 100::DOUBLE * u.ns / u.rank_ns})
        FROM unrecorded AS u
        WHERE u.kind = 'undecided'
        UNION ALL
        SELECT h.run, h.rank, 'error', 'unknown_communication', h.suspected_communication_count,
            lib.message('findings.unknown_communication', {'kernel_count': h.suspected_communication_count, 'kernel': h.suspected_communication_example})
        FROM health AS h
        WHERE h.suspected_communication_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'no_shapes', 0,
            CASE WHEN h.records_shapes THEN lib.message('findings.no_shapes_recorded', NULL) ELSE lib.message('findings.no_shapes', NULL) END
        FROM health AS h
        WHERE h.cpu_op_count > 0 AND h.cpu_op_with_shapes_count = 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'no_stacks', 0,
            CASE WHEN h.records_stacks THEN lib.message('findings.no_stacks_recorded', NULL) ELSE lib.message('findings.no_stacks', NULL) END
        FROM health AS h
        WHERE h.cpu_op_count > 0 AND h.python_call_count = 0 AND h.cpu_op_with_stack_count = 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'no_memory_events', 0,
            CASE
                WHEN h.records_memory THEN lib.message('findings.no_memory_events_recorded', NULL)
                ELSE lib.message('findings.no_memory_events', NULL)
            END
        FROM health AS h
        WHERE h.cpu_op_count > 0 AND h.memory_event_count = 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'no_process_groups', h.communication_count,
            CASE
                WHEN h.hccl_count > 0 THEN lib.message('findings.no_process_groups_ascend', NULL)
                ELSE lib.message('findings.no_process_groups', NULL)
            END
        FROM health AS h
        WHERE h.communication_count > 0 AND h.communication_with_group_count = 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'no_sequence_numbers', h.communication_count,
            CASE
                WHEN h.hccl_count > 0 THEN lib.message('findings.no_sequence_numbers_ascend', NULL)
                ELSE lib.message('findings.no_sequence_numbers', NULL)
            END
        FROM health AS h
        WHERE h.communication_count > 0 AND h.communication_with_seq_count = 0
        UNION ALL
        SELECT h.run, h.rank, CASE WHEN s.run IS NULL THEN 'warning' ELSE 'note' END, 'no_steps', 0,
            CASE WHEN s.run IS NULL THEN lib.message('findings.no_steps', NULL) ELSE lib.message('findings.no_steps_serving', NULL) END
        FROM health AS h
        LEFT JOIN served AS s ON s.run = h.run AND s.rank = h.rank
        WHERE h.step_count = 0 AND h.event_count > 0
        UNION ALL
        SELECT g.run, g.rank, 'note', 'graphs_without_capture', g.replayed_pct,
            lib.message('findings.graphs_without_capture', {'replayed_pct': g.replayed_pct})
        FROM unexplained_replays AS g
        WHERE g.replayed_pct >= uncaptured_above_pct
        UNION ALL
        SELECT g.run, g.rank, 'note', 'iterations_unknown', g.replay_count, lib.message('findings.iterations_unknown', {'replay_count': g.replay_count})
        FROM unexplained_iterations AS g
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'start_up_transient', h.first_step_ns / h.median_step_ns,
            lib.message('findings.start_up_transient', {'step_ratio': h.first_step_ns / h.median_step_ns})
        FROM health AS h
        WHERE h.step_count >= 3 AND h.median_step_ns > 0 AND h.first_step_ns > transient_above_ratio * h.median_step_ns
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'rank_guessed', NULL,
            lib.message('findings.rank_guessed', NULL)
        FROM health AS h
        JOIN run_facts AS r ON r.run = h.run
        WHERE h.rank_source = 'order of names' AND r.rank_count > 1
        UNION ALL
        SELECT r.run, NULL, 'error', 'world_sizes_differ', r.world_sizes,
            lib.message('findings.world_sizes_differ', {'world_sizes': array_to_string(r.stated_world_sizes, ', ')})
        FROM run_facts AS r
        WHERE r.world_sizes > 1
        UNION ALL
        SELECT r.run, NULL, 'warning', 'backends_differ', len(r.backends),
            lib.message('findings.backends_differ', {'backends': array_to_string(r.backends, ', ')})
        FROM run_facts AS r
        WHERE len(r.backends) > 1
        UNION ALL
        SELECT r.run, NULL, 'error', 'rank_beyond_world_size', r.last_rank,
            lib.message('findings.rank_beyond_world_size', {'rank': r.last_rank, 'world_size': r.world_size})
        FROM run_facts AS r
        WHERE r.last_rank >= r.world_size
        UNION ALL
        SELECT h.run, NULL, 'error', 'same_capture', count(*),
            lib.message('findings.same_capture', {'ranks': array_to_string(list(h.rank ORDER BY h.rank), ', ')})
        FROM health AS h
        WHERE h.trace_id IS NOT NULL
        GROUP BY h.run, h.trace_id
        HAVING count(*) > 1
        UNION ALL
        SELECT r.run, NULL, 'note', 'further_capture', regexp_extract(r.run, '\d+$')::DOUBLE,
            lib.message('findings.further_capture', {
                'first_run': regexp_replace(r.run, '-capture\d+$', ''),
                'file': (SELECT min(regexp_extract(k.source, '[^/]*$')) FROM ranks AS k WHERE k.run = r.run)
            })
        FROM run_facts AS r
        WHERE regexp_matches(r.run, '-capture\d+$') AND EXISTS (FROM ranks AS k WHERE k.run = regexp_replace(r.run, '-capture\d+$', ''))
        UNION ALL
        SELECT r.run, NULL, 'warning', 'ranks_missing', r.world_size - r.rank_count,
            lib.message('findings.ranks_missing', {'missing_count': r.world_size - r.rank_count, 'world_size': r.world_size})
        FROM run_facts AS r
        WHERE r.world_size > r.rank_count
        UNION ALL
        SELECT r.run, NULL, 'warning', 'no_communication', r.world_size,
            lib.message('findings.no_communication', {'world_size': r.world_size})
        FROM run_facts AS r
        ANTI JOIN gpu_ops AS g ON g.run = r.run AND g.class = 'communication'
        ANTI JOIN cpu_ops AS c ON c.run = r.run AND (c.name = 'record_param_comms' OR c.collective IS NOT NULL)
        ANTI JOIN annotations AS a ON a.run = r.run AND starts_with(a.name, 'gloo:')
        WHERE r.world_size > 1 AND r.gpu_op_count > 0
        UNION ALL
        SELECT r.run, NULL, 'error', 'clocks_mixed', r.aligned_count,
            lib.message('findings.clocks_mixed', {'aligned_count': r.aligned_count, 'rank_count': r.requested_count, 'ranks': array_to_string(r.ranks_without_base_time, ', ')})
        FROM run_facts AS r
        WHERE r.aligned_count NOT IN (0, r.requested_count)
        UNION ALL
        SELECT r.run, NULL, 'warning', 'starts_apart', r.start_spread_ns,
            lib.message('findings.starts_apart', {'spread_ns': r.start_spread_ns})
        FROM run_facts AS r
        WHERE r.start_spread_ns > start_spread_above_ns
        UNION ALL
        SELECT r.run, NULL, 'warning', 'step_counts_differ', r.most_steps - r.least_steps,
            lib.message('findings.step_counts_differ', {'least_count': r.least_steps, 'most_count': r.most_steps})
        FROM run_facts AS r
        WHERE r.most_steps <> r.least_steps
        UNION ALL
        SELECT m.run, NULL, 'error', 'collectives_differ', m.collective_count,
            lib.message('findings.collectives_differ', {'collective_count': m.collective_count, 'rank': m.first.rank, 'collective': m.first.value, 'usual_collective': m.first.majority_value})
        FROM mismatches AS m
        WHERE NOT m.is_missing
        UNION ALL
        SELECT m.run, NULL, 'warning', 'collectives_missing', m.collective_count,
            lib.message('findings.collectives_missing', {'collective_count': m.collective_count, 'rank': m.first.rank, 'collective': m.first.majority_value})
        FROM mismatches AS m
        WHERE m.is_missing
        UNION ALL
        SELECT h.run, NULL, 'warning', 'older_columns', count(*),
            lib.message('findings.older_columns', {'rank_count': count(*), 'columns': h.missing_columns})
        FROM health AS h
        WHERE h.missing_columns IS NOT NULL
        GROUP BY h.run, h.missing_columns
        UNION ALL
        SELECT h.run, NULL, 'note', 'older_definitions', count(*) FILTER (h.definitions_changed),
            lib.message('findings.older_definitions', {'rank_count': count(*) FILTER (h.definitions_changed)})
        FROM health AS h
        GROUP BY h.run
        HAVING bool_or(h.definitions_changed) AND count(h.missing_columns) = 0
    )
SELECT
    f.run,
    f.rank,
    f.severity,
    f.finding,
    f.value,
    f.message.code AS message_code,
    lib.message_text(t.message, f.message.fields) AS message,
    t.limits,
    t.remedy
FROM found AS f
LEFT JOIN messages AS t ON t.code = f.message.code
ORDER BY f.run, array_position(['error', 'warning', 'note'], f.severity), f.finding, f.rank
