-- Device operations of graph replays, each with the launch that put it into its graph.
SELECT
    frame_of($frames, x.event_id).run AS run,
    frame_of($frames, x.event_id).rank AS rank,
    own_id(x.event_id) AS event_id,
    x.* EXCLUDE (event_id)
FROM graph_matches AS x
ORDER BY x.event_id
