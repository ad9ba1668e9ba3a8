"""What a newcomer reads: mistakes in the two files and on the command line are answered with what is wrong and what would be right; `box log` fits its terminal."""
import os
import pty
import re
import subprocess
import unittest

from harness import BIN, OPEN, BoxCase


class Mistakes(BoxCase):
    CONFIG = [
        ('workspace = "{app}"', 'workspce = "{app}"', "did you mean `workspace`?"),
        ('name = "t"', "name = t", 'a string needs quotes: "t"'),
        ('["/usr/bin/env"]', '"/usr/bin/env"', "`command` must be an array, not a string"),
        ('workspace = "{app}"', 'workspace = "./app"', "must be an absolute path"),
        ('workspace = "{app}"', 'workspace = "{app}"\n[agent.filesystem]\nread = ["./app"]', "must be absolute or start with `~/`"),
        ('workspace = "{app}"', 'workspace = "{app}"\n[agent.filesystem]\nread = ["{app}/**"]', "must be exact and contain no pattern"),
        ('workspace = "{app}"', 'workspace = "{app}"\n[agent.filesystem]\nread = ["{app}/nope"]', "is not there"),
        ('workspace = "{app}"', 'workspace = "{app}"\n[tools.git]\ncommand = ["git"]', "did you mean `tool`?"),
        ('workspace = "{app}"', 'workspace = "{app}"\n[mcp.x]\ncommand = ["x"]', "not supported by this build of box yet"),
        ('workspace = "{app}"', 'workspace = "{app}"\n[egress.s]\ndestinations = ["https://slack.com/api"]\nsecret.ref = "env://T"', "without a scheme"),
        ('box_dir = "{box}"', 'box_dir = "{box}/no/such"', "parent does not exist"),
        ('box_dir = "{box}"', 'box_dir = "{app}/state"', "name a folder outside it"),
        ('box_dir = "{box}"', "", "`box_dir` must be absolute: it is not set"),
        ('policy = "policy.dw"', 'policy = "polcy.dw"', "cannot resolve policy file"),
    ]
    POLICY = [
        ('permit (principal, action == Box::Action::"fs:raed", resource);', 'did you mean `Box::Action::"fs:read"`?'),
        ('permit (principal, action == "fs:read", resource);', "expects an action reference"),
        ("permit (principal, action, resource)\npermit (principal, action, resource);", "the policy before it ends with `;`"),
        ('permit (principal, action == Box::Action::"fs:read", resource) when { context.input.paht == "x" };', "did you mean `path`?"),
        ('permit (principal, action == Box::Action::"fs:read", resource) when { context.input.path = "x" };', "did you mean `==`?"),
        ('permit (principal, action == Box::Action::"shell:exec", resource) when { context.input.arg1 == "x" };', "context.input has arg1 && .."),
        ('forbid (principal, action, resource) when temporal { formerly within 48h (Box::Action::"fs:read"::request{}) };', "at most `24h`"),
    ]

    def test_configuration(self):
        self.policy(OPEN)
        self.config()
        good = self.read("boxes/t/box.toml")
        for old, new, text in self.CONFIG:
            with self.subTest(text=text):
                old, new = (x.replace("{app}", self.app).replace("{box}", self.box_dir) for x in (old, new))
                self.assertIn(old, good)
                self.write("boxes/t/box.toml", good.replace(old, new))
                for verb in ("check", "run"):
                    r = self.box(verb=verb)
                    self.assertEqual(r.status, 1, r.err)
                    self.assertIn(text, r.err)
                    self.assertNotIn("starting workload", r.err)

    def test_policy(self):
        for text, answer in self.POLICY:
            with self.subTest(text=text):
                self.policy(text)
                r = self.box(verb="check")
                self.assertEqual(r.status, 1)
                self.assertIn(answer, r.err)
                self.assertRegex(r.err, r"policy\.dw:\d+:\d+: error: ")
                self.assertIn("^", r.err)

    def test_check_of_a_good_box(self):
        self.policy(OPEN)
        r = self.box(verb="check")
        self.assertEqual((r.status, r.out), (0, ""))
        self.assertTrue(r.err.endswith("box.toml: nothing to object\n"), r.err)
        self.assertFalse(os.path.exists(self.box_dir))
        self.config(rest='[egress.x]\ndestinations = ["a.test"]\nsecret.ref = "env://TOK_ABSENT"\n')
        r = self.box(verb="check")
        self.assertEqual(r.status, 0, r.err)
        self.assertIn("box: warning: TOK_ABSENT is not in the environment; `box run` needs it", r.err)


