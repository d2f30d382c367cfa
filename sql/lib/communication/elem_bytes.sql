-- Element size of a data type by its name in torch, torch's profiler (c10::BFloat16, long int) or Ascend's recorder.
CREATE OR REPLACE MACRO lib.elem_bytes(
    -- Name of the data type.
    elem_type_name
) AS
-- Returns: INTEGER [bytes]  Size of an element; NULL for an unknown type.
CASE
    WHEN elem_type_name IN ('Float', 'Int', 'UInt32', 'QInt32', 'FP32', 'INT32', 'UINT32', 'ComplexHalf') THEN 4
    WHEN elem_type_name IN ('BFloat16', 'Half', 'Short', 'UInt16', 'FP16', 'BFP16', 'BF16', 'INT16', 'UINT16') THEN 2
    WHEN elem_type_name IN ('Double', 'Long', 'UInt64', 'FP64', 'INT64', 'UINT64', 'ComplexFloat') THEN 8
    WHEN elem_type_name IN ('Byte', 'Char', 'Bool', 'QInt8', 'QUInt8', 'INT8', 'UINT8') OR starts_with(elem_type_name, 'Float8') THEN 1
    WHEN elem_type_name = 'ComplexDouble' THEN 16
    WHEN elem_type_name IN ('float', 'int', 'unsigned int', 'c10::complex<c10::Half>') THEN 4
    WHEN elem_type_name IN ('c10::BFloat16', 'c10::Half', 'short int', 'short', 'short unsigned int', 'unsigned short') THEN 2
    WHEN elem_type_name IN ('double', 'long int', 'long', 'long unsigned int', 'unsigned long', 'c10::complex<float>') THEN 8
    WHEN elem_type_name IN ('bool', 'unsigned char', 'signed char', 'char') OR starts_with(elem_type_name, 'c10::Float8') THEN 1
    WHEN elem_type_name = 'c10::complex<double>' THEN 16
END
