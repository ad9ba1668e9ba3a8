"""What every end-to-end test stands on: a home, a project, a box directory, a policy, and a way to run something as the agent."""
import http.server
import json
import os
import pwd
import shutil
import ssl
import subprocess
import threading
import time
import unittest

BIN = os.environ.get("BOX_BIN", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/bin"))
HOME = os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir)
# Beside the home that tools/run-tests makes, naming it. Nobody's real home has one.
SCRATCH_MARK = os.path.join(os.path.dirname(HOME), "scratch-home")
TIMEOUT = 60

P0 = """
@id("cmds") permit (principal, action == Box::Action::"shell:exec", resource);
@id("app_read") permit (principal, action == Box::Action::"fs:read", resource)
when { context.input.path == "~/src/app" || context.input.path like "~/src/app/*" };
"""
APP_WRITE = """
@id("app_write") permit (principal, action == Box::Action::"fs:write", resource)
when { context.input.path like "~/src/app/*" };
"""
OPEN = """
@id("all") permit (principal, action, resource);
"""
NO_MATCH = "[default-deny]: No permit policy matched this request."


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def agent_err(self):
        """stderr without the box's own lines."""
        lines, block = [], False
        for line in self.err.splitlines():
            if line.startswith("box: "):
                block = line.endswith(":") or "runtime minimum" in line
            elif not (block and line.startswith("  ")):
                block = False
                lines.append(line)
        return "\n".join(lines)


def is_scratch_home():
    try:
        with open(SCRATCH_MARK, encoding="utf-8") as f:
            return f.read() == HOME
    except OSError:
        return False


