#include "plinth/comm/bench/peers/gloo/gloo_peer.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "plinth/comm/reduce/reduce.h"
#include "plinth/hardware/base/check.h"
#include "plinth/hardware/base/status_macros.h"
#include "plinth/hardware/tensor/dtype.h"

namespace plinth::comm {
namespace {

constexpr char kScript[] =
#include "comm/bench/peers/gloo/peer.py.inc"
    ;
constexpr char kPortKey[] = "bench/gloo/port";
// Loading torch takes seconds, on a loaded machine tens of them.
constexpr absl::Duration kStartPatience = absl::Seconds(120);
constexpr int64_t kPageBytes = 4096;
constexpr int kMemoryFd = 3;  // the memory, in the Python process

const char* PythonPath() {
  const char* asked = std::getenv("PLINTH_GLOO_PYTHON");
  return asked != nullptr ? asked : "/usr/bin/python3";
}

// torch's name; null for a type that gloo cannot reduce. What only moves goes as bytes.
const char* TypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "float32";
    case DType::kF64:
      return "float64";
    case DType::kF16:
      return "float16";
    case DType::kI8:
      return "int8";
    case DType::kU8:
      return "uint8";
    case DType::kI32:
      return "int32";
    case DType::kI64:
      return "int64";
    default:
      return nullptr;
  }
}

// In the child. Only what is safe after a fork of a process with threads.
[[noreturn]] void BecomePython(const char* path, char* const* arguments, int talk, int memory,
                               pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended before that took effect
  const int kept = dup(memory);       // what is 3 now may be `talk`
  if (kept < 0 || dup2(talk, 0) < 0 || dup2(talk, 1) < 0 || dup2(kept, kMemoryFd) < 0) _exit(1);
  execv(path, arguments);
  _exit(127);
}

}  // namespace

absl::StatusOr<std::unique_ptr<GlooPeer>> GlooPeer::Start(const CommOptions& options,
                                                          Store& store) {
  std::unique_ptr<GlooPeer> peer(new GlooPeer(options.timeout));
  RETURN_IF_ERROR(peer->StartPython(options));
  RETURN_IF_ERROR(peer->Join(options, store)) << "gloo";
  return peer;
}

absl::Status GlooPeer::StartPython(const CommOptions& options) {
  memory_file_ = Fd(memfd_create("plinth bench", MFD_CLOEXEC));
  int ends[2];
  if (!memory_file_.valid() || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return absl::ErrnoToStatus(errno, "--vs=gloo");
  }
  talk_ = Fd(ends[0]);
  Fd its_end(ends[1]);
  const std::string path = PythonPath();
  std::vector<std::string> words = {path,
                                    "-W",
                                    "ignore",
                                    "-c",
                                    kScript,
                                    absl::StrCat(options.rank),
                                    absl::StrCat(options.size),
                                    absl::StrCat(kMemoryFd),
                                    absl::StrCat(absl::ToDoubleSeconds(timeout_))};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) return absl::ErrnoToStatus(errno, "--vs=gloo: fork");
  if (pid_ == 0) {
    BecomePython(path.c_str(), arguments.data(), its_end.get(), memory_file_.get(), parent);
  }
  its_end.Reset();  // or its end would go unnoticed
  const absl::Status ready = Answer(kStartPatience).status();
  if (ready.ok()) return ready;
  return absl::FailedPreconditionError(absl::StrCat(
      "--vs=gloo needs PyTorch with gloo in ", path, " (", std::string(ready.message()),
      "): apt-get install python3-torch, or name another Python in PLINTH_GLOO_PYTHON"));
}

absl::Status GlooPeer::Join(const CommOptions& options, Store& store) {
  const absl::Time deadline = absl::Now() + kStartPatience;
  if (options.rank == 0) {
    ASSIGN_OR_RETURN(const std::string port, Ask("serve", timeout_));
    RETURN_IF_ERROR(store.Set(kPortKey, port, deadline));
  }
  ASSIGN_OR_RETURN(const std::string port, store.Wait(kPortKey, deadline));
  const std::vector<std::string> hosts = absl::StrSplit(options.store_host, ',');
  ASSIGN_OR_RETURN(const std::string text,
                   Ask(absl::StrCat("join ", hosts.front(), " ", port), kStartPatience));
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  if (words.size() != 2 || !absl::SimpleAtod(words[0], &binding_us_)) {
    return absl::InternalError(absl::StrCat("unexpected answer \"", text, "\""));
  }
  version_ = absl::StrCat("gloo of PyTorch ", words[1], " over tcp");
  return absl::OkStatus();
}

