"""SOCK-01 and SOCK-03: the box's own socket under raw frames from inside the agent's sandbox, and sockets below granted paths."""
import json
import os
import socket
import unittest

from harness import OPEN, BoxCase

# The agent: a python3 that speaks the alias's frames itself (alias/proto.h).
SPEAK = r'''
import array, json, os, socket, struct, subprocess, sys, time
PATH = "/run/boxwood/box.sock"
HELLO, TEXT, ARG, ENV, RUN, SIGNAL = 1, 2, 3, 4, 5, 6
def dial():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    s.connect(PATH)
    return s
def string(b):
    return struct.pack(">I", len(b)) + b
def hello(version=1, name=b"sh", cwd=b"", flags=0, zero=b"sh"):
    return struct.pack(">I", version) + string(name) + string(cwd) + struct.pack(">I", flags) + string(zero)
def raw(s, data, fds=()):
    anc = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    s.sendmsg([data], anc)
def frame(s, type, body=b"", fds=(), length=None, count=None, id=0):
    raw(s, struct.pack(">IHHI", len(body) if length is None else length, type, len(fds) if count is None else count, id) + body, fds)
def reply(s):
    """("exit", n), ("refused", text), "end" or "open"."""
    try:
        data = s.recv(1 << 18)
    except ConnectionError:
        return "end"
    except TimeoutError:
        return "open"
    if not data:
        return "end"
    n, type, fds, id = struct.unpack(">IHHI", data[:12])
    if type == 16:
        return ["exit", struct.unpack(">I", data[12:16])[0]]
    return ["refused", data[16:].decode(errors="replace")]
def fine():
    begin = time.monotonic()
    r = subprocess.run(["sh", "-c", "echo fine"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30)
    return [r.stdout, time.monotonic() - begin, r.stderr]
null = os.open("/dev/null", os.O_RDWR)
three = [null, null, null]
def command(text, s=None):
    s = s or dial()
    frame(s, HELLO, hello())
    frame(s, TEXT, text)
    frame(s, RUN, fds=three)
    return reply(s)
out = {}
'''


