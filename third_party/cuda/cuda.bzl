"""cuda_library: nvcc objects linked like any cc_library."""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@local_cuda//:config.bzl", "CUDA_PRESENT", "CUDA_ROOT", "CUDA_VERSION")

_GENCODE = [
    "-gencode=arch=compute_80,code=sm_80",
    "-gencode=arch=compute_90a,code=sm_90a",
    "-gencode=arch=compute_90,code=compute_90",
]

def _impl(ctx):
    if not CUDA_PRESENT:
        fail("%s needs the CUDA toolkit (looked in %s); build without --config=cuda" % (ctx.label, CUDA_ROOT))
    cc_toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = cc_toolchain, requested_features = ctx.features, unsupported_features = ctx.disabled_features)
    deps = [d[CcInfo] for d in ctx.attr.deps + [ctx.attr._cudart]]
    own = cc_common.create_compilation_context(headers = depset(ctx.files.hdrs), quote_includes = depset([".", ctx.bin_dir.path]))
    cctx = cc_common.merge_cc_infos(cc_infos = [CcInfo(compilation_context = own)] + deps).compilation_context
    opt = ctx.var["COMPILATION_MODE"] == "opt"
    objs = []
    for src in ctx.files.srcs:
        obj = ctx.actions.declare_file("_cuobjs/%s/%s.o" % (ctx.label.name, src.basename))
        a = ctx.actions.args()
        a.add_all(["-c", src.path, "-o", obj.path, "-std=c++20", "-ccbin", "/usr/bin/g++"])
        a.add_all(["-Xcompiler=-fPIC", "-Xcompiler=-Wall", "-DCUDA_TOOLKIT_VERSION=" + CUDA_VERSION, "--threads=1"])
        a.add_all(["-O3", "-DNDEBUG", "-lineinfo"] if opt else ["-O1", "-g"])
        a.add_all(ctx.attr.gencode or _GENCODE)
        a.add_all(cctx.defines, before_each = "-D")
        a.add_all(cctx.quote_includes, before_each = "-I")
        a.add_all(cctx.includes, before_each = "-I")
        a.add_all(cctx.system_includes, before_each = "-isystem")
        a.add_all(ctx.attr.copts)
        ctx.actions.run(
            executable = CUDA_ROOT + "/bin/nvcc",
            arguments = [a],
            inputs = depset([src], transitive = [cctx.headers]),
            outputs = [obj],
            mnemonic = "NvccCompile",
            progress_message = "Compiling (nvcc) " + src.short_path,
            env = {"PATH": CUDA_ROOT + "/bin:/usr/bin:/bin"},
        )
        objs.append(obj)
    comp_out = cc_common.create_compilation_outputs(objects = depset(objs), pic_objects = depset(objs))
    link, _o = cc_common.create_linking_context_from_compilation_outputs(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = features,
        cc_toolchain = cc_toolchain,
        disallow_dynamic_library = True,
        compilation_outputs = comp_out,
        linking_contexts = [d.linking_context for d in deps],
    )
    return [DefaultInfo(files = depset(objs)), CcInfo(compilation_context = cctx, linking_context = link)]

cuda_library = rule(
    implementation = _impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cu"]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "copts": attr.string_list(),
        "gencode": attr.string_list(),
        "_cudart": attr.label(default = "@local_cuda//:cudart_static"),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
    incompatible_use_toolchain_transition = True,
)
