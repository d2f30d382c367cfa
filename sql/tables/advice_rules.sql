-- Rules of the analysis advice: which time a rule concerns, from which share of step time on it applies, and what it
-- says.
--
-- A built-in table, the same for every store: sql/tables/advice_rules.csv. A rule has a row for each kind of time that
-- it concerns. A rule with another condition has a row without a code, and a macro lib._advice_<rule>, whose header
-- states the condition. Shares are of recorded step time.
CREATE OR REPLACE VIEW advice_rules AS
-- Columns:
--   rule               VARCHAR      Name of the rule.
--   part               VARCHAR      Part of step time that the rule concerns; together, rules for the same part save at most that part: idle, compute, communication, memory, lateness (work beyond that of the other ranks) or mixed (several parts).
--   precedence         VARCHAR      specific: rule about serving engines or expert parallelism. general: omitted if specific rules for the same part explain at least half of its time. NULL: neither.
--   kind               VARCHAR      Kind of the time, which the macros in sql/lib/advice define; NULL if a macro of its own finds the time.
--   pattern            VARCHAR      Regular expression that is searched for in the name of the kernel or runtime call; NULL if all names count.
--   except_pattern     VARCHAR      Regular expression of names that do not count; NULL if there is none.
--   short_ns           BIGINT [ns]  Duration below which a kernel is short, about that of a launch; only in the row of short kernels.
--   min_affected_pct   DOUBLE [%]   Minimum of affected_ns; NULL if there is none.
--   min_saved_pct      DOUBLE [%]   Smallest saving that is reported, as a share of recorded step time; NULL if every saving is.
--   min_late_pct       DOUBLE [%]   Minimum of affected_ns if the host causes idle time of at least 10 % in total, so that several causes below min_affected_pct are reported; NULL if it is min_affected_pct.
--   min_count_pct      DOUBLE [%]   Minimum share of the rank's kernels; NULL if there is none.
--   saved_pct          DOUBLE [%]   Share of the time that can be saved at best; NULL if it is all of the time.
--   confidence         VARCHAR      high: recorded directly; medium: inferred from kernel names or shares; low: a hint.
--   next_analysis      VARCHAR      Analysis that shows more.
--   code               VARCHAR      Code of the message in the table messages; NULL for a rule with a macro of its own.
--   subject_pattern    VARCHAR      Regular expression of subjects with a message of their own; NULL if there is none.
--   subject_code       VARCHAR      Code of the message for these subjects.
--   about              VARCHAR      What counts, the reason, and the source of the threshold.
SELECT x.*
FROM stored.advice_rules AS x
