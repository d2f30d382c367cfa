"""Convert the store's results to the form of the brute-force files, so that == compares them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from hta_sql import TraceStore

Facts = dict[str, Any]
Key = tuple[str, int]

CLASS_SETS = (
    "communication",
    "communication+memory",
    "computation",
    "computation+communication",
    "computation+communication+memory",
    "computation+memory",
    "memory",
)

GPU_TOTALS = """
SELECT
    k.run,
    k.rank,
    min(g.ts) - any_value(k.offset_ns) + any_value(k.first_ts) AS first,
    max(g.ts + g.dur) - any_value(k.offset_ns) + any_value(k.first_ts) AS last,
    count(g.event_id) AS total,
    count_if(g.event_id IS NOT NULL AND g.launch_id IS NULL) AS without_launch
FROM ranks AS k
LEFT JOIN lib.scoped_gpu_ops(NULL, NULL, NULL, $everything) AS g ON g.run = k.run AND g.rank = k.rank
GROUP BY k.run, k.rank
"""

GPU_COUNTS = """
SELECT g.run, g.rank, g.class, g.kind, count(*)
FROM lib.scoped_gpu_ops(NULL, NULL, NULL, $everything) AS g
GROUP BY ALL
"""

COPIES = """
SELECT
    g.run,
    g.rank,
    CASE g.kind WHEN 'memset' THEN 'Memset' ELSE regexp_extract(g.name, '^Memcpy \\w+') END AS name,
    count(*),
    coalesce(sum(g.bytes), 0)::BIGINT,
    sum(g.dur)::BIGINT
FROM lib.scoped_gpu_ops(NULL, NULL, NULL, $everything) AS g
WHERE g.kind IN ('memcpy', 'memset')
GROUP BY ALL
"""

EVENTS = """
WITH
    timed AS (
        SELECT run, rank, 'cpu_ops' AS target, in_last_step FROM cpu_ops
        UNION ALL
        SELECT run, rank, category, in_last_step FROM runtime_calls
        UNION ALL
        SELECT run, rank, 'python_calls', in_last_step FROM python_calls
        UNION ALL
        SELECT run, rank, CASE WHEN on_gpu THEN 'gpu_annotations' ELSE 'annotations' END, in_last_step
        FROM annotations
        UNION ALL
        SELECT run, rank, 'gpu_ops', in_last_step FROM gpu_ops
        UNION ALL
        SELECT run, rank, coalesce(category, '(none)'), NOT $everything
        FROM other_events
        WHERE phase = 'X'
    )
SELECT run, rank, target, count(*)
FROM timed
WHERE $everything OR NOT in_last_step
GROUP BY ALL
"""


STEPS = """
SELECT s.run, s.rank, s.step, s.ts - k.offset_ns, s.dur
FROM steps AS s
JOIN ranks AS k ON k.run = s.run AND k.rank = s.rank
ORDER BY s.run, s.rank, s.ts
"""

TARGETS = {
    "cpu_op": "cpu_ops",
    "Operator": "cpu_ops",
    "user_annotation": "annotations",
    "gpu_user_annotation": "gpu_annotations",
    "python_function": "python_calls",
    **dict.fromkeys(
        ("kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"), "gpu_ops"
    ),
    **dict.fromkeys(("cuda_sync", "mtia_ccp_events"), "gpu_ops"),
}
"""Category ─▶ table that counts its events; other categories count under their own name."""

UNSCOPED = ("Trace", "overhead", "cuda_profiler_range", "dequeue", "enqueue", "(none)")
"""Categories of other_events that are outside any step scope."""


def expected(facts: Facts, *, everything: bool) -> Facts:
    """Convert one rank's facts in a brute-force file to the form that :func:`measure` returns."""
    events: dict[str, int] = defaultdict(int)
    for category, count in facts["n_events_by_category"].items():
        if everything or category not in UNSCOPED:
            events[TARGETS.get(category, category)] += count
    return facts | {
        "events": dict(events),
        "kernels": {
            (k["class"], k["name"]): (k["count"], k["sum"], k["min"], k["max"])
            for k in facts["kernels"]
        },
        "idle": {
            (lane["device"], lane["stream"]): {
                cause: (lane[cause]["count"], lane[cause]["sum"])
                for cause in ("host_wait", "kernel_wait", "other")
            }
            for lane in facts["idle"]
        },
    }


def measure_steps(store: TraceStore) -> dict[Key, list[list[int]]]:
    """List [step, start since the rank's first event, duration] for the steps of each rank [ns]."""
    steps: dict[Key, list[list[int]]] = defaultdict(list)
    for run, rank, *step in store.sql(STEPS).rows():
        steps[run, rank].append(step)
    return steps


