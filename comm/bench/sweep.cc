#include "plinth/comm/bench/sweep.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "plinth/comm/bench/cases/bench_op.h"
#include "plinth/comm/bench/cases/our_calls.h"
#include "plinth/comm/bench/cases/pattern.h"
#include "plinth/comm/bench/measure.h"
#include "plinth/comm/bench/probe.h"
#include "plinth/comm/bench/report/report.h"
#include "plinth/comm/bench/tuning/choices.h"
#include "plinth/comm/comm.h"
#include "plinth/comm/transport/mem/connect.h"
#include "plinth/comm/transport/shared_space.h"
#include "plinth/comm/transport/transport.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

// Where a rank runs; plain bytes on the wire.
struct Place {
  char host[64] = {};
  cpu_set_t cpus = {};
};

absl::StatusOr<std::vector<Place>> GatherPlaces(Communicator& comm) {
  Place own;
  if (gethostname(own.host, sizeof(own.host) - 1) != 0) {
    return absl::ErrnoToStatus(errno, "gethostname");
  }
  if (sched_getaffinity(0, sizeof(own.cpus), &own.cpus) != 0) {
    return absl::ErrnoToStatus(errno, "sched_getaffinity");
  }
  std::vector<Place> places(comm.size());
  RETURN_IF_ERROR(comm.AllGather(
      {&own, sizeof(own), DType::kU8},
      {places.data(), static_cast<int64_t>(places.size() * sizeof(Place)), DType::kU8}));
  return places;
}

// A launcher may give each rank a CPU of its own, so what counts is what a host's ranks may use
// together.
void DescribePlaces(const std::vector<Place>& places, RunInfo& info) {
  std::vector<cpu_set_t> cpus;
  std::vector<int> ranks;
  for (const Place& place : places) {
    const auto found = std::find(info.hosts.begin(), info.hosts.end(), place.host);
    const size_t host = found - info.hosts.begin();
    if (found == info.hosts.end()) {
      info.hosts.push_back(place.host);
      cpus.push_back({});
      ranks.push_back(0);
    }
    CPU_OR(&cpus[host], &cpus[host], &place.cpus);
    ++ranks[host];
  }
  info.plan.cpu_for_each_rank = true;
  for (size_t host = 0; host < cpus.size(); ++host) {
    info.cpus += CPU_COUNT(&cpus[host]);
    info.plan.cpu_for_each_rank &= CPU_COUNT(&cpus[host]) >= ranks[host];
  }
}

// Rank 0's output.
class Output {
 public:
  Output(bool prints, bool json) : prints_(prints), json_(json) {}

  void Begin(const RunInfo& info) {
    if (info_.has_value()) return;
    info_ = info;
    Print(TableHead(info));
  }
  void Add(Row row) {
    if (rows_.empty() || rows_.back().shape.op != row.shape.op ||
        rows_.back().transport != row.transport) {
      Print(SectionHead(*info_, row));
    }
    Print(TableLines(*info_, row));
    rows_.push_back(std::move(row));
  }
  void End() {
    if (!info_.has_value()) return;
    Print(TableFoot(*info_, rows_));
    if (prints_ && json_) std::fputs(ToJson(*info_, rows_).c_str(), stdout);
    std::fflush(stdout);
  }
  int64_t wrong() const { return WrongElements(rows_); }

 private:
  void Print(const std::string& table) {
    if (!prints_ || json_) return;
    std::fputs(table.c_str(), stdout);
    std::fflush(stdout);
  }

  const bool prints_;
  const bool json_;
  std::optional<RunInfo> info_;
  std::vector<Row> rows_;
};

// Page-aligned memory of this process.
struct PageDelete {
  void operator()(std::byte* data) const { ::operator delete[](data, std::align_val_t{4096}); }
};
using PrivateMemory = std::unique_ptr<std::byte[], PageDelete>;

PrivateMemory AllocatePrivate(int64_t bytes) {
  return PrivateMemory(new (std::align_val_t{4096}) std::byte[bytes]());
}

// All measurements within one group.
class GroupSweep {
 public:
  GroupSweep(const BenchConfig& config, std::string algorithm, Communicator& comm, MpiPeer* peer,
             Output& output)
      : config_(config),
        algorithm_(std::move(algorithm)),
        comm_(comm),
        peer_(peer),
        output_(output) {}

