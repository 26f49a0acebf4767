// A matrix product on the first device of this machine, from outside the workspace.
#include <cstdio>
#include <vector>

#include "plinth/hardware/hardware.h"

int main() {
  const auto machine = plinth::probe::Probe({.nvidia = plinth::probe::NvidiaTable{}});
  const auto device = plinth::CreateDevice(plinth::DeviceKind::kCpu);
  if (!machine.ok() || !device.ok()) return 1;
  plinth::Threads threads(machine->usable.cpu_count);
  plinth::CachingAllocator allocator(device->get());
  const auto stream = (*device)->CreateStream();
  plinth::KernelContext ctx{stream.get(), &threads, &allocator};

  const std::vector<float> a = {1, 2, 3, 4}, identity = {1, 0, 0, 1};
  const auto upload = [&](const std::vector<float>& values) {
    plinth::Tensor tensor = plinth::Tensor::New(allocator, plinth::DType::kF32, {2, 2});
    stream->CopyIn(tensor.view().data, values.data(), tensor.view().bytes());
    return tensor;
  };
  const plinth::Tensor x = upload(a), y = upload(identity), z = upload({0, 0, 0, 0});
  plinth::MatmulArgs args;
  args.a = x.view();
  args.b = y.view();
  args.c_MN = z.view();
  plinth::Matmul(args, ctx);
  std::vector<float> result(4);
  stream->CopyOut(result.data(), z.view().data, z.view().bytes());
  if (!stream->Synchronize().ok() || result != a) return 1;
  std::printf("%s: %d usable CPUs, product correct\n", (*device)->name().c_str(),
              machine->usable.cpu_count);
}
