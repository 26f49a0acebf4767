// What a run needs, besides tensors, to go on as if it had never stopped.
#ifndef PLINTH_STORAGE_CHECKPOINT_TRAINER_STATE_H_
#define PLINTH_STORAGE_CHECKPOINT_TRAINER_STATE_H_

#include <cstdint>
#include <map>
#include <string>

#include "plinth/storage/dataset/cursor.h"

namespace plinth::storage {

struct TrainerState {
  int64_t step = 0;         // optimizer steps finished
  std::string config_text;  // the run's configuration as textproto
  uint64_t rng_seed = 0;    // key of the counter-based random numbers
  DataCursor cursor;
  std::map<std::string, int64_t> counters;  // exact: tokens seen, ...
  std::map<std::string, double> scalars;    // best evaluation loss, ...

  friend bool operator==(const TrainerState&, const TrainerState&) = default;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_CHECKPOINT_TRAINER_STATE_H_
