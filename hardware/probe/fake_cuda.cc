// A library with the CUDA driver's names and binary interface and one made-up GPU, loaded by
// nvidia_test.cc.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" {

int cuInit(unsigned) { return std::getenv("FAKE_CUDA_NO_DEVICE") != nullptr ? 100 : 0; }
int cuDriverGetVersion(int* version) {
  *version = 12080;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal + 40;  // a handle, not an ordinal
  return ordinal == 0 ? 0 : 101;
}
int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, static_cast<size_t>(length), "Imaginary %d", device);
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{80} << 30;
  return 0;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int) {
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(0x11 * i);
  return 0;
}
int cuDeviceGetPCIBusId(char* address, int length, int) {
  std::snprintf(address, static_cast<size_t>(length), "0000:3B:00.0");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : -1;
  return 0;
}

}  // extern "C"
