"""S5: host programs in sandboxes of their own."""
import os
import unittest

from harness import APP_WRITE, NO_MATCH, P0, BoxCase

GIT = """
[tool.git]
command = ["/usr/bin/git"]
env = { GIT_CONFIG_NOSYSTEM = "1", HOME = "/tmp" }
[tool.git.filesystem]
read = ["%(app)s", "/usr/share/git-core"]
write = ["%(app)s"]
deny = ["%(app)s/.env"]
"""
SPAWN = """
@id("git_safe") permit (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program == "git" && context.input has arg1 && ["init", "status", "add", "commit", "hash-object", "config"].contains(context.input.arg1) };
"""


class Tools(BoxCase):
    def setUp(self):
        super().setUp()
        if not os.path.exists("/usr/bin/git"):
            self.skipTest("git is not installed")
        self.policy(P0 + APP_WRITE + SPAWN)
        self.git(GIT % {"app": self.app})

    def git(self, rest):
        if not os.path.isdir("/usr/share/git-core"):
            rest = rest.replace(', "/usr/share/git-core"', "")
        self.config(rest=rest)

    def test_permitted_subcommands_run(self):
        r = self.run_ok("git init -q . && git add README.md && git status --short")
        self.assertIn("A  README.md", r.out)
        self.assertTrue(os.path.isdir(os.path.join(self.app, ".git")))
        spawns = [x for x in self.records() if x.action == "shell:spawn"]
        self.assertEqual([(x.target, x.verdict, x.rule) for x in spawns], [("/usr/bin/git", "permit", "git_safe")] * 3)
        self.assertFalse([x for x in self.records() if x.action.startswith("fs:") and "/.git" in x.target])

    def test_others_do_not(self):
        for command in ("git push", "git -C . status"):
            r = self.sh(command)
            self.assertEqual(r.status, 126)
            self.assertIn(f"effect denied: policy denied this operation on '/usr/bin/git' {NO_MATCH}", r.err)

    def test_deny_holds_inside_the_tool(self):
        r = self.sh("git hash-object .env")
        self.assertNotEqual(r.status, 0)
        self.assertNotIn("effect denied", r.err)
        self.assertNotIn(self.git_hash(b"K=v\n"), r.out)
        self.assertEqual(self.run_ok("git hash-object README.md").out.strip(), self.git_hash(b"# App\n"))

    @staticmethod
    def git_hash(data):
        import hashlib
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()

    def test_streams_and_status(self):
        self.policy(P0 + '@id("spawn") permit (principal, action == Box::Action::"shell:spawn", resource);')
        self.config(rest='[tool.tac]\ncommand = ["/usr/bin/tac"]\n[tool.env]\ncommand = ["/usr/bin/env"]\n[tool.bash]\ncommand = ["/usr/bin/bash"]\n')
        r = self.run_ok("printf '1\\n2\\n3\\n' | tac | cat")
        self.assertEqual(r.out, "3\n2\n1\n", r.err)
        self.assertEqual(self.sh("/usr/bin/bash -c 'exit 7'").status, 7)
        self.assertEqual(self.sh("/usr/bin/bash -c 'kill -TERM $$'").status, 143)
        r = self.sh("export GREETING=hi LD_PRELOAD=/x.so PYTHONPATH=/y; /usr/bin/env")
        self.assertIn("GREETING=hi\n", r.out)
        self.assertNotIn("LD_PRELOAD", r.out)
        self.assertNotIn("PYTHONPATH", r.out)
        self.assertIn("USER=strands-box\n", r.out)
        self.assertNotIn(self.box_dir + "/bin", r.out)

    def test_a_tool_has_no_way_back_to_the_box(self):
        self.policy(P0 + '@id("spawn") permit (principal, action == Box::Action::"shell:spawn", resource);')
        self.config(rest='[tool.bash]\ncommand = ["/usr/bin/bash"]\n')
        r = self.sh(f"/usr/bin/bash -c 'ls /run/boxwood {self.box_dir} 2>/dev/null; [ -e /run/boxwood/box.sock ] && echo socket; [ -e {self.box_dir}/run ] && echo dir; echo end'")
        self.assertEqual(r.out.strip().splitlines()[-1], "end", r.err)
        self.assertNotIn("socket", r.out)
        self.assertNotIn("dir", r.out)

    def test_permitted_without_a_table(self):
        self.policy(P0 + '@id("spawn") permit (principal, action == Box::Action::"shell:spawn", resource);')
        self.config()
        r = self.sh("tac README.md")
        self.assertEqual(r.status, 126)
        self.assertIn("no tool runs /usr/bin/tac: no `[tool.<name>] command` matches this program and its leading arguments", r.err)

    def test_fixed_arguments_select_the_table(self):
        self.policy(P0 + '@id("spawn") permit (principal, action == Box::Action::"shell:spawn", resource);')
        self.config(rest='[tool.ab]\ncommand = ["/usr/bin/printf", "%s", "a"]\n')
        self.assertEqual(self.run_ok("/usr/bin/printf %s a").out, "a")
        self.assertIn("no tool runs", self.sh("/usr/bin/printf %s b").err)

    def test_commit_after_tests_passed(self):
        self.policy(P0 + """
@id("spawn") permit (principal, action == Box::Action::"shell:spawn", resource);
@id("tests_first") @description("Run the tests first.") forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input.program_path == "/usr/bin/printf" }
when temporal { !(formerly within 1h (Box::Action::"shell:spawn"::response{ input.program_path: "/usr/bin/true", output.status: 0 })) };
""")
        self.config(rest='[tool.t]\ncommand = ["/usr/bin/true"]\n[tool.p]\ncommand = ["/usr/bin/printf"]\n')
        self.assertIn("[policy: tests_first]: Run the tests first.", self.sh("/usr/bin/printf x").err)
        self.assertEqual(self.run_ok("/usr/bin/true && /usr/bin/printf x").out, "x")


if __name__ == "__main__":
    unittest.main()
