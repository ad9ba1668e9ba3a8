"""FILE-01 to FILE-03 through the whole product: what the shell's commands and redirections do with hostile names, and with names that change under their hands."""
import hashlib
import os
import subprocess
import time
import unittest

from harness import BIN, BoxCase

# Everything below the project; and the home, so that only resolving decides where a link leads.
POLICY = """
@id("cmds") permit (principal, action == Box::Action::"shell:exec", resource);
@id("app") permit (principal, action in [Box::Action::"fs:read", Box::Action::"fs:write", Box::Action::"fs:delete", Box::Action::"fs:move"], resource)
when { context.input.path == "~/src/app" || context.input.path like "~/src/app/*" };
"""
EXCHANGER = r"""
import ctypes, os, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
a, b = (p.encode() for p in sys.argv[1:3])
pid = os.fork()
if pid == 0:
    while True:
        for _ in range(1000):
            libc.renameat2(-100, a, -100, b, 2)
        if os.getppid() == 1:
            os._exit(0)
r = subprocess.run(["sh", "-c", sys.argv[3]], capture_output=True, text=True, stdin=subprocess.DEVNULL)
os.kill(pid, 9)
os.waitpid(pid, 0)
sys.stdout.write(r.stdout)
sys.stderr.write(r.stderr[-2000:])
"""


def snapshot(top):
    """Names, types, modes, times and contents below a folder."""
    out = {}
    for folder, dirs, files in os.walk(top):
        for name in [""] + dirs + files:
            path = os.path.join(folder, name) if name else folder
            st = os.lstat(path)
            what = ""
            if os.path.islink(path):
                what = os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as f:
                    what = hashlib.sha256(f.read()).hexdigest()
            out[path] = (st.st_mode, st.st_mtime_ns, st.st_nlink, what)
    return out


class Outside(BoxCase):
    def setUp(self):
        super().setUp()
        self.policy(POLICY)
        self.outside = os.path.join(os.path.expanduser("~"), "outside")
        self.write("outside/f", "secret\n")
        self.write("outside/sub/g", "deep secret\n")
        os.chmod(os.path.join(self.outside, "f"), 0o640)

    def scenario(self, commands, **kw):
        before = snapshot(self.outside)
        r = self.sh(commands, shell="sh", **kw)
        self.assertEqual(snapshot(self.outside), before, r.err)
        self.assertNotIn("secret", r.out)
        return r


