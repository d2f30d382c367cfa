-- Peak compute rate by data type, without sparsity, and peak memory bandwidth of device models, as stated by vendors.
--
-- A built-in table, the same for every store: sql/tables/device_peaks.csv. If several patterns match the model name,
-- the one with the lowest priority is used. Rates of a data type are for matrix products if the device has units for
-- matrix products; fp64_vector and fp32_vector are for all other arithmetic. Rates are for accumulation in single
-- precision, which consumer cards run at half the rate of accumulation in half precision. Rates that the vendor does
-- not state or the device does not support are NULL.
CREATE OR REPLACE VIEW device_peaks AS
-- Columns:
--   priority            INTEGER [1]       Priority of the rule; if several rules match, the lowest applies.
--   pattern             VARCHAR           Regular expression that is searched for in the model name.
--   fp64_vector_tflops  DOUBLE [TFLOP/s]  Peak rate of vector arithmetic in double precision.
--   fp32_vector_tflops  DOUBLE [TFLOP/s]  Peak rate of vector arithmetic in single precision.
--   fp64_tflops         DOUBLE [TFLOP/s]  Peak rate of matrix products in double precision.
--   fp32_tflops         DOUBLE [TFLOP/s]  Peak rate of matrix products in single precision.
--   tf32_tflops         DOUBLE [TFLOP/s]  Peak rate of matrix products in TF32 (float with a mantissa of 10 bits).
--   fp16_tflops         DOUBLE [TFLOP/s]  Peak rate of matrix products in half precision.
--   bf16_tflops         DOUBLE [TFLOP/s]  Peak rate of matrix products in bfloat16.
--   fp8_tflops          DOUBLE [TFLOP/s]  Peak rate of matrix products in 8-bit floating point.
--   int8_tflops         DOUBLE [TFLOP/s]  Peak rate of matrix products in 8-bit integers.
--   memory_tbps         DOUBLE [TB/s]     Peak memory bandwidth of the device.
--   source              VARCHAR           Document that states the values.
SELECT x.*
FROM stored.device_peaks AS x
