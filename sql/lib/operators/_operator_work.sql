-- Work of operators, derived from their inputs: floating-point operations and bytes to move.
--
-- Bytes assume perfect caches: every input is read once and every output written once. Output shapes follow from the
-- inputs. Floating-point operations are counted as in lib.gemm_flops, conv_flops, attention_flops and vector_flops;
-- integer operations do not count. Work is NULL if it depends on data that is not recorded. Examples are the lengths
-- of packed sequences, the types in a list of tensors and, usually, the sizes of groups. Work is also NULL for
-- compiler-generated code, which may read only a part of an argument. Because a trace may contain any numbers, sizes
-- are doubles, exact up to 2^53, and work beyond 64 bits is NULL.
CREATE OR REPLACE MACRO lib._operator_work(
    -- Name of a relation with call_id, name (operator without overload), input_shapes, input_types, concrete_inputs.
    call_items
) AS TABLE
-- Columns:
--   call_id      BIGINT          Id of the call; calls without a formula have no row.
--   model        VARCHAR         Name of the formula.
--   is_matrix    BOOLEAN         Whether the call consists of matrix products: GEMM, convolution, attention.
--   is_wrapper   BOOLEAN         Whether the operator usually calls another operator that does the work.
--   elem_type    VARCHAR         Data type of the computation: double, float, c10::BFloat16, …; NULL: unknown.
--   flops        BIGINT [1]      Floating-point operations; NULL: unknown.
--   moved_bytes  BIGINT [bytes]  Bytes read and written; NULL: unknown.
--   reason_code  VARCHAR         Code, in the table messages, of the reason why a value is unknown.
WITH
    _models AS MATERIALIZED (
        SELECT m.* FROM lib._operator_models(call_items) AS m
    ),
    _parsed AS (
        SELECT
            i.call_id, m.model, m.variant, m.positions, m.is_wrapper, i.name,
            from_json(i.input_shapes, '[["DOUBLE"]]') AS dims,
            from_json(i.input_types, '["VARCHAR"]') AS types,
            from_json(i.concrete_inputs, '["VARCHAR"]') AS scalars
        FROM query_table(call_items) AS i
        JOIN _models AS m ON m.name = i.name
    ),
    -- List elements beyond the end of a list are NULL. A list of tensors has nested sizes and is not treated as a
    -- tensor.
    _inputs AS (
        SELECT
            p.*,
            list_transform(p.types, lambda t: lib.elem_bytes(t)::DOUBLE) AS sizes,
            list_transform(
                list_zip(p.dims, p.types),
                lambda z: CASE WHEN lib.elem_bytes(z[2]) IS NOT NULL THEN coalesce(list_product(z[1]), 1) END
            ) AS counts,
            contains(array_to_string(p.types, ' '), 'TensorList') AS has_lists
        FROM _parsed AS p
    ),
    _sized AS (
        SELECT
            n.*,
            list_transform(list_zip(n.counts, n.sizes), lambda z: z[1] * z[2]) AS byte_counts,
            n.dims[n.positions[1] + 1] AS a, n.dims[n.positions[2] + 1] AS b,
            n.types[n.positions[1] + 1] AS a_type, n.sizes[n.positions[1] + 1] AS a_size, n.counts[n.positions[1] + 1] AS a_count
        FROM _inputs AS n
    ),
    _gemms AS (
        SELECT
            s.call_id, s.a, s.b, s.a_size, s.sizes[s.positions[2] + 1] AS b_size, s.a_type, s.a_count, s.counts[s.positions[2] + 1] AS b_count,
            CASE
                WHEN s.variant IN ('mm', 'int') AND len(s.a) = len(s.b) AND len(s.a) IN (2, 3) THEN
                    {'m': s.a[-2], 'n': s.b[-1], 'k': s.a[-1], 'batch': CASE WHEN len(s.a) = 3 THEN s.a[1] ELSE 1 END}
                WHEN s.variant = 'linear' AND len(s.b) = 2 AND s.a[-1] > 0 THEN
                    {'m': s.a_count / s.a[-1], 'n': s.b[1], 'k': s.a[-1], 'batch': 1}
                WHEN s.variant = 'mv' AND len(s.a) = 2 THEN {'m': s.a[1], 'n': 1, 'k': s.a[2], 'batch': 1}
                WHEN s.variant = 'dot' AND len(s.a) = 1 THEN {'m': 1, 'n': 1, 'k': s.a[1], 'batch': 1}
                WHEN s.variant = 'matmul' AND len(s.a) >= 2 AND len(s.b) = 2 AND s.a[-1] > 0 THEN
                    {'m': s.a_count / s.a[-1], 'n': s.b[2], 'k': s.a[-1], 'batch': 1}
                WHEN s.variant = 'matmul' AND len(s.a) >= 3 AND len(s.a) = len(s.b) AND s.a[:-3] = s.b[:-3] AND s.a[-2] * s.a[-1] > 0 THEN
                    {'m': s.a[-2], 'n': s.b[-1], 'k': s.a[-1], 'batch': s.a_count / (s.a[-2] * s.a[-1])}
            END AS g,
            CASE
                WHEN s.variant = 'int' THEN 4
                WHEN s.positions[4] >= 0 AND s.scalars IS NULL THEN NULL
                WHEN s.positions[4] >= 0 THEN coalesce(lib._scalar_type_bytes(s.scalars[s.positions[4] + 1]), s.a_size)
                ELSE s.a_size
            END AS out_size,
            -- An addend with a factor of 0 is not read.
            CASE
                WHEN s.positions[5] >= 0 AND TRY_CAST(s.scalars[s.positions[5] + 1] AS DOUBLE) = 0 THEN 0
                WHEN s.positions[3] >= 0 THEN coalesce(s.byte_counts[s.positions[3] + 1], 0)
                ELSE 0
            END AS added_bytes
        FROM _sized AS s
        WHERE s.model = 'gemm'
    ),
    -- The buffer may be longer than its groups: the end of the last group gives the size that is multiplied.
    _grouped AS (
        SELECT
            s.call_id, s.a_type, len(s.a) = 2 OR len(s.b) = 2 AS has_ends, TRY_CAST(s.scalars[s.positions[3] + 1] AS BIGINT[])[-1]::DOUBLE AS last_end,
            CASE
                -- Cases, in this order: grouped rows, grouped inner dimension, batch, grouped columns.
                WHEN len(s.a) = 2 AND len(s.b) = 3 THEN
                    {'m': last_end, 'n': s.b[3], 'k': s.a[2], 'batch': 1, 'out': last_end * s.b[3], 'a_share': last_end / nullif(s.a[1], 0), 'b_share': 1}
                WHEN len(s.a) = 2 AND len(s.b) = 2 THEN
                    {
                        'm': s.a[1], 'n': s.b[2], 'k': last_end, 'batch': 1, 'out': s.dims[s.positions[3] + 1][1] * s.a[1] * s.b[2],
                        'a_share': last_end / nullif(s.a[2], 0), 'b_share': last_end / nullif(s.b[1], 0)
                    }
                WHEN len(s.a) = 3 AND len(s.b) = 3 THEN
                    {'m': s.a[2], 'n': s.b[3], 'k': s.a[3], 'batch': s.a[1], 'out': s.a[1] * s.a[2] * s.b[3], 'a_share': 1, 'b_share': 1}
                WHEN len(s.a) = 3 AND len(s.b) = 2 THEN
                    {'m': s.a[2], 'n': last_end, 'k': s.a[3], 'batch': 1, 'out': s.a[2] * last_end, 'a_share': 1, 'b_share': last_end / nullif(s.b[2], 0)}
            END AS g,
            s.byte_counts[s.positions[1] + 1] AS a_bytes, s.byte_counts[s.positions[2] + 1] AS b_bytes,
            coalesce(lib._scalar_type_bytes(s.scalars[s.positions[4] + 1]), CASE WHEN s.a_size = 1 THEN 2 ELSE s.a_size END) AS out_size
        FROM _sized AS s
        WHERE s.model = 'grouped'
    ),
    _convs AS (
        SELECT
            s.call_id, s.a_type, s.a_size, s.b AS w,
            s.positions[7] = -2 OR s.positions[7] >= 0 AND s.scalars[s.positions[7] + 1] = 'True' AS is_transposed,
            s.a AS x,
            TRY_CAST(s.scalars[s.positions[3] + 1] AS BIGINT[]) AS stride,
            TRY_CAST(s.scalars[s.positions[4] + 1] AS BIGINT[]) AS padding,
            TRY_CAST(s.scalars[s.positions[5] + 1] AS BIGINT[]) AS dilation,
            TRY_CAST(s.scalars[s.positions[8] + 1] AS BIGINT[]) AS out_padding,
            TRY_CAST(s.scalars[s.positions[9] + 1] AS BIGINT) AS group_count,
            s.byte_counts[s.positions[1] + 1] + s.byte_counts[s.positions[2] + 1]
            + CASE WHEN s.positions[6] >= 0 THEN coalesce(s.byte_counts[s.positions[6] + 1], 0) ELSE 0 END AS in_bytes
        FROM _sized AS s
        WHERE s.model = 'conv'
    ),
    _conv_outputs AS (
        SELECT
            c.*,
            CASE
                WHEN NOT c.is_transposed THEN lib.conv_output_shape(c.x, c.w, c.stride, c.padding, c.dilation)
                WHEN len(c.stride) > 0 AND len(c.padding) > 0 AND len(c.dilation) > 0 AND len(c.out_padding) > 0 THEN
                    [c.x[1], c.w[2] * c.group_count] || list_transform(
                        range(1, len(c.x)::BIGINT - 1),
                        lambda i: (c.x[i + 2] - 1) * c.stride[least(i, len(c.stride))]::DOUBLE - 2 * c.padding[least(i, len(c.padding))]::DOUBLE
                            + c.dilation[least(i, len(c.dilation))]::DOUBLE * (c.w[i + 2] - 1) + c.out_padding[least(i, len(c.out_padding))] + 1
                    )
            END AS y
        FROM _convs AS c
    ),
    _conv_backwards AS (
        SELECT
            s.call_id, s.types[s.positions[2] + 1] AS elem_type,
            lib.conv_flops(
                s.dims[s.positions[3] + 1], CASE WHEN s.scalars[s.positions[4] + 1] = 'True' THEN s.b ELSE s.a END
            ) AS product_flops,
            TRY_CAST(s.scalars[s.positions[5] + 1] AS BOOLEAN[]) AS mask,
            s.byte_counts[s.positions[1] + 1] AS gradient_bytes,
            s.byte_counts[s.positions[2] + 1] AS x_bytes, s.byte_counts[s.positions[3] + 1] AS w_bytes
        FROM _sized AS s
        WHERE s.model = 'conv_backward'
    ),
    _attentions AS (
        SELECT
            s.call_id, s.a_type, s.model = 'attention_backward' AS is_backward,
            CASE WHEN len(s.a) = 4 AND len(s.dims[s.positions[1] + 2]) = 4 AND len(s.dims[s.positions[1] + 3]) = 4 THEN
                CASE s.variant
                    WHEN 'bhsd' THEN {'batch': s.a[1], 'heads': s.a[2], 'q': s.a[3], 'kv': s.dims[s.positions[1] + 2][3]}
                    ELSE {'batch': s.a[1], 'heads': s.a[3], 'q': s.a[2], 'kv': s.dims[s.positions[1] + 2][2]}
                END
            END AS t,
            s.a[4] AS head_dim, s.dims[s.positions[1] + 3][4] AS value_dim,
            CASE
                WHEN s.scalars[s.positions[2] + 1] IN ('True', '1', '2') THEN true
                WHEN s.scalars[s.positions[2] + 1] IN ('False', '0') THEN false
            END AS is_causal,
            starts_with(s.name, 'aten::') AND coalesce(s.scalars[s.positions[2] + 1] <> '2', true) AS is_top_left,
            -- Packed sequences of varying length, with the lengths given in a tensor.
            s.positions[3] >= 0 AND coalesce(len(s.dims[s.positions[3] + 1]) > 0, false) AS is_packed,
            CASE WHEN s.positions[4] >= 0 THEN TRY_CAST(s.scalars[s.positions[4] + 1] AS BIGINT) - (s.variant = 'bshd_own')::BIGINT END AS left_window,
            CASE WHEN s.positions[5] >= 0 THEN TRY_CAST(s.scalars[s.positions[5] + 1] AS BIGINT) END AS right_window,
            s.a_count, s.a_size,
            s.byte_counts[s.positions[1] + 1] + s.byte_counts[s.positions[1] + 2] + s.byte_counts[s.positions[1] + 3] AS qkv_bytes
        FROM _sized AS s
        WHERE s.model IN ('attention', 'attention_backward')
    ),
    _pairs AS (
        SELECT
            n.*,
            CASE
                WHEN n.is_causal IS NOT NULL AND (NOT n.is_causal OR NOT n.is_top_left OR n.t.q <= n.t.kv) THEN lib._attended_pairs(
                    n.t.q, CASE WHEN n.is_causal AND n.is_top_left THEN n.t.q ELSE n.t.kv END, n.left_window,
                    CASE WHEN n.is_causal THEN 0 ELSE n.right_window END
                )
            END AS pair_count,
            -- Output, and one float per query for the backward pass.
            n.a_count / nullif(n.head_dim, 0) * n.value_dim * n.a_size AS out_bytes,
            n.a_count / nullif(n.head_dim, 0) * 4 AS lse_bytes
        FROM _attentions AS n
    ),
    -- Operands and output of elementwise operators.
    _operands AS (
        SELECT
            s.call_id, s.name, s.variant, s.has_lists,
            s.dims[:s.positions[1]] AS dims, s.types[:s.positions[1]] AS types, s.counts[:s.positions[1]] AS counts, s.byte_counts[:s.positions[1]] AS byte_counts,
            s.counts[1] AS first_count, s.sizes[1] AS first_size, s.types[1] AS first_type,
            s.variant IN ('copy', 'fill') OR ends_with(s.name, '_') AND NOT ends_with(s.name, '__') AS is_in_place,
            -- Type order, as kind in hundreds plus bytes: 1 bool, 1xx integers, 2xx floating point, 3xx complex.
            list_max(list_transform(
                list_zip(s.types[:s.positions[1]], s.dims[:s.positions[1]]),
                lambda z: CASE
                    WHEN lib.elem_bytes(z[1]) IS NULL OR len(z[2]) = 0 THEN NULL
                    WHEN z[1] = 'bool' THEN 1
                    WHEN z[1] IN ('double', 'float', 'c10::Half', 'c10::BFloat16') OR starts_with(z[1], 'c10::Float8') THEN 200 + lib.elem_bytes(z[1])
                    WHEN starts_with(z[1], 'c10::complex') THEN 300 + lib.elem_bytes(z[1])
                    ELSE 100 + lib.elem_bytes(z[1])
                END
            )) AS type_order,
            list_max(list_transform(
                list_zip(s.types[:s.positions[1]], s.dims[:s.positions[1]], s.scalars[:s.positions[1]]),
                lambda z: CASE
                    WHEN z[1] IN ('double', 'float', 'c10::Half', 'c10::BFloat16') AND len(z[2]) = 0 OR z[1] = 'Scalar' AND contains(z[3], '.') THEN 204
                    WHEN z[1] = 'Scalar' OR lib.elem_bytes(z[1]) IS NOT NULL AND z[1] <> 'bool' AND len(z[2]) = 0 THEN 108
                    ELSE 1
                END
            )) AS scalar_order
        FROM _sized AS s
        WHERE s.model = 'elementwise' AND len(s.dims) > 0
    ),
    _outputs AS (
        SELECT
            o.*,
            -- A scalar determines the output type only if its kind is higher.
            CASE WHEN o.type_order IS NULL OR o.scalar_order // 100 > o.type_order // 100 THEN o.scalar_order ELSE o.type_order END AS out_order,
            CASE
                WHEN o.is_in_place THEN o.first_count
                ELSE coalesce(list_product(list_transform(
                    range(list_max(list_transform(o.dims, lambda d: len(d)))::BIGINT),
                    lambda i: list_max(list_transform(o.dims, lambda d: CASE WHEN i < len(d) THEN d[len(d) - i] END))
                )), 1)
            END AS out_count
        FROM _operands AS o
    ),
    _reduced AS (
        SELECT
            s.call_id, s.variant, s.a_type, s.types[1] AS elem_type, s.dims[1] AS x, s.counts[1] AS x_count, s.sizes[1] AS x_size, s.byte_counts[1] AS x_bytes,
            s.variant = 'both' AND lib.elem_bytes(s.types[2]) IS NOT NULL AS has_two,
            CASE
                WHEN starts_with(s.scalars[s.positions[1] + 1], '[') THEN TRY_CAST(s.scalars[s.positions[1] + 1] AS BIGINT[])
                WHEN len(s.dims) >= 3 AND TRY_CAST(s.scalars[s.positions[1] + 1] AS BIGINT) IS NOT NULL THEN [TRY_CAST(s.scalars[s.positions[1] + 1] AS BIGINT)]
                ELSE []::BIGINT[]
            END AS over_dims,
            CASE WHEN s.scalars IS NULL THEN NULL ELSE coalesce(lib._scalar_type_bytes(s.scalars[s.positions[1] + 3]), 0) END AS asked_size
        FROM _sized AS s
        WHERE s.model = 'reduce'
    ),
    _reduced_outputs AS (
        SELECT
            r.*,
            CASE
                WHEN r.variant = 'scan' THEN r.x_count
                WHEN len(r.over_dims) = 0 THEN 1
                ELSE floor(r.x_count / nullif(list_product(list_transform(
                    r.over_dims, lambda d: r.x[CASE WHEN d < 0 THEN len(r.x) + d ELSE d END + 1]
                )), 0))
            END AS out_count,
            CASE
                WHEN r.variant IN ('sum', 'same') AND r.asked_size > 0 THEN r.asked_size
                WHEN r.variant = 'bool' THEN 1
                WHEN r.variant = 'long' THEN 8
                WHEN r.variant = 'both' AND len(r.over_dims) > 0 THEN r.x_size + 8
                WHEN r.variant IN ('sum', 'scan') AND r.elem_type NOT IN ('double', 'float', 'c10::Half', 'c10::BFloat16') THEN 8
                ELSE r.x_size
            END AS out_size
        FROM _reduced AS r
        WHERE r.asked_size IS NOT NULL AND NOT r.has_two
    ),
    _work AS (
        SELECT g.call_id, g.a_type AS elem_type, lib.gemm_flops(g.g.m, g.g.n, g.g.k, batch := g.g.batch) AS flops,
            g.a_count * g.a_size + g.b_count * g.b_size + g.g.batch * g.g.m * g.g.n * g.out_size + g.added_bytes AS moved_bytes
        FROM _gemms AS g
        UNION ALL
        SELECT g.call_id, g.a_type, lib.gemm_flops(g.g.m, g.g.n, g.g.k, batch := g.g.batch),
            g.a_bytes * g.g.a_share + g.b_bytes * g.g.b_share + g.g.out * g.out_size
        FROM _grouped AS g
        UNION ALL
        SELECT
            c.call_id, c.a_type, lib.conv_flops(c.w, CASE WHEN c.is_transposed THEN c.x ELSE c.y END),
            c.in_bytes + list_product(c.y) * c.a_size
        FROM _conv_outputs AS c
        UNION ALL
        SELECT
            c.call_id, c.elem_type,
            c.product_flops::DOUBLE * (c.mask[1]::BIGINT + c.mask[2]::BIGINT),
            c.gradient_bytes + c.x_bytes * (c.mask[1]::BIGINT + c.mask[2]::BIGINT) + c.w_bytes * (c.mask[1]::BIGINT + c.mask[2]::BIGINT)
        FROM _conv_backwards AS c
        UNION ALL
        SELECT
            p.call_id, p.a_type,
            CASE
                WHEN NOT p.is_packed THEN
                    lib._attention_flops(p.t.batch, p.t.heads, p.pair_count, p.head_dim, p.value_dim, is_backward := p.is_backward)
            END,
            CASE
                WHEN p.is_packed THEN NULL
                WHEN p.is_backward THEN 2 * p.qkv_bytes + 2 * p.out_bytes + p.lse_bytes
                ELSE p.qkv_bytes + p.out_bytes + p.lse_bytes
            END
        FROM _pairs AS p
        UNION ALL
        -- All tensors are read; the output, or the gradient, is as large as the input.
        SELECT s.call_id, s.a_type, lib._vector_flops(s.variant, s.a_count), list_sum(s.byte_counts) + s.byte_counts[s.positions[1] + 1]
        FROM _sized AS s
        WHERE s.model = 'norm'
        UNION ALL
        SELECT
            s.call_id, s.a_type, lib._vector_flops(s.variant, s.a_count),
            CASE s.variant
                WHEN 'softmax' THEN s.byte_counts[1] + s.a_count * CASE WHEN s.scalars[3] = 'True' THEN 4 WHEN s.scalars[3] = 'False' THEN s.a_size END
                ELSE s.byte_counts[1] + s.byte_counts[2] + s.a_count * coalesce(lib._scalar_type_bytes(s.scalars[4]), s.a_size)
            END
        FROM _sized AS s
        WHERE s.model = 'softmax'
        UNION ALL
        SELECT
            o.call_id,
            CASE WHEN o.out_order = 208 THEN 'double' ELSE 'float' END,
            CASE
                WHEN o.has_lists THEN NULL
                WHEN o.variant IN ('copy', 'fill') OR o.out_order < 200 AND o.variant <> 'float' THEN 0
                ELSE lib._vector_flops('elementwise', o.out_count)
            END,
            CASE
                WHEN o.has_lists THEN NULL
                WHEN o.variant = 'fill' THEN o.first_count * o.first_size
                WHEN o.variant = 'copy' THEN o.byte_counts[1] + o.byte_counts[2]
                WHEN o.is_in_place THEN list_sum(o.byte_counts) + o.first_count * o.first_size
                ELSE list_sum(o.byte_counts) + o.out_count * CASE
                    WHEN o.variant = 'bool' THEN 1
                    WHEN o.variant = 'float' AND o.out_order < 200 THEN 4
                    ELSE o.out_order % 100
                END
            END
        FROM _outputs AS o
        UNION ALL
        SELECT
            r.call_id, CASE WHEN r.elem_type = 'double' THEN 'double' ELSE 'float' END,
            CASE WHEN r.elem_type IN ('double', 'float', 'c10::Half', 'c10::BFloat16') THEN lib._vector_flops('reduce', r.x_count) ELSE 0 END,
            r.x_bytes + r.out_count * r.out_size
        FROM _reduced_outputs AS r
        UNION ALL
        SELECT
            s.call_id, 'float', 0,
            CASE s.variant
                WHEN 'select' THEN s.byte_counts[3] + floor(2 * s.counts[3] * s.byte_counts[1]
                    / nullif(s.a[CASE WHEN TRY_CAST(s.scalars[2] AS BIGINT) < 0 THEN len(s.a) + TRY_CAST(s.scalars[2] AS BIGINT) ELSE TRY_CAST(s.scalars[2] AS BIGINT) END + 1], 0))
                WHEN 'rows' THEN s.byte_counts[2] + 2 * s.counts[2] * s.a[2] * s.a_size
                ELSE s.byte_counts[3] + 2 * s.counts[3] * s.a_size
            END
        FROM _sized AS s
        WHERE s.model = 'index'
    )
SELECT
    s.call_id AS call_id, s.model AS model,
    s.model IN ('gemm', 'grouped', 'conv', 'conv_backward', 'attention', 'attention_backward') AS is_matrix,
    s.is_wrapper AS is_wrapper, w.elem_type AS elem_type, TRY_CAST(w.flops AS BIGINT) AS flops, TRY_CAST(w.moved_bytes AS BIGINT) AS moved_bytes,
    CASE
        WHEN s.dims IS NULL THEN 'operator_work.shapes_not_recorded'
        WHEN p.has_ends AND p.last_end IS NULL THEN 'operator_work.group_sizes_not_recorded'
        WHEN n.is_packed THEN 'operator_work.lengths_not_recorded'
        WHEN s.has_lists THEN 'operator_work.unrecorded_list_types'
        WHEN s.model = 'fused' THEN 'operator_work.unrecorded_operations'
        WHEN w.flops IS NULL OR w.moved_bytes IS NULL THEN 'operator_work.inputs_insufficient'
    END AS reason_code
FROM _sized AS s
LEFT JOIN _work AS w ON w.call_id = s.call_id
LEFT JOIN _attentions AS n ON n.call_id = s.call_id
LEFT JOIN _grouped AS p ON p.call_id = s.call_id
