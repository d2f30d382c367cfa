-- What kind of work operations do, by the names of operators and of kernels: the first rule that fits says it.
--
-- Names of operators fit as a whole, without overload; in names of kernels the pattern is looked for anywhere, in any case.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.operation_categories(
    -- Name of a relation with side, name: side is operator or kernel.
    named_ops
) AS TABLE
-- Columns:
--   side      VARCHAR  operator or kernel.
--   name      VARCHAR  Name, each once.
--   category  VARCHAR  gemm, convolution, attention, …; names that no rule knows are left out.
WITH
    _rules(place, side, category, pattern) AS (
        VALUES
            -- Operators.
            (10, 'operator', 'communication', 'record_param_comms|(c10d|_c10d_functional|_c10d_functional_autograd|symm_mem)::.*|nccl:.*'),
            (11, 'operator', 'gemm', 'triton_tem_fused_.*mm.*'),
            (12, 'operator', 'attention', 'triton_tem_fused_.*attention.*'),
            (13, 'operator', 'triton', 'triton_.*'),
            (20, 'operator', 'grouped_gemm', 'aten::_(scaled_)?grouped_mm(_v2)?|.*(grouped|group)_?(gemm|mm).*|.*::gmm.*'),
            (21, 'operator', 'moe', '.*(moe|fused_experts|topk_softmax|grouped_topk|expert).*'),
            (22, 'operator', 'attention', 'aten::(_?scaled_dot_product_\w+|_(flash|efficient|cudnn)_attention_\w+|_native_multi_head_attention|_transform_bias_rescale_qkv)'),
            (23, 'operator', 'attention', '.*([fF]lash_?[aA]tt|fmha|[aA]ttention|_attn|attn_|_mla|mla_).*'),
            (24, 'operator', 'convolution', 'aten::(_?convolution\w*|conv[123]d|conv_transpose[123]d|(cudnn|miopen|mkldnn)_(depthwise_)?convolution\w*|_?slow_conv\w*|_?thnn_conv\w*|_?conv_depthwise\w*|conv_tbc\w*)|.*(causal_conv|ConvolutionBackward).*'),
            (25, 'operator', 'norm', '.*([rR][mM][sS]|[lL]ayer|[bB]atch|[gG]roup|[iI]nstance)_?[nN]orm.*|aten::(_weight_norm\w*|local_response_norm)'),
            (26, 'operator', 'rope', '.*(rotary|rope).*'),
            (27, 'operator', 'gemm', 'aten::(mm|bmm|addmm|baddbmm|addbmm|_addmm_activation|matmul|linear|linear_backward|mv|addmv|dot|vdot|inner|addr|einsum|_int_mm|_scaled_mm|_scaled_mm_v2|_mixed_mm|_weight_int[48]pack_mm|_cslt_sparse_mm|_sparse_semi_structured_\w+)'),
            (28, 'operator', 'gemm', '(\w+::)*\w*(gemm|scaled_mm|_mm_|marlin|machete)\w*'),
            (29, 'operator', 'softmax', 'aten::_?(log_|masked_|safe_)*softmax\w*|.*::\w*softmax\w*'),
            (30, 'operator', 'multi_tensor', 'aten::(_foreach_\w+|_fused_(adam|adamw|sgd|adagrad)\w*|_amp_\w+)|.*multi_tensor.*'),
            (31, 'operator', 'loss', 'aten::(nll_loss\w*|binary_cross_entropy\w*|(mse|l1|smooth_l1|huber|soft_margin)_loss\w*|kl_div\w*|_?ctc_loss\w*|cross_entropy\w*)|.*cross_entropy.*'),
            (32, 'operator', 'indexing', 'aten::(_?index\w*|gather\w*|scatter\w*|embedding\w*|_embedding_bag\w*|take\w*|masked_select|masked_scatter\w*|nonzero\w*|sort|argsort|topk|kthvalue|median|_?unique\w*|searchsorted|bucketize|bincount|histc|repeat_interleave)|.*embedding.*'),
            (33, 'operator', 'copy', 'aten::(copy_|_to_copy|to|clone|contiguous|fill_|zero_|zeros\w*|ones\w*|full\w*|cat|stack|_chunk_cat|split_with_sizes_copy|split_copy|roll|flip|repeat|constant_pad_nd|(reflection|replication)_pad\w*|arange|linspace|eye|tril_?|triu_?|im2col|col2im|select_backward|slice_backward|_pack_padded_sequence\w*|_copy_from\w*|_local_scalar_dense)'),
            (34, 'operator', 'pooling', 'aten::\w*(pool|upsample|grid_sampl)\w*'),
            (35, 'operator', 'reduce', 'aten::(sum|nansum|mean|nanmean|prod|max|min|amax|amin|aminmax|argmax|argmin|all|any|var|std|var_mean|std_mean|norm|linalg_vector_norm|logsumexp|_?cumsum|_?cumprod|cummax|cummin|_?logcumsumexp|count_nonzero|trace)'),
            (36, 'operator', 'rnn', 'aten::(_cudnn_rnn\w*|miopen_rnn\w*|_thnn_fused_\w+|lstm\w*|gru\w*)'),
            (37, 'operator', 'linalg', 'aten::(_?linalg_\w+|cholesky\w*|lu_\w+|triangular_solve|inverse|_?fft_\w+)'),
            (38, 'operator', 'quantisation', '.*quant.*'),
            (39, 'operator', 'kv_cache', '.*(reshape_and_cache|kv_cache|paged_cache).*'),
            (40, 'operator', 'elementwise', '(aten|torch::distributed::reducer)::(add|sub|rsub|mul|div|true_divide|floor_divide|remainder|fmod|pow|square|sqrt|rsqrt|exp|exp2|expm1|log|log2|log10|log1p|sin|cos|tan|asin|acos|atan|atan2|sinh|cosh|tanh|erf|erfc|erfinv|abs|neg|sign|sgn|floor|ceil|round|trunc|frac|reciprocal|sigmoid|logit|relu|relu6|leaky_relu|prelu|_prelu_kernel|elu|celu|selu|gelu|silu|mish|softplus|hardtanh|hardswish|hardsigmoid|glu|threshold|clamp|clamp_min|clamp_max|clip|maximum|minimum|fmax|fmin|where|masked_fill|lerp|addcmul|addcdiv|eq|ne|lt|le|gt|ge|lshift|rshift|isnan|isinf|isfinite|isin|nan_to_num|heaviside|hypot|polygamma|lgamma|digamma|xlogy|complex|polar|real|imag|conj_physical|angle|dropout|native_dropout|_fused_dropout|uniform|normal|random|bernoulli|exponential|geometric|cauchy|log_normal|randperm|multinomial|special_\w+|bitwise_\w+|logical_\w+|__\w+__|logaddexp\d?|copysign)(_|_out)?'),
            (41, 'operator', 'elementwise', 'aten::(threshold|gelu|silu|sigmoid|tanh|relu|leaky_relu|elu|hardtanh|hardswish|hardsigmoid|softplus|mish|logit|glu|native_dropout|masked_scale|_prelu_kernel)_backward|aten::_masked_scale|.*(silu|gelu|swiglu|geglu)_and_mul.*'),
            -- Kernels, where the operator does not tell: code of compilers, of other libraries, or launched in none.
            (50, 'kernel', 'gemm', '^triton_tem_fused_.*mm'),
            (51, 'kernel', 'attention', '^triton_tem_fused_.*attention'),
            (52, 'kernel', 'triton', '^triton_'),
            (60, 'kernel', 'grouped_gemm', 'deep_gemm.*GemmType\)[123]|grouped?_?gemm|grouped_mm'),
            (61, 'kernel', 'moe', 'moe|expert|topk_softmax|grouped_topk'),
            (62, 'kernel', 'attention', 'flash_(fwd|bwd)|flash::|flash_?att|fmha|attention|(^|_)attn_|_attn|::mla::'),
            (63, 'kernel', 'convolution', 'convol|(^|[_:])conv[_0-9]|_conv_|fprop|dgrad|wgrad|winograd|igemm_(fwd|bwd|wrw)|implicit_gemm'),
            (64, 'kernel', 'norm', '(rms|layer|batch|group|bn_(fw|bw)\w*)_?norm|(^|_)bn_(fw|bw)_|rowwisemoments|gammabeta'),
            (65, 'kernel', 'rope', 'rotary|(^|_)rope'),
            (66, 'kernel', 'gemm', '(^|[^b])gemm|gemv|nvjet|^cijk_|cutlass.*(tensorop|simt|wmma)|matmul|splitkreduce|cublaslt'),
            (67, 'kernel', 'softmax', 'softmax'),
            (68, 'kernel', 'multi_tensor', 'multi_tensor_apply|adam[w_]|(^|_)lamb_'),
            (69, 'kernel', 'loss', 'nll_loss|cross_entropy'),
            (70, 'kernel', 'quantisation', 'quant'),
            (71, 'kernel', 'indexing', 'index_|indexing_|gather|scatter|embedding|radix|sort|deviceselect|nonzero|unique'),
            (72, 'kernel', 'pooling', 'pool|upsample'),
            (73, 'kernel', 'reduce', 'reduce_kernel|devicereduce|devicescan|cumsum|scan_kernel|^reduce'),
            (74, 'kernel', 'copy', 'direct_copy|catarraybatchedcopy|fillfunctor|fill_kernel|copy_kernel|transpose|memcpy|memset'),
            (75, 'kernel', 'elementwise', 'elementwise|silu|gelu|relu|vectorized_')
    ),
    _names AS (
        SELECT DISTINCT n.side, n.name FROM query_table(named_ops) AS n WHERE n.name IS NOT NULL
    )
SELECT n.side AS side, n.name AS name, arg_min(r.category, r.place) AS category
FROM _names AS n
JOIN _rules AS r
    ON r.side = n.side
    AND CASE r.side WHEN 'operator' THEN regexp_full_match(n.name, r.pattern) ELSE regexp_matches(n.name, r.pattern, 'i') END
GROUP BY n.side, n.name
