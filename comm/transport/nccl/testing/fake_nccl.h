// What the fake library tells the tests that load it.
#ifndef PLINTH_COMM_TRANSPORT_NCCL_TESTING_FAKE_NCCL_H_
#define PLINTH_COMM_TRANSPORT_NCCL_TESTING_FAKE_NCCL_H_

namespace plinth::comm::testing {

// Of communicators, since the library was loaded.
struct FakeNcclCounts {
  int begun = 0;
  int aborted = 0;
  int destroyed = 0;

  int alive() const { return begun - aborted - destroyed; }
};

// The type of the library's function fake_nccl_counts.
using FakeNcclCountsFunction = void (*)(FakeNcclCounts* to);

}  // namespace plinth::comm::testing

#endif  // PLINTH_COMM_TRANSPORT_NCCL_TESTING_FAKE_NCCL_H_
