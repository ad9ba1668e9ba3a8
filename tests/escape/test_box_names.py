"""The names that a policy reads are true: what a program is called in a decision, however the agent spells it, links it or moves PATH."""
import os
import unittest

from harness import OPEN, BoxCase

ONLY_NPROC = OPEN + '@id("only") forbid (principal, action == Box::Action::"shell:spawn", resource) unless { context.input.program == "nproc" };\n'
NO_TAC = OPEN + '@id("no_tac") forbid (principal, action == Box::Action::"shell:spawn", resource) when { context.input.program_path == "/usr/bin/tac" };\n'
ONLY_TEXT = OPEN + '@id("only") forbid (principal, action == Box::Action::"shell:spawn", resource) unless { context.input.command like "nproc*" };\n'


class Programs(BoxCase):
    # The agent's own folder on PATH, in which `nproc` is a link to another tool.
    FORMS = ("PATH=$PWD/bin:$PATH; nproc README.md", "PATH=$PWD/bin nproc README.md", "export PATH=$PWD/bin; command nproc README.md", "PATH=bin; nproc README.md", "exec -a nproc tac README.md",
             "env PATH=$PWD/bin nproc README.md", "cd bin; PATH=:$PATH; nproc ../README.md", "hash -p /usr/bin/tac nproc; nproc README.md", "alias nproc=tac; nproc README.md", "nproc() { tac README.md; }; nproc",
             "echo README.md | PATH=$PWD/bin xargs nproc", "PATH=$PWD/bin; find README.md -exec nproc {} \\;", "PATH=$PWD/bin; sh -c 'nproc README.md'", "bin/nproc README.md", "$PWD/bin/nproc README.md", "BASH_ALIASES[nproc]=tac; nproc README.md")

    def setUp(self):
        super().setUp()
        lists = f'filesystem = {{ read_file = ["{self.app}/README.md"] }}\n'
        self.config(rest=f'[tool.tac]\ncommand = ["/usr/bin/tac"]\n{lists}[tool.nproc]\ncommand = ["/usr/bin/nproc"]\n')
        os.makedirs(os.path.join(self.app, "bin"))
        os.symlink("/usr/bin/tac", os.path.join(self.app, "bin/nproc"))

    def test_the_tools_work(self):
        self.policy(OPEN)
        self.assertEqual(self.run_ok("tac README.md").out, "# App\n")
        self.assertRegex(self.run_ok("nproc").out, r"^\d+\n$")
        # Under its own path a link is what it leads to, and says so.
        self.assertEqual(self.run_ok("bin/nproc README.md").out, "# App\n")
        self.assertEqual(self.run_ok("PATH=$PWD/bin; nproc README.md").out, "# App\n")
        spawns = [r for r in self.records() if r.action == "shell:spawn"]
        self.assertEqual([r.target for r in spawns], ["/usr/bin/tac", "/usr/bin/nproc", "/usr/bin/tac", "/usr/bin/tac"])

    def test_a_bare_name_is_the_one_that_the_operators_path_knows(self):
        for policy in (ONLY_NPROC, NO_TAC, ONLY_TEXT):
            self.policy(policy)
            for form in self.FORMS:
                if policy is ONLY_TEXT and form.startswith(("bin/nproc", "$PWD")):
                    continue
                with self.subTest(form=form, policy=policy[len(OPEN):]):
                    self.assertNotIn("# App", self.sh(form, shell="bash").out)
        self.policy(ONLY_NPROC)
        r = self.run_ok("PATH=$PWD/bin:$PATH; /usr/bin/nproc; command -p nproc")
        self.assertRegex(r.out, r"^\d+\n$")
        self.assertIn("[policy: only]", r.err)

    def test_a_program_does_not_choose_its_zeroth_word(self):
        """busybox and its like are another program by another argv[0]."""
        self.policy(OPEN)
        self.config(rest='[tool.bash]\ncommand = ["/usr/bin/bash"]\n')
        os.symlink("/usr/bin/bash", os.path.join(self.app, "bin/mybash"))
        for form, zero in (("/usr/bin/bash -c 'echo $0'", "/usr/bin/bash"), ("PATH=$PWD/bin mybash -c 'echo $0'", "/usr/bin/bash"), ("bin/mybash -c 'echo $0'", "bin/mybash")):
            self.assertEqual(self.run_ok(form, shell="sh").out, zero + "\n", form)
        r = self.sh("exec -a other /usr/bin/bash -c 'echo $0'")
        self.assertEqual((r.status, r.out), (126, ""), r.err)
        self.assertIn("keeps the name it is decided under", r.err)


if __name__ == "__main__":
    unittest.main()
