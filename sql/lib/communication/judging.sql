-- Constants of the judgement of stragglers, slow links and slow stages: every threshold, probability, share and minimum count that
-- decides a verdict or a cause.
--
-- A use is lib.judging().late_odds, which is folded into a literal at planning. An unknown name is an error of the engine.
-- tests/judgement/test_judging.py changes each constant to 0.7 and 1.4 of its value and states the job whose verdict changes.
--
-- What a constant is calibrated on stands next to it. Where nothing is stated, no calibration is recorded: the value is a
-- convention, and only the job in the test depends on it. All error rates of docs/communication.md are measured with these values.
--
-- Not included are
--
-- - arguments of analyses: the default of min_pct is least_pct, which the test compares;
-- - definitions: medians, the last third of a capture, Bonferroni and Fisher;
-- - factors of statistics: 1.4826 (standard deviation of a MAD), 1.25 (error of a median), corrections of a lag-one correlation;
-- - structural minima: two values for a spread, three items for a median of others, two ranks of a slow group, two steps of a
--   verdict;
-- - how collectives are matched and how time is divided into blocks, which is measured before anything is judged.
CREATE OR REPLACE MACRO lib.judging(
) AS
-- Returns: STRUCT  Constants by name.
{
    -- What is compared.

    -- Minimum lateness and cost [% of a block] of a rank or link. Below it, a delay costs less than it is worth to name.
    'least_pct': 1.0,
    -- Minimum lateness and cost [% of a block] of a pipeline stage.
    'stage_pct': 5.0,
    -- Minimum length of the first and last block [share of the median length]. The capture cuts them.
    'whole_block_share': 0.5,
    -- Maximum unrecorded time in a block [share of the block].
    'unrecorded_share': 0.02,
    -- With this many blocks or more [count], a cut first or last block of a pipeline does not count for stages …
    'least_cut_blocks': 4,
    -- … up to this many [count]: with more, a cut block has little weight.
    'most_cut_blocks': 7,
    -- Length below which such a block is cut [share of the median length].
    'cut_stage_share': 0.9,

    -- Kernels that wait for other ranks. Calibrated on a published production job, in which only the published stage is slow.

    -- Minimum number [count] of calls that start further apart than the shortest of them lasts.
    'barrier_calls': 3,
    -- Maximum difference of the ends [share of the difference of the starts].
    'barrier_end_share': 0.05,
    -- Minimum share of the calls whose ends agree [1].
    'barrier_call_share': 0.9,

    -- Noise.

    -- Spread of usual noise [share of a block], with its degrees of freedom [count]. In traces of real jobs, the spread between blocks
    -- was 0.002 to 0.2.
    'usual_noise_share': 0.05,
    'usual_freedom': 4,
    -- Spread of a rank's own blocks, relative to that of its peers [1], above which its own degrees of freedom count.
    'own_spread_ratio': 2,
    -- Degrees of freedom of a set [count] below which the peers of the whole run show the variation of blocks.
    'pooled_freedom': 6,
    -- Items of a set [count] up to which their spread is the standard deviation, and the smaller robust one from there.
    'few_items': 5,
    -- Blocks [count] below which successive blocks count as independent.
    'correlated_blocks': 4,
    -- Blocks [count] up to which the bias of a correlation is corrected by a simpler formula.
    'short_series': 6,
    -- Maximum correlation of successive blocks [1].
    'most_correlation': 0.95,
    -- Distance [noises] at which an outlier is clipped before correlations are computed.
    'clipped_noises': 3,
    -- Maximum size of a group of slow items [share of the set].
    'group_share': 0.5,

    -- Blocks.

    -- Lateness [noises; share of a block] with which an item stands out in a block.
    'outlier_noises': 8,
    'outlier_share': 0.02,
    -- Lateness [noises] with which an item is late in a block.
    'late_noises': 3,
    -- Share of the blocks [1] above which they are most blocks.
    'most_blocks': 0.5,
    -- Minimum number of blocks or episodes [count] that are counted by a binomial test.
    'least_outliers': 2,
    -- Share of an item's lateness [1] in the blocks that stand out, above which it is late in these blocks only.
    'outlier_late_share': 0.75,

    -- Independent blocks [count]: below few_blocks, the comparison of items decides as well as the comparison of blocks; below
    -- many_blocks, with the weight items_weight [1].
    'few_blocks': 4,
    'some_blocks': 5,
    'many_blocks': 8,
    'items_weight': 0.125,

    -- Verdicts.

    -- Maximum probability [1] that any item of the run is late by chance: a false name in 6 of 1,000 jobs. python -m tests.jobs.rates
    -- measures 4.1 and 4.8 per 1,000 in two draws of 6,300 jobs of noise.
    'late_odds': 0.006,
    -- The same with fewer than some_blocks and few_blocks independent blocks.
    'late_odds_of_some': 0.0012,
    'late_odds_of_few': 0.0003,
    -- Minimum number of blocks [count] of a late item. With fewer, it is suspected at most.
    'least_late_blocks': 3,
    -- Maximum probability [1] of a suspicion.
    'suspected_odds': 0.05,
    -- Maximum probability [1] of an intermittent item, by its episodes and by its steps.
    'intermittent_odds': 0.02,
    'intermittent_steps_odds': 0.005,
    -- An item that became slow: minimum number of late blocks [count], which are at least one in slowed_part blocks [count], and their
    -- distance to the other blocks [noises].
    'least_slowed_blocks': 3,
    'slowed_part': 3,
    'slowed_noises': 3,
    -- Share of the collectives [1] whose end times agree, below which waits are uncertain, and below which nothing is known.
    'trusted_share': 0.8,
    'least_trusted_share': 0.3,
    -- Minimum share of compute and copies [1] in the lateness of a rank that is suspected although waits are uncertain.
    'measured_share': 0.5,
    -- A suspicion is dropped if a straggler is this many times as late [1].
    'dwarfed_ratio': 10,
    -- One kind of work explains the lateness of a steady rank: its share of the lateness [1], and in each block its share of the mean [1].
    'steady_share': 0.8,
    'steady_block_share': 0.5,
    -- Blocks [count] from which one, which the end of the capture cuts, may show less.
    'cut_blocks': 5,
    -- Maximum probability [1] of a steady straggler, and of one that is late in most of at least steady_blocks blocks [count]. If blocks
    -- are few, no probability below steady_odds is stated.
    'steady_odds': 0.01,
    'steady_odds_of_most': 0.02,
    'steady_blocks': 4,
    -- Share of lateness [1] that loading data or saving a checkpoint covers in every block that stands out.
    'purpose_share': 0.8,
    -- Minimum duration of the transfers of a slow link [multiple of the other links].
    'link_ratio': 1.3,

    -- Causes.

    -- Peers [count] that a late rank is compared with.
    'cause_peers': 8,
    -- Minimum share of the lateness [1] that the cause explains.
    'cause_share': 0.5,
    -- Minimum share of additional compute [1] in longer calls; otherwise the cause is more compute.
    'longer_share': 0.5,
    -- Throttling: minimum increase of the slowdown from the first to the last third [1], and its minimum ratio [1].
    'throttled_slowdown': 0.05,
    'throttled_ratio': 2,
    -- Minimum share of additional idle time [1] that is loading data or saving a checkpoint.
    'purpose_cause_share': 0.5,
    -- Minimum share of additional idle time [1] of the subject, without a device.
    'subject_share': 0.5,
    -- All kernels are slower, not some: the share of the computation [1] that slows down at least by uniform_slowdown [share of the slowdown].
    'uniform_share': 0.8,
    'uniform_slowdown': 0.5
}
