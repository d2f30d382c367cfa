"""Common questions about a job, each with the command that answers it."""

from __future__ import annotations

QUESTIONS = (
    ("What should I do first?", "hta-sql advice JOB"),
    ("Where does a step go?", "hta-sql run JOB step_accounting"),
    ("Where does it go on the host?", "hta-sql run JOB host_accounting"),
    ("Why is my GPU idle?", "hta-sql run JOB idle_causes"),
    ("Which rank is late, and why?", "hta-sql run JOB stragglers"),
    ("What costs the most?", "hta-sql run JOB top_costs"),
    ("From which line?", "hta-sql run JOB source_lines"),
    ("Is communication overlapped?", "hta-sql run JOB comm_comp_overlap"),
    ("Where is the memory peak?", "hta-sql run JOB memory_peaks"),
    ("Are the tensor cores used?", "hta-sql run JOB gpu_summary"),
    ("Which step is an outlier?", "hta-sql run JOB step_time_stats"),
    ("What changed between two runs?", "hta-sql compare JOB JOB"),
    ("What is missing in the trace?", "hta-sql doctor JOB"),
    ("Where does serving time go?", "hta-sql serving JOB"),
    ("What hangs, and who caused it?", "hta-sql hang DUMPS"),
    ("What fills the memory?", "hta-sql run JOB snapshot_peak"),
)
"""Question ─▶ command; JOB is a store, a trace or a folder of traces."""
