"""TRAP-02: one of the box's own programs is killed while it is in use. The command fails or the box ends; nothing gets wider, nothing undecided happens."""
import os
import signal
import subprocess
import threading
import time
import unittest

from harness import BIN, OPEN, BoxCase, Origin, wait_for
from test_signals import alive, descendants

GUARD = OPEN + """
@id("guard") forbid (principal, action in [Box::Action::"fs:read", Box::Action::"fs:write"], resource) when { context.input.path like "~/src/app/keep*" };
@id("host") forbid (principal, action == Box::Action::"net:connect", resource) when { context.input.host == "evil.test" };
"""


def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


class Killed(BoxCase):
    def setUp(self):
        super().setUp()
        self.policy(GUARD)
        self.write("src/app/keep", "kept\n")

    def start(self, *args):
        return subprocess.Popen([os.path.join(BIN, "box"), "run", "--config", os.path.join(self.conf, "box.toml"), "--", *args],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.app)

    def kill_during(self, program, p, rounds):
        """SIGKILL every process of this name below p, again and again, while it runs."""
        killed = 0
        end = time.monotonic() + 20
        while killed < rounds and time.monotonic() < end and p.poll() is None:
            victims = [x for x in descendants(p.pid) if name_of(x) == program]
            for v in victims:
                try:
                    os.kill(v, signal.SIGKILL)
                    killed += 1
                except OSError:
                    pass
            time.sleep(0.05)
        return killed

    def finish(self, p):
        children = descendants(p.pid)
        try:
            out, err = p.communicate(timeout=40)
        except subprocess.TimeoutExpired:
            p.terminate()
            out, err = p.communicate(timeout=20)
        self.assertTrue(wait_for(lambda: not any(alive(c) for c in children)))
        self.assertEqual(self.read("src/app/keep"), "kept\n")
        self.assertNotIn("kept", out)
        return out, err

    LOOP = "i=0; while [ $i -lt 400 ]; do i=$((i+1)); cat keep; echo x > keep; echo $i > sub/a; cat sub/a >/dev/null || exit 9; done; echo finished"

    def test_box_files(self):
        p = self.start("sh", "-c", "echo ready; " + self.LOOP)
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.assertGreater(self.kill_during("box-files", p, 2), 0)
        out, err = self.finish(p)
        self.assertNotIn("finished", out)
        self.assertIn("box: error: ", err)
        self.assertEqual(p.returncode, 1)

    def test_box_shell(self):
        self.config(command='["/bin/bash", "-c"]')
        p = self.start("echo ready; for i in 1 2 3 4 5 6 7 8; do sh -c '%s'; echo status $?; done; sh -c 'echo alive'" % self.LOOP.replace("400", "60"))
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.assertGreater(self.kill_during("box-shell", p, 4), 0)
        out, err = self.finish(p)
        self.assertIn("alive\n", out, err)
        statuses = set(out.split()) - {"status", "finished", "alive", "ready"}
        self.assertTrue(statuses <= {"0", "9", "125", "137"}, statuses)

    def test_gateway_and_dialler(self):
        if not os.path.exists("/usr/bin/curl"):
            self.skipTest("curl is not installed")
        # api.test may be connected to, but no request may get there: its secret does not travel in the clear.
        good, evil, api = Origin(body=b"x" * 100000), Origin(), Origin()
        for origin in (good, evil, api):
            self.addCleanup(origin.close)
        secret = "s3cret-value-0123456789"
        rest = f"""
[egress.api]
destinations = ["api.test"]
secret.ref = "env://TOK"
[resolve]
"good.test:80" = "127.0.0.1:{good.port}"
"evil.test:80" = "127.0.0.1:{evil.port}"
"api.test:80" = "127.0.0.1:{api.port}"
"""
        for program in ("box-gateway", "box-dial"):
            with self.subTest(program=program):
                self.config(command='["/bin/bash", "-c"]', rest=rest, agent='[agent.filesystem]\nexec = ["/usr/bin/curl"]\n')
                env = dict(os.environ, TOK=secret)
                p = subprocess.Popen([os.path.join(BIN, "box"), "run", "--config", os.path.join(self.conf, "box.toml"), "--",
                                      "echo ready; for i in {1..60}; do /usr/bin/curl -sS -m 5 -o /dev/null -w '%{http_code}\\n' http://good.test/; /usr/bin/curl -s -m 5 -o /dev/null http://evil.test/; "
                                      "/usr/bin/curl -s -m 5 -o /dev/null -H \"Authorization: Bearer $TOK\" http://api.test/; done; echo finished"],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.app, env=env)
                self.assertEqual(p.stdout.readline(), "ready\n")
                self.assertGreater(self.kill_during(program, p, 2), 0)
                out, err = self.finish(p)
                self.assertTrue("finished" in out or "box: error: " in err, out[-300:] + err[-600:])
                self.assertEqual((evil.connections, api.requests), (0, []))
                for _, _, headers, _ in good.requests:
                    self.assertNotIn(secret, str(headers))
                self.assertNotIn(secret, out + err)

    def test_box_launch_of_a_tool(self):
        self.config(rest='[tool.sleep]\ncommand = ["/usr/bin/sleep"]\n')
        p = self.start("sh", "-c", "echo ready; /usr/bin/sleep 100; echo status $?; cat keep; echo end")
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.assertTrue(wait_for(lambda: any(name_of(x) == "sleep" for x in descendants(p.pid))))
        sleeper = [x for x in descendants(p.pid) if name_of(x) == "sleep"][0]
        with open(f"/proc/{sleeper}/stat", encoding="ascii", errors="replace") as f:
            launcher = int(f.read().rsplit(")", 1)[1].split()[1])
        os.kill(launcher, signal.SIGKILL)
        out, err = self.finish(p)
        self.assertEqual(out, "status 137\nend\n", err)

    def test_two_at_once_on_the_last_unit(self):
        """A budget of 10 writes and 40 commands at once: exactly ten writes happen."""
        self.policy(OPEN + """
@id("ten") forbid (principal, action == Box::Action::"fs:write", resource)
when temporal { (count for (t: Timepoint). where (formerly within 1h (Box::Action::"fs:write"::request{ input.path: * } && tp(t)))) >= 11 };
""")
        self.config(command='["/bin/bash", "-c"]')
        r = self.box("--", "for i in {1..40}; do sh -c \"echo x > sub/w$i\" 2>/dev/null & done; wait; echo end")
        self.assertIn("end", r.out, r.err)
        made = [x for x in os.listdir(os.path.join(self.app, "sub")) if x.startswith("w")]
        permits = [x for x in self.records() if x.action == "fs:write" and x.verdict == "permit"]
        self.assertEqual((len(made), len(permits)), (10, 10))


if __name__ == "__main__":
    unittest.main()
