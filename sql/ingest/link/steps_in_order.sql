-- Start, end and number of each profiler step that an event can lie in, in order.
SELECT w.ts, w.end_ts, w.step
FROM step_windows AS w
WHERE w.step IS NOT NULL AND w.ts < w.end_ts
ORDER BY w.ts
