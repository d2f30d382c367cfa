"""HTA's constants."""

from __future__ import annotations

__all__ = ["CUDA_MAX_LAUNCH_QUEUE_PER_STREAM"]

CUDA_MAX_LAUNCH_QUEUE_PER_STREAM = 1024
"""Operations from which on a stream's queue counts as full; recorded queues block at 1,022."""
