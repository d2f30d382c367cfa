-- The chunks that hold an event that was set aside.
SELECT DISTINCT a.chunk
FROM set_aside AS a
