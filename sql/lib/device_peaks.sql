-- What devices can do at most, as their makers state it: arithmetic by type, without sparsity, and memory.
--
-- The first pattern that is found in the name of a model holds. TFLOP/s of a type count products of matrices where a
-- device has units for them; fp64_vector and fp32_vector are all other arithmetic. Sums are taken in float, on consumer
-- cards at half the rate of sums in half. What a maker does not state, or a device does not have, is NULL.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.device_peaks(
) AS TABLE
-- Columns:
--   place               BIGINT [1]        Order in which patterns are tried.
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
    v.place::BIGINT AS place, v.pattern, v.fp64v::DOUBLE AS fp64_vector_tflops, v.fp32v::DOUBLE AS fp32_vector_tflops,
    v.fp64::DOUBLE AS fp64_tflops, v.fp32::DOUBLE AS fp32_tflops, v.tf32::DOUBLE AS tf32_tflops, v.fp16::DOUBLE AS fp16_tflops,
    v.bf16::DOUBLE AS bf16_tflops, v.fp8::DOUBLE AS fp8_tflops, v.int8::DOUBLE AS int8_tflops, v.tbps::DOUBLE AS memory_tbps, v.source
FROM (
    -- Place, pattern, vectors of fp64 and fp32, matrices of fp64, fp32, tf32, fp16, bf16, fp8, int8, memory, source.
    VALUES
        (1, 'P100.*SXM', 5.3, 10.6, 5.3, 10.6, NULL, 21.2, NULL, NULL, NULL, 0.732, 'NVIDIA Tesla P100 datasheet, SXM2'),
        (2, 'P100.*PCI.*16', 4.7, 9.3, 4.7, 9.3, NULL, 18.7, NULL, NULL, NULL, 0.732, 'NVIDIA Tesla P100 datasheet, PCIe 16 GB'),
        (3, 'V100S', 8.2, 16.4, 8.2, 16.4, NULL, 130, NULL, NULL, NULL, 1.134, 'NVIDIA V100 datasheet, V100S PCIe'),
        (4, 'V100.*(SXM2|NVLINK|DGXS)', 7.8, 15.7, 7.8, 15.7, NULL, 125, NULL, NULL, NULL, 0.9, 'NVIDIA V100 datasheet, SXM2'),
        (5, 'V100.*PCI', 7.0, 14.0, 7.0, 14.0, NULL, 112, NULL, NULL, NULL, 0.9, 'NVIDIA V100 datasheet, PCIe'),
        (6, '\bT4\b', NULL, 8.1, NULL, 8.1, NULL, 65, NULL, NULL, 130, 0.32, 'NVIDIA T4 datasheet'),
        -- Half of the rates with sparsity that datasheets show.
        (10, 'A[18]00.*80GB PCI|A[18]00.*PCI.*80GB', 9.7, 19.5, 19.5, 19.5, 156, 312, 312, NULL, 624, 1.935, 'NVIDIA A100 datasheet, 80GB PCIe'),
        (11, 'A[18]00.*80GB', 9.7, 19.5, 19.5, 19.5, 156, 312, 312, NULL, 624, 2.039, 'NVIDIA A100 datasheet, 80GB SXM'),
        (12, 'A[18]00.*40GB', 9.7, 19.5, 19.5, 19.5, 156, 312, 312, NULL, 624, 1.555, 'NVIDIA A100 datasheet of 2020, 40GB'),
        (13, 'A[18]00', 9.7, 19.5, 19.5, 19.5, 156, 312, 312, NULL, 624, NULL, 'NVIDIA A100 datasheet; memory depends on the size, which the name lacks'),
        (14, '\bA30\b', 5.2, 10.3, 10.3, 10.3, 82, 165, 165, NULL, 330, 0.933, 'NVIDIA A30 datasheet'),
        (15, '\bA10G\b', NULL, 31.5, NULL, 31.5, 35, 70, 70, NULL, 140, 0.6, 'AWS EC2 G5 and NVIDIA A10G datasheet'),
        (16, '\bA10\b', NULL, 31.2, NULL, 31.2, 62.5, 125, 125, NULL, 250, 0.6, 'NVIDIA A10 datasheet'),
        (17, '\bA40\b', NULL, 37.4, NULL, 37.4, 74.8, 149.7, 149.7, NULL, 299.3, 0.696, 'NVIDIA A40 datasheet'),
        (18, 'RTX A6000', NULL, 38.7, NULL, 38.7, 77.4, 154.8, 154.8, NULL, 309.7, 0.768, 'NVIDIA RTX A6000 datasheet, Ampere GA102 whitepaper'),
        (19, 'RTX 3090$', NULL, 35.6, NULL, 35.6, 35.6, 71, 71, NULL, 284, 0.936, 'NVIDIA Ampere GA102 whitepaper'),
        (20, '\bL4\b', NULL, 30.3, NULL, 30.3, 60, 121, 121, 242.5, 242.5, 0.3, 'NVIDIA L4 datasheet'),
        (21, '\bL40S\b', NULL, 91.6, NULL, 91.6, 183, 362, 362, 733, 733, 0.864, 'NVIDIA L40S datasheet'),
        (22, '\bL40\b', NULL, 90.5, NULL, 90.5, 90.5, 181, 181, 362, 362, 0.864, 'NVIDIA L40 datasheet'),
        (23, 'RTX 4090$', NULL, 82.6, NULL, 82.6, 82.6, 165.2, 165.2, 330.3, 660.6, 1.008, 'NVIDIA Ada GPU architecture whitepaper'),
        (24, 'RTX 5090$', NULL, 104.8, NULL, 104.8, 104.8, 209.5, 209.5, 419, 838, 1.792, 'NVIDIA RTX Blackwell GPU architecture whitepaper'),
        (30, 'GH200.*144G', 34, 67, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 4.9, 'NVIDIA GH200 datasheet, HBM3e'),
        (31, 'GH200', 34, 67, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 4.0, 'NVIDIA GH200 datasheet, HBM3'),
        (32, 'H200 NVL', 30, 60, 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5, 4.8, 'NVIDIA H200 datasheet, NVL'),
        (33, 'H200', 34, 67, 67, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 4.8, 'NVIDIA H200 datasheet, SXM'),
        (34, 'H100 NVL', 30, 60, 60, 60, 417.5, 835.5, 835.5, 1670.5, 1670.5, 3.9, 'NVIDIA H100 datasheet, NVL'),
        (35, 'H100.*PCI', 25.6, 51.2, 51.2, 51.2, 378, 756, 756, 1513, 1513, 2.0, 'NVIDIA H100 architecture whitepaper, PCIe'),
        (36, 'H100', 33.5, 66.9, 66.9, 66.9, 494.7, 989.4, 989.4, 1978.9, 1978.9, 3.35, 'NVIDIA H100 architecture whitepaper, SXM5'),
        (37, 'H800.*PCI', 0.8, 51, 0.8, 51, 378, 756, 756, 1513, 1513, 2.0, 'NVIDIA H800 datasheet, PCIe'),
        (38, 'H800', 1.0, 67, 1.0, 67, 494.7, 989.4, 989.4, 1978.9, 1978.9, 3.35, 'NVIDIA H800 datasheet, SXM'),
        (39, 'H20$', 1.0, 44, 1.0, 44, 74, 148, 148, 296, 296, 4.0, 'NVIDIA H20 product brief'),
        (40, 'GB200', 40, 80, 40, 80, 1250, 2500, 2500, 5000, 5000, 8.0, 'NVIDIA GB200 NVL72 datasheet'),
        (41, 'B200', 37, 75, 37, 75, 1100, 2250, 2250, 4500, 4500, 7.7, 'NVIDIA HGX B200 datasheet'),
        (50, 'MI100', 11.5, 23.1, 11.5, 46.1, NULL, 184.6, 92.3, NULL, 184.6, 1.2288, 'AMD Instinct MI100 brochure'),
        (51, 'MI210', 22.6, 22.6, 45.3, 45.3, NULL, 181, 181, NULL, 181, 1.6384, 'AMD Instinct MI210 datasheet'),
        -- A card is two devices: each has half.
        (52, 'MI250X', 23.95, 23.95, 47.9, 47.9, NULL, 191.5, 191.5, NULL, 191.5, 1.6384, 'AMD Instinct MI250X datasheet, one of two dies'),
        (53, 'MI250', 22.65, 22.65, 45.25, 45.25, NULL, 181.05, 181.05, NULL, 181.05, 1.6384, 'AMD Instinct MI250 datasheet, one of two dies'),
        (54, 'MI300A', 61.3, 122.6, 122.6, 122.6, 490.3, 980.6, 980.6, 1961.2, 1961.2, 5.3, 'AMD Instinct MI300A datasheet'),
        (55, 'MI300X', 81.7, 163.4, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, 5.325, 'AMD Instinct MI300X datasheet'),
        (56, 'MI325X', 81.7, 163.4, 163.4, 163.4, 653.7, 1307.4, 1307.4, 2614.9, 2614.9, 6.0, 'AMD Instinct MI325X datasheet'),
        (57, 'MI350X', 72.1, 144.2, 72.1, 144.2, NULL, 2306.9, 2306.9, 4613.7, 4613.7, 8.0, 'AMD Instinct MI350X datasheet'),
        (58, 'MI355X', 78.6, 157.3, 78.6, 157.3, NULL, 2516.6, 2516.6, 5033.2, 5033.2, 8.0, 'AMD Instinct MI355X datasheet')
) AS v(place, pattern, fp64v, fp32v, fp64, fp32, tf32, fp16, bf16, fp8, int8, tbps, source)
