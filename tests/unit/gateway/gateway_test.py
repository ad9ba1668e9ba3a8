#!/usr/bin/env python3
"""The whole gateway against a scripted monitor, box-dial, origins and clients (rig.py)."""

import socket
import ssl
import struct
import threading
import time
import unittest

import rig

PLACEHOLDER = "strands_box_" + "ab" * 32
SECRET = "xoxb-real-secret-4711"
MARKER = "x-strands-box-egress"


def answer(f, body=b"", status="200 OK", fields=()):
    f.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n".encode())
    for name, value in fields:
        f.write(f"{name}: {value}\r\n".encode())
    f.write(b"\r\n" + body)


def serve(origin, r, f):
    """The origin's pages."""
    path = r["path"].split("?")[0]
    if (rig.field(r["fields"], "Expect") or b"") == b"100-continue" and path != "/refuse":
        f.write(b"HTTP/1.1 100 Continue\r\nX-Note: go\r\n\r\n")
        f.flush()
    if path == "/refuse":
        answer(f, b"too large", "413 Content Too Large")
        return None
    if path == "/upload":
        n, left = 0, int(rig.field(r["fields"], "Content-Length") or -1)
        while left > 0:
            data = f.read(min(left, 65536))
            if not data:
                return False
            n, left = n + len(data), left - len(data)
        r["got"] = n
        answer(f, str(n).encode())
        return None
    body, trailers = rig.read_body(f, r["fields"])
    r["body"], r["trailers"] = body, trailers
    if path == "/reflect":
        answer(f, r["raw"] + (body or b""), fields=[("X-Reflect", (rig.field(r["fields"], "Authorization") or b"").decode())])
    elif path.startswith("/big/"):
        n = int(path[5:])
        f.write(f"HTTP/1.1 200 OK\r\nContent-Length: {n}\r\n\r\n".encode())
        block = bytes(range(256)) * 256
        while n:
            f.write(block[:n])
            n -= min(n, len(block))
    elif path == "/events":
        f.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        f.flush()
        for i in range(3):
            origin.gate.acquire(timeout=rig.LIMIT)
            data = f"data: {i} {SECRET if i == 1 else 'x'}\n\n".encode()
            f.write(b"%x\r\n%s\r\n" % (len(data), data))
            f.flush()
        f.write(b"0\r\n\r\n")
    elif path == "/split":  # the secret over chunk borders
        whole = f"a{SECRET}b{SECRET[:-1]}c".encode()
        f.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n")
        for i in range(len(whole)):
            f.write(b"1;ext=1\r\n%s\r\n" % whole[i:i + 1])
            f.flush()
        f.write(b"0\r\nX-T: %s\r\nContent-Length: 5\r\n\r\n" % SECRET.encode())
    elif path == "/gzip":
        answer(f, b"\x1f\x8b", fields=[("Content-Encoding", "gzip")])
    elif path == "/close":
        f.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nuntil the end")
        return False
    elif path == "/short":
        f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
        return False
    elif path == "/both":
        f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
        return False
    elif path == "/silent":
        return False
    elif path == "/switch":
        f.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n")
    elif path == "/early":
        f.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n")
        answer(f, b"after hints")
    elif path == "/empty":
        f.write(b"HTTP/1.1 204 No Content\r\n\r\n")
    elif path == "/marker":
        answer(f, b"mine", "403 Forbidden", [(MARKER, "refused"), ("Alt-Svc", 'h3=":443"'), ("Connection", "x-hop"), ("X-Hop", "1")])
    elif path == "/extra":  # a reply and bytes that nobody asked for
        answer(f, b"one")
        f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo")
    elif r["method"] == "HEAD":
        f.write(b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n")
    else:
        answer(f, b"hello " + r["path"].encode())
    return None


def judge(r):
    if r["path"].startswith("/deny"):
        return f"policy denied this operation on '{r['host']}:{r['port']}{r['path']}' [policy: no]: Not here."
    if r["route"] != rig.ROUTE_NONE:
        return {"edits": [(2, "Authorization", "Bearer " + SECRET)], "redact": [SECRET]}
    return None


class Plain(unittest.TestCase):
    def setUp(self):
        self.origin = rig.Origin(serve)
        names = {("a.test", 80): self.origin.port, ("b.test", 80): self.origin.port, ("a.test", 8080): self.origin.port,
                 ("10.0.0.1", 80): self.origin.port, ("::5:1", 80): self.origin.port,
                 ("no.test", 80): "policy denied this operation on 'no.test:80' [default-deny]: No permit policy matched this request.",
                 ("slow.test", 80): "never"}
        routes = [{"dests": [("cred.test", 0, 0, "", 0)], "placeholder": PLACEHOLDER}]
        names["cred.test", 80] = self.origin.port
        self.w = rig.World(names, routes, decide=judge)

    def tearDown(self):
        self.assertEqual(self.w.close(), 0)
        self.origin.close()

    def get(self, s, target, extra="", method="GET", host=None):
        host = host or target.split("/")[2]
        return rig.exchange(s, f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode(), method == "HEAD")

    def test_keep_alive_and_reuse(self):
        s = self.w.client()
        for i in range(5):
            status, _, body, _ = self.get(s, f"http://a.test/p{i}?q=%20{i}")
            self.assertEqual((status, body), (200, f"hello /p{i}?q=%20{i}".encode()))
        self.assertEqual(self.get(s, "http://b.test/")[0], 200)
        self.assertEqual(self.w.connects, [("a.test", 80, 1), ("b.test", 80, 1)])
        self.assertEqual([r["path"] for r in self.w.asked], ["/p0", "/p1", "/p2", "/p3", "/p4", "/"])
        self.assertEqual({r["connection"] for r in self.w.asked}, {self.w.asked[0]["connection"]})
        self.assertEqual(self.w.asked[0]["intercepted"], 0)
        self.w.wait(lambda: len(self.w.done) == 6)
        self.assertEqual([d[1] for d in self.w.done], [200] * 6)

    def test_head_is_written_anew(self):
        s = self.w.client()
        status, _, _, _ = self.get(s, "http://A.test./a/./b/../%7euser/%2f?x#y".replace("#y", ""), host="a.TEST:80",
                                   extra="Connection: keep-alive, X-Drop\r\nX-Drop: 1\r\nProxy-Connection: keep-alive\r\n"
                                   "TE: trailers\r\nUpgrade: h2c\r\nKeep-Alive: 5\r\nProxy-Authorization: Basic eDp5\r\nX-Stay:  a b \r\n")
        self.assertEqual(status, 200)
        self.assertEqual(self.origin.raw[0], b"GET /a/~user/%2F?x HTTP/1.1\r\nHost: a.test\r\nX-Stay: a b\r\n\r\n")
        self.assertEqual(self.w.asked[0]["path"], "/a/~user/%2F")
        self.assertEqual(self.w.asked[0]["host"], "a.test")

    def test_port_in_host(self):
        self.assertEqual(self.get(self.w.client(), "http://a.test:8080/")[0], 200)
        self.assertIn(b"Host: a.test:8080\r\n", self.origin.raw[0])

    def test_ip_literals(self):
        s = self.w.client()
        self.assertEqual(self.get(s, "http://10.0.0.1/")[0], 200)
        self.assertEqual(self.get(s, "http://[::FFFF:10.0.0.1]/")[0], 200)
        self.assertEqual(self.get(s, "http://[0:0:0:0:0:0:5:1]/", host="[::5:1]")[0], 502)
        self.assertEqual(self.w.connects[:1], [("10.0.0.1", 80, 1)])

    def test_denials(self):
        s = self.w.client()
        status, fields, body, _ = self.get(s, "http://a.test/deny/x")
        self.assertEqual(status, 403)
        self.assertEqual(rig.field(fields, MARKER), b"refused")
        self.assertEqual(body, b"http:request gate: policy denied this operation on 'a.test:80/deny/x' [policy: no]: Not here.")
        status, fields, body, _ = self.get(s, "http://no.test/")
        self.assertEqual((status, rig.field(fields, MARKER)), (403, b"refused"))
        self.assertEqual(body, b"policy denied this operation on 'no.test:80' [default-deny]: No permit policy matched this request.")
        status, fields, _, _ = self.get(s, "http://gone.test/")
        self.assertEqual((status, rig.field(fields, MARKER)), (502, None))
        self.assertEqual(self.origin.requests, [])

    def test_denied_post_keeps_the_connection_when_its_body_is_here(self):
        s = self.w.client()
        status, fields, _, _ = rig.exchange(s, b"POST http://a.test/deny HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello")
        self.assertEqual((status, rig.field(fields, "Connection")), (403, None))
        self.assertEqual(self.get(s, "http://a.test/p")[2], b"hello /p")
        self.assertEqual([r["path"] for r in self.origin.requests], ["/p"])

    def test_denied_upload_can_be_read(self):
        s = self.w.client()
        s.sendall(b"POST http://a.test/deny HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5000000\r\n\r\n" + b"u" * 4999999)
        f = s.makefile("rb")
        self.assertEqual(rig.reply(f)[0], 403)
        self.assertEqual(f.read(), b"")

    def test_denied_post_ends_the_connection(self):
        s = self.w.client()
        s.sendall(b"POST http://a.test/deny HTTP/1.1\r\nHost: a.test\r\nContent-Length: 10\r\n\r\n01234")
        f = s.makefile("rb")
        status, fields, _, _ = rig.reply(f)
        self.assertEqual((status, rig.field(fields, "Connection")), (403, b"close"))
        self.assertEqual(f.read(), b"")
        self.assertEqual(self.origin.requests, [])

    def test_bodies(self):
        s = self.w.client()
        status, _, body, _ = rig.exchange(s, b"POST http://a.test/reflect HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\n\r\nhello")
        self.assertTrue(body.endswith(b"\r\n\r\nhello"), body)
        status, _, body, _ = rig.exchange(s, b"POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: Chunked\r\n\r\n"
                                          b"5;a=\"b\"\r\nhello\r\n00002\r\n!!\r\n0\r\nX-Sum: 1\r\nHost: evil\r\nAuthorization: evil\r\n\r\n")
        self.assertEqual(status, 200)
        self.assertEqual(self.origin.requests[1]["body"], b"hello!!")
        self.assertEqual(self.origin.requests[1]["trailers"], [b"X-Sum: 1"])
        self.assertEqual([r["body_bytes"] for r in self.w.asked], [5, 0])
        self.w.wait(lambda: len(self.w.done) == 2)
        self.assertEqual([d[2] for d in self.w.done], [5, 7])

    def test_replies(self):
        s = self.w.client()
        status, fields, body, _ = self.get(s, "http://a.test/close")
        self.assertEqual(body, b"until the end")
        self.assertEqual(rig.field(fields, "Transfer-Encoding"), b"chunked")
        status, fields, body, _ = self.get(s, "http://a.test/", method="HEAD")
        self.assertEqual((status, rig.field(fields, "Content-Length")), (200, b"12345"))
        self.assertEqual(self.get(s, "http://a.test/empty")[0], 204)
        status, fields, body, _ = self.get(s, "http://a.test/marker")
        self.assertEqual((status, body), (403, b"mine"))
        for name in (MARKER, "Alt-Svc", "X-Hop", "Connection"):
            self.assertIsNone(rig.field(fields, name), name)
        s.sendall(b"GET http://a.test/early HTTP/1.1\r\nHost: a.test\r\n\r\n")
        f = s.makefile("rb")
        self.assertEqual(rig.reply(f)[0], 103)
        self.assertEqual(rig.reply(f)[2], b"after hints")
        status, _, body, _ = self.get(s, "http://a.test/extra")
        self.assertEqual(body, b"one")
        self.assertEqual(self.get(s, "http://a.test/p")[2], b"hello /p")

    def test_http_1_0(self):
        s = self.w.client()
        status, fields, body, _ = rig.exchange(s, b"GET http://a.test/split HTTP/1.0\r\n\r\n")
        self.assertEqual((status, rig.field(fields, "Transfer-Encoding"), rig.field(fields, "Connection")), (200, None, b"close"))
        self.assertEqual(body, f"a{SECRET}b{SECRET[:-1]}c".encode())
        self.assertIn(b" HTTP/1.1\r\nHost: a.test\r\n", self.origin.raw[0])

    def test_bad_replies(self):
        for path in ("both", "silent", "switch"):
            status, fields, body, _ = self.get(self.w.client(), f"http://a.test/{path}")
            self.assertEqual((status, rig.field(fields, MARKER)), (502, None), body)
        s = self.w.client()
        s.sendall(b"GET http://a.test/short HTTP/1.1\r\nHost: a.test\r\n\r\n")
        self.assertEqual(s.makefile("rb").read(), b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")

    def test_expect(self):
        s = self.w.client()
        s.sendall(b"POST http://a.test/reflect HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        f = s.makefile("rb")
        self.assertEqual(rig.reply(f)[0], 100)
        s.sendall(b"ok")
        self.assertTrue(rig.reply(f)[2].endswith(b"ok"))
        s.sendall(b"POST http://a.test/refuse HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        self.assertEqual(rig.reply(f)[0], 413)
        self.assertEqual(f.read(), b"")
        s = self.w.client()
        self.assertEqual(self.get(s, "http://a.test/", extra="Expect: 100-continuex\r\n")[0], 400)

    def test_pipelined(self):
        s = self.w.client()
        s.sendall(b"".join(f"GET http://{h}.test/{i} HTTP/1.1\r\nHost: {h}.test\r\n\r\n".encode() for i, h in enumerate("abab")) +
                  b"POST http://a.test/deny HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\nGET http://a.test/last HTTP/1.1\r\nHost: a.test\r\n\r\n")
        f = s.makefile("rb")
        got = [rig.reply(f) for _ in range(6)]
        self.assertEqual([g[0] for g in got], [200] * 4 + [403, 200])
        self.assertEqual([g[2] for g in got if g[0] == 200], [b"hello /0", b"hello /1", b"hello /2", b"hello /3", b"hello /last"])

    def test_pipelined_large_heads(self):
        s = self.w.client()
        data = b"".join(f"GET http://a.test/{i} HTTP/1.1\r\nHost: a.test\r\nX: {'h' * (20000 + 1711 * i)}\r\n\r\n".encode() for i in range(20))
        threading.Thread(target=s.sendall, args=(data,)).start()
        f = s.makefile("rb")
        self.assertEqual([rig.reply(f)[2] for _ in range(20)], [f"hello /{i}".encode() for i in range(20)])

    def test_smuggling(self):
        """Refused with 400 and close; /smuggled never reaches the origin."""
        head = b"POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\n"
        tail = b"GET http://a.test/smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"
        cases = [
            head + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", head + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            head + b"Content-Length: 5, 5\r\n\r\nhello", head + b"Content-Length: +5\r\n\r\nhello", head + b"Content-Length: 5 5\r\n\r\nhello",
            head + b"Content-Length: 111111111111111111111111111111\r\n\r\n", head + b"Content-Length: -1\r\n\r\n",
            head + b"Content-Length: 0x5\r\n\r\nhello", head + b"Content-Length:\r\n\r\n",
            head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            head + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
            head + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", head + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
            head + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            head + b"Transfer-Encoding: identity\r\n\r\n", head + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
            head + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", head + b" folded: x\r\n\r\n", head + b"X: a\r\n b\r\n\r\n",
            head + b"X: a\n\r\n\r\n", head + b"X: a\rY: b\r\n\r\n", head + b": empty\r\n\r\n", head + b"X: a\0b\r\n\r\n", head + b"nocolon\r\n\r\n",
            head + b"Host: a.test\r\n\r\n", b"POST http://a.test/x HTTP/1.1\r\n\r\n", head.replace(b"a.test\r\n", b"\r\n") + b"\r\n",
            b"GET  http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", b"GET\thttp://a.test/x\tHTTP/1.1\r\nHost: a.test\r\n\r\n",
            b"GET http://a.test/x\r\nHost: a.test\r\n\r\n", b"GET http://a.test/x HTTP/1.10\r\nHost: a.test\r\n\r\n",
            b"GET http://a.test/x HTTP/2.0\r\nHost: a.test\r\n\r\n", b"GET http://a.test/x http/1.1\r\nHost: a.test\r\n\r\n",
            b"GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n", b"GET https://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n",
            b"GET http://a.test/x#y HTTP/1.1\r\nHost: a.test\r\n\r\n", b"GET http://a.test/%zz HTTP/1.1\r\nHost: a.test\r\n\r\n",
            b"GET http://a.test/%00 HTTP/1.1\r\nHost: a.test\r\n\r\n", b"GET http://a.test/a\\b HTTP/1.1\r\nHost: a.test\r\n\r\n",
            b"GET http://u@a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", b"GET http://a.test:080/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            b"\r\n\r\nGET http://a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00",
            b"CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\nContent-Length: 3\r\n\r\nabc",
            b"CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
        ]
        for case in cases:
            with self.subTest(case):
                s = self.w.client()
                s.sendall(case + tail)
                f = s.makefile("rb")
                status, fields, _, _ = rig.reply(f)
                self.assertEqual((status, rig.field(fields, MARKER), rig.field(fields, "Connection")), (400, None, b"close"))
                self.assertEqual(f.read(), b"")
        self.assertEqual(self.origin.requests, [])
        self.assertEqual(self.w.asked, [])

    def test_bad_chunks(self):
        """The request was judged and begun; the origin must never see it as complete."""
        head = b"POST http://a.test/x HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n"
        tail = b"\r\n0\r\n\r\nGET http://a.test/smuggled HTTP/1.1\r\nHost: a.test\r\n\r\n"
        for bad in (b"+5\r\nhello", b" 5\r\nhello", b"5 \r\nhello", b"0x5\r\nhello", b"5\nhello", b"11111111111111111\r\nhello", b"\r\nhello",
                    b"5\r\nhelloX", b"5;\r\nhello", b"5;a=\r\nhello", b"5;a=\"b\r\nhello", b"g\r\n", b"5;" + b"a" * 9000 + b"\r\nhello",
                    b"0\r\nbad trailer\r\n\r\n", b"0\r\n folded: x\r\n\r\n", b"8000000000000000\r\nhello"):
            with self.subTest(bad):
                s = self.w.client()
                s.sendall(head + bad + tail)
                status, fields, _, _ = rig.reply(s.makefile("rb"))
                self.assertEqual(status, 400)
        self.assertTrue(all(r.get("body") is None for r in self.origin.requests))
        self.assertFalse([r for r in self.origin.requests if r["path"] == "/smuggled"])

    def test_limits(self):
        s = self.w.client()
        self.assertEqual(self.get(s, "http://a.test/", extra="X: " + "a" * 60000 + "\r\n")[0], 200)
        self.assertEqual(self.get(s, "http://a.test/", extra="X: " + "a" * 66000 + "\r\n")[0], 431)
        self.assertEqual(self.get(self.w.client(), "http://a.test/", extra="X: y\r\n" * 300)[0], 431)
        self.assertEqual(self.get(self.w.client(), "http://a.test/" + "a" * 5000)[0], 414)

    def test_authorities(self):
        for host in ("evil.test\0.good.test", "evil.test%00.good.test", "good.test\t", "a..test", ".test", "0x7f.1", "0177.0.0.1", "2130706433", "127.1",
                     "good.test@evil.test", "good.test\\evil.test", "[fe80::1%25eth0]", "a" * 64 + ".test", "gööd.test", "good.test..",
                     "a.test:0", "a.test:65536", "a.test:+80", "a.test:080", "a.test:80abc", "a.test:", "::1", "[::1"):
            with self.subTest(host):
                s = self.w.client()
                s.sendall(f"GET http://{host}/ HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                self.assertEqual(rig.reply(s.makefile("rb"))[0], 400)
        self.assertEqual(self.w.connects, [])

    def test_controls(self):
        s = self.w.client()
        status, fields, body, _ = self.get(s, "http://cred.test/x", extra=f"Authorization: Bearer {PLACEHOLDER}\r\n")
        self.assertEqual((status, rig.field(fields, MARKER), body), (403, b"refused", b"credential not permitted on a plaintext request"))
        status, fields, body, _ = self.get(s, "http://a.test/", host="b.test")
        self.assertEqual((status, rig.field(fields, MARKER), body), (403, b"refused", b"request authority rejected"))
        self.assertEqual(self.get(s, "http://a.test/", method="TRACE")[0], 403)
        status, fields, body, _ = self.get(s, "http://a.test/", extra="Upgrade: websocket\r\nConnection: Upgrade\r\n")
        self.assertEqual((status, rig.field(fields, MARKER)), (501, None))
        self.w.wait(lambda: len(self.w.controls) == 4)
        self.assertEqual([c["what"] for c in self.w.controls], [2, 3, 5, 6])
        self.assertEqual(self.origin.requests, [])
        self.assertEqual(self.w.asked, [])

    def test_placeholder_elsewhere_goes_out_unchanged(self):
        s = self.w.client()
        self.get(s, f"http://a.test/{PLACEHOLDER}", extra=f"Authorization: Bearer {PLACEHOLDER}\r\n")
        self.assertIn(PLACEHOLDER.encode(), self.origin.raw[0])

    def test_dial_cancelled_when_the_client_leaves(self):
        s = self.w.client()
        s.sendall(b"GET http://slow.test/ HTTP/1.1\r\nHost: slow.test\r\n\r\n")
        self.w.wait(lambda: self.w.connects)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
        self.w.wait(lambda: self.w.cancelled)

    def test_half_closed_client(self):
        s = self.w.client()
        s.sendall(b"GET http://a.test/p HTTP/1.1\r\nHost: a.test\r\n\r\n")
        s.shutdown(socket.SHUT_WR)
        f = s.makefile("rb")
        self.assertEqual(rig.reply(f)[2], b"hello /p")
        self.assertEqual(f.read(), b"")

    def test_streams_in_constant_memory(self):
        n = 64 << 20
        s = self.w.client()
        self.get(s, "http://a.test/big/100000")
        before = self.w.rss_kb()
        s.sendall(f"POST http://a.test/upload HTTP/1.1\r\nHost: a.test\r\nContent-Length: {n}\r\n\r\n".encode())
        block = b"z" * 65536
        for _ in range(n // len(block)):
            s.sendall(block)
        self.assertEqual(rig.reply(s.makefile("rb"))[2], str(n).encode())
        self.assertEqual(self.origin.requests[-1]["got"], n)
        s.sendall(f"GET http://a.test/big/{n} HTTP/1.1\r\nHost: a.test\r\n\r\n".encode())
        f = s.makefile("rb")
        rig.read_head(f)
        left = n
        while left:
            got = len(f.read(min(left, 1 << 20)))
            self.assertTrue(got)
            left -= got
        self.assertLess(self.w.rss_kb() - before, 3000)

    def test_stopped_reader_stops_the_origin(self):
        before = self.w.rss_kb()
        s = self.w.client()
        s.sendall(b"GET http://a.test/big/200000000 HTTP/1.1\r\nHost: a.test\r\n\r\n")
        s.recv(100)
        time.sleep(0.5)
        self.assertLess(self.w.rss_kb() - before, 3000)
        s.close()

    def test_unlisten(self):
        self.w.listen(7)
        s = self.w.client(7)
        self.assertEqual(self.get(s, "http://a.test/")[0], 200)
        self.assertEqual(self.w.asked[-1]["sandbox"], 7)
        self.w.mon.send(rig.GW_UNLISTEN, 0, b"\0\0\0\7")
        self.assertEqual(s.recv(1), b"")
        self.assertEqual(self.get(self.w.client(), "http://a.test/")[0], 200)

    def test_traceparent(self):
        good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        s = self.w.client()
        self.get(s, "http://a.test/", extra=f"traceparent: {good}\r\n")
        self.get(s, "http://a.test/", extra="traceparent: evil\r\n")
        self.assertEqual([r["traceparent"] for r in self.w.asked], [good, ""])


class Limits(unittest.TestCase):
    def setUp(self):
        self.origin = rig.Origin(serve)
        self.origin.gate = threading.Semaphore(0)
        self.w = rig.World({("a.test", 80): self.origin.port}, limits=(4, 600, 700, 1000))

    def tearDown(self):
        self.assertEqual(self.w.close(), 0)
        self.origin.close()

    def test_slow_heads_and_idle_connections_end(self):
        slow, idle, stalled = self.w.client(), self.w.client(), self.w.client()
        stalled.sendall(b"GET http://a.test/events HTTP/1.1\r\nHost: a.test\r\n\r\n")
        slow.sendall(b"GET ")
        for s in (slow, idle):
            self.assertEqual(s.recv(10), b"")
        f = stalled.makefile("rb")
        self.assertEqual(rig.read_head(f)[0], b"HTTP/1.1 200 OK")
        self.assertEqual(f.read(), b"")  # cut without its last chunk
        self.w.wait(lambda: self.w.controls)
        self.assertEqual(self.w.controls[0]["what"], 7)

    def test_newcomers_are_served_while_idle_ones_hold_every_slot(self):
        held = [self.w.client() for _ in range(20)]
        s = self.w.client()
        self.assertEqual(rig.exchange(s, b"GET http://a.test/p HTTP/1.1\r\nHost: a.test\r\n\r\n")[0], 200)
        self.assertEqual(len(held), 20)


class Peers(unittest.TestCase):
    def test_a_listener_listens(self):
        """Anything else would be ready for ever and never accept: the gateway ends instead of spinning."""
        w = rig.World()
        ready, other = socket.socketpair()
        other.send(b"x")
        w.mon.send(rig.GW_LISTENER, 0, struct.pack(">I", 7) + rig.text("no listener"), [ready.fileno()])
        self.assertNotEqual(w.p.wait(rig.LIMIT), 0)
        w.close()
        ready.close()
        other.close()


class Tunnel(unittest.TestCase):
    def setUp(self):
        self.upstream = rig.Authority("upstream")
        self.origin = rig.Origin(serve, rig.server_context(self.upstream, "api.test"))
        self.origin.gate = threading.Semaphore(0)
        self.other = rig.Origin(serve, rig.server_context(self.upstream, "other.test"))
        self.ip = rig.Origin(serve, rig.server_context(self.upstream, "127.0.0.1"))
        self.stranger_ca = rig.Authority("stranger")
        self.stranger = rig.Origin(serve, rig.server_context(self.stranger_ca, "own.test"))
        names = {("api.test", 443): self.origin.port, ("free.test", 443): self.origin.port, ("other.test", 443): self.other.port,
                 ("other.test", 8443): self.other.port, ("127.0.0.1", 443): self.ip.port, ("own.test", 443): self.stranger.port,
                 ("no.test", 443): "policy denied this operation on 'no.test:443' [default-deny]: No permit policy matched this request."}
        routes = [{"dests": [("api.test", 0, 0, "", 0)], "placeholder": PLACEHOLDER},
                  {"dests": [("own.test", 0, 0, "/x", 0)], "placeholder": PLACEHOLDER + "2", "inject": 1}]
        self.w = rig.World(names, routes, roots="junk\n" + self.upstream.pem, trusts={1: self.stranger_ca.pem}, decide=judge)

    def tearDown(self):
        self.assertEqual(self.w.close(), 0)
        for o in (self.origin, self.other, self.ip, self.stranger):
            o.close()
        self.upstream.close()
        self.stranger_ca.close()

    def get(self, s, path, host, extra="", method="GET"):
        return rig.exchange(s, f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode(), method == "HEAD")

    AUTH = f"Authorization: Bearer {PLACEHOLDER}\r\n"

    def test_keep_alive(self):
        s = self.w.tls("other.test")
        self.assertEqual(s.selected_alpn_protocol(), "http/1.1")
        for i in range(5):
            self.assertEqual(self.get(s, f"/{i}", "other.test")[2], f"hello /{i}".encode())
        self.assertEqual(self.w.connects, [("other.test", 443, 1)])
        self.assertEqual(self.other.connections, 1)
        self.assertTrue(all(r["intercepted"] for r in self.w.asked))
        s2 = self.w.tls("other.test", 8443)
        self.assertEqual(self.get(s2, "/", "other.test:8443")[0], 200)
        self.assertEqual(self.w.leaves, 1)

    def test_credentials(self):
        s = self.w.tls("api.test")
        status, fields, body, _ = self.get(s, "/reflect", "api.test", self.AUTH + "Accept-Encoding: gzip, br\r\nRange: bytes=0-9\r\n")
        self.assertEqual(status, 200)
        self.assertIn(b"Authorization: Bearer " + SECRET.encode() + b"\r\n", self.origin.raw[0])
        self.assertIn(b"Accept-Encoding: identity\r\n", self.origin.raw[0])
        self.assertNotIn(PLACEHOLDER.encode(), self.origin.raw[0])
        self.assertNotIn(b"gzip", self.origin.raw[0])
        self.assertNotIn(b"Range", self.origin.raw[0])
        self.assertNotIn(SECRET.encode(), body)
        self.assertIn(b"Bearer [REDACTED]\r\n", body)
        self.assertEqual(rig.field(fields, "X-Reflect"), b"Bearer [REDACTED]")
        self.assertEqual(self.w.asked[0]["token"], 1)
        status, _, body, trailers = self.get(s, "/split", "api.test", self.AUTH)
        self.assertEqual(body, f"a[REDACTED]b{SECRET[:-1]}c".encode())
        self.assertEqual(trailers, [b"X-T: [REDACTED]"])
        status, fields, body, _ = self.get(s, "/x", "api.test", self.AUTH, "HEAD")
        self.assertEqual(rig.field(fields, "Content-Length"), b"12345")

    def test_placeholder_missing_or_wrong(self):
        for extra in ("", "Authorization: Bearer x\r\n", f"Authorization: {PLACEHOLDER}\r\n", self.AUTH + self.AUTH,
                      f"Authorization: Bearer {PLACEHOLDER}x\r\n", f"Authorization: Bearer {PLACEHOLDER.upper()}\r\n",
                      f"Authorization: Basic {PLACEHOLDER}\r\n", f"X-Api-Key: {PLACEHOLDER}\r\n", f"Cookie: t={PLACEHOLDER}\r\n"):
            with self.subTest(extra):
                s = self.w.tls("api.test")
                status, fields, body, _ = self.get(s, "/x", "api.test", extra)
                self.assertEqual((status, rig.field(fields, MARKER), body), (403, b"refused", b"blocked by egress control"))
        self.assertEqual((self.origin.requests, self.w.asked), ([], []))
        self.w.wait(lambda: len(self.w.controls) == 9)

    def test_placeholder_off_the_route(self):
        s = self.w.tls("other.test")
        self.get(s, "/reflect", "other.test", self.AUTH)
        self.assertIn(PLACEHOLDER.encode(), self.other.raw[0])
        self.assertEqual(self.w.asked[0]["route"], rig.ROUTE_NONE)

    def test_always(self):
        s = self.w.tls("own.test")
        self.assertEqual(self.get(s, "/x/y", "own.test")[0], 200)
        self.assertEqual((self.w.asked[0]["route"], self.w.asked[0]["token"]), (1, 3))
        self.assertIn(SECRET.encode(), self.stranger.raw[0])
        self.assertEqual(self.get(s, "/xy", "own.test")[0], 200)
        self.assertNotIn(SECRET.encode(), self.stranger.raw[1])

    def test_compressed_reply(self):
        s = self.w.tls("api.test")
        status, fields, body, _ = self.get(s, "/gzip", "api.test", self.AUTH)
        self.assertEqual((status, rig.field(fields, MARKER), body), (403, b"refused", b"response blocked by egress control"))
        self.w.wait(lambda: self.w.done and self.w.controls)
        self.assertEqual(self.w.done[0][1], 200)
        self.assertEqual(self.get(self.w.tls("other.test"), "/gzip", "other.test")[2], b"\x1f\x8b")

    def test_denials(self):
        with self.assertRaisesRegex(PermissionError, r"403 Forbidden\\r\\nx-strands-box-egress: refused"):
            self.w.tls("no.test")
        with self.assertRaisesRegex(PermissionError, "502 Bad Gateway"):
            self.w.tls("gone.test")
        s = self.w.tls("other.test")
        self.assertEqual(self.get(s, "/deny", "other.test")[0], 403)
        self.assertEqual(self.get(s, "/p", "other.test")[0], 200)
        self.assertEqual(self.other.connections, 1)

    def test_authority_inside(self):
        for host in ("api.test", "other.test:8443", "other.test:80"):
            s = self.w.tls("other.test")
            status, fields, body, _ = self.get(s, "/", host)
            self.assertEqual((status, rig.field(fields, MARKER), body), (403, b"refused", b"request authority rejected"))
        for data in (b"GET https://other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n", b"CONNECT api.test:443 HTTP/1.1\r\nHost: other.test\r\n\r\n"):
            self.assertEqual(rig.exchange(self.w.tls("other.test"), data)[0], 400)
        s = self.w.tls("other.test")
        self.assertEqual(self.get(s, "/p", "OTHER.test.:443")[0], 200)
        status, _, body, _ = self.get(s, "/p", "api.test")
        self.assertEqual(body, b"request authority rejected")
        self.assertEqual([r["path"] for r in self.other.requests], ["/p"])

    def test_sni(self):
        with self.assertRaises(ssl.SSLError):
            self.w.tls("other.test", sni="api.test")
        self.w.wait(lambda: self.w.controls)
        self.assertEqual((self.w.controls[0]["what"], self.w.controls[0]["host"]), (3, "other.test"))
        self.assertEqual(self.get(self.w.tls("other.test", no_sni=True), "/p", "other.test")[0], 200)
        self.assertEqual(self.get(self.w.tls("other.test", sni="OTHER.test"), "/p", "other.test")[0], 200)

    def test_plain_http_in_a_tunnel(self):
        s = self.w.client()
        s.sendall(b"CONNECT other.test:443 HTTP/1.0\r\n\r\n")
        f = s.makefile("rb")
        self.assertIn(b" 200 ", rig.read_head(f)[0])
        s.sendall(b"POST / HTTP/1.1\r\nHost: other.test\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100000)
        status, fields, body, _ = rig.reply(f)
        self.assertEqual((status, rig.field(fields, MARKER)), (400, None))
        self.assertIn(b"plain HTTP inside CONNECT", body)
        s = self.w.client()
        s.sendall(b"CONNECT other.test:443 HTTP/1.1\r\nHost: other.test:443\r\n\r\n")
        f = s.makefile("rb")
        rig.read_head(f)
        s.sendall(b"SSH-2.0-OpenSSH\r\n")
        with self.assertRaises(ConnectionResetError):
            f.read()

    def test_alpn(self):
        self.assertEqual(self.w.tls("other.test", alpn=("h2", "http/1.1")).selected_alpn_protocol(), "http/1.1")
        self.assertIsNone(self.w.tls("other.test", alpn=None).selected_alpn_protocol())
        with self.assertRaises(ssl.SSLError):
            self.w.tls("other.test", alpn=("h2",))

    def test_ip_host(self):
        s = self.w.tls("127.0.0.1")
        self.assertEqual(self.get(s, "/p", "127.0.0.1")[0], 200)

    def test_upstream_certificate(self):
        s = self.w.tls("free.test")  # the origin's certificate names api.test
        status, fields, body, _ = self.get(s, "/p", "free.test")
        self.assertEqual((status, rig.field(fields, MARKER)), (502, None))
        self.assertIn(b"mismatch", body)
        self.assertEqual(self.origin.requests, [])
        self.w.wait(lambda: self.w.done)
        self.assertEqual(self.w.done[0][1], 0)
        s = self.w.tls("own.test")  # trusted on its route's host
        self.assertEqual(self.get(s, "/p", "own.test")[0], 200)

    def test_events_are_not_held(self):
        s = self.w.tls("api.test")
        s.sendall(f"GET /events HTTP/1.1\r\nHost: api.test\r\n{self.AUTH}\r\n".encode())
        f = s.makefile("rb")
        self.assertEqual(rig.read_head(f)[0], b"HTTP/1.1 200 OK")
        self.w.wait(lambda: self.w.done)  # ::response comes with the head, not at the end
        for i, want in enumerate((b"data: 0 x\n\n", b"data: 1 [REDACTED]\n\n", b"data: 2 x\n\n")):
            self.origin.gate.release()
            got = b""
            while len(got) < len(want):
                got += f.read(int(f.readline(), 16) + 2)[:-2]
            self.assertEqual(got, want)
        self.assertEqual(f.readline(), b"0\r\n")

    def test_close_of_the_origin_reaches_the_client(self):
        s = self.w.tls("other.test")
        status, fields, body, _ = self.get(s, "/close", "other.test")
        self.assertEqual((rig.field(fields, "Connection"), body), (b"close", b"until the end"))
        self.assertEqual(s.recv(1), b"")

    def test_ragged_end_is_not_whole(self):
        self.other.ragged = True
        s = self.w.tls("other.test")
        s.sendall(b"GET /close HTTP/1.1\r\nHost: other.test\r\n\r\n")
        f = s.makefile("rb")
        self.assertEqual(rig.read_head(f)[0], b"HTTP/1.1 200 OK")
        self.assertEqual(f.read(), b"d\r\nuntil the end\r\n")  # no last chunk

    def test_big_bodies(self):
        n = 8 << 20
        s = self.w.tls("other.test")
        s.sendall(f"POST /upload HTTP/1.1\r\nHost: other.test\r\nContent-Length: {n}\r\n\r\n".encode())
        s.sendall(b"y" * n)
        self.assertEqual(rig.reply(s.makefile("rb"))[2], str(n).encode())
        status, _, body, _ = self.get(s, f"/big/{n}", "other.test")
        self.assertEqual(body, (bytes(range(256)) * 256 * (n // 65536))[:n])
        self.assertLess(self.w.rss_kb(), 60000)

    def test_secret_never_over_plain_http(self):
        s = self.w.client()
        status, _, body, _ = rig.exchange(s, f"GET http://other.test:443/x HTTP/1.1\r\nHost: other.test:443\r\n\r\n".encode())
        self.assertNotEqual(status, 200)
        self.w.decide = lambda r: {"edits": [(2, "Authorization", "Bearer " + SECRET)], "redact": [SECRET]}
        plain = rig.Origin(serve)
        self.w.names["plain.test", 80] = plain.port
        status, _, _, _ = rig.exchange(self.w.client(), b"GET http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n\r\n")
        self.assertEqual(status, 503)  # even when the verdict says so
        self.assertEqual(plain.requests, [])
        plain.close()

    def test_malformed_edits(self):
        self.w.decide = lambda r: {"edits": [(2, "X", "a\r\nY: b")], "redact": []}
        self.assertEqual(self.get(self.w.tls("other.test"), "/p", "other.test")[0], 502)
        self.w.decide = lambda r: {"edits": [(1, "x-gone", ""), (2, "X-New", "1")], "redact": []}
        self.assertEqual(self.get(self.w.tls("other.test"), "/p", "other.test", "X-Gone: 1\r\nx-new: 0\r\n")[0], 200)
        self.assertEqual(self.other.raw[0], b"GET /p HTTP/1.1\r\nHost: other.test\r\nX-New: 1\r\n\r\n")


if __name__ == "__main__":
    unittest.main()
