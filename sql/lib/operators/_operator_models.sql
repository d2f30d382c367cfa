-- Formula for the work of each operator, and the positions of its inputs among the arguments.
--
-- Positions count from 0 as in the operator's signature; -1: none. No name has two formulas. A wrapper usually calls
-- another operator that does the work; the wrapper counts only if it launches a kernel of its own.
CREATE OR REPLACE MACRO lib._operator_models(
    -- Name of a relation with name: operator names without overload.
    named_ops
) AS TABLE
-- Columns:
--   name        VARCHAR   Distinct operator names; names without a formula have no row.
--   model       VARCHAR   Formula: gemm, conv, attention, norm, softmax, elementwise, reduce, index, ….
--   variant     VARCHAR   Variant of the formula.
--   positions   BIGINT[]  Positions of the required arguments; their meaning depends on the formula.
--   is_wrapper  BOOLEAN   Whether the operator usually calls another operator that does the work.
WITH
    -- Names are listed, because one regular expression per formula would be compiled for each name, at 5 µs each.
    _models(namespace, names, model, variant, positions, is_wrapper) AS (
        VALUES
            -- Positions: a, b, addend, output type, factor of the addend.
            ('aten', 'mm bmm', 'gemm', 'mm', [0, 1, -1, -1, -1], false),
            ('aten', 'addmm _addmm_activation baddbmm', 'gemm', 'mm', [1, 2, 0, -1, 3], false),
            ('aten', '_int_mm', 'gemm', 'int', [0, 1, -1, -1, -1], false),
            ('aten', '_scaled_mm', 'gemm', 'mm', [0, 1, 4, 6, -1], false),
            ('aten', '_scaled_mm_v2', 'gemm', 'mm', [0, 1, 8, 9, -1], false),
            ('aten', 'linear', 'gemm', 'linear', [0, 1, 2, -1, -1], true),
            ('aten', 'matmul', 'gemm', 'matmul', [0, 1, -1, -1, -1], true),
            ('aten', 'mv', 'gemm', 'mv', [0, 1, -1, -1, -1], false),
            ('aten', 'addmv', 'gemm', 'mv', [1, 2, 0, -1, 3], false),
            ('aten', 'dot vdot', 'gemm', 'dot', [0, 1, -1, -1, -1], false),
            -- Positions: a, b, ends of the groups, output type.
            ('aten', '_grouped_mm', 'grouped', '', [0, 1, 2, 4], false),
            ('aten', '_scaled_grouped_mm', 'grouped', '', [0, 1, 4, 7], false),
            ('aten', '_scaled_grouped_mm_v2', 'grouped', '', [0, 1, 8, 10], false),
            -- Positions: input, weight, stride, padding, dilation, bias, transposed (-2: yes), output padding of a
            -- transposed convolution, groups.
            ('aten', 'conv1d conv2d conv3d', 'conv', '', [0, 1, 3, 4, 5, 2, -1, -1, 6], true),
            ('aten', 'convolution convolution_overrideable _convolution _convolution_overrideable', 'conv', '', [0, 1, 3, 4, 5, 2, 6, 7, 8], true),
            ('aten', 'cudnn_convolution', 'conv', '', [0, 1, 3, 2, 4, -1, -1, -1, 5], false),
            ('aten', 'cudnn_convolution_transpose', 'conv', '', [0, 1, 4, 2, 5, -1, -2, 3, 6], false),
            ('aten', 'cudnn_convolution_relu', 'conv', '', [0, 1, 3, 4, 5, 2, -1, -1, 6], false),
            ('aten', 'miopen_convolution mkldnn_convolution', 'conv', '', [0, 1, 4, 3, 5, 2, -1, -1, 6], false),
            ('aten', 'miopen_depthwise_convolution', 'conv', '', [0, 1, 4, 3, 5, 2, -1, -1, 6], false),
            ('aten', 'miopen_convolution_transpose', 'conv', '', [0, 1, 5, 3, 6, 2, -2, 4, 7], false),
            ('aten', '_conv_depthwise2d', 'conv', '', [0, 1, 4, 5, 6, 3, -1, -1, -1], false),
            -- Positions: gradient, input, weight, transposed, requested gradients.
            ('aten', 'convolution_backward', 'conv_backward', '', [0, 1, 2, 7, 10], false),
            ('aten', 'convolution_backward_overrideable', 'conv_backward', '', [0, 1, 2, 6, 9], false),
            -- Positions: query (followed by key and value), causal, sequence lengths, left window, right window. The window of
            -- the variant bshd_own counts the query's own key, too.
            ('aten', '_flash_attention_forward', 'attention', 'bshd', [0, 8, 3, 11, 12], false),
            ('aten', '_flash_attention_backward', 'attention_backward', 'bshd', [1, 11, 6, 15, 16], false),
            ('aten', '_efficient_attention_forward', 'attention', 'bshd_own', [0, 9, 4, 13, -1], false),
            ('aten', '_efficient_attention_backward', 'attention_backward', 'bshd_own', [1, 14, 6, 18, -1], false),
            ('aten', '_cudnn_attention_forward', 'attention', 'bhsd', [0, 10, 4, -1, -1], false),
            ('aten', '_cudnn_attention_backward', 'attention_backward', 'bhsd', [1, 14, 9, -1, -1], false),
            ('aten', 'scaled_dot_product_attention', 'attention', 'bhsd', [0, 5, -1, -1, -1], true),
            ('aten', '_scaled_dot_product_flash_attention', 'attention', 'bhsd', [0, 4, -1, -1, -1], true),
            ('aten', '_scaled_dot_product_flash_attention_for_cpu', 'attention', 'bhsd', [0, 4, -1, -1, -1], false),
            ('aten', '_scaled_dot_product_efficient_attention', 'attention', 'bhsd', [0, 6, -1, -1, -1], true),
            ('aten', '_scaled_dot_product_cudnn_attention', 'attention', 'bhsd', [0, 6, -1, -1, -1], true),
            ('aten', '_scaled_dot_product_flash_attention_backward', 'attention_backward', 'bhsd', [1, 11, 6, -1, -1], true),
            ('aten', '_scaled_dot_product_efficient_attention_backward', 'attention_backward', 'bhsd', [1, 11, -1, -1, -1], true),
            ('aten', '_scaled_dot_product_cudnn_attention_backward', 'attention_backward', 'bhsd', [1, 14, 9, -1, -1], true),
            ('flash_attn', '_flash_attn_forward', 'attention', 'bshd', [0, 5, -1, 6, 7], false),
            ('flash_attn', '_flash_attn_backward', 'attention_backward', 'bshd', [1, 11, -1, 12, 13], false),
            ('flash_attn_3', 'fwd', 'attention', 'bshd', [0, 24, 7, 25, 26], false),
            ('flash_attn_3', 'bwd', 'attention_backward', 'bshd', [1, 16, 9, 17, 18], false),
            -- Position: input.
            ('aten', 'native_batch_norm cudnn_batch_norm miopen_batch_norm native_layer_norm native_group_norm _native_batch_norm_legit _batch_norm_with_update', 'norm', 'norm', [0], false),
            ('aten', 'native_batch_norm_backward cudnn_batch_norm_backward miopen_batch_norm_backward native_layer_norm_backward native_group_norm_backward', 'norm', 'norm_backward', [0], false),
            ('aten', '_fused_rms_norm', 'norm', 'rms_norm', [0], false),
            ('aten', '_fused_rms_norm_backward', 'norm', 'rms_norm_backward', [0], false),
            ('aten', '_softmax _log_softmax', 'softmax', 'softmax', [0], false),
            ('aten', '_softmax_backward_data _log_softmax_backward_data', 'softmax', 'softmax_backward', [0], false),
            -- Position: number of inputs that are read.
            ('aten', 'copy_', 'elementwise', 'copy', [2], false),
            ('aten', 'fill_ zero_', 'elementwise', 'fill', [1], false),
            ('aten', 'eq ne lt le gt ge logical_and logical_or logical_xor isclose', 'elementwise', 'bool', [2], false),
            ('aten', 'logical_not isnan isinf isfinite', 'elementwise', 'bool', [1], false),
            ('aten', 'where lerp lerp_ addcmul addcmul_ addcdiv addcdiv_', 'elementwise', '', [3], false),
            ('aten', 'add add_ sub sub_ rsub rsub_ mul mul_ pow pow_ remainder remainder_ fmod fmod_ maximum maximum_ minimum minimum_ fmax fmax_ fmin fmin_ atan2 atan2_ masked_fill masked_fill_ bitwise_and bitwise_and_ bitwise_or bitwise_or_ bitwise_xor bitwise_xor_ __and__ __and___ __or__ __or___ __xor__ __xor___', 'elementwise', '', [2], false),
            ('aten', 'div div_ true_divide true_divide_', 'elementwise', 'float', [2], false),
            ('aten', 'threshold_backward gelu_backward silu_backward sigmoid_backward tanh_backward leaky_relu_backward hardtanh_backward hardswish_backward hardsigmoid_backward softplus_backward mish_backward', 'elementwise', '', [2], false),
            ('aten', 'sqrt sqrt_ rsqrt rsqrt_ exp exp_ exp2 exp2_ expm1 expm1_ log log_ log2 log2_ log10 log10_ log1p log1p_ sin sin_ cos cos_ tan tan_ tanh tanh_ erf erf_ erfinv erfinv_ reciprocal reciprocal_ sigmoid sigmoid_', 'elementwise', 'float', [1], false),
            ('aten', 'abs abs_ neg neg_ sign sign_ floor floor_ ceil ceil_ round round_ trunc trunc_ square square_ relu relu_ relu6 relu6_ leaky_relu leaky_relu_ elu elu_ gelu gelu_ silu silu_ mish mish_ softplus softplus_ hardtanh hardtanh_ hardswish hardswish_ hardsigmoid hardsigmoid_ threshold threshold_ clamp clamp_ clamp_min clamp_min_ clamp_max clamp_max_ bitwise_not bitwise_not_', 'elementwise', '', [1], false),
            ('torch::distributed::reducer', 'mul_out', 'elementwise', '', [2], false),
            -- Position: dimensions.
            ('aten', 'sum nansum', 'reduce', 'sum', [1], false),
            ('aten', 'mean nanmean amax amin prod var std logsumexp', 'reduce', 'same', [1], false),
            ('aten', 'norm linalg_vector_norm', 'reduce', 'same', [2], false),
            ('aten', 'argmax argmin', 'reduce', 'long', [1], false),
            ('aten', 'any all', 'reduce', 'bool', [1], false),
            ('aten', 'max min', 'reduce', 'both', [1], false),
            ('aten', 'cumsum _cumsum', 'reduce', 'scan', [-1], false),
            -- Positions: values, indices.
            ('aten', 'index_select', 'index', 'select', [0, 2], false),
            ('aten', 'embedding', 'index', 'rows', [0, 1], false),
            ('aten', 'gather', 'index', 'gather', [0, 2], false)
    ),
    _names AS (
        SELECT DISTINCT n.name FROM query_table(named_ops) AS n WHERE n.name IS NOT NULL
    ),
    _named_models AS (
        SELECT m.namespace || '::' || unnest(string_split(m.names, ' ')) AS name, m.model, m.variant, m.positions, m.is_wrapper
        FROM _models AS m
    )
SELECT n.name AS name, m.model AS model, m.variant AS variant, m.positions::BIGINT[] AS positions, m.is_wrapper AS is_wrapper
FROM _names AS n
JOIN _named_models AS m ON m.name = n.name
UNION ALL
-- Compiler-generated code: its work is unknown, but it contains no matrix product.
SELECT n.name, 'fused', '', []::BIGINT[], false
FROM _names AS n
WHERE regexp_full_match(n.name, 'triton_(poi|red|per|for)_.*')
