"""Real programs, used the way agents use them: native interpreters that call the aliases, clients of the gateway, git as a tool
(escapes part 2: COMP-05, 07, 09, 12, 15, 16, 19, 20, 22, 23)."""
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import time
import unittest

from harness import OPEN, P0, Authority, BoxCase, Origin, processes_of, wait_for

PYTHON = "/usr/bin/python3"
LIBS = '[agent.filesystem]\nread = ["/usr/lib"]\n'


def needs(path):
    return unittest.skipUnless(os.path.exists(path), f"{path} is not installed")


class NativePython(BoxCase):
    """The agent is the host's python3 with its library readable, and nothing else."""

    def setUp(self):
        super().setUp()
        if not os.path.exists(PYTHON):
            self.skipTest("python3 is not installed")
        self.policy(OPEN)

    def python(self, script, *args, grants="", rest="", **kw):
        self.config(command=f'["{PYTHON}", "-B", "-c"]', rest=rest,
                    agent='[agent.filesystem]\nread = ["/usr/lib"%s]\n%s' % (f', "{self.app}"' if grants == "app" else "", ""))
        return self.box("--", script, *args, **kw)

    def answers(self, script, *args, **kw):
        """The script prints one JSON document; it comes back."""
        r = self.python("import json, os, subprocess, sys, time\ndef run(*a, **k):\n"
                        "    k.setdefault('stdin', subprocess.DEVNULL)\n"
                        "    r = subprocess.run(list(a), capture_output=True, timeout=50, **k)\n"
                        "    return [r.returncode, r.stdout.decode('latin-1'), r.stderr.decode('latin-1')]\n"
                        "out = {}\n" + script + "\nprint(json.dumps(out))\n", *args, **kw)
        self.assertEqual(r.status, 0, r.err)
        return json.loads(r.out)


