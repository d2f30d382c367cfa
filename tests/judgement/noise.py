"""Random noise of one rank, which is the same with and without a fault.

Random numbers depend on the position in the program, not on the time.
"""

from __future__ import annotations

from math import exp
from random import Random

from tests.judgement.job import Job


class Noises:
    """Source of random factors on the work of one rank.

    Args:
        job: Job whose seed determines all random numbers.
        rank: The rank.
    """

    def __init__(self, job: Job, rank: int) -> None:
        self.job, self.rank = job, rank
        self._seed = job.seed * 1_000_003 + rank * 7_919
        random = Random(self._seed)
        self._rank_factor = 1 + random.gauss(0, job.rank_spread)
        self._lasting = random.gauss(0, job.noise_share)
        self._random = random
        self._step_factor = 1.0

    def begin_step(self, step: int) -> None:
        """Draw the random values that apply to the whole step."""
        share = self.job.noise_share
        self._random = random = Random(self._seed + 104_729 * (step + 100))
        self._other = Random(self._seed + 15_485_863 * (step + 100))
        self._factor = 1.0
        if self.job.noise == "autocorrelated":
            self._lasting = 0.7 * self._lasting + random.gauss(0, 0.7 * share)
            self._factor = 1 + self._lasting
        elif self.job.noise == "bursts" and random.random() < 0.04:
            self._factor = 1 + random.expovariate(1 / 0.15)
        self._length = exp(random.gauss(0, self.job.length_spread))

    def length(self) -> float:
        """Return the factor on the duration of a layer that models this step's sequence lengths."""
        return self._length if self.job.length_spread else 1.0

    def kernel(self) -> float:
        """Return the factor on the duration of the next kernel."""
        share, random = self.job.noise_share, self._random
        if self.job.noise == "heavy tails":
            own = 1 + share * random.lognormvariate(0, 1)
        else:
            own = 1 + random.gauss(0, share)
        return max(0.2, own * self._factor * self._rank_factor)

    def host(self) -> float:
        """Return the factor on the duration of the host's next work."""
        jitter = 0.5 if self.job.noise == "host jitter" else 0.1
        return max(0.3, self._random.lognormvariate(0, jitter))

    def scatter(self) -> float:
        """Return the delay with which the rank leaves a collective [ns]."""
        return self._random.expovariate(1 / 300)

    def pauses(self) -> bool:
        """Return whether the host pauses at this point if it has the fault ``host pauses``."""
        return self._other.random() < 0.25

    def link(self) -> float:
        """Return the noise of the next transfer, in standard deviations."""
        return self._random.gauss(0, 1)
