"""An interactive agent on a terminal (escapes COMP-21, KERN-02): job control, window size, and the terminal as the caller left it, whatever ended the agent."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import tty
import unittest

from harness import BIN, BoxCase, OPEN, wait_for
from test_signals import alive, descendants

PROMPT = "ready$ "


class Screen:
    """A terminal with an interactive shell of the operator on it, who types and reads."""

    def __init__(self, case, argv=None):
        self.case, self.text = case, ""
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(case.app)
            env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "TERM": "dumb", "PS1": "host> ", "BOX": os.path.join(BIN, "box")}
            argv = argv or ["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"]
            os.execve(argv[0], argv, env)
        self.pid, self.fd = pid, fd
        case.addCleanup(self.close)

    def close(self):
        for p in descendants(self.pid):
            try:
                os.kill(p, signal.SIGKILL)
            except OSError:
                pass
        try:
            os.kill(self.pid, signal.SIGKILL)
        except OSError:
            pass
        os.close(self.fd)
        os.waitpid(self.pid, 0)

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, pattern, seconds=20):
        """Read until the pattern is in what came since the last match; returns the match."""
        end = time.monotonic() + seconds
        while True:
            m = re.search(pattern, self.text)
            if m:
                self.text = self.text[m.end():]
                return m
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                self.case.fail(f"no {pattern!r} in {self.text!r}")
            try:
                self.text += os.read(self.fd, 65536).decode(errors="replace").replace("\r\n", "\n")
            except OSError:
                self.case.fail(f"the terminal ended without {pattern!r}: {self.text!r}")

    def foreground(self):
        return os.tcgetpgrp(self.fd)

    def modes(self):
        return termios.tcgetattr(self.fd)[:4]

    def box(self, *args):
        quoted = " ".join("'" + a.replace("'", "'\\''") + "'" for a in args)
        self.type(f"\"$BOX\" run --config {self.case.conf}/box.toml -- {quoted}\n")


class Terminal(BoxCase):
    def setUp(self):
        super().setUp()
        self.policy(OPEN)
        self.config(command='["/bin/bash"]')

    def interactive(self):
        s = Screen(self)
        s.expect("host> ")
        self.before, self.group = s.modes(), s.foreground()
        s.box("--norc", "--noprofile", "--noediting", "-i")
        s.expect(r"bash-[0-9.]+[$#] ")
        s.type("PS1='rea''dy$ '\n")
        s.expect(r"\nready\$ ")
        return s

    def assert_back(self, s):
        s.expect(r"host> ")
        self.assertEqual(s.foreground(), self.group)
        self.assertEqual(s.modes(), self.before)
        s.type("echo al''ive\n")
        s.expect(r"\nalive\n")

    def test_no_job_control_complaint_and_exit(self):
        s = Screen(self)
        s.expect("host> ")
        self.before, self.group = s.modes(), s.foreground()
        s.box("--norc", "--noprofile", "--noediting", "-i", "-c", "case $- in *m*) echo jobs;; esac; stty 2>/dev/null; [ -t 0 ] && echo tty; exit 7")
        text = s.expect(r"(?s)starting workload(.*)host> ").group(1)
        self.assertNotIn("no job control", text)
        self.assertIn("tty", text)
        s.type("echo status $?\n")
        s.expect(r"status (0|7)\n")
        self.assertEqual(s.foreground(), self.group)

    def test_interrupt(self):
        s = self.interactive()
        s.type("read -t 30 x; echo after $?\n")
        time.sleep(0.3)
        s.type("\x03")
        s.expect(r"ready\$ ")
        s.type("echo still he''re\n")
        s.expect(r"\nstill here\n")
        s.type("exit 5\n")
        s.expect("host> ")
        s.type("echo status=$?\n")
        s.expect(r"status=5\n")

    def test_interrupt_of_an_alias(self):
        s = self.interactive()
        s.type("sh -c 'echo go; sleep 1000; echo not reached'\n")
        s.expect(r"\ngo\n")
        s.type("\x03")
        s.expect(r"ready\$ ")
        s.type("echo $?\n")
        s.expect(r"\n130\n")
        s.type("exit\n")
        self.assert_back(s)

    def test_stop_and_continue(self):
        """Ctrl-Z stops an agent without job control of its own together with the box; fg brings both back, with the settings each had."""
        self.config(command='["/bin/bash", "-c"]')
        s = Screen(self)
        s.expect("host> ")
        self.before, self.group = s.modes(), s.foreground()
        s.box("echo st''art; while ! read -t 0.2 x; do :; done; echo got $x; exit 3")
        s.expect(r"\nstart\n")
        self.assertNotEqual(s.foreground(), self.group)
        s.type("\x1a")
        s.expect(r"Stopped")
        s.expect("host> ")
        self.assertEqual(s.foreground(), self.group)
        self.assertEqual(s.modes(), self.before)
        s.type("echo at the pro''mpt\n")
        s.expect(r"\nat the prompt\n")
        s.expect("host> ")
        s.type("fg\n")
        s.expect(r"run --config")
        self.assertTrue(wait_for(lambda: s.foreground() != self.group))
        s.type("line\n")
        s.expect(r"got line\n")
        s.expect("host> ")
        s.type("echo status=$?\n")
        s.expect(r"status=3\n")
        self.assertEqual(s.modes(), self.before)

    def test_background_does_not_take_the_terminal(self):
        self.config(command='["/bin/bash", "-c"]')
        s = Screen(self)
        s.expect("host> ")
        self.group = s.foreground()
        s.box("echo st''art; sh -c 'sleep 3'; echo do''ne")
        s.expect(r"\nstart\n")
        s.type("\x1a")
        s.expect(r"Stopped")
        s.expect("host> ")
        s.type("bg\n")
        s.expect("host> ")
        for _ in range(5):
            self.assertEqual(s.foreground(), self.group)
            s.type("echo mi''ne\n")
            s.expect(r"mine\n")
        s.expect(r"done\n")
        time.sleep(0.3)
        self.assertEqual(s.foreground(), self.group)

    def test_job_control_inside(self):
        """Ctrl-Z of an alias stops the command in the box too: it does not eat what is typed next. fg goes on with it."""
        s = self.interactive()
        s.type("sh -c 'echo go; read x; echo got $x'\n")
        s.expect(r"\ngo\n")
        time.sleep(0.2)
        s.type("\x1a")
        s.expect(r"Stopped")
        s.expect(r"ready\$ ")
        for i in range(3):
            s.type(f"echo mi''ne {i}\n")
            s.expect(r"mine %d\n" % i)
        s.type("fg\n")
        s.expect(r"sh -c")
        time.sleep(0.2)
        s.type("line\n")
        s.expect(r"got line\n")
        s.expect(r"ready\$ ")
        s.type("exit\n")
        self.assert_back(s)

    def test_window_size(self):
        s = Screen(self)
        fcntl.ioctl(s.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        s.expect("host> ")
        s.box("--norc", "--noprofile", "--noediting", "-i")
        s.expect(r"bash-[0-9.]+[$#] ")
        s.type("shopt -s checkwinsize; (:); echo $LINES x $COLUMNS\n")
        s.expect(r"\n40 x 100\n")
        s.type("trap 'echo wi''nch' WINCH; PS1='rea''dy$ '\n")
        s.expect(r"ready\$ ")
        fcntl.ioctl(s.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
        s.type("\n")  # without a line editor bash runs a trap when its read returns
        s.expect("winch")
        s.type("(:); echo $LINES x $COLUMNS\n")
        s.expect(r"30 x 90\n")
        s.type("exit\n")
        s.expect("host> ")

    def test_the_terminal_after_kill(self):
        """The agent leaves the terminal raw, without echo, and dies by kill -9."""
        if not os.path.exists("/usr/bin/python3"):
            self.skipTest("python3 is not installed")
        self.config(command='["/usr/bin/python3", "-c"]', agent='[agent.filesystem]\nread = ["/usr/lib"]\n')
        s = Screen(self)
        s.expect("host> ")
        self.before, self.group = s.modes(), s.foreground()
        s.box("import os, tty, signal, time\ntty.setraw(0)\nos.write(1, b'ra' + b'w\\r\\n')\ntime.sleep(0.2)\nos.kill(os.getpid(), signal.SIGKILL)")
        s.expect("raw\n")
        s.expect("host> ")
        self.assertEqual(s.foreground(), self.group)
        s.type("echo status=$?\n")
        s.expect(r"status=137\n")
        self.assertEqual(s.modes(), self.before)

    def test_a_caller_without_a_shell(self):
        """Nobody but box restores: the caller is a program that only waits."""
        self.config(command='["/usr/bin/python3", "-c"]', agent='[agent.filesystem]\nread = ["/usr/lib"]\n')
        caller = ("import os, subprocess, termios, sys\n"
                  "before = termios.tcgetattr(0)[:4]\n"
                  f"r = subprocess.run([os.environ['BOX'], 'run', '--config', '{self.conf}/box.toml', '--', \"import tty, os; tty.setraw(0); os._exit(4)\"])\n"
                  "same = termios.tcgetattr(0)[:4] == before\n"
                  "print('result', r.returncode, os.tcgetpgrp(0) == os.getpgrp(), same, flush=True)\n"
                  "print('read', sys.stdin.readline())\n")
        s = Screen(self, ["/usr/bin/python3", "-c", caller])
        s.expect(r"result 4 True True\n")
        s.type("line\n")
        s.expect(r"read line\n")

    def test_kill_of_the_agent_from_outside(self):
        s = self.interactive()
        boxes = [p for p in descendants(s.pid)]
        agent = [p for p in boxes if cmdline(p).endswith("bash --norc --noprofile --noediting -i") and "run" not in cmdline(p).split()]
        self.assertEqual(len(agent), 1, [cmdline(p) for p in boxes])
        os.kill(agent[0], signal.SIGKILL)
        self.assert_back(s)

    def test_no_input_is_pushed(self):
        """KERN-02: TIOCSTI and the console's relatives are refused, with the upper half of the request number set too."""
        if not os.path.exists("/usr/bin/python3"):
            self.skipTest("python3 is not installed")
        self.config(command='["/usr/bin/python3"]', agent=f'[agent.filesystem]\nread = ["/usr/lib", "{self.app}"]\n')
        s = Screen(self)
        s.expect("host> ")
        self.write("src/app/push.py", r"""import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for fd in [0, os.open('/dev/tty', os.O_RDWR)]:
    for request in (0x5412, 0x5412 | 1 << 32, 0x541C, 0x541C | 0xffffffff << 32, 0x541D, 0x541E):
        for c in b'echo pwned\n':
            b = ctypes.create_string_buffer(bytes([c]))
            r = libc.syscall(16, fd, ctypes.c_ulong(request), b) if os.uname().machine == 'x86_64' else libc.ioctl(fd, request, b)
            if r == 0:
                print('PUSHED', hex(request))
print('tri' 'ed')""")
        s.box(os.path.join(self.app, "push.py"))
        s.expect(r"\ntried\n")
        s.type("echo e''nd\n")
        m = s.expect(r"(?s)^(.*)\bend\n")
        self.assertNotIn("pwned", m.group(1))
        self.assertNotIn("PUSHED", s.text + m.group(1))

    def test_paste(self):
        s = self.interactive()
        s.type("n=0; while IFS= read -r l && [ \"$l\" != end ]; do n=$((n + ${#l})); done; echo sum=$n\n")
        s.expect("done")
        for _ in range(64):
            s.type("x" * 1023 + "\n")
            while select.select([s.fd], [], [], 0)[0]:
                s.text += os.read(s.fd, 65536).decode(errors="replace").replace("\r\n", "\n")
        s.type("end\n")
        s.expect(r"sum=%d\n" % (64 * 1023))
        s.type("exit\n")
        self.assert_back(s)


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    unittest.main()
