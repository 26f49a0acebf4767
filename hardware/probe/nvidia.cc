#include "plinth/hardware/probe/nvidia.h"

#include <dlfcn.h>

#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace plinth::probe {
namespace {

// A shared library, never unloaded: the driver's libraries start threads of their own.
class Library {
 public:
  explicit Library(const std::string& name)
      : handle_(dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  bool loaded() const { return handle_ != nullptr; }

  // Sets `*function`; false when this version of the library has no such symbol.
  template <typename F>
  bool Find(const char* name, F** function) const {
    *function = reinterpret_cast<F*>(dlsym(handle_, name));
    return *function != nullptr;
  }

 private:
  void* handle_;
};

// NVML's and CUDA's binary interfaces, as their headers of all supported driver versions agree:
// 0 is success, handles are pointers (NVML) or ints (CUDA).
using NvmlDevice = void*;
struct NvmlMemory {
  unsigned long long total, free, used;
};
struct NvmlPciInfo {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};
constexpr int kOk = 0;
constexpr size_t kTextBytes = 128;  // beyond NVML's own largest buffer sizes (96)

struct Nvml {
  int (*init)();
  const char* (*error_string)(int);
  int (*driver_version)(char*, unsigned);
  int (*count)(unsigned*);
  int (*handle)(unsigned, NvmlDevice*);
  int (*name)(NvmlDevice, char*, unsigned);
  int (*uuid)(NvmlDevice, char*, unsigned);
  int (*memory)(NvmlDevice, NvmlMemory*);
  int (*pci)(NvmlDevice, NvmlPciInfo*);
  int (*compute_capability)(NvmlDevice, int*, int*);
  // Absent in drivers before MIG (450).
  int (*mig_mode)(NvmlDevice, unsigned*, unsigned*);
  int (*mig_count)(NvmlDevice, unsigned*);
  int (*mig_handle)(NvmlDevice, unsigned, NvmlDevice*);
  int (*gpu_instance)(NvmlDevice, unsigned*);
  int (*compute_instance)(NvmlDevice, unsigned*);
  bool has_mig = false;

  bool Load(const Library& library) {
    has_mig = library.Find("nvmlDeviceGetMigMode", &mig_mode) &&
              library.Find("nvmlDeviceGetMaxMigDeviceCount", &mig_count) &&
              library.Find("nvmlDeviceGetMigDeviceHandleByIndex", &mig_handle) &&
              library.Find("nvmlDeviceGetGpuInstanceId", &gpu_instance) &&
              library.Find("nvmlDeviceGetComputeInstanceId", &compute_instance);
    return library.Find("nvmlInit_v2", &init) && library.Find("nvmlErrorString", &error_string) &&
           library.Find("nvmlSystemGetDriverVersion", &driver_version) &&
           library.Find("nvmlDeviceGetCount_v2", &count) &&
           library.Find("nvmlDeviceGetHandleByIndex_v2", &handle) &&
           library.Find("nvmlDeviceGetName", &name) && library.Find("nvmlDeviceGetUUID", &uuid) &&
           library.Find("nvmlDeviceGetMemoryInfo", &memory) &&
           library.Find("nvmlDeviceGetPciInfo_v3", &pci) &&
           library.Find("nvmlDeviceGetCudaComputeCapability", &compute_capability);
  }
};

template <typename Get, typename Device>
std::string Text(Get get, Device device) {
  char text[kTextBytes] = {};
  return get(device, text, kTextBytes - 1) == kOk ? std::string(text) : std::string();
}

// "00000000:3B:00.0" as NVML writes it, in the spelling of /sys: "0000:3b:00.0".
std::string SysfsAddress(std::string address) {
  address = absl::AsciiStrToLower(address);
  const size_t colon = address.find(':');
  return colon == 8 ? address.substr(4) : address;
}

void ReadMig(const Nvml& nvml, NvmlDevice device, NvidiaGpu* gpu) {
  unsigned current = 0, pending = 0, slots = 0;
  if (!nvml.has_mig || nvml.mig_mode(device, &current, &pending) != kOk || current == 0) return;
  gpu->mig_enabled = true;
  if (nvml.mig_count(device, &slots) != kOk) return;
  for (unsigned i = 0; i < slots; ++i) {
    NvmlDevice slice = nullptr;
    if (nvml.mig_handle(device, i, &slice) != kOk) continue;  // an empty slot
    MigDevice mig{.uuid = Text(nvml.uuid, slice)};
    unsigned id = 0;
    if (nvml.gpu_instance(slice, &id) == kOk) mig.gpu_instance = static_cast<int>(id);
    if (nvml.compute_instance(slice, &id) == kOk) mig.compute_instance = static_cast<int>(id);
    NvmlMemory memory = {};
    if (nvml.memory(slice, &memory) == kOk) mig.memory_bytes = memory.total;
    gpu->mig_devices.push_back(std::move(mig));
  }
}

NvidiaGpu ReadGpu(const Nvml& nvml, NvmlDevice device) {
  NvidiaGpu gpu{.uuid = Text(nvml.uuid, device), .name = Text(nvml.name, device)};
  NvmlMemory memory = {};
  if (nvml.memory(device, &memory) == kOk) gpu.memory_bytes = memory.total;
  NvmlPciInfo pci = {};
  if (nvml.pci(device, &pci) == kOk) gpu.pci_address = SysfsAddress(pci.bus_id);
  nvml.compute_capability(device, &gpu.compute_major, &gpu.compute_minor);
  ReadMig(nvml, device, &gpu);
  return gpu;
}

// One line on what went wrong, or "" and a filled table. The library is not shut down again:
// other users in the process may rely on it, and it is reference-counted.
std::string AskNvml(const Library& library, NvidiaTable* table) {
  Nvml nvml = {};
  if (!nvml.Load(library)) return "is too old: a function is missing";
  int error = nvml.init();
  unsigned count = 0;
  if (error == kOk) error = nvml.count(&count);
  if (error != kOk) return absl::StrCat("says: ", nvml.error_string(error));
  char version[kTextBytes] = {};
  if (nvml.driver_version(version, kTextBytes - 1) == kOk) table->driver_version = version;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    error = nvml.handle(i, &device);
    if (error != kOk) return absl::StrCat("says for GPU ", i, ": ", nvml.error_string(error));
    table->gpus.push_back(ReadGpu(nvml, device));
  }
  return "";
}

constexpr int kComputeMajor = 75;  // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
constexpr int kComputeMinor = 76;

struct Cuda {
  int (*init)(unsigned);
  int (*version)(int*);
  int (*count)(int*);
  int (*get)(int*, int);
  int (*name)(char*, int, int);
  int (*memory)(size_t*, int);
  int (*uuid)(unsigned char*, int);
  int (*pci)(char*, int, int);
  int (*attribute)(int*, int, int);

