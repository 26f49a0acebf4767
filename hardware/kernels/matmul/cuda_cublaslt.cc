#include <dlfcn.h>

#include <string>

#include "cublasLt.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/device/cuda/cuda_device.h"
#include "plinth/hardware/device/tensor.h"
#include "plinth/hardware/kernels/matmul/cuda.h"

namespace plinth::cuda {
namespace {

constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;

// cuBLASLt's functions, loaded on first use so that the binary starts without the library.
struct CublasLt {
  decltype(&cublasLtCreate) Create;
  decltype(&cublasLtMatmul) Matmul;
  decltype(&cublasLtMatmulDescCreate) DescCreate;
  decltype(&cublasLtMatmulDescDestroy) DescDestroy;
  decltype(&cublasLtMatmulDescSetAttribute) DescSet;
  decltype(&cublasLtMatrixLayoutCreate) LayoutCreate;
  decltype(&cublasLtMatrixLayoutDestroy) LayoutDestroy;
  decltype(&cublasLtMatmulPreferenceCreate) PreferenceCreate;
  decltype(&cublasLtMatmulPreferenceDestroy) PreferenceDestroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) PreferenceSet;
  decltype(&cublasLtMatmulAlgoGetHeuristic) Heuristic;
  cublasLtHandle_t handle;  // bound to no device or stream, safe from any thread
};

CublasLt Load() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  CHECK(library != nullptr) << "cannot load " << name << ": " << dlerror();
  CublasLt lt{};
  const auto find = [&](auto& function, const char* symbol) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, symbol));
    CHECK(function != nullptr) << name << " has no " << symbol;
  };
  find(lt.Create, "cublasLtCreate");
  find(lt.Matmul, "cublasLtMatmul");
  find(lt.DescCreate, "cublasLtMatmulDescCreate");
  find(lt.DescDestroy, "cublasLtMatmulDescDestroy");
  find(lt.DescSet, "cublasLtMatmulDescSetAttribute");
  find(lt.LayoutCreate, "cublasLtMatrixLayoutCreate");
  find(lt.LayoutDestroy, "cublasLtMatrixLayoutDestroy");
  find(lt.PreferenceCreate, "cublasLtMatmulPreferenceCreate");
  find(lt.PreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  find(lt.PreferenceSet, "cublasLtMatmulPreferenceSetAttribute");
  find(lt.Heuristic, "cublasLtMatmulAlgoGetHeuristic");
  CHECK_EQ(static_cast<int>(lt.Create(&lt.handle)), 0) << "cublasLtCreate";
  return lt;
}

void Check(cublasStatus_t status, const char* call, const MatmulArgs& args) {
  CHECK_EQ(static_cast<int>(status), static_cast<int>(CUBLAS_STATUS_SUCCESS))
      << call << " for a " << args.a.shape << ", b " << args.b.shape << ", c " << args.c_MN.shape;
}

// cuBLAS reads memory by columns: a row-major matrix is its transpose there.
cublasLtMatrixLayout_t Layout(const CublasLt& lt, const TensorView& view, const MatmulArgs& args) {
  cublasLtMatrixLayout_t layout = nullptr;
  Check(lt.LayoutCreate(&layout, CUDA_R_32F, static_cast<uint64_t>(view.dim(1)),
                        static_cast<uint64_t>(view.dim(0)), view.strides[0]),
        "cublasLtMatrixLayoutCreate", args);
  return layout;
}

}  // namespace

void Matmul(const MatmulArgs& args, KernelContext& ctx) {
  if (args.c_MN.elements() == 0) return;
  static const CublasLt lt = Load();
  // c^T = op(b)^T . op(a)^T: with columns for rows, b comes first and keeps its own flag.
  cublasLtMatmulDesc_t desc = nullptr;
  Check(lt.DescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate", args);
  const cublasOperation_t first = args.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = args.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  Check(lt.DescSet(desc, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)), "transpose b", args);
  Check(lt.DescSet(desc, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second)), "transpose a",
        args);
  const cublasLtMatrixLayout_t b = Layout(lt, args.b, args);
  const cublasLtMatrixLayout_t a = Layout(lt, args.a, args);
  const cublasLtMatrixLayout_t c = Layout(lt, args.c_MN, args);

  // Reused by later work of the same stream only, whose order keeps the uses apart.
  const Tensor workspace = Tensor::New(*ctx.scratch, DType::kU8, {kWorkspaceBytes});
  cublasLtMatmulPreference_t preference = nullptr;
  Check(lt.PreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate", args);
  const size_t bytes = kWorkspaceBytes;
  Check(
      lt.PreferenceSet(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof(bytes)),
      "workspace", args);
  cublasLtMatmulHeuristicResult_t choice{};
  int choices = 0;
  Check(lt.Heuristic(lt.handle, desc, b, a, c, c, preference, 1, &choice, &choices),
        "cublasLtMatmulAlgoGetHeuristic", args);
  const float alpha = 1, beta = args.accumulate ? 1.0f : 0.0f;
  Check(lt.Matmul(lt.handle, desc, &alpha, args.b.data, b, args.a.data, a, &beta, args.c_MN.data, c,
                  args.c_MN.data, c, &choice.algo, workspace.view().data, bytes,
                  static_cast<cudaStream_t>(CudaNativeStream(*ctx.stream))),
        "cublasLtMatmul", args);

  lt.PreferenceDestroy(preference);
  for (const cublasLtMatrixLayout_t layout : {a, b, c}) lt.LayoutDestroy(layout);
  lt.DescDestroy(desc);
}

}  // namespace plinth::cuda
