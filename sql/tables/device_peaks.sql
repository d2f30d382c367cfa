-- What devices can do at most, as their makers state it: arithmetic by type, without sparsity, and memory.
--
-- A list of the library, the same for every store: sql/tables/device_peaks.csv. The pattern of the lowest priority that
-- is found in the name of a model holds. TFLOP/s of a type count products of matrices where a device has units for
-- them; fp64_vector and fp32_vector are all other arithmetic. Sums are taken in float, on consumer cards at half the
-- rate of sums in half. What a maker does not state, or a device does not have, is NULL.
CREATE OR REPLACE VIEW device_peaks AS
-- Columns:
--   priority            INTEGER [1]       Lower ones decide first.
--   pattern             VARCHAR           Regular expression that is looked for in the model's name.
--   fp64_vector_tflops  DOUBLE [TFLOP/s]  Double.
--   fp32_vector_tflops  DOUBLE [TFLOP/s]  Float.
--   fp64_tflops         DOUBLE [TFLOP/s]  Products of matrices of double.
--   fp32_tflops         DOUBLE [TFLOP/s]  Of float.
--   tf32_tflops         DOUBLE [TFLOP/s]  Of float, rounded to 10 bits of mantissa.
--   fp16_tflops         DOUBLE [TFLOP/s]  Of half.
--   bf16_tflops         DOUBLE [TFLOP/s]  Of bfloat16.
--   fp8_tflops          DOUBLE [TFLOP/s]  Of eight bits.
--   int8_tflops         DOUBLE [TFLOP/s]  Of bytes.
--   memory_tbps         DOUBLE [TB/s]     Memory of the device.
--   source              VARCHAR           Where the maker states it.
SELECT
    x.priority,
    x.pattern,
    x.fp64_vector_tflops,
    x.fp32_vector_tflops,
    x.fp64_tflops,
    x.fp32_tflops,
    x.tf32_tflops,
    x.fp16_tflops,
    x.bf16_tflops,
    x.fp8_tflops,
    x.int8_tflops,
    x.memory_tbps,
    x.source
FROM stored.device_peaks AS x
