-- Which names of kernels tell whether they run on tensor cores, or on AMD's matrix cores.
--
-- A list of the library, the same for every store: sql/tables/tensor_core_kernels.csv. The pattern of the
-- lowest priority that a name matches decides; a name that matches none is not known.
CREATE OR REPLACE VIEW tensor_core_kernels AS
-- Columns:
--   priority           INTEGER [1]  Lower ones decide first; of one priority the first pattern in the alphabet.
--   pattern            VARCHAR      What a name in lower case matches as a whole: * is any text, ? any letter (GLOB).
--   uses_tensor_cores  BOOLEAN      Whether such kernels run on them; NULL where the name does not tell.
--   vendor             VARCHAR      Whose kernels; NULL: of several.
--   reason             VARCHAR      What the pattern stands for.
SELECT
    x.priority,
    x.pattern,
    x.uses_tensor_cores,
    x.vendor,
    x.reason
FROM stored.tensor_core_kernels AS x
