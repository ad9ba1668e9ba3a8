"""FILE-01 to FILE-04: links, swaps, every call that makes or changes a name, /proc and descriptors. Native parts: what the kernel alone must hold."""

import os
import subprocess
import threading
import time
import unittest

from drive import EscapeTest, snapshot

CALLS = ["read", "write", "append", "create", "trunc", "opath", "list", "stat", "mkdir", "rmdir", "unlink", "readlink",
    "mkfifo", "mknod", "truncate", "utimes", "setxattr", "chmod", "setuid-bit", "chown", "handle", "punch", "exec", "chdir"]


class Links(EscapeTest):
    """FILE-01"""

    def test_links_lead_nowhere(self):
        for box in self.each():
            w = box.w
            os.symlink(box.secret, w + "/a")
            os.symlink(box.outside, w + "/d")
            os.symlink(box.outside + "/absent", w + "/dangling")
            os.symlink("/proc/self/root" + box.secret, w + "/r")
            os.symlink("/proc/self/cwd/../../outside/f", w + "/c")
            os.symlink("p2", w + "/p1")
            os.symlink("p1", w + "/p2")
            os.symlink(box.secret, w + "/l40")
            for i in range(40, 0, -1):
                os.symlink("l%d" % i, w + "/l%d" % (i - 1))
            box.own()
            before = snapshot(box.outside)
            conf = box.config({"read": [w], "write": [w]})
            names = [w + "/" + n for n in ("a", "d/f", "dangling", "r", "c", "d/new", "d/new/sub/f")]
            verbs = ("read", "write", "append", "create", "trunc", "stat", "mkdir", "truncate", "chmod", "utimes", "setxattr")
            r = box.run(conf, *[(v, n) for n in names for v in verbs])
            for n in names:
                for v in verbs:
                    self.refused(r, v, n)
            r = box.run(conf, ("read", w + "/p1"), ("read", w + "/l0"), ("write", w + "/p1"))
            for q in (("read", w + "/p1"), ("read", w + "/l0"), ("write", w + "/p1")):
                self.assertEqual(r[q], "ELOOP")
            r = box.run(conf, ("create", w + "/mine"), ("rename", w + "/mine", w + "/d/f"), ("rename", w + "/d/f", w + "/got"),
                ("link", w + "/d/f", w + "/got"), ("copy", w + "/a", w + "/got2"))
            self.assertEqual(r["create", w + "/mine"], "OK")
            for q in (("rename", w + "/mine", w + "/d/f"), ("rename", w + "/d/f", w + "/got"), ("link", w + "/d/f", w + "/got"),
                    ("copy", w + "/a", w + "/got2")):
                self.refused(r, *q)
            self.assertEqual(before, snapshot(box.outside))

    def test_links_made_inside(self):
        for box in self.each():
            w = box.w
            conf = box.config({"read": [w], "write": [w]})
            r = box.run(conf, ("symlink", box.secret, w + "/s"), ("read", w + "/s"), ("symlink", "/", w + "/top"),
                ("read", w + "/top" + box.secret), ("read", w + "/top/etc/shadow"), ("list", w + "/top/home"))
            self.assertEqual(r["symlink", box.secret, w + "/s"], "OK")
            self.refused(r, "read", w + "/s")
            self.refused(r, "read", w + "/top" + box.secret)
            self.refused(r, "read", w + "/top/etc/shadow")


