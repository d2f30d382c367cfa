-- Operator calls on the device, one row each: kernel time, required work, and roofline time.
--
-- Only kernels of class computation are included. Kernels without an operator, and kernels of operators without a
-- formula, also have rows, with a reason. A wrapper's formula counts only if one of its own kernels is a matrix
-- product. Products of 32-bit floats count as TF32 if the kernel name shows TF32. If the name shows neither TF32 nor
-- single precision on a device with TF32, the peak is unknown.
CREATE OR REPLACE MACRO lib.modeled_calls(
    runs,
    ranks,
    steps,
    include_last_profiler_step,
    -- Peak compute rate for all data types [TFLOP/s], instead of device_peaks; NULL: from device_peaks.
    custom_tflops,
    -- Peak memory bandwidth [TB/s], instead of device_peaks; NULL: from device_peaks.
    custom_tbps
) AS TABLE
-- Columns:
--   run           VARCHAR           Run name.
--   rank          INTEGER           Rank of the process.
--   step          BIGINT            Profiler step that launched the operation; NULL outside steps.
--   device        BIGINT            Device number.
--   op_id         BIGINT            event_id of the operator; NULL for kernels launched outside operators, which are grouped by category.
--   name          VARCHAR           Name of that operator, or of the operator from which replayed kernels were captured, without overload; [graph replay] or [no operator].
--   match_method  VARCHAR           How the operator of the capture was found, as in graph_matches; NULL if the operator does not come from a capture.
--   category      VARCHAR           Kind of work.
--   event_id      BIGINT            event_id of the first device operation of the call.
--   input_shapes  VARCHAR           Input shapes as JSON.
--   input_types   VARCHAR           Input types as JSON.
--   kernels       VARCHAR           Names of the launched kernels in order of start, separated by ' -> '.
--   kernel_count  BIGINT [count]    Number of kernels.
--   device_ns     BIGINT [ns]       Total duration of the kernels.
--   has_products  BOOLEAN           Whether the name of a kernel shows matrix products or attention.
--   is_matrix     BOOLEAN           Whether the call consists of matrix products (GEMM, convolution, attention); NULL: unknown.
--   math_type     VARCHAR           Arithmetic type: bf16, tf32, fp32_vector, …; NULL: unknown.
--   flops         BIGINT [1]        Floating-point operations; NULL: unknown.
--   moved_bytes   BIGINT [bytes]    Bytes read and written; NULL: unknown.
--   peak_tflops   DOUBLE [TFLOP/s]  Peak compute rate for math_type; NULL: unknown.
--   peak_tbps     DOUBLE [TB/s]     Peak memory bandwidth; NULL: unknown.
--   roofline_ns   DOUBLE [ns]       Roofline time: lower bound on the duration; NULL: unknown.
--   reason_code   VARCHAR           Code, in the table messages, of the reason why a value is unknown.
WITH
    _calls AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.step, g.device, g.op_id, g.label AS name, g.category, g.match_method,
            g.match_method IS NOT NULL AS is_captured, arg_min(g.event_id, (g.ts, g.event_id)) AS event_id, coalesce(g.op_id, arg_min(g.event_id, (g.ts, g.event_id))) AS input_id,
            string_agg(g.name, ' -> ' ORDER BY g.ts, g.event_id) AS kernels,
            count(*) AS kernel_count,
            sum(g.dur)::BIGINT AS device_ns,
            coalesce(bool_or(g.kernel_category IN ('gemm', 'grouped_gemm', 'convolution', 'attention')), false) AS has_products,
            bool_or(regexp_matches(g.name, 'tf32|[^a-z0-9]s1688|tensorop|xf32', 'i')) AS is_tf32,
            bool_or(regexp_matches(g.name, 'sgemm|simt|ffma|scudnn|^Cijk_', 'i')) AS is_fp32
        FROM lib.categorized_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.class = 'computation' AND g.kind = 'kernel'
        GROUP BY
            g.run, g.rank, g.step, g.device, g.op_id, g.label, g.category, g.match_method,
            CASE WHEN g.captured_op_id IS NOT NULL THEN (g.launch_id, g.captured_op_id) END,
            CASE WHEN g.op_id IS NULL AND g.captured_op_id IS NULL THEN g.event_id END
    ),
    _operators AS (
        SELECT c.run, c.rank, c.event_id, false AS is_captured, c.name, c.input_dims, c.input_types, c.concrete_inputs
        FROM cpu_ops AS c
        SEMI JOIN (SELECT DISTINCT k.run, k.rank, k.op_id FROM _calls AS k) AS k ON k.run = c.run AND k.rank = c.rank AND k.op_id = c.event_id
        UNION ALL
        SELECT m.run, m.rank, m.event_id, true, m.captured_op_name, m.input_dims, m.input_types, m.concrete_inputs
        FROM graph_matches AS m
        SEMI JOIN (FROM _calls AS k WHERE k.is_captured) AS k ON k.run = m.run AND k.rank = m.rank AND k.input_id = m.event_id
    ),
    _inputs AS MATERIALIZED (
        SELECT
            c.run, c.rank, c.event_id, c.is_captured, c.input_dims, c.input_types, c.concrete_inputs,
            (hash(lib.op_base_name(c.name), c.input_dims, c.input_types, c.concrete_inputs) >> 1)::BIGINT AS call_id,
            lib.op_base_name(c.name) AS name
        FROM _operators AS c
    ),
    _arguments AS MATERIALIZED (
        SELECT
            i.call_id, any_value(i.name) AS name, any_value(i.input_dims) AS input_shapes, any_value(i.input_types) AS input_types,
            any_value(i.concrete_inputs) AS concrete_inputs
        FROM _inputs AS i
        GROUP BY i.call_id
    ),
    _work AS MATERIALIZED (
        SELECT w.* FROM lib._operator_work('_arguments') AS w
    ),
    _devices AS (
        SELECT m.run, m.rank, m.device, m.name AS device_name, p.*
        FROM lib.device_models(runs, ranks) AS m
        LEFT JOIN device_peaks AS p ON regexp_matches(m.name, p.pattern)
        QUALIFY row_number() OVER (PARTITION BY m.run, m.rank, m.device ORDER BY p.priority) = 1
    ),
    _worked AS (
        SELECT
            c.run, c.rank, c.step, c.device, c.op_id, c.name, c.match_method, c.category, c.event_id, i.input_dims AS input_shapes, i.input_types,
            c.kernels, c.kernel_count, c.device_ns, c.has_products,
            w.call_id IS NOT NULL AND (NOT w.is_wrapper OR c.has_products) AS is_known,
            CASE
                WHEN is_known THEN w.is_matrix
                -- Templates of Inductor contain products, whatever the name that they are given.
                WHEN c.has_products OR contains(c.kernels, 'triton_tem') THEN NULL
                -- Kernels of these categories contain no matrix products, whatever their inputs.
                WHEN c.category IN (
                    'norm', 'softmax', 'elementwise', 'reduce', 'copy', 'indexing', 'multi_tensor', 'loss', 'pooling', 'rope', 'quantization',
                    'kv_cache', 'triton'
                ) THEN false
            END AS is_matrix,
            CASE WHEN is_known THEN w.flops END AS flops,
            CASE WHEN is_known THEN w.moved_bytes END AS moved_bytes,
            CASE
                WHEN NOT is_known THEN NULL
                WHEN NOT w.is_matrix THEN CASE w.elem_type WHEN 'double' THEN 'fp64_vector' ELSE 'fp32_vector' END
                WHEN w.elem_type = 'c10::BFloat16' THEN 'bf16'
                WHEN w.elem_type = 'c10::Half' THEN 'fp16'
                WHEN starts_with(w.elem_type, 'c10::Float8') THEN 'fp8'
                WHEN w.elem_type IN ('signed char', 'unsigned char', 'char') THEN 'int8'
                WHEN w.elem_type = 'double' THEN 'fp64'
                WHEN w.elem_type = 'float' AND (c.is_fp32 OR p.priority IS NOT NULL AND p.tf32_tflops IS NULL) AND NOT c.is_tf32 THEN 'fp32'
                WHEN w.elem_type = 'float' AND c.is_tf32 THEN 'tf32'
            END AS math_type,
            CASE
                WHEN c.op_id IS NULL AND NOT c.is_captured THEN 'operator_work.launched_outside_operators'
                WHEN NOT is_known THEN 'operator_work.no_formula'
                ELSE w.reason_code
            END AS reason_code,
            w.elem_type, p.* EXCLUDE (run, rank, device)
        FROM _calls AS c
        LEFT JOIN _inputs AS i ON i.run = c.run AND i.rank = c.rank AND i.event_id = c.input_id AND i.is_captured = c.is_captured
        LEFT JOIN _work AS w ON w.call_id = i.call_id
        LEFT JOIN _devices AS p ON p.run = c.run AND p.rank = c.rank AND p.device IS NOT DISTINCT FROM c.device
    ),
    _peaked AS (
        SELECT
            w.*,
            coalesce(custom_tflops::DOUBLE, CASE w.math_type
                WHEN 'fp64_vector' THEN w.fp64_vector_tflops
                WHEN 'fp32_vector' THEN w.fp32_vector_tflops
                WHEN 'fp64' THEN w.fp64_tflops
                WHEN 'fp32' THEN w.fp32_tflops
                WHEN 'tf32' THEN w.tf32_tflops
                WHEN 'fp16' THEN w.fp16_tflops
                WHEN 'bf16' THEN w.bf16_tflops
                WHEN 'fp8' THEN w.fp8_tflops
                WHEN 'int8' THEN w.int8_tflops
            END) AS peak_tflops,
            coalesce(custom_tbps::DOUBLE, w.memory_tbps) AS peak_tbps
        FROM _worked AS w
    )
