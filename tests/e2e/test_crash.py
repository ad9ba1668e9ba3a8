"""kill -9 of `box` at any moment: no process is left, and the store opens with every verdict that was released."""
import os
import random
import re
import subprocess
import time
import unittest

from harness import BIN, BoxCase, wait_for
from test_signals import alive, descendants

ROUNDS = int(os.environ.get("BOX_CRASH_ROUNDS", "12"))

# A temporal rule over every write, so that each write's event matters to later decisions.
POLICY = """
@id("all") permit (principal, action, resource);
@id("many") forbid (principal, action == Box::Action::"fs:write", resource)
when temporal { (count for (t: Timepoint). where (formerly within 24h (Box::Action::"fs:write"::request{ input.path: * } && tp(t)))) >= 1000000 };
"""


class Crash(BoxCase):
    def dogwood(self, *args):
        done = subprocess.run([os.path.join(BIN, "dogwood"), *args, os.path.join(self.box_dir, "private/history")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_every_released_verdict_is_in_the_store(self):
        seed = int(os.environ.get("BOX_SEED", random.randrange(1 << 30)))
        rng = random.Random(seed)
        self.policy(POLICY)
        self.run_ok("true")
        total = 0
        for n in range(ROUNDS):
            # The file's appearance, and the line behind it, prove that the verdict was released.
            script = f"i=0; while [ $i -lt 100000 ]; do : > sub/r{n}-$i && echo {n}-$i; i=$((i+1)); done"
            p = subprocess.Popen([os.path.join(BIN, "box"), "run", "--config", os.path.join(self.conf, "box.toml"), "--", "sh", "-c", script],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=self.app)
            time.sleep(rng.uniform(0, 0.4))
            children = descendants(p.pid)
            p.kill()
            out, _ = p.communicate(timeout=20)
            self.assertTrue(wait_for(lambda: not any(alive(c) for c in children)), f"seed {seed} round {n}")
            released = {f"r{line}" for line in out.split() if re.fullmatch(r"\d+-\d+", line)}
            released |= {x for x in os.listdir(os.path.join(self.app, "sub")) if x.startswith(f"r{n}-")}
            # Looked at round by round: what a snapshot has summarised may leave the log.
            stored = set(re.findall(r"~/src/app/sub/(r\d+-\d+)", self.dogwood("log", "--json")))
            self.assertEqual(released - stored, set(), f"seed {seed} round {n}")
            total += len(released)
        self.assertGreater(total, 0, f"seed {seed}")
        self.run_ok("true")
        self.dogwood("fsck")


if __name__ == "__main__":
    unittest.main()
