"""S7 and S8: egress by policy, and credentials the agent never sees. The agent is curl itself: it starts with no grant of its own."""
import os
import re
import shutil
import unittest

from harness import BoxCase, Authority, NO_MATCH, Origin

MARK = "x-strands-box-egress: refused"


class Egress(BoxCase):
    def setUp(self):
        super().setUp()
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        self.origins = []

    def tearDown(self):
        for o in self.origins:
            o.close()

    def origin(self, **kw):
        self.origins.append(Origin(**kw))
        return self.origins[-1]

    def curl(self, *args, env=None):
        self.command = '["/usr/bin/curl", "-sS", "-i", "-m", "20", "--noproxy", ""]'
        self.config(command=self.command, rest=self.rest if hasattr(self, "rest") else "")
        return self.box("--", *args, env=env)


def last_status(text):
    """The status of the last answer in curl -i's output: behind a CONNECT there are two."""
    return re.findall(r"^HTTP/1\.1 (\d+)", text, re.M)[-1]


class PlainHttp(Egress):
    def setUp(self):
        super().setUp()
        self.a, self.b = self.origin(), self.origin()
        self.policy(f"""
@id("conn") permit (principal, action == Box::Action::"net:connect", resource)
when {{ context.input.host == "127.0.0.1" && context.input.port == {self.a.port} }};
@id("get") permit (principal, action == Box::Action::"http:request", resource)
when {{ context.input.host == "127.0.0.1" && context.input.port == {self.a.port} && context.input.method == "GET" }};
""")

    def test_permitted(self):
        r = self.curl(f"http://127.0.0.1:{self.a.port}/p?q=1")
        self.assertIn("200 OK", r.out, r.err)
        self.assertIn("hello", r.out)
        self.assertEqual([x[:2] for x in self.a.requests], [("GET", "/p?q=1")])
        brief = self.brief()
        self.assertIn(("http:request", f"127.0.0.1:{self.a.port}/p", "permit", "get"), brief)
        self.assertIn(("net:connect", f"127.0.0.1:{self.a.port}", "permit", "conn"), brief)

    def test_refused_method(self):
        r = self.curl("-d", "x=1", f"http://127.0.0.1:{self.a.port}/p")
        self.assertIn("403", r.out.splitlines()[0], r.err)
        self.assertIn(MARK, r.out)
        self.assertIn(f"http:request gate: policy denied this operation on '127.0.0.1:{self.a.port}/p' {NO_MATCH}", r.out)
        self.assertEqual(self.a.requests, [])

    def test_refused_destination(self):
        r = self.curl(f"http://127.0.0.1:{self.b.port}/p")
        self.assertIn("403", r.out.splitlines()[0], r.err)
        self.assertIn(f"policy denied this operation on '127.0.0.1:{self.b.port}' {NO_MATCH}", r.out)
        self.assertNotIn("gate", r.out)
        self.assertEqual(self.b.connections, 0)

    def test_forbidden_address_beats_the_permit(self):
        self.policy(self.read("boxes/t/policy.dw") + """
@id("no_loop") forbid (principal, action == Box::Action::"net:connect", resource)
when { context.input has ip && context.input.ip == "127.0.0.1" };""")
        r = self.curl(f"http://127.0.0.1:{self.a.port}/p")
        self.assertIn("[policy: no_loop]", r.out, r.err)
        self.assertEqual(self.a.connections, 0)

    def test_no_way_around_the_gateway(self):
        self.config(command='["/bin/bash", "-c"]')
        for target in (f"127.0.0.1/{self.a.port}", f"localhost/{self.a.port}"):
            r = self.box("--", f"exec 3<>/dev/tcp/{target} && echo connected")
            self.assertNotEqual(r.status, 0)
            self.assertNotIn("connected", r.out)
        self.assertEqual(self.a.connections, 0)

    def test_metadata_is_closed_beneath_policy(self):
        self.policy('@id("all") permit (principal, action, resource);')
        r = self.curl("http://169.254.169.254/latest/meta-data/")
        self.assertIn("403", r.out.splitlines()[0], r.err)
        self.assertIn("link-local and cloud metadata addresses are closed", r.out)


class RateLimit(Egress):
    def test_three_in_ten_minutes(self):
        a = self.origin()
        self.policy(f"""
@id("all") permit (principal, action, resource);
@id("three") @description("Three posts in ten minutes.") forbid (principal, action == Box::Action::"http:request", resource)
when {{ context.input.method == "POST" }}
when temporal {{ (count for (t: Timepoint). where (formerly within 10m (
  Box::Action::"http:request"::response{{ input.method: "POST", output.status: 200 }} && tp(t)))) >= 3 }};
""")
        url = f"http://127.0.0.1:{a.port}/post"
        r = self.curl(*sum((["-d", f"n={i}", url, "--next", "-sS", "-i", "-m", "20", "--noproxy", ""] for i in range(4)), []), url + "-get")
        codes = re.findall(r"HTTP/1\.1 (\d+) ", r.out)  # a refusal has no line end behind its body
        self.assertEqual(codes, ["200", "200", "200", "403", "200"], r.out + r.err[-600:])
        self.assertIn("[policy: three]: Three posts in ten minutes.", r.out)
        self.assertEqual(len(a.requests), 4)
        # The count is in the history: the next run begins where this one ended.
        r = self.curl("-d", "n=5", url)
        self.assertIn("[policy: three]", r.out)


