-- By which formula the work of an operator follows from its inputs, and where among them the numbers stand.
--
-- Places count from 0, as in the operator's signature; -1: there is none. The first pattern that fits a name as a whole
-- holds. A wrapper mostly calls another operator, which then does the work: it counts where a kernel of its own does.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.operator_models(
    -- Name of a relation with name: operators without their overload.
    named_ops
) AS TABLE
-- Columns:
--   name        VARCHAR   Name, each once; those without a formula are left out.
--   model       VARCHAR   Formula: gemm, conv, attention, norm, softmax, elementwise, reduce, index, ….
--   variant     VARCHAR   Which form of it.
--   places      BIGINT[]  Places of what it needs; what they are hangs on the formula.
--   is_wrapper  BOOLEAN   Mostly calls another operator.
WITH
    _models(place, pattern, model, variant, places, is_wrapper) AS (
        VALUES
            -- Places: a, b, what is added, type of the output, factor of what is added.
            (1, 'aten::(mm|bmm)', 'gemm', 'mm', [0, 1, -1, -1, -1], false),
            (2, 'aten::(addmm|_addmm_activation|baddbmm)', 'gemm', 'mm', [1, 2, 0, -1, 3], false),
            (3, 'aten::_int_mm', 'gemm', 'int', [0, 1, -1, -1, -1], false),
            (4, 'aten::_scaled_mm', 'gemm', 'mm', [0, 1, 4, 6, -1], false),
            (5, 'aten::linear', 'gemm', 'linear', [0, 1, 2, -1, -1], true),
            (6, 'aten::matmul', 'gemm', 'matmul', [0, 1, -1, -1, -1], true),
            (7, 'aten::mv', 'gemm', 'mv', [0, 1, -1, -1, -1], false),
            (8, 'aten::addmv', 'gemm', 'mv', [1, 2, 0, -1, 3], false),
            (9, 'aten::(dot|vdot)', 'gemm', 'dot', [0, 1, -1, -1, -1], false),
            -- Places: a, b, ends of the groups, type of the output.
            (10, 'aten::_grouped_mm', 'grouped', '', [0, 1, 2, 4], false),
            (11, 'aten::_scaled_grouped_mm', 'grouped', '', [0, 1, 4, 7], false),
            -- Places: input, weight, stride, padding, dilation, bias, whether it is transposed (-2: it is), what is added to
            -- the sizes of a transposed output, groups.
            (20, 'aten::(conv[123]d)', 'conv', '', [0, 1, 3, 4, 5, 2, -1, -1, 6], true),
            (21, 'aten::_?convolution(_overrideable)?', 'conv', '', [0, 1, 3, 4, 5, 2, 6, 7, 8], true),
            (22, 'aten::cudnn_convolution', 'conv', '', [0, 1, 3, 2, 4, -1, -1, -1, 5], false),
            (23, 'aten::cudnn_convolution_transpose', 'conv', '', [0, 1, 4, 2, 5, -1, -2, 3, 6], false),
            (24, 'aten::cudnn_convolution_relu', 'conv', '', [0, 1, 3, 4, 5, 2, -1, -1, 6], false),
            (25, 'aten::(miopen|mkldnn)_convolution', 'conv', '', [0, 1, 4, 3, 5, 2, -1, -1, 6], false),
            (26, 'aten::miopen_depthwise_convolution', 'conv', '', [0, 1, 4, 3, 5, 2, -1, -1, 6], false),
            (27, 'aten::miopen_convolution_transpose', 'conv', '', [0, 1, 5, 3, 6, 2, -2, 4, 7], false),
            (28, 'aten::_conv_depthwise2d', 'conv', '', [0, 1, 4, 5, 6, 3, -1, -1, -1], false),
            -- Places: gradient, input, weight, whether it is transposed, gradients wanted.
            (29, 'aten::convolution_backward(_overrideable)?', 'conv_backward', '', [0, 1, 2, 7, 10], false),
            -- Places: query (key and value follow), whether it is causal, lengths of sequences, left window, right window.
            (40, 'aten::_flash_attention_forward', 'attention', 'bshd', [0, 8, 3, 11, 12], false),
            (41, 'aten::_flash_attention_backward', 'attention_backward', 'bshd', [1, 11, 6, 15, 16], false),
            (42, 'aten::_efficient_attention_forward', 'attention', 'bshd', [0, 9, 4, -1, -1], false),
            (43, 'aten::_efficient_attention_backward', 'attention_backward', 'bshd', [1, 14, 6, -1, -1], false),
            (44, 'aten::_cudnn_attention_forward', 'attention', 'bhsd', [0, 10, 4, -1, -1], false),
            (45, 'aten::scaled_dot_product_attention', 'attention', 'bhsd', [0, 5, -1, -1, -1], true),
            (46, 'aten::_scaled_dot_product_flash_attention', 'attention', 'bhsd', [0, 4, -1, -1, -1], true),
            (47, 'aten::_scaled_dot_product_flash_attention_for_cpu', 'attention', 'bhsd', [0, 4, -1, -1, -1], false),
            (48, 'aten::_scaled_dot_product_efficient_attention', 'attention', 'bhsd', [0, 6, -1, -1, -1], true),
            (49, 'aten::_scaled_dot_product_cudnn_attention', 'attention', 'bhsd', [0, 6, -1, -1, -1], true),
            (50, 'aten::_scaled_dot_product_flash_attention_backward', 'attention_backward', 'bhsd', [1, 11, 6, -1, -1], true),
            (51, 'aten::_scaled_dot_product_efficient_attention_backward', 'attention_backward', 'bhsd', [1, 11, -1, -1, -1], true),
            (52, 'aten::_scaled_dot_product_cudnn_attention_backward', 'attention_backward', 'bhsd', [1, 14, 9, -1, -1], true),
            (53, 'flash_attn::_flash_attn_forward', 'attention', 'bshd', [0, 5, -1, 6, 7], false),
            (54, 'flash_attn::_flash_attn_backward', 'attention_backward', 'bshd', [1, 11, -1, 12, 13], false),
            (55, 'flash_attn_3::fwd', 'attention', 'bshd', [0, 23, 7, 24, 25], false),
            (56, 'flash_attn_3::bwd', 'attention_backward', 'bshd', [1, 16, 9, 17, 18], false),
            -- Place: input.
            (60, 'aten::((native|cudnn|miopen)_batch_norm|native_(layer|group)_norm|_native_batch_norm_legit|_batch_norm_with_update)', 'norm', 'norm', [0], false),
            (61, 'aten::((native|cudnn|miopen)_batch_norm|native_(layer|group)_norm)_backward', 'norm', 'norm_backward', [0], false),
            (62, 'aten::_fused_rms_norm', 'norm', 'rms_norm', [0], false),
            (63, 'aten::_fused_rms_norm_backward', 'norm', 'rms_norm_backward', [0], false),
            (64, 'aten::_(log_)?softmax', 'softmax', 'softmax', [0], false),
            (65, 'aten::_(log_)?softmax_backward_data', 'softmax', 'softmax_backward', [0], false),
            -- Place: number of inputs that are read.
            (70, 'aten::copy_', 'elementwise', 'copy', [2], false),
            (71, 'aten::(fill_|zero_)', 'elementwise', 'fill', [1], false),
            (72, 'aten::(eq|ne|lt|le|gt|ge|logical_(and|or|xor)|isclose)', 'elementwise', 'bool', [2], false),
            (73, 'aten::(logical_not|isnan|isinf|isfinite)', 'elementwise', 'bool', [1], false),
            (74, 'aten::(where|lerp_?|addcmul_?|addcdiv_?)', 'elementwise', '', [3], false),
            (75, 'aten::(add|sub|rsub|mul|pow|remainder|fmod|maximum|minimum|fmax|fmin|atan2|masked_fill|bitwise_(and|or|xor)|__(and|or|xor)__)_?', 'elementwise', '', [2], false),
            (76, 'aten::(div|true_divide)_?', 'elementwise', 'float', [2], false),
            (77, 'aten::(threshold|gelu|silu|sigmoid|tanh|leaky_relu|hardtanh|hardswish|hardsigmoid|softplus|mish)_backward', 'elementwise', '', [2], false),
            (78, 'aten::(sqrt|rsqrt|exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|tanh|erf|erfinv|reciprocal|sigmoid)_?', 'elementwise', 'float', [1], false),
            (79, 'aten::(abs|neg|sign|floor|ceil|round|trunc|square|relu|relu6|leaky_relu|elu|gelu|silu|mish|softplus|hardtanh|hardswish|hardsigmoid|threshold|clamp|clamp_min|clamp_max|bitwise_not)_?', 'elementwise', '', [1], false),
            (80, 'torch::distributed::reducer::mul_out', 'elementwise', '', [2], false),
            -- Place: dimensions.
            (90, 'aten::(sum|nansum)', 'reduce', 'sum', [1], false),
            (91, 'aten::(mean|nanmean|amax|amin|prod|var|std|logsumexp)', 'reduce', 'same', [1], false),
            (92, 'aten::(norm|linalg_vector_norm)', 'reduce', 'same', [2], false),
            (93, 'aten::(argmax|argmin)', 'reduce', 'long', [1], false),
            (94, 'aten::(any|all)', 'reduce', 'bool', [1], false),
            (95, 'aten::(max|min)', 'reduce', 'both', [1], false),
            (96, 'aten::(cumsum|_cumsum)', 'reduce', 'scan', [-1], false),
            -- Places: values, indices.
            (100, 'aten::index_select', 'index', 'select', [0, 2], false),
            (101, 'aten::embedding', 'index', 'rows', [0, 1], false),
            (102, 'aten::gather', 'index', 'gather', [0, 2], false),
            -- Code of a compiler: not known, but no product of matrices.
            (110, 'triton_(poi|red|per|for)_.*', 'fused', '', [], false)
    ),
    _names AS (
        SELECT DISTINCT n.name FROM query_table(named_ops) AS n WHERE n.name IS NOT NULL
    ),
    _found AS (
        SELECT n.name, arg_min({'model': m.model, 'variant': m.variant, 'places': m.places, 'is_wrapper': m.is_wrapper}, m.place) AS known
        FROM _names AS n
        JOIN _models AS m ON regexp_full_match(n.name, m.pattern)
        GROUP BY n.name
    )
SELECT
    f.name AS name, f.known.model AS model, f.known.variant AS variant, f.known.places::BIGINT[] AS places,
    f.known.is_wrapper AS is_wrapper
FROM _found AS f
