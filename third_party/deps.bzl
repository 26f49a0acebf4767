"""Everything Plinth depends on, for this workspace and for one that loads us.

A foreign workspace needs three lines:

    local_repository(name = "plinth", path = "...")     # or an archive
    load("@plinth//third_party:deps.bzl", "plinth_deps")
    plinth_deps()

Each dependency is a Debian 12 package, exposed as a repository by `system_lib`,
which names the missing package and the version wanted. BUILD files do not use
these repositories but the alias packages `//third_party/<name>`, so a workspace
that has its own Abseil or gRPC overrides one repository and nothing else.
Why each one is here: third_party/README.md.
"""

load("//third_party/cuda:cuda_configure.bzl", "cuda_configure")
load("//third_party/system:system_lib.bzl", "system_lib")

# Repositories that Bazel 4.2.3 of Debian ships on disk.
_BAZEL_BUNDLED = {
    "bazel_skylib": "/usr/share/bazel/tools/skylib",
    "platforms": "/usr/share/bazel/tools/platforms",
    "rules_java": "/usr/share/bazel/rules/java",
    "rules_proto": "/usr/share/bazel/rules/proto",
}

_ABSL_LIBS = """
flags_parse flags_usage flags_usage_internal flags_internal flags_marshalling flags_reflection
flags_private_handle_accessor flags_commandlineflag flags_commandlineflag_internal flags_config
flags_program_name failure_signal_handler examine_stack raw_hash_set hashtablez_sampler hash city
low_level_hash statusor status cord cordz_info cord_internal cordz_functions exponential_biased
cordz_handle bad_optional_access bad_variant_access strerror str_format_internal synchronization
graphcycles_internal stacktrace symbolize debugging_internal demangle_internal malloc_internal time
civil_time time_zone strings strings_internal base spinlock_wait int128 throw_delegate
raw_logging_internal log_severity
""".replace("\n", " ").split(" ")

def _library(name, link = [], defines = [], deps = []):
    """Text of a cc_library whose action keys change with the probed version."""
    version = "'PLINTH_SYSTEM_%s=' + SYSTEM_VERSION" % name.upper().replace("+", "X")
    return "cc_library(name = %r, linkopts = %r, deps = %r, defines = %r + [%s])\n" % (name, link, deps, defines, version)

def _bundled():
    for name, path in _BAZEL_BUNDLED.items():
        if not native.existing_rule(name):
            native.local_repository(name = name, path = path)
    for name in ["rules_cc", "remote_coverage_tools"]:
        if not native.existing_rule(name):
            _shim(name = name)

def _shim_impl(rctx):
    rctx.file("BUILD.bazel", "filegroup(name = 'coverage_report_generator', visibility = ['//visibility:public'])\n")
    rctx.file("cc/BUILD.bazel", "")
    rctx.file("cc/defs.bzl", "".join(["%s = native.%s\n" % (rule, rule) for rule in [
        "cc_binary",
        "cc_import",
        "cc_library",
        "cc_proto_library",
        "cc_test",
        "cc_toolchain",
        "cc_toolchain_suite",
    ]]))

# Stands in for two repositories that Bazel itself names: Debian's rules_cc is too new for
# Debian's Bazel, and @remote_coverage_tools would be downloaded.
_shim = repository_rule(implementation = _shim_impl)

def plinth_deps():
    _bundled()
    for spec in _SYSTEM_LIBS:
        if not native.existing_rule(spec["name"]):
            system_lib(**spec)
    if not native.existing_rule("local_cuda"):
        cuda_configure(name = "local_cuda")