class Swaps(EscapeTest):
    """FILE-02: the granted folder is exchanged with a link while sandboxes start: a start shows what was judged or fails."""

    def test_swap_during_start(self):
        for box in self.each():
            w, other = box.w, os.path.join(box.home, "q")
            os.mkdir(w + "/x")
            box.put(w + "/x/f", "right")
            os.symlink(box.outside, other)
            box.own()
            conf = box.config({"read": [w + "/x"], "write": [w + "/x"]})
            before = snapshot(box.outside)
            stop = threading.Event()

            def swap():
                spare = w + "/spare"
                while not stop.is_set():
                    os.rename(w + "/x", spare)
                    os.symlink(box.outside, w + "/x")
                    os.unlink(w + "/x")
                    os.rename(spare, w + "/x")

            t = threading.Thread(target=swap)
            t.start()
            good = bad = 0
            try:
                for _ in range(40):
                    r = box.run(conf, ("append", w + "/x/f"), ("create", w + "/x/g"), ("unlink", w + "/x/g"))
                    if r.status == 0:
                        good += 1
                    else:
                        bad += 1
            finally:
                stop.set()
                t.join()
            self.assertEqual(good + bad, 40)
            self.assertEqual(before, snapshot(box.outside))
            r = box.run(conf, ("read", w + "/x/f"))
            self.assertEqual(r["read", w + "/x/f"], "OK")


