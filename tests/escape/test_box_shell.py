"""SH-01, SH-03, TOOL-01, TOOL-02: nothing that a shell can say runs a command without its decision, or tells what no decision gave."""
import os
import time
import unittest

from harness import APP_WRITE, OPEN, P0, BoxCase

NO_RM = P0 + APP_WRITE + """
@id("del") permit (principal, action in [Box::Action::"fs:delete", Box::Action::"fs:move"], resource);
@id("tmp") permit (principal, action in [Box::Action::"fs:read", Box::Action::"fs:write"], resource) when { context.input.path like "/tmp/*" || context.input.path == "/tmp" };
@id("no_rm") forbid (principal, action in [Box::Action::"shell:exec", Box::Action::"shell:spawn"], resource) when { context.input.program == "rm" };
@id("no_touch") forbid (principal, action in [Box::Action::"shell:exec", Box::Action::"shell:spawn"], resource) when { context.input.program == "touch" };
"""
REFUSED = "effect denied: policy denied this operation on 'rm' [policy: no_rm]."


class Positions(BoxCase):
    """SH-01. Each line is a program; `victim` survives it, and rm is refused by its rule or the form does not exist in this shell."""

    FORMS = ["rm victim", "true; rm victim", "true; " * 50 + "rm victim", ":;" * 1000 + "rm victim", "true && rm victim", "false || rm victim", "true | rm victim", "rm victim | true",
             "rm victim & wait", "echo $(rm victim)", "echo `rm victim`", "echo \"$(echo $(rm victim))\"", "cat <<E\n$(rm victim)\nE", "f() { rm victim; }; f", "shopt -s expand_aliases\nalias x='rm victim'\nx",
             "trap 'rm victim' EXIT", "trap 'rm victim' USR1; kill -USR1 $$; :", "eval eval eval eval eval rm victim", "echo 'rm victim' > s; . ./s", "echo 'rm victim' | . /dev/stdin",
             "echo 'rm victim' > s; source ./s", "case x in x) rm victim;; esac", "case $(rm victim) in *) ;; esac", "if rm victim; then :; fi", "while rm victim; do break; done", "until rm victim; do break; done",
             "for i in $(rm victim); do :; done", "(rm victim)", "{ rm victim; }", "! rm victim", "PS4='$(rm victim)'; set -x; :", "ENV=s; echo 'rm victim' > s; sh -c :", "BASH_ENV=s; echo 'rm victim' > s; bash -c :",
             "command rm victim", "builtin rm victim", "exec rm victim", "command -p rm victim", "a[$(rm victim)]=1", ": ${x:=$(rm victim)}", ": ${x:-$(rm victim)}", "x=1; : ${x:+$(rm victim)}", "[[ -n $(rm victim) ]]",
             "(( a[$(rm victim)] ))", ": $(( $(rm victim) + 1 ))", "printf -v 'a[$(rm victim)]' x", "test -v 'a[$(rm victim)]'", "sh -c 'rm victim'", "bash -lc 'rm victim'", "zsh -c 'rm victim'",
             "printf '#!/bin/sh\\nrm victim\\n' > s; chmod +x s; ./s", "printf 'rm victim\\n' > s; sh s", "sh < s0", "cat <(rm victim)", "echo x > >(rm victim)", "coproc rm victim; wait", "PROMPT_COMMAND='rm victim'; :",
             "echo victim | xargs rm", "echo victim | xargs -n1 rm", "find . -name victim -exec rm {} \\;", "find . -name victim -exec rm {} +", "find . -name victim -execdir rm {} \\;", "env rm victim", "env X=1 rm victim",
             "time rm victim", "r=rm; $r victim", "r='rm victim'; $r", "r''m victim", "\\rm victim", "'rm' victim", "$'\\x72m' victim", "{rm,victim}", "/bin/../bin/rm victim", "/usr/bin/rm victim", "X=1 rm victim", "rm() { command rm \"$@\"; }; rm victim",
             "set -- rm victim; \"$@\"", "set -- rm victim; $*", "IFS=/; x=rm/victim; $x", "select x in a; do rm victim; break; done <<< 1", "function g { rm victim; }; g", "unset -f rm; rm victim", "hash -p /usr/bin/rm zz; zz victim",
             "enable -f x rm; rm victim", "read x <<< 'rm victim'; $x", "mapfile -C 'rm victim' -c 1 a <<< x", "let 'a[$(rm victim)]=1'", "declare 'a[$(rm victim)]=1'", "export x=$(rm victim)", "local x=$(rm victim)", "readonly y=$(rm victim)",
             "x=${y/$(rm victim)/}", "x=${y#$(rm victim)}", "echo ${!x@$(rm victim)}", "nice rm victim", "nohup rm victim", "timeout 5 rm victim", "setsid rm victim", "xargs -I{} sh -c 'rm {}' <<< victim", "sh -c 'sh -c \"rm victim\"'", ">(rm victim)"]
    # Forms in which nothing is to run, by the rules of the language or of this shell.
    SILENT = ("ENV=", "BASH_ENV=", "sh < s0", "builtin rm", "echo x > >(", "coproc", "PROMPT_COMMAND", "printf -v", "test -v", "mapfile", "let ", "declare", "hash -p", "enable", "local", "echo ${!x@", "command -p", ">(", "select", "{rm", "/bin/../bin",
              "/usr/bin/rm", "nice", "nohup", "timeout", "setsid", "a[$(", "(( a[", "cat <(", "find . -name victim -execdir", "printf '#!", "PS4")

    def test_positions(self):
        self.policy(NO_RM)
        self.config(agent=f'[agent.filesystem]\nread = ["{self.app}"]\n')
        victim = os.path.join(self.app, "victim")
        bad = []
        for form in self.FORMS:
            self.write("src/app/victim", "v\n")
            self.write("src/app/s0", "rm victim\n")
            for leftover in ("s",):
                if os.path.exists(os.path.join(self.app, leftover)):
                    os.unlink(os.path.join(self.app, leftover))
            r = self.sh(form + "\necho after", shell="bash", timeout=30)
            if not os.path.exists(victim):
                bad.append(("GONE", form, r.err[-300:]))
            elif REFUSED not in r.err and not form.startswith(self.SILENT):
                bad.append(("no refusal", form, r.agent_err()[-300:]))
        self.assertEqual(bad, [])

    def test_refused_status_and_what_follows(self):
        self.policy(NO_RM)
        self.write("src/app/victim", "v\n")
        r = self.sh("rm victim; echo $?; rm victim && echo no; rm victim || echo yes; ! rm victim; echo $?")
        self.assertEqual(r.out, "126\nyes\n0\n", r.err)
        self.assertEqual(r.err.count(REFUSED), 4)
        r = self.sh("set -e; rm victim; echo not reached")
        self.assertEqual((r.status, r.out), (126, ""), r.err)


