"""Planted jobs of all kinds, named after their fault."""

from __future__ import annotations

from dataclasses import replace

from tests.jobs.spec import MS, US, Clock, PlantedJob

DP = PlantedJob(ranks=4, steps=12, layers=2)
TP = replace(DP, ranks=8, tp=2)
LATE = replace(DP, slower_clock={2: 1.3})

CAUSES = {
    "slower clocks": replace(DP, slower_clock={2: 1.3}),
    "slower kernel": replace(DP, slower_kernel={1: 1.5}),
    "throttled": replace(DP, throttled={3: 1.5}),
    "more kernels": replace(DP, more_kernels={0: 1}),
    "bigger batch": replace(DP, bigger_batch={2: 1.4}),
    "host-bound": replace(DP, host_bound={1: 60 * US}),
    "data loading": replace(DP, loading={3: 1 * MS}),
    "slower clocks, tp in dp": replace(TP, slower_clock={3: 1.3}),
    "host-bound, tp in dp": replace(TP, host_bound={5: 60 * US}),
    "slower clocks, overlap": replace(LATE, overlap=True),
    "slower clocks, 2 ranks": replace(DP, ranks=2, slower_clock={1: 1.2}),
}
"""Jobs with one slow rank."""

CAPTURES = {
    "late captures": replace(LATE, starts_late={0: 3 * MS, 1: 5 * MS, 3: 4 * MS}),
    "late and early": replace(LATE, starts_late={0: 3 * MS}, ends_early={1: 4 * MS}),
    "hosts 3 ms apart": replace(
        TP, slower_clock={3: 1.3}, hosts=2, clocks=dict.fromkeys(range(4, 8), Clock(3 * MS))
    ),
    "hosts 3 ms apart, late": replace(
        TP,
        slower_clock={3: 1.3},
        hosts=2,
        clocks=dict.fromkeys(range(4, 8), Clock(3 * MS)),
        starts_late={1: 3 * MS, 6: 4 * MS},
        metadata="without seq",
    ),
    "hosts not named": replace(
        LATE, names_hosts=False, clocks={2: Clock(3 * MS), 3: Clock(-1 * MS)}
    ),
    "drift": replace(LATE, hosts=4, clocks={1: Clock(0, 5e-5), 3: Clock(2 * MS, -3e-5)}),
    "without seq": replace(LATE, metadata="without seq"),
    "operators tell": replace(LATE, metadata="operator"),
    "no metadata": replace(LATE, metadata="none", starts_late={0: 3 * MS}),
    "no metadata, tp in dp": replace(TP, slower_clock={3: 1.3}, metadata="none"),
    "cut lists": replace(TP, ranks=16, slower_clock={3: 1.3}, cut_lists=True),
    "doubled seq": replace(LATE, seq="doubled", starts_late={1: 3 * MS}),
    "doubled on one rank": replace(LATE, seq="doubled on one rank"),
    "off on one rank": replace(LATE, seq="off on one rank"),
    "missing in the middle": replace(LATE, lost={1: (20,)}),
    "missing without seq": replace(LATE, lost={1: (20,)}, metadata="without seq"),
    "no steps": replace(LATE, writes_steps=False),
    "slow link": replace(TP, slow_link={1: 4.0}),
    "pipeline": replace(DP, ranks=4, stages=2, slower_clock={1: 1.3}),
    "pipeline of micro-batches": replace(
        DP, ranks=8, stages=4, steps=6, micro_batches=4, slower_clock={2: 1.3}
    ),
    "experts": replace(TP, experts=4, slower_clock={3: 1.3}),
    "experts, cut splits": replace(DP, experts=4, slower_clock={3: 1.3}, cut_splits=True),
}
"""Jobs whose traces are incomplete or shifted."""

QUIET = {
    "noise": replace(DP, noise=0.05),
    "noise, tp in dp": replace(TP, noise=0.05),
    "noise, overlap": replace(DP, noise=0.05, overlap=True),
    "noise, pipeline": replace(DP, ranks=8, stages=4, noise=0.05),
}
"""Jobs with noise but without a slow rank."""

KINDS = CAUSES | CAPTURES | QUIET

LINKS = {
    "slow pair": replace(DP, ranks=16, stages=2, hosts=2, slow_pair={(2, 10): 3.0}),
    "equal pairs": replace(DP, ranks=16, stages=2, noise=0.05),
}
"""Jobs with sends and receives between many pairs of ranks, which have no expected verdict."""

EIGHT = replace(DP, ranks=8, noise=0.02)

JUDGED = {
    "in some steps": replace(EIGHT, steps=20, loading={5: 2 * MS}, late_steps=(3, 7, 8, 15)),
    "checkpoint": replace(EIGHT, steps=20, saving={0: 3 * MS}, late_steps=(4, 9, 14, 18)),
    "two at once": replace(EIGHT, slower_clock={1: 1.2}, loading={6: 600 * US}),
    "few steps": replace(EIGHT, steps=4, overlap=True, slower_clock={3: 1.27}),
    "two steps": replace(EIGHT, steps=2, slower_clock={3: 1.27}),
    "gathered parameters": replace(EIGHT, gathers=True, slower_clock={2: 1.2}),
    "hot expert": replace(EIGHT, experts=4, hot_expert={4: 2.5}),
    "other sequences": replace(EIGHT, sequence_spread=0.08),
    "host pauses": replace(EIGHT, steps=16, pauses=0.05),
    "slow group": replace(EIGHT, ranks=16, tp=4, slow_link={2: 3.0}),
    "slow stage": replace(
        DP, ranks=8, stages=4, steps=6, micro_batches=4, slower_clock={4: 1.4, 5: 1.4}
    ),
}
"""Jobs for each verdict level, including slow links and slow stages."""

BOUND = {
    "bound by devices": replace(DP, waits_in_calls=True),
    "bound by hosts": replace(
        DP, waits_in_calls=True, host_bound=dict.fromkeys(range(4), 200 * US)
    ),
}
"""Jobs without a slow rank that are bound by their devices or by their hosts."""

UNSURE = {"no metadata, tp in dp"}
"""Jobs whose process groups share a stream and cannot be told apart without metadata."""
