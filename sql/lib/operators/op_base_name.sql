-- Operator name without its overload, or profiler step name without its number.
CREATE OR REPLACE MACRO lib.op_base_name(
    -- Recorded name, such as aten::add.Tensor or ProfilerStep#3.
    op_name
) AS
-- Returns: VARCHAR  Name, such as aten::add or ProfilerStep*; other names unchanged.
CASE
    WHEN starts_with(op_name, 'ProfilerStep#') THEN 'ProfilerStep*'
    WHEN contains(op_name, '.') THEN regexp_replace(op_name, '^(\w+::\w+)\.\w+$', '\1')
    ELSE op_name
END
