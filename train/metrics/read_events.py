"""Reads an event file of ours with TensorBoard's own loader and compares every scalar."""

import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing import event_file_loader
from tensorboard.util import tensor_util


def scalar(value):
    """The loader turns simple values into tensors."""
    if value.HasField("tensor"):
        return float(tensor_util.make_ndarray(value.tensor))
    return value.simple_value


def main():
    directory = tempfile.mkdtemp()
    path = subprocess.check_output([sys.argv[1], directory], text=True).strip()
    events = list(event_file_loader.EventFileLoader(path).Load())
    assert events[0].file_version == "brain.Event:2", events[0]
    found = [(e.step, {v.tag: scalar(v) for v in e.summary.value}) for e in events[1:]]
    expected = [
        (step, {"train/loss": 4.5 / step, "train/learning_rate": 0.125 * step})
        for step in (1, 2, 3)
    ]
    assert found == expected, (found, expected)
    assert all(e.wall_time > 1e9 for e in events)
    print("tensorboard read", len(events), "events")


main()
