"""//infer:serve from outside: its one line for each user error, and how it stops."""

import glob
import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request

sys.path.insert(0, "infer/serve/testing")
import server_process  # noqa: E402


def fails(part, arguments):
    done = subprocess.run([server_process.SERVER] + arguments, capture_output=True, text=True,
                          timeout=20)
    lines = done.stderr.splitlines()
    assert done.returncode == 1, (arguments, done)
    assert len(lines) == 1 and lines[0].startswith("serve: ") and part in lines[0], done.stderr
    assert done.stdout == "", done.stdout


def check_errors(run):
    checkpoint = [f"--checkpoint={run}", "--set=hardware.threads=1"]
    fails("serve.checkpoint", [])
    fails("/no/such/run", ["--checkpoint=/no/such/run"])
    fails("serve.http_prt", checkpoint + ["--set=serve.http_prt=1"])
    fails("serve.http_port", checkpoint + ["--set=serve.http_port=70000"])
    fails("missing.textproto", ["--config=missing.textproto"])
    with server_process.serving(run) as server:
        port = server.url.rstrip("/").rsplit(":", 1)[1]
        fails(f"127.0.0.1:{port}", checkpoint + [f"--set=serve.http_port={port}"])
        fails(str(server.grpc_port),
              checkpoint + [f"--set=serve.http_port={server_process.free_port()}",
                            f"--set=serve.grpc_port={server.grpc_port}"])


def check_damage(run):
    checkpoint = [f"--checkpoint={run}"]
    directory = glob.glob(f"{run}/checkpoints/step-*")[0]
    shard = f"{directory}/model-00000.safetensors"
    with open(shard, "r+b") as file:
        file.seek(-5, os.SEEK_END)
        byte = file.read(1)
        file.seek(-5, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))
    fails("checksum", checkpoint)
    os.rename(shard, shard + ".away")
    fails("model-00000.safetensors", checkpoint)


def check_stop(run):
    """A running stream is finished after SIGTERM."""
    body = json.dumps({"prompt": "the", "max_tokens": 1500, "ignore_eos": True, "stream": True})
    with server_process.serving(run) as server:
        request = urllib.request.Request(server.url + "v1/completions", body.encode())
        reply = urllib.request.urlopen(request, timeout=30)
        reply.readline()
        server.process.send_signal(signal.SIGTERM)
        rest = []
        reader = threading.Thread(target=lambda: rest.append(reply.read()))
        reader.start()
        assert server.process.wait(timeout=30) == 0
        reader.join(timeout=10)
        assert rest[0].endswith(b"data: [DONE]\n\n"), rest[0][-80:]


def main():
    run = server_process.tiny_run()
    check_errors(run)
    check_stop(run)
    check_damage(run)


if __name__ == "__main__":
    main()
