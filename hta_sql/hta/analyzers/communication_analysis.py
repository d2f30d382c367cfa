"""How much communication is hidden, of a Trace."""

from __future__ import annotations

import pandas as pd

from hta_sql.hta.analyzers.over import over
from hta_sql.hta.common.trace import Trace

__all__ = ["CommunicationAnalysis"]


class CommunicationAnalysis:
    """What :class:`hta_sql.TraceAnalysis` does, for a trace that is open already."""

    @classmethod
    def get_comm_comp_overlap(cls, t: Trace, visualize: bool | None = None) -> pd.DataFrame:
        """See :meth:`hta_sql.TraceAnalysis.get_comm_comp_overlap`."""
        return over(t).get_comm_comp_overlap(visualize)