class Names(EscapeTest):
    """FILE-03: protected objects below a writable grant."""

    def protected(self, box):
        w = box.w
        os.makedirs(w + "/keep/deep")
        box.put(w + "/keep/deep/f", "kept")
        box.put(w + "/.env", "KEY=1")
        os.makedirs(w + "/a/b/no")
        box.put(w + "/a/b/no/f", "kept")
        box.own()
        return box.config({"read": [w], "write": [w], "deny": [w + "/keep", w + "/.env", w + "/a/b/no"]})

    def test_every_call(self):
        for box in self.each():
            w = box.w
            conf = self.protected(box)
            objects = [w + "/keep", w + "/keep/deep/f", w + "/.env", w + "/a/b/no", w + "/a/b/no/f"]
            before = {o: snapshot(o) if os.path.isdir(o) else os.stat(o) for o in objects}
            for o in objects:
                box.run(conf, *[(c, o) for c in CALLS])
                box.run(conf, ("create", w + "/mine"), ("rename", o, w + "/got"), ("exchange", o, w + "/mine"),
                    ("exchange", w + "/mine", o), ("rename", w + "/mine", o), ("noreplace", o, w + "/got2"),
                    ("whiteout", o, w + "/got3"), ("link", o, w + "/got4"), ("link-fd", o, w + "/got5"),
                    ("copy", o, w + "/got6"), ("copy", w + "/mine", o), ("tmpfile", w, o), ("mount", o), ("umount", o),
                    ("symlink", "x", o))
                for n in ("got", "got2", "got3", "got4", "got5"):
                    self.assertFalse(os.path.lexists(w + "/" + n), "%s became %s" % (o, n))
                if os.path.exists(w + "/got6"):
                    self.assertEqual(os.path.getsize(w + "/got6"), 0)
                    os.unlink(w + "/got6")
                if os.path.lexists(w + "/mine"):
                    os.unlink(w + "/mine")
            for o in objects:
                after = snapshot(o) if os.path.isdir(o) else os.stat(o)
                if os.path.isdir(o):
                    self.assertEqual(before[o], after)
                else:
                    self.assertEqual([before[o].st_mode, before[o].st_mtime_ns, before[o].st_nlink, before[o].st_ino],
                        [after.st_mode, after.st_mtime_ns, after.st_nlink, after.st_ino])

    def test_contents_are_hidden(self):
        for box in self.each():
            w = box.w
            conf = self.protected(box)
            r = box.run(conf, ("read", w + "/.env"), ("list", w + "/keep"), ("read", w + "/keep/deep/f"),
                ("list", w + "/a/b/no"), ("read", w + "/a/b/no/f"), ("chmod", w + "/.env"), ("create", w + "/ok"))
            for q in ("read %s/.env", "list %s/keep", "read %s/keep/deep/f", "list %s/a/b/no", "read %s/a/b/no/f",
                    "chmod %s/.env"):
                self.refused(r, *(q % w).split())
            self.assertEqual(r["create", w + "/ok"], "OK")

    def test_parents_stay(self):
        for box in self.each():
            w = box.w
            conf = self.protected(box)
            r = box.run(conf, ("rename", w + "/a", w + "/a2"), ("rename", w + "/a/b", w + "/b2"),
                ("exchange", w + "/a", w + "/keep"), ("mkdir", w + "/c"), ("exchange", w + "/a/b", w + "/c"))
            self.assertEqual(r["rename", w + "/a", w + "/a2"], "EBUSY")
            self.refused(r, "rename", w + "/a/b", w + "/b2")
            self.refused(r, "exchange", w + "/a", w + "/keep")
            self.refused(r, "exchange", w + "/a/b", w + "/c")
            self.assertTrue(os.path.exists(w + "/a/b/no/f"))

    def test_nested_grants(self):
        """A narrower grant between a writable one and a `deny` does not loosen it."""
        for box in self.each():
            w = box.w
            self.protected(box)
            conf = box.config({"read": [w + "/a"], "write": [w], "exec": [w + "/a/b"], "deny": [w + "/a/b/no"]})
            r = box.run(conf, ("rename", w + "/a", w + "/a2"), ("rename", w + "/a/b", w + "/b2"), ("read", w + "/a/b/no/f"),
                ("create", w + "/a/b/no/g"), ("create", w + "/a/b/ok"), ("rename", w + "/a/b/ok", w + "/a/b/ok2"))
            self.assertEqual(r["rename", w + "/a", w + "/a2"], "EBUSY")
            self.refused(r, "rename", w + "/a/b", w + "/b2")
            self.refused(r, "read", w + "/a/b/no/f")
            self.refused(r, "create", w + "/a/b/no/g")
            self.assertEqual(r["rename", w + "/a/b/ok", w + "/a/b/ok2"], "OK")

    def test_links_in_tmp(self):
        """A program reached through a link below /tmp starts more than once: its link is made in the box's own /tmp."""
        for box in self.each():
            link = "/tmp/escape-%d-%d" % (os.getpid(), box.uid)
            os.symlink(box.probe, link)
            try:
                conf = box.config({})
                with open(conf) as f:
                    text = f.read()
                box.put(conf, text.replace(box.probe, link))
                for _ in range(2):
                    r = box.run(conf, ("read", "/etc/passwd"))
                    self.assertEqual(r.status, 0, r.err)
            finally:
                os.unlink(link)

    def test_absent_deny(self):
        """CFG-01, COMP-01: a `deny` on what is not there yet starts, and holds."""
        for box in self.each():
            w = box.w
            conf = box.config({"read": [w], "write": [w], "deny": [w + "/.x/commands"]})
            r = box.run(conf, ("mkdir", w + "/.x"), ("mkdir", w + "/.x/commands"), ("create", w + "/.x/commands/f"),
                ("rename", w + "/.x", w + "/.y"), ("symlink", "/tmp", w + "/.x/commands"), ("create", w + "/.x/other"),
                ("mkdir", w + "/t"), ("create", w + "/t/f"), ("rename", w + "/t", w + "/.x/commands"),
                ("unlink", w + "/.x/other"))
            self.assertEqual(r.status, 0, r.err)
            for q in (("mkdir", w + "/.x/commands"), ("create", w + "/.x/commands/f"), ("rename", w + "/.x", w + "/.y"),
                    ("symlink", "/tmp", w + "/.x/commands"), ("rename", w + "/t", w + "/.x/commands")):
                self.refused(r, *q)
            self.assertEqual(r["create", w + "/.x/other"], "OK")
            self.assertFalse(os.path.lexists(w + "/.x"), "the placeholder is gone after the run")

    def test_box_and_authority(self):
        for box in self.each():
            w = box.w
            os.makedirs(w + "/cfg/in")
            conf = box.config({"read": [w], "write": [w]}, where=w + "/cfg/in/box.toml")
            objects = [w + "/cfg/in/box.toml", w + "/cfg/in", box.bd, box.bd + "/tmp"]
            before = snapshot(w + "/cfg")
            r = box.run(conf, *[(c, o) for o in objects for c in ("read", "write", "list", "unlink", "chmod", "trunc", "append")])
            self.assertEqual(r.status, 0, r.err)
            for o in objects:
                for c in ("write", "list", "unlink", "chmod", "trunc", "append"):
                    self.refused(r, c, o)
            self.refused(r, "read", w + "/cfg/in/box.toml")
            r = box.run(conf, ("rename", w + "/cfg", w + "/c2"), ("rename", w + "/cfg/in", w + "/c3"),
                ("link", w + "/cfg/in/box.toml", w + "/c4"))
            for q in (("rename", w + "/cfg", w + "/c2"), ("rename", w + "/cfg/in", w + "/c3"),
                    ("link", w + "/cfg/in/box.toml", w + "/c4")):
                self.refused(r, *q)
            self.assertEqual(before, snapshot(w + "/cfg"))

    def test_config_in_workspace(self):
        """The usual case: box.toml at the top of the granted workspace."""
        for box in self.each():
            w = box.w
            conf = box.config({"read": [w], "write": [w]}, where=w + "/box.toml")
            r = box.run(conf, *[(c, w + "/box.toml") for c in CALLS], ("rename", w + "/box.toml", w + "/b2"), ("create", w + "/f"))
            self.assertEqual(r.status, 0, r.err)
            for c in ("read", "write", "append", "trunc", "unlink", "chmod", "truncate", "utimes", "setxattr"):
                self.refused(r, c, w + "/box.toml")
            self.refused(r, "rename", w + "/box.toml", w + "/b2")
            self.assertEqual(r["create", w + "/f"], "OK")


