"""KERN-01 to KERN-06: what the kernel offers and the box does not. Each against the agent's sandbox and a tool's."""

import os
import pty
import re
import select
import subprocess
import time
import unittest

from drive import EscapeTest

TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS = 0x5412, 0x541C, 0x5423, 0x541D
KDSKBENT, KDSKBSENT, VT_ACTIVATE = 0x4B47, 0x4B49, 0x5606
NEW = {"ns": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}


class KernelTest(EscapeTest):
    def both(self, box, *probes, lists=None):
        """The same probes in the agent's sandbox and in a tool's."""
        conf = box.config(lists or {}, tool=lists or {})
        for options in ((), ("--tool", "probe")):
            r = box.run(conf, *probes, options=options)
            self.assertEqual(r.status, 0, r.err)
            yield r


class Calls(KernelTest):
    def test_io_uring(self):
        """KERN-01"""
        for box in self.each():
            for r in self.both(box, ("io_uring",)):
                self.assertIn(r["io_uring"], ("ENOSYS", "EPERM"))

    def test_other_abis(self):
        """KERN-03"""
        for box in self.each():
            for r in self.both(box, ("x32",), ("int80",)):
                self.assertIn(r["x32"], ("signal 31", "ENOSYS"))
                self.assertIn(r["int80"], ("signal 31", "signal 11", "ENOSYS"))

    def test_forbidden(self):
        """KERN-05, and the mount family"""
        calls = [("keyctl",), ("add_key",), ("ptrace-child",), ("traceme",), ("ptrace", "1"), ("vm_read", "1"),
            ("pidfd_getfd", "1"), ("kcmp", "1"), ("perf",), ("bpf",), ("userfaultfd",), ("personality",), ("mount", "/tmp"),
            ("umount", "/tmp"), ("umount", "/proc/sys"), ("fsopen",), ("open_tree", "/tmp"), ("chroot", "/tmp"), ("pivot_root",),
            ("setns", "/proc/self/ns/net"), ("swapon", "/tmp/x"), ("kexec",), ("quotactl",), ("seccomp",), ("sethostname",),
            ("reboot",), ("handle", "/tmp")]
        calls += [("unshare", str(v)) for v in NEW.values()] + [("clone", str(v)) for v in NEW.values()]
        calls += [("unshare", str(NEW["user"] | NEW["net"])), ("clone", str(NEW["user"] | NEW["ns"]))]
        for box in self.each():
            for r in self.both(box, *calls):
                for c in calls:
                    self.assertEqual(r[c], "EPERM", c)

    def test_unknown(self):
        """A call that nobody knows is not there; what has an older twin makes libcs fall back."""
        for box in self.each():
            for r in self.both(box, ("unknown",), ("clone3",), ("clone", "0"), ("setuid-root",)):
                self.assertEqual(r["unknown",], "ENOSYS")
                self.assertEqual(r["clone3",], "ENOSYS")
                self.assertEqual(r["clone", "0"], "OK")
                self.assertIn(r["setuid-root",], ("EPERM", "EINVAL"))

    def test_memory_images(self):
        """KERN-05: an image without a path is not executed, however it was made."""
        for box in self.each():
            for r in self.both(box, ("memfd-exec",), ("memfd-exec", "0x8"), ("memfd-exec", "0x10"), ("memfd-exec", "0x18")):
                for a in ((), ("0x8",), ("0x10",), ("0x18",)):
                    self.assertIn(r[("memfd-exec",) + a], ("EPERM", "EACCES", "EINVAL"))
                self.assertNotIn("executed", r.out)

    def test_devices(self):
        for box in self.each():
            for r in self.both(box, ("mknod", "/tmp/null"), ("mknod", "/dev/shm/null"), ("read", "/dev/mem"), ("read", "/dev/kmsg"),
                    ("read", "/dev/urandom"), ("read", "/dev/full"), ("write", "/dev/full")):
                self.refused(r, "mknod", "/tmp/null")
                self.refused(r, "mknod", "/dev/shm/null")
                self.assertEqual(r["read", "/dev/mem"], "ENOENT")
                self.assertEqual(r["read", "/dev/kmsg"], "ENOENT")
                self.assertEqual(r["read", "/dev/urandom"], "OK")
                self.assertEqual(r["write", "/dev/full"], "ENOSPC")

    def test_landlock_layers(self):
        """KERN-04 (d): more layers may be stacked inside, and the sandbox's own counts among them."""
        for box in self.each():
            for r in self.both(box, ("landlock",)):
                n = int(re.search(r"layers (\d+)", r.out).group(1))
                self.assertEqual(n, 15)


