"""What the escape tests share: a scratch tree, a box.toml, one run of the probe in a sandbox (launch_drive), as root and as an ordinary user."""

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
import unittest

DRIVE = os.environ.get("BOX_DRIVE", "")
LAUNCH = os.environ.get("BOX_LAUNCH", "")
PROBE = os.environ.get("BOX_PROBE", "")
ORDINARY = 61234  # an id that no account has
TIMEOUT = 60


def snapshot(top):
    """Everything that must not change below a folder: names, types, modes, owners, times, links, content, attributes."""
    out = {}
    for folder, dirs, files in os.walk(top):
        for name in [""] + files + [d for d in dirs if os.path.islink(os.path.join(folder, d))]:
            path = os.path.join(folder, name) if name else folder
            st = os.lstat(path)
            what = ""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    what = hashlib.sha256(f.read()).hexdigest()
            elif stat.S_ISLNK(st.st_mode):
                what = os.readlink(path)
            try:
                attrs = sorted(os.listxattr(path, follow_symlinks=False))
            except OSError:
                attrs = []
            out[path] = (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, st.st_nlink, what, attrs)
    return out


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Box:
    """One scratch world: T/home/p is the workspace, T/outside what nobody may reach, T/bd the box directory."""

    def __init__(self, uid):
        self.uid = uid
        self.top = tempfile.mkdtemp(prefix="escape-", dir=os.environ.get("BOX_SCRATCH", "/var/tmp"))
        os.chmod(self.top, 0o755)
        self.home = os.path.join(self.top, "home")
        self.w = os.path.join(self.home, "p")
        self.outside = os.path.join(self.top, "outside")
        self.bd = os.path.join(self.top, "bd")
        self.conf = os.path.join(self.top, "conf")
        for d in (self.home, self.w, self.outside, self.conf):
            os.mkdir(d)
        self.secret = os.path.join(self.outside, "f")
        self.put(self.secret, "secret")
        # Copies that the ordinary user can execute, wherever the build folder is.
        self.bin = os.path.join(self.top, "bin")
        os.mkdir(self.bin)
        self.probe, self.drive, self.launch = (shutil.copy(p, self.bin) for p in (PROBE, DRIVE, LAUNCH))
        self.own()

    def put(self, path, text):
        with open(path, "w") as f:
            f.write(text)

    def own(self):
        if os.geteuid() == 0:
            subprocess.run(["chown", "-hR", str(self.uid), self.top], check=True)

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)

    def config(self, agent=None, tool=None, where=None):
        """box.toml with these filesystem lists; the agent and the tool are both the probe."""
        path = where or os.path.join(self.conf, "box.toml")
        text = 'name = "escape"\nbox_dir = %s\n' % quote(self.bd)

        def table(name, lists, extra=""):
            out = "[%s]\ncommand = [%s]\nworkspace = %s\n%s" % (name, quote(self.probe), quote(self.w), extra)
            out += "[%s.filesystem]\n" % name
            for key, values in (lists or {}).items():
                out += "%s = [%s]\n" % (key, ", ".join(quote(v) for v in values))
            return out

        text += table("agent", agent)
        if tool is not None:
            text += table("tool.probe", tool).replace("command = [%s]" % quote(self.probe),
                "command = [%s]" % quote(self.probe))
        self.put(path, text)
        self.own()
        return path

    def argv(self, config, probes, options=()):
        args = []
        for p in probes:
            args += (["+"] if args else []) + list(p)
        cmd = [self.drive, "--launcher", self.launch, "--config", config, "--home", self.home, *options, "--", *args]
        if os.geteuid() == 0 and self.uid != 0:
            cmd = ["setpriv", "--reuid=%d" % self.uid, "--regid=%d" % self.uid, "--clear-groups", *cmd]
        return cmd

    def run(self, config, *probes, options=(), **more):
        """Run probes (each a tuple of words). Returns {line's question: answer} and the whole output."""
        r = subprocess.run(self.argv(config, probes, options), stdin=subprocess.DEVNULL, capture_output=True,
            text=True, timeout=TIMEOUT, cwd=self.top, **more)
        answers = {}
        for line in r.stdout.splitlines():
            question, sep, answer = line.rpartition(": ")
            if sep:
                answers[question] = answer
        return Result(r.returncode, r.stdout, r.stderr, answers)


class Result:
    def __init__(self, status, out, err, answers):
        self.status, self.out, self.err, self.answers = status, out, err, answers

    def __getitem__(self, words):
        """The answer to one probe; fails loudly when it was never given."""
        key = " ".join(words) if isinstance(words, tuple) else words
        if key not in self.answers:
            raise AssertionError("no answer to %r: status %d\n%s%s" % (key, self.status, self.out, self.err))
        return self.answers[key]


def users():
    return [0, ORDINARY] if os.geteuid() == 0 else [os.geteuid()]


class EscapeTest(unittest.TestCase):
    """Each test method takes a Box and runs for each kind of user."""

    def setUp(self):
        if not (DRIVE and LAUNCH and PROBE):
            self.skipTest("BOX_DRIVE, BOX_LAUNCH and BOX_PROBE name the programs")

    def each(self):
        for uid in users():
            box = Box(uid)
            self.addCleanup(box.close)
            yield box

    def refused(self, result, *words, allow=()):
        """Neither done nor killed by accident: an errno that says no."""
        no = {"ENOENT", "EACCES", "EPERM", "EROFS", "EXDEV", "EBUSY", "ENOTDIR", "EEXIST", "ELOOP", "ENOTEMPTY", "ENOSYS",
            "EISDIR", "ETXTBSY", "EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENXIO"} | set(allow)
        self.assertIn(result[words], no, "%s\n%s%s" % (" ".join(words), result.out, result.err))
