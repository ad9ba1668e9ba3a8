"""The world around one gateway: a monitor that decides by a Python function, a box-dial that connects to local origins, origins with and
without TLS that write down every byte they receive, and clients. Frames as in src/gateway/proto.h and src/dial/proto.h."""

import os
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import unittest

MON_HELLO, MON_START, MON_STOP = 1, 16, 18
MON_ASK_CONNECT, MON_ASK_HTTP, MON_VERDICT, MON_DONE_CONNECT, MON_DONE_HTTP = 35, 36, 48, 66, 67
DIAL_CONNECT, DIAL_CANCEL, DIAL_SOCKET, DIAL_DENIED, DIAL_FAILED, DIAL_FLOOR = 300, 301, 316, 317, 318, 332
GW_PEM, GW_ROUTE, GW_LISTENER, GW_UNLISTEN, GW_LEAF = 400, 401, 408, 409, 410
GW_ASK_LEAF, GW_CONTROL = 424, 425
ROUTE_NONE = 0xFFFF
RIG = os.environ["GATEWAY_RIG"]
CONFINED = os.environ.get("GATEWAY_CONFINED")  # folder with box-gateway and box-dial: run those, confined
LIMIT = 20  # seconds any single wait may take


def text(s):
    b = s.encode() if isinstance(s, str) else s
    return struct.pack(">I", len(b)) + b


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def num(self, fmt):
        n = struct.calcsize(fmt)
        (v,) = struct.unpack_from(">" + fmt, self.data, self.at)
        self.at += n
        return v

    def str(self):
        n = self.num("I")
        self.at += n
        return self.data[self.at - n:self.at]


class Channel:
    """One end of an ipc pair."""

    def __init__(self, sock):
        self.sock = sock
        self.lock = threading.Lock()

    def send(self, kind, ident, body=b"", fds=()):
        frame = struct.pack(">IHHI", len(body), kind, len(fds), ident) + body
        with self.lock:
            if fds:
                socket.send_fds(self.sock, [frame], list(fds))
            else:
                self.sock.send(frame)

    def recv(self):
        """(type, id, Reader, fds), or None at the end."""
        try:
            data, fds, _, _ = socket.recv_fds(self.sock, 200000, 8)
        except OSError:
            return None
        if not data:
            return None
        _, kind, _, ident = struct.unpack_from(">IHHI", data)
        return kind, ident, Reader(data[12:]), fds


def pair():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for s in (a, b):
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 262144)
    return a, b


