"""S1 to S4: the shell's files and commands under policy, with the exact texts and records."""
import os
import unittest

from harness import APP_WRITE, NO_MATCH, P0, BoxCase

DENIED = "policy denied this operation on"


class Reading(BoxCase):
    def test_read_allowed_write_denied_then_allowed(self):
        r = self.sh("cat README.md")
        self.assertEqual((r.status, r.out), (0, "# App\n"), r.err)
        self.assertIn("box: box ", r.err)
        self.assertIn(" created · config ", r.err.splitlines()[0])
        self.assertEqual(self.brief()[:1], [("shell:exec", "cat", "permit", "cmds")])
        self.assertIn(("fs:read", "~/src/app/README.md", "permit", "app_read"), self.brief())

        r = self.sh("echo hi >> README.md")
        self.assertEqual(r.status, 1)
        self.assertIn(f"{DENIED} '~/src/app/README.md' {NO_MATCH}", r.err)
        self.assertEqual(self.read("src/app/README.md"), "# App\n")
        last = self.records()[-1]
        self.assertEqual((last.action, last.verdict, last.rule, last.cause), ("fs:write", "deny", "<default-deny>", "no_match"))

        self.policy(P0 + APP_WRITE)
        r = self.sh("echo hi >> README.md")
        self.assertEqual(r.status, 0, r.err)
        self.assertIn(" updated · config ", r.err.splitlines()[0])
        self.assertEqual(self.read("src/app/README.md"), "# App\nhi\n")

        r = self.sh("echo hi >> README.md")
        self.assertEqual(r.status, 0, r.err)
        self.assertNotIn("created", r.err)
        self.assertNotIn("updated", r.err)

    def test_a_refused_redirection_truncates_nothing(self):
        r = self.sh("echo gone > tmp.txt")
        self.assertEqual(r.status, 1)
        self.assertEqual(self.read("src/app/tmp.txt"), "tmp\n")
        self.assertIn("strands-shell: tmp.txt: " + DENIED, r.err)

    def test_the_alias_passes_stdin_directory_and_environment(self):
        r = self.sh("cat", stdin="from outside\n")
        self.assertEqual((r.status, r.out), (0, "from outside\n"), r.err)
        # The agent must be able to go there itself: names, no contents.
        self.config(command='["/usr/bin/env", "-C", "%s/sub"]' % self.app, agent=f'[agent.filesystem]\nlist = ["{self.app}"]\n')
        r = self.sh("cat x.txt; pwd")
        self.assertEqual(r.out, "x\n" + os.path.join(self.app, "sub") + "\n", r.err)
        r = self.box("--", "GREETING=hello", "zsh", "-c", "echo $GREETING $HOME")
        self.assertEqual(r.out.split()[0], "hello", r.err)


class Forbidding(BoxCase):
    KEEP = """@id("keep_env") @description("Secrets stay out.") forbid (principal, action == Box::Action::"fs:read", resource)
when { context.input.path == "~/src/app/.env" };
"""

    def test_forbid_beats_permit_with_its_description(self):
        self.policy(P0 + self.KEEP)
        text = f"{DENIED} '~/src/app/.env' [policy: keep_env]: Secrets stay out."
        r = self.sh("cat .env")
        self.assertEqual(r.status, 1)
        self.assertEqual(r.agent_err(), "strands-shell: cat: " + text)
        record = self.records()[-1]
        self.assertEqual((record.cause, record.rule, record.description), ("forbidden", "keep_env", "Secrets stay out."))
        self.assertIn(text, self.sh("cat ./sub/../.env").err)
        os.symlink(".env", os.path.join(self.app, "l"))
        self.assertIn(text, self.sh("cat l").err)

    def test_without_description_the_text_ends_after_the_bracket(self):
        self.policy(P0 + self.KEEP.replace('@description("Secrets stay out.") ', ""))
        self.assertTrue(self.sh("cat .env").agent_err().endswith("[policy: keep_env]."))