class Terminal(EscapeTest):
    """KERN-02"""

    def on_terminal(self, box, probes, options=("--tty",), command=None, typed=()):
        """Run on a new terminal. typed: pairs (text to wait for, bytes to type then)."""
        conf = box.config({})
        if command is not None:
            with open(conf) as f:
                text = f.read()
            box.put(conf, text.replace('command = ["%s"]' % box.probe, "command = %s" % command, 1))
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(box.top)
            cmd = box.argv(conf, probes, options)
            os.execvp(cmd[0], cmd)
        out = b""
        todo = list(typed)
        end = time.monotonic() + 30
        while time.monotonic() < end:
            while todo and todo[0][0].encode() in out:
                os.write(master, todo.pop(0)[1])
            ready, _, _ = select.select([master], [], [], 1)
            if ready:
                try:
                    data = os.read(master, 65536)
                except OSError:
                    break
                if not data:
                    break
                out += data
        _, status = os.waitpid(pid, 0)
        os.close(master)
        return os.waitstatus_to_exitcode(status), out.decode().replace("\r", "")

    def test_job_control(self):
        """COMP-21: the program owns the terminal: it reads, is interrupted and stopped from the keyboard."""
        for box in self.each():
            status, out = self.on_terminal(box, [], command='["/bin/sh", "-c", "echo ready; read x; echo got $x"]',
                typed=[("ready", b"hello\n")])
            self.assertEqual(status, 0, out)
            self.assertIn("got hello", out)
            status, out = self.on_terminal(box, [], command='["/bin/sh", "-c", "echo ready; read x; echo got $x"]',
                typed=[("ready", b"\x03")])
            self.assertEqual(status, 130, out)
            # The driver answers a stop with SIGCONT, as `fg` would.
            status, out = self.on_terminal(box, [], command='["/bin/sh", "-c", "echo ready; read x; echo got $x"]',
                typed=[("ready", b"\x1a"), ("^Z", b"again\n")])
            self.assertEqual(status, 0, out)
            self.assertIn("got again", out)

    def test_no_terminal(self):
        """Without a terminal of its own the program cannot reach the caller's."""
        for box in self.each():
            status, out = self.on_terminal(box, [("read", "/dev/tty"), ("write", "/dev/tty")], options=())
            self.assertIn("read /dev/tty: ENXIO", out)
            self.assertIn("write /dev/tty: ENXIO", out)

    def test_injection(self):
        for box in self.each():
            high = [0x100000000, 0xFFFFFFFF00000000]
            calls = (TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS, KDSKBENT, KDSKBSENT, VT_ACTIVATE)
            reqs = list(calls) + [h | r for h in high for r in calls]
            probes = [("ioctl", hex(r)) for r in reqs] + [("ioctl", hex(r), "/dev/tty") for r in reqs]
            probes += [("ioctl", hex(TIOCSTI), "/dev/console")]
            status, out = self.on_terminal(box, probes)
            self.assertEqual(status, 0, out)
            for p in probes:
                line = [x for x in out.splitlines() if x.startswith(" ".join(p) + ": ")]
                self.assertTrue(line, out)
                self.assertIn(line[-1].rpartition(": ")[2], ("EPERM", "ENOTTY", "ENXIO", "ENOENT", "EACCES"), line)

    def test_queue_is_empty(self):
        for box in self.each():
            status, out = self.on_terminal(box, [("ioctl", hex(TIOCSTI)), ("read", "/dev/tty")])
            self.assertEqual(status, 0, out)
            self.assertIn("ioctl %s: EPERM" % hex(TIOCSTI), out)
            self.assertIn("read /dev/tty: EAGAIN", out)  # opened, nothing to read


