-- Rows of an execution trace are added to its staged tables, a batch at a time.

-- name: et_nodes
INSERT INTO staged_et_nodes FROM node_rows;

-- name: et_tensors
INSERT INTO staged_et_tensors FROM node_rows;