class Deleting(BoxCase):
    def setUp(self):
        super().setUp()
        self.policy(P0 + APP_WRITE + '@id("no_del") forbid (principal, action == Box::Action::"fs:delete", resource);')

    def test_rm(self):
        r = self.sh("rm tmp.txt")
        self.assertEqual(r.status, 1)
        self.assertIn(f"rm: tmp.txt: {DENIED} '~/src/app/tmp.txt' [policy: no_del].", r.err)
        self.assertTrue(os.path.exists(os.path.join(self.app, "tmp.txt")))
        brief = self.brief()
        exec_at = brief.index(("shell:exec", "rm", "permit", "cmds"))
        read_at = brief.index(("fs:read", "~/src/app/tmp.txt", "permit", "app_read"))
        deny_at = brief.index(("fs:delete", "~/src/app/tmp.txt", "deny", "no_del"))
        self.assertTrue(exec_at < read_at < deny_at, brief)

    def test_a_tree_stays_whole(self):
        r = self.sh("rm -rf sub")
        self.assertNotEqual(r.status, 0)
        self.assertTrue(os.path.exists(os.path.join(self.app, "sub/x.txt")))

    def test_a_tree_with_one_protected_file_stays_whole(self):
        self.write("src/app/sub/deep/keep", "k")
        self.write("src/app/sub/deep/other", "o")
        self.policy(P0 + APP_WRITE + """
@id("del") permit (principal, action == Box::Action::"fs:delete", resource);
@id("keep") forbid (principal, action == Box::Action::"fs:delete", resource) when { context.input.path like "*/keep" };""")
        r = self.sh("rm -rf sub")
        self.assertNotEqual(r.status, 0)
        self.assertIn("[policy: keep]", r.err)
        for name in ("sub/x.txt", "sub/deep/keep", "sub/deep/other"):
            self.assertTrue(os.path.exists(os.path.join(self.app, name)), name)

    def test_mv(self):
        r = self.sh("mv tmp.txt new.txt")
        self.assertNotEqual(r.status, 0)
        self.assertTrue(os.path.exists(os.path.join(self.app, "tmp.txt")))
        self.assertFalse(os.path.exists(os.path.join(self.app, "new.txt")))


class CommandIdentity(BoxCase):
    SPELLINGS = ["rm x", '"rm" x', r"\rm x", "X=rm; $X x", "shopt -s expand_aliases 2>/dev/null; alias s=rm\ns x", "eval rm x", "$(echo rm) x",
                 "command rm x", "if rm x; then :; fi", "(rm x)", "{ rm x; }", "true && rm x", "false || rm x", "echo a | rm x",
                 "f() { rm x; }; f", "trap 'rm x' EXIT"]
    WRAPPED = ["echo x | xargs rm", r"find . -name x -exec rm {} \;", "sh -c 'rm x'", "env rm x"]

    def test_every_spelling_of_rm_is_rm(self):
        self.policy(P0 + APP_WRITE + """
@id("del") permit (principal, action == Box::Action::"fs:delete", resource);
@id("no_rm") forbid (principal, action == Box::Action::"shell:exec", resource) when { context.input.program == "rm" };""")
        for command in self.SPELLINGS + self.WRAPPED:
            with self.subTest(command=command):
                self.write("src/app/x", "x")
                r = self.sh(command)
                self.assertIn(f"effect denied: {DENIED} 'rm' [policy: no_rm].", r.err)
                self.assertTrue(os.path.exists(os.path.join(self.app, "x")))
                if command == self.SPELLINGS[0]:
                    self.assertEqual(r.status, 126)

    def test_a_path_is_a_spawn(self):
        r = self.sh("/bin/rm tmp.txt")
        self.assertEqual(r.status, 126)
        self.assertIn(f"effect denied: {DENIED} '/usr/bin/rm' {NO_MATCH}", r.err)
        self.assertEqual(self.records()[-1].action, "shell:spawn")
        self.assertTrue(os.path.exists(os.path.join(self.app, "tmp.txt")))

    def test_unknown_commands(self):
        r = self.sh("no-such-program-here")
        self.assertEqual(r.status, 127)
        self.assertIn("strands-shell: no-such-program-here: command not found", r.err)


if __name__ == "__main__":
    unittest.main()
