// What every kernel entry point shares: the context it runs in, and how a host kernel
// is queued on a stream.
//
// A kernel is `void Op(const OpArgs& args, KernelContext& ctx)`. OpArgs holds TensorViews
// and scalars only, and lists its views in ForEachView, so that one line moves a host
// kernel behind a device's address wall. Shapes and dtypes are contracts (CHECK). A view
// with `data == nullptr` is an absent optional operand.
#ifndef PLINTH_HARDWARE_KERNELS_KERNEL_H_
#define PLINTH_HARDWARE_KERNELS_KERNEL_H_

#include "plinth/hardware/device/allocator.h"
#include "plinth/hardware/device/device.h"
#include "plinth/hardware/tensor/tensor_view.h"
#include "plinth/hardware/threading/threads.h"

namespace plinth {

// Borrowed; everything outlives the work queued through it. Used by one thread at a time.
struct KernelContext {
  Stream* stream = nullptr;
  Threads* threads = nullptr;           // the team of host kernels
  CachingAllocator* scratch = nullptr;  // temporaries, on the stream's device
};

// Runs kernel(args, threads) on host threads in stream order, with device addresses in
// `args` replaced by host ones. On a host-accessible device the call happens here and now.
template <typename Args>
void LaunchOnHost(KernelContext& ctx, const Args& args,
                  void (*kernel)(const Args& args, Threads& threads)) {
  if (ctx.stream->device().host_accessible()) {
    kernel(args, *ctx.threads);
    return;
  }
  ctx.stream->RunOnHost([args, kernel, threads = ctx.threads](const AddressMap& map) {
    Args on_host = args;
    on_host.ForEachView([&map](TensorView& view) { view.data = map.ToHost(view.data); });
    kernel(on_host, *threads);
  });
}

}  // namespace plinth

#endif  // PLINTH_HARDWARE_KERNELS_KERNEL_H_