class AliasForms(NativePython):
    """How harnesses call a shell."""

    def test_forms(self):
        self.write("src/app/s.sh", "#!/bin/sh\nprintf '%s|' \"$0\" \"$@\"; echo\n", 0o755)
        a = self.answers(r"""
out["lc"] = run("bash", "-lc", "echo hi")
out["c_name"] = run("sh", "-c", 'printf "%s|" "$0" "$@"', "name", "a b", "")
out["abs_sh"] = run("/bin/sh", "-c", "echo $0")
out["abs_bash"] = run("/usr/bin/bash", "-c", "echo abs")
out["zsh"] = run("zsh", "-c", "echo z")
out["euo"] = run("bash", "-euo", "pipefail", "-c", "false | true; echo not reached")
out["ec"] = run("sh", "-ec", "false; echo not reached")
out["script"] = run("bash", "s.sh", "a b", "c")
out["script_abs"] = run("/bin/sh", os.path.abspath("s.sh"), "x")
out["no_script"] = run("bash", "absent.sh")
out["stdin"] = run("sh", stdin=None, input=b"echo from stdin\nread x\nthe next line\necho got $x\n")
out["stdin_s"] = run("sh", "-s", "one", "two", stdin=None, input=b'echo "$# $2"\n')
out["system"] = os.system("exit 3") >> 8
out["shell_true"] = subprocess.run("echo $((6*7)) | cat", shell=True, capture_output=True, text=True).stdout
out["help"] = run("sh", "--no-such-option", "-c", "echo x")
""", grants="app")
        self.assertEqual(a["lc"][:2], [0, "hi\n"], a["lc"])
        self.assertEqual(a["c_name"][:2], [0, "name|a b||"], a["c_name"])
        self.assertEqual(a["abs_sh"][0], 0)
        self.assertEqual(a["abs_bash"][:2], [0, "abs\n"])
        self.assertEqual(a["zsh"][:2], [0, "z\n"])
        self.assertEqual(a["euo"][:2], [1, ""])
        self.assertEqual(a["ec"][:2], [1, ""])
        self.assertEqual(a["script"][:2], [0, "s.sh|a b|c|\n"], a["script"])
        self.assertEqual(a["script_abs"][:2], [0, f"{self.app}/s.sh|x|\n"], a["script_abs"])
        self.assertNotEqual(a["no_script"][0], 0)
        self.assertIn("absent.sh: No such file", a["no_script"][2])
        self.assertEqual(a["stdin"][:2], [0, "from stdin\ngot the next line\n"], a["stdin"])
        self.assertEqual(a["stdin_s"][:2], [0, "2 two\n"], a["stdin_s"])
        self.assertEqual(a["system"], 3)
        self.assertEqual(a["shell_true"], "42\n")
        self.assertEqual(a["help"][0], 2, a["help"])

    def test_a_script_that_only_policy_lets_read(self):
        """The agent has no grant on the workspace: the script is a decided read."""
        self.write("src/app/s.sh", "printf '%s|' \"$0\" \"$@\"; echo; exit 5\n")
        self.write("src/app/sub/t.sh", "echo t\n")
        a = self.answers(r"""
out["script"] = run("bash", "s.sh", "a b", "c")
out["sub"] = run("sh", "-e", "sub/t.sh")
out["absent"] = run("bash", "absent.sh")
""")
        self.assertEqual(a["script"][:2], [5, "s.sh|a b|c|\n"], a["script"])
        self.assertEqual(a["sub"][:2], [0, "t\n"], a["sub"])
        self.assertNotEqual(a["absent"][0], 0)
        self.assertTrue([r for r in self.records() if r.action == "fs:read" and r.target == "~/src/app/s.sh"])
        self.policy(P0 + '@id("no") forbid (principal, action == Box::Action::"fs:read", resource) when { context.input.path == "~/src/app/s.sh" };')
        a = self.answers('out["script"] = run("bash", "s.sh")')
        self.assertNotEqual(a["script"][0], 0)
        self.assertEqual(a["script"][1], "")
        self.assertIn("[policy: no]", a["script"][2])

    def test_statuses(self):
        a = self.answers(r"""
import signal
out["status"] = [run("sh", "-c", f"exit {n}")[0] for n in (0, 1, 7, 255)]
out["notfound"] = run("sh", "-c", "no-such-command-here")
out["syntax"] = run("sh", "-c", "if then")
out["pipe"] = run("bash", "-c", "set -o pipefail; (exit 3) | cat")[0]
out["term"] = run("sh", "-c", "kill -TERM $$; sleep 5")[0]
out["kill"] = run("sh", "-c", "kill -KILL $$; sleep 5")[0]
out["sub"] = run("sh", "-c", "(kill -SEGV $$) ; sleep 5")[0]
out["sigpipe"] = run("bash", "-c", "while :; do echo y; done | head -n 1; echo ${PIPESTATUS[0]}")
""")
        self.assertEqual(a["status"], [0, 1, 7, 255])
        self.assertEqual(a["notfound"][0], 127, a["notfound"])
        self.assertEqual(a["syntax"][0], 2, a["syntax"])
        self.assertEqual(a["pipe"], 3)
        self.assertIn(a["term"], (143, -15))
        self.assertIn(a["kill"], (137, -9))
        self.assertIn(a["sub"], (139, -11))
        self.assertEqual(a["sigpipe"][:2], [0, "y\n141\n"], a["sigpipe"])

    def test_tools_that_die(self):
        self.config(rest='[tool.bash]\ncommand = ["/usr/bin/bash"]\n')
        for name, n in (("TERM", 15), ("SEGV", 11), ("KILL", 9), ("PIPE", 13)):
            r = self.sh(f"/usr/bin/bash -c 'kill -{name} $$'; echo $?; /usr/bin/bash -c 'kill -{name} $$' | cat; echo ${{PIPESTATUS[0]}}", shell="bash")
            self.assertEqual(r.out, f"{128 + n}\n{128 + n}\n", r.err)

    def test_large_and_binary_streams(self):
        a = self.answers(r"""
import hashlib
data = bytes(range(256)) * 4096  # 1 MiB, every byte value
r = subprocess.run(["sh", "-c", "cat | cat | cat"], input=data, capture_output=True, timeout=50)
out["same"] = [r.returncode, len(r.stdout), r.stdout == data, r.stderr.decode()]
r = run("sh", "-c", "i=0; while [ $i -lt 16384 ]; do echo 0123456789012345678901234567890123456789012345678901234567890123; i=$((i+1)); done")
out["lines"] = [r[0], len(r[1])]
r = subprocess.run(["sh", "-c", "cat > big; cat big; rm big"], input=data, capture_output=True, timeout=50)
out["file"] = [r.returncode, r.stdout == data, r.stderr.decode()]
""")
        self.assertEqual(a["same"], [0, 1 << 20, True, ""])
        self.assertEqual(a["lines"], [0, 65 * 16384])
        self.assertEqual(a["file"], [0, True, ""])

    def test_closed_descriptors(self):
        a = self.answers(r"""
def closed(fds, text):
    pid = os.fork()
    if pid == 0:
        for fd in fds:
            os.close(fd)
        os.execvp("sh", ["sh", "-c", text])
    end = time.monotonic() + 20
    while True:
        p, st = os.waitpid(pid, os.WNOHANG)
        if p:
            return os.waitstatus_to_exitcode(st)
        if time.monotonic() > end:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            return "hang"
        time.sleep(0.01)
out["stdin"] = closed([0], "cat; exit 4")
out["stdout"] = closed([1], "echo x; exit 4")
out["all"] = closed([0, 1, 2], "exit 4")
""")
        self.assertEqual(a["all"], 4)
        self.assertEqual(a["stdin"], 4)
        self.assertEqual(a["stdout"], 4)

    def test_long_texts_and_many_arguments(self):
        a = self.answers(r"""
text = "x=0\n" + "x=$((x+1)) # padding padding padding padding padding padding padding padding\n" * 1300 + "echo $x\n"
out["len"] = len(text)
out["text"] = run("sh", "-c", text)
out["args"] = run("sh", "-c", 'echo $# "${300}"', "sh", *[f"a{i}" for i in range(300)])
out["one"] = run("sh", "-c", 'echo ${#1}', "sh", "y" * 100000)
out["too_long"] = run("sh", "-c", ": " + "z" * 120000, "sh", "y" * 120000)
out["after"] = run("sh", "-c", "echo fine")
""")
        self.assertGreater(a["len"], 100000)
        self.assertEqual(a["text"], [0, "1300\n", ""])
        self.assertEqual(a["args"], [0, "300 a299\n", ""])
        self.assertEqual(a["one"], [0, "100000\n", ""])
        self.assertIn(a["too_long"][0], (0, 125))
        if a["too_long"][0] == 125:
            self.assertIn("put them into a script file", a["too_long"][2])
        self.assertEqual(a["after"][:2], [0, "fine\n"])

    def test_environment(self):
        a = self.answers(r"""
env = dict(os.environ, GREETING="hello world", EMPTY="", MULTI="a\nb", LD_PRELOAD="/x.so", BASH_ENV="/x.sh", ENV="/x.sh",
           IFS="x", PS4="$(echo pwned > pwned)", SHELLOPTS="xtrace", **{"BASH_FUNC_cat%%": "() { echo pwned; }", "bad name": "1"})
out["env"] = run("bash", "-c", 'printf "%s|" "$GREETING" "$EMPTY" "$MULTI" "${LD_PRELOAD-}" "${BASH_ENV-}" "${ENV-}"; cat README.md', env=env)
out["none"] = run("/bin/sh", "-c", 'echo "$HOME:$USER"', env={})
out["big"] = run("sh", "-c", 'echo ${#BIG}', env=dict(os.environ, BIG="b" * 100000))
out["cwd"] = run("sh", "-c", "pwd", cwd="/tmp")
""")
        self.assertEqual(a["env"][:2], [0, "hello world||a\nb||||# App\n"], a["env"])
        self.assertEqual(a["none"][0], 0)
        self.assertEqual(a["none"][1].split(":")[1], "strands-box\n")
        self.assertEqual(a["big"][:2], [0, "100000\n"], a["big"])
        self.assertEqual(a["cwd"][:2], [0, "/tmp\n"], a["cwd"])
        self.assertFalse(os.path.exists(os.path.join(self.app, "pwned")))

    def test_twenty_at_once(self):
        a = self.answers(r"""
ps = [subprocess.Popen(["sh", "-c", f"x=$(cat sub/x.txt); echo {i} $x > sub/o{i}; cat sub/o{i}; exit {i}"], stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) for i in range(20)]
out["all"] = [[*(x.decode() for x in p.communicate(timeout=50)), p.returncode] for p in ps]
""")
        self.assertEqual(a["all"], [[f"{i} x\n", "", i] for i in range(20)])

    def test_a_killed_alias_ends_its_command(self):
        a = self.answers(r"""
p = subprocess.Popen(["sh", "-c", "trap '' HUP TERM; echo ready; i=0; while :; do i=$((i+1)); echo $i > sub/beat; sleep 0.05; done"],
                     stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
out["ready"] = p.stdout.readline().decode()
p.kill()
p.wait()
def beat():
    return run("sh", "-c", "cat sub/beat")[1]
end = time.monotonic() + 20
last, same = beat(), 0
while same < 4 and time.monotonic() < end:
    time.sleep(0.15)
    now = beat()
    same = same + 1 if now == last else 0
    last = now
out["stopped"] = same >= 4
p = subprocess.Popen(["sh", "-c", "trap 'echo got; exit 9' TERM; echo ready; while :; do sleep 0.05; done"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
p.stdout.readline()
p.terminate()
out["term"] = [p.communicate(timeout=20)[0].decode(), p.returncode]
""")
        self.assertEqual(a["ready"], "ready\n")
        self.assertTrue(a["stopped"])
        self.assertEqual(a["term"], ["got\n", 9])

    def test_signals_reach_a_command_that_waits(self):
        """Whatever the shell waits for: its input, a FIFO, a substitution, a program. A caller that ignores a signal keeps ignoring it."""
        os.mkfifo(os.path.join(self.app, "fifo"))
        a = self.answers(r"""
import signal
def ended_by(sig, text, **kw):
    p = subprocess.Popen(["sh", "-c", "echo go >&2; " + text], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **kw)
    p.stderr.read(3)
    time.sleep(0.3)
    p.send_signal(sig)
    try:
        return p.wait(timeout=10)
    except subprocess.TimeoutExpired:
        p.kill()
        return "hang"
for name, text in (("input", "cat"), ("read", "read x; echo $x"), ("fifo", "cat fifo"), ("redirection", "cat < fifo"), ("fifo writing", "echo x > fifo"), ("substitution", "x=$(sleep 100); echo $x"), ("pipeline", "sleep 100 | cat"),
                   ("loop", "while :; do :; done"), ("wait", "sleep 100 & wait"), ("nested", "sh -c 'sleep 100'")):
    for sig in (signal.SIGTERM, signal.SIGINT):
        out[name + " " + sig.name] = ended_by(sig, text)
out["ignored"] = ended_by(signal.SIGINT, "sleep 1; exit 6", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
""")
        for key, status in a.items():
            wanted = {"ignored": (6,)}.get(key, (143, -15) if key.endswith("TERM") else (130, -2))
            self.assertIn(status, wanted, key)

    def test_background_jobs_and_held_pipes(self):
        """COMP-23: whoever reads the command's output gets its end in bounded time after the agent ended."""
        self.config(command='["/usr/bin/env"]')
        begin = time.monotonic()
        r = self.sh("sleep 1000 & echo done", shell="sh")
        self.assertEqual((r.status, r.out), (0, "done\n"), r.err)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertTrue(wait_for(lambda: not processes_of(self.box_dir)))

    def test_long_lived_pipe(self):
        """A shell as a coprocess: one line in, one line out, many times."""
        a = self.answers(r"""
p = subprocess.Popen(["bash"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
got = []
for i in range(50):
    p.stdin.write(f"x{i}=$((x{i-1 if i else 0} + 1)); cd sub; cat x.txt >/dev/null; cd ..; echo $x{i}\n")
    p.stdin.flush()
    got.append(int(p.stdout.readline()))
p.stdin.close()
out["got"] = got
out["status"] = p.wait(timeout=20)
""")
        self.assertEqual(a["got"], list(range(1, 51)))
        self.assertEqual(a["status"], 0)

    def test_scripts_that_agents_write(self):
        script = r"""#!/usr/bin/env bash
set -euo pipefail
name=world
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cat > "$dir/a" <<EOT
hello $name
$(printf '%s\n' one two)
EOT
cat > "$dir/b" <<'EOT'
literal $name
EOT
cat <<-EOT
	tabs gone
	EOT
while IFS=: read -r key value; do
  printf '%s=%s\n' "$key" "$value"
done <<< "a:1"
files=()
for f in "$dir"/*; do files+=("$(basename "$f")"); done
echo "${#files[@]} ${files[*]}"
cat "$dir/a" "$dir/b"
if [[ $name == w* && -f $dir/a ]]; then echo match; fi
case "$name" in wor*) echo case;; esac
fn() { local x=$1; echo "fn $x"; }
fn "a b"
echo "${name^^} ${name:1:3} ${name/o/0} ${missing:-default}"
(( n = 3 * 4 )); echo "$n"
{ echo err >&2; } 2>&1
echo x | { read -r y; echo "y=$y"; }
"""
        self.write("src/app/s.sh", script)
        a = self.answers('out["s"] = run("bash", "s.sh")', grants="app")
        self.assertEqual(a["s"], [0, "tabs gone\na=1\n2 a b\nhello world\none\ntwo\nliteral $name\nmatch\ncase\nfn a b\nWORLD orl w0rld default\n12\nerr\ny=x\n", ""])
        self.assertEqual(os.listdir(os.path.join(self.box_dir, "tmp")), [])


