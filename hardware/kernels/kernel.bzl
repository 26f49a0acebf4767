"""What the folder of every kernel has beside its library."""

load("//tools/build:defs.bzl", "plinth_cc_benchmark", "plinth_cc_library", "plinth_cc_test")

def kernel_checks(name, reference = True, benchmark = True):
    """Targets that check the library `name` of the same folder.

    `<name>_test` compares its variants with each other and with `:reference` (`reference.h`,
    sums in double), on each device and instruction set that this machine has. `<name>_bench`
    times them; as a test it runs each benchmark once.

    Args:
      name: of the kernel, its folder and its library.
      reference: False where the test states the results itself.
      benchmark: False where there is none.
    """
    if reference:
        plinth_cc_library(
            name = "reference",
            testonly = True,
            srcs = ["reference.cc"],
            hdrs = ["reference.h"],
            deps = [":" + name, "//hardware/base:numeric"],
        )
    plinth_cc_test(
        name = name + "_test",
        srcs = [name + "_test.cc"],
        deps = [
            ":" + name,
            "//hardware/base:check",
            "//hardware/base:numeric",
            "//hardware/device",
            "//hardware/device:tensor",
            "//hardware/tensor:tensor_view",
            "//hardware/testing:compare",
            "//hardware/testing:device_fixture",
            "//hardware/testing:sample",
            "//third_party/highway",
        ] + ([":reference"] if reference else []),
    )
    if benchmark:
        plinth_cc_benchmark(
            name = name + "_bench",
            srcs = [name + "_bench.cc"],
            deps = [
                ":" + name,
                "//hardware/device",
                "//hardware/device:registry",
                "//hardware/device:tensor",
                "//hardware/kernels:kernel",
                "//hardware/tensor:tensor_view",
                "//hardware/threading",
            ],
        )
