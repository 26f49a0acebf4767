#include "plinth/hardware/probe/nvidia.h"

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plinth::probe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kNvml[] = "hardware/probe/libfake_nvml.so";
constexpr char kCuda[] = "hardware/probe/libfake_cuda.so";
constexpr char kNone[] = "libno-such-library.so.1";

// Sets a variable that the fake libraries look at, for one scope.
class ScopedEnv {
 public:
  explicit ScopedEnv(const char* name) : name_(name) { setenv(name, "1", 1); }
  ~ScopedEnv() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(Nvidia, ReadsEveryGpuThroughNvml) {
  const NvidiaTable table = ReadNvidiaTable(kNvml, kCuda);
  EXPECT_EQ(table.problem, "");
  EXPECT_EQ(table.source, kNvml);
  EXPECT_EQ(table.driver_version, "570.86.15");
  EXPECT_FALSE(table.already_filtered);
  ASSERT_EQ(table.gpus.size(), 2u);
  EXPECT_EQ(table.gpus[0].uuid, "GPU-aa");
  EXPECT_EQ(table.gpus[0].name, "Imaginary A");
  EXPECT_EQ(table.gpus[0].pci_address, "0000:3b:00.0");
  EXPECT_EQ(table.gpus[0].memory_bytes, 1000u);
  EXPECT_FALSE(table.gpus[0].mig_enabled);
  EXPECT_EQ(table.gpus[1].compute_major, 9);
  EXPECT_EQ(table.gpus[1].compute_minor, 1);
  EXPECT_TRUE(table.gpus[1].mig_enabled);
  ASSERT_EQ(table.gpus[1].mig_devices.size(), 1u);  // the empty slot is skipped
  EXPECT_EQ(table.gpus[1].mig_devices[0].uuid, "MIG-cc");
  EXPECT_EQ(table.gpus[1].mig_devices[0].gpu_instance, 4);
  EXPECT_EQ(table.gpus[1].mig_devices[0].compute_instance, 1);
  EXPECT_EQ(table.gpus[1].mig_devices[0].memory_bytes, 1002u);
  EXPECT_THAT(VisibleDevices(table.gpus, "MIG-GPU-bb/4/1"),
              ElementsAre(VisibleDevice{.gpu = 1, .mig = 0}));
}

TEST(Nvidia, FallsBackToCudaAlone) {
  const NvidiaTable table = ReadNvidiaTable(kNone, kCuda);
  EXPECT_EQ(table.problem, "");
  EXPECT_EQ(table.source, kCuda);
  EXPECT_EQ(table.driver_version, "CUDA 12.8");
  EXPECT_TRUE(table.already_filtered);
  ASSERT_EQ(table.gpus.size(), 1u);
  EXPECT_EQ(table.gpus[0].name, "Imaginary 40");
  EXPECT_EQ(table.gpus[0].uuid, "GPU-00112233-4455-6677-8899-aabbccddeeff");
  EXPECT_EQ(table.gpus[0].pci_address, "0000:3b:00.0");
  EXPECT_EQ(table.gpus[0].memory_bytes, uint64_t{80} << 30);
  EXPECT_EQ(table.gpus[0].compute_major, 9);
}

TEST(Nvidia, ADriverWithoutDevicesIsNoProblem) {
  const ScopedEnv none("FAKE_CUDA_NO_DEVICE");
  const NvidiaTable table = ReadNvidiaTable(kNone, kCuda);
  EXPECT_EQ(table.problem, "");
  EXPECT_THAT(table.gpus, IsEmpty());
}

TEST(Nvidia, ADriverThatDoesNotRunSaysWhy) {
  const ScopedEnv broken("FAKE_NVML_NOT_LOADED");
  const NvidiaTable table = ReadNvidiaTable(kNvml, kNone);
  EXPECT_THAT(table.problem, HasSubstr("Driver Not Loaded"));
  EXPECT_THAT(table.gpus, IsEmpty());
}

TEST(Nvidia, ALibraryWithoutTheFunctionsSaysSo) {
  const NvidiaTable table = ReadNvidiaTable(kCuda, kNone);  // not NVML at all
  EXPECT_THAT(table.problem, HasSubstr("too old"));
}

TEST(Nvidia, AbsentLibrariesAreNoError) {
  const NvidiaTable table = ReadNvidiaTable(kNone, kNone);
  EXPECT_THAT(table.problem, HasSubstr("no driver"));
  EXPECT_EQ(table.source, "");
  EXPECT_THAT(table.gpus, IsEmpty());
}

}  // namespace
}  // namespace plinth::probe