class Beside(BoxCase):
    """SH-03"""

    def setUp(self):
        super().setUp()
        self.policy(P0 + APP_WRITE)
        self.write("hidden/secret", "secret\n")
        self.write("hidden/other", "x\n")

    def nothing(self, script, *words):
        r = self.sh(script, shell="bash", timeout=30)
        for w in ("secret", *words):
            self.assertNotIn(w, r.out, script)
        return r

    def test_descriptors(self):
        self.nothing("cat /dev/fd/3; cat <&3; cat /proc/self/fd/3; for i in 3 4 5 6 7 8 9 10 100 200 255; do cat <&$i; echo x >&$i; done; exec 3<~/hidden/secret && cat <&3; exec 3<>~/hidden/secret && cat <&3; "
                     "cat < ~/hidden/secret; echo $(<~/hidden/secret); read x < ~/hidden/secret; echo $x; mapfile a < ~/hidden/secret; echo ${a[0]}; echo x 2> ~/hidden/new")
        self.assertEqual(sorted(os.listdir(os.path.join(os.path.expanduser("~"), "hidden"))), ["other", "secret"])

    def test_network_redirections(self):
        r = self.nothing("exec 3<>/dev/tcp/127.0.0.1/22 && echo connected; cat < /dev/udp/127.0.0.1/53 && echo connected", "connected")
        self.assertNotEqual(r.err, "")

    def test_probes_do_not_tell(self):
        """A refused folder and an absent one look the same to every probe."""
        probes = ["test -e %s", "[ -f %s ]", "[[ -r %s ]]", "[[ %s -nt README.md ]]", "test -s %s", "[ -x %s ]", "[ -L %s ]", "[[ %s -ef README.md ]]"]
        script = "".join(f"if {p.replace('%s', name)} 2>/dev/null; then echo yes; else echo no; fi\n" for p in probes for name in ("~/hidden/secret", "~/hidden/absent"))
        self.assertEqual(set(self.nothing(script).out.split()), {"no"})
        # No line names what is there or says that the other is not.
        r = self.nothing("cd ~/hidden; cat secret; echo *; ls; echo ~/hidden/*; for f in ~/hidden/s*; do echo $f; done; ls ~/hidden; find ~/hidden; command -v ~/hidden/secret; . ~/hidden/secret; ~/hidden/secret", "other")
        a = [x for x in self.sh("cat ~/hidden/secret; cat ~/hidden/absent").agent_err().splitlines() if x]
        self.assertEqual(len(a), 2, a)
        self.assertEqual(a[0].replace("secret", "N"), a[1].replace("absent", "N"))
        self.assertIn("policy denied", r.err)

    def test_globs_need_enumerate(self):
        self.policy(P0.replace("permit (principal, action == Box::Action::\"fs:read\"", "permit (principal, action == Box::Action::\"fs:read\"") + """
@id("no_list") forbid (principal, action == Box::Action::"fs:read", resource) when { context.input.operation == Box::FsReadOperation::"enumerate" };""")
        r = self.sh("echo *.py; echo s*/x*; case a in *) ;; esac; for f in *; do echo $f; done; compgen -f; ls", shell="bash")
        self.assertNotIn("a.py", r.out)
        self.assertNotIn("x.txt", r.out)

    def test_a_fifo_stops_only_its_own_command(self):
        os.mkfifo(os.path.join(self.app, "fifo"))
        self.config(command='["/bin/bash", "-c"]')
        r = self.box("--", "sh -c 'cat fifo' & p=$!; sh -c 'sleep 0.5; echo x > fifo2; cat README.md'; kill $p; wait $p; echo $?; sh -c 'echo fine'", timeout=40)
        self.assertIn("# App\n143\nfine\n", r.out, r.err)
        begin = time.monotonic()
        r = self.box("--", "sh -c 'echo x > fifo' & p=$!; sh -c 'sleep 0.5; ls -l fifo > /dev/null; cat README.md'; kill -9 $p; sh -c 'echo fine'", timeout=40)
        self.assertIn("# App\nfine\n", r.out, r.err)
        self.assertLess(time.monotonic() - begin, 30)

    def test_logical_and_physical_directories(self):
        os.symlink(os.path.join(os.path.expanduser("~"), "hidden"), os.path.join(self.app, "link"))
        self.nothing("cd link; cat secret; cd link/sub; cat ../secret; cd -P link; cat secret; cd -L link; cat ./secret; cd ~/hidden; pwd; cat secret", "other")


