"""Python's safetensors and ours read each other's files, and write the same bytes.

usage: interop_test.py REWRITE     (the //storage/formats/safetensors:rewrite binary)
"""

import os
import subprocess
import sys
import tempfile

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

TYPES = ["bool", "u1", "i1", "i2", "u2", "f2", "i4", "u4", "f4", "f8", "i8", "u8"]


def tensors(rng):
    out = {}
    for name in TYPES:
        for shape in [(), (1,), (0,), (3, 0, 2), (5,), (2, 3), (7, 1, 3)]:
            raw = rng.integers(0, 2, size=shape) if name == "bool" else rng.normal(size=shape) * 50
            out["%s.%s" % (name, "x".join(map(str, shape)))] = np.asarray(raw).astype(name)
    out['quote" back\\slash \t\n\x01 ü 漢 😀'] = np.arange(3, dtype=np.float32)
    return out


def rewrite(tool, a, b):
    return subprocess.run([tool, a, b], capture_output=True, text=True)


def same(a, b):
    assert a.keys() == b.keys(), a.keys() ^ b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype and a[name].shape == b[name].shape, name
        assert a[name].tobytes() == b[name].tobytes(), name


def main():
    tool = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = os.path.join(folder, "a.safetensors"), os.path.join(folder, "b.safetensors")
        original = tensors(np.random.default_rng(1))

        save_file(original, theirs)
        done = rewrite(tool, theirs, ours)
        assert done.returncode == 0, done.stderr
        same(load_file(ours), original)
        assert open(ours, "rb").read() == open(theirs, "rb").read(), "bytes differ"

        save_file(original, theirs, metadata={"format": "np", "ü": "line\n\"quoted\""})
        done = rewrite(tool, theirs, ours)
        assert done.returncode == 0, done.stderr
        same(load_file(ours), original)
        with safe_open(ours, "np") as f:
            assert f.metadata() == {"format": "np", "ü": "line\n\"quoted\""}, f.metadata()

        save_file({}, theirs)
        assert rewrite(tool, theirs, ours).returncode == 0
        assert load_file(ours) == {}

        # What one refuses, the other does too.
        image = bytearray(open(ours, "rb").read()) + b"xx"
        open(theirs, "wb").write(image)
        assert "belong to no tensor" in rewrite(tool, theirs, ours).stderr
        try:
            load_file(theirs)
        except Exception:
            pass
        else:
            raise AssertionError("trailing bytes were accepted by Python")
    print("%d tensors, both directions, equal bytes" % len(original))


if __name__ == "__main__":
    main()
