"""S14: exit statuses, signals, and what is left when the box is killed."""
import os
import signal
import subprocess
import unittest

from harness import BIN, OPEN, BoxCase, processes_of, wait_for


class Ending(BoxCase):
    def test_statuses(self):
        for command, status in (("exit 7", 7), ("exit 0", 0), ("exit 255", 255), ("false", 1)):
            self.assertEqual(self.sh(command).status, status, command)

    def test_the_agent_dies_by_a_signal(self):
        self.config(command='["/bin/bash", "-c"]')
        self.assertEqual(self.box("--", "kill -TERM $$; sleep 5").status, 143)
        self.assertEqual(self.box("--", "kill -KILL $$; sleep 5").status, 137)

    def start(self, *args):
        return subprocess.Popen([os.path.join(BIN, "box"), "run", "--config", os.path.join(self.conf, "box.toml"), "--", *args],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.app)

    def test_interrupt_reaches_the_agent(self):
        self.config(command='["/bin/bash", "-c"]')
        p = self.start("trap 'echo got; exit 9' INT; echo ready; while :; do read -t 0.1 x <> <(:); done")
        self.assertEqual(p.stdout.readline(), "ready\n")
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=20)
        self.assertEqual((p.returncode, out), (9, "got\n"), err)

    def test_interrupt_ends_what_asks_nobody(self):
        # Loops that neither read nor decide: the signal must be noticed all the same.
        for script in ("while [[ 1 ]]; do ((x++)); done", "for ((;;)); do x=1; done", "echo x > tmp.txt; sed ':a;ba' tmp.txt", "sleep 1000"):
            with self.subTest(script=script):
                self.policy(OPEN)
                p = self.start("zsh", "-c", "echo ready; " + script)
                self.assertEqual(p.stdout.readline(), "ready\n")
                p.send_signal(signal.SIGINT)
                p.communicate(timeout=20)
                self.assertEqual(p.returncode, 130)

    def test_terminate_stops_the_run(self):
        p = self.start("zsh", "-c", "echo ready; sleep 1000")
        self.assertEqual(p.stdout.readline(), "ready\n")
        p.send_signal(signal.SIGTERM)
        p.communicate(timeout=20)
        self.assertNotEqual(p.returncode, 0)
        self.assertTrue(wait_for(lambda: not processes_of(self.box_dir)))

    def test_kill_leaves_no_process_and_a_store_that_opens(self):
        self.policy(OPEN)
        self.config(rest='[tool.sleep]\ncommand = ["/usr/bin/sleep"]\n')
        p = self.start("zsh", "-c", "echo ready; /usr/bin/sleep 1000 & sleep 1000")
        self.assertEqual(p.stdout.readline(), "ready\n")
        children = descendants(p.pid)
        self.assertGreater(len(children), 2)
        p.kill()
        p.communicate(timeout=20)
        self.assertTrue(wait_for(lambda: not any(alive(x) for x in children)), [x for x in children if alive(x)])
        self.run_ok("true")
        released = [r for r in self.records() if r.action == "shell:exec"]
        self.assertTrue(released)

    def test_background_jobs_do_not_outlive_the_run(self):
        r = self.sh("sleep 1000 & echo done")
        self.assertEqual((r.status, r.out), (0, "done\n"), r.err)
        self.assertTrue(wait_for(lambda: not processes_of(self.box_dir)))

    def test_one_run_at_a_time(self):
        p = self.start("zsh", "-c", "echo ready; sleep 1000")
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.assert_refused_start("is already running")
        p.terminate()
        p.communicate(timeout=20)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def descendants(pid):
    parents = {}
    for x in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{x}/stat", encoding="ascii", errors="replace") as f:
                parents[int(x)] = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    found, grew = {pid}, True
    while grew:
        more = {c for c, p in parents.items() if p in found} - found
        grew = bool(more)
        found |= more
    return found - {pid}


if __name__ == "__main__":
    unittest.main()