class BoxCase(unittest.TestCase):
    """A fresh project and box for each test."""

    def setUp(self):
        if not os.environ.get("BOX_BIN"):
            raise unittest.SkipTest("run by tools/run-tests, which gives the tests a home of their own")
        # What follows empties the home. It must be one that was made for that.
        if not is_scratch_home():
            raise RuntimeError(f"{HOME} is no scratch home (no {SCRATCH_MARK} that names it): use tools/run-tests, nothing was touched")
        for name in os.listdir(HOME):
            path = os.path.join(HOME, name)
            if os.path.isdir(path) and not os.path.islink(path):
                subprocess.run(["chmod", "-R", "u+rwx", path], check=False)
                shutil.rmtree(path)
            else:
                os.unlink(path)
        self.app = os.path.join(HOME, "src/app")
        self.conf = os.path.join(HOME, "boxes/t")
        self.box_dir = os.path.join(self.conf, "state")
        os.makedirs(os.path.join(self.app, "sub"))
        os.makedirs(self.conf)
        self.write("src/app/README.md", "# App\n")
        self.write("src/app/a.py", "print(1)\n")
        self.write("src/app/b.py", "print(1)\nprint(2)\n")
        self.write("src/app/.env", "K=v\n")
        self.write("src/app/tmp.txt", "tmp\n")
        self.write("src/app/sub/x.txt", "x\n")
        self.policy(P0)
        self.config()

    def write(self, path, text, mode=0o644):
        full = os.path.join(HOME, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(full, mode)
        return full

    def read(self, path):
        with open(os.path.join(HOME, path), encoding="utf-8") as f:
            return f.read()

    def policy(self, text):
        self.write("boxes/t/policy.dw", text)

    def config(self, agent="", rest="", command='["/usr/bin/env"]', head=""):
        self.write("boxes/t/box.toml", f"""
name = "t"
box_dir = "{self.box_dir}"
policy = "policy.dw"
{head}
[agent]
command = {command}
workspace = "{self.app}"
{agent}
{rest}
""")

    def box(self, *args, env=None, stdin=None, timeout=TIMEOUT, cwd=None, verb="run"):
        full_env = dict(os.environ)
        full_env.update(env or {})
        done = subprocess.run([os.path.join(BIN, "box"), verb, "--config", os.path.join(self.conf, "box.toml"), *args], env=full_env,
                              input=stdin, capture_output=True, text=True, timeout=timeout, check=False, cwd=cwd or self.app,
                              stdin=subprocess.DEVNULL if stdin is None else None, errors="replace")
        return Result(done.returncode, done.stdout, done.stderr)

    def sh(self, command, shell="zsh", **kw):
        """Run a command line through the alias, as the agent."""
        return self.box("--", shell, "-c", command, **kw)

    def run_ok(self, command, **kw):
        r = self.sh(command, **kw)
        self.assertEqual(r.status, 0, r.err)
        return r

    def records(self):
        """Decisions of all runs, in order."""
        rows = []
        for line in self.record_lines():
            doc = json.loads(line)
            for res in doc.get("resourceLogs", []):
                for scope in res["scopeLogs"]:
                    if scope["scope"]["name"] != "strands-box.policy":
                        continue
                    for rec in scope["logRecords"]:
                        rows.append(Record(rec))
        return rows

    def record_lines(self):
        path = os.path.join(self.box_dir, "private/telemetry/records.jsonl")
        with open(path, encoding="utf-8") as f:
            return f.read().splitlines()

    def brief(self):
        return [(r.action, r.target, r.verdict, r.rule) for r in self.records()]

    def forget_records(self):
        open(os.path.join(self.box_dir, "private/telemetry/records.jsonl"), "w").close()

    def assert_refused_start(self, fragment, *args, **kw):
        """box run refuses with one error line that holds the fragment, and the agent never ran."""
        marker = os.path.join(self.app, "ran")
        self.assertFalse(os.path.exists(marker))
        r = self.box(*(args or ("--", "/usr/bin/touch", marker)), **kw)
        errors = [x for x in r.err.splitlines() if x.startswith("box: error: ")]
        self.assertEqual(r.status, 1, r.err)
        self.assertEqual(len(errors), 1, r.err)
        self.assertIn(fragment, errors[0])
        self.assertFalse(os.path.exists(marker))
        return errors[0]


class Record:
    def __init__(self, rec):
        self.attrs = {}
        for a in rec["attributes"]:
            value = next(iter(a["value"].values()))
            if isinstance(value, dict):
                value = [next(iter(v.values())) for v in value.get("values", [])]
            self.attrs[a["key"]] = value
        self.trace, self.span = rec["traceId"], rec["spanId"]

        def get(key):
            return self.attrs.get("strands.box.policy." + key)
        self.action, self.target, self.verdict = get("action"), get("resource"), get("verdict")
        self.rule, self.cause, self.description, self.reason = get("rule"), get("cause"), get("description"), get("reason")


class Origin:
    """An HTTP(S) server on loopback that remembers every request."""

    def __init__(self, tls=None, status=200, body=b"hello\n"):
        self.requests, self.connections = [], 0
        origin = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self):
                origin.connections += 1
                super().setup()

            def log_message(self, *args):
                pass

            def serve(self):
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                origin.requests.append((self.command, self.path, dict(self.headers), data))
                self.send_response(origin.status)
                self.send_header("Content-Length", str(len(origin.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(origin.body)

            do_GET = do_POST = do_PUT = do_HEAD = do_DELETE = serve

        self.status, self.body = status, body
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.chain)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Authority:
    """A certificate authority for one test and a certificate for some names."""

    def __init__(self, folder, *names):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        self.ca, self.chain = os.path.join(folder, "ca.pem"), os.path.join(folder, "server.pem")
        curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        self.openssl("req", "-x509", *curve, "-days", "2", "-subj", "/CN=Test CA", "-keyout", "ca.key", "-out", "ca.pem")
        self.openssl("req", "-new", *curve, "-subj", "/CN=" + names[0], "-keyout", "server.key", "-out", "server.csr")
        with open(os.path.join(folder, "ext"), "w", encoding="ascii") as f:
            f.write("subjectAltName=" + ",".join("DNS:" + n for n in names) + "\n")
        self.openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                     "-extfile", "ext", "-out", "server.crt")
        with open(self.chain, "w", encoding="ascii") as out:
            for name in ("server.key", "server.crt"):
                with open(os.path.join(folder, name), encoding="ascii") as f:
                    out.write(f.read())

    def openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.folder, check=True, capture_output=True)


def processes_of(marker):
    """Pids whose environment, command line or working tree mentions the marker (a box directory)."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        if int(pid) == os.getpid():
            continue
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                if marker.encode() in f.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


def wait_for(condition, seconds=10):
    """Poll for something another process does; the tests never rely on how long it takes."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