class Links(Outside):
    """FILE-01"""

    NAMES = ["a", "d/f", "d/sub/g", "r", "c", "l0"]
    VERBS = ["cat %s", "cat < %s", "echo x > %s", "echo x >> %s", ": >| %s", "echo x 1<> %s", "cp %s got", "cp README.md %s", "cp -f README.md %s", "tee %s < README.md",
             "tee -a %s < README.md", "chmod 777 %s", "touch %s", "touch -d 2001-01-01 %s", "head -c 5 %s", "grep secret %s", "sed -n p %s", "sort %s", "sort -o %s README.md",
             "wc -c %s", ". ./%s", "sh %s", "sh < %s", "ls -l %s/", "find %s/ -type f", "test -r %s && echo readable", "mv README.md %s/x", "ln %s hard", "ln -L %s hard",
             "cut -c1-9 %s", "tail %s", "sed -i s/s/x/ d/f", "cat - %s < /dev/null", "mkdir -p %s/new", "rm -rf %s/", "rmdir %s/sub"]

    def links(self):
        w = self.app
        os.symlink(os.path.join(self.outside, "f"), w + "/a")
        os.symlink(self.outside, w + "/d")
        os.symlink(os.path.join(self.outside, "absent"), w + "/dangling")
        os.symlink("/proc/self/root" + os.path.join(self.outside, "f"), w + "/r")
        os.symlink("/proc/self/cwd/../../outside/f", w + "/c")
        os.symlink("p2", w + "/p1")
        os.symlink("p1", w + "/p2")
        os.symlink(os.path.join(self.outside, "f"), w + "/l30")
        for i in range(30, 0, -1):
            os.symlink(f"l{i}", w + f"/l{i - 1}")

    def test_every_verb_through_every_link(self):
        self.links()
        for name in self.NAMES:
            with self.subTest(name=name):
                self.scenario("\n".join(f"( {v.replace('%s', name)} )" for v in self.VERBS))
                for made in ("got", "hard"):
                    path = os.path.join(self.app, made)
                    if os.path.islink(path):
                        os.unlink(path)  # a second name of the link, not of what it leads to
                    if os.path.exists(path):
                        with open(path, encoding="utf-8") as f:
                            self.assertNotIn("secret", f.read())
                        self.assertNotEqual(os.stat(path).st_ino, os.stat(os.path.join(self.outside, "f")).st_ino)
                        os.unlink(path)
                self.write("src/app/README.md", "# App\n")

    def test_the_decision_names_the_object(self):
        self.links()
        r = self.scenario("cat a; echo x > d/f; cat l0")
        self.assertEqual(r.err.count("policy denied this operation on '~/outside/f'"), 3, r.err)
        self.assertEqual({x.target for x in self.records() if x.verdict == "deny"}, {"~/outside/f"})

    def test_creating_through_a_dangling_link(self):
        self.links()
        self.scenario("echo x > dangling; : >> dangling; cp README.md dangling; touch dangling; mkdir d/new; mkdir -p d/new/sub; echo x > d/new/f; "
                      "mv README.md d/; mv -f README.md dangling; tee dangling < /dev/null; ln README.md d/hard; mktemp -p d")
        self.assertFalse(os.path.exists(os.path.join(self.outside, "absent")))

    def test_loops_and_long_chains(self):
        self.links()
        r = self.scenario("cat p1; echo x > p1; cd p1")
        self.assertEqual(r.err.count("Too many levels of symbolic links"), 3, r.err)

    def test_removal_does_not_descend(self):
        self.links()
        self.scenario("rm -r d; rm -rf a dangling; mkdir t; ln -s ../d t/in; ln -s %s t/abs; rm -rf t; cp -r . copy; cp -rL . copy2; cp -a d copy3" % self.outside)
        self.assertFalse(os.path.lexists(os.path.join(self.app, "d")))
        self.assertFalse(os.path.lexists(os.path.join(self.app, "t")))
        for name in ("copy2", "copy3"):
            for folder, _, files in os.walk(os.path.join(self.app, name)):
                for f in files:
                    path = os.path.join(folder, f)
                    if not os.path.islink(path):
                        with open(path, "rb") as x:
                            self.assertNotIn(b"secret", x.read())

    def test_links_made_inside(self):
        r = self.scenario(f"ln -s {self.outside}/f a && cat a; ln -s {self.outside} d; cat d/f; cd d && cat f; cd {self.app}; cd d/..; cat outside/f; cd -P d; cat f; ls -R d/")
        self.assertNotIn("deep", r.out)

    def test_dot_dot(self):
        self.scenario("cat ../../outside/f; cat sub/../../../outside/f; cd sub; cat ../../../outside/f; cd ..; cat ./././../../outside//f; echo x > ../../outside/new; "
                      "cat /proc/self/root%s/f; cat /proc/self/cwd/../../outside/f; cat /dev/fd/../../outside/f" % self.outside)


class Swaps(Outside):
    """FILE-02: a native agent exchanges x (a folder) and y (a link to outside) as fast as it can, while the shell acts on x. Bounded rounds."""

    ROUNDS = 60
    ACTIONS = {
        "redirection": "echo hi > x/f", "append": "echo hi >> x/f", "remove": "rm -f x/f; echo hi > x/f", "tree": "rm -rf x/sub; mkdir -p x/sub; echo n > x/sub/g",
        "move": "mv x/f x/g; mv x/g x/f", "copy": "cp -r x z; rm -rf z", "chmod": "chmod 600 x/f", "touch": "touch x/f", "truncate": ": > x/f", "read": "cat x/f",
        "links": "ln -s README.md x/l; rm -f x/l", "list": "ls -l x/ x/sub",
    }

    def setUp(self):
        super().setUp()
        if not os.path.exists("/usr/bin/python3"):
            self.skipTest("python3 is not installed")
        self.config(command='["/usr/bin/python3", "-B", "-c"]', agent=f'[agent.filesystem]\nread = ["/usr/lib", "{self.app}"]\nwrite = ["{self.app}"]\n')

    def race(self, a, b):
        self.write("src/app/swap.py", EXCHANGER)
        for name, action in self.ACTIONS.items():
            with self.subTest(action=name):
                before = snapshot(self.outside)
                script = f"i=0; while [ $i -lt {self.ROUNDS} ]; do {action}; i=$((i+1)); done 2>/dev/null; echo end"
                r = self.box("--", EXCHANGER, a, b, script)
                self.assertTrue(r.out.endswith("end\n"), r.out + r.err)
                self.assertNotIn("secret", r.out)
                self.assertEqual(snapshot(self.outside), before)
                wrong = [x for x in self.records() if x.verdict == "permit" and "outside" in (x.target or "")]
                self.assertEqual([x.target for x in wrong], [])
                self.forget_records()

    def test_last_folder(self):
        os.makedirs(os.path.join(self.app, "x/sub"))
        self.write("src/app/x/f", "mine\n")
        self.write("src/app/x/sub/g", "mine\n")
        os.symlink(self.outside, os.path.join(self.app, "y"))
        self.race("x", "y")

    def test_one_level_up(self):
        os.makedirs(os.path.join(self.app, "p/x/sub"))
        os.makedirs(os.path.join(self.outside, "x/sub"))
        self.write("outside/x/f", "secret\n")
        self.write("outside/x/sub/g", "secret\n")
        self.write("src/app/p/x/f", "mine\n")
        os.symlink(self.outside, os.path.join(self.app, "q"))
        self.ACTIONS = {k: v.replace("x/", "p/x/").replace("cp -r x", "cp -r p/x") for k, v in self.ACTIONS.items()}
        self.race("p", "q")


