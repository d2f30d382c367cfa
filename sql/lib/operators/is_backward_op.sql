-- Whether an operator belongs to the backward pass: autograd runs it for a forward operator, or its name identifies
-- it as a backward operator.
CREATE OR REPLACE MACRO lib.is_backward_op(
    -- Name of the operator, such as AddmmBackward0.
    op_name,
    -- Forward operator that the operator belongs to; NULL if unknown.
    forward_id
) AS
-- Returns: BOOLEAN  Whether the operator belongs to the backward pass.
forward_id IS NOT NULL
OR contains(op_name, 'Backward')
OR starts_with(op_name, 'autograd::engine::evaluate_function: ')
OR op_name = 'torch::autograd::AccumulateGrad'
