#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/hardware/probe/nvidia.h"

namespace plinth::probe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr VisibleDevice Gpu(int gpu) { return {.gpu = gpu}; }
constexpr VisibleDevice Mig(int gpu, int mig) { return {.gpu = gpu, .mig = mig}; }

std::vector<NvidiaGpu> FourGpus() {
  return {{.uuid = "GPU-ab12cd34-0000"},
          {.uuid = "GPU-ab99ffff-1111"},
          {.uuid = "GPU-0c000000-2222"},
          {.uuid = "GPU-0d000000-3333"}};
}

// GPU 1 is cut into two slices; GPU 2 is in MIG mode but has none.
std::vector<NvidiaGpu> MixedGpus() {
  std::vector<NvidiaGpu> gpus = FourGpus();
  gpus[1].mig_enabled = true;
  gpus[1].mig_devices = {{.uuid = "MIG-11aa", .gpu_instance = 3, .compute_instance = 0},
                         {.uuid = "MIG-11bb", .gpu_instance = 5, .compute_instance = 1}};
  gpus[2].mig_enabled = true;
  return gpus;
}

std::vector<VisibleDevice> See(const std::string& list) { return VisibleDevices(FourGpus(), list); }
std::vector<VisibleDevice> SeeMixed(const std::string& list) {
  return VisibleDevices(MixedGpus(), list);
}

TEST(VisibleDevices, UnsetMeansAllAndEmptyMeansNone) {
  EXPECT_THAT(VisibleDevices(FourGpus(), std::nullopt),
              ElementsAre(Gpu(0), Gpu(1), Gpu(2), Gpu(3)));
  EXPECT_THAT(See(""), IsEmpty());
  EXPECT_THAT(VisibleDevices({}, std::nullopt), IsEmpty());
  EXPECT_THAT(VisibleDevices({}, "0"), IsEmpty());
}

TEST(VisibleDevices, NumbersKeepTheirOrder) {
  EXPECT_THAT(See("2"), ElementsAre(Gpu(2)));
  EXPECT_THAT(See("3,0,2"), ElementsAre(Gpu(3), Gpu(0), Gpu(2)));
  EXPECT_THAT(See(" 1, 0"), ElementsAre(Gpu(1), Gpu(0)));
}

TEST(VisibleDevices, TheFirstInvalidEntryEndsTheList) {
  EXPECT_THAT(See("-1"), IsEmpty());
  EXPECT_THAT(See("1,-1,0"), ElementsAre(Gpu(1)));
  EXPECT_THAT(See("0,2,-1,1"), ElementsAre(Gpu(0), Gpu(2)));
  EXPECT_THAT(See("0,4,1"), ElementsAre(Gpu(0)));
  EXPECT_THAT(See("0,,1"), ElementsAre(Gpu(0)));
  EXPECT_THAT(See(",0"), IsEmpty());
  EXPECT_THAT(See("none"), IsEmpty());
  EXPECT_THAT(See("NoDevFiles"), IsEmpty());
  EXPECT_THAT(See("all"), IsEmpty());
  EXPECT_THAT(See("1,99999999999999999999,0"), ElementsAre(Gpu(1)));
}

TEST(VisibleDevices, NumbersAreReadAsFarAsDigitsGo) {
  EXPECT_THAT(See("1gpu,2x"), ElementsAre(Gpu(1), Gpu(2)));
  EXPECT_THAT(See("+1"), ElementsAre(Gpu(1)));
}

TEST(VisibleDevices, ARepeatedDeviceEmptiesTheList) {
  EXPECT_THAT(See("0,1,0"), IsEmpty());
  EXPECT_THAT(See("GPU-ab12,GPU-ab12cd34"), IsEmpty());
  EXPECT_THAT(See("0,-1,0"), ElementsAre(Gpu(0)));  // the list had ended before
}

TEST(VisibleDevices, IdentifiersMayBeCutShortWhileUnique) {
  EXPECT_THAT(See("GPU-ab12"), ElementsAre(Gpu(0)));
  EXPECT_THAT(See("GPU-0d,GPU-ab9"), ElementsAre(Gpu(3), Gpu(1)));
  EXPECT_THAT(See("GPU-ab"), IsEmpty());  // two GPUs
  EXPECT_THAT(See("GPU-0c,GPU-ab,GPU-0d"), ElementsAre(Gpu(2)));
  EXPECT_THAT(See("GPU-ffff"), IsEmpty());
  EXPECT_THAT(See("GPU-ab12cd34-0000-and-more"), IsEmpty());
}

TEST(VisibleDevices, TheFirstEntryDecidesTheNotation) {
  EXPECT_THAT(See("GPU-ab12,1"), ElementsAre(Gpu(0)));
  EXPECT_THAT(See("1,GPU-ab12"), ElementsAre(Gpu(1)));
  EXPECT_THAT(SeeMixed("GPU-0d,MIG-11aa"), ElementsAre(Gpu(3)));
}

TEST(VisibleDevices, MigDevicesByEitherName) {
  EXPECT_THAT(SeeMixed("MIG-11aa"), ElementsAre(Mig(1, 0)));
  EXPECT_THAT(SeeMixed("MIG-11bb"), ElementsAre(Mig(1, 1)));
  EXPECT_THAT(SeeMixed("MIG-GPU-ab99ffff-1111/5/1"), ElementsAre(Mig(1, 1)));
  EXPECT_THAT(SeeMixed("MIG-GPU-ab99ffff-1111/5/0"), IsEmpty());
  EXPECT_THAT(SeeMixed("MIG-GPU-ab99ffff-1111"), IsEmpty());
  EXPECT_THAT(SeeMixed("MIG-77"), IsEmpty());
  EXPECT_THAT(See("MIG-11aa"), IsEmpty());  // no GPU is in MIG mode
}

TEST(VisibleDevices, CudaShowsOneMigDeviceAndNothingBesideIt) {
  EXPECT_THAT(SeeMixed("MIG-11bb,MIG-11aa"), ElementsAre(Mig(1, 1)));
  EXPECT_THAT(SeeMixed("1"), ElementsAre(Mig(1, 0)));
  EXPECT_THAT(SeeMixed("0,1,3"), ElementsAre(Mig(1, 0)));
  EXPECT_THAT(VisibleDevices(MixedGpus(), std::nullopt), ElementsAre(Mig(1, 0)));
  EXPECT_THAT(SeeMixed("0,3"), ElementsAre(Gpu(0), Gpu(3)));
  EXPECT_THAT(SeeMixed("2"), IsEmpty());  // MIG mode without a slice: nothing to run on
}

}  // namespace
}  // namespace plinth::probe
