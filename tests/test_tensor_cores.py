"""Tests that the use of tensor cores is recognized from kernel names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from hta_sql.errors import LibraryError
from hta_sql.library.creation import create_empty_tables
from hta_sql.library.data_tables import data_tables
from hta_sql.library.objects import load_library

USED = (
    "volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn",
    "turing_h1688gemm_256x64_ldg8_nn",
    "ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn",
    "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_64x64_16x6_tn_align4>(Params)",
    # For TF32, the instruction shape is at the end.
    "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_tilesize128x128x16_g1_tensor16x8x8",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute",
    "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
    "void cutlass::device_kernel<MainloopSm90TmaGmmaWarpSpecialized<4> >(Params)",
    "cutlass3x_sm100_tensorop_s256x128x16gemm_bf16",
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4> >(Params)",
    "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<X> > >(P)",
    "fmha_cutlassF_f16_aligned_64x64_rf_sm80(AttentionKernel::Params)",
    "fmhaSm100aKernel_QkvBfloat16OBfloat16H128PagedKv",
    "cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_7_64x64x64",
    "void deep_gemm::fp8_gemm_kernel<4096u, 7168u, 64u>(__nv_bfloat16*)",
    "void cutlass::device_kernel<x::cuda::fp8_ptp128c::GemmKernel>(x::GemmKernel::Params)",
    "void cutlass::device_kernel<GemmUniversal<Shape, Mma<cutlass::float_e4m3_t> > >(Params)",
    "_w8a8_block_fp8_matmul",
    "Cijk_Alik_Bljk_BBS_BH_MT128x144x64_MI16x16x1_SN_LDSB0",
    "attn_fwd",
)

NOT_USED = (
    "ampere_sgemm_128x64_tn",
    "volta_fp16_sgemm_fp16_128x64_nn",
    "cutlass_80_simt_sgemm_128x128_8x4_nt_align1",
    # The name contains xmma, but the kernel uses FP32 multiply-add.
    "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_ffma_aligna4_alignc4_execute",
    "cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm75(AttentionKernel::Params)",
    "void pytorch_flash::flash_bwd_dot_do_o_kernel<true, Traits>(Params)",
    "void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<X> >(Params)",
    "triton_per_fused__flash_attn_backward__unsafe_view_10",
    "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)",
    "void gemv2T_kernel_val<int, int, float>(Params)",
    "void x::ep::internode::combine<false, 8, __nv_bfloat16>(int4*, float*)",
    # An elementwise kernel with a scalar; it only has "TensorOp" in its name by chance.
    "void SubTensorOpWithScalar1d<float, 4>(Params)",
)

NOT_TOLD = (
    "my_kernel",
    "triton_tem_fused_mm_3",
    "void conv2d_c1_k1_nhwc_kernel<float>(Params)",
    "",
)


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return an engine with the table tensor_core_kernels and its macro."""
    library = load_library()
    with duckdb.connect(":memory:", config={"threads": 1}) as opened:
        create_empty_tables(opened, library)
        opened.execute(next(t.text for t in library.tables if t.name == "tensor_core_kernels"))
        opened.execute(next(m.text for m in library.macros if m.name == "tensor_core_names"))
        yield opened


@pytest.mark.parametrize(("names", "truth"), [(USED, True), (NOT_USED, False), (NOT_TOLD, None)])
def test_names_tell(
    names: tuple[str, ...], truth: bool | None, con: duckdb.DuckDBPyConnection
) -> None:
    """Each name has a single row, in which the result is true, false or NULL (unknown)."""
    con.execute(
        "CREATE OR REPLACE TABLE ops AS SELECT unnest($names || $names) AS name",
        {"names": list(names)},
    )
    found = dict(con.execute("FROM lib.tensor_core_names('ops')").fetchall())
    assert found == dict.fromkeys(names, truth)


def test_rules_of_one_priority_agree_in_any_order(con: duckdb.DuckDBPyConnection) -> None:
    """Each pattern occurs only once, is lowercase, and has a reason."""
    rows = con.execute("SELECT pattern, reason FROM tensor_core_kernels").fetchall()
    patterns = [pattern for pattern, _ in rows]
    assert len(set(patterns)) == len(patterns)
    assert all(pattern == pattern.lower() for pattern in patterns)
    assert all(reason for _, reason in rows)


def test_a_csv_has_the_columns_of_its_view(tmp_path: Path) -> None:
    """If a line in the CSV file lacks columns, the error names the file and the columns."""
    table = next(t for t in load_library().tables if t.name == "tensor_core_kernels")
    broken = replace(table, path=tmp_path / "tensor_core_kernels.sql")
    csv = broken.path.with_suffix(".csv")
    csv.write_text("priority,pattern,uses_tensor_cores,vendor,reason\n10,*simt*,false\n")
    with pytest.raises(LibraryError, match=r"kernels\.csv: each line needs the columns priority, "):
        data_tables([broken])