class Options(BoxCase):
    """TOOL-01: options of the commands we have that would run or write something."""

    FORMS = ["find . -maxdepth 0 -exec touch pwned \\;", "find . -maxdepth 0 -exec touch pwned {} +", "find . -maxdepth 0 -execdir touch pwned \\;", "yes | find . -maxdepth 0 -ok touch pwned \\;",
             "sed 's/.*/touch pwned/e' README.md", "sed '1e touch pwned' README.md", "sed -n '1{s/.*/touch pwned/;e\n}' README.md", "awk 'BEGIN{system(\"touch pwned\")}'", "awk '{print | \"touch pwned\"}' README.md",
             "awk 'BEGIN{\"touch pwned\"|getline}'", "sort --compress-program='touch pwned' -S 1 README.md", "sort --compress-program=./p.sh -S1 b.py", "echo pwned | xargs touch", "env touch pwned", "env -S 'touch pwned'", "env -i touch pwned", "nice touch pwned",
             "timeout 5 touch pwned", "nohup touch pwned", "setsid touch pwned", "time touch pwned", "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='touch pwned' README.md", "tar -cf x -I 'touch pwned' README.md",
             "tar --to-command='touch pwned' -xf x", "split --filter='touch pwned' README.md", "watch -n1 touch pwned", "make -f /dev/null SHELL='touch pwned'", "python3 -c 'import os; os.system(\"touch pwned\")'", "vim -c '!touch pwned' -c q", "git -c alias.x='!touch pwned' x",
             "git -c core.pager='touch pwned' log", "grep -f <(touch pwned) README.md", "ls --color=$(touch pwned)", "date -f <(touch pwned)", "tee >(touch pwned) < README.md", "cp --backup=$(touch pwned) a b", "command touch pwned", "busybox touch pwned",
             "perl -e 'system(\"touch pwned\")'", "dd if=/dev/null of=pwned2 2>/dev/null; touch pwned", "install /dev/null pwned", "truncate -s 0 pwned"]
    WRITES = ["sed -n 'w pwned' README.md", "sed 's/A/B/w pwned' README.md", "find . -maxdepth 0 -fprint pwned", "find . -maxdepth 0 -fprintf pwned %p", "find . -fls pwned", "sort -o pwned README.md", "tee pwned < README.md", "cp README.md pwned", "echo x > pwned",
              "uniq README.md pwned", "mktemp ./pwnedXXXX", "sort -T . README.md", "ln README.md pwned", "ln -s README.md pwned", "mkdir pwned", "awk '{print > \"pwned\"}' README.md", "touch -r README.md pwned", "cut -c1 README.md > pwned"]

    def made(self):
        return [x for x in os.listdir(self.app) if x.startswith("pwned")]

    def test_starts(self):
        self.policy(NO_RM + '@id("spawn") permit (principal, action == Box::Action::"shell:spawn", resource) when { context.input.program != "touch" };')
        self.write("src/app/p.sh", "touch pwned\n", 0o755)
        for form in self.FORMS:
            with self.subTest(form=form):
                r = self.sh(form, shell="bash", timeout=30)
                self.assertEqual(self.made(), [], r.err)

    def test_writes(self):
        self.policy(P0 + """@id("more") permit (principal, action in [Box::Action::"fs:delete", Box::Action::"fs:move"], resource);
@id("touch") permit (principal, action == Box::Action::"fs:write", resource) when { context.input.path like "/tmp/*" };""")
        for form in self.WRITES:
            for old in self.made():
                os.unlink(os.path.join(self.app, old))
            with self.subTest(form=form):
                r = self.sh(form, timeout=30)
                self.assertEqual(self.made(), [], r.err)
                self.assertTrue(os.path.exists(os.path.join(self.app, "README.md")), form)
                if "sort -T" not in form:
                    self.assertNotEqual((r.status, r.agent_err()), (0, ""))


