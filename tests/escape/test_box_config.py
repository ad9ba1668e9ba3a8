"""CFG-01 and CFG-03: what is protected is protected before it exists, and nothing that is empty, absent or broken means more than something that is there."""
import os
import unittest

from harness import OPEN, BoxCase


class BeforeItExists(BoxCase):
    """CFG-01"""

    NAMES = [".git/hooks", ".mcp.json", ".envrc", "box.toml"]

    def attempts(self, name):
        """Every way to bring the name about, from the shell."""
        top, leaf = os.path.split(name)
        up = top or "."
        return f"""
mkdir -p {up}; echo x > {name}; echo x >> {name}; : > ./{name}; echo x > .//{name}; mkdir {name}; mkdir -p {name}/sub; echo x > {name}/f
echo y > made; mv made {name}; mv -f made ./{name}; ln made {name}; ln -s made {name}; cp made {name}; tee {name} < made; touch {name}; mktemp -p {name}
mkdir -p d/{up}; echo y > d/{name}; mkdir -p d/{name}; echo y > d/{name}/f; cp -r d/. .; mv d/{up} {up}2; mv {up}2 {up}; cp -r d/{leaf} {name}; sed -i p {name}
"""

    def test_a_rule_of_the_policy(self):
        paths = " || ".join(f'context.input.path == "~/src/app/{n}" || context.input.path like "~/src/app/{n}/*"' for n in self.NAMES)
        self.policy(OPEN + f'@id("guard") forbid (principal, action in [Box::Action::"fs:write", Box::Action::"fs:move"], resource) when {{ {paths} }};')
        for name in self.NAMES:
            with self.subTest(name=name):
                r = self.sh(self.attempts(name))
                self.assertFalse(os.path.lexists(os.path.join(self.app, name)), r.err[-1500:])
                self.assertIn("[policy: guard]", r.err)

    def test_a_deny_entry(self):
        """Through the kernel alone: a native agent with a writable workspace, and a tool."""
        deny = ", ".join(f'"{self.app}/{n}"' for n in self.NAMES)
        lists = f'read = ["/usr/lib", "{self.app}"]\nwrite = ["{self.app}"]\ndeny = [{deny}]\n'
        script = r"""
import os, shutil, sys
for n in sys.argv[1:]:
    up = os.path.dirname(n) or "."
    def attempt(f, *a):
        try:
            f(*a)
        except OSError:
            pass
    def put(p):
        os.makedirs(os.path.dirname(p) or ".", exist_ok=True)
        with open(p, "w") as f:
            f.write("x")
    attempt(put, n)
    attempt(put, n + "/f")
    attempt(os.mkdir, n)
    attempt(put, "made")
    attempt(os.rename, "made", n)
    attempt(os.link, "made", n)
    attempt(os.symlink, "made", n)
    attempt(put, "d/" + n + "/f")
    attempt(os.rename, "d/" + n, n)
    if up != ".":
        attempt(os.rename, up, "up2")
        attempt(os.rename, "d/" + up, up)
    attempt(shutil.copytree, "d", ".", False, None, shutil.copy2, True, True)
"""
        self.policy(OPEN)
        names = [n for n in self.NAMES]
        for kind in ("agent", "tool"):
            with self.subTest(kind=kind):
                if kind == "agent":
                    self.config(command='["/usr/bin/python3", "-B", "-c"]', agent="[agent.filesystem]\n" + lists)
                    r = self.box("--", script, *names)
                else:
                    self.write("src/app/try.py", script)
                    self.config(rest='[tool.py]\ncommand = ["/usr/bin/python3"]\n[tool.py.filesystem]\n' + lists)
                    r = self.sh("/usr/bin/python3 -B try.py " + " ".join(names))
                self.assertEqual(r.status, 0, r.err)
                for n in names:
                    path = os.path.join(self.app, n)
                    if os.path.isdir(path) and not os.path.islink(path):
                        self.assertEqual(os.listdir(path), [], n)
                    else:
                        self.assertFalse(os.path.lexists(path), n)


