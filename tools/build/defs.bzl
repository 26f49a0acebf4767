"""The rules that every package uses; BUILD files load nothing else, or a macro of these
where folders are alike (hardware/kernels/kernel.bzl).

They set what the whole workspace agrees on, so that a foreign workspace needs no
flags of its own: C++20, warnings as errors, and the include prefix `plinth/`
(a header //comm/mesh:mesh.h is included as "plinth/comm/mesh/mesh.h").
"""

load("//third_party/cuda:cuda.bzl", "cuda_library")
load("//tools/build:proto.bzl", "proto_cc_library")

_COPTS = ["-std=c++20", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-missing-field-initializers", "-Wno-dangling-else"]

# Clang checks that a target lists what it includes; gcc ignores the feature.
_FEATURES = ["layering_check"]

def _prefix():
    return "plinth/" + native.package_name()

def plinth_cc_library(name, copts = [], features = [], **kwargs):
    """cc_library with Plinth's compile flags and include prefix."""
    native.cc_library(
        name = name,
        copts = _COPTS + copts,
        features = _FEATURES + features,
        include_prefix = _prefix(),
        **kwargs
    )

def plinth_cc_binary(name, copts = [], features = [], **kwargs):
    """cc_binary with Plinth's compile flags."""
    native.cc_binary(
        name = name,
        copts = _COPTS + copts,
        features = _FEATURES + features,
        **kwargs
    )

def plinth_cc_test(name, deps = [], copts = [], features = [], size = "small", **kwargs):
    """cc_test on GoogleTest; `main` comes with it."""
    native.cc_test(
        name = name,
        size = size,
        copts = _COPTS + copts,
        features = _FEATURES + features,
        deps = deps + [Label("//third_party/gtest:gtest"), Label("//third_party/gtest:gtest_main")],
        **kwargs
    )

def plinth_cc_benchmark(name, deps = [], copts = [], args = [], tags = [], **kwargs):
    """A Google Benchmark binary, and a test that runs each benchmark once."""
    native.cc_test(
        name = name,
        size = "medium",
        copts = _COPTS + copts,
        features = _FEATURES,
        args = args + ["--benchmark_min_time=0"],
        tags = tags + ["benchmark"],
        deps = deps + [Label("//third_party/benchmark:benchmark")],
        **kwargs
    )

def plinth_fuzz_test(name, srcs, corpus, deps = [], **kwargs):
    """A libFuzzer target, and the test `<name>_corpus_test` that replays its corpus.

    `srcs` define LLVMFuzzerTestOneInput. The fuzzer itself is built by name:
    bazel build --config=fuzz //pkg:<name>; the replay needs no special compiler.
    """
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = srcs,
        copts = _COPTS,
        features = _FEATURES,
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = deps,
        **kwargs
    )
    native.cc_test(
        name = name + "_corpus_test",
        size = "small",
        srcs = srcs + [Label("//tools/build:fuzz_replay_main.cc")],
        copts = _COPTS,
        features = _FEATURES,
        data = corpus,
        args = ["$(location %s)" % file for file in corpus],
        deps = deps,
        **kwargs
    )

def plinth_proto_library(name, **kwargs):
    """C++ messages of .proto files, imported and included below `plinth/`."""
    proto_cc_library(name = name, grpc = False, **kwargs)

def plinth_grpc_library(name, **kwargs):
    """C++ messages and gRPC services of .proto files."""
    proto_cc_library(name = name, grpc = True, **kwargs)

def plinth_cuda_library(name, tags = [], **kwargs):
    """nvcc objects, linked like any library; built only with --config=cuda."""
    cuda_library(name = name, tags = tags + ["manual"], **kwargs)

def plinth_py_test(name, main, data = [], args = [], size = "medium", **kwargs):
    """A Python script run by $PLINTH_PYTHON, which has the PyPI clients we test against.

    The script gets `args`; exit 0 is success. It is an ordinary program, not a
    unittest module, so a user can run it by hand as well.
    """
    native.sh_test(
        name = name,
        size = size,
        srcs = [Label("//tools/build:run_python.sh")],
        args = ["$(location %s)" % main] + args,
        data = data + [main],
        **kwargs
    )
