#include "plinth/comm/bench/sweep/sweep.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "plinth/comm/bench/report/printer.h"
#include "plinth/comm/bench/sweep/group_sweep.h"
#include "plinth/comm/bench/sweep/yardstick.h"
#include "plinth/comm/bench/tuning/choices.h"
#include "plinth/comm/collective/communicator.h"
#include "plinth/comm/executor/program_backend.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/comm/transport/transport.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

// The ranks as threads of this process; the first error of any.
absl::Status RunInThreads(const BenchConfig& config, const std::string& algorithm,
                          const CommOptions& options, Printer& printer) {
  ASSIGN_OR_RETURN(const Pins pins, PinsOf(algorithm));
  const int ranks = options.size;
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(ranks);
  std::vector<absl::Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions group;
      group.timeout = options.timeout;
      group.pins = pins;
      group.tables = config.tables;
      Communicator comm(std::move(ends[rank]), std::move(group));
      Printer silent(false, false);
      Printer& own = rank == 0 ? printer : silent;
      statuses[rank] = GroupSweep(config, algorithm, pins, comm, {}, own).Run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status RunOver(const std::string& transport, const std::string& algorithm,
                     const BenchConfig& config, CommOptions options,
                     const std::shared_ptr<Store>& store, Peer* peer, Printer& printer) {
  // "auto" leaves it to the environment.
  if (transport != "auto") options.transport = TransportNamed(transport);
  if (algorithm != "auto") options.algorithm = algorithm;
  if (options.transport == TransportKind::kNccl) options.device = options.local_rank;
  options.group = absl::StrCat("bench ", transport, " ", algorithm);
  ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> comm, Communicator::Create(options, store));
  ASSIGN_OR_RETURN(const Pins pins, PinsOf(options.algorithm));
  std::unique_ptr<Yardstick> yardstick;
  if (config.probe && comm->size() > 1 && comm->transport_name() == "shm") {
    ASSIGN_OR_RETURN(yardstick,
                     Yardstick::Create(options, *store, MostBytes(config, options.size)));
  }
  const int gpu = options.transport == TransportKind::kNccl ? options.device : -1;
  GroupSweep sweep(config, algorithm, pins, *comm, {peer, yardstick.get(), gpu}, printer);
  RETURN_IF_ERROR(sweep.Run());
  // Nobody leaves while others still work.
  return comm->Barrier();
}

}  // namespace

absl::Status RunSweep(const BenchConfig& config, const CommOptions& options,
                      const PeerStarter& start_peer) {
  Printer printer(options.rank == 0, config.json);
  std::shared_ptr<Store> store;
  if (options.size > 1 || start_peer != nullptr) {
    ASSIGN_OR_RETURN(store, Store::Open(options, absl::Now() + options.timeout));
  }
  std::unique_ptr<Peer> peer;
  if (start_peer != nullptr) {
    ASSIGN_OR_RETURN(peer, start_peer(options, *store));
  }
  for (const std::string& transport : config.transports) {
    for (const std::string& algorithm : config.algorithms) {
      if (transport != "mem") {
        RETURN_IF_ERROR(RunOver(transport, algorithm, config, options, store, peer.get(), printer));
      } else if (options.rank == 0) {
        RETURN_IF_ERROR(RunInThreads(config, algorithm, options, printer));
      }
    }
  }
  printer.End();
  if (printer.wrong() == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(printer.wrong(), " elements are wrong"));
}

}  // namespace plinth::comm
