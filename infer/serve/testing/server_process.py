"""Starts //infer/serve:main with a tiny random model, for tests that are its clients.

Paths are those of a test's runfiles. Not a test itself.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess

SERVER = "infer/serve/main"
WRITE_CHECKPOINT = "infer/serve/testing/write_checkpoint"


def scratch(name):
    """An empty directory of the running test."""
    path = os.path.join(os.environ.get("TEST_TMPDIR", "/tmp"), name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def tiny_run():
    """A run directory with one checkpoint."""
    run = scratch("run")
    subprocess.run([WRITE_CHECKPOINT, run], check=True)
    return run


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def command(run, settings):
    return [SERVER, f"--checkpoint={run}", "--set=hardware.threads=1"] + [
        f"--set={key}={value}" for key, value in settings.items()]


class Server:
    def __init__(self, process, url, grpc_port, run):
        self.process, self.url, self.grpc_port, self.run = process, url, grpc_port, run

    def stop(self):
        """Sends SIGTERM; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=40)


@contextlib.contextmanager
def serving(run=None, **settings):
    """A server that answers; settings are fields of ServeConfig."""
    run = run or tiny_run()
    grpc_port = free_port()
    values = {"serve.http_port": free_port(), "serve.grpc_port": grpc_port}
    values.update({f"serve.{key}": value for key, value in settings.items()})
    process = subprocess.Popen(command(run, values), stdout=subprocess.PIPE, text=True)
    try:
        url = process.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:"), url
        yield Server(process, url, grpc_port, run)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
