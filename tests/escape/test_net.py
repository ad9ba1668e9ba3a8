"""The network rows: raw bytes from inside a real box to its gateway (NET-01 to NET-04). The agent is bash, which can speak to a port and do nothing else."""
import itertools
import unittest

from harness import BoxCase, Origin

TAIL = b"GET http://good.test/smuggled HTTP/1.1\r\nHost: good.test\r\n\r\n"


def say(case):
    """bash that writes these bytes to descriptor 3. A long run of one byte is made there: a command line has its limits."""
    out = ""
    for byte, run in ((b, len(list(g))) for b, g in itertools.groupby(case)):
        if run < 1000:
            out += f"\\x{byte:02x}" * run
        else:
            out += f"' >&3; printf -v run '%{run}s' ''; printf '%s' \"${{run// /{chr(byte)}}}\" >&3; printf '"
    return f"printf '{out}' >&3; "


class Net(BoxCase):
    def setUp(self):
        super().setUp()
        self.good, self.evil = Origin(), Origin()
        self.addCleanup(self.good.close)
        self.addCleanup(self.evil.close)
        self.policy("""
@id("connect") permit (principal, action == Box::Action::"net:connect", resource) when { context.input.host == "good.test" };
@id("get") permit (principal, action == Box::Action::"http:request", resource) when { context.input.host == "good.test" };
""")
        self.config(command='["/bin/bash", "-c"]', rest=f"""
[resolve]
"good.test:80" = "127.0.0.1:{self.good.port}"
"evil.test:80" = "127.0.0.1:{self.evil.port}"
""")

    def send(self, cases):
        """Each case on a connection of its own; returns the first line of each answer."""
        script = ["port=${HTTP_PROXY##*:}", "set +m"]
        for case in cases:
            script.append("exec 3<>/dev/tcp/127.0.0.1/$port; " + say(case) +
                          "if IFS= read -r -t 5 line <&3; then echo \"$line\"; else echo none; fi; exec 3>&-")
        r = self.box("--", "\n".join(script))
        lines = r.out.splitlines()
        self.assertEqual(len(lines), len(cases), r.out + r.err)
        return lines

    def requests(self):
        return [(r.target, r.verdict) for r in self.records() if r.action == "http:request"]

    def test_one_host_parser(self):
        hosts = [b"evil.test\0.good.test", b"evil.test%00.good.test", b"evil.test\r.good.test", b"evil.test\t.good.test", b"evil.test .good.test",
                 b"good.test@evil.test", b"good.test\\evil.test", b"good.test#evil.test", b"good.test:80@evil.test", b"evil.test..", b".evil.test",
                 b"evil.test", b"EVIL.test", b"evil.test.", b"x.good.test", b"g\xd0\xbe\xd0\xbed.test", b"0x7f.1", b"0177.0.0.1", b"2130706433",
                 b"127.1", b"[::ffff:127.0.0.1]", b"[fe80::1%25eth0]", b"good.test:0", b"good.test:65536", b"good.test:+80", b"good.test:080"]
        cases = [b"GET http://" + h + b"/ HTTP/1.1\r\nHost: " + h + b"\r\n\r\n" for h in hosts]
        cases += [b"GET http://good.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n", b"GET http://evil.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n"]
        for case, line in zip(cases, self.send(cases)):
            self.assertRegex(line, r"^HTTP/1\.1 (400|403|502) ", case)
        self.assertEqual((self.good.requests, self.evil.connections), ([], 0))
        self.assertFalse([r for r in self.records() if r.verdict == "permit" and not r.target.startswith("good.test:")])
        lines = self.send([b"GET http://GOOD.test./a/%2e%2e/b HTTP/1.1\r\nHost: good.TEST\r\n\r\n"])
        self.assertEqual(lines, ["HTTP/1.1 200 OK"])
        self.assertEqual(self.requests()[-1], ("good.test:80/b", "permit"))
        self.assertEqual(self.good.requests[0][:2], ("GET", "/b"))

    def test_two_readings(self):
        head = b"POST http://good.test/x HTTP/1.1\r\nHost: good.test\r\n"
        refused = [head + f + b"\r\n\r\nhello" + TAIL for f in (
            b"Content-Length: 5\r\nContent-Length: 5", b"Content-Length: 5\r\nContent-Length: 70", b"Content-Length: 5, 5", b"Content-Length: +5",
            b"Content-Length: 5 5", b"Content-Length: " + b"1" * 30, b"Content-Length: 5\r\nTransfer-Encoding: chunked",
            b"Transfer-Encoding: chunked\r\nContent-Length: 5", b"Transfer-Encoding: xchunked", b"Transfer-Encoding: chunked, identity",
            b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b"Transfer-Encoding : chunked", b"X: a\r\n folded: b", b"X: a\n", b"X: a\rY: b",
            b": empty", b"X: a\0b", b"X" * 70000, b"Expect: 100-continuex", b"Host: good.test")]
        refused += [b"GET  http://good.test/ HTTP/1.1\r\nHost: good.test\r\n\r\n" + TAIL, b"GET http://good.test/ HTTP/1.10\r\nHost: good.test\r\n\r\n" + TAIL,
                    b"GET http://good.test/\r\nHost: good.test\r\n\r\n" + TAIL]
        for case, line in zip(refused, self.send(refused)):
            self.assertRegex(line, r"^HTTP/1\.1 (400|431) ", case[:200])
        self.assertEqual(self.good.requests, [])
        self.assertEqual(self.requests(), [])
        # Read one way only: what was decided is what arrived, and the next request begins where it must.
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
        begun = [chunked + c + TAIL for c in (b"+5\r\nhello\r\n0\r\n\r\n", b"5 \r\nhello\r\n0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b"1" * 17 + b"\r\nhello",
                                              b"5\r\nhelloXX0\r\n\r\n", b"5;" + b"a" * 65536 + b"\r\nhello\r\n0\r\n\r\n")]
        for case, line in zip(begun, self.send(begun)):
            # The head was decided and sent on; this origin does not wait for the body, so its answer may come first.
            self.assertRegex(line, r"^HTTP/1\.1 (400|200) ", case[:200])
        self.assertFalse([r for r in self.good.requests if r[1] != "/x"])
        self.assertFalse([t for t, v in self.requests() if t != "good.test:80/x"])
        self.forget_records()
        before = len(self.good.requests)
        whole = [head + b"Content-Length: 5\r\n\r\nhello", b"GET http://good.test/y HTTP/1.1\r\nHost: good.test\r\nContent-Length: 2\r\n\r\nab"]
        self.assertEqual(self.send(whole), ["HTTP/1.1 200 OK"] * 2)
        arrived = self.good.requests[before:]
        self.assertEqual([t for t, v in self.requests()], [f"good.test:80{r[1]}" for r in arrived])
        self.assertEqual([(r[0], r[3]) for r in arrived], [("POST", b"hello"), ("GET", b"ab")])

    def test_one_reading_of_path_and_method(self):
        """A rule about a path or a method is not read around by another spelling of it."""
        self.policy("""
@id("connect") permit (principal, action == Box::Action::"net:connect", resource) when { context.input.host == "good.test" };
@id("api") permit (principal, action == Box::Action::"http:request", resource) when { context.input.path like "/api/*" };
@id("keep") forbid (principal, action == Box::Action::"http:request", resource) when { context.input.method == "DELETE" };
""")
        host = b" HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n"
        paths = [b"/api/../admin", b"/api/%2e%2e/admin", b"/api/..%2fadmin", b"/api/..%2Fadmin", b"/api/%2e%2e%2fadmin", b"/api/..%5cadmin", b"/api/..;/admin", b"/api/..;a=b/admin", b"/api/%252e%252e/admin",
                 b"/api/%252e%252e%252fadmin", b"/api/x%2f..%2f..%2fadmin", b"/api/.%2f../admin", b"/api/\xc0\xae\xc0\xae/admin\x00", b"/api/%00/../admin", b"\\api\\..\\admin", b"/admin", b"//admin", b"/API/x"]
        methods = [b"DELETE", b"delete", b"Delete", b"dELETE", b"DELETE\t", b"\x00DELETE", b"DELETE\x0b"]
        cases = [b"GET http://good.test" + p + host for p in paths] + [m + b" http://good.test/api/x" + host for m in methods]
        for case, line in zip(cases, self.send(cases)):
            self.assertRegex(line, r"^HTTP/1\.1 (400|403) ", case)
        self.assertEqual(self.good.requests, [])
        self.assertEqual(self.send([b"GET http://good.test/api/@scope%2fname" + host]), ["HTTP/1.1 200 OK"])
        self.assertEqual(self.good.requests[0][:2], ("GET", "/api/@scope%2Fname"))

    def test_addresses_behind_a_permitted_name(self):
        """NET-03: the address is decided as well, and what no policy opens stays closed whatever name leads there."""
        self.config(command='["/bin/bash", "-c"]', rest=f"""
[resolve]
"good.test:80" = "127.0.0.1:{self.good.port}"
"meta.test:80" = "169.254.169.254:80"
"six.test:80" = "[fd00:ec2::254]:80"
"mapped.test:80" = "[::ffff:169.254.169.254]:80"
"any.test:80" = "0.0.0.0:{self.good.port}"
""")
        names = [b"meta.test", b"six.test", b"mapped.test", b"any.test"]
        requests = [b"GET http://" + h + b"/ HTTP/1.1\r\nHost: " + h + b"\r\nConnection: close\r\n\r\n" for h in names + [b"good.test"]]
        self.policy('@id("all") permit (principal, action, resource);')
        lines = self.send(requests)
        self.assertEqual(lines[:3], ["HTTP/1.1 403 Forbidden"] * 3)
        self.assertRegex(lines[3], r"^HTTP/1\.1 (403|502) ")
        self.assertEqual(lines[4], "HTTP/1.1 200 OK")
        self.forget_records()
        self.policy('@id("all") permit (principal, action, resource);\n@id("inward") forbid (principal, action == Box::Action::"net:connect", resource) when { context.input has ip && context.input.ip like "127.*" };')
        before = self.good.connections
        self.assertEqual(self.send(requests[4:]), ["HTTP/1.1 403 Forbidden"])
        self.assertEqual(self.good.connections, before)
        self.assertEqual([(r.verdict, r.rule) for r in self.records() if r.action == "net:connect"], [("permit", "all"), ("deny", "inward")])

    def test_metadata_in_every_spelling(self):
        self.policy('@id("all") permit (principal, action, resource);')
        hosts = [b"169.254.169.254", b"169.254.170.2", b"[::ffff:169.254.169.254]", b"[64:ff9b::a9fe:a9fe]", b"[2002:a9fe:a9fe::]", b"[::a9fe:a9fe]",
                 b"[fd00:ec2::254]", b"[fe80::1]", b"100.100.100.200", b"metadata.google.internal", b"METADATA.google.internal."]
        for host, line in zip(hosts, self.send([b"GET http://" + h + b"/ HTTP/1.1\r\nHost: " + h + b"\r\n\r\n" for h in hosts])):
            self.assertEqual(line, "HTTP/1.1 403 Forbidden", host)


if __name__ == "__main__":
    unittest.main()
