-- $flaws: a few chunks' worth of them.
INSERT INTO flaws
WITH
    new AS (
        SELECT unnest(
            $flaws::STRUCT(chunk BIGINT, "position" BIGINT, byte_offset BIGINT, byte_count BIGINT, is_lost BOOLEAN, reason VARCHAR, excerpt VARCHAR)[]
        ) AS f
    )
SELECT n.f.chunk, n.f."position", n.f.byte_offset, n.f.byte_count, n.f.is_lost, n.f.reason, n.f.excerpt
FROM new AS n
