// Where training stands in its data, said without reference to ranks.
#ifndef PLINTH_STORAGE_DATASET_CURSOR_H_
#define PLINTH_STORAGE_DATASET_CURSOR_H_

#include <cstdint>

namespace plinth::storage {

// The next sample to train on: `sample` samples of epoch `epoch` are consumed, by all ranks
// together. The last two fields say what "sample" means; a sampler refuses a cursor that
// was made with another sequence length or other data.
struct DataCursor {
  int64_t epoch = 0;              // from 0
  int64_t sample = 0;             // in [0, samples per epoch)
  int64_t sequence_length = 0;    // tokens predicted per sample
  uint64_t dataset_checksum = 0;  // TokenDataset::checksum()

  friend bool operator==(const DataCursor&, const DataCursor&) = default;
};

}  // namespace plinth::storage

#endif  // PLINTH_STORAGE_DATASET_CURSOR_H_
