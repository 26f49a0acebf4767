#include "plinth/hardware/kernels/embedding/embedding.h"

#include "plinth/hardware/kernels/embedding/cpu.h"
#include "plinth/hardware/kernels/shape_check.h"

namespace plinth {

void Embedding(const EmbeddingArgs& args, KernelContext& ctx) {
  Dim V{"V"}, T{"T"}, D{"D"};
  ShapeCheck check("Embedding");
  check("table_VD", args.table_VD, DType::kF32, {&V, &D})("ids_T", args.ids_T, DType::kI32, {&T})(
      "y_TD", args.y_TD, DType::kF32, {&T, &D});
  LaunchOnHost(ctx, args, &cpu::Embedding);
}

void EmbeddingBackward(const EmbeddingBackwardArgs& args, KernelContext& ctx) {
  Dim V{"V"}, T{"T"}, D{"D"};
  ShapeCheck check("EmbeddingBackward");
  check("ids_T", args.ids_T, DType::kI32, {&T})("dy_TD", args.dy_TD, DType::kF32, {&T, &D})(
      "dtable_VD", args.dtable_VD, DType::kF32, {&V, &D});
  LaunchOnHost(ctx, args, &cpu::EmbeddingBackward);
}

}  // namespace plinth