class Names(Outside):
    """FILE-03 through the shell: objects that a rule protects stay as they are, whatever call reaches for them."""

    def test_forbidden_object_in_a_writable_tree(self):
        self.policy(POLICY + """
@id("keep") forbid (principal, action in [Box::Action::"fs:write", Box::Action::"fs:delete", Box::Action::"fs:move"], resource)
when { context.input.path == "~/src/app/keep" || context.input.path like "~/src/app/keep/*" };
""")
        self.write("src/app/keep/deep/f", "kept\n")
        self.write("src/app/mine", "mine\n")
        keep = os.path.join(self.app, "keep")
        before = snapshot(keep)
        for o in ("keep", "keep/deep", "keep/deep/f"):
            r = self.sh(f"""
echo x > {o}; echo x >> {o}; : > {o}; rm -rf {o}; rm -f {o}; rmdir {o}; mv {o} got; mv -f mine {o}; cp mine {o}; cp -f mine {o}; ln mine {o}; ln -sf mine {o}
ln {o} got2; chmod 777 {o}; chmod -R 777 {o}; touch {o}; touch -d 2001-01-01 {o}; mkdir {o}; mkdir -p {o}/new; tee {o} < mine; sed -i s/k/x/ {o}; sort -o {o} mine
cp -r sub {o}; cp -a sub/. {o}/; mv sub {o}/; cd keep 2>/dev/null && echo x > deep/f; cd ..; mktemp -p {o}
""")
            self.assertEqual(snapshot(keep), before, f"{o}: {r.err}")
        self.assertEqual(self.read("src/app/mine"), "mine\n")

    def test_the_parent_renamed_away(self):
        """With the folder above moved, the rule's path would name another object."""
        self.policy(POLICY + """
@id("keep") forbid (principal, action in [Box::Action::"fs:write", Box::Action::"fs:delete", Box::Action::"fs:move"], resource)
when { context.input.path == "~/src/app/up/keep" || context.input.path like "~/src/app/up/keep/*" };
""")
        self.write("src/app/up/keep/f", "kept\n")
        before = snapshot(os.path.join(self.app, "up"))
        r = self.sh("mv up up2; cd up && mv ../up ../up3; cd ..; mv -f up sub/; mv -T up up4; echo x > up/keep/f; rm -rf up")
        self.assertEqual(snapshot(os.path.join(self.app, "up")), before, r.err)

    def test_tree_removal_is_all_or_nothing(self):
        self.policy(POLICY + '@id("one") forbid (principal, action == Box::Action::"fs:delete", resource) when { context.input.path == "~/src/app/t/z/last" };')
        for i in range(20):
            self.write(f"src/app/t/d{i}/f", "x\n")
        self.write("src/app/t/z/last", "x\n")
        before = snapshot(os.path.join(self.app, "t"))
        r = self.sh("rm -rf t; find t -delete")
        self.assertIn("[policy: one]", r.err)
        self.assertTrue(os.path.exists(os.path.join(self.app, "t/z/last")))
        r = self.sh("rm -rf t")
        self.assertNotEqual(r.status, 0)

    def test_hard_links_to_protected_files(self):
        """A second name of a file that the box protects is that file: the floor looks at the object."""
        os.link(os.path.join(self.conf, "policy.dw"), os.path.join(self.app, "hard"))
        self.addCleanup(os.unlink, os.path.join(self.app, "hard"))
        r = self.sh("cat hard; echo 'permit (principal, action, resource);' >> hard; : > hard; chmod 777 hard; sed -i s/x/y/ hard; touch -d 2001-01-01 hard")
        self.assertEqual(self.read("boxes/t/policy.dw"), POLICY, r.err)
        self.assertNotIn("permit", r.out)


