// The inner loops that are timed, in the widest instructions of the CPU they run on.
#ifndef PLINTH_HARDWARE_PERF_KERNELS_H_
#define PLINTH_HARDWARE_PERF_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace plinth::perf {

// Spans passed to the memory loops start at, and are a multiple of, this many bytes.
inline constexpr size_t kBlockBytes = 4096;

// Loads every byte once, in four streams; returns their exclusive or by 64-bit word, folded, so
// that no load can be left out.
uint64_t StreamRead(std::span<const uint64_t> words);

// Copies with stores that go past the caches. REQUIRES: equal sizes, no overlap.
void StreamCopy(std::span<const uint64_t> from, std::span<uint64_t> to);

// `iterations` rounds of independent f32 multiply-adds on registers. Returns a value that
// depends on all of them.
float FmaLoop(int64_t iterations);
// Floating-point operations in one round, a multiply-add counting as two.
int64_t FmaFlopsPerIteration();

// Name of the instruction set that the loops use here, as Highway calls it: "AVX3_DL".
const char* InstructionSet();

}  // namespace plinth::perf

#endif  // PLINTH_HARDWARE_PERF_KERNELS_H_
