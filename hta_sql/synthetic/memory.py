"""Simulate a caching allocator of GPU memory: addresses and bytes in use."""

from __future__ import annotations

from collections import defaultdict

_SEGMENT = 2 * 1024 * 1024


class Allocator:
    """Caching allocator that assigns addresses and counts bytes, like torch's."""

    def __init__(self) -> None:
        self.allocated = 0
        self.reserved = 0
        self._next = 0x7F0000000000
        self._free: defaultdict[int, list[int]] = defaultdict(list)

    def allocate(self, size: int) -> int:
        """Return an address; released addresses are reused for equal sizes."""
        self.allocated += size
        # Memory is reserved in whole segments, which are never returned.
        self.reserved = max(self.reserved, -(-self.allocated // _SEGMENT) * _SEGMENT)
        if self._free[size]:
            return self._free[size].pop()
        self._next += size
        return self._next - size

    def release(self, address: int, size: int) -> None:
        """Release memory that `allocate` returned."""
        self.allocated -= size
        self._free[size].append(address)