class EmptyIsNotOpen(BoxCase):
    """CFG-03"""

    PROBE = "cat README.md; echo x > new; rm -f tmp.txt; ls; echo end"

    def nothing_happens(self, r):
        self.assertNotIn("# App", r.out)
        self.assertNotIn("end", r.out)
        self.assertFalse(os.path.exists(os.path.join(self.app, "new")))
        self.assertTrue(os.path.exists(os.path.join(self.app, "tmp.txt")))
        self.assertNotEqual(r.status, 0)

    def test_policies(self):
        for text in ("", "\n\n", "// only words\n", '@id("f") forbid (principal, action, resource);', '@id("f") forbid (principal, action == Box::Action::"fs:read", resource) when { context.input.path == "~/x" };',
                     "permit", "permit (principal, action, resource)", "\ufeff" + OPEN, OPEN + "\0", OPEN + "}", "# " + OPEN, '"', "/* " + OPEN):
            with self.subTest(text=text):
                self.policy(text)
                r = self.sh(self.PROBE)
                if text.startswith("\ufeff") and r.status == 0:
                    continue  # a BOM in front of a good policy changes nothing
                self.nothing_happens(r)

    def test_policy_files(self):
        path = os.path.join(self.conf, "policy.dw")
        os.unlink(path)
        self.nothing_happens(self.sh(self.PROBE))
        os.mkdir(path)
        self.nothing_happens(self.sh(self.PROBE))
        os.rmdir(path)
        os.symlink("/dev/null", path)
        self.nothing_happens(self.sh(self.PROBE))
        os.unlink(path)
        os.mkfifo(path)
        self.nothing_happens(self.sh(self.PROBE, timeout=20))
        os.unlink(path)
        self.policy(OPEN)
        if os.getuid() != 0:
            os.chmod(path, 0)
            self.nothing_happens(self.sh(self.PROBE))
            os.chmod(path, 0o644)
        self.config()
        base = self.read("boxes/t/box.toml")
        self.write("boxes/t/box.toml", base.replace('policy = "policy.dw"', ""))
        self.nothing_happens(self.sh(self.PROBE))

    def test_empty_lists_grant_nothing(self):
        script = f'read l < {self.app}/README.md && echo "# App $l"; : > {self.app}/new && echo wrote; echo end'
        for agent in ("[agent.filesystem]\n", "[agent.filesystem]\nread = []\n", "[agent.filesystem]\nread = []\nwrite = []\nexec = []\nlist = []\n", ""):
            with self.subTest(agent=agent):
                self.config(command='["/bin/bash", "-c"]', agent=agent)
                r = self.box("--", script)
                self.assertEqual(r.out, "end\n", r.err)
                self.assertFalse(os.path.exists(os.path.join(self.app, "new")))

    def test_empty_egress_routes_nothing(self):
        for rest in ("[egress]\n", "[egress.x]\n", '[egress.x]\ndestinations = []\nsecret.ref = "env://TOK"\n', "[resolve]\n"):
            with self.subTest(rest=rest):
                self.policy('@id("c") permit (principal, action == Box::Action::"shell:exec", resource);')
                self.config(command='["/bin/bash", "-c"]', rest=rest)
                r = self.box("--", 'exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:} && printf "GET http://127.0.0.1:1/ HTTP/1.1\\r\\nHost: 127.0.0.1:1\\r\\n\\r\\n" >&3 && read -t 10 l <&3 && echo "$l"', env={"TOK": "x" * 20})
                if r.status == 0:
                    self.assertIn("403", r.out, r.err)
                else:
                    self.assertIn("box: error:", r.err)

    def test_a_replaced_policy_is_not_loaded_while_it_runs(self):
        """The policy is read once: what is written to the file later is the next run's."""
        self.policy('@id("c") permit (principal, action == Box::Action::"shell:exec", resource);')
        self.config(command='["/bin/bash", "-c"]', agent=f'[agent.filesystem]\nread = ["{self.app}"]\n')
        import subprocess
        from harness import BIN
        p = subprocess.Popen([os.path.join(BIN, "box"), "run", "--config", os.path.join(self.conf, "box.toml"), "--",
                              "echo ready; read x; sh -c 'cat README.md'; echo $?"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.app)
        self.assertEqual(p.stdout.readline(), "ready\n")
        self.policy(OPEN)
        out, err = p.communicate("go\n", timeout=30)
        self.assertNotIn("# App", out, err)


if __name__ == "__main__":
    unittest.main()