class CommandLine(unittest.TestCase):
    def box(self, *args):
        return subprocess.run([os.path.join(BIN, "box"), *args], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=20, check=False)

    def test_help(self):
        r = self.box("--help")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        for verb in re.findall(r"^  (\w+)  +\w", r.stdout, re.M):
            h = self.box(verb, "--help")
            self.assertEqual((h.returncode, h.stderr), (0, ""))
            self.assertIn(f"usage: box {verb} ", h.stdout)
            self.assertIn("example", h.stdout)
            self.assertLessEqual(max(len(x) for x in h.stdout.splitlines()), 100)

    def test_mistakes(self):
        for args, text in ((["frob"], 'unknown verb "frob"'), (["run"], "--config FILE is required"), (["run", "--config"], "--config needs a file"), (["run", "--confg", "x"], 'unknown option "--confg"'),
                           (["run", "--config", "x", "ls"], "stand behind --"), (["check", "box.toml"], "named with --config"), (["log"], "is required"), (["log", "--all"], "is required"),
                           (["run", "-c", "x"], 'unknown option "-c"'), ([], "usage: box VERB")):
            r = self.box(*args)
            self.assertEqual(r.returncode, 2, args)
            self.assertIn(text, r.stderr)
            self.assertEqual(r.stdout, "")
        for args, text in ((["run", "--config", "/no/such"], "cannot read config file /no/such"), (["check", "--config", "/tmp"], "is not a regular file"), (["log", "--records", "/no/such"], "No such file")):
            r = self.box(*args)
            self.assertEqual(r.returncode, 1, args)
            self.assertIn(text, r.stderr)


class Log(BoxCase):
    def shown(self, columns, *args, env=None):
        """box log on a terminal of this width."""
        main, side = pty.openpty()
        import fcntl
        import struct
        import termios
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        p = subprocess.Popen([os.path.join(BIN, "box"), "log", "--config", os.path.join(self.conf, "box.toml"), *args], stdin=side, stdout=side, stderr=side, env=dict(os.environ, **(env or {})))
        os.close(side)
        text = b""
        while True:
            try:
                piece = os.read(main, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
        os.close(main)
        self.assertEqual(p.wait(timeout=20), 0)
        return text.decode().replace("\r\n", "\n")

    def test_width_and_colour(self):
        r = self.box(verb="log")
        self.assertEqual(r.status, 1)
        self.assertIn("this box has not run", r.err)
        self.policy(OPEN + '@id("no_rm") @description("Nothing is deleted here: ask a person, please, and be patient about it.") forbid (principal, action == Box::Action::"fs:delete", resource);')
        self.sh("mkdir -p sub/a/long/name/that/goes/on/and/on/and/on/and/on; rm -f tmp.txt; cat /etc/shadow; echo 'a b\tc\x1b[2J' > /dev/null; cat 'x\x1b[2Jy'")
        for columns in (80, 100, 200):
            text = self.shown(columns, env={"NO_COLOR": "1"})
            self.assertNotIn("\x1b", text)
            self.assertLessEqual(max(len(x) for x in text.splitlines()), columns)
            self.assertIn("no_rm", text)
        self.assertIn("\x1b[31mDENY\x1b[0m", self.shown(100))
        whole = self.box(verb="log").out
        self.assertNotIn("\x1b", whole)
        self.assertGreater(max(len(x) for x in whole.splitlines()), 100)


if __name__ == "__main__":
    unittest.main()
