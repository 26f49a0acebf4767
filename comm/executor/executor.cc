#include "plinth/comm/executor/executor.h"

#include <algorithm>
#include <cstring>

#include "plinth/comm/program/problem.h"

namespace plinth::comm {
namespace {

constexpr int64_t kSlotAlignment = 64;

int64_t RoundUp(int64_t bytes) { return (bytes + kSlotAlignment - 1) & -kSlotAlignment; }

// Appends a part, or makes the last one longer where this one goes on from it.
template <typename Part, typename Pointer>
void Append(std::vector<Part>& parts, int peer, Pointer data, int64_t bytes) {
  if (bytes == 0) return;
  if (!parts.empty()) {
    Part& last = parts.back();
    if (last.peer == peer && static_cast<Pointer>(last.data) + last.bytes == data) {
      last.bytes += bytes;
      return;
    }
  }
  parts.push_back({peer, data, bytes});
}

}  // namespace

std::optional<PeerFailure> Executor::Run(const RankProgram& program, const CollectiveCall& call,
                                         const Slicing& slicing, absl::Time deadline) {
  const DType dtype = call.print.dtype;
  Job job{call, BlockLayout(call, transport_.size(), program.blocks), {}, 0, 0, 0, 0};
  job.width = DTypeSize(dtype);
  job.accumulator_width = IsReduction(call.print.op) ? DTypeSize(AccumulatorOf(dtype)) : job.width;
  const int64_t most = job.layout.MostCount();
  if (most == 0) return std::nullopt;
  job.schedule.rounds = static_cast<int>(program.rounds.size());
  job.schedule.slices = slicing.slices;
  job.schedule.pipelined = slicing.pipelined;
  job.slots = program.scratch_slots;
  job.slot_bytes = RoundUp(PartOf({0, most}, job.schedule.slices, 0).count * job.accumulator_width);
  const size_t scratch_bytes =
      kSlotAlignment + job.slot_bytes * job.slots * job.schedule.in_flight();
  if (scratch_.size() < scratch_bytes) scratch_.resize(scratch_bytes);

  for (int step = 0; step < job.schedule.steps(); ++step) {
    sends_.clear();
    receives_.clear();
    job.schedule.ForEach(step,
                         [&](int slice, int round) { Queue(job, program.rounds[round], slice); });
    if (!sends_.empty() || !receives_.empty()) {
      if (auto failure = transport_.Exchange(sends_, receives_, deadline)) return failure;
    }
    job.schedule.ForEach(step, [&](int slice, int round) {
      for (const ComputeStep& compute : program.rounds[round].computes) {
        Compute(job, compute, slice);
      }
    });
  }
  return std::nullopt;
}

Executor::Bytes Executor::Locate(const Job& job, const BlockRef& ref, int slice) {
  const Range part = PartOf({0, job.layout.Count(ref.block)}, job.schedule.slices, slice);
  const int rank = transport_.rank();
  if (ref.space == Space::kScratch) {
    const int64_t set = slice % job.schedule.in_flight();
    const auto base = reinterpret_cast<uintptr_t>(scratch_.data());
    std::byte* aligned = scratch_.data() + (RoundUp(base) - base);
    return {aligned + (set * job.slots + ref.slot) * job.slot_bytes,
            part.count * (ref.partial ? job.accumulator_width : job.width)};
  }
  // Never written through where it is the input.
  auto* buffer = static_cast<std::byte*>(
      ref.space == Space::kInput ? const_cast<void*>(job.call.in.data) : job.call.out.data);
  const int64_t offset = ref.space == Space::kInput ? job.layout.InputOffset(rank, ref.block)
                                                    : job.layout.OutputOffset(rank, ref.block);
  return {buffer + (offset + part.begin) * job.width, part.count * job.width};
}

void Executor::Queue(const Job& job, const Round& round, int slice) {
  for (const SendStep& send : round.sends) {
    const Bytes from = Locate(job, send.from, slice);
    Append(sends_, send.peer, static_cast<const std::byte*>(from.data), from.count);
  }
  for (const ReceiveStep& receive : round.receives) {
    const Bytes to = Locate(job, receive.to, slice);
    Append(receives_, receive.peer, to.data, to.count);
  }
}

void Executor::Compute(const Job& job, const ComputeStep& step, int slice) {
  const Bytes to = Locate(job, step.to, slice);
  if (to.count == 0) return;
  if (step.from.size() == 1 && step.from[0].partial == step.to.partial) {
    const std::byte* from = Locate(job, step.from[0], slice).data;
    if (from != to.data) std::memmove(to.data, from, to.count);
    return;
  }
  sources_.clear();
  for (const BlockRef& ref : step.from) {
    sources_.push_back({Locate(job, ref, slice).data, ref.partial});
  }
  const Fingerprint& print = job.call.print;
  if (step.to.partial) {
    ReducePartial(print.reduce, print.dtype, sources_, to.count / job.accumulator_width, to.data);
  } else {
    ReduceFinish(print.reduce, print.dtype, sources_, to.count / job.width, to.data,
                 transport_.size());
  }
}

}  // namespace plinth::comm