class GrantedShell(BoxCase):
    """An `exec` entry makes a shell real: by all its names, and with the agent's own reach alone."""

    def test_dash(self):
        if os.path.realpath("/bin/sh") != "/usr/bin/dash":
            self.skipTest("sh is not dash here")
        self.policy(P0)
        self.config(command='["/bin/bash", "-c"]', agent='[agent.filesystem]\nexec = ["/usr/bin/dash"]\n')
        r = self.box("--", "for s in /bin/sh /usr/bin/sh /usr/bin/dash; do $s -c 'read x < README.md && echo read; echo $0 real'; done; sh -c 'cat README.md'")
        self.assertEqual(r.out, "/bin/sh real\n/usr/bin/sh real\n/usr/bin/dash real\n# App\n", r.err)


class PythonPrograms(NativePython):
    def test_library(self):
        a = self.answers(r"""
import asyncio, socket, tempfile, threading, concurrent.futures, ssl, sqlite3
with tempfile.NamedTemporaryFile() as f:
    f.write(b"x")
    out["tmp"] = f.name.startswith("/tmp/")
async def main():
    p = await asyncio.create_subprocess_shell("echo from asyncio", stdout=asyncio.subprocess.PIPE)
    text, _ = await p.communicate()
    await asyncio.sleep(0)
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    r, w = await asyncio.open_connection("127.0.0.1", port)
    data = await r.read()
    w.close()
    server.close()
    return text.decode(), data.decode()
out["asyncio"] = asyncio.run(main())
a, b = socket.socketpair()
a.send(b"ping")
out["pair"] = b.recv(10).decode()
with concurrent.futures.ThreadPoolExecutor(4) as ex:
    out["threads"] = sum(ex.map(lambda x: x * x, range(10)))
import multiprocessing
out["mp"] = multiprocessing.get_context("fork").Pool(2).map(abs, [-1, -2])
six = socket.socket(socket.AF_INET6)
try:
    six.bind(("::1", 0))
    out["six"] = True
except OSError as e:
    out["six"] = str(e)
""")
        self.assertTrue(a["tmp"])
        self.assertEqual(a["asyncio"], ["from asyncio\n", ""])
        self.assertEqual((a["pair"], a["threads"], a["mp"], a["six"]), ("ping", 285, [1, 2], True))

    def test_http_clients(self):
        tls = Authority(os.path.join(self.conf, "tls"), "api.test")
        plain, api = Origin(), Origin(tls=tls, body=b"secure\n")
        self.addCleanup(plain.close)
        self.addCleanup(api.close)
        rest = f"""
[egress.api]
destinations = ["api.test"]
secret.ref = "env://TOK"
secret.inject = "always"
trust = "tls/ca.pem"
[resolve]
"api.test:443" = "127.0.0.1:{api.port}"
"plain.test:80" = "127.0.0.1:{plain.port}"
"""
        a = self.answers(r"""
import urllib.request, urllib.error
out["plain"] = urllib.request.urlopen("http://plain.test/a", timeout=20).read().decode()
out["tls"] = urllib.request.urlopen("https://api.test/b", timeout=20).read().decode()
try:
    urllib.request.urlopen("http://169.254.169.254/", timeout=20)
except urllib.error.HTTPError as e:
    out["meta"] = [e.code, e.headers.get("x-strands-box-egress"), e.read().decode()]
try:
    import requests
    s = requests.Session()
    out["requests"] = [s.post("https://api.test/c", data=b"x" * 100000, timeout=20).status_code, s.get("https://api.test/d", timeout=20).text]
except ImportError:
    out["requests"] = None
""", rest=rest, env={"TOK": "s3cret-value-0123456789"})
        self.assertEqual((a["plain"], a["tls"]), ("hello\n", "secure\n"))
        self.assertEqual(a["meta"][:2], [403, "refused"])
        if a["requests"] is not None:
            self.assertEqual(a["requests"], [200, "secure\n"])
        self.assertTrue(all(h.get("Authorization") == "Bearer s3cret-value-0123456789" for _, _, h, _ in api.requests))
        self.assertTrue(all("Authorization" not in h for _, _, h, _ in plain.requests))