def measure(store: TraceStore, *, everything: bool) -> dict[Key, Facts]:
    """Collect the facts of all ranks; ``everything`` includes the last profiler step."""
    scope = {"include_last_profiler_step": everything}
    bind = {"everything": everything}
    facts: dict[Key, Facts] = {}
    for run, rank, first, last, total, without_launch in store.sql(GPU_TOTALS, bind).rows():
        facts[run, rank] = {
            "class_sets": dict.fromkeys(CLASS_SETS, 0),
            "comm_union": 0,
            "comm_overlapped_by_compute": 0,
            "exposed_comm": 0,
            "exposed_memory": 0,
            "overlap_pct": None,
            "kernels": {},
            "n_kernel_names": 0,
            "idle": {},
            "launch": dict.fromkeys(
                ("n_pairs", "cpu_dur", "gpu_dur", "delay", "n_gpu_shorter_than_cpu"), 0
            ),
            "memcpy": {},
            "n_gpu_ops": {
                "by_class": {},
                "by_kind": {},
                "total": total,
                "without_launch": without_launch,
            },
            "events": {},
            "temporal": dict.fromkeys(("busy", "compute", "non_compute", "idle", "span"), 0)
            | {"first": first, "last": last},
        }
    _add_times(facts, store, scope)
    _add_launches(facts, store, scope)
    for run, rank, name, count, size, dur in store.sql(COPIES, bind).rows():
        facts[run, rank]["memcpy"][name] = {"count": count, "bytes": size, "dur": dur}
    for run, rank, class_, kind, count in store.sql(GPU_COUNTS, bind).rows():
        counts = facts[run, rank]["n_gpu_ops"]
        counts["by_class"][class_] = counts["by_class"].get(class_, 0) + count
        counts["by_kind"][kind] = counts["by_kind"].get(kind, 0) + count
    for run, rank, target, count in store.sql(EVENTS, bind).rows():
        facts[run, rank]["events"][target] = count
    return facts


def _add_times(facts: dict[Key, Facts], store: TraceStore, scope: dict[str, bool]) -> None:
    for row in _records(store, "temporal_breakdown", scope):
        fact = facts[row["run"], row["rank"]]
        fact["temporal"] |= {
            "busy": row["compute_ns"] + row["non_compute_ns"],
            "compute": row["compute_ns"],
            "non_compute": row["non_compute_ns"],
            "idle": row["idle_ns"],
            "span": row["span_ns"],
        }
        fact["exposed_comm"] = row["exposed_communication_ns"]
        fact["exposed_memory"] = row["exposed_memory_ns"]
    for row in _records(store, "gpu_kernel_types", scope):
        facts[row["run"], row["rank"]]["class_sets"][row["classes"]] = row["busy_ns"]
    for row in _records(store, "comm_comp_overlap", scope):
        pct = row["overlap_pct"]
        facts[row["run"], row["rank"]] |= {
            "comm_union": row["communication_ns"],
            "comm_overlapped_by_compute": row["overlapped_ns"],
            "overlap_pct": None if pct is None else round(pct, 6),
        }
    for row in _records(store, "gpu_kernels_by_name", scope):
        fact = facts[row["run"], row["rank"]]
        fact["kernels"][row["class"], row["name"]] = (
            row["kernel_count"],
            row["sum_ns"],
            row["min_ns"],
            row["max_ns"],
        )
        fact["n_kernel_names"] = len({name for _, name in fact["kernels"]})
    for row in _records(store, "idle_time_breakdown", scope):
        lane = facts[row["run"], row["rank"]]["idle"].setdefault(
            (str(row["device"]), str(row["stream"])), {}
        )
        lane[row["category"]] = (row["gap_count"], row["idle_ns"])


def _add_launches(facts: dict[Key, Facts], store: TraceStore, scope: dict[str, bool]) -> None:
    launches: dict[Key, list[tuple[int, int, int]]] = defaultdict(list)
    for row in _records(store, "cuda_kernel_launch_stats", scope):
        launches[row["run"], row["rank"]].append(
            (row["cpu_dur_ns"], row["gpu_dur_ns"], row["launch_delay_ns"])
        )
    for key, pairs in launches.items():
        facts[key]["launch"] = {
            "n_pairs": len(pairs),
            "cpu_dur": sum(cpu for cpu, _, _ in pairs),
            "gpu_dur": sum(gpu for _, gpu, _ in pairs),
            "delay": sum(delay for _, _, delay in pairs),
            "n_gpu_shorter_than_cpu": sum(gpu < cpu for cpu, gpu, _ in pairs),
        }


def _records(store: TraceStore, name: str, scope: dict[str, Any]) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = store.run(name, **scope).arrow().to_pylist()
    return records
