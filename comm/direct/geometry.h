// Which bytes go where in a call: the shape that all operations have in common.
#ifndef PLINTH_COMM_DIRECT_GEOMETRY_H_
#define PLINTH_COMM_DIRECT_GEOMETRY_H_

#include <cstdint>
#include <vector>

#include "plinth/comm/call/call.h"

namespace plinth::comm {

// A stretch of one rank's input that another rank puts into its output, in bytes.
struct Take {
  int64_t from = 0;   // in the input of the rank it is taken of
  int64_t to = 0;     // in the output of the rank that takes it
  int64_t bytes = 0;  // 0: nothing
};

// Every operation is this: each rank takes a stretch of the input of each rank, itself included,
// and either combines them (all stretches of a rank are equally long and go to one place) or puts
// them at places of their own.
struct Geometry {
  bool combines = false;
  bool same_for_all = false;  // all takers take the same of an input
  int64_t longest = 0;        // of the takes between any two ranks; equal on all ranks
  std::vector<Take> takes;    // by the rank taken of
  std::vector<Take> gives;    // by the rank that takes of this one
};

// Of any call that moves data, its descriptions and pair counts filled in where it has them.
// Reuses the memory of `geometry`.
void FillGeometry(const CollectiveCall& call, int rank, int size, Geometry& geometry);

// One part of a vector for each rank, in whole cache lines.
struct Share {
  int64_t begin;
  int64_t bytes;
};
Share ShareOf(int64_t bytes, int rank, int size);

// Geometry::longest. An all_to_all_v has its pair counts, which ranks know once they have met.
int64_t LongestBytes(const CollectiveCall& call, int size);

// Bytes of the input of every rank that has input; -1 for operations where they differ.
int64_t MostInputBytes(const CollectiveCall& call, int size);

}  // namespace plinth::comm

#endif  // PLINTH_COMM_DIRECT_GEOMETRY_H_
