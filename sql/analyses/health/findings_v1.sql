-- What is missing from the traces or wrong with them, what that limits, and what to do about it.
--
-- severity: error (numbers are affected or data is lost), warning (an analysis is limited), note.
-- value is the figure that made the rule speak; rank is NULL where the whole run is meant.
--
-- Title: What limits these numbers
-- Status: stable
-- Since: 0.1
-- Reference: capture health, as users of HTA and Kineto ask for it
-- Needs: nothing
-- Scope: runs, ranks; what is wrong with a capture is not a matter of one step
CREATE OR REPLACE MACRO findings_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Share of device activity without a launch from which on it is reported [%].
    unlinked_above_pct DOUBLE := 1.0,
    -- Length of the first step, as a multiple of the median, from which on it is a start-up transient.
    transient_above_ratio DOUBLE := 2.0,
    -- Difference between the starts of the ranks from which on it is reported [ns].
    start_spread_above_ns BIGINT := 1000000000
) AS TABLE
-- Columns:
--   run       VARCHAR     Run name.
--   rank      INTEGER     Rank of the process; NULL: the run.
--   severity  VARCHAR     error, warning or note.
--   finding   VARCHAR     Name of the rule.
--   value     DOUBLE [1]  The figure behind it.
--   message   VARCHAR     What was found.
--   limits    VARCHAR     What it means for analyses.
--   remedy    VARCHAR     What to do.
WITH
    health AS (
        SELECT h.*
        FROM lib.rank_health(runs, ranks) AS h
    ),
    run_facts AS (
        SELECT
            h.run,
            count(*) AS rank_count,
            max(h.world_size) AS world_size,
            count(DISTINCT h.world_size) AS world_sizes,
            list(DISTINCT h.world_size ORDER BY h.world_size) AS stated_world_sizes,
            list(DISTINCT h.backend ORDER BY h.backend) FILTER (h.backend IS NOT NULL) AS backends,
            max(h.rank) AS last_rank,
            list(h.rank ORDER BY h.rank) FILTER (NOT h.has_base_time) AS ranks_without_base_time,
            max(h.offset_ns) AS start_spread_ns,
            count(*) FILTER (h.has_base_time) AS aligned_count,
            min(h.step_count) AS least_steps,
            max(h.step_count) AS most_steps
        FROM health AS h
        GROUP BY h.run
    ),
    mismatches AS (
        SELECT
            m.run, m.differs_in = 'missing' AS is_missing, count(DISTINCT m.collective_id) AS collective_count,
            arg_min(m, (m.start_ns, m.collective_id, m.rank)) AS first
        FROM lib.mismatched_collectives(runs) AS m
        GROUP BY m.run, m.differs_in = 'missing'
        HAVING bool_or(lib.wanted(ranks, m.rank))
    ),
    found AS (
        SELECT h.run, h.rank, 'error' AS severity, 'lost_spans' AS finding, h.lost_count::DOUBLE AS value,
            format('{:,} spans could not be read; the first at byte {:,}: {}.', h.lost_count, h.first_loss_offset, h.first_loss) AS message,
            'These events are in no table.' AS limits,
            'FROM quarantine; export the trace again if the file was cut off.' AS remedy
        FROM health AS h
        WHERE h.lost_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'repaired_events', h.repaired_count,
            format('{:,} events were repaired; the first: {}.', h.repaired_count, regexp_replace(h.first_repair, '^repaired: ', '')),
            'Their names may differ from what was meant.',
            'FROM quarantine WHERE NOT is_lost'
        FROM health AS h
        WHERE h.repaired_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'odd_arguments', h.odd_argument_count,
            format('{:,} argument values are not of the expected form; the first: {}.', h.odd_argument_count, h.first_odd_argument),
            'Analyses take these values for unknown.',
            'FROM quarantine WHERE argument IS NOT NULL; event_args has the values.'
        FROM health AS h
        WHERE h.odd_argument_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'error', 'suspect_durations', h.suspect_count,
            format('{:,} durations cannot be true, {:,} ns in total.', h.suspect_count, h.suspect_ns),
            'They are left out of all analyses.',
            'FROM gpu_ops WHERE is_suspect'
        FROM health AS h
        WHERE h.suspect_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'no_events', 0,
            'The trace has no events.', 'No analysis has a row for this rank.', 'Check that the profiler was active while it ran.'
        FROM health AS h
        WHERE h.event_count = 0 AND NOT h.is_summary
        UNION ALL
        SELECT h.run, h.rank, 'note', 'summary_only', NULL,
            'MindSpore cluster data: step times and communication, no events.',
            'Analyses of events have no row for this rank; cluster_step_trace and the tables cluster_* do.',
            'Pass the trace_view.json of the same job for a timeline.'
        FROM health AS h
        WHERE h.is_summary
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'no_gpu_activity', 0,
            'No kernels, copies or memsets.', 'Analyses of the GPU have no row for this rank.',
            'Profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA].'
        FROM health AS h
        WHERE h.gpu_op_count = 0 AND h.event_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'unlinked_gpu_ops', 100 * h.unlinked_gpu_op_count / h.gpu_op_count,
            format('{:,} of {:,} device operations have no launch in the trace.', h.unlinked_gpu_op_count, h.gpu_op_count),
            'They have no operator, annotation or module, and can never be host_wait.',
            'Use schedule(warmup=1 or more): operations launched before the recording started lose their launch.'
        FROM health AS h
        WHERE h.gpu_op_count > 0 AND 100 * h.unlinked_gpu_op_count / h.gpu_op_count > unlinked_above_pct
        UNION ALL
        SELECT h.run, h.rank, 'error', 'unknown_communication', h.suspected_communication_count,
            format('{:,} kernels were launched by communication calls, but no rule knows their name, {} for instance.', h.suspected_communication_count, h.suspected_communication_example),
            'They count as computation: overlap and exposed communication are wrong by their time.',
            'Add a rule: hta-sql ingest --kernel-classes FILE.'
        FROM health AS h
        WHERE h.suspected_communication_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'no_shapes', 0, 'Operators have no input shapes.',
            'No cost per shape, no FLOPs.', 'Profile with record_shapes=True.'
        FROM health AS h
        WHERE h.cpu_op_count > 0 AND h.cpu_op_with_shapes_count = 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'no_stacks', 0, 'No Python frames.',
            'No source lines, no modules.', 'Profile with with_stack=True.'
        FROM health AS h
        WHERE h.cpu_op_count > 0 AND h.python_call_count = 0 AND h.cpu_op_with_stack_count = 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'no_memory_events', 0, 'No allocator events.',
            'No answer of memory_peaks, memory_curve, live_at_peak, memory_by_operator, memory_allocations, memory_leaks.',
            'Profile with profile_memory=True.'
        FROM health AS h
        WHERE h.cpu_op_count > 0 AND h.memory_event_count = 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'no_process_groups', h.communication_count,
            'Communication kernels do not say their process group.',
            'Collectives are matched between ranks by order alone.',
            CASE
                WHEN h.hccl_count > 0 THEN 'None: Ascend''s profiler does not write it into trace_view.json.'
                ELSE 'PyTorch 2.4 or newer records it for NCCL.'
            END
        FROM health AS h
        WHERE h.communication_count > 0 AND h.communication_with_group_count = 0
        UNION ALL
        SELECT h.run, h.rank, 'note', 'no_sequence_numbers', h.communication_count,
            'Communication kernels have no sequence number.',
            'Collectives are matched between ranks by order.',
            CASE
                WHEN h.hccl_count > 0 THEN 'None: Ascend''s profiler does not write it into trace_view.json.'
                ELSE 'Newer PyTorch records Seq.'
            END
        FROM health AS h
        WHERE h.communication_count > 0 AND h.communication_with_seq_count = 0
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'no_steps', 0, 'No profiler steps.',
            'No figures per step; nothing is left out at the end.', 'Call prof.step() in the loop.'
        FROM health AS h
        WHERE h.step_count = 0 AND h.event_count > 0
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'start_up_transient', h.first_step_ns / h.median_step_ns,
            format('The first step takes {:.1f} times the median.', h.first_step_ns / h.median_step_ns),
            'Means over steps are too high.', 'Leave it out with steps := [...], or use schedule(warmup=2 or more).'
        FROM health AS h
        WHERE h.step_count >= 3 AND h.median_step_ns > 0 AND h.first_step_ns > transient_above_ratio * h.median_step_ns
        UNION ALL
        SELECT h.run, h.rank, 'warning', 'rank_guessed', NULL,
            'The trace does not say its rank; it was numbered by the order of names.',
            'It may be another rank.', 'Pass {rank: path}, or --rank-regex.'
        FROM health AS h
        JOIN run_facts AS r ON r.run = h.run
        WHERE h.rank_source = 'order of names' AND r.rank_count > 1
        UNION ALL
        SELECT r.run, NULL, 'error', 'world_sizes_differ', r.world_sizes,
            format('The traces state different world sizes: {}.', array_to_string(r.stated_world_sizes, ', ')),
            'They are of different jobs: figures across ranks mean nothing.',
            'FROM ranks SELECT rank, world_size, source; ingest each job as a run of its own.'
        FROM run_facts AS r
        WHERE r.world_sizes > 1
        UNION ALL
        SELECT r.run, NULL, 'warning', 'backends_differ', len(r.backends),
            format('The traces state different backends: {}.', array_to_string(r.backends, ', ')),
            'They may be of different jobs.', 'FROM ranks SELECT rank, backend, source; ingest each job as a run of its own.'
        FROM run_facts AS r
        WHERE len(r.backends) > 1
        UNION ALL
        SELECT r.run, NULL, 'error', 'rank_beyond_world_size', r.last_rank,
            format('There is a rank {}, but the job has {}.', r.last_rank, r.world_size),
            'A trace is of another job, or its rank was read wrongly from its name.',
            'FROM ranks SELECT rank, rank_source, source; pass {rank: path}, or --rank-regex.'
        FROM run_facts AS r
        WHERE r.last_rank >= r.world_size
        UNION ALL
        SELECT h.run, NULL, 'error', 'same_capture', count(*),
            format('The traces of ranks {} have one trace_id.', array_to_string(list(h.rank ORDER BY h.rank), ', ')),
            'One is a copy of the other: their work counts twice.', 'Remove the copy and ingest again.'
        FROM health AS h
        WHERE h.trace_id IS NOT NULL
        GROUP BY h.run, h.trace_id
        HAVING count(*) > 1
        UNION ALL
        SELECT r.run, NULL, 'note', 'further_capture', regexp_extract(r.run, '\d+$')::DOUBLE,
            format('Another capture of the ranks of run {}.', regexp_replace(r.run, '-capture\d+$', '')),
            'Captures are runs side by side, never added up.',
            'Expected of schedule(repeat=2 or more); otherwise two jobs were in one folder.'
        FROM run_facts AS r
        WHERE regexp_matches(r.run, '-capture\d+$') AND EXISTS (FROM ranks AS k WHERE k.run = regexp_replace(r.run, '-capture\d+$', ''))
        UNION ALL
        SELECT r.run, NULL, 'warning', 'ranks_missing', r.world_size - r.rank_count,
            format('{} of {} ranks are in the store.', r.rank_count, r.world_size),
            'Figures across ranks do not cover the job.', 'Ingest the other ranks into the same run.'
        FROM run_facts AS r
        WHERE r.world_size > r.rank_count
        UNION ALL
        SELECT r.run, NULL, 'error', 'clocks_mixed', r.aligned_count,
            format('{} of {} traces have a base time; without: rank {}.', r.aligned_count, r.rank_count, array_to_string(r.ranks_without_base_time, ', ')),
            'Times of different ranks cannot be compared.', 'Capture all ranks with one version of PyTorch.'
        FROM run_facts AS r
        WHERE r.aligned_count NOT IN (0, r.rank_count)
        UNION ALL
        SELECT r.run, NULL, 'warning', 'starts_apart', r.start_spread_ns,
            format('The ranks start up to {:.3f} s apart.', r.start_spread_ns / 1e9),
            'Early collectives wait for the profiler of the last rank, not for its work.',
            'Start the profilers at the same step; look at later steps.'
        FROM run_facts AS r
        WHERE r.start_spread_ns > start_spread_above_ns
        UNION ALL
        SELECT r.run, NULL, 'warning', 'step_counts_differ', r.most_steps - r.least_steps,
            format('Ranks have between {} and {} steps.', r.least_steps, r.most_steps),
            'Figures per step cover different ranks.', 'Use the same schedule on all ranks.'
        FROM run_facts AS r
        WHERE r.most_steps <> r.least_steps
        UNION ALL
        SELECT m.run, NULL, 'error', 'collectives_differ', m.collective_count,
            format('Ranks of one group run different collectives, {:,} times; the first: rank {} {}, others {}.', m.collective_count, m.first.rank, m.first.value, m.first.usual_value),
            'Results of the job may be wrong, or it hangs; waits in these collectives mean nothing.',
            'FROM collective_mismatches; look for code that depends on the rank before the first one.'
        FROM mismatches AS m
        WHERE NOT m.is_missing
        UNION ALL
        SELECT m.run, NULL, 'warning', 'collectives_missing', m.collective_count,
            format('{:,} collectives are not in the traces of all their ranks, though these were captured; the first: rank {} lacks {}.', m.collective_count, m.first.rank, m.first.usual_value),
            'Their waits are left out.',
            'FROM collective_mismatches; events were lost, or a rank did not take part.'
        FROM mismatches AS m
        WHERE m.is_missing
        UNION ALL
        SELECT h.run, NULL, 'warning', 'older_columns', count(*),
            format('An older version wrote {} of its ranks, without: {}.', count(*), h.missing_columns),
            'These columns are NULL in their rows.',
            'Ingest the same traces again into this store: that adds the columns.'
        FROM health AS h
        WHERE h.missing_columns IS NOT NULL
        GROUP BY h.run, h.missing_columns
        UNION ALL
        SELECT h.run, NULL, 'note', 'older_definitions', count(*) FILTER (h.definitions_changed),
            format('{} of its ranks were ingested by other definitions than those of today.', count(*) FILTER (h.definitions_changed)),
            'Some numbers may differ from those of a new ingest.',
            'Ingest the same traces again into this store; --force is not needed.'
        FROM health AS h
        GROUP BY h.run
        HAVING bool_or(h.definitions_changed) AND count(h.missing_columns) = 0
    )
SELECT f.run, f.rank, f.severity, f.finding, f.value, f.message, f.limits, f.remedy
FROM found AS f
ORDER BY f.run, array_position(['error', 'warning', 'note'], f.severity), f.finding, f.rank
