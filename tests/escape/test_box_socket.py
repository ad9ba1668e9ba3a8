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


TRY = r"""
import os, socket, sys
for path in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        s = socket.socket(socket.AF_UNIX, kind)
        try:
            here, name = os.path.split(path)
            os.chdir(here)
            s.connect(name)
            print("connected", name)
        except OSError as e:
            pass
        try:
            s.sendto(b"x", name)
            print("sent", name)
        except OSError as e:
            pass
        for what in (lambda: os.rename(name, "moved"), lambda: os.link(name, "linked"), lambda: os.unlink(name), lambda: os.symlink(name, "l")):
            try:
                what()
            except OSError:
                pass
        for other in ("moved", "linked", "l"):
            try:
                s.connect(other)
                print("connected", other)
            except OSError:
                pass
print("end")
"""


class HostSockets(BoxCase):
    """SOCK-01: a folder that is granted for its files does not give the services in it."""

    def setUp(self):
        super().setUp()
        if not os.path.exists("/usr/bin/python3"):
            self.skipTest("python3 is not installed")
        self.policy(OPEN)

    def listen(self, path, kind=socket.SOCK_STREAM, close=False):
        s = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(s.close)
        # Relative: the name may be longer than an address takes.
        here = os.getcwd()
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.chdir(os.path.dirname(path))
        try:
            s.bind(os.path.basename(path))
        finally:
            os.chdir(here)
        if kind != socket.SOCK_DGRAM:
            s.listen(8)
        s.setblocking(False)
        if close:
            s.close()
        return s

    def heard(self, s):
        try:
            s.accept() if s.type != socket.SOCK_DGRAM else s.recv(10)
            return True
        except BlockingIOError:
            return False

    def agent(self, lists, *args, tool=False):
        python = '["/usr/bin/python3", "-B", "-c"]'
        if tool:
            self.write("src/app/try.py", TRY)
            self.config(rest=f'[tool.py]\ncommand = ["/usr/bin/python3"]\n[tool.py.filesystem]\n{lists}')
            return self.sh("/usr/bin/python3 -B try.py " + " ".join(args))
        self.config(command=python, agent=f"[agent.filesystem]\n{lists}")
        return self.box("--", TRY, *args)

    def test_below_a_folder(self):
        for tool in (False, True):
            for lists in (f'read = ["/usr/lib", "{self.app}"]\n', f'read = ["/usr/lib", "{self.app}"]\nwrite = ["{self.app}"]\n'):
                with self.subTest(tool=tool, lists=lists):
                    paths = [os.path.join(self.app, "deep/er/a.sock"), os.path.join(self.app, "d.sock"), os.path.join(self.app, "deep/q.sock")]
                    for p in paths:
                        if os.path.lexists(p):
                            os.unlink(p)
                    ends = [self.listen(p, k) for p, k in zip(paths, (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET))]
                    r = self.agent(lists, *paths, tool=tool)
                    self.assertEqual(r.out, "end\n", r.err)
                    self.assertEqual([self.heard(s) for s in ends], [False] * 3)
                    for p in paths:
                        self.assertTrue(os.path.exists(p))
                        self.assertIn(f"the socket {p} is hidden", r.err)
                    for s in ends:
                        s.close()

    def test_an_entry_of_its_own(self):
        p = os.path.join(self.app, "sub/agent.sock")
        s = self.listen(p)
        for lists in (f'read = ["/usr/lib", "{self.app}"]\nwrite_file = ["{p}"]\n', f'read = ["/usr/lib"]\nwrite = ["{self.app}"]\nwrite_file = ["{p}"]\n'):
            r = self.agent(lists, p)
            self.assertIn("connected agent.sock\n", r.out, r.err)
            self.assertTrue(self.heard(s))
            self.assertIn(f"box: warning: [agent]: may connect to the socket {p}\n", r.err)
            self.assertEqual(r.err.count("may connect"), 1)

    def test_a_leftover_can_be_replaced(self):
        """A server in the box removes what an earlier one left behind."""
        p = os.path.join(self.app, "sub/left.sock")
        self.listen(p, close=True)
        self.config(command='["/usr/bin/python3", "-B", "-c"]', agent=f'[agent.filesystem]\nread = ["/usr/lib"]\nwrite = ["{self.app}"]\n')
        r = self.box("--", "import os, socket; os.chdir('sub'); os.unlink('left.sock'); s = socket.socket(socket.AF_UNIX); s.bind('left.sock'); s.listen(1); c = socket.socket(socket.AF_UNIX); c.connect('left.sock'); print('mine')")
        self.assertEqual(r.out, "mine\n", r.err)
        self.assertIn("may connect to the socket", r.err)

    def test_denied_or_not_granted(self):
        self.listen(os.path.join(self.app, "sub/agent.sock"))
        for agent in (f'[agent.filesystem]\nread = ["{self.app}"]\ndeny = ["{self.app}/sub"]\n', ""):
            self.config(agent=agent)
            r = self.sh("true")
            self.assertNotIn("socket", r.err)

    def test_at_most_twenty_lines(self):
        for i in range(25):
            self.listen(os.path.join(self.app, f"s{i}\n"))
        self.config(agent=f'[agent.filesystem]\nread = ["{self.app}"]\n')
        r = self.sh("true")
        self.assertEqual(r.err.count("is hidden"), 20)
        self.assertIn("box: warning: and perhaps more sockets: 20 are shown\n", r.err)
        self.assertIn("s1\\n", r.err)


if __name__ == "__main__":
    unittest.main()
