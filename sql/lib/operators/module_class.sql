-- Class of an nn.Module: its name without the instance number.
CREATE OR REPLACE MACRO lib.module_class(
    -- Name of the module, such as Linear_3.
    module
) AS
-- Returns: VARCHAR  Class, such as Linear.
regexp_replace(module, '_\d+$', '')
