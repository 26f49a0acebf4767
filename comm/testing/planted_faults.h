// Plants one fault into a random legal program of eight ranks and says whether every survivor, and
// the doctor afterwards, named the right rank and call.
#ifndef PLINTH_COMM_TESTING_PLANTED_FAULTS_H_
#define PLINTH_COMM_TESTING_PLANTED_FAULTS_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"

namespace plinth::comm::testing {

enum class PlantedKind {
  kKill,
  kStop,
  kSlow,
  kWrongOp,
  kWrongSize,
  kWrongDType,
  kWrongRoot,
  kOneTooMany,       // a call that the others do not make, in the middle
  kOneMoreAtTheEnd,  // the same, when the others have left
  kLinkCut,
};
inline constexpr int kPlantedKinds = 10;

enum class PlantedTransport { kMem, kShm, kTcp };  // threads; processes; processes

inline constexpr int kPlantedRanks = 8;
inline constexpr absl::Duration kPlantedDeadline = absl::Seconds(1);

struct PlantedFault {
  PlantedKind kind = PlantedKind::kKill;
  PlantedTransport transport = PlantedTransport::kMem;
  uint64_t seed = 0;  // of the program
  int victim = 0;
  int partner = 0;       // kLinkCut: the other end
  uint64_t at_call = 1;  // from 1
};

// Number `index` of the planted faults: all kinds and transports in turn, the rest at random.
PlantedFault FaultOf(uint64_t index);
// "kill of rank 3 at call 17 over tcp (seed 5)".
std::string ToString(const PlantedFault& fault);

// Runs it and checks, with dumps in the empty directory `directory`. What is wrong, or nothing.
// Forks: call it while no other thread runs.
std::string RunPlantedFault(const PlantedFault& fault, const std::string& directory);

}  // namespace plinth::comm::testing

#endif  // PLINTH_COMM_TESTING_PLANTED_FAULTS_H_
