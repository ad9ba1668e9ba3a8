"""S11: what no policy opens, and the startup report."""
import os
import shutil
import tempfile
import unittest

from harness import OPEN, BoxCase


class Floor(BoxCase):
    def setUp(self):
        super().setUp()
        self.policy(OPEN)
        self.write(".ssh/id", "key\n", 0o600)
        self.write("other/file", "other\n")

    def enforced(self):
        return [r for r in self.records() if r.cause == "enforcement"]

    def test_the_shell_under_an_open_policy(self):
        folder = tempfile.mkdtemp(dir="/var/tmp")
        self.addCleanup(shutil.rmtree, folder)
        outside = os.path.join(folder, "f")
        with open(outside, "w", encoding="ascii") as f:
            f.write("outside\n")
        cases = {
            "cat ~/.ssh/id": "credential store",
            f"cat {self.conf}/box.toml": "which no policy may open or change",
            f"cat {self.conf}/policy.dw": "which no policy may open or change",
            f"echo x >> {self.conf}/policy.dw": "which no policy may open or change",
            f"cat {self.box_dir}/private/telemetry/records.jsonl": "resolves into trusted Box state, which no policy may open",
            f"ls {self.box_dir}": "resolves into trusted Box state, which no policy may open",
            f"cat {outside}": "outside this box's home and every declared bind",
            "cat /etc/shadow": "outside this box's home and every declared bind",
        }
        before = self.read("boxes/t/policy.dw")
        for command, text in cases.items():
            with self.subTest(command=command):
                r = self.sh(command)
                self.assertNotEqual(r.status, 0)
                self.assertIn(text, r.err)
                self.assertNotIn("key", r.out)
        self.assertEqual(self.read("boxes/t/policy.dw"), before)
        self.assertTrue(all(r.rule == "enforcement:reach-floor" for r in self.enforced()))
        self.assertGreaterEqual(len(self.enforced()), len(cases) - 1)
        self.assertEqual(self.run_ok("cat ~/other/file").out, "other\n")

    def test_links_do_not_lead_around_it(self):
        os.symlink(os.path.join(self.conf, "policy.dw"), os.path.join(self.app, "l"))
        os.symlink("../../.ssh", os.path.join(self.app, "s"))
        os.link(os.path.join(self.conf, "policy.dw"), os.path.join(self.app, "hard"))
        for command in ("cat l", "cat s/id", "echo x > l", "cat sub/../s/id"):
            with self.subTest(command=command):
                self.assertNotEqual(self.sh(command).status, 0)
        os.unlink(os.path.join(self.app, "hard"))

    def test_a_store_behind_a_link_is_one(self):
        """~/.aws -> ~/dots/aws: neither name opens it, nor may the folder above be moved away."""
        self.write("dots/aws/credentials", "key\n", 0o600)
        os.symlink("dots/aws", os.path.join(os.path.expanduser("~"), ".aws"))
        for command in ("cat ~/.aws/credentials", "cat ~/dots/aws/credentials", "cp -r ~/dots x; cat x/aws/credentials", "mv ~/dots ~/d2; cat ~/d2/aws/credentials", "ls ~/dots/aws", "cd ~/dots && cat aws/credentials",
                        "echo x > ~/dots/aws/config", "rm -rf ~/dots", "ln ~/dots/aws/credentials c; cat c", "rm ~/.aws", "mv ~/.aws ~/.aws2"):
            with self.subTest(command=command):
                r = self.sh(command)
                self.assertNotIn("key", r.out)
                self.assertIn("credential store", r.err)
        self.assertEqual(self.read("dots/aws/credentials"), "key\n")
        self.assertEqual(self.read(".aws/credentials"), "key\n")

    def test_the_agents_own_calls(self):
        # The agent's own open() needs a grant; nothing else is there.
        self.config(command='["/bin/bash", "-c"]', agent=f'[agent.filesystem]\nread = ["{self.app}"]\n')
        script = " ".join(f'[ -r {p} ] && echo "readable {p}";' for p in (
            os.path.expanduser("~") + "/.ssh/id", self.conf + "/box.toml", self.box_dir + "/private", "/etc/shadow",
            os.path.join(self.app, "../../other/file")))
        r = self.box("--", script + f" read line < {self.app}/README.md; echo $line; : > {self.app}/README.md && echo written")
        self.assertIn("# App", r.out, r.err)
        self.assertNotIn("readable", r.out)
        self.assertNotIn("written", r.out)
        self.assertEqual(self.read("src/app/README.md"), "# App\n")
        self.assertEqual([x for x in self.records() if x.action.startswith("fs:")], [])
        self.assertIn(f"  read        {self.app}", r.err)
        self.assertIn(f"  enter       {self.app}  (workspace, entry only)", r.err)

    def test_list_shows_names_and_no_contents(self):
        self.config(command='["/bin/bash", "-c"]', agent=f'[agent.filesystem]\nlist = ["{self.app}"]\n')
        r = self.box("--", f"cd {self.app} && echo *; read l < README.md && echo content")
        self.assertIn("README.md", r.out, r.err)
        self.assertNotIn("content", r.out)

    def test_write_without_read(self):
        self.config(command='["/bin/bash", "-c"]', agent=f'[agent.filesystem]\nwrite = ["{self.app}/sub"]\n')
        r = self.box("--", f"echo new > {self.app}/sub/new.txt && echo wrote; read l < {self.app}/sub/x.txt && echo content")
        self.assertIn("wrote", r.out, r.err)
        self.assertNotIn("content", r.out)
        self.assertEqual(self.read("src/app/sub/new.txt"), "new\n")


class Report(BoxCase):
    def test_store_of_a_tool_is_announced_and_told_to_policy(self):
        self.write(".ssh/id", "key\n", 0o600)
        self.config(rest='[tool.tac]\ncommand = ["/usr/bin/tac"]\n[tool.tac.filesystem]\nread = ["~/.ssh"]\n')
        self.policy("""
@id("cmds") permit (principal, action in [Box::Action::"shell:exec", Box::Action::"shell:spawn"], resource);
@id("stores") @description("No tool with keys.") forbid (principal, action == Box::Action::"shell:spawn", resource)
when { context.input has credential_reads && context.input.credential_reads.contains("~/.ssh") };
""")
        r = self.sh("tac /dev/null")
        self.assertIn("box: [tool.tac]: exposes ~/.ssh (read)", r.err)
        self.assertIn("[policy: stores]: No tool with keys.", r.err)
        self.assertIn("(credential store)", r.err)

    def test_the_report_of_an_unchanged_box_is_the_same(self):
        self.sh("true")
        a = self.sh("true").err
        b = self.sh("true").err
        self.assertEqual(a, b)
        self.assertTrue(a.startswith("box: starting workload\n"), a)
        self.assertIn("box: [agent] runs /usr/bin/env with no policy decision over these paths:", a)
        self.assertIn("  exec        /usr/bin/env  (command, implicit)", a)
        self.assertIn("box: [agent] HOME=", a)


if __name__ == "__main__":
    unittest.main()
