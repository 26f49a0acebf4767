// CRC-32C (Castagnoli), the checksum of TensorBoard's record framing.
#ifndef PLINTH_TRAIN_METRICS_CRC32C_H_
#define PLINTH_TRAIN_METRICS_CRC32C_H_

#include <cstdint>
#include <string_view>

namespace plinth::train {

// Of small records only: bit by bit, no table.
uint32_t Crc32c(std::string_view bytes);

}  // namespace plinth::train

#endif  // PLINTH_TRAIN_METRICS_CRC32C_H_