@needs("/usr/bin/node")
class NodePrograms(BoxCase):
    def setUp(self):
        super().setUp()
        self.policy(OPEN)
        self.version = tuple(int(x) for x in re.findall(r"\d+", subprocess.run(["/usr/bin/node", "--version"], capture_output=True, text=True, check=True).stdout))

    def node(self, script, rest="", **kw):
        self.config(command='["/usr/bin/node", "-e"]', rest=rest)
        return self.box("--", script, **kw)

    def test_child_processes_and_workers(self):
        r = self.node(r"""
const { exec, execFileSync, spawn } = require("child_process");
const { Worker } = require("worker_threads");
const fs = require("fs"), os = require("os"), path = require("path");
const out = {};
const step = f => new Promise(f);
(async () => {
  out.exec = await step(done => exec("cat README.md; exit 3", (e, so, se) => done([e && e.code, so, se])));
  out.sync = execFileSync("bash", ["-lc", "echo $((1+1))"]).toString();
  out.spawn = await step(done => { const p = spawn("sh", ["-c", "cat"], {stdio: ["pipe", "pipe", "inherit"]}); let s = "";
    p.stdout.on("data", d => s += d); p.on("close", c => done([c, s])); p.stdin.end("through a pipe"); });
  out.worker = await step(done => { const w = new Worker("require('worker_threads').parentPort.postMessage(6*7)", {eval: true}); w.on("message", done); });
  const d = fs.mkdtempSync(path.join(os.tmpdir(), "n-"));
  fs.writeFileSync(path.join(d, "f"), "x");
  out.tmp = d.startsWith("/tmp/");
  console.log(JSON.stringify(out));
})();
""")
        self.assertEqual(r.status, 0, r.err)
        a = json.loads(r.out)
        self.assertEqual(a["exec"], [3, "# App\n", ""])
        self.assertEqual((a["sync"], a["spawn"], a["worker"], a["tmp"]), ("2\n", [0, "through a pipe"], 42, True))

    def test_fetch(self):
        """COMP-09: versions with NODE_USE_ENV_PROXY fetch through the gateway by themselves; older ones fail at once and find it in HTTPS_PROXY."""
        tls = Authority(os.path.join(self.conf, "tls"), "api.test")
        api, plain = Origin(tls=tls, body=b"secure\n"), Origin()
        self.addCleanup(api.close)
        self.addCleanup(plain.close)
        rest = f"""
[egress.api]
destinations = ["api.test"]
secret.ref = "env://TOK"
secret.inject = "always"
trust = "tls/ca.pem"
[resolve]
"api.test:443" = "127.0.0.1:{api.port}"
"plain.test:80" = "127.0.0.1:{plain.port}"
"""
        knows = self.version >= (24,) or (22, 21) <= self.version < (23,)
        begin = time.monotonic()
        r = self.node("fetch('https://api.test/').then(async r => console.log(r.status, await r.text()), e => console.log('failed', e.cause && e.cause.code))",
                      rest=rest, env={"TOK": "s3cret-value-0123456789"})
        self.assertEqual(r.out.split()[0], "200" if knows else "failed", r.out + r.err)
        self.assertLess(time.monotonic() - begin, 15)
        r = self.node(r"""
const http = require("http"), https = require("https"), tls = require("tls");
const proxy = new URL(process.env.HTTPS_PROXY);
http.get({host: proxy.hostname, port: proxy.port, path: "http://plain.test/p", headers: {host: "plain.test"}}, r => {
  r.on("data", d => console.log("plain", r.statusCode, d.toString().trim())).on("end", () => {
    http.request({host: proxy.hostname, port: proxy.port, method: "CONNECT", path: "api.test:443", headers: {host: "api.test:443"}}).on("connect", (res, socket) => {
      https.get({host: "api.test", path: "/s", port: 443, defaultPort: 443, createConnection: () => tls.connect({socket, servername: "api.test"})}, r2 =>
        r2.on("data", d => console.log("tls", r2.statusCode, d.toString().trim())).on("end", () => process.exit(0)));
    }).end();
  });
});
""", rest=rest, env={"TOK": "s3cret-value-0123456789"})
        self.assertEqual(r.out, "plain 200 hello\ntls 200 secure\n", r.err)


