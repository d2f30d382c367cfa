"""Judge mutants in parallel processes, each of which takes one mutant at a time.

If the engine crashes, its process ends. The crash counts as the verdict, and a new process takes
the next mutant.
"""

from __future__ import annotations

from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from hypothesis import Phase, settings

from tests.mutants.mutations import Mutant
from tests.mutants.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.context import SpawnProcess

    from tests.mutants.memory import Memory

READY = "ready"
CRASHED = "the engine crashed"


def sit(pipe: Connection) -> None:
    """Judge the mutants that arrive on a pipe until it is closed."""
    # Must precede the import of the properties, which take their defaults from the loaded profile.
    settings.register_profile(
        "mutants",
        phases=[Phase.explicit, Phase.generate],
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
    )
    settings.load_profile("mutants")
    from tests.mutants.judges import Court  # noqa: PLC0415

    court = Court()
    pipe.send(Verdict(READY, ()))
    while True:
        try:
            mutant, known = pipe.recv()
        except EOFError:
            court.close()
            return
        try:
            pipe.send(court.judge(mutant, known))
        except Exception as error:
            error.add_note(f"while judging {mutant.key}")
            pipe.send(error)
            raise


class Queue:
    """Mutants queued by file. A process stays with one file, because it has loaded its tests."""

    def __init__(self, mutants: list[Mutant]) -> None:
        self._files: dict[str, list[Mutant]] = {}
        for mutant in reversed(mutants):
            self._files.setdefault(mutant.file, []).append(mutant)
        self._taken: set[str] = set()

    def following(self, file: str | None) -> Mutant | None:
        """Return the next mutant for a process that works on a file, or None if all are judged."""
        left = [name for name, mutants in self._files.items() if mutants]
        if not left:
            return None
        if file not in left:
            untaken = [name for name in left if name not in self._taken]
            file = max(untaken or left, key=lambda name: len(self._files[name]))
            self._taken.add(file)
        return self._files[file].pop()


class Worker:
    """A process and its current mutant."""

    def __init__(self) -> None:
        self.mutant: Mutant | None = None
        self.start()

    def start(self) -> None:
        """Start the process and wait until it is ready."""
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=sit, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def send(self, mutant: Mutant, known: Verdict | None) -> None:
        """Send a mutant to the process."""
        self.mutant = mutant
        self.pipe.send((mutant, known))

    def verdict(self) -> Verdict:
        """Return the verdict of the process, or that it has crashed.

        Raises:
            RuntimeError: The process ended before it received a mutant.
        """
        try:
            said = self.pipe.recv()
        except EOFError:
            if self.mutant is None:
                raise RuntimeError("a process of the judges ended before it was ready") from None
            self.start()
            return Verdict(CRASHED, ())
        if isinstance(said, Exception):
            raise said
        return said  # type: ignore[no-any-return]


def judge_all(
    mutants: list[Mutant], processes: int, memory: Memory
) -> Iterator[tuple[Mutant, Verdict]]:
    """Yield each mutant with its verdict, as soon as it is known."""
    queue = Queue(mutants)
    workers = [Worker() for _ in range(processes)]
    while workers:
        said = wait([worker.pipe for worker in workers])
        for worker in [worker for worker in workers if worker.pipe in said]:
            mutant, verdict = worker.mutant, worker.verdict()
            if mutant is not None:
                yield mutant, verdict
            if verdict.who == CRASHED:
                worker.mutant = None
            elif following := queue.following(mutant.file if mutant else None):
                worker.send(following, memory.recall(following))
            else:
                worker.pipe.close()
                worker.process.join()
                workers.remove(worker)
