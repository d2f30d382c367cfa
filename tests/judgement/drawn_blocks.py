"""Jobs whose blocks, collectives and events are drawn by a seed straight into the tables that verdicts read.

No trace is written or ingested, so that thousands of jobs near the limits of a verdict can be
drawn. They differ in ranks, blocks, noise, and in how, when and by how much ranks are late.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

from hta_sql.library import sqltext

BLOCK_NS = 10_000_000
TRANSFER = 0.1
WIDE_SEEDS = 10_000
"""Seeds from here on draw stages of three ranks instead of two."""
LONG_SEEDS = 20_000
"""Seeds from here on draw two ranks and 100 blocks, in seven of which a rank is late."""

FILLED = ("derived.step_parts", "derived.matched_collectives")

Row = dict[str, Any]


class _Job:
    """The rows of one job."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.width = 3 if seed >= WIDE_SEEDS else 2
        self.run = f"drawn-{seed}"
        self.rows: dict[str, list[Row]] = {}
        self.number = 0
        self._size()
        if seed >= LONG_SEEDS:
            self._lengthen()
        self._lateness()
        if seed >= LONG_SEEDS:
            self._delay_once_in_a_while()
        own = [self._own(block) for block in range(self.blocks)]
        starts = 1_000_000
        for block, of_ranks in enumerate(own):
            starts = self._block(block, starts, of_ranks)
        for rank in range(self.ranks):
            known = {"rank": rank, "dur": starts, "event_count": 1}
            self.add("stored.ranks", known | {"host_name": f"host-{rank // 4}"})
            self.add("stored.rank_scope", known | {"offset_ns": 0, "drops_last_step": False})

    def add(self, table: str, row: Row) -> None:
        self.rows.setdefault(table, []).append({"run": self.run, "span": 0} | row)

    def next(self) -> int:
        self.number += 1
        return self.number

    def _size(self) -> None:
        draw = self.random
        self.stages = draw.choice((1, 1, 1, 1, 2, 3, 4))
        self.ranks = (
            draw.choice((2, 3, 3, 4, 4, 5, 6, 7, 8, 13))
            if self.stages == 1
            else self.width * self.stages
        )
        self.blocks = draw.choice((2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 12, 20))
        self.noise = draw.choice((0.0005, 0.002, 0.005, 0.01, 0.03, 0.06))
        self.correlation = draw.choice((0, 0, 0.5, 0.9))
        spread = draw.choice((0, 0.002, 0.01, 0.03))
        self.offsets = [draw.gauss(0, spread) for _ in range(self.ranks)]
        self.wandering = [0.0] * self.ranks
        self.has_device = draw.random() < 0.9
        self.cut = {
            block: draw.uniform(0.25, 1) for block in (0, self.blocks - 1) if draw.random() < 0.2
        }
        self.trusted = draw.uniform(0.1, 1) if draw.random() < 0.2 else 1.0
        self.unrecorded = draw.uniform(0.01, 0.03) if draw.random() < 0.15 else 0.0
        self.seen_wait = draw.choice((1, 1, 1, draw.uniform(0.1, 1)))
        self.links = draw.choice((0, 0, 0, 3, 4, 6))
        self.link_factor = draw.uniform(1.1, 2.2)

    def _lengthen(self) -> None:
        self.stages, self.ranks, self.blocks, self.links = 1, 2, 100, 0
        self.noise, self.offsets, self.cut = 0.002, [0.0, 0.0], {}
        self.trusted, self.unrecorded, self.seen_wait = 1.0, 0.0, 1

    def _delay_once_in_a_while(self) -> None:
        hit = self.random.sample(range(1, self.blocks, 2), 7)
        self.late, self.amounts = [0], [0.3]
        self.shape = [float(block in hit) for block in range(self.blocks)]

    def _lateness(self) -> None:
        draw = self.random
        n = self.ranks
        if self.stages > 1 and draw.random() < 0.6:
            stage = draw.randrange(self.stages)
            self.late = [self.width * stage + rank for rank in range(self.width)]
        else:
            count = draw.choice((1, 1, 1, 1, 2, max(1, n // 2), max(1, n // 3)))
            self.late = draw.sample(range(n), min(n, count))
        self.amounts = [10 ** draw.uniform(-2.3, -0.3) for _ in self.late]
        if draw.random() < 0.3:
            self.amounts = [self.amounts[0]] * len(self.late)
        varies = draw.choice((0, 0, 0.3, 0.8))
        pattern = draw.choice(("all", "all", "some", "last", "growing"))
        if pattern == "some":
            hit = set(
                draw.sample(
                    range(self.blocks),
                    draw.randint(1, max(1, min(self.blocks - 1, self.blocks // 2 + 1))),
                )
            )
        elif pattern == "last":
            hit = set(range(self.blocks - draw.randint(1, self.blocks), self.blocks))
        else:
            hit = set(range(self.blocks))
        before = draw.uniform(0, 0.8) if pattern == "growing" else 0.0
        self.shape = [
            (1 - varies * draw.random() if block in hit else 0)
            * (before if pattern == "growing" and block < self.blocks // 2 else 1)
            for block in range(self.blocks)
        ]
        kinds = draw.choice(((1, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 1), None))
        self.kinds: tuple[float, ...] = kinds or tuple(draw.random() for _ in range(3))
        total = sum(self.kinds)
        self.kinds = tuple(k / total for k in self.kinds)
        if not self.has_device:
            self.kinds = (0.0, 0.0, 1.0)
        self.longer = draw.choice((1, 1, 0, draw.random()))
        self.second = draw.choice((1, 1, 0, draw.random()))
        self.purpose = draw.choice((None, None, "DataLoader", "save_checkpoint"))
        self.covered = draw.choice((1, draw.uniform(0.3, 1.1)))

    def _own(self, block: int) -> list[tuple[float, float]]:
        draw = self.random
        found = []
        for rank in range(self.ranks):
            new = draw.gauss(0, self.noise)
            self.wandering[rank] = (
                self.correlation * self.wandering[rank] + (1 - self.correlation**2) ** 0.5 * new
            )
            extra = 0.0
            if rank in self.late:
                extra = self.amounts[self.late.index(rank)] * self.shape[block]
            found.append((0.6 + self.offsets[rank] + self.wandering[rank], extra))
        return found

    def _block(self, block: int, start: int, work: list[tuple[float, float]]) -> int:
        scale = BLOCK_NS * self.cut.get(block, 1)
        own = [round(max(0.05, base + extra) * scale) for base, extra in work]
        longest = max(own)
        transfer = round(TRANSFER * scale)
        length = longest + transfer
        for rank, (_, extra) in enumerate(work):
            wait = round(self.seen_wait * (longest - own[rank]))
            more = round(extra * scale)
            self._parts(block, start, rank, own=own[rank], extra=more, wait=wait, length=length)
            self._collective(block, start, rank, own=own[rank], longest=longest, length=length)
        self._channels(block, start, longest, scale)
        return start + length

    def _parts(
        self, block: int, start: int, rank: int, *, own: int, extra: int, wait: int, length: int
    ) -> None:
        shares = [round(share * extra) for share in self.kinds]
        idle = round(0.2 * (own - extra)) + shares[2] if self.has_device else own
        memory = round(0.1 * (own - extra)) + shares[1] if self.has_device else 0
        compute = own - idle - memory
        lost = 0
        if self.unrecorded and rank == 0 and block == self.blocks - 1:
            lost = round(self.unrecorded * length)
        about: Row = {"rank": rank, "step": block, "block": block, "ts": start, "step_ns": length}
        times: Row = {
            "compute_ns": compute,
            "exposed_transfer_ns": length - own - wait,
            "exposed_wait_ns": wait,
            "exposed_memory_ns": memory,
            "idle_between_ns": idle,
            "unrecorded_lost_ns": lost,
        }
        others: tuple[str, ...] = (
            "exposed_unmatched_ns",
            "copied_transfer_ns",
            "unrecorded_before_ns",
        )
        others += ("unrecorded_after_ns", "idle_before_ns", "idle_after_ns")
        self.add(
            "derived.step_parts", about | times | dict.fromkeys(others, 0) | {"is_common": True}
        )
        at = start
        if self.has_device:
            at = self._kernels(rank, at, compute - shares[0], shares[0])
            self._op(rank, at, memory, "Memcpy HtoD", kind="memory", grid=1)
            at += memory
        self._host(rank, at, idle, shares[2])

    def _kernels(self, rank: int, at: int, usual: int, extra: int) -> int:
        longer = round(self.longer * extra)
        second = round(self.second * longer / 2)
        for name, ns in (
            ("gemm", usual // 2 + longer - second),
            ("relu", usual - usual // 2 + second),
        ):
            self._op(rank, at, ns, name, kind="computation", grid=8)
            at += ns
        if extra > longer:
            self._op(rank, at, extra - longer, "gemm", kind="computation", grid=9)
        return at + extra - longer

    def _op(self, rank: int, ts: int, dur: int, name: str, *, kind: str, grid: int) -> None:
        about: Row = {"rank": rank, "event_id": self.next(), "ts": ts, "dur": dur, "name": name}
        about |= {"class": kind, "is_suspect": False, "kind": "kernel", "device": 0, "stream": 7}
        about |= dict.fromkeys(("grid_y", "grid_z", "block_x", "block_y", "block_z"), 1)
        self.add("stored.gpu_ops", about | {"grid_x": grid, "in_tail": False})

    def _host(self, rank: int, ts: int, idle: int, extra: int) -> None:
        usual = (idle - extra) // 4
        covered = round(min(self.covered * extra, idle - usual)) if extra > 0 else 0
        about: Row = {"rank": rank, "pid": 1, "tid": 1, "in_tail": False}
        first: Row = {"event_id": self.next(), "name": "aten::step", "ts": ts, "dur": usual}
        self.add("stored.cpu_ops", about | first)
        more: Row = about | {"event_id": self.next(), "ts": ts + usual, "dur": covered}
        if covered and self.purpose:
            self.add("stored.annotations", more | {"name": self.purpose, "on_gpu": False})
        elif covered:
            self.add("stored.cpu_ops", more | {"name": "aten::item"})

    def _collective(
        self, block: int, start: int, rank: int, *, own: int, longest: int, length: int
    ) -> None:
        about: Row = {
            "rank": rank,
            "collective_id": 100 * block,
            "collective": "all_reduce",
            "channel_id": 0,
            "channel": "world",
            "ts": start + own,
            "dur": length - own,
            "start_ns": start + own,
            "end_ns": start + length,
            "wait_ns": longest - own,
            "transfer_ns": length - longest,
            "is_last": own == longest,
            "found_count": self.ranks,
        }
        agrees = (block + 0.5) / self.blocks < self.trusted
        self._matched(about, agrees=agrees)
        if self.stages > 1:
            self._messages(rank, start, length, block)

    def _matched(self, about: Row, *, agrees: bool = True, p2p: bool = False) -> None:
        flags: Row = {"is_complete": True, "is_startup": False, "is_p2p": p2p, "on_host": False}
        flags |= {"end_times_match": agrees, "ended_before_last_start": False}
        flags |= {"clock_is_applied": False, "event_id": self.next(), "match_method": "seq"}
        self.add("derived.matched_collectives", flags | about)

    def _messages(self, rank: int, start: int, length: int, number: int) -> None:
        for src in (rank, rank - self.width):
            dst = src + self.width
            if src < 0 or dst >= self.ranks:
                continue
            at = start + length * (1 + src // self.width) // (2 * self.stages)
            about: Row = {"rank": rank, "collective_id": 100 * number + 50 + src, "step": number}
            about |= {"collective": "send" if rank == src else "recv", "channel": f"{src}>{dst}"}
            about |= {"channel_id": 50 + src, "member_ranks": f"[{src}, {dst}]", "found_count": 2}
            about |= {"ts": at, "dur": 1000, "start_ns": at, "end_ns": at + 1000, "wait_ns": 0}
            self._matched(about | {"src_rank": src, "dst_rank": dst, "is_last": False}, p2p=True)

    def _channels(self, block: int, start: int, longest: int, scale: float) -> None:
        for link in range(self.links):
            factor = self.link_factor if link == 1 else 1.0
            ns = round(0.08 * scale * factor * max(0.1, self.random.gauss(1, 2 * self.noise)))
            pair = [2 * link % self.ranks, (2 * link + 1) % self.ranks]
            for rank in pair:
                end = start + longest
                about: Row = {"rank": rank, "collective_id": 100 * block + 70 + link}
                about |= {"collective": "all_gather", "channel_id": 70 + link, "in_elems": 1024}
                about |= {"channel": f"{link}: {pair}", "ts": end - ns, "dur": ns, "pg_desc": "tp"}
                about |= {"start_ns": end - ns, "end_ns": end, "wait_ns": 0, "transfer_ns": ns}
                self._matched(about | {"is_last": True, "found_count": 2, "elem_type": "BFloat16"})


def empty_tables(con: duckdb.DuckDBPyConnection) -> None:
    """Replace the derived views of a database from tests/jobs/tables.py by empty tables."""
    for name in FILLED:
        con.execute(f"CREATE TABLE empty_rows AS FROM {name} LIMIT 0")
        for statement in sqltext.replace_view_by_table(name, "FROM empty_rows"):
            con.execute(statement)
        con.execute("DROP TABLE empty_rows")


def fill(con: duckdb.DuckDBPyConnection, seeds: Iterable[int]) -> None:
    """Add the jobs that the seeds draw, as the runs ``drawn-<seed>``."""
    tables: dict[str, list[Row]] = {}
    for seed in seeds:
        for name, rows in _Job(seed).rows.items():
            tables.setdefault(name, []).extend(rows)
    for name, rows in tables.items():
        columns = sorted({column for row in rows for column in row})
        con.register("drawn", pa.table({c: [row.get(c) for row in rows] for c in columns}))
        con.execute(f"INSERT INTO {name} BY NAME FROM drawn")
        con.unregister("drawn")