class Streamer(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for _ in range(6):
                event = f"data: {time.time()}\n\n".encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
                self.wfile.flush()
                time.sleep(0.25)
            self.wfile.write(b"0\r\n\r\n")
            return
        data = b"0123456789" * 1000
        begin, end = 0, len(data) - 1
        m = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if m:
            begin, end = int(m[1]), int(m[2])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{end}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(end - begin + 1))
        self.end_headers()
        self.wfile.write(data[begin:end + 1])

    def do_PUT(self):
        left, digest = int(self.headers["Content-Length"]), hashlib.sha256()
        while left:
            piece = self.rfile.read(min(left, 1 << 16))
            if not piece:
                return
            digest.update(piece)
            left -= len(piece)
        text = digest.hexdigest().encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@needs("/usr/bin/curl")
class NativeCurl(BoxCase):
    def setUp(self):
        super().setUp()
        self.policy(OPEN)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Streamer)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.rest = f'[resolve]\n"s.test:80" = "127.0.0.1:{self.server.server_address[1]}"\n'

    def test_events_arrive_as_they_are_sent(self):
        """COMP-15. The budget is 200 ms; the test allows for a loaded machine, but not for a buffer that waits for the end."""
        self.config(command='["/usr/bin/curl", "-sS", "-N", "-m", "30"]', rest=self.rest)
        p = subprocess.Popen([os.path.join(os.environ["BOX_BIN"], "box"), "run", "--config", os.path.join(self.conf, "box.toml"), "--", "http://s.test/events"],
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.app)
        delays = []
        for line in p.stdout:
            if line.startswith("data: "):
                delays.append(time.time() - float(line[6:]))
        err = p.communicate(timeout=20)[1]
        self.assertEqual(len(delays), 6, err)
        self.assertLess(sorted(delays)[2], 0.2, delays)
        self.assertLess(max(delays), 1.0, delays)

    def test_upload_and_range(self):
        big = os.path.join(self.app, "big")
        block = os.urandom(1 << 20)
        digest = hashlib.sha256()
        with open(big, "wb") as f:
            for _ in range(50):
                f.write(block)
                digest.update(block)
        self.config(command='["/usr/bin/curl", "-sS", "-m", "50"]', rest=self.rest, agent=f'[agent.filesystem]\nread = ["{self.app}"]\n')
        r = self.box("--", "-T", big, "-H", "Expect: 100-continue", "http://s.test/up")
        self.assertEqual((r.status, r.out), (0, digest.hexdigest()), r.err)
        sizes = [x.attrs for x in self.records() if x.action == "http:request"]
        self.assertEqual(len(sizes), 1)
        r = self.box("--", "-r", "5-14", "-w", " %{http_code}", "http://s.test/data")
        self.assertEqual(r.out, "5678901234 206", r.err)


