-- One row per run: one capture of one job.
CREATE OR REPLACE VIEW runs AS
-- Columns:
--   run              VARCHAR         Run: one capture of one job.
--   rank_count       BIGINT [count]  Ranks in the store.
--   world_size       BIGINT [count]  Ranks of the job, as stated.
--   start_ns         BIGINT [ns]     First event of all ranks; Unix time where the traces have a base time.
--   dur              BIGINT [ns]     From the first event of any rank to the last end of any.
--   event_count      BIGINT [count]  Events of all ranks.
--   drops_last_step  BOOLEAN         The run has two or more steps, so that analyses leave out the last by default.
SELECT
    k.run,
    count(*) AS rank_count,
    max(k.world_size) AS world_size,
    min(k.start_ns) AS start_ns,
    max(k.offset_ns + k.dur) AS dur,
    sum(k.event_count)::BIGINT AS event_count,
    bool_or(k.drops_last_step) AS drops_last_step
FROM ranks AS k
GROUP BY k.run
