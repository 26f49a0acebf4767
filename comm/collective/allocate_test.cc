// Memory that a group allocates, on every transport.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/testing/ranks.h"

namespace plinth::comm {
namespace {

using ::plinth::comm::testing::FreePort;
using ::plinth::comm::testing::LocalOptions;
using ::plinth::comm::testing::RunProcesses;
using ::plinth::comm::testing::RunThreads;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr int kRanks = 3;
constexpr int64_t kCount = 5000;  // floats: too many for a note

// The body has the group to itself, to end it when it likes.
using Body = std::function<std::string(std::unique_ptr<Communicator>)>;

enum class Kind { kMem, kShm, kTcp };

class AllocateTest : public ::testing::TestWithParam<Kind> {
 protected:
  std::vector<std::string> Run(const Body& body) {
    if (GetParam() == Kind::kMem) {
      return RunThreads(kRanks, kPatience, [&](Communicator& world) -> std::string {
        auto group = world.Split(0, world.rank());
        return group.ok() ? body(*std::move(group)) : group.status().ToString();
      });
    }
    const int port = FreePort();
    const auto kind = GetParam() == Kind::kShm ? TransportKind::kShm : TransportKind::kTcp;
    std::vector<std::string> reports;
    for (const auto& outcome : RunProcesses(kRanks, [&](int rank) -> std::string {
           auto comm = Communicator::Create(LocalOptions(rank, kRanks, port, kind, kPatience));
           return comm.ok() ? body(*std::move(comm)) : comm.status().ToString();
         })) {
      reports.push_back(outcome.report);
    }
    return reports;
  }
};

std::string KindName(const ::testing::TestParamInfo<Kind>& info) {
  constexpr const char* kNames[] = {"Mem", "Shm", "Tcp"};
  return kNames[static_cast<int>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Transports, AllocateTest,
                         ::testing::Values(Kind::kMem, Kind::kShm, Kind::kTcp), KindName);

// Whether the kernel maps the byte shared between processes.
bool IsMappedShared(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string rights;
    std::istringstream(line) >> std::hex >> begin >> dash >> end >> rights;
    if (address >= begin && address < end) return rights.size() == 4 && rights[3] == 's';
  }
  return false;
}

std::span<float> Floats(const SharedMemory& memory) {
  return {reinterpret_cast<float*>(memory.data()), memory.bytes() / sizeof(float)};
}

// `out` of all_gather and `in` and `out` of all_reduce, of the ranks' numbers from 1.
std::string UseAsBuffers(Communicator& comm, const SharedMemory& memory) {
  const std::span<float> floats = Floats(memory);
  const std::span<float> own = floats.subspan(comm.rank() * kCount, kCount);
  std::fill(own.begin(), own.end(), comm.rank() + 1.0f);
  absl::Status status = comm.AllGather(BufferOf(own), BufferOf(floats.first(kRanks * kCount)));
  if (!status.ok()) return status.ToString();
  for (int64_t i = 0; i < kRanks * kCount; ++i) {
    if (floats[i] != static_cast<float>(i / kCount + 1)) return absl::StrCat("gathered ", i);
  }
  status = comm.AllReduce(BufferOf(own), ReduceOp::kSum);
  if (!status.ok()) return status.ToString();
  for (const float value : own) {
    if (value != kRanks * (kRanks + 1) / 2) return absl::StrCat("reduced to ", value);
  }
  return "";
}

TEST_P(AllocateTest, GivesZeroedPagesThatCallsTake) {
  const bool shared = GetParam() == Kind::kShm;
  EXPECT_THAT(Run([shared](std::unique_ptr<Communicator> comm) -> std::string {
                // Of other sizes on each rank, twice.
                for (int time = 0; time < 2; ++time) {
                  const int64_t bytes = (kRanks + comm->rank()) * kCount * sizeof(float) + time;
                  const auto memory = comm->Allocate(bytes);
                  if (!memory.ok()) return memory.status().ToString();
                  if (memory->bytes() != bytes) return absl::StrCat(memory->bytes(), " bytes");
                  if (reinterpret_cast<uintptr_t>(memory->data()) % 4096 != 0)
                    return "not on a page";
                  for (int64_t i = 0; i < bytes; ++i) {
                    if (memory->data()[i] != std::byte{0})
                      return absl::StrCat("byte ", i, " is not zero");
                  }
                  if (shared && !IsMappedShared(memory->data())) return "not shared";
                  std::string wrong = UseAsBuffers(*comm, *memory);
                  if (!wrong.empty()) return wrong;
                }
                return "";
              }),
              Each(""));
}

TEST_P(AllocateTest, NothingOrLessIsRefusedAndTheGroupGoesOn) {
  EXPECT_THAT(Run([](std::unique_ptr<Communicator> comm) -> std::string {
                for (const int64_t bytes : {int64_t{0}, int64_t{-1}, INT64_MIN}) {
                  const absl::Status status = comm->Allocate(bytes).status();
                  if (!absl::IsInvalidArgument(status)) return status.ToString();
                }
                return comm->Barrier().ok() ? "" : "barrier";
              }),
              Each(""));
}

TEST_P(AllocateTest, WhatOneRankCannotHaveIsRefusedOnAllAndTheGroupGoesOn) {
  EXPECT_THAT(Run([](std::unique_ptr<Communicator> comm) -> std::string {
                const int64_t bytes = comm->rank() == 1 ? int64_t{1} << 50 : 4096;
                const absl::Status status = comm->Allocate(bytes).status();
                if (!absl::IsResourceExhausted(status)) return status.ToString();
                if (!comm->Barrier().ok()) return "barrier";
                return std::string(status.message());
              }),
              Each(AllOf(HasSubstr("rank 1"), HasSubstr("1073741824 MiB"))));
}

TEST_P(AllocateTest, OutlivesItsGroup) {
  EXPECT_THAT(Run([](std::unique_ptr<Communicator> comm) -> std::string {
                const auto memory = comm->Allocate(kRanks * kCount * sizeof(float));
                if (!memory.ok()) return memory.status().ToString();
                std::string wrong = UseAsBuffers(*comm, *memory);
                const float last = Floats(*memory).back();
                comm.reset();
                if (Floats(*memory).back() != last) return "lost";
                for (float& value : Floats(*memory)) value = -1;
                return wrong;
              }),
              Each(""));
}

// The others are told who it was, and when.
TEST_P(AllocateTest, NamesARankThatDoesNotCallIt) {
  const std::vector<std::string> reports = Run([](std::unique_ptr<Communicator> comm) {
    const absl::Status met = comm->Barrier();
    if (!met.ok()) return met.ToString();
    if (comm->rank() == 1) {
      absl::SleepFor(absl::Milliseconds(1500));
      return std::string("slept");
    }
    return comm->Allocate(4096, absl::Milliseconds(500)).status().ToString();
  });
  EXPECT_EQ(reports[1], "slept");
  for (const int rank : {0, 2}) {
    EXPECT_THAT(reports[rank], HasSubstr("rank 1 did not arrive at allocate #"));
    EXPECT_THAT(reports[rank], HasSubstr("within 500ms; its last call was barrier #"));
  }
}

}  // namespace
}  // namespace plinth::comm
