-- Where an event goes: a byte an event, and a comparison of numbers in each extract.
CREATE TYPE event_target AS ENUM (
    'cpu_ops', 'runtime_calls', 'gpu_ops', 'annotations', 'python_calls', 'memory_events', 'flows',
    'counters', 'other_events', 'quarantine', 'refused'
)
