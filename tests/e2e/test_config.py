"""S10: every refusal of a configuration names what is wrong, and the agent never runs."""
import os
import stat
import unittest

from harness import BoxCase


class Refusals(BoxCase):
    def table(self, cases):
        for name, (kw, fragment) in cases.items():
            with self.subTest(case=name):
                self.config(**kw)
                self.assert_refused_start(fragment)

    def test_keys(self):
        self.table({
            "unknown top level": (dict(head='polcy = "x"'), "polcy"),
            "unknown in agent": (dict(agent='comand = ["x"]'), "comand"),
            "network on agent": (dict(agent="network = {}"), "`network` is refused on `[agent]`"),
            "metadata on a tool": (dict(rest='[tool.t]\ncommand = ["/usr/bin/tac"]\n[tool.t.filesystem]\nmetadata = ["/usr/share"]'), "metadata"),
        })

    def test_names_and_box_dir(self):
        base = self.read("boxes/t/box.toml")
        for old, new, fragment in (
                ('name = "t"', 'name = "a/b"', "box name \"a/b\" is invalid"),
                ('name = "t"', 'name = ".."', "box name \"..\" is invalid"),
                (f'box_dir = "{self.box_dir}"', 'box_dir = "state"', "`box_dir` must be absolute"),
                (f'box_dir = "{self.box_dir}"', f'box_dir = "{self.conf}/no/state"', "the box directory's parent does not exist"),
                (f'box_dir = "{self.box_dir}"', f'box_dir = "{self.app}/state"', "is equal to or below the agent's workspace"),
                (f'workspace = "{self.app}"', f'workspace = "{os.path.expanduser("~")}"', "is the operator's home")):
            with self.subTest(new=new):
                self.write("boxes/t/box.toml", base.replace(old, new))
                self.assert_refused_start(fragment)

    def test_env(self):
        for name in ("LD_PRELOAD", "HTTPS_PROXY", "PYTHONPATH", "OTEL_EXPORTER_OTLP_HEADERS", "NODE_OPTIONS"):
            with self.subTest(name=name):
                self.config(agent=f'env = {{ {name} = "x" }}')
                self.assert_refused_start(f'`env` name "{name}" is set by the box itself, so a table cannot claim it')
        self.config(agent='env = { HOME = "rel" }')
        self.assert_refused_start("`env.HOME` must be an absolute path")
        self.config(agent=f'env = {{ HOME = "{self.conf}" }}')
        self.assert_refused_start("encloses the box directory")

    def fs(self, line):
        self.config(agent=f"[agent.filesystem]\n{line}")

    def test_lists(self):
        os.symlink(self.app, os.path.join(os.path.dirname(self.app), "link"))
        app = self.app
        for line, fragment in (
                ('read = ["rel/path"]', "must be absolute or start with `~/`"),
                ('read = ["/usr/sha*"]', "must be exact and contain no pattern"),
                ('read = ["/usr/../etc"]', "carries `..`"),
                ('read = ["/usr/share/zoneinfo", "/usr/share/zoneinfo"]', "is duplicated"),
                ('read = ["/no/such/path"]', "is not there"),
                (f'read = ["{os.path.dirname(app)}/link"]', "is a symbolic link"),
                (f'read_file = ["{app}"]', "is a directory; `read_file` names one file"),
                (f'read = ["{app}", "{app}/sub"]', "lies inside"),
                (f'read = ["{app}/sub"]\ndeny = ["{app}"]', "is at or inside"),
                ('read = ["/etc"]', "is refused beneath every grant"),
                ('read = ["/"]', "is refused beneath every grant"),
                ('read = ["~"]', "is refused beneath every grant"),
                (f'read = ["{self.conf}"]', ""),
                (f'write = ["{self.conf}"]', "")):
            with self.subTest(line=line):
                if not fragment:
                    continue
                self.fs(line)
                self.assert_refused_start(fragment)

    def test_box_dir_in_a_list(self):
        self.sh("true")
        self.fs(f'read = ["{self.box_dir}"]')
        self.assert_refused_start("the grant would expose")

    def test_setuid_program_in_exec(self):
        path = self.write("tools/suid", "#!/bin/sh\n", 0o755)
        os.chmod(path, 0o755 | stat.S_ISUID)
        self.fs(f'exec = ["{path}"]')
        self.assert_refused_start("carries set-user-ID or set-group-ID")

    def test_egress(self):
        for dest, fragment in (("*", "this matches every host"), ("api.test:0", "port must be between 1 and 65535"), ("", "destination is empty")):
            with self.subTest(dest=dest):
                self.config(rest=f'[egress.x]\ndestinations = ["{dest}"]\nsecret.ref = "env://TOK"')
                self.assert_refused_start(fragment)
        self.config(rest='[egress.x]\ndestinations = ["a.test"]\nsecret.ref = "plain-text"')
        self.assert_refused_start("secret must be a URI such as env://NAME")
        self.config(rest='[egress.x]\ndestinations = ["a.test"]')
        self.assert_refused_start("an entry with no secret declares only a destination")
        self.config(rest='[egress.x]\ndestinations = ["a.test"]\nsecret.ref = "env://T"\n[egress.y]\ndestinations = ["a.test:443"]\nsecret.ref = "env://U"')
        self.assert_refused_start("overlaps")

    def test_programs(self):
        for command, fragment in (
                ("[]", "must name a program as its first entry"), ('[""]', "is empty"), ('["bin/x"]', "is a relative path"),
                ('["/no/such"]', "path does not exist"), ('["no-such-program-x"]', "cannot resolve bare executable")):
            with self.subTest(command=command):
                self.config(command=command)
                self.assert_refused_start(fragment)

    def test_policies(self):
        for text, fragment in (
                ('permit (principal, action == Box::Action::"fs:raed", resource);', "fs:raed"),
                ('permit (principal, action == Box::Action::"fs:read", resource) when { context.input.paht == "x" };', "paht"),
                ('permit (principal, action == Box::Action::"shell:exec", resource) when { context.input.arg1 == "x" };', "arg1"),
                ('@id("x") permit (principal, action, resource); @id("x") forbid (principal, action == Box::Action::"fs:read", resource);', 'policy gives one @id to more than one rule: @id("x") is on rules'),
                ('forbid (principal, action, resource) when temporal { formerly within 48h (Box::Action::"fs:read"::request{}) };', "temporal window `48h` exceeds the maximum allowed window `24h`"),
                (f'@id("x") permit (principal, action == Box::Action::"fs:read", resource) when {{ context.input.path like "{self.app}/*" }};', "policy compares an inert literal"),
                ("permit (principal", "will not load")):
            with self.subTest(text=text):
                self.policy(text)
                self.assert_refused_start(fragment)

    def test_check_says_the_same(self):
        self.assertEqual(self.box(verb="check").status, 0)
        self.policy("permit (principal")
        r = self.box(verb="check")
        self.assertEqual(r.status, 1)
        self.assertIn("will not load", r.err)

    def test_explain_prints_the_plan_and_starts_nothing(self):
        marker = os.path.join(self.app, "ran")
        self.config(command='["/usr/bin/touch"]', agent=f'env = {{ GREETING = "hello-5f3a" }}\n[agent.filesystem]\nwrite = ["{self.app}"]\ndeny = ["{self.app}/later"]\n', rest='[tool.cat]\ncommand = ["/usr/bin/cat"]\n')
        r = self.box("--explain", "--", marker)
        self.assertEqual(r.status, 0, r.err)
        self.assertFalse(os.path.exists(marker))
        self.assertFalse(os.path.exists(os.path.join(self.app, "later")))
        self.assertRegex(r.out, rf"(?m)^bind +{self.app} noexec$")
        self.assertRegex(r.out, rf"(?m)^cover +{self.app}/later$")
        self.assertIn("/usr/bin/cat", r.out)
        self.assertIn("GREETING", r.out)
        self.assertNotIn("hello-5f3a", r.out)

    def test_no_policy_denies_everything(self):
        base = self.read("boxes/t/box.toml")
        self.write("boxes/t/box.toml", base.replace('policy = "policy.dw"', ""))
        r = self.sh("true")
        self.assertEqual(r.status, 126)
        self.assertIn("[default-deny]", r.err)
        for text in ("", "// nothing\n", '@id("f") forbid (principal, action == Box::Action::"fs:read", resource);'):
            self.config()
            self.policy(text)
            self.assertEqual(self.sh("true").status, 126)


if __name__ == "__main__":
    unittest.main()
