"""The model that the job trains: its operators, their kernels and how long those take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hta_sql.synthetic.spec import JobSpec

SMS = 132
"""Streaming multiprocessors of the simulated GPU."""


@dataclass(frozen=True)
class Kernel:
    """A kernel: its name, its usual length and its launch geometry."""

    name: str
    ns: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int = 32
    shared_memory: int = 0
    occupancy: int = 100
    matrix: bool = False
    """Matrix kernels come from cuBLAS, which launches through the driver."""

    @cached_property
    def args(self) -> str:
        """The arguments that depend on the kernel alone, as JSON text."""
        blocks = self.grid[0] * self.grid[1] * self.grid[2]
        warps = blocks * (-(-self.block[0] * self.block[1] * self.block[2] // 32))
        return (
            f'"registers per thread": {self.registers},      '
            f'"shared memory": {self.shared_memory},      '
            f'"blocks per SM": {_sixths(blocks)},      "warps per SM": {_sixths(warps)},      '
            f'"grid": {list(self.grid)},      "block": {list(self.block)},      '
            f'"est. achieved occupancy %": {self.occupancy}'
        )


def _sixths(count: int) -> str:
    """`count` per multiprocessor with six decimals, without a float."""
    millionths = (count * 1_000_000 + SMS // 2) // SMS
    return f"{millionths // 1_000_000}.{millionths % 1_000_000:06d}"


@dataclass(frozen=True)
class Operator:
    """A forward operator, outermost name first, and the autograd node that undoes it."""

    module: str
    builtin: str
    forward: tuple[str, ...]
    forward_kernel: Kernel
    node: str
    backward: tuple[tuple[str, Kernel], ...]
    shape: tuple[int, ...]

    @cached_property
    def args(self) -> str:
        """Input shapes as `record_shapes` writes them, as JSON text."""
        strides = [self.shape[-1], 1]
        return (
            '"Concrete Inputs": [""], "Input type": ["c10::BFloat16"], '
            f'"Input Strides": [{strides}], "Input Dims": [{list(self.shape)}], '
        )

    @property
    def bytes(self) -> int:
        """Size of the result, which stays allocated until the backward pass."""
        return 2 * self.shape[0] * self.shape[1]


def _elementwise(functor: str, ns: int) -> Kernel:
    name = (
        f"void at::native::vectorized_elementwise_kernel<8, at::native::{functor}, "
        f"std::array<char*, 3ul> >(int, at::native::{functor}, std::array<char*, 3ul>)"
    )
    return Kernel(name, ns, (3072, 1, 1), (128, 1, 1), registers=34)


def _matrix(name: str, ns: int) -> Kernel:
    return Kernel(
        name, ns, (8, 15, 1), (384, 1, 1), registers=168, shared_memory=213_196, occupancy=0,
        matrix=True,
    )  # fmt: skip


def _reduction(name: str, ns: int) -> Kernel:
    return Kernel(name, ns, (4096, 1, 1), (32, 16, 1), shared_memory=512, occupancy=75)


def _flash(name: str, ns: int) -> Kernel:
    return Kernel(
        f"void cutlass::device_kernel<flash::{name}<cute::tuple<cute::C<64>, cute::C<128> >, "
        "cutlass::bfloat16_t, float, cutlass::arch::Sm90> >(flash::Params)",
        ns, (32, 6, 4), (256, 1, 1), registers=168, shared_memory=180_224, occupancy=12,
    )  # fmt: skip


OPERATORS: tuple[Operator, ...] = (
    Operator(
        "LayerNorm", "layer_norm", ("aten::layer_norm", "aten::native_layer_norm"),
        _reduction("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, c10::BFloat16 const*)", 6_200),
        "NativeLayerNormBackward0",
        (("aten::native_layer_norm_backward", _reduction("void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<c10::BFloat16, float>(c10::BFloat16 const*, int)", 9_400)),),
        (4096, 768),
    ),
    Operator(
        "Linear", "linear", ("aten::linear", "aten::addmm"),
        _matrix("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_TNT", 61_000),
        "AddmmBackward0",
        (
            ("aten::mm", _matrix("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT", 58_000)),
            ("aten::mm", _matrix("nvjet_tst_128x160_64x5_2x4_v_bz_NTT", 64_000)),
        ),
        (4096, 2304),
    ),
    Operator(
        "CausalSelfAttention", "scaled_dot_product_attention",
        ("aten::scaled_dot_product_attention", "aten::_scaled_dot_product_flash_attention",
         "aten::_flash_attention_forward"),
        _flash("FlashAttnFwdSm90", 48_000),
        "ScaledDotProductFlashAttentionBackward0",
        (
            ("aten::_flash_attention_backward", _flash("FlashAttnBwdPreprocess", 7_100)),
            ("aten::_flash_attention_backward", _flash("FlashAttnBwdSm90", 92_000)),
        ),
        (4096, 768),
    ),
    Operator(
        "Dropout", "dropout", ("aten::dropout", "aten::native_dropout"),
        _elementwise("FusedDropoutFunctor<c10::BFloat16>", 5_600),
        "NativeDropoutBackward0",
        (("aten::native_dropout_backward", _elementwise("MaskedScaleFunctor<c10::BFloat16>", 5_900)),),
        (4096, 768),
    ),
    Operator(
        "Block", "add", ("aten::add",),
        _elementwise("CUDAFunctor_add<c10::BFloat16>", 4_300),
        "AddBackward0",
        (("aten::sum", _reduction("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<c10::BFloat16, at::native::func_wrapper_t<float>>>(at::native::ReduceOp)", 8_700)),),
        (4096, 768),
    ),
    Operator(
        "Linear", "linear", ("aten::linear", "aten::addmm"),
        _matrix("nvjet_tst_192x192_64x3_2x1_v_bx_coopB_NNN", 83_000),
        "AddmmBackward0",
        (
            ("aten::mm", _matrix("nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT", 79_000)),
            ("aten::mm", _matrix("nvjet_tst_96x64_64x8_2x4_v_bz_NTN", 88_000)),
        ),
        (4096, 3072),
    ),
    Operator(
        "GELU", "gelu", ("aten::gelu",),
        _elementwise("GeluCUDAKernelImpl<c10::BFloat16>", 11_500),
        "GeluBackward0",
        (("aten::gelu_backward", _elementwise("GeluBackwardCUDAKernelImpl<c10::BFloat16>", 15_200)),),
        (4096, 3072),
    ),
    Operator(
        "Block", "mul", ("aten::mul",),
        Kernel("triton_poi_fused_mul_sigmoid_view_0", 3_200, (2304, 1, 1), (128, 1, 1)),
        "MulBackward0",
        (("aten::mul", Kernel("triton_poi_fused_mul_sigmoid_backward_1", 4_100, (2304, 1, 1), (128, 1, 1))),),
        (4096, 768),
    ),
)  # fmt: skip
"""A block runs the first `ops_per_layer` of these, from the front again where it has more."""

FOREACH = tuple(
    Kernel(
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
        f"(anonymous namespace)::{metadata}>(at::native::(anonymous namespace)::{metadata})",
        ns, (320, 1, 1), (512, 1, 1), occupancy=75,
    )
    for metadata, ns in (
        ("TensorListMetadata<1>", 14_000), ("TensorListMetadata<2>", 19_000),
        ("TensorListScalarListMetadata<2>", 22_000), ("FusedOptimizerTensorListMetadata<4>", 41_000),
    )
)  # fmt: skip
"""Kernels of one optimizer pass over one block."""

LOSS = Kernel(
    "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d"
    "<c10::BFloat16, float, long>(c10::BFloat16*, long*)",
    12_000, (1, 1, 1), (32, 1, 1), shared_memory=128, occupancy=0,
)  # fmt: skip

BATCH_BYTES = 16_777_216
"""What each step copies from the host; the copy engine moves 25 bytes a nanosecond."""

_BYTES_PER_NS = 150
_ELEMENTS_PER_OP = 2_000_000


def all_reduce_elements(spec: JobSpec, layer: int) -> int:
    """Gradient elements of a block; blocks differ a little so that sizes can be told apart."""
    return _ELEMENTS_PER_OP * min(spec.ops_per_layer, 64) + 4096 * layer


def element_bytes(spec: JobSpec) -> int:
    """Bytes of a gradient element: bf16 in modern jobs, float in old ones."""
    return 2 if spec.nccl_names == "modern" else 4


def all_reduce_ns(spec: JobSpec, elements: int) -> int:
    """How long a ring moves `elements` once every rank has arrived."""
    moved = 2 * (spec.ranks - 1) * elements * element_bytes(spec) // spec.ranks
    return 12_000 + moved // _BYTES_PER_NS


def all_reduce_kernel(spec: JobSpec) -> Kernel:
    """The kernel that runs an all-reduce."""
    name = (
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        if spec.nccl_names == "modern"
        else "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)"
    )
    return Kernel(name, 0, (24, 1, 1), (544, 1, 1), 96, 103_808, 0)
