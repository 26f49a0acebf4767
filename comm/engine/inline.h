// Finishes calls whose data travelled in the notes by which the ranks met, or that have one rank.
#ifndef PLINTH_COMM_ENGINE_INLINE_H_
#define PLINTH_COMM_ENGINE_INLINE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "plinth/comm/call/call.h"

namespace plinth::comm {

// Bytes at call.in that this rank has to show to the others: nothing for a rank that is not the
// root of a broadcast or scatter.
int64_t ContributionBytes(const CollectiveCall& call, int rank);
// The same of the root where only the root gives, as every rank knows it; else 0.
int64_t RootContributionBytes(const CollectiveCall& call, int size);

// contributions[r] is that of rank r, at any address; unused ones may be null. Reduces in rank
// order. The contribution of this rank may be call.in itself.
void FinishInline(const CollectiveCall& call, int rank,
                  std::span<const std::byte* const> contributions);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_ENGINE_INLINE_H_