class Descriptors(BoxCase):
    """FILE-04: what the agent and a tool are born with."""

    def test_no_leaked_descriptors(self):
        self.policy('@id("all") permit (principal, action, resource);')
        self.config(command='["/bin/bash", "-c"]', rest='[tool.bash]\ncommand = ["/usr/bin/bash"]\n')
        script = "for f in /proc/self/fd/*; do echo ${f##*/}; done; [ -e /proc/self/root/etc/shadow ] && echo shadow; [ -e /proc/1/root ] && echo one; echo $PPID"
        r = self.box("--", script)
        fds = [int(x) for x in r.out.split() if x.isdigit()][:-1]
        self.assertEqual(sorted(set(fds) - {0, 1, 2, 3, 255}), [], r.out)
        self.assertNotIn("shadow", r.out)
        self.config(rest='[tool.bash]\ncommand = ["/usr/bin/bash"]\n')
        r = self.sh(f"/usr/bin/bash -c '{script}'")
        fds = [int(x) for x in r.out.split() if x.isdigit()][:-1]
        self.assertEqual(sorted(set(fds) - {0, 1, 2, 3, 255}), [], r.out)
        self.assertNotIn("shadow", r.out)


    def test_directories_as_standard_streams(self):
        """A folder of the agent's view as a command's stdin: neither the shell nor a tool opens anything below or above it."""
        if not os.path.exists("/usr/bin/python3"):
            self.skipTest("python3 is not installed")
        self.write("outside/f", "secret\n")
        self.write("src/app/sub/mine", "agents own\n")
        self.policy('@id("exec") permit (principal, action in [Box::Action::"shell:exec", Box::Action::"shell:spawn"], resource);')
        tool = ("for f in /dev/fd /proc/self/fd; do for p in mine ../README.md ../../../outside/f; do read l < $f/0/$p && echo opened $f $p $l; done; "
                "for x in $f/0/*; do echo opened $x; done; if cd $f/0; then for x in * ../*; do echo listed $x; done; read l < mine && echo opened $l; read l < ../README.md && echo opened $l; : > new && echo wrote; cd /; fi; done 2>/dev/null; echo tried")
        agent = r"""
import os, subprocess, sys
d = os.open("sub", os.O_RDONLY | os.O_DIRECTORY)
p = os.open("sub", os.O_PATH | os.O_DIRECTORY)
for fd in (d, p):
    for text in ("cat <&0; cat; cat /dev/fd/0/mine; cat /dev/stdin/mine; cat /proc/self/fd/0/mine; ls /dev/fd/0/; cd /dev/fd/0 && cat mine; read x; printf %s $x; . /dev/fd/0/mine; exec 3<&0; cat /dev/fd/3/../README.md; echo tried >&2",
                 "/usr/bin/bash -c 'shopt -s nullglob; %s'" % sys.argv[1]):
        r = subprocess.run(["sh", "-c", text], stdin=fd, capture_output=True, text=True, timeout=40)
        sys.stdout.write(r.stdout)
        sys.stdout.write("".join(x + "\n" for x in r.stderr.splitlines() if not x.startswith(("strands-shell:", "cat: ", "ls: "))))
"""
        self.config(command='["/usr/bin/python3", "-B", "-c"]', agent=f'[agent.filesystem]\nread = ["/usr/lib", "{self.app}"]\n',
                    rest='[tool.bash]\ncommand = ["/usr/bin/bash"]\n')
        r = self.box("--", agent, tool)
        self.assertEqual(r.out.splitlines(), ["tried"] * 4, r.out + r.err[-1500:])


if __name__ == "__main__":
    unittest.main()
