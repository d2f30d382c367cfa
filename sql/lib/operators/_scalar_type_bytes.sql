-- Element size of a data type, given the number that torch records for a type argument.
--
-- Reference: c10/core/ScalarType.h
CREATE OR REPLACE MACRO lib._scalar_type_bytes(
    -- Number of the type as a string.
    type_number
) AS
-- Returns: INTEGER [bytes]  Size of an element; NULL for an unknown or missing number.
CASE
    WHEN type_number IN ('0', '1', '11', '12', '13', '23', '24', '25', '26') THEN 1
    WHEN type_number IN ('2', '5', '15') THEN 2
    WHEN type_number IN ('3', '6', '8', '14') THEN 4
    WHEN type_number IN ('4', '7', '9') THEN 8
    WHEN type_number = '10' THEN 16
END