_SYSTEM_LIBS = [
    dict(
        name = "system_absl",
        deb = "libabsl-dev",
        pkg_config = "absl_base",
        versions = ["20220623"],
        probe_headers = ["absl/status/statusor.h"],
        probe_libs = ["libabsl_status.so"],
        build = _library("absl", ["-labsl_" + lib for lib in _ABSL_LIBS if lib]),
    ),
    dict(
        name = "system_protobuf",
        deb = "libprotobuf-dev",
        pkg_config = "protobuf",
        versions = ["3.21"],
        probe_headers = ["google/protobuf/message.h"],
        probe_libs = ["libprotobuf.so"],
        build = _library("protobuf", ["-lprotobuf"]),
    ),
    dict(
        name = "system_protoc",
        deb = "protobuf-compiler",
        versions = ["3.21"],
        probe_files = ["/usr/bin/protoc"],
        symlinks = {"/usr/bin/protoc": "protoc"},
        build = "exports_files(['protoc'])\n",
    ),
    dict(
        name = "system_grpc",
        deb = "libgrpc++-dev",
        pkg_config = "grpc++",
        versions = ["1.51"],
        probe_headers = ["grpcpp/grpcpp.h"],
        probe_libs = ["libgrpc++.so", "libgrpc++_reflection.so"],
        build = _library("grpc++", ["-lgrpc++", "-lgrpc", "-lgpr", "-labsl_synchronization", "-lprotobuf"]) +
                _library("reflection", ["-Wl,--no-as-needed", "-lgrpc++_reflection", "-Wl,--as-needed"], deps = [":grpc++"]),
    ),
    dict(
        name = "system_grpc_plugin",
        deb = "protobuf-compiler-grpc",
        versions = ["1.51"],
        probe_files = ["/usr/bin/grpc_cpp_plugin"],
        symlinks = {"/usr/bin/grpc_cpp_plugin": "grpc_cpp_plugin"},
        build = "exports_files(['grpc_cpp_plugin'])\n",
    ),
    dict(
        name = "system_gtest",
        deb = "libgmock-dev",
        pkg_config = "gmock",
        versions = ["1.12"],
        probe_headers = ["gtest/gtest.h", "gmock/gmock.h"],
        probe_libs = ["libgtest.a", "libgmock.a"],
        build = _library("gtest", ["-lgmock", "-lgtest", "-lpthread"]) +
                _library("gtest_main", ["-lgmock_main"], deps = [":gtest"]),
    ),
    dict(
        name = "system_benchmark",
        deb = "libbenchmark-dev",
        pkg_config = "benchmark",
        versions = ["1.7"],
        probe_headers = ["benchmark/benchmark.h"],
        probe_libs = ["libbenchmark.so"],
        build = _library("benchmark", ["-lbenchmark", "-lpthread"]),
    ),
    dict(
        name = "system_onednn",
        deb = "libdnnl-dev",
        version_header = "oneapi/dnnl/dnnl_version.h",
        version_macros = ["DNNL_VERSION_MAJOR", "DNNL_VERSION_MINOR", "DNNL_VERSION_PATCH"],
        versions = ["2.6"],
        probe_headers = ["dnnl.hpp"],
        probe_libs = ["libdnnl.so"],
        build = _library("onednn", ["-ldnnl"]),
    ),
    dict(
        name = "system_hwloc",
        deb = "libhwloc-dev",
        pkg_config = "hwloc",
        versions = ["2.9"],
        probe_headers = ["hwloc.h"],
        probe_libs = ["libhwloc.so"],
        build = _library("hwloc", ["-lhwloc"]),
    ),
    dict(
        name = "system_highway",
        deb = "libhwy-dev",
        pkg_config = "libhwy",
        versions = ["1.0.3"],
        probe_headers = ["hwy/highway.h"],
        probe_libs = ["libhwy.so"],
        build = _library("highway", ["-lhwy"], defines = ["HWY_SHARED_DEFINE"]),
    ),
    dict(
        name = "system_boost",
        deb = "libboost1.81-dev",
        version_header = "boost/version.hpp",
        version_macros = ["BOOST_LIB_VERSION"],
        versions = ["1_81"],
        probe_headers = ["boost/beast.hpp", "boost/json.hpp"],
        # Headers stay outside the sandbox inputs: listing Boost's 15,000 costs seconds per action.
        build = _library("boost", ["-lpthread"], defines = ["BOOST_ALL_NO_LIB", "BOOST_ERROR_CODE_HEADER_ONLY"]),
    ),
    dict(
        name = "system_pcre2",
        deb = "libpcre2-dev",
        pkg_config = "libpcre2-8",
        versions = ["10.42"],
        probe_headers = ["pcre2.h"],
        probe_libs = ["libpcre2-8.so"],
        build = _library("pcre2", ["-lpcre2-8"], defines = ["PCRE2_CODE_UNIT_WIDTH=8"]),
    ),
    dict(
        name = "system_utf8proc",
        deb = "libutf8proc-dev",
        # Its pkg-config file states an older version.
        version_header = "utf8proc.h",
        version_macros = ["UTF8PROC_VERSION_MAJOR", "UTF8PROC_VERSION_MINOR"],
        versions = ["2.8"],
        probe_headers = ["utf8proc.h"],
        probe_libs = ["libutf8proc.so"],
        build = _library("utf8proc", ["-lutf8proc"]),
    ),
    dict(
        name = "system_xxhash",
        deb = "libxxhash-dev",
        pkg_config = "libxxhash",
        versions = ["0.8"],
        probe_headers = ["xxhash.h"],
        probe_libs = ["libxxhash.so"],
        build = _library("xxhash", ["-lxxhash"]),
    ),
    dict(
        name = "system_prometheus",
        deb = "prometheus-cpp-dev",
        pkg_config = "prometheus-cpp-pull",
        versions = ["1.0"],
        probe_headers = ["prometheus/registry.h"],
        probe_libs = ["libprometheus-cpp-core.so"],
        build = _library("prometheus", ["-lprometheus-cpp-core"]),
    ),
]
