// Ranks, as threads, of a group over the fake library, and what became of their communicators.
#ifndef PLINTH_COMM_TRANSPORT_NCCL_TESTING_NCCL_RANKS_H_
#define PLINTH_COMM_TRANSPORT_NCCL_TESTING_NCCL_RANKS_H_

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "plinth/comm/call/call.h"
#include "plinth/comm/call/group.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/comm/transport/nccl/connect.h"
#include "plinth/comm/transport/nccl/testing/fake_nccl.h"
#include "plinth/comm/transport/transport.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm::testing {

inline constexpr char kFakeNccl[] = "comm/transport/nccl/testing/libfake_nccl.so";
inline constexpr absl::Duration kNcclPatience = absl::Seconds(20);

// Sets a variable that the fake library looks at, for one scope.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedEnv() { unsetenv(name_); }

 private:
  const char* name_;
};

// A test after which no communicator may be alive.
class NcclTest : public ::testing::Test {
 protected:
  NcclTest();
  void TearDown() override;

  // Communicators of this test, so far.
  FakeNcclCounts Counts() const;
  // Every communicator that was begun has been aborted, and none ended as if all were well.
  void ExpectAllWereAborted() const;

 private:
  const FakeNcclCounts before_;
};

// One rank of a group, with what the layers above do for it.
struct Rank {
  Transport& transport;
  Backend& backend;
  absl::Duration timeout;
  GroupInfo group;
  uint64_t sequence = 0;

  absl::Status Call(CollectiveCall call);
};

struct NcclRanks {
  int size = 4;
  absl::Duration timeout = kNcclPatience;
  NcclFiles files = {kFakeNccl, kFakeNccl};
  bool one_gpu = false;  // rank 1 takes rank 0's
};

// Forms a group of threads and gives what each rank's `body` reports, or why there is no group.
std::vector<std::string> RunRanks(const NcclRanks& ranks,
                                  const std::function<std::string(Rank&)>& body);

using Bytes = std::vector<uint8_t>;

// What rank `rank` passes to an operation.
Bytes InputOf(int rank, int64_t bytes);

CollectiveCall MakeCall(OpKind op, ReduceOp reduce, DType dtype, int64_t count, int root, Bytes& in,
                        Bytes& out);

}  // namespace plinth::comm::testing

#endif  // PLINTH_COMM_TRANSPORT_NCCL_TESTING_NCCL_RANKS_H_
