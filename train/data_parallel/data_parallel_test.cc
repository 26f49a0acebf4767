#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/device/registry.h"
#include "plinth/hardware/testing/device_fixture.h"
#include "plinth/train/data_parallel/agree.h"
#include "plinth/train/data_parallel/gradient_reducer.h"

namespace plinth::train {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(20);

// A rank with two parameters whose elements are all `value`.
struct Rank {
  Rank(DeviceKind kind, float value)
      : device(*CreateDevice(kind)),
        allocator(device.get()),
        threads(1),
        stream(device->CreateStream()),
        ctx{stream.get(), &threads, &allocator},
        first("first", Shape({20}), models::Init::Zeros(), true),
        second("second", Shape({3}), models::Init::Zeros(), true),
        parameters{&first, &second},
        layout(parameters, 1),
        store(&layout, &ctx, &allocator) {
    for (models::Parameter* parameter : parameters) {
      parameter->set_value(Tensor::New(allocator, DType::kF32, parameter->shape()));
      Fill(parameter->value().view(), value);
    }
  }
  void Fill(const TensorView& view, float value) {
    const std::vector<float> values(view.elements(), value);
    stream->CopyIn(view.data, values.data(), view.bytes());
  }
  std::vector<float> Read(const TensorView& view) {
    std::vector<float> values(view.elements());
    stream->CopyOut(values.data(), view.data, view.bytes());
    CHECK_OK(stream->Synchronize());
    return values;
  }

  std::unique_ptr<Device> device;
  CachingAllocator allocator;
  Threads threads;
  std::unique_ptr<Stream> stream;
  KernelContext ctx;
  models::Parameter first, second;
  std::vector<models::Parameter*> parameters;
  FlatLayout layout;
  GradientStore store;
};

using DataParallelTest = ::testing::TestWithParam<DeviceKind>;

TEST_P(DataParallelTest, BucketsAreSummedAndGapsStayZero) {
  for (const int ranks : {1, 2, 3}) {
    const auto reports =
        comm::testing::RunThreads(ranks, kTimeout, [&](comm::Communicator& comm) -> std::string {
          Rank rank(GetParam(), 0);
          GradientReducer reducer(&rank.store, &comm, rank.stream.get());
          for (int step = 1; step <= 2; ++step) {
            rank.store.BeginStep();
            rank.store.ExpectLast([&](int bucket) { reducer.Start(bucket); });
            for (const models::Parameter* p : {&rank.second, &rank.first}) {
              rank.Fill(rank.store.Accumulate(*p).view, step * (1.0f + comm.rank()));
              rank.store.Complete(*p);
            }
            rank.store.FinishStep();
            const absl::Status status = reducer.Finish();
            if (!status.ok()) return status.ToString();
            const float sum = step * ranks * (ranks + 1) / 2;
            for (const FlatLayout::Slot& slot : rank.layout.slots()) {
              if (rank.Read(rank.layout.View(rank.store.flat(), slot)) !=
                  std::vector<float>(slot.parameter->shape().elements(), sum)) {
                return absl::StrCat("wrong sum on rank ", comm.rank());
              }
            }
            const auto gap = rank.Read(rank.store.flat().view().Rows(3, 16));
            if (gap != std::vector<float>(13, 0)) return "a gap is not zero";
          }
          return "";
        });
    EXPECT_THAT(reports, Each(""));
  }
}

TEST_P(DataParallelTest, UnequalWeightsAreFound) {
  const auto check = [](float other) {
    return comm::testing::RunThreads(3, kTimeout, [&](comm::Communicator& comm) {
      Rank rank(GetParam(), comm.rank() == 1 ? other : 1.0f);
      const absl::Status status = CheckEqualWeights(comm, rank.parameters, *rank.stream);
      return std::string(status.message());
    });
  };
  EXPECT_THAT(check(1.0f), Each(""));
  EXPECT_THAT(check(1.5f), Each(HasSubstr("weights of rank 1 differ")));
}

TEST_P(DataParallelTest, OneFailureIsEveryonesFailure) {
  const auto reports =
      comm::testing::RunThreads(3, kTimeout, [](comm::Communicator& comm) -> std::string {
        const absl::Status mine =
            comm.rank() == 2 ? absl::NotFoundError("no file") : absl::OkStatus();
        if (!AllOk(comm, absl::OkStatus(), "first").ok()) return "failed without a reason";
        return std::string(AllOk(comm, mine, "opening the data").message());
      });
  EXPECT_EQ(reports[0], "rank 2 failed: opening the data");
  EXPECT_EQ(reports[1], reports[0]);
  EXPECT_EQ(reports[2], "no file");
}

INSTANTIATE_TEST_SUITE_P(Devices, DataParallelTest,
                         ::testing::ValuesIn(::plinth::testing::TestedDevices()),
                         ::plinth::testing::DeviceTestName);

}  // namespace
}  // namespace plinth::train