class Processes(KernelTest):
    """KERN-06"""

    def test_signals(self):
        for box in self.each():
            victim = subprocess.Popen(["sleep", "60"])
            try:
                for r in self.both(box, ("kill-each",), ("kill", str(victim.pid), "9"), ("kill", str(os.getpid())), ("kill", "1", "9"),
                        ("kill", "1", "19")):
                    self.assertIn("signalled 0", r.out)
                    self.assertEqual(r["kill", str(victim.pid), "9"], "ESRCH")
                    self.assertEqual(r["kill", str(os.getpid())], "ESRCH")
                    self.assertEqual(r["kill", "1", "9"], "EPERM")
                    self.assertEqual(r["kill", "1", "19"], "EPERM")
                self.assertIsNone(victim.poll())
            finally:
                victim.kill()
                victim.wait()

    def test_kill_everything(self):
        for box in self.each():
            conf = box.config({})
            r = box.run(conf, ("kill-all",))
            self.assertIn(r.status, (0, 143))

    def test_process_group(self):
        """kill(0) ends what is in the sandbox, not the pipeline that the box stands in."""
        for box in self.each():
            conf = box.config({})
            for options in ((), ("--tool", "probe")):
                cmd = box.argv(conf, [("kill-group",)], options)
                # The shell below leads a group of its own with the driver in it.
                r = subprocess.run(["setsid", "sh", "-c", 'trap "echo HIT" TERM; "$@" | cat; echo alive', "sh", *cmd], cwd=box.top, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30)
                self.assertIn("alive", r.stdout, r.stderr)
                self.assertNotIn("HIT", r.stdout)

    def test_inotify(self):
        """The operator's own programs keep half of what the kernel counts by user."""
        for box in self.each():
            with open("/proc/sys/fs/inotify/max_user_instances") as f:
                limit = int(f.read())
            r = box.run(box.config({}), ("inotify",))
            n = int(re.search(r"inotify (\d+)", r.out).group(1))
            self.assertLessEqual(n, limit // 2)
            self.assertGreater(n, 0)

    def test_outlive(self):
        """A daemon of the sandbox ends with it."""
        for box in self.each():
            tick = box.w + "/tick"
            conf = box.config({"read": [box.w], "write": [box.w]})
            r = box.run(conf, ("daemon", tick))
            self.assertEqual(r.status, 0, r.err)
            time.sleep(0.3)
            size = os.path.getsize(tick) if os.path.exists(tick) else 0
            time.sleep(0.5)
            self.assertEqual(size, os.path.getsize(tick) if os.path.exists(tick) else 0)

    def test_killed_monitor(self):
        """kill -9 of the process that started the sandbox leaves nothing behind."""
        for box in self.each():
            tick = box.w + "/tick"
            conf = box.config({"read": [box.w], "write": [box.w]})
            cmd = box.argv(conf, [("daemon", tick), ("read", "/dev/tty"), ("daemon", tick), ("fork-bomb", "3"), ("sleep", "60")])
            p = subprocess.Popen(cmd, cwd=box.top, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            end = time.monotonic() + 20
            while not os.path.exists(tick) and time.monotonic() < end:
                time.sleep(0.02)
            p.kill()
            p.wait()
            self.assertTrue(os.path.exists(tick))
            p.stdout.read()  # ends when the last process that holds it is gone
            p.stdout.close()
            size = os.path.getsize(tick)
            time.sleep(0.3)
            self.assertEqual(size, os.path.getsize(tick))

    def test_limits(self):
        for box in self.each():
            # Neither a core file nor, at 0, a core handler of the host (core(5)).
            for r in self.both(box, ("core",)):
                self.assertIn("core 1 1\n", r.out)
            if box.uid != 0:  # the kernel does not count processes of the host's root
                r = box.run(box.config({}), ("fork-bomb", "20000"))
                self.assertEqual(r["fork-bomb", "20000"], "EAGAIN")

    def test_status(self):
        """COMP-22: how the program ended is passed on."""
        for box in self.each():
            shell = {"exec": [], "read": []}
            conf = box.config({})
            with open(conf) as f:
                text = f.read()
            for script, want in (("exit 0", 0), ("exit 7", 7), ("exit 255", 255), ("kill -TERM $$", 143), ("kill -SEGV $$", 139),
                    ("kill -KILL $$", 137), ("kill -PIPE $$", 141), ("kill -STOP $$; exit 3", 3)):
                box.put(conf, text.replace('command = ["%s"]' % box.probe, 'command = ["/bin/sh", "-c", "%s"]' % script, 1))
                r = subprocess.run(box.argv(conf, []), cwd=box.top, capture_output=True, stdin=subprocess.DEVNULL, timeout=30)
                self.assertEqual(r.returncode, want, (script, r.stderr))


if __name__ == "__main__":
    unittest.main()
