"""tools/lint/includes.py finds what a target includes but does not list, and nothing else."""

import os
import pathlib
import subprocess
import sys
import tempfile

RULE = '<rule class="{kind}" name="{name}">{lists}</rule>'
LIST = '<list name="{name}">{items}</list>'


def rule(name, kind="cc_library", **lists):
    return RULE.format(
        kind=kind,
        name=name,
        lists="".join(
            LIST.format(name=key, items="".join(f'<label value="{item}"/>' for item in items))
            for key, items in lists.items()
        ),
    )


def check(script, source, deps, extra=()):
    """Output and exit code for //b, whose only source has the text `source`."""
    with tempfile.TemporaryDirectory() as folder:
        for package in "ab":
            pathlib.Path(folder, package).mkdir()
        for path, text in {"a/a.h": "", "a/private.h": "", "b/b.cc": source}.items():
            pathlib.Path(folder, path).write_text(text)
        query = "<query>%s</query>" % "".join([
            rule("//a:a", srcs=["//a:private.h"], hdrs=["//a:a.h"]),
            rule("//a:run", "proto_cc_library", srcs=["//a:run.proto"]),
            rule("//b:b", srcs=["//b:b.cc"], deps=deps),
            *extra,
        ])
        run = subprocess.run([sys.executable, script], input=query, cwd=folder, capture_output=True, text=True)
        return run.stdout + run.stderr, run.returncode


def main():
    script = os.path.abspath(sys.argv[1])
    own = '#include "plinth/a/a.h"\n'
    cases = [
        (own, ["//a:a"], None),
        (own, [], "b/b.cc includes plinth/a/a.h, but deps lack //a:a"),
        ('  #  include "plinth/a/a.h"\n', [], "plinth/a/a.h"),
        ("// #include \"plinth/a/a.h\"\n", [], None),
        ('#include "plinth/a/private.h"\n', ["//a:a"], "deps lack no target"),
        ('#include "plinth/a/run.pb.h"\n', ["//a:run"], None),
        ('#include "plinth/a/run.pb.h"\n', ["//a:a"], "deps lack //a:run"),
        ('#include "absl/status/status.h"\n', ["//third_party/absl:absl"], None),
        ('#include "absl/status/status.h"\n', ["//a:a"], "deps lack //third_party/absl"),
        ("#include <vector>\n", [], None),
    ]
    for source, deps, complaint in cases:
        output, code = check(script, source, deps)
        assert code == (1 if complaint else 0), (source, deps, output)
        assert complaint is None or complaint in output, (source, deps, output)
    alias = '<rule class="alias" name="//c:c"><label name="actual" value="//a:a"/></rule>'
    output, code = check(script, own, ["//c:c"], [alias])
    assert code == 0, output


if __name__ == "__main__":
    main()
