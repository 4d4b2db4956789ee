// SPDX-License-Identifier: Apache-2.0
#include "scopes/operation_kinds.h"

#include <gtest/gtest.h>

namespace joulemap::scopes {
namespace {

TEST(OperationKinds, TheSameOperationHasOneKindInAllFrameworks) {
  for (const char* name :
       {"aten::conv2d", "torch.nn.functional.conv2d", "ConvolutionBackward0", "conv_general_dilated", "Conv2D", "Conv"})
    EXPECT_EQ(kind_of_operation(name), OperationKind::convolution) << name;
  for (const char* name : {"torch.nn.functional.linear", "aten::addmm", "MmBackward0", "torch.Tensor.__matmul__",
                           "dot_general", "MatMul", "Gemm", "BatchMatMulV2"})
    EXPECT_EQ(kind_of_operation(name), OperationKind::matmul) << name;
  for (const char* name : {"torch.nn.functional.scaled_dot_product_attention",
                           "ScaledDotProductFlashAttentionBackward0", "aten::_flash_attention_forward"})
    EXPECT_EQ(kind_of_operation(name), OperationKind::attention) << name;
  for (const char* name : {"torch.nn.functional.layer_norm", "NativeLayerNormBackward0", "FusedBatchNormV3"})
    EXPECT_EQ(kind_of_operation(name), OperationKind::normalization) << name;
  for (const char* name : {"torch.Tensor.__rmul__", "MulBackward0", "torch.nn.functional.gelu", "TanhBackward0"})
    EXPECT_EQ(kind_of_operation(name), OperationKind::elementwise) << name;
  for (const char* name : {"torch.cat", "torch.Tensor.contiguous", "convert_element_type", "ToCopyBackward0"})
    EXPECT_EQ(kind_of_operation(name), OperationKind::copy) << name;
  EXPECT_EQ(kind_of_operation("torch.Tensor.norm"), OperationKind::reduction) << "no normalization";
  EXPECT_EQ(kind_of_operation("my_operation"), OperationKind::unknown);
}

TEST(OperationKinds, KernelsOfLibrariesAndCompilersHaveTheKindOfTheirOperation) {
  EXPECT_EQ(kind_of_kernel("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"), OperationKind::matmul);
  EXPECT_EQ(kind_of_kernel("nvjet_tst_128x256_64x4_1x2_h_bz_coopB_TNT"), OperationKind::matmul);
  EXPECT_EQ(kind_of_kernel("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw"),
            OperationKind::convolution);
  EXPECT_EQ(kind_of_kernel("void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false>"),
            OperationKind::layout);
  EXPECT_EQ(kind_of_kernel("void pytorch_flash::flash_fwd_kernel<...>"), OperationKind::attention);
  EXPECT_EQ(kind_of_kernel("triton_per_fused_add_native_layer_norm_0"), OperationKind::normalization);
  EXPECT_EQ(kind_of_kernel("triton_poi_fused_gelu_1"), OperationKind::elementwise);
  EXPECT_EQ(kind_of_kernel("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>"),
            OperationKind::elementwise);
  EXPECT_EQ(kind_of_kernel("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>"), OperationKind::copy);
  EXPECT_EQ(kind_of_kernel("HtoD"), OperationKind::host_copy);
  EXPECT_EQ(kind_of_kernel("DtoD"), OperationKind::copy);
}

TEST(OperationKinds, ConversionsAndHostCopiesAreTheirOwnWorkWithinAnyOperation) {
  EXPECT_EQ(kind_of_work("torch.conv2d", "nchwToNhwcKernel"), OperationKind::layout);
  EXPECT_EQ(kind_of_work("torch.Tensor.add", "HtoD"), OperationKind::host_copy);
  EXPECT_EQ(kind_of_work("torch.nn.functional.linear", "splitKreduce_kernel"), OperationKind::matmul);
  EXPECT_EQ(kind_of_work("torch.nn.functional.linear", "vectorized_elementwise_kernel"), OperationKind::matmul)
      << "its bias";
  EXPECT_EQ(kind_of_work("my_operation", "sgemm"), OperationKind::matmul) << "by its kernel";
}

TEST(OperationKinds, NamesOfKernelsContainTheirPrecision) {
  EXPECT_EQ(precision_of_kernel("cutlass_80_simt_sgemm_256x128_8x4_nn_align1"), "float32");
  EXPECT_EQ(precision_of_kernel("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8"), "float32");
  EXPECT_EQ(precision_of_kernel("sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x32"), "tf32");
  EXPECT_EQ(precision_of_kernel("cutlass_80_tensorop_s1688gemm_128x128_16x5_nn_align4"), "tf32");
  EXPECT_EQ(precision_of_kernel("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_tn"), "bfloat16");
  EXPECT_EQ(precision_of_kernel("ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_tn"), "float16");
  EXPECT_EQ(precision_of_kernel("nvjet_tst_128x256_64x4"), "bfloat16");
  EXPECT_EQ(precision_of_kernel("nvjet_sm90_hsh_128x256_64x4"), "float16");
  EXPECT_EQ(precision_of_kernel("triton_poi_fused_gelu_1"), "");
  EXPECT_EQ(precision_of_kernel("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7"), "");
}

}  // namespace
}  // namespace joulemap::scopes