  bool Load(const Library& library) {
    return library.Find("cuInit", &init) && library.Find("cuDriverGetVersion", &version) &&
           library.Find("cuDeviceGetCount", &count) && library.Find("cuDeviceGet", &get) &&
           library.Find("cuDeviceGetName", &name) && library.Find("cuDeviceTotalMem_v2", &memory) &&
           (library.Find("cuDeviceGetUuid_v2", &uuid) || library.Find("cuDeviceGetUuid", &uuid)) &&
           library.Find("cuDeviceGetPCIBusId", &pci) &&
           library.Find("cuDeviceGetAttribute", &attribute);
  }
};

std::string FormatUuid(const unsigned char (&id)[16]) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    absl::StrAppendFormat(&text, "%02x", id[i]);
  }
  return text;
}

NvidiaGpu ReadGpu(const Cuda& cuda, int device) {
  NvidiaGpu gpu;
  char text[kTextBytes] = {};
  if (cuda.name(text, kTextBytes - 1, device) == kOk) gpu.name = text;
  unsigned char id[16] = {};
  if (cuda.uuid(id, device) == kOk) gpu.uuid = FormatUuid(id);
  char address[kTextBytes] = {};
  if (cuda.pci(address, kTextBytes - 1, device) == kOk) gpu.pci_address = SysfsAddress(address);
  size_t bytes = 0;
  if (cuda.memory(&bytes, device) == kOk) gpu.memory_bytes = bytes;
  cuda.attribute(&gpu.compute_major, kComputeMajor, device);
  cuda.attribute(&gpu.compute_minor, kComputeMinor, device);
  return gpu;
}

std::string AskCuda(const Library& library, NvidiaTable* table) {
  constexpr int kNoDevice = 100;
  Cuda cuda = {};
  if (!cuda.Load(library)) return "is too old: a function is missing";
  table->already_filtered = true;
  int version = 0;
  if (cuda.version(&version) == kOk) {
    table->driver_version = absl::StrFormat("CUDA %d.%d", version / 1000, version % 1000 / 10);
  }
  int count = 0;
  int error = cuda.init(0);
  if (error == kNoDevice) return "";
  if (error == kOk) error = cuda.count(&count);
  if (error != kOk) return absl::StrCat("answers with error ", error);
  for (int i = 0; i < count; ++i) {
    int device = 0;
    if (cuda.get(&device, i) == kOk) table->gpus.push_back(ReadGpu(cuda, device));
  }
  return "";
}

}  // namespace

NvidiaTable ReadNvidiaTable(const std::string& nvml, const std::string& cuda) {
  std::string problems;
  for (const bool is_nvml : {true, false}) {
    const std::string& name = is_nvml ? nvml : cuda;
    const Library library(name);
    if (!library.loaded()) continue;
    NvidiaTable table{.source = name};
    const std::string problem = is_nvml ? AskNvml(library, &table) : AskCuda(library, &table);
    if (problem.empty()) return table;
    absl::StrAppend(&problems, problems.empty() ? "" : "; ", name, " ", problem);
  }
  if (problems.empty()) problems = absl::StrCat("no driver (no ", nvml, ", no ", cuda, ")");
  return NvidiaTable{.problem = problems};
}

}  // namespace plinth::probe
