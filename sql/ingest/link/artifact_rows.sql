-- Add rows of memory snapshots and execution traces to their staged tables, one batch at a time.

-- name: snapshot_segments
INSERT INTO staged_snapshot_segments FROM artifact_rows;

-- name: snapshot_blocks
INSERT INTO staged_snapshot_blocks FROM artifact_rows;

-- name: snapshot_events
INSERT INTO staged_snapshot_events FROM artifact_rows;

-- name: snapshot_annotations
INSERT INTO staged_snapshot_annotations FROM artifact_rows;

-- name: snapshot_frames
INSERT INTO staged_snapshot_frames FROM artifact_rows;

-- name: et_nodes
INSERT INTO staged_et_nodes FROM artifact_rows;

-- name: et_tensors
INSERT INTO staged_et_tensors FROM artifact_rows;
