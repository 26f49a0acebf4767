"""One rank of gloo, driven by a rank of //comm:bench over standard input and output.

Arguments: rank, ranks, descriptor of the memory that both map, seconds until a call gives up.
Each command is a line and gets one line back, "ok ..." or "error ...":
  serve                         rank 0 only: serves the meeting; its port
  join HOST PORT                forms the group; microseconds that a call costs in a world of one
  memory BYTES                  maps the memory anew
  run OP DTYPE REDOP ROOT COUNT IN OUT CALLS
                                offsets in bytes, -1 for no buffer; seconds of all calls
The clock runs while Python makes the calls, after a barrier, and at no other time.
"""

import datetime
import mmap
import os
import signal
import sys
import time

OVERHEAD_CALLS = 200
OVERHEAD_BATCHES = 5


class Rank:
    def __init__(self, rank, ranks, descriptor, timeout_s):
        self.rank, self.ranks, self.descriptor = rank, ranks, descriptor
        self.timeout = datetime.timedelta(seconds=timeout_s)
        self.memory = None

    def serve(self):
        self.store = dist.TCPStore("127.0.0.1", 0, self.ranks, True, self.timeout, False)
        return str(self.store.port)

    def join(self, host, port):
        if self.rank != 0:
            self.store = dist.TCPStore(host, int(port), self.ranks, False, self.timeout)
        if host == "127.0.0.1":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", store=self.store, rank=self.rank, world_size=self.ranks,
                                timeout=self.timeout)
        alone = [dist.new_group([rank]) for rank in range(self.ranks)][self.rank]
        one = torch.zeros(2)
        times = []
        for _ in range(OVERHEAD_BATCHES):
            times.append(timed(lambda: dist.all_reduce(one, group=alone), OVERHEAD_CALLS))
        dist.barrier()
        return "%.3f %s" % (sorted(times)[len(times) // 2] / OVERHEAD_CALLS * 1e6,
                            torch.__version__)

    def map(self, size):
        self.memory = mmap.mmap(self.descriptor, int(size))
        return ""

    def run(self, op, dtype, redop, root, count, in_offset, out_offset, calls):
        call = self.call(op, getattr(torch, dtype), redop, int(root), int(count), int(in_offset),
                         int(out_offset))
        dist.barrier()
        return "%.9f" % timed(call, int(calls))

    def call(self, op, dtype, redop, root, count, in_offset, out_offset):
        """What makes one call; all it needs is made here, outside of the time."""
        ranks, rank = self.ranks, self.rank

        def tensor(offset, shares=1):
            if offset < 0:
                return None
            return torch.frombuffer(self.memory, dtype=dtype, count=count * shares, offset=offset)

        def shares(offset):
            whole = tensor(offset, ranks)
            return None if whole is None else list(whole.chunk(ranks))

        if op == "barrier":
            return dist.barrier
        if op == "all_to_all":
            source, target = tensor(in_offset, ranks), tensor(out_offset, ranks)
            return lambda: dist.all_to_all_single(target, source)
        if op == "all_gather":
            source, targets = tensor(in_offset), shares(out_offset)
            return lambda: dist.all_gather(targets, source)
        if op == "gather":
            source, targets = tensor(in_offset), shares(out_offset)
            return lambda: dist.gather(source, targets, dst=root)
        if op == "scatter":
            sources, target = shares(in_offset), tensor(out_offset)
            return lambda: dist.scatter(target, sources, src=root)
        if op == "send_recv":
            source, target = tensor(in_offset), tensor(out_offset)
            after, before = (rank + 1) % ranks, (rank + ranks - 1) % ranks

            def send_and_receive():
                receive = dist.irecv(target, before)
                dist.isend(source, after).wait()
                receive.wait()

            return send_and_receive
        # In place. A rank that only gives, as in a reduction to a root, has no buffer for a result.
        data = tensor(out_offset if out_offset >= 0 else in_offset)
        if op == "broadcast":
            return lambda: dist.broadcast(data, root)
        reduction = getattr(dist.ReduceOp, {"prod": "PRODUCT"}.get(redop, redop.upper()))
        if op == "reduce":
            return lambda: dist.reduce(data, root, reduction)
        if op == "all_reduce":
            return lambda: dist.all_reduce(data, reduction)
        raise ValueError("gloo has no " + op)


def timed(call, calls):
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return time.perf_counter() - start


def answer(rank, words):
    commands = {"serve": rank.serve, "join": rank.join, "memory": rank.map, "run": rank.run}
    try:
        return "ok " + commands[words[0]](*words[1:])
    except Exception as error:  # whatever torch throws goes to whoever drives us
        return "error " + " ".join(str(error).split())


def main():
    rank = Rank(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    print("ok", flush=True)
    for line in sys.stdin:
        print(answer(rank, line.split()), flush=True)
    # The other ranks may be gone: nothing of torch's own end is waited for.
    os._exit(0)


# Whoever drives us ends us; an interrupt from the keyboard would only add a trace.
signal.signal(signal.SIGINT, signal.SIG_IGN)
try:
    import torch
    import torch.distributed as dist

    dist.ProcessGroupGloo
except (ImportError, AttributeError) as error:
    print("error " + " ".join(str(error).split()), flush=True)
    sys.exit(1)
main()
