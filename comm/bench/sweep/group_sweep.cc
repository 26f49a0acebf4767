#include "plinth/comm/bench/sweep/group_sweep.h"

#include <algorithm>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "plinth/comm/bench/cases/our_calls.h"
#include "plinth/comm/bench/sweep/gpu_memory.h"
#include "plinth/comm/bench/sweep/measure.h"
#include "plinth/comm/bench/sweep/places.h"
#include "plinth/comm/bench/tuning/choices.h"
#include "plinth/comm/call/buffer.h"
#include "plinth/hardware/base/status_macros.h"

namespace plinth::comm {
namespace {

constexpr int64_t kPageBytes = 4096;

}  // namespace

GroupSweep::GroupSweep(const BenchConfig& config, std::string algorithm, Pins pins,
                       Communicator& comm, const Beside& beside, Printer& printer)
    : config_(config),
      algorithm_(std::move(algorithm)),
      pins_(std::move(pins)),
      comm_(comm),
      peer_(beside.peer),
      yardstick_(beside.yardstick),
      gpu_(beside.gpu),
      printer_(printer) {}

absl::Status GroupSweep::Run() {
  RETURN_IF_ERROR(Prepare());
  for (const BenchOp op : config_.ops) {
    if (!CanPin(algorithm_, op)) continue;
    for (const Shape& shape : ShapesOf(config_, op, comm_.size())) {
      ASSIGN_OR_RETURN(Row row, MeasureRow(shape));
      printer_.Add(std::move(row));
    }
  }
  return absl::OkStatus();
}

absl::Status GroupSweep::Prepare() {
  info_.buffers = gpu_ >= 0 ? "GPU" : config_.registered ? "registered" : "private";
  if (peer_ != nullptr) {
    info_.peer = peer_->version();
    info_.peer_title = peer_->title();
    info_.peer_binding_us = peer_->binding_us();
  }
  info_.probe = yardstick_ != nullptr;
  info_.plan = config_.plan;
  RETURN_IF_ERROR(DescribePlaces(comm_, info_));
  printer_.Begin(info_);
  return Allocate(MostBytes(config_, comm_.size()));
}

// A peer gets ordinary memory, as its users would give it, and of the kind that it can use; in it
// ours is measured too, unless in registered memory.
absl::Status GroupSweep::Allocate(int64_t most_bytes) {
  const int64_t half = (most_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  std::byte* memory = nullptr;
  if (peer_ != nullptr) {
    ASSIGN_OR_RETURN(memory, peer_->Memory(2 * half));
  }
  if (gpu_ >= 0) {
    ASSIGN_OR_RETURN(gpu_memory_, AllocateGpuMemory(gpu_, 2 * half));
    memory = gpu_memory_.data();
  }
  if (memory == nullptr && (peer_ != nullptr || !config_.registered)) {
    private_memory_.reset(new (std::align_val_t{kPageBytes}) std::byte[2 * half]());
    memory = private_memory_.get();
  }
  if (memory != nullptr) ours_ = theirs_ = {memory, memory + half};
  if (!config_.registered || gpu_ >= 0) return absl::OkStatus();
  ASSIGN_OR_RETURN(registered_in_, comm_.Allocate(most_bytes));
  ASSIGN_OR_RETURN(registered_out_, comm_.Allocate(most_bytes));
  ours_ = {static_cast<std::byte*>(registered_in_.data()),
           static_cast<std::byte*>(registered_out_.data())};
  return absl::OkStatus();
}

absl::StatusOr<Row> GroupSweep::MeasureRow(const Shape& shape) {
  Row row;
  row.shape = shape;
  // NCCL's own algorithms are not ours to know.
  row.transport = gpu_ >= 0 ? "nccl" : comm_.transport_name();
  row.algorithm = gpu_ >= 0 ? "-" : ChosenAlgorithm(row.transport, config_.tables, pins_, shape);
  const bool probed = yardstick_ != nullptr && shape.op == BenchOp::kAllReduce;
  const absl::Duration length = info_.plan.batch_length;
  double before = 0;
  if (probed) {
    ASSIGN_OR_RETURN(before, yardstick_->BusBandwidth(comm_, shape, length));
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
    ASSIGN_OR_RETURN(const double after, yardstick_->BusBandwidth(comm_, shape, length));
    row.probe_gbps = (before + after) / 2;
  }
  return row;
}

absl::StatusOr<Cell> GroupSweep::MeasureCell(const Shape& shape, bool in_place) {
  const Pattern pattern(shape.dtype, shape.reduce, shape.ranks);
  const int rank = comm_.rank();
  const auto place = [&](const Memory& memory) {
    return PlaceBuffers(shape, rank, in_place, memory.in, memory.out);
  };
  const CallBuffers ours = place(ours_);
  const bool compared = peer_ != nullptr && peer_->Supports(shape, in_place);

  std::vector<CallBuffers> buffers = {ours};
  std::vector<TimedCalls> calls = {InLoop([&] { return RunOurs(comm_, shape, ours); })};
  if (compared) {
    const CallBuffers theirs = place(theirs_);
    buffers.push_back(theirs);
    calls.push_back([&, theirs](int count) { return peer_->Run(shape, theirs, count); });
  }
  std::vector<int64_t> wrong;
  for (size_t i = 0; i < calls.size(); ++i) {
    SetUp(shape, pattern, buffers[i]);
    RETURN_IF_ERROR(comm_.Barrier());
    RETURN_IF_ERROR(calls[i](1).status());
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

void GroupSweep::SetUp(const Shape& shape, const Pattern& pattern, const CallBuffers& buffers) {
  const int rank = comm_.rank();
  pattern.Poison(OutputElements(shape, rank), buffers.out);
  // Non-const memory of ours; a call only reads it.
  pattern.Fill(rank, 0, InputElements(shape, rank), const_cast<void*>(buffers.in));
}

}  // namespace plinth::comm
