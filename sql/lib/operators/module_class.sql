-- The class of an nn.Module: its name without the number that tells instances apart.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.module_class(
    -- Name of the module: Linear_3.
    module
) AS
-- Returns: VARCHAR  Linear.
regexp_replace(module, '_\d+$', '')
