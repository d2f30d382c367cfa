"""A caching allocator: where GPU memory goes, and how much is in use."""

from __future__ import annotations

from collections import defaultdict

_SEGMENT = 2 * 1024 * 1024


class Allocator:
    """Gives out addresses and counts bytes, as torch's does."""

    def __init__(self) -> None:
        self.allocated = 0
        self.reserved = 0
        self._next = 0x7F0000000000
        self._free: defaultdict[int, list[int]] = defaultdict(list)

    def allocate(self, size: int) -> int:
        """Return an address; those that were released are used again for equal sizes."""
        self.allocated += size
        # Whole segments are reserved, and kept.
        self.reserved = max(self.reserved, -(-self.allocated // _SEGMENT) * _SEGMENT)
        if self._free[size]:
            return self._free[size].pop()
        self._next += size
        return self._next - size

    def release(self, address: int, size: int) -> None:
        """Take back what `allocate` gave."""
        self.allocated -= size
        self._free[size].append(address)
