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
    def test_every_released_verdict_is_in_the_store(self):
        seed = int(os.environ.get("BOX_SEED", random.randrange(1 << 30)))
        rng = random.Random(seed)
        self.policy(POLICY)
        released = set()
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
            released |= {f"r{line}" for line in out.split() if re.fullmatch(r"\d+-\d+", line)}
            released |= set(os.listdir(os.path.join(self.app, "sub"))) - {"x.txt"}
        self.run_ok("true")
        done = subprocess.run([os.path.join(BIN, "dogwood"), "fsck", os.path.join(self.box_dir, "private/history")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = subprocess.run([os.path.join(BIN, "dogwood"), "log", "--json", os.path.join(self.box_dir, "private/history")], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        stored = set(re.findall(r"~/src/app/sub/(r\d+-\d+)", done.stdout))
        self.assertGreater(len(released), 0, f"seed {seed}")
        self.assertEqual(released - stored, set(), f"seed {seed}")


if __name__ == "__main__":
    unittest.main()