GIT = """
[tool.git]
command = ["/usr/bin/git"]
env = { GIT_CONFIG_NOSYSTEM = "1", HOME = "/tmp", GIT_AUTHOR_NAME = "a", GIT_AUTHOR_EMAIL = "a@test", GIT_COMMITTER_NAME = "a", GIT_COMMITTER_EMAIL = "a@test" }
[tool.git.filesystem]
read = [%(read)s]
write = [%(write)s]
"""


@needs("/usr/bin/git")
class Git(BoxCase):
    def setUp(self):
        super().setUp()
        self.policy(OPEN)
        self.other = os.path.join(self.conf, "../other.git")
        shared = ['"/usr/share/git-core"'] if os.path.isdir("/usr/share/git-core") else []
        src = os.path.join(os.path.dirname(self.app))
        self.config(rest=GIT % {"read": ", ".join([f'"{src}"', '"/usr/lib/git-core"'] + shared), "write": f'"{src}"'})

    def test_a_working_day(self):
        r = self.run_ok("git init -q -b main . && git add . && git commit -q -m first && git log --oneline | cut -d' ' -f2-; "
                        "echo more >> README.md; git diff --stat | cat; git diff README.md | grep '^+more'; git stash -q && git status --short; git stash pop -q; "
                        "git checkout -q -b topic; git commit -q -am second; git rev-list --count HEAD")
        self.assertIn("first\n", r.out, r.err)
        self.assertIn("README.md | 1 +\n", r.out, r.err)
        self.assertIn("+more\n", r.out, r.err)
        self.assertEqual(r.out.splitlines()[-1], "2", r.out + r.err)

    def test_worktree(self):
        """COMP-06"""
        r = self.run_ok("git init -q -b main . && git add . && git commit -q -m first && git worktree add -q ../wt && cd ../wt && echo w > w.txt && "
                        "git add . && git commit -q -m wt && git log --format=%s")
        self.assertEqual(r.out, "wt\nfirst\n", r.err)

    def test_clone_over_http(self):
        """git's own helpers, below /usr/lib/git-core, run in the tool's sandbox and go through the gateway."""
        if not os.path.exists("/usr/lib/git-core/git-remote-http"):
            self.skipTest("git has no HTTP helper")
        self.run_ok("git init -q -b main . && git add . && git commit -q -m first")
        served = os.path.join(self.conf, "served")
        env = dict(os.environ, GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")
        subprocess.run(["/usr/bin/git", "clone", "-q", "--bare", self.app, served], check=True, env=env, capture_output=True)
        subprocess.run(["/usr/bin/git", "-C", served, "update-server-info"], check=True, env=env)

        class Files(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args):
                super().__init__(*args, directory=served)

            def log_message(self, *args):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        base = self.read("boxes/t/box.toml")
        self.write("boxes/t/box.toml", base + f'[resolve]\n"git.test:80" = "127.0.0.1:{server.server_address[1]}"\n')
        r = self.run_ok("git clone -q http://git.test/ ../copy && cd ../copy && git log --format=%s && cat README.md")
        self.assertEqual(r.out, "first\n# App\n", r.err)
        self.assertTrue([x for x in self.records() if x.action == "http:request" and x.target.startswith("git.test:80/")])
        self.policy(OPEN + '@id("no_git") forbid (principal, action == Box::Action::"net:connect", resource) when { context.input.host == "git.test" };')
        self.assertNotEqual(self.sh("git clone -q http://git.test/ ../copy2").status, 0)

    def test_local_clone_and_push(self):
        """git starts helpers through sh: a tool table runs its own program only, `exec` entries of the agent run several."""
        if os.path.realpath("/bin/sh") != "/usr/bin/dash":
            self.skipTest("sh is not dash here")
        src = os.path.dirname(self.app)
        shared = [x for x in ("/usr/lib/git-core", "/usr/share/git-core") if os.path.isdir(x)]
        self.config(agent="[agent.filesystem]\n" + f'read = {json.dumps([src] + shared)}\nwrite = ["{src}"]\nexec = ["/usr/bin/git", "/usr/bin/dash"]\n')
        r = self.run_ok("export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@test GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@test; git init -q -b main . && git add . && git commit -q -m first && "
                        "git clone -q --bare . ../bare.git && git clone -q --no-local ../bare.git ../copy && cd ../copy && echo w > w.txt && git add w.txt && git commit -q -m two && "
                        "git push -q origin main && git ls-remote origin main | cut -f2 && git log --format=%s")
        self.assertEqual(r.out, "refs/heads/main\ntwo\nfirst\n", r.err)

    def test_hooks_run_inside_the_tools_sandbox_only(self):
        self.write(".ssh/id", "key\n", 0o600)
        hook = os.path.join(self.app, ".git/hooks/post-commit")
        self.run_ok("git init -q -b main .")
        with open(hook, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\ncat ~/.ssh/id /etc/shadow %s/.ssh/id > stolen 2>/dev/null\n: > ran\n" % os.path.expanduser("~"))
        os.chmod(hook, 0o755)
        self.sh("git add README.md; git commit -q -m x")
        stolen = os.path.join(self.app, "stolen")
        self.assertTrue(not os.path.exists(stolen) or os.path.getsize(stolen) == 0)


if __name__ == "__main__":
    unittest.main()