class Rights(EscapeTest):
    """Each list gives exactly what it says."""

    def test_lists(self):
        for box in self.each():
            w = box.w
            for d in ("r", "wo", "l", "m", "x"):
                os.mkdir(w + "/" + d)
                box.put(w + "/" + d + "/f", "text")
                box.put(w + "/" + d + "-file", "text")
            os.chmod(w + "/x/f", 0o755)
            subprocess.run(["cp", box.probe, w + "/x/prog"], check=True)
            subprocess.run(["cp", box.probe, w + "/r/prog"], check=True)
            subprocess.run(["cp", box.probe, w + "/wo/prog"], check=True)
            box.own()
            conf = box.config({"read": [w + "/r"], "write": [w + "/wo"], "list": [w + "/l"], "metadata": [w + "/m"],
                "exec": [w + "/x"], "read_file": [w + "/r-file"], "write_file": [w + "/wo-file"]})
            want = {
                "r": {"read": 1, "list": 1, "stat": 1, "write": 0, "create": 0, "unlink": 0, "chmod": 0, "exec": 0},
                "wo": {"read": 0, "list": 0, "stat": 1, "write": 1, "exec": 0},
                "l": {"read": 0, "list": 1, "stat": 1, "write": 0, "unlink": 0, "chmod": 0},
                "m": {"read": 0, "list": 0, "stat": 1, "write": 0, "unlink": 0, "chmod": 0},
            }
            probes = []
            for d, verbs in want.items():
                for v in verbs:
                    target = w + "/" + d + ("" if v == "list" else "/prog" if v == "exec" else "/new" if v == "create" else "/f")
                    probes.append((v, target))
            probes += [("read", w + "/r-file"), ("write", w + "/r-file"), ("read", w + "/wo-file"), ("write", w + "/wo-file"),
                ("read", w + "/l-file"), ("create", w + "/wo/new"), ("mkdir", w + "/wo/dir"), ("rename", w + "/wo/new", w + "/wo/dir/g"),
                ("unlink", w + "/wo/dir/g"), ("exec", w + "/x/prog"), ("write", w + "/x/prog"), ("list", w + "/x"),
                ("map-exec", w + "/r/f"), ("map-exec", w + "/x/prog"), ("chdir", w), ("list", w), ("create", w + "/n")]
            r = box.run(conf, *probes)
            self.assertEqual(r.status, 0, r.err)
            for d, verbs in want.items():
                for v, good in verbs.items():
                    target = w + "/" + d + ("" if v == "list" else "/prog" if v == "exec" else "/new" if v == "create" else "/f")
                    if good:
                        self.assertEqual(r[v, target], "OK", (v, target))
                    else:
                        self.refused(r, v, target)
            for q in (("read", w + "/r-file"), ("write", w + "/wo-file"), ("create", w + "/wo/new"), ("mkdir", w + "/wo/dir"),
                    ("rename", w + "/wo/new", w + "/wo/dir/g"), ("unlink", w + "/wo/dir/g"), ("map-exec", w + "/x/prog"), ("chdir", w)):
                self.assertEqual(r[q], "OK", q)
            for q in (("write", w + "/r-file"), ("read", w + "/wo-file"), ("read", w + "/l-file"), ("write", w + "/x/prog"),
                    ("list", w + "/x"), ("map-exec", w + "/r/f"), ("create", w + "/n")):
                self.refused(r, *q)
            self.assertIn("executed", r.out)

    def test_temporary_folder(self):
        """COMP-07, KERN-05: /tmp is there, private, and runs nothing."""
        for box in self.each():
            conf = box.config({})
            subprocess.run(["mkdir", "-p", box.bd + "/tmp"], check=True)
            subprocess.run(["cp", box.probe, box.bd + "/tmp/prog"], check=True)
            box.own()
            r = box.run(conf, ("create", "/tmp/f"), ("mkdir", "/tmp/d"), ("rename", "/tmp/f", "/tmp/d/g"), ("exec", "/tmp/prog"),
                ("create", "/dev/shm/f"), ("create", "/f"), ("create", "/etc/f"), ("create", "/usr/bin/f"), ("write", "/etc/passwd"),
                ("read", "/etc/passwd"), ("write", "/dev/null"), ("create", "/dev/f"), ("create", box.home + "/f"))
            for q in (("create", "/tmp/f"), ("mkdir", "/tmp/d"), ("rename", "/tmp/f", "/tmp/d/g"), ("create", "/dev/shm/f"),
                    ("read", "/etc/passwd"), ("write", "/dev/null")):
                self.assertEqual(r[q], "OK", q)
            for q in (("exec", "/tmp/prog"), ("create", "/f"), ("create", "/etc/f"), ("create", "/usr/bin/f"), ("write", "/etc/passwd"),
                    ("create", "/dev/f"), ("create", box.home + "/f")):
                self.refused(r, *q)
            self.assertTrue(os.path.exists(box.bd + "/tmp/d/g"))

    def test_setuid_bits(self):
        for box in self.each():
            w = box.w
            conf = box.config({"read": [w], "write": [w]})
            r = box.run(conf, ("create", w + "/f"), ("setuid-bit", w + "/f"), ("create-setuid", w + "/g"), ("chmod", w + "/f"))
            self.assertEqual(r["setuid-bit", w + "/f"], "EPERM")
            self.assertEqual(r["create-setuid", w + "/g"], "EPERM")
            self.assertEqual(r["chmod", w + "/f"], "OK")


