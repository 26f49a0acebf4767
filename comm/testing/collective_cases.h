// Collectives checked against a serial reference, on whatever transport.
#ifndef PLINTH_COMM_TESTING_COLLECTIVE_CASES_H_
#define PLINTH_COMM_TESTING_COLLECTIVE_CASES_H_

#include <cstdint>
#include <span>
#include <string>

#include "plinth/comm/collective/communicator.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm::testing {

inline constexpr DType kReducible[] = {DType::kF64,    DType::kF32,    DType::kBf16, DType::kF16,
                                       DType::kF8E4M3, DType::kF8E5M2, DType::kI8,   DType::kU8,
                                       DType::kI32,    DType::kU32,    DType::kI64,  DType::kU64};

// Runs every operation, reduction and root for each count and dtype, in place and not, and compares
// each element with the reference. Inputs are small whole numbers, so that the reference is exact
// in every dtype and whatever the order. Also checks that nothing is written outside the buffers
// or to an input. Every rank calls it with the same counts. Text of the first failure, or nothing.
std::string CheckAllCollectives(Communicator& comm, std::span<const int64_t> counts,
                                std::span<const DType> dtypes = kReducible);

// The same for large counts: AllReduce of f32 and bf16 only.
std::string CheckLargeAllReduce(Communicator& comm, std::span<const int64_t> counts);

// Sums, products and averages whose bits depend on the order of operations. Returns them as text,
// to be compared between runs; "ranks differ: ..." when they are not equal on all ranks.
std::string BitsOfReductions(Communicator& comm, int64_t count, DType dtype);

// Element `i` of rank `rank`'s input to the test of order: values of very different sizes, whose
// f32 sum depends on the order of addition.
float OrderSensitiveValue(int rank, int64_t i);

}  // namespace plinth::comm::testing

#endif  // PLINTH_COMM_TESTING_COLLECTIVE_CASES_H_
