// NVIDIA GPUs, from the driver's own libraries, loaded when asked.
//
// Nothing of NVIDIA's is needed to build or start a program that uses this: the libraries
// come with the driver, and a machine without them simply has no NVIDIA GPU.
#ifndef PLINTH_HARDWARE_PROBE_NVIDIA_H_
#define PLINTH_HARDWARE_PROBE_NVIDIA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plinth::probe {

// A slice of a GPU in MIG mode that CUDA sees as a device of its own.
struct MigDevice {
  std::string uuid;  // "MIG-..."
  int gpu_instance = 0;
  int compute_instance = 0;
  uint64_t memory_bytes = 0;
};

struct NvidiaGpu {
  std::string uuid;  // "GPU-..."
  std::string name;
  std::string pci_address;
  uint64_t memory_bytes = 0;
  int compute_major = 0;
  int compute_minor = 0;
  bool mig_enabled = false;
  std::vector<MigDevice> mig_devices;
};

// What the driver knows. `gpus` is in the driver's order (PCI bus order).
struct NvidiaTable {
  std::string driver_version;
  std::string source;   // the library that told; "" when none did
  std::string problem;  // why nothing is known: one line for people; "" when all is well
  // The source has applied CUDA_VISIBLE_DEVICES already (libcuda does, NVML does not).
  bool already_filtered = false;
  std::vector<NvidiaGpu> gpus;
};

// Asks `nvml` (all GPUs), else `cuda` (what CUDA would show; enough in containers that mount
// only that). Never fails: an absent library or a driver that does not answer is `problem`.
// Cost: up to a second where the driver has to wake GPUs. Loads libraries into the process.
NvidiaTable ReadNvidiaTable(const std::string& nvml = "libnvidia-ml.so.1",
                            const std::string& cuda = "libcuda.so.1");

// One CUDA device: GPU `gpu` of the table, or its MIG device `mig` when that is >= 0.
struct VisibleDevice {
  int gpu = 0;
  int mig = -1;
  friend bool operator==(const VisibleDevice&, const VisibleDevice&) = default;
};

// The devices that CUDA would enumerate, in its order, for a value of CUDA_VISIBLE_DEVICES
// (nullopt: not set). The driver's rules, which are stricter than they look:
//  - not set: all; empty: none.
//  - The first entry decides the notation: numbers (read as far as digits go), "GPU-" or
//    "MIG-" identifiers, which may be cut short while they stay unique.
//  - The first entry that names nothing (-1, out of range, other notation, ambiguous) ends the
//    list; those before it count. A repeated device makes the whole list empty.
//  - A GPU in MIG mode is usable only through its MIG devices. When any is selected, CUDA
//    shows the first one and nothing else.
// "MIG-GPU-<uuid>/<gpu instance>/<compute instance>" is the older spelling of a MIG device.
std::vector<VisibleDevice> VisibleDevices(const std::vector<NvidiaGpu>& gpus,
                                          std::optional<std::string_view> cuda_visible_devices);

}  // namespace plinth::probe

#endif  // PLINTH_HARDWARE_PROBE_NVIDIA_H_