class Proc(EscapeTest):
    """FILE-04"""

    def test_descriptors(self):
        for box in self.each():
            for lists, options in (({}, ()), ({}, ("--tool", "probe"))):
                conf = box.config(lists, tool=lists)
                r = box.run(conf, ("fds",), options=options)
                self.assertEqual(r.status, 0, r.err)
                fds = [line.split() for line in r.out.splitlines() if line.startswith("fd ")]
                self.assertEqual([f[1] for f in fds], ["0", "1", "2"], r.out)
                self.assertTrue(all(f[2] == "nodir" for f in fds), r.out)

    def test_what_root_may_without_a_capability(self):
        """An agent that runs as root has no capability, and yet owns the files of /proc."""
        for box in self.each():
            read = ["slabinfo", "vmallocinfo", "pagetypeinfo", "kpagecount", "kpageflags", "kpagecgroup", "vmcore", "kcore", "kmsg"]
            write = ["pressure/cpu", "pressure/memory", "pressure/io", "mtrr", "sysrq-trigger", "irq/default_smp_affinity", "sys/vm/drop_caches", "sys/user/max_user_namespaces",
                "sys/kernel/domainname", "sys/kernel/hostname", "bus/input/handlers", "dynamic_debug/control"]
            for table in ("agent", "tool"):
                r = box.run(box.config({}, tool={}), *[("read", "/proc/" + p) for p in read], *[("write", "/proc/" + p) for p in write],
                    options=() if table == "agent" else ("--tool", "probe"))
                self.assertEqual(r.status, 0, r.err)
                for p in read:
                    self.refused(r, "read", "/proc/" + p)
                for p in write:
                    self.refused(r, "write", "/proc/" + p)

    def test_folders_as_streams(self):
        """`box run < /`: a folder of the host does not come in as a standard stream, nor an O_PATH descriptor."""
        for box in self.each():
            conf = box.config({})
            for flags in (os.O_RDONLY | os.O_DIRECTORY, os.O_PATH):
                for stream in ("stdin", "stdout", "stderr"):
                    fd = os.open(box.outside, flags)
                    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: fd}
                    r = subprocess.run(box.argv(conf, [("fds",), ("stat", "/proc/self/fd/0/f"), ("chmod", "/proc/self/fd/0/f"), ("stat", "/proc/self/fd/2/f")]),
                        cwd=box.top, timeout=60, text=True, **streams)
                    os.close(fd)
                    out = (r.stdout or "") + (r.stderr or "")
                    self.assertNotIn(" dir ", out)
                    self.assertNotIn("leads up", out)
                    self.assertNotIn(": OK", out.replace("fds: OK", ""))
                    if stream != "stdout":
                        self.assertIn("fd 0 nodir", out)

    def test_processes(self):
        for box in self.each():
            conf = box.config({})
            r = box.run(conf, ("procs",), ("read", "/proc/1/environ"), ("list", "/proc/1/fd"), ("read", "/proc/1/root/etc/passwd"),
                ("read", "/proc/1/mem"), ("write", "/proc/self/exe"), ("write", box.probe),
                ("write", "/proc/sys/kernel/core_pattern"), ("write", "/proc/sysrq-trigger"), ("read", "/proc/kcore"),
                ("read", "/proc/keys"), ("read", "/proc/self/status"), ("write", "/proc/self/comm"))
            self.assertNotIn("opened", r.out)
            for q in (("read", "/proc/1/environ"), ("list", "/proc/1/fd"), ("read", "/proc/1/root/etc/passwd"), ("read", "/proc/1/mem"),
                    ("write", "/proc/sys/kernel/core_pattern"), ("write", "/proc/sysrq-trigger"), ("read", "/proc/kcore"),
                    ("read", "/proc/keys"), ("write", box.probe)):
                self.refused(r, *q)
            self.refused(r, "write", "/proc/self/exe")
            self.assertEqual(r["read", "/proc/self/status"], "OK")
            self.assertEqual(r["write", "/proc/self/comm"], "OK")

    def test_script_of_itself(self):
        """"#!/proc/self/exe" as command: the launcher is not run again inside, and is not written to."""
        for box in self.each():
            script = box.w + "/s"
            box.put(script, "#!/proc/self/exe\n")
            os.chmod(script, 0o755)
            box.own()
            conf = box.config({})
            with open(conf) as f:
                text = f.read()
            box.put(conf, text.replace('command = ["%s"]' % box.probe, 'command = ["%s"]' % script, 1))
            r = box.run(conf, ("fds",))
            self.assertNotEqual(r.status, 0)
            self.assertNotIn("fd 3", r.out)


if __name__ == "__main__":
    unittest.main()
