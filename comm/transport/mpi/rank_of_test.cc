// One rank of connect_test.cc, started by mpirun: rank_of_test PORT MODE. Prints what it found as
// one line "rank R: ...", "ok" when all is well.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/call/buffer.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/store/store.h"
#include "plinth/comm/testing/collective_cases.h"
#include "plinth/comm/testing/ranks.h"
#include "plinth/comm/transport/mpi/connect.h"

namespace plinth::comm {
namespace {

int NumberOf(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

std::string RunCollectives(Communicator& comm) {
  if (comm.transport_name() != "mpi") return "not over mpi";
  constexpr int64_t kCounts[] = {0, 1, 7, 1023};
  constexpr int64_t kLarge[] = {65537, 1 << 20};
  std::string failure = testing::CheckAllCollectives(comm, kCounts);
  if (failure.empty()) failure = testing::CheckLargeAllReduce(comm, kLarge);
  if (!failure.empty()) return failure;
  // Two groups within MPI's world, at work at one time.
  const auto half = comm.Split(comm.rank() % 2, comm.rank());
  if (!half.ok()) return half.status().ToString();
  if ((*half)->size() > 1 && (*half)->transport_name() != "mpi") return "half not over mpi";
  failure = testing::CheckAllCollectives(**half, kCounts);
  return failure.empty() ? "ok" : absl::StrCat("half: ", failure);
}

// Three calls, before the last of which the last rank does something else.
std::string RunFault(Communicator& comm, const std::string& mode) {
  std::vector<float> values(1000, 1);
  for (int call = 1; call <= 3; ++call) {
    const bool faulty = call == 3 && comm.rank() == comm.size() - 1;
    if (faulty && mode == "late") absl::SleepFor(absl::Milliseconds(900));
    if (faulty && mode == "left") return "leaves";
    if (faulty && mode == "die") raise(SIGKILL);
    if (faulty && mode == "odd") values.resize(999);
    const absl::Status status = comm.AllReduce(BufferOf(std::span<float>(values)));
    if (!status.ok()) return status.ToString();
  }
  return "no error";
}

std::string Run(int rank, int size, int port, const std::string& mode) {
  CommOptions options =
      testing::LocalOptions(rank, size, port, TransportKind::kMpi, absl::Seconds(30));
  // As when the launcher's variables speak of more ranks than MPI does.
  if (mode == "alone") options.size = options.local_size = 1 + NumberOf("MORE_RANKS");
  if (mode == "collectives" || mode == "alone") {
    const auto comm = Communicator::Create(options);
    return comm.ok() ? RunCollectives(**comm) : comm.status().ToString();
  }
  // To form a group, MPI may need longer than a test shall wait for a late rank.
  const absl::Time deadline = absl::Now() + options.timeout;
  const auto store = Store::Open(options, deadline);
  if (!store.ok()) return store.status().ToString();
  absl::StatusOr<std::unique_ptr<Transport>> transport = ConnectMpi(options, **store, deadline);
  if (!transport.ok()) return transport.status().ToString();
  Communicator comm(*std::move(transport),
                    mode == "late" ? absl::Milliseconds(500) : options.timeout);
  return RunFault(comm, mode);
}

int Main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string mode = argv[2];
  const int rank = NumberOf("OMPI_COMM_WORLD_RANK") + NumberOf("FIRST_RANK");
  const std::string report = Run(rank, NumberOf("OMPI_COMM_WORLD_SIZE"), std::atoi(argv[1]), mode);
  const std::string line = absl::StrCat("rank ", rank, ": ", report, "\n");
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, line.data(), line.size());
  // mpirun ends all ranks when one ends without MPI_Finalize: let all say what they found.
  if (report != "ok") absl::SleepFor(absl::Milliseconds(150));
  return 0;
}

}  // namespace
}  // namespace plinth::comm

int main(int argc, char** argv) { return plinth::comm::Main(argc, argv); }