class Speaking(BoxCase):
    def setUp(self):
        super().setUp()
        if not os.path.exists("/usr/bin/python3"):
            self.skipTest("python3 is not installed")
        self.policy(OPEN)
        self.config(command='["/usr/bin/python3", "-B", "-c"]', agent=f'[agent.filesystem]\nread = ["/usr/lib", "{self.app}"]\nwrite = ["{self.app}/sub"]\n')

    def speak(self, script, timeout=60):
        r = self.box("--", SPEAK + script + "\nout['fine'] = fine()\nprint(json.dumps(out))\n", timeout=timeout)
        self.assertEqual(r.status, 0, r.err[-2000:])
        a = json.loads(r.out)
        self.assertEqual(a["fine"][0], "fine\n", r.err[-2000:])
        return a, r

    def test_the_probe_speaks_the_protocol(self):
        a, _ = self.speak('out["exit"] = command(b"exit 7")')
        self.assertEqual(a["exit"], ["exit", 7])

    def test_wrong_frames_end_their_connection_alone(self):
        a, r = self.speak(r'''
def case(*steps):
    s = dial()
    try:
        for step in steps:
            step(s)
    except (ConnectionError, BrokenPipeError):
        pass
    got = reply(s)
    s.close()
    return got
H = lambda s: frame(s, HELLO, hello())
cases = {
    "length ffffffff": [lambda s: frame(s, HELLO, hello(), length=0xffffffff)],
    "length 0": [lambda s: frame(s, HELLO, hello(), length=0)],
    "length + 1": [lambda s: frame(s, HELLO, hello(), length=len(hello()) + 1)],
    "empty message": [lambda s: raw(s, b"x")],
    "half header": [lambda s: raw(s, b"\1\0\0\0\1\0")],
    "two hellos": [H, H],
    "run first": [lambda s: frame(s, RUN, fds=three)],
    "text first": [lambda s: frame(s, TEXT, b"x")],
    "signal before run": [H, lambda s: frame(s, SIGNAL, b"\1")],
    "signal 0": [H, lambda s: frame(s, TEXT, b"sleep 30"), lambda s: frame(s, RUN, fds=three), lambda s: frame(s, SIGNAL, b"\0")],
    "signal 99": [H, lambda s: frame(s, TEXT, b"sleep 30"), lambda s: frame(s, RUN, fds=three), lambda s: frame(s, SIGNAL, b"\x63")],
    "run twice": [H, lambda s: frame(s, TEXT, b"sleep 30"), lambda s: frame(s, RUN, fds=three), lambda s: frame(s, RUN, fds=three)],
    "text after run": [H, lambda s: frame(s, TEXT, b"sleep 30"), lambda s: frame(s, RUN, fds=three), lambda s: frame(s, TEXT, b"x")],
    "run without fds": [H, lambda s: frame(s, RUN)],
    "run with 2 fds": [H, lambda s: frame(s, RUN, fds=three[:2])],
    "run says 3, sends 0": [H, lambda s: frame(s, RUN, count=3)],
    "run says 0, sends 3": [H, lambda s: frame(s, RUN, fds=three, count=0)],
    "fds on text": [H, lambda s: frame(s, TEXT, b"x", fds=[null])],
    "fds on hello": [lambda s: frame(s, HELLO, hello(), fds=three)],
    "253 fds": [H, lambda s: frame(s, RUN, fds=[null] * 253)],
    "exit from us": [H, lambda s: frame(s, 16, b"\0\0\0\0")],
    "type 0": [H, lambda s: frame(s, 0)],
    "type ffff": [H, lambda s: frame(s, 0xffff)],
    "string too long": [lambda s: frame(s, HELLO, struct.pack(">I", 1) + struct.pack(">I", 0xfffffff0) + b"x")],
    "name with nul": [lambda s: frame(s, HELLO, hello(name=b"s\0h"))],
    "cwd too long": [lambda s: frame(s, HELLO, hello(cwd=b"/" * 5000))],
    "arg with nul": [H, lambda s: frame(s, ARG, string(b"a\0b"))],
    "arg cut": [H, lambda s: frame(s, ARG, struct.pack(">I", 100) + b"x")],
    "trailing bytes": [lambda s: frame(s, HELLO, hello() + b"x")],
    "hello of the monitor": [lambda s: frame(s, 1, struct.pack(">I", 1) + string(b"box-shell"))],
}
for name, steps in cases.items():
    out[name] = case(*steps)
for type in range(0, 300):
    for state in ([], [H], [H, lambda s: frame(s, TEXT, b"exit 3"), lambda s: frame(s, RUN, fds=three)]):
        if type in (HELLO, TEXT, ARG, ENV, RUN, SIGNAL) or type % 7 and type > 80:
            continue
        got = case(*state, lambda s: frame(s, type, b"body"))
        if got not in ("end", ["exit", 3]):
            out[f"type {type} in state {len(state)}"] = got
''')
        for name, answer in a.items():
            if name != "fine":
                self.assertEqual(answer, "end", name)
        # Told about, and not without end.
        lines = r.err.count("an alias connection was ended")
        self.assertGreater(lines, 5)
        self.assertLessEqual(lines, 20)

    def test_limits(self):
        a, _ = self.speak(r'''
def attempt(f):
    s = dial()
    try:
        frame(s, HELLO, hello())
        for _ in range(20000):
            f(s)
        frame(s, RUN, fds=three)
    except (ConnectionError, BrokenPipeError):
        pass
    return reply(s)
out["text"] = attempt(lambda s: frame(s, TEXT, b"x" * 100000))
out["args"] = attempt(lambda s: frame(s, ARG, string(b"x" * 100000)))
out["env"] = attempt(lambda s: frame(s, ENV, string(b"A=" + b"x" * 100000)))
out["many args"] = attempt(lambda s: frame(s, ARG, string(b"") * 1000))
out["version"] = (lambda s: (frame(s, HELLO, hello(version=9)), reply(s))[1])(dial())
out["name"] = (lambda s: (frame(s, HELLO, hello(name=b"evil\x1b[2J")), frame(s, RUN, fds=three), reply(s))[2])(dial())
''')
        self.assertEqual(a["text"][0], "refused")
        self.assertIn("longer than a box takes", a["text"][1])
        for name in ("args", "env", "many args"):
            self.assertEqual(a[name][0], "refused", name)
        self.assertIn("unsupported protocol version 9", a["version"][1])
        self.assertNotIn("\x1b", a["name"][1])

    def test_floods_do_not_stop_others(self):
        a, r = self.speak(r'''
held = []
for i in range(2000):
    try:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.setblocking(False)
        s.connect(PATH)
        held.append(s)
    except BlockingIOError:
        s.close()
        time.sleep(0.001)
    except OSError:
        break
    if i == 300:
        out["during"] = fine()
out["held"] = len(held)
for s in held:
    s.close()
end = time.monotonic() + 10
while time.monotonic() < end:
    f = fine()
    if f[0] == "fine\n":
        break
s = dial()
frame(s, HELLO, hello())
frame(s, TEXT, b"sleep 20")
frame(s, RUN, fds=three)
pid = os.fork()
if pid == 0:
    try:
        while True:
            frame(s, SIGNAL, bytes([10]))
    except OSError:
        os._exit(0)
worst = max(fine()[1] for _ in range(10))
os.kill(pid, 9)
os.waitpid(pid, 0)
out["worst"] = worst
s.close()
''', timeout=120)
        self.assertEqual(a["during"][0], "fine\n", a["during"])
        self.assertLess(a["worst"], 5.0)

    def test_silence_is_bounded(self):
        """A connection that never says RUN is told so and ended."""
        a, _ = self.speak(r'''
s = dial()
frame(s, HELLO, hello())
begin = time.monotonic()
out["answer"] = reply(s)
out["after"] = time.monotonic() - begin
''')
        self.assertEqual(a["answer"], ["refused", "the command did not arrive in time"])
        self.assertLess(a["after"], 15)

    def test_forged_identity_counts_for_nothing(self):
        """What a peer says about itself is a name and a directory: the directory is decided, the name chooses a shell."""
        self.policy('@id("exec") permit (principal, action == Box::Action::"shell:exec", resource);')
        a, _ = self.speak(r'''
r, w = os.pipe()
s = dial()
frame(s, HELLO, hello(cwd=b"/etc", name=b"bash"))
frame(s, TEXT, b"pwd; cat shadow; cat /etc/shadow")
frame(s, RUN, fds=[null, w, w])
os.close(w)
out["answer"] = reply(s)
out["text"] = os.read(r, 65536).decode(errors="replace")
''')
        self.assertNotIn("root:", a["text"])
        self.assertIn(self.app + "\n", a["text"])

    def test_peers_own_socket_as_descriptor(self):
        """The box's socket itself as standard input of a command: what it writes there reaches nobody with more rights."""
        a, _ = self.speak(r'''
s = dial()
frame(s, HELLO, hello())
frame(s, TEXT, b"cat; echo done >&2")
frame(s, RUN, fds=[s.fileno(), s.fileno(), s.fileno()])
out["answer"] = reply(s)
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
out["pair"] = (frame(b, HELLO, hello()), command(b"exec 3<&0; exit 4"))[1]
''')
        self.assertIn(a["answer"] if isinstance(a["answer"], str) else a["answer"][0], ("exit", "end", "refused", "open"))
        self.assertEqual(a["pair"], ["exit", 4])