def start(program, fd, env):
    """Start the gateway or box-dial; returns the process and the pid of the program itself."""
    if not CONFINED:
        env["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "")
        p = subprocess.Popen([RIG, program, str(fd)], pass_fds=[fd], env=env)
        return p, p.pid
    path = os.path.join(CONFINED, program, "box-" + program)
    p = subprocess.Popen([RIG, "confined", program, str(fd), path], pass_fds=[fd], stdout=subprocess.PIPE, text=True)
    pid = p.stdout.readline()
    p.stdout.close()
    if not pid:
        raise unittest.SkipTest("this machine does not let workers be confined")
    return p, int(pid)


class Authority:
    """A CA of src/monitor/ca.c."""

    def __init__(self, name):
        self.p = subprocess.Popen([RIG, "ca", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.lock = threading.Lock()
        self.pem = self._block()

    def _line(self):
        """A line, or a failure that says so: an empty certificate would show as a handshake's trouble much later (with no CA a client
        falls back to the system's, and finds "unable to get local issuer certificate")."""
        line = self.p.stdout.readline()
        if not line.endswith("\n"):
            raise RuntimeError(f"the CA of the test ended with status {self.p.wait(LIMIT)}")
        if line.startswith("error"):
            raise ValueError(line.strip())
        return line

    def _block(self):
        lines = []
        while (line := self._line()) != "\n":
            lines.append(line)
        if not lines or not lines[0].startswith("-----BEGIN CERTIFICATE-----"):
            raise RuntimeError(f"the CA of the test said {lines[:1]}")
        return "".join(lines)

    def _ask(self, line):
        self.p.stdin.write(line + "\n")
        self.p.stdin.flush()

    def leaf(self, host, spki):
        with self.lock:
            self._ask(f"leaf {host} {spki.hex()}")
            return bytes.fromhex(self._line())

    def server(self, host):
        with self.lock:
            self._ask(f"server {host}")
            return self._block()

    def close(self):
        self.p.stdin.close()
        self.p.wait(LIMIT)
        self.p.stdout.close()


def read_head(f):
    """A head from a buffered reader: (first line, [(name, value)], raw), or None at the end."""
    raw = b""
    while not raw.endswith(b"\r\n\r\n"):
        line = f.readline()
        if not line:
            return None
        raw += line
    lines = raw[:-4].split(b"\r\n")
    fields = [tuple(x.strip() for x in line.split(b":", 1)) for line in lines[1:]]
    return lines[0], fields, raw


def field(fields, name):
    got = [v for n, v in fields if n.lower() == name.lower().encode()]
    return got[0] if got else None


def read_body(f, fields, no_body=False):
    """(body, trailers); raises EOFError when it is cut short."""
    if no_body:
        return b"", []
    if (field(fields, "Transfer-Encoding") or b"").lower() == b"chunked":
        body = b""
        while True:
            line = f.readline()
            if not line.endswith(b"\r\n"):
                raise EOFError("chunk size")
            n = int(line, 16)
            if n == 0:
                break
            data = f.read(n + 2)
            if len(data) != n + 2:
                raise EOFError("chunk")
            body += data[:-2]
        trailers = []
        while True:
            line = f.readline()
            if line == b"\r\n":
                return body, trailers
            if not line:
                raise EOFError("trailer")
            trailers.append(line[:-2])
    if field(fields, "Content-Length") is not None:
        n = int(field(fields, "Content-Length"))
        body = f.read(n)
        if len(body) != n:
            raise EOFError("body")
        return body, []
    return None, []


class Origin:
    """A server. handle(origin, request, connection file) answers; requests are kept."""

    def __init__(self, handle, context=None):
        self.handle, self.context = handle, context
        self.requests, self.raw, self.connections = [], [], 0
        self.ragged = False  # end TLS without close_notify
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.sock.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                c, _ = self.sock.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(c,), daemon=True).start()

    def _serve(self, c):
        try:
            c.settimeout(LIMIT)
            if self.context:
                c = self.context.wrap_socket(c, server_side=True)
            f = c.makefile("rwb", buffering=65536)
            while True:
                head = read_head(f)
                if head is None:
                    break
                method, path, _ = head[0].split(b" ")
                request = {"method": method.decode(), "path": path.decode(), "fields": head[1], "raw": head[2], "f": f, "c": c}
                self.raw.append(head[2])
                self.requests.append(request)
                if self.handle(self, request, f) is False:
                    break
                f.flush()
            f.close()
            if self.context and not self.ragged:
                c.unwrap()
            c.close()
        except (OSError, EOFError, ValueError):
            c.close()

    def close(self):
        self.sock.close()


class World:
    """A running gateway. decide(request dict) returns None to permit, a text to deny, or a dict(edits=[(op, name, value)], redact=[…])."""

    def __init__(self, names=None, routes=(), roots=b"", trusts=None, limits=(0, 0, 0, 0), decide=None):
        self.ca = Authority("test")
        self.names = names or {}
        self.decide = decide or (lambda r: None)
        self.asked, self.done, self.controls, self.connects, self.cancelled = [], [], [], [], []
        self.leaves = 0
        self.changed = threading.Condition()
        ours, theirs = pair()
        self.p, self.pid = start("gateway", theirs.fileno(), {"SSLKEYLOGFILE": "/dev/full"})
        theirs.close()
        self.mon = Channel(ours)
        kind, _, body, _ = self.mon.recv()
        assert kind == MON_HELLO and body.num("I") == 1 and body.str() == b"box-gateway"
        self._pem(ROUTE_NONE, roots)
        for i, r in enumerate(routes):
            self._route(i, r)
        for i, pem in (trusts or {}).items():
            self._pem(i, pem)
        dial_ours, dial_theirs = pair()
        self.mon.send(MON_START, 0, struct.pack(">IIII", *limits), [dial_theirs.fileno()])
        dial_theirs.close()
        self.dial = Channel(dial_ours)
        threading.Thread(target=self._monitor, daemon=True).start()
        threading.Thread(target=self._dial, daemon=True).start()
        self.listeners = {}
        self.listen(1)

    def _pem(self, target, pem):
        pem = pem.encode() if isinstance(pem, str) else pem
        for i in range(0, len(pem), 1000):  # small chunks on purpose
            self.mon.send(GW_PEM, 0, struct.pack(">H", target) + text(pem[i:i + 1000]))

    def _route(self, index, r):
        b = struct.pack(">H", index) + text(r.get("name", "r%d" % index)) + struct.pack(">H", len(r["dests"]))
        for host, sub, port, path, suffix in r["dests"]:
            b += text(host) + struct.pack(">BH", sub, port) + text(path) + struct.pack(">B", suffix)
        b += text(r.get("header", "Authorization")) + text(r.get("prefix", "Bearer ")) + text(r["placeholder"])
        self.mon.send(GW_ROUTE, 0, b + struct.pack(">B", r.get("inject", 0)))

    def listen(self, sandbox):
        s = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.mon.send(GW_LISTENER, 0, struct.pack(">I", sandbox) + text("test"), [s.fileno()])
        self.listeners[sandbox] = s.getsockname()[1]
        s.close()

    def _note(self, where, what):
        with self.changed:
            where.append(what)
            self.changed.notify_all()

    def wait(self, what, why="condition"):
        end = time.monotonic() + LIMIT
        with self.changed:
            while not what():
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError(why)
                self.changed.wait(left)

    def _monitor(self):
        ticket = 0
        while (m := self.mon.recv()) is not None:
            kind, ident, b, _ = m
            if kind == GW_ASK_LEAF:
                host, spki = b.str().decode(), b.str()
                self.leaves += 1
                try:
                    self.mon.send(GW_LEAF, ident, b"\1" + text(self.ca.leaf(host, spki)))
                except ValueError as e:
                    self.mon.send(GW_LEAF, ident, b"\0" + text(str(e)))
            elif kind == MON_ASK_HTTP:
                r = {"sandbox": b.num("I"), "connection": b.num("Q"), "host": b.str().decode(), "port": b.num("H"),
                     "method": b.str().decode(), "path": b.str().decode(), "body_bytes": b.num("Q"), "intercepted": b.num("B"),
                     "route": b.num("H"), "token": b.num("B"), "traceparent": b.str().decode()}
                ticket += 1
                r["ticket"] = ticket
                self._note(self.asked, r)
                verdict = self.decide(r)
                if isinstance(verdict, str):
                    self.mon.send(MON_VERDICT, ident, b"\0\0\0" + text(verdict))
                    continue
                verdict = verdict or {}
                out = struct.pack(">BQH", 1, ticket, len(verdict.get("edits", [])))
                for op, name, value in verdict.get("edits", []):
                    out += struct.pack(">B", op) + text(name) + text(value)
                out += struct.pack(">H", len(verdict.get("redact", [])))
                for s in verdict.get("redact", []):
                    out += text(s)
                self.mon.send(MON_VERDICT, ident, out)
            elif kind == MON_DONE_HTTP:
                self._note(self.done, (b.num("Q"), b.num("H"), b.num("Q")))
            elif kind == GW_CONTROL:
                self._note(self.controls, {"sandbox": b.num("I"), "connection": b.num("Q"), "what": b.num("B"), "host": b.str().decode(),
                                           "port": b.num("H"), "method": b.str().decode(), "path": b.str().decode(), "text": b.str().decode()})

    def _dial(self):
        while (m := self.dial.recv()) is not None:
            kind, ident, b, _ = m
            if kind == DIAL_CANCEL:
                self._note(self.cancelled, ident)
                continue
            host, port, sandbox = b.str().decode(), b.num("H"), b.num("I")
            self._note(self.connects, (host, port, sandbox))
            target = self.names.get((host, port), "failed")
            if target == "failed":
                self.dial.send(DIAL_FAILED, ident, b"\1" + text("cannot resolve " + host))
            elif target == "never":
                pass
            elif isinstance(target, str):
                self.dial.send(DIAL_DENIED, ident, text(target))
            else:
                s = socket.create_connection(("127.0.0.1", target))
                self.dial.send(DIAL_SOCKET, ident, text("127.0.0.1"), [s.fileno()])
                s.close()

    def client(self, sandbox=1):
        s = socket.create_connection(("127.0.0.1", self.listeners[sandbox]))
        s.settimeout(LIMIT)
        return s

    def tls(self, host, port=443, sni=None, no_sni=False, alpn=("http/1.1",)):
        """CONNECT and TLS; returns the TLS socket."""
        s = self.client()
        name = f"[{host}]" if ":" in host else host
        s.sendall(f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            c = s.recv(1)
            if not c:
                raise ConnectionError(head)
            head += c
        if not head.startswith(b"HTTP/1.1 200 "):
            s.close()
            raise PermissionError(head)
        ctx = ssl.create_default_context(cadata=self.ca.pem)
        if alpn:
            ctx.set_alpn_protocols(list(alpn))
        if no_sni or (sni is not None and sni != host):
            ctx.check_hostname = False
        return ctx.wrap_socket(s, server_hostname=None if no_sni else (sni or host))

    def rss_kb(self, what="VmHWM"):
        with open(f"/proc/{self.pid}/status") as f:
            for line in f:
                if line.startswith(what):
                    return int(line.split()[1])

    def close(self):
        """Ends the gateway as the monitor does; its exit status tells about leaks under a sanitizer."""
        try:
            self.mon.send(MON_STOP, 0)
        except OSError:
            pass
        status = self.p.wait(LIMIT)
        self.mon.sock.shutdown(socket.SHUT_RDWR)
        self.dial.sock.shutdown(socket.SHUT_RDWR)
        self.mon.sock.close()
        self.dial.sock.close()
        self.ca.close()
        return status


def exchange(sock, data, head_request=False):
    """Send bytes, read one reply: (status, fields, body, trailers)."""
    sock.sendall(data)
    return reply(sock.makefile("rb"), head_request)


def reply(f, head_request=False):
    head = read_head(f)
    if head is None:
        raise EOFError("no reply")
    status = int(head[0].split(b" ")[1])
    none = head_request or status < 200 or status in (204, 304)
    body, trailers = read_body(f, head[1], none)
    if body is None:
        body = f.read()
    return status, head[1], body, trailers


def server_context(authority, host):
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as f:
        f.write(authority.server(host))
        f.flush()
        ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        ctx.load_cert_chain(f.name)
    return ctx
