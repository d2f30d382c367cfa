"""Tests that the table operation_categories assigns the right kind of work to a name."""

from __future__ import annotations

import duckdb
import pytest

from hta_sql.library.creation import create_empty_tables
from hta_sql.library.objects import load_library

OPERATORS = {
    "gemm": "aten::mm aten::addmm aten::_scaled_mm aten::linear triton_tem_fused_addmm_3 _C::cutlass_scaled_mm",
    "grouped_gemm": "aten::_grouped_mm aten::_scaled_grouped_mm ops::grouped_gemm",
    "convolution": "aten::cudnn_convolution aten::convolution_backward aten::conv2d mamba::causal_conv1d_fwd "
    "triton_tem_fused_convolution_3",
    "attention": "aten::_flash_attention_forward aten::_efficient_attention_backward flash_attn_3::bwd "
    "vllm::unified_attention aten::scaled_dot_product_attention triton_tem_fused_flex_attention_0",
    "norm": "aten::native_layer_norm aten::cudnn_batch_norm_backward aten::_fused_rms_norm _C::fused_add_rms_norm",
    "softmax": "aten::_softmax aten::_log_softmax_backward_data aten::_safe_softmax",
    "elementwise": "aten::add aten::add_ aten::gelu_backward aten::bitwise_and_ aten::native_dropout "
    "torch::distributed::reducer::mul_out _C::silu_and_mul aten::__rshift__",
    "reduce": "aten::sum aten::argmax aten::linalg_vector_norm aten::cumsum",
    "copy": "aten::copy_ aten::fill_ aten::cat aten::_local_scalar_dense",
    "indexing": "aten::index aten::embedding_dense_backward aten::nonzero fbgemm::split_embedding_codegen",
    "multi_tensor": "aten::_foreach_add_ aten::_fused_adamw_",
    "loss": "aten::nll_loss_forward aten::binary_cross_entropy_with_logits",
    "pooling": "aten::max_pool2d_with_indices aten::upsample_bilinear2d",
    "moe": "vllm::moe_forward _moe_C::topk_softmax",
    "triton": "triton_poi_fused_add_native_layer_norm_0 triton_red_fused_mm_softmax_1",
    "communication": "record_param_comms c10d::allreduce_ nccl:all_reduce",
    "rope": "_C::rotary_embedding",
    None: "Torch-Compiled autograd::engine fbgemm::permute_2D_sparse_data aten::resize_ my_add",
}

KERNELS = {
    "gemm": [
        "nvjet_tst_128x64",
        "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x32x256_s5_et128x32_m128x32x32",
        "Cijk_Alik_Bljk_BBS",
        "volta_sgemm_128x64_nt",
        "void gemm<float>",
        "triton_tem_fused_mm_0",
        "void cublasLt::splitKreduce_kernel<32>",
    ],
    "grouped_gemm": ["void deep_gemm::fp8_gemm_kernel<4096u, (deep_gemm::GemmType)2>"],
    "convolution": [
        "sm80_xmma_dgrad_implicit_gemm_bf16",
        "igemm_fwd_gtcx3_nhwc_bf16",
        "void cudnn::winograd_nonfused::f",
        "kernel_grouped_conv_fwd_xdl_cshuffle_v3",
        "triton_tem_fused_convolution_4",
    ],
    "attention": [
        "fmha_cutlassF_bf16_aligned",
        "attn_fwd",
        "sage_fwd",
        "cudnn_generated_fort_native_sdpa_sm90_flash_bprop_wgmma_f16_knob_7",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7",
        "FmhaBatchPrefillWithPagedKVCacheKernel",
        "void flashinfer::BatchDecodeWithPagedKVCacheKernel<1>",
        "void cutlass::device_kernel<flash::FlashAttnFwdSm90>",
    ],
    "norm": ["void at::native::vectorized_layer_norm_kernel<float>", "_rms_norm_fwd_fused"],
    "elementwise": ["void at::native::vectorized_elementwise_kernel<4, {lambda(float)#1}>"],
    "copy": ["void at::native::elementwise_kernel<direct_copy_kernel_cuda>", "Memset (Device)"],
    "triton": ["triton_poi_fused_mm_0"],
    "indexing": ["void fbgemm_gpu::embedding_kernel<int>"],
    "reduce": ["void at::native::reduce_kernel<512>"],
    None: ["XXT_kernel", "void fbgemm_gpu::linearize_kernel<int>"],
}


def categories(side: str, names: list[str]) -> dict[str, str]:
    """Return the category of each name that matches a rule."""
    library = load_library()
    with duckdb.connect(":memory:") as con:
        create_empty_tables(con, library)
        con.execute(next(t.text for t in library.tables if t.name == "operation_categories"))
        con.execute(next(m.text for m in library.macros if m.name == "named_categories"))
        con.execute("CREATE TABLE named AS SELECT $side AS side, unnest($names) AS name",
                    {"side": side, "names": names})  # fmt: skip
        rows = con.execute("SELECT name, category FROM lib.named_categories('named')")
        return dict(rows.fetchall())


@pytest.mark.parametrize(
    ("side", "examples"),
    [("operator", {key: names.split() for key, names in OPERATORS.items()}), ("kernel", KERNELS)],
    ids=["operators", "kernels"],
)
def test_categories_of_names(side: str, examples: dict[str | None, list[str]]) -> None:
    """The first matching rule applies, and names that match no rule have no category."""
    wanted = {name: category for category, names in examples.items() for name in names if category}
    found = categories(side, [name for names in examples.values() for name in names])
    assert found == wanted


def test_the_constant_rules_are_those_of_the_list() -> None:
    """The macro that contains the rules agrees with the first matching rule in the table."""
    library = load_library()
    joined = """
        SELECT arg_min(r.category, r.priority)
        FROM stored.operation_categories AS r
        WHERE r.side = $side AND CASE $side
            WHEN 'operator' THEN regexp_full_match($name, r.pattern)
            ELSE regexp_matches($name, r.pattern, 'i')
        END
    """
    names = [name for listed in OPERATORS.values() for name in listed.split()]
    names += [name for listed in KERNELS.values() for name in listed]
    with duckdb.connect(":memory:") as con:
        create_empty_tables(con, library)
        for side in ("operator", "kernel"):
            for name in names:
                told = con.execute(f"SELECT stored.{side}_category($name)", {"name": name})
                ((category,),) = told.fetchall()
                rule = con.execute(joined, {"side": side, "name": name}).fetchall()
                assert [(category,)] == rule, name
