-- Of each profiler step that an event can lie in: its trace, start, end and number, in order.
SELECT w.part, w.ts, w.end_ts, w.step
FROM step_windows AS w
WHERE w.step IS NOT NULL AND w.ts < w.end_ts
ORDER BY w.part, w.ts
