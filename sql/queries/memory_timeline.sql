-- Bytes in use by category after each instant of torch's raw memory timeline, parsed from the JSON string in $text.
--
-- The JSON is a list of [ns, action, bytes, category], where bytes are negative for a release.
--
-- Memory allocated before the recording has a negative time, which is replaced with the first positive time. As in
-- HTA, a new row begins if the time of an event differs from the time of the previous event.
WITH
    file AS (
        SELECT $text::JSON::BIGINT[][] AS events
    ),
    events AS (
        SELECT unnest(f.events) AS event, generate_subscripts(f.events, 1) AS position
        FROM file AS f
    ),
    instants AS (
        SELECT
            e.position,
            e.event[1] AS ts,
            e.event[3] AS bytes,
            e.event[4] AS category,
            coalesce(e.event[1] <> lag(e.event[1]) OVER (ORDER BY e.position), true) AS is_new
        FROM events AS e
    ),
    numbered AS (
        SELECT i.*, sum(i.is_new::INTEGER) OVER (ORDER BY i.position) AS instant
        FROM instants AS i
    ),
    changes AS (
        SELECT
            n.instant,
            any_value(n.ts) AS ts,
            coalesce(sum(n.bytes) FILTER (WHERE n.category = 0), 0)::BIGINT AS parameter,
            coalesce(sum(n.bytes) FILTER (WHERE n.category = 1), 0)::BIGINT AS optimizer_state,
            coalesce(sum(n.bytes) FILTER (WHERE n.category = 2), 0)::BIGINT AS input,
            coalesce(sum(n.bytes) FILTER (WHERE n.category = 3), 0)::BIGINT AS temporary,
            coalesce(sum(n.bytes) FILTER (WHERE n.category = 4), 0)::BIGINT AS activation,
            coalesce(sum(n.bytes) FILTER (WHERE n.category = 5), 0)::BIGINT AS gradient,
            coalesce(sum(n.bytes) FILTER (WHERE n.category = 6), 0)::BIGINT AS autograd_detail,
            coalesce(sum(n.bytes) FILTER (WHERE n.category = 7), 0)::BIGINT AS unknown
        FROM numbered AS n
        GROUP BY n.instant
    ),
    first_positive AS (
        SELECT coalesce(min(c.ts) FILTER (WHERE c.ts > 0), max(c.ts)) AS ts
        FROM changes AS c
    )
SELECT
    CASE WHEN c.ts < 0 THEN f.ts ELSE c.ts END AS ts,
    (sum(c.parameter) OVER so_far)::BIGINT AS parameter_bytes,
    (sum(c.optimizer_state) OVER so_far)::BIGINT AS optimizer_state_bytes,
    (sum(c.input) OVER so_far)::BIGINT AS input_bytes,
    (sum(c.temporary) OVER so_far)::BIGINT AS temporary_bytes,
    (sum(c.activation) OVER so_far)::BIGINT AS activation_bytes,
    (sum(c.gradient) OVER so_far)::BIGINT AS gradient_bytes,
    (sum(c.autograd_detail) OVER so_far)::BIGINT AS autograd_bytes,
    (sum(c.unknown) OVER so_far)::BIGINT AS unknown_bytes
FROM changes AS c, first_positive AS f
WINDOW so_far AS (ORDER BY c.instant)
ORDER BY c.instant
