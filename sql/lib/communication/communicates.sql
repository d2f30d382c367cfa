-- Whether an operator of the host belongs to a communication library.
CREATE OR REPLACE MACRO lib.communicates(
    -- Name of an operator.
    op_name
) AS
-- Returns: BOOLEAN  Whether the operator communicates.
regexp_matches(op_name, '^(c10d|nccl|gloo|_c10d_functional|record_param_comms)')