class Environment(BoxCase):
    """TOOL-02"""

    NAMES = ("LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH GCONV_PATH BASH_ENV ENV PYTHONPATH PYTHONSTARTUP PYTHONHOME PERL5OPT RUBYOPT NODE_OPTIONS JAVA_TOOL_OPTIONS GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_PAGER GIT_EXEC_PATH PAGER LESSOPEN "
             "EDITOR BROWSER IFS PATH HOME SSL_CERT_FILE HTTPS_PROXY SSLKEYLOGFILE OPENSSL_CONF OPENSSL_MODULES MALLOC_CHECK_ GLIBC_TUNABLES TZ NLSPATH TERMINFO GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0").split()
    # What must never reach a tool from the agent: code, or the box's own decisions.
    NEVER = ("LD_PRELOAD LD_AUDIT LD_LIBRARY_PATH GCONV_PATH BASH_ENV ENV PYTHONPATH PYTHONSTARTUP PYTHONHOME PERL5OPT RUBYOPT NODE_OPTIONS JAVA_TOOL_OPTIONS IFS OPENSSL_CONF OPENSSL_MODULES GLIBC_TUNABLES "
             "SSLKEYLOGFILE GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_EXEC_PATH GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_0 "
             "TAR_OPTIONS RSYNC_RSH SVN_SSH MAKEFILES NODE_PATH npm_config_node_options LUA_INIT AWKLIBPATH PHPRC DOTNET_STARTUP_HOOKS").split()
    NAMES = sorted(set(NAMES) | set(NEVER))

    def setUp(self):
        super().setUp()
        self.policy(OPEN)
        self.evil = os.path.join(self.app, "evil")
        self.write("src/app/evil", "echo pwned > pwned\n", 0o755)

    def tool_env(self, script):
        self.config(rest='[tool.env]\ncommand = ["/usr/bin/printenv"]\n')
        r = self.sh(script, shell="bash")
        self.assertEqual(r.status, 0, r.err)
        return dict(x.split("=", 1) for x in r.out.splitlines() if "=" in x)

    def test_what_a_tool_gets(self):
        for form in ("export %s=EVIL\n", "declare -x %s=EVIL\n"):
            sets = "".join(form % n for n in self.NAMES if n not in ("IFS", "PATH", "HOME"))
            env = self.tool_env(sets.replace("EVIL", self.evil) + "/usr/bin/printenv")
            for name in self.NEVER:
                self.assertNotIn(self.evil, env.get(name, ""), name)
            self.assertTrue(env["HTTPS_PROXY"].startswith("http://127.0.0.1:"), env["HTTPS_PROXY"])
            self.assertTrue(env["SSL_CERT_FILE"].endswith("trust/bundle.pem"))
        env = self.tool_env("".join(f"{n}={self.evil} " for n in self.NEVER if n != "IFS") + "/usr/bin/printenv")
        for name in self.NEVER:
            self.assertNotIn(self.evil, env.get(name, ""), name)
        env = self.tool_env(f"export PATH={self.app}:$PATH HOME={self.app}; /usr/bin/printenv")
        self.assertNotIn(self.app, env["PATH"])

    def test_aliases_and_shell_read_none_of_them(self):
        self.config(command='["/usr/bin/env"]')
        sets = [f"{n}={self.evil}" for n in self.NAMES if n not in ("PATH", "HOME")] + ["BASH_FUNC_cat%%=() { echo pwned > pwned; }", "PS4=$(echo pwned > pwned)", "PROMPT_COMMAND=echo pwned > pwned"]
        for shell in ("sh", "bash", "zsh"):
            r = self.box("--", *sets, shell, "-c", "cat README.md; bash -c 'cat README.md'")
            self.assertEqual((r.status, r.out), (0, "# App\n# App\n"), r.err)
        self.assertFalse(os.path.exists(os.path.join(self.app, "pwned")))

    def test_reserved_names_are_refused_at_load(self):
        for name in ("LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH", "BASH_ENV", "PYTHONPATH", "NODE_OPTIONS", "HTTPS_PROXY", "SSL_CERT_FILE", "PERL5OPT", "ENV"):
            self.config(agent=f'env = {{ {name} = "{self.evil}" }}\n')
            self.assert_refused_start(name)

    def test_operator_environment_does_not_leak(self):
        self.config(command='["/usr/bin/env"]', rest='[tool.env]\ncommand = ["/usr/bin/printenv"]\n')
        leak = {"SECRET_OF_OPERATOR": "leak-1234567", "SSH_AUTH_SOCK": "/leak-1234567", "LD_PRELOAD": "", "AWS_SECRET_ACCESS_KEY": "leak-1234567"}
        self.assertNotIn("leak-1234567", self.box("--", env=leak).out)
        self.assertNotIn("leak-1234567", self.sh("env; export -p; set; /usr/bin/printenv", env=leak).out)


if __name__ == "__main__":
    unittest.main()
