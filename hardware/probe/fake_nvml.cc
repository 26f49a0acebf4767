// A library with NVML's names and binary interface and two made-up GPUs, loaded by
// nvidia_test.cc. GPU 1 is in MIG mode with one slice in the second of two slots.
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// Handles are opaque to the caller: indices 0 and 1 are GPUs, 2 is the slice.
int handles[3];
int Index(void* device) { return static_cast<int>(static_cast<int*>(device) - handles); }

constexpr int kInvalidArgument = 2, kNotFound = 6, kInsufficientSize = 7, kNotLoaded = 9;

int Copy(const char* text, char* out, unsigned length) {
  if (std::strlen(text) + 1 > length) return kInsufficientSize;
  std::strcpy(out, text);
  return 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return std::getenv("FAKE_NVML_NOT_LOADED") != nullptr ? kNotLoaded : 0; }
const char* nvmlErrorString(int error) {
  return error == kNotLoaded ? "Driver Not Loaded" : "Other";
}
int nvmlSystemGetDriverVersion(char* out, unsigned length) {
  return Copy("570.86.15", out, length);
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index > 1) return kInvalidArgument;
  *device = &handles[index];
  return 0;
}
int nvmlDeviceGetName(void* device, char* out, unsigned length) {
  return Copy(Index(device) == 0 ? "Imaginary A" : "Imaginary B", out, length);
}
int nvmlDeviceGetUUID(void* device, char* out, unsigned length) {
  const char* const ids[] = {"GPU-aa", "GPU-bb", "MIG-cc"};
  return Copy(ids[Index(device)], out, length);
}
int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* total_free_used) {
  total_free_used[0] = 1000 + Index(device);
  total_free_used[1] = total_free_used[2] = 7;
  return 0;
}
// legacy id (16 bytes), five 32-bit numbers, id (32 bytes).
int nvmlDeviceGetPciInfo_v3(void* device, char* info) {
  std::memset(info, 0, 68);
  std::snprintf(info, 16, "0000:%02X:00.0", 0x3b + Index(device));
  std::snprintf(info + 36, 32, "00000000:%02X:00.0", 0x3b + Index(device));
  return 0;
}
int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *major = 9;
  *minor = Index(device);
  return 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned* current, unsigned* pending) {
  *current = *pending = Index(device) == 1 ? 1 : 0;
  return 0;
}
int nvmlDeviceGetMaxMigDeviceCount(void*, unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void*, unsigned index, void** slice) {
  if (index != 1) return kNotFound;
  *slice = &handles[2];
  return 0;
}
int nvmlDeviceGetGpuInstanceId(void*, unsigned* id) {
  *id = 4;
  return 0;
}
int nvmlDeviceGetComputeInstanceId(void*, unsigned* id) {
  *id = 1;
  return 0;
}

}  // extern "C"