GlooPeer::~GlooPeer() {
  Unmap();
  talk_.Reset();
  if (pid_ <= 0) return;
  // It may be in a call that waits for a rank that is gone.
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void GlooPeer::Unmap() {
  if (memory_ != nullptr) munmap(memory_, static_cast<size_t>(memory_bytes_));
  memory_ = nullptr;
}

absl::StatusOr<std::byte*> GlooPeer::Memory(int64_t bytes) {
  Unmap();
  memory_bytes_ = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (ftruncate(memory_file_.get(), memory_bytes_) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(memory_bytes_, " bytes of memory"));
  }
  void* memory = mmap(nullptr, static_cast<size_t>(memory_bytes_), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, memory_file_.get(), 0);
  if (memory == MAP_FAILED) {
    return absl::ErrnoToStatus(errno, absl::StrCat(memory_bytes_, " bytes of memory"));
  }
  memory_ = static_cast<std::byte*>(memory);
  RETURN_IF_ERROR(Ask(absl::StrCat("memory ", memory_bytes_), timeout_).status()) << "gloo";
  return memory_;
}

bool GlooPeer::Supports(const Shape& shape, bool in_place) const {
  if (Reduces(shape.op) && (TypeName(shape.dtype) == nullptr || shape.reduce == ReduceOp::kAvg)) {
    return false;
  }
  switch (shape.op) {
    case BenchOp::kReduceScatter:
      return false;  // ProcessGroupGloo has none
    case BenchOp::kAllReduce:
    case BenchOp::kReduce:
    case BenchOp::kBroadcast:
      return in_place;
    default:
      return !in_place;
  }
}

absl::StatusOr<double> GlooPeer::Run(const Shape& shape, const CallBuffers& buffers, int calls) {
  const auto offset = [this](const void* data) -> int64_t {
    if (data == nullptr) return -1;
    const int64_t at = static_cast<const std::byte*>(data) - memory_;
    CHECK(at >= 0 && at < memory_bytes_) << "not in the peer's memory";
    return at;
  };
  const char* type = TypeName(shape.dtype);
  int64_t count = shape.count;
  if (!Reduces(shape.op)) {
    type = "uint8";
    count *= DTypeSize(shape.dtype);
  }
  const std::string reduce(Reduces(shape.op) ? ReduceOpName(shape.reduce) : "none");
  const std::string command = absl::StrCat(
      "run ", std::string(BenchOpName(shape.op)), " ", type, " ", reduce, " ", shape.root, " ",
      count, " ", offset(buffers.in), " ", offset(buffers.out), " ", calls);
  // Each of the calls has the time that one of ours has.
  ASSIGN_OR_RETURN(const std::string text, Ask(command, timeout_ * (calls + 1)),
                   _ << "gloo, " << std::string(BenchOpName(shape.op)));
  double seconds = 0;
  if (!absl::SimpleAtod(text, &seconds)) {
    return absl::InternalError(absl::StrCat("gloo: unexpected answer \"", text, "\""));
  }
  return seconds;
}

absl::StatusOr<std::string> GlooPeer::Ask(const std::string& command, absl::Duration patience) {
  const std::string line = command + "\n";
  if (send(talk_.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    return absl::UnavailableError("its process has ended");
  }
  return Answer(patience);
}

absl::StatusOr<std::string> GlooPeer::Answer(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  size_t end = 0;
  while ((end = inbox_.find('\n')) == std::string::npos) {
    pollfd entry = {.fd = talk_.get(), .events = POLLIN};
    const int ready = poll(&entry, 1, PollMilliseconds(deadline, 1000));
    if (ready < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
    if (ready == 0 && absl::Now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("no answer within ", absl::FormatDuration(patience)));
    }
    if (ready <= 0) continue;
    char chunk[4096];
    const ssize_t got = recv(talk_.get(), chunk, sizeof(chunk), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::UnavailableError("its process has ended");
    inbox_.append(chunk, static_cast<size_t>(got));
  }
  const std::string line = inbox_.substr(0, end);
  inbox_.erase(0, end + 1);
  if (absl::StartsWith(line, "ok")) {
    return std::string(absl::StripAsciiWhitespace(absl::string_view(line).substr(2)));
  }
  return absl::UnavailableError(
      std::string(absl::StripAsciiWhitespace(absl::StripPrefix(line, "error"))));
}

}  // namespace plinth::comm