  absl::Status Run() {
    RETURN_IF_ERROR(Prepare());
    for (const BenchOp op : config_.ops) {
      if (!CanPin(algorithm_, op)) continue;
      for (const Shape& shape : ShapesOf(config_, op, comm_.size())) {
        ASSIGN_OR_RETURN(Row row, MeasureRow(shape));
        output_.Add(std::move(row));
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Prepare() {
    ASSIGN_OR_RETURN(const std::vector<Place> places, GatherPlaces(comm_));
    info_.ranks = comm_.size();
    info_.buffers = config_.registered ? "registered" : "private";
    if (peer_ != nullptr) info_.peer = peer_->version();
    info_.probe = config_.probe;
    info_.plan = config_.plan;
    DescribePlaces(places, info_);
    output_.Begin(info_);
    int64_t most = 1;
    for (const BenchOp op : config_.ops) {
      for (const Shape& shape : ShapesOf(config_, op, comm_.size())) {
        most = std::max(most, ShapeBytes(shape));
      }
    }
    if (config_.registered) {
      ASSIGN_OR_RETURN(registered_in_, comm_.Allocate(most));
      ASSIGN_OR_RETURN(registered_out_, comm_.Allocate(most));
    }
    // A peer gets ordinary memory, as its users would give it.
    if (!config_.registered || peer_ != nullptr) {
      private_in_ = AllocatePrivate(most);
      private_out_ = AllocatePrivate(most);
    }
    probes_ = config_.probe && comm_.size() == 2 && comm_.transport_name() == "shm";
    if (probes_ && comm_.rank() == 0) {
      ASSIGN_OR_RETURN(probe_, SharedMemoryProbe::Create(most));
    }
    return absl::OkStatus();
  }

  // What shared memory gives at this moment. The other rank sleeps.
  absl::StatusOr<double> TakeProbe(const Shape& shape) {
    double gbps = 0;
    RETURN_IF_ERROR(comm_.Barrier());
    if (probe_ != nullptr) {
      gbps = probe_->BusBandwidth(ShapeBytes(shape), info_.plan.batch_length);
    }
    RETURN_IF_ERROR(comm_.Barrier());
    return gbps;
  }

  absl::StatusOr<Row> MeasureRow(const Shape& shape) {
    Row row;
    row.shape = shape;
    row.transport = comm_.transport_name();
    row.algorithm = ChosenAlgorithm(row.transport, algorithm_, shape);
    const bool probed = probes_ && shape.op == BenchOp::kAllReduce;
    double before = 0;
    if (probed) {
      ASSIGN_OR_RETURN(before, TakeProbe(shape));
    }
    // What works in one way only is measured whichever was asked for.
    const bool out = WorksOutOfPlace(shape.op), in = WorksInPlace(shape.op);
    if (out && (config_.out_of_place || !in)) {
      ASSIGN_OR_RETURN(row.out_of_place, MeasureCell(shape, false));
    }
    if (in && (config_.in_place || !out)) {
      ASSIGN_OR_RETURN(row.in_place, MeasureCell(shape, true));
    }
    if (probed) {
      ASSIGN_OR_RETURN(const double after, TakeProbe(shape));
      row.probe_gbps = (before + after) / 2;
    }
    return row;
  }

  absl::StatusOr<Cell> MeasureCell(const Shape& shape, bool in_place) {
    const Pattern pattern(shape.dtype, shape.reduce, shape.ranks);
    const int rank = comm_.rank();
    const auto place = [&](void* in, void* out) {
      return PlaceBuffers(shape, rank, in_place, in, out);
    };
    const CallBuffers ours = config_.registered
                                 ? place(registered_in_.data(), registered_out_.data())
                                 : place(private_in_.get(), private_out_.get());
    const bool compared = peer_ != nullptr && peer_->Supports(shape, in_place);

    std::vector<CallBuffers> buffers = {ours};
    std::vector<std::function<absl::Status()>> calls = {
        [&] { return RunOurs(comm_, shape, ours); }};
    if (compared) {
      const CallBuffers theirs = place(private_in_.get(), private_out_.get());
      buffers.push_back(theirs);
      calls.push_back([&, theirs] { return peer_->Run(shape, theirs); });
    }
    std::vector<int64_t> wrong;
    for (size_t i = 0; i < calls.size(); ++i) {
      SetUp(shape, pattern, buffers[i]);
      RETURN_IF_ERROR(comm_.Barrier());
      RETURN_IF_ERROR(calls[i]());
      wrong.push_back(CountWrong(shape, pattern, rank, buffers[i].out));
    }
    ASSIGN_OR_RETURN(const auto samples, TimeInTurns(comm_, calls, info_.plan));
    // Out of place, the last timed call left a result that can be checked as well.
    if (!in_place) {
      wrong.back() = std::max(wrong.back(), CountWrong(shape, pattern, rank, buffers.back().out));
    }
    RETURN_IF_ERROR(comm_.AllReduce(BufferOf(std::span<int64_t>(wrong))));

    Cell cell;
    cell.ours = {Summarize(samples[0]), wrong[0]};
    if (compared) {
      cell.theirs = Result{Summarize(samples[1]), wrong[1]};
      cell.ratio = MedianRatio(samples[0], samples[1]);
    }
    return cell;
  }

  // Input in place, and output such that a missing write shows.
  void SetUp(const Shape& shape, const Pattern& pattern, const CallBuffers& buffers) {
    const int rank = comm_.rank();
    pattern.Poison(OutputElements(shape, rank), buffers.out);
    // Non-const memory of ours; a call only reads it.
    pattern.Fill(rank, 0, InputElements(shape, rank), const_cast<void*>(buffers.in));
  }

  const BenchConfig& config_;
  const std::string algorithm_;  // a name, or "auto"
  Communicator& comm_;
  MpiPeer* const peer_;
  Output& output_;
  RunInfo info_;
  bool probes_ = false;                       // equal on all ranks
  std::unique_ptr<SharedMemoryProbe> probe_;  // rank 0's
  PrivateMemory private_in_;
  PrivateMemory private_out_;
  SharedMemory registered_in_;
  SharedMemory registered_out_;
};

// The ranks as threads of this process; the first error of any.
absl::Status RunInThreads(const BenchConfig& config, const std::string& algorithm,
                          const CommOptions& options, Output& output) {
  const int ranks = options.size;
  std::vector<std::unique_ptr<Transport>> ends = ConnectMem(ranks);
  std::vector<absl::Status> statuses(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      GroupOptions group;
      group.timeout = options.timeout;
      group.pins = PinsFor(algorithm);
      Communicator comm(std::move(ends[rank]), std::move(group));
      Output silent(false, false);
      Output& own = rank == 0 ? output : silent;
      statuses[rank] = GroupSweep(config, algorithm, comm, nullptr, own).Run();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status RunOver(const std::string& transport, const std::string& algorithm,
                     const BenchConfig& config, CommOptions options,
                     const std::shared_ptr<Store>& store, MpiPeer* peer, Output& output) {
  // "auto" leaves it to the environment.
  if (transport != "auto") options.transport = TransportNamed(transport);
  if (algorithm != "auto") options.algorithm = algorithm;
  options.group = absl::StrCat("bench ", transport, " ", algorithm);
  ASSIGN_OR_RETURN(const std::unique_ptr<Communicator> comm, Communicator::Create(options, store));
  RETURN_IF_ERROR(GroupSweep(config, algorithm, *comm, peer, output).Run());
  // Nobody leaves while others still work.
  return comm->Barrier();
}

}  // namespace

absl::Status RunSweep(const BenchConfig& config, const CommOptions& options, MpiPeer* peer) {
  Output output(options.rank == 0, config.json);
  std::shared_ptr<Store> store;
  if (options.size > 1) {
    ASSIGN_OR_RETURN(store, Store::Open(options, absl::Now() + options.timeout));
  }
  for (const std::string& transport : config.transports) {
    for (const std::string& algorithm : config.algorithms) {
      if (transport != "mem") {
        RETURN_IF_ERROR(RunOver(transport, algorithm, config, options, store, peer, output));
      } else if (options.rank == 0) {
        RETURN_IF_ERROR(RunInThreads(config, algorithm, options, output));
      }
    }
  }
  output.End();
  if (output.wrong() == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(output.wrong(), " elements are wrong"));
}

}  // namespace plinth::comm
