-- Frames of a recorded call stack that torch's profiler shows.
--
-- The profiler omits the autograd frames that start the backward pass, and frames of its own tests.
--
-- Reference: torch/autograd/profiler.py, _filter_stack_entry
CREATE OR REPLACE MACRO lib.counted_stack(
    -- Recorded frames, separated by semicolons; NULL: none.
    recorded
) AS
-- Returns: VARCHAR[]  Frames, innermost first.
list_filter(
    string_split(coalesce(recorded, ''), ';'),
    lambda f: f <> ''
        AND NOT (contains(f, 'autograd/__init__') AND (contains(f, '_make_grads') OR contains(f, 'backward')))
        AND NOT (contains(f, 'torch/tensor') AND contains(f, 'backward'))
        AND NOT (
            contains(f, '_internal/common_utils')
            AND (contains(f, 'prof_callable') OR contains(f, 'prof_func_call') OR contains(f, 'prof_meth_call'))
        )
)