SELECT
    p.run AS run, p.rank AS rank, p.step AS step, p.device AS device, p.op_id AS op_id, p.name AS name, p.match_method AS match_method, p.category AS category,
    p.event_id AS event_id, p.input_shapes AS input_shapes, p.input_types AS input_types, p.kernels AS kernels, p.kernel_count AS kernel_count,
    p.device_ns AS device_ns, p.has_products AS has_products, p.is_matrix AS is_matrix,
    p.math_type AS math_type, p.flops AS flops, p.moved_bytes AS moved_bytes, p.peak_tflops AS peak_tflops, p.peak_tbps AS peak_tbps,
    lib.roofline_ns(p.flops, p.moved_bytes, p.peak_tflops, p.peak_tbps) AS roofline_ns,
    CASE
        WHEN p.reason_code IS NOT NULL THEN p.reason_code
        WHEN p.peak_tbps IS NULL AND p.device_name IS NULL THEN 'operator_work.unnamed_device'
        WHEN p.peak_tbps IS NULL AND p.priority IS NULL THEN 'operator_work.unknown_device'
        WHEN p.flops > 0 AND p.peak_tflops IS NULL AND p.math_type IS NULL AND p.elem_type = 'float' THEN 'operator_work.unknown_math_type'
        WHEN p.flops > 0 AND p.peak_tflops IS NULL OR p.peak_tbps IS NULL THEN 'operator_work.unknown_peak'
    END AS reason_code
FROM _peaked AS p