class Credentials(Egress):
    SECRET = "s3cr3t-0123456789-token"

    def setUp(self):
        super().setUp()
        self.tls = Authority(os.path.join(self.conf, "tls"), "api.test", "other.test")
        self.api = self.origin(tls=self.tls)
        self.policy('@id("all") permit (principal, action, resource);')

    def route(self, extra="", dest="api.test"):
        self.rest = f"""
[egress.api]
destinations = ["{dest}"]
secret.ref = "env://TOK"
trust = "tls/ca.pem"
{extra}
[resolve]
"api.test:443" = "127.0.0.1:{self.api.port}"
"other.test:443" = "127.0.0.1:{self.api.port}"
"api.test:80" = "127.0.0.1:{self.api.port}"
"""

    def as_bash(self, script):
        """bash with curl beside it: what an agent does with its own variable."""
        self.config(command='["/bin/bash", "-c"]', rest=self.rest, agent="""
[agent.filesystem]
exec = ["/usr/bin/curl"]
""")
        return self.box("--", script, env={"TOK": self.SECRET})

    def curl_in(self, args):
        return self.as_bash(f"/usr/bin/curl -sS -i -m 20 {args}; echo; echo tok=$TOK")

    def test_the_placeholder_becomes_the_secret(self):
        self.route()
        r = self.curl_in('-H "Authorization: Bearer $TOK" https://api.test/v1')
        self.assertIn("200 OK", r.out, r.err)
        self.assertEqual(self.api.requests[0][2].get("Authorization"), "Bearer " + self.SECRET)
        token = re.search(r"tok=(\S+)", r.out).group(1)
        self.assertRegex(token, r"^strands_box_[0-9a-f]{64}$")
        self.assertNotIn(self.SECRET, r.out + r.err)
        for folder, _, names in os.walk(self.box_dir):
            for name in names:
                with open(os.path.join(folder, name), "rb") as f:
                    self.assertNotIn(self.SECRET.encode(), f.read(), name)

    def test_missing_or_wrong_placeholder(self):
        self.route()
        for header in ("", '-H "Authorization: Bearer wrong"', '-H "Authorization: Bearer x$TOK"'):
            r = self.curl_in(f"{header} https://api.test/v1")
            self.assertEqual(last_status(r.out), "403", r.out + r.err)
            self.assertIn("blocked by egress control", r.out)
        self.assertEqual(self.api.requests, [])

    def test_never_over_plain_http(self):
        self.route()
        r = self.curl_in('-H "Authorization: Bearer $TOK" http://api.test/v1')
        self.assertIn("credential not permitted on a plaintext request", r.out, r.err)

    def test_other_hosts_get_the_placeholder(self):
        self.route('[egress.other]\ndestinations = ["other.test"]\nsecret.ref = "env://TOK2"\nsecret.inject = "always"\ntrust = "tls/ca.pem"\n'
                   'secret.header = "x-api-key"')
        self.config(command='["/bin/bash", "-c"]', rest=self.rest, agent='[agent.filesystem]\nexec = ["/usr/bin/curl"]\n')
        r = self.box("--", '/usr/bin/curl -sS -i -m 20 -H "Authorization: Bearer $TOK" https://other.test/', env={"TOK": self.SECRET, "TOK2": "second"})
        self.assertIn("200 OK", r.out, r.err)
        headers = self.api.requests[0][2]
        self.assertTrue(headers["Authorization"].startswith("Bearer strands_box_"), headers)
        self.assertEqual(headers.get("x-api-key"), "second")

    def test_header_and_prefix(self):
        self.route('secret.header = "x-api-key"\nsecret.phantom_prefix = "sk-"')
        r = self.curl_in('-H "x-api-key: $TOK" https://api.test/v1')
        self.assertIn("200 OK", r.out, r.err)
        self.assertEqual(self.api.requests[0][2].get("x-api-key"), self.SECRET)
        self.assertIn("tok=sk-", r.out)

    def test_an_echo_of_the_secret_is_redacted(self):
        self.route()
        self.api.body = b"you sent " + self.SECRET.encode() + b" to me\n"
        r = self.curl_in('-H "Authorization: Bearer $TOK" https://api.test/v1')
        self.assertIn("you sent [REDACTED] to me", r.out, r.err)

    def test_unset_variable_refuses_the_run(self):
        self.route()
        self.config(rest=self.rest)
        env = dict(os.environ)
        env.pop("TOK", None)
        self.assert_refused_start("credential setup failed: credential variable TOK is not set, or holds only whitespace")

    def test_a_binding_is_no_permit(self):
        self.route()
        self.policy('@id("conn") permit (principal, action == Box::Action::"net:connect", resource);')
        r = self.curl_in('-H "Authorization: Bearer $TOK" https://api.test/v1')
        self.assertIn("http:request gate: policy denied this operation on 'api.test:443/v1' [default-deny]", r.out, r.err)
        self.assertEqual(self.api.requests, [])

    def test_untrusted_origin(self):
        self.route()
        self.rest = self.rest.replace('trust = "tls/ca.pem"\n', "")
        r = self.curl_in('-H "Authorization: Bearer $TOK" https://api.test/v1')
        self.assertEqual(last_status(r.out), "502", r.out + r.err)
        self.assertEqual(self.api.requests, [])


if __name__ == "__main__":
    unittest.main()
