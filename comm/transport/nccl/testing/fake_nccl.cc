// A library with the binary interfaces of NCCL and the CUDA driver, eight made-up GPUs and host
// memory for theirs, loaded by nccl_ranks.cc. Ranks are threads of one process. An operation
// ends when every rank it needs has queued it; the thread that queues last moves the data.
//
// What it shall do wrong is told in variables of the environment, "rank:call" for those of calls,
// which each rank counts from 1 (a group of calls is one):
//   FAKE_NCCL_VERSION      version number, 22400 without it
//   FAKE_NCCL_ID_ERROR     no unique id can be made
//   FAKE_NCCL_INIT_ERROR   "rank": connecting fails there, and does not end on the others
//   FAKE_NCCL_INIT_HANG    connecting does not end
//   FAKE_NCCL_QUEUE_ERROR  the call is refused at once
//   FAKE_NCCL_ASYNC_ERROR  the call fails after it was queued
//   FAKE_NCCL_HANG         the call is queued and never begins
//   FAKE_CUDA_ERROR        "rank:call": the GPU fails in that call
//   FAKE_CUDA_ABSENT       the driver finds no GPU
#include "plinth/comm/transport/nccl/testing/fake_nccl.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/tensor/dtype.h"

namespace {

using plinth::DType;
using plinth::comm::ReduceOp;

constexpr int kSuccess = 0, kSystemError = 2, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7;
constexpr int kCudaNoDevice = 100, kCudaIllegalAddress = 700, kCudaNotReady = 600;

struct Stream {
  int pending = 0;  // queued and not through
  bool broken = false;
};

enum class Kind { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kReduce, kSend, kReceive };

struct Entry {
  Kind kind;
  const void* in;
  void* out;
  size_t count;
  int type;
  int op;
  int peer;  // or root
  Stream* stream;
};

struct World;
struct Comm {
  int rank = 0;
  int size = 1;
  int state = kInProgress;
  int calls = 0;
  World* world = nullptr;
  std::deque<Entry> collectives;
};

struct World {
  std::vector<Comm*> comms;  // by rank; null until it connects, and after it has ended
  int connected = 0;
  std::map<std::pair<int, int>, std::deque<Entry>> sends, receives;  // by (from, to)
};

std::mutex mutex;  // guards all that follows
std::map<std::string, World> worlds;
int ids = 0;
plinth::comm::testing::FakeNcclCounts counts;

thread_local int group_depth = 0;
thread_local std::vector<std::pair<Comm*, Entry>> group;

const char* Variable(const char* name) { return std::getenv(name); }

bool Hits(const char* name, const Comm& comm) {
  const char* text = Variable(name);
  int rank = -1;
  int call = -1;
  if (text == nullptr || std::sscanf(text, "%d:%d", &rank, &call) != 2) return false;
  return rank == comm.rank && call == comm.calls;
}

size_t WidthOf(int type) {
  constexpr size_t kWidths[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return kWidths[type];
}

DType DTypeOf(int type) {
  constexpr DType kTypes[] = {DType::kI8,  DType::kU8,   DType::kI32,    DType::kU32,
                              DType::kI64, DType::kU64,  DType::kF16,    DType::kF32,
                              DType::kF64, DType::kBf16, DType::kF8E4M3, DType::kF8E5M2};
  return kTypes[type];
}

ReduceOp OpOf(int op) {
  constexpr ReduceOp kOps[] = {ReduceOp::kSum, ReduceOp::kProd, ReduceOp::kMax, ReduceOp::kMin,
                               ReduceOp::kAvg};
  return kOps[op];
}

char* At(const void* data, size_t bytes) {
  return const_cast<char*>(static_cast<const char*>(data)) + bytes;
}

void ReduceInto(const std::vector<Entry>& parts, size_t begin, size_t count, void* out) {
  const size_t width = WidthOf(parts[0].type);
  std::vector<const void*> sources;
  for (const Entry& part : parts) sources.push_back(At(part.in, begin * width));
  // `out` may be one of the sources, of which others still have to be read.
  std::vector<char> result(count * width);
  plinth::comm::Reduce(OpOf(parts[0].op), DTypeOf(parts[0].type), sources,
                       static_cast<int64_t>(count), result.data());
  std::memcpy(out, result.data(), result.size());
}

// parts[r] is that of rank r.
void Execute(const std::vector<Entry>& parts) {
  const Entry& first = parts[0];
  const size_t bytes = first.count * WidthOf(first.type);
  const int size = static_cast<int>(parts.size());
  switch (first.kind) {
    case Kind::kAllReduce: {
      std::vector<char> result(bytes);
      ReduceInto(parts, 0, first.count, result.data());
      for (const Entry& part : parts) std::memcpy(part.out, result.data(), bytes);
      return;
    }
    case Kind::kReduceScatter:
      for (int rank = 0; rank < size; ++rank) {
        ReduceInto(parts, rank * first.count, first.count, parts[rank].out);
      }
      return;
    case Kind::kReduce:
      ReduceInto(parts, 0, first.count, parts[first.peer].out);
      return;
    case Kind::kAllGather: {
      std::vector<char> result(bytes * size);
      for (int rank = 0; rank < size; ++rank) {
        std::memcpy(At(result.data(), rank * bytes), parts[rank].in, bytes);
      }
      for (const Entry& part : parts) std::memcpy(part.out, result.data(), result.size());
      return;
    }
    case Kind::kBroadcast:
      for (const Entry& part : parts) std::memmove(part.out, parts[first.peer].in, bytes);
      return;
    default:
      return;
  }
}

void Break(World& world) {
  for (Comm* comm : world.comms) {
    if (comm != nullptr) comm->state = kInvalidUsage;
  }
}

bool Same(const Entry& a, const Entry& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.op == b.op &&
         a.peer == b.peer;
}

void ProgressCollectives(World& world) {
  const auto ready = [](const Comm* comm) { return comm != nullptr && !comm->collectives.empty(); };
  while (std::all_of(world.comms.begin(), world.comms.end(), ready)) {
    std::vector<Entry> parts;
    for (Comm* comm : world.comms) {
      parts.push_back(comm->collectives.front());
      comm->collectives.pop_front();
    }
    for (const Entry& part : parts) {
      if (!Same(part, parts[0])) return Break(world);
    }
    Execute(parts);
    for (const Entry& part : parts) --part.stream->pending;
  }
}

void ProgressPairs(World& world) {
  for (auto& [pair, sends] : world.sends) {
    std::deque<Entry>& receives = world.receives[pair];
    while (!sends.empty() && !receives.empty()) {
      const Entry& from = sends.front();
      const Entry& to = receives.front();
      if (from.count != to.count) return Break(world);
      std::memmove(to.out, from.in, from.count * WidthOf(from.type));
      --from.stream->pending;
      --to.stream->pending;
      sends.pop_front();
      receives.pop_front();
    }
  }
}

// One call, or a group of calls, of one communicator.
int Submit(Comm* comm, const std::vector<Entry>& entries) {
  std::lock_guard lock(mutex);
  ++comm->calls;
  if (Hits("FAKE_NCCL_QUEUE_ERROR", *comm)) return kInvalidUsage;
  for (const Entry& entry : entries) ++entry.stream->pending;
  if (Hits("FAKE_NCCL_HANG", *comm)) return kInProgress;
  if (Hits("FAKE_CUDA_ERROR", *comm)) {
    for (const Entry& entry : entries) entry.stream->broken = true;
    return kSuccess;
  }
  if (Hits("FAKE_NCCL_ASYNC_ERROR", *comm)) {
    comm->state = kRemoteError;
    return kInProgress;
  }
  World& world = *comm->world;
  for (const Entry& entry : entries) {
    if (entry.kind == Kind::kSend) {
      world.sends[{comm->rank, entry.peer}].push_back(entry);
    } else if (entry.kind == Kind::kReceive) {
      world.receives[{entry.peer, comm->rank}].push_back(entry);
    } else {
      comm->collectives.push_back(entry);
    }
  }
  ProgressCollectives(world);
  ProgressPairs(world);
  return kInProgress;
}

int Queue(void* comm, const Entry& entry) {
  if (group_depth > 0) {
    group.emplace_back(static_cast<Comm*>(comm), entry);
    return kSuccess;
  }
  return Submit(static_cast<Comm*>(comm), {entry});
}

// Nothing of it is touched any more.
void Drop(Comm* comm) {
  World& world = *comm->world;
  for (const Entry& entry : comm->collectives) entry.stream->pending = 0;
  for (auto* pairs : {&world.sends, &world.receives}) {
    for (auto& [pair, entries] : *pairs) {
      const int owner = pairs == &world.sends ? pair.first : pair.second;
      if (owner != comm->rank) continue;
      for (const Entry& entry : entries) entry.stream->pending = 0;
      entries.clear();
    }
  }
  world.comms[comm->rank] = nullptr;
  delete comm;
}

struct UniqueId {
  char bytes[128];
};
struct Config {
  size_t size;
  unsigned magic;
  unsigned version;
  int blocking;
};

}  // namespace

extern "C" {

void fake_nccl_counts(plinth::comm::testing::FakeNcclCounts* to) {
  std::lock_guard lock(mutex);
  *to = counts;
}

int ncclGetVersion(int* version) {
  const char* text = Variable("FAKE_NCCL_VERSION");
  *version = text == nullptr ? 22400 : std::atoi(text);
  return kSuccess;
}
int ncclGetUniqueId(UniqueId* id) {
  if (Variable("FAKE_NCCL_ID_ERROR") != nullptr) return kSystemError;
  std::lock_guard lock(mutex);
  std::memset(id->bytes, 0x7f, sizeof(id->bytes));
  std::snprintf(id->bytes, sizeof(id->bytes), "fake %d", ++ids);
  return kSuccess;
}
const char* ncclGetErrorString(int result) {
  switch (result) {
    case kSystemError:
      return "unhandled system error";
    case kInvalidUsage:
      return "invalid usage";
    case kRemoteError:
      return "remote process exited or there was a network error";
    default:
      return "other";
  }
}
const char* ncclGetLastError(void*) { return "said the fake"; }

int ncclCommInitRankConfig(void** out, int size, UniqueId id, int rank, Config* config) {
  if (config->magic != 0xcafebeef || config->blocking != 0 || config->size < sizeof(Config)) {
    return kInvalidUsage;
  }
  std::lock_guard lock(mutex);
  World& world = worlds[std::string(id.bytes, sizeof(id.bytes))];
  world.comms.resize(size);
  auto* comm = new Comm{.rank = rank, .size = size, .world = &world};
  *out = comm;
  world.comms[rank] = comm;
  ++counts.begun;
  const char* failing = Variable("FAKE_NCCL_INIT_ERROR");
  if (failing != nullptr && std::atoi(failing) == rank) {
    comm->state = kSystemError;
  } else if (Variable("FAKE_NCCL_INIT_HANG") == nullptr && ++world.connected == size) {
    for (Comm* each : world.comms) each->state = kSuccess;
  }
  return kInProgress;
}
int ncclCommGetAsyncError(void* comm, int* result) {
  std::lock_guard lock(mutex);
  *result = static_cast<Comm*>(comm)->state;
  return kSuccess;
}
int ncclCommFinalize(void*) { return kSuccess; }
int ncclCommDestroy(void* comm) {
  std::lock_guard lock(mutex);
  ++counts.destroyed;
  Drop(static_cast<Comm*>(comm));
  return kSuccess;
}
int ncclCommAbort(void* comm) {
  std::lock_guard lock(mutex);
  ++counts.aborted;
  Drop(static_cast<Comm*>(comm));
  return kSuccess;
}

int ncclAllReduce(const void* in, void* out, size_t count, int type, int op, void* comm, void* s) {
  return Queue(comm, {Kind::kAllReduce, in, out, count, type, op, 0, static_cast<Stream*>(s)});
}
int ncclReduceScatter(const void* in, void* out, size_t count, int type, int op, void* comm,
                      void* s) {
  return Queue(comm, {Kind::kReduceScatter, in, out, count, type, op, 0, static_cast<Stream*>(s)});
}
int ncclAllGather(const void* in, void* out, size_t count, int type, void* comm, void* s) {
  return Queue(comm, {Kind::kAllGather, in, out, count, type, 0, 0, static_cast<Stream*>(s)});
}
int ncclBroadcast(const void* in, void* out, size_t count, int type, int root, void* comm,
                  void* s) {
  return Queue(comm, {Kind::kBroadcast, in, out, count, type, 0, root, static_cast<Stream*>(s)});
}
int ncclReduce(const void* in, void* out, size_t count, int type, int op, int root, void* comm,
               void* s) {
  return Queue(comm, {Kind::kReduce, in, out, count, type, op, root, static_cast<Stream*>(s)});
}
int ncclSend(const void* data, size_t count, int type, int peer, void* comm, void* s) {
  return Queue(comm, {Kind::kSend, data, nullptr, count, type, 0, peer, static_cast<Stream*>(s)});
}
int ncclRecv(void* data, size_t count, int type, int peer, void* comm, void* s) {
  return Queue(comm,
               {Kind::kReceive, nullptr, data, count, type, 0, peer, static_cast<Stream*>(s)});
}
int ncclGroupStart() {
  ++group_depth;
  return kSuccess;
}
int ncclGroupEnd() {
  if (--group_depth > 0 || group.empty()) return kSuccess;
  std::vector<Entry> entries;
  for (const auto& [comm, entry] : group) entries.push_back(entry);
  Comm* comm = group[0].first;
  group.clear();
  return Submit(comm, entries);
}

int cuInit(unsigned) { return Variable("FAKE_CUDA_ABSENT") != nullptr ? kCudaNoDevice : 0; }
int cuDeviceGetCount(int* count) {
  *count = 8;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetPCIBusId(char* text, int bytes, int device) {
  std::snprintf(text, bytes, "0000:%02x:00.0", 0x3b + device);
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  static int contexts[8];
  *context = &contexts[device];
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxSetCurrent(void*) { return 0; }
int cuStreamCreate(void** stream, unsigned) {
  *stream = new Stream;
  return 0;
}
int cuStreamQuery(void* stream) {
  std::lock_guard lock(mutex);
  const auto* each = static_cast<const Stream*>(stream);
  if (each->broken) return kCudaIllegalAddress;
  return each->pending == 0 ? 0 : kCudaNotReady;
}
int cuStreamDestroy_v2(void* stream) {
  delete static_cast<Stream*>(stream);
  return 0;
}
int cuGetErrorName(int error, const char** name) {
  *name = error == kCudaNoDevice ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_ILLEGAL_ADDRESS";
  return 0;
}

}  // extern "C"
