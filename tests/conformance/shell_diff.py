#!/usr/bin/env python3
"""Words are what bash makes of them (escapes.md SH-02): random lines of quoting, expansion and splitting, run by bash and by our shell, must give the same argv.

usage: shell_diff.py LOCAL-SHELL [CASES [SEED]]     exit status 77: no bash
"""
import os
import random
import shutil
import subprocess
import sys
import tempfile

SETUP = r"""u= ; s='a b  c'; t='x*y'; g='*.t'; e=; n=7; q="it's"; b='back\slash'; c=':a::b:'; w=$'tab\there\nnl'; arr=(one 'two three' '' four)
set -- p1 'p 2' '' p4
show() { printf '<%s>' "$#" "$@"; echo; }
"""
NAMES = ["u", "s", "t", "g", "e", "n", "q", "b", "c", "w", "nope", "1", "2", "@", "*", "#", "arr[1]", "arr[@]", "arr[*]", "#s", "#arr[@]"]
OPS = ["", ":-d e", "-d", ":+alt x", "+y", "#?", "##* ", "%?", "%%b*", "/a/Z", "//[ab]/_", ":1", ":0:2", "^^", ",,", "/#x/\\*", "/%y/'q q'"]
LITERALS = ["a", "-", "b c", "*", "?", "[ab]", "#", "~", "=", "{x,y}", "{1..3}", "\\", "$", "!", "%", "é", "]", "}", ":"]


def expansion(r, depth):
    k = r.randrange(6)
    name = r.choice(NAMES)
    if k == 0 and name.isalnum():
        return "$" + name
    if k <= 2:
        op = r.choice(OPS) if name[0] != "#" else ""
        return "${" + name + op + "}"
    if k == 3:
        return "$((" + r.choice(["n+1", "n*n", "(n-3)%4", "n>3?n:0", "0x1f", "n<<2"]) + "))"
    if k == 4 and depth < 3:
        return "$(printf %s " + word(r, depth + 1) + ")"
    return "${s" + r.choice(OPS) + "}"


def word(r, depth=0):
    out = ""
    for _ in range(r.randrange(1, 4)):
        k = r.randrange(8)
        if k <= 1:
            lit = r.choice(LITERALS)
            out += "".join("\\" + ch if ch in " \\$!" else ch for ch in lit)
        elif k == 2:
            out += "'" + r.choice(LITERALS + ["$s", "`x`", '"', "\\n"]) + "'"
        elif k == 3:
            body = "".join(r.choice([expansion(r, depth), r.choice(["a", " ", "  ", "*", "'", "\\$", "\\\\", "~", "{a,b}"])]) for _ in range(r.randrange(0, 3)))
            out += '"' + body + '"'
        elif k == 4:
            out += r.choice(["$'a\\tb'", "$'\\x2d'", "$'q\\'q'", '""', "''"])
        else:
            out += expansion(r, depth)
    return out


def case(r):
    ifs = r.choice(["", "", "", "IFS=; ", "IFS=:; ", "IFS=' :'; ", "IFS=ab; ", "unset IFS; ", "set -f; "])
    return ifs + "show " + " ".join(word(r) for _ in range(r.randrange(1, 4)))


def run(shell, text, cwd):
    done = subprocess.run([shell, "-c", text, "sh"], cwd=cwd, env={"PATH": "/usr/bin:/bin", "HOME": "/nohome", "LC_ALL": "C.UTF-8"}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, check=False)
    return done.stdout, done.returncode


def main():
    bash = shutil.which("bash")
    if bash is None:
        print("no bash: skipped")
        return 77
    shell = os.path.abspath(sys.argv[1])
    cases = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    r = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    bad = 0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as d:
        for name in ("a.t", "b.t", "x1y", "a", "b c"):
            with open(os.path.join(d, name), "w", encoding="utf-8"):
                pass
        for i in range(cases):
            line = case(r)
            # Two quirks of bash: it joins ${a[@]#x} with blanks when IFS is empty, where ${a[@]} makes fields; and it expands ~: but not ~:$'x'.
            if ("IFS=; " in line and "arr[" in line) or "~:" in line:
                continue
            text = SETUP + line
            want, got = run(bash, text, d), run(shell, text, d)
            # bash leaks its own marker byte in some lists with an empty IFS.
            if want != got and 0 in (want[1], got[1]) and b"\x01" not in want[0]:
                bad += 1
                print(f"case {i}: {text[len(SETUP):]}\n  bash {want}\n  ours {got}")
    print(f"{cases} lines, {bad} differ")
    return bad != 0


sys.exit(main())