class Announced(BoxCase):
    """SOCK-01: a socket below a granted path is said at the start: mounts and Landlock do not stop connect(2)."""

    def listen(self, path):
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        # Relative: the name may be longer than an address takes.
        here = os.getcwd()
        os.chdir(os.path.dirname(path))
        try:
            s.bind(os.path.basename(path))
        finally:
            os.chdir(here)
        s.listen(1)

    def test_lines(self):
        self.listen(os.path.join(self.app, "sub/agent.sock"))
        self.config(agent=f'[agent.filesystem]\nread = ["{self.app}"]\n', rest=f'[tool.cat]\ncommand = ["/usr/bin/cat"]\n[tool.cat.filesystem]\nread_file = ["{self.app}/README.md"]\n')
        r = self.sh("true")
        self.assertIn(f"box: warning: [agent]: may connect to the socket {self.app}/sub/agent.sock\n", r.err)
        self.assertEqual(r.err.count("may connect"), 1)
        self.config(agent=f'[agent.filesystem]\nread = ["{self.app}"]\ndeny = ["{self.app}/sub"]\n')
        self.assertNotIn("may connect", self.sh("true").err)
        self.config()
        self.assertNotIn("may connect", self.sh("true").err)

    def test_at_most_twenty(self):
        for i in range(25):
            self.listen(os.path.join(self.app, f"s{i}\n"))
        self.config(agent=f'[agent.filesystem]\nread = ["{self.app}"]\n')
        r = self.sh("true")
        self.assertEqual(r.err.count("may connect to the socket"), 20)
        self.assertIn("box: warning: and perhaps more sockets: 20 are shown\n", r.err)
        self.assertIn("s1\\n", r.err)


if __name__ == "__main__":
    unittest.main()
