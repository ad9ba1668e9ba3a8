#!/usr/bin/env python3
"""box-dial between a scripted monitor and a scripted gateway: the order of decisions, the floor, the addresses."""

import socket
import struct
import threading
import unittest

import rig

FLOOR = "blocked by egress control: link-local and cloud metadata addresses are closed beneath policy"


class Dial(unittest.TestCase):
    def start(self, names="", resolve=(), decide=None, connect_ms=0):
        if names and rig.CONFINED:
            self.skipTest("a table of names is for the unconfined program")
        self.decide = decide or (lambda host, port, ip: None)
        self.log, self.changed = [], threading.Condition()
        ours, theirs = rig.pair()
        self.p, _ = rig.start("dial", theirs.fileno(), {"RIG_NAMES": names})
        theirs.close()
        self.mon = rig.Channel(ours)
        self.assertEqual(self.mon.recv()[0], rig.MON_HELLO)
        gw, gw_theirs = rig.pair()
        body = struct.pack(">I", len(resolve))
        for host, port, addr, addr_port in resolve:
            body += rig.text(host) + struct.pack(">H", port) + rig.text(addr) + struct.pack(">H", addr_port)
        self.mon.send(rig.MON_START, 0, body + struct.pack(">II", connect_ms, 0), [gw_theirs.fileno()])
        gw_theirs.close()
        gw.settimeout(rig.LIMIT)
        self.gw = rig.Channel(gw)
        threading.Thread(target=self.monitor, daemon=True).start()
        self.held = None

    def monitor(self):
        ticket = 0
        while (m := self.mon.recv()) is not None:
            kind, ident, b, _ = m
            if kind == rig.MON_ASK_CONNECT:
                host, port, ip, sandbox = b.str().decode(), b.num("H"), b.str().decode(), b.num("I")
                verdict = self.decide(host, port, ip)
                ticket += 1
                self.note(("ask", host, port, ip, sandbox, ticket))
                if verdict == "hold":
                    self.held = ident, ticket
                elif verdict:
                    self.mon.send(rig.MON_VERDICT, ident, b"\0\0\0" + rig.text(verdict))
                else:
                    self.mon.send(rig.MON_VERDICT, ident, struct.pack(">BQ", 1, ticket))
            elif kind == rig.MON_DONE_CONNECT:
                self.note(("done", b.num("Q"), b.num("B")))
            elif kind == rig.DIAL_FLOOR:
                self.note(("floor", b.num("Q"), b.str().decode(), b.num("H"), b.str().decode(), b.num("I"), b.str().decode()))

    def note(self, what):
        with self.changed:
            self.log.append(what)
            self.changed.notify_all()

    def logged(self, n):
        with self.changed:
            self.assertTrue(self.changed.wait_for(lambda: len(self.log) >= n, rig.LIMIT), self.log)
        return self.log

    def ask(self, host, port, ident=1, sandbox=9):
        self.gw.send(rig.DIAL_CONNECT, ident, rig.text(host) + struct.pack(">HI", port, sandbox))

    def answer(self):
        kind, ident, b, fds = self.gw.recv()
        if kind == rig.DIAL_SOCKET:
            return ident, "socket", b.str().decode(), socket.socket(fileno=fds[0])
        if kind == rig.DIAL_DENIED:
            return ident, "denied", b.str().decode(), None
        b.num("B")
        return ident, "failed", b.str().decode(), None

    def finish(self):
        self.mon.send(rig.MON_STOP, 0)
        self.assertEqual(self.p.wait(rig.LIMIT), 0)
        self.mon.sock.close()
        self.gw.sock.close()

    def origin(self):
        s = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(s.close)
        return s, s.getsockname()[1]

    def test_system_resolver(self):
        """Confined, box-dial reads the machine's own resolver files."""
        if not rig.CONFINED:
            self.skipTest("only when confined")
        server, port = self.origin()
        self.start()
        self.ask("localhost", port)
        what = self.answer()
        while what[1] == "denied":
            what = self.answer()
        self.assertEqual(what[1:3], ("socket", "127.0.0.1"))
        self.ask("no-such-host.invalid", 80)
        what = self.answer()
        self.assertEqual(what[1], "failed")
        self.assertIn("cannot resolve no-such-host.invalid", what[2])
        self.finish()

    def test_order(self):
        server, port = self.origin()
        self.start("a.test=127.0.0.1")
        self.ask("a.test", port)
        ident, what, ip, s = self.answer()
        self.assertEqual((ident, what, ip), (1, "socket", "127.0.0.1"))
        c, _ = server.accept()
        c.sendall(b"x")
        s.setblocking(True)
        self.assertEqual(s.recv(1), b"x")
        self.assertEqual(self.logged(4), [("ask", "a.test", port, "", 9, 1), ("ask", "a.test", port, "127.0.0.1", 9, 2),
                                          ("done", 2, 1), ("done", 1, 1)])
        s.close()
        c.close()
        self.finish()

    def test_denied_by_name_and_by_address(self):
        self.start("a.test=127.0.0.1,127.0.0.2;b.test=127.0.0.1", decide=lambda h, p, ip: "no" if h == "b.test" or ip == "127.0.0.1" else None)
        self.ask("b.test", 80)
        self.assertEqual(self.answer()[1:3], ("denied", "no"))
        self.ask("a.test", 80)
        self.assertEqual(self.answer()[1:3], ("denied", "no"))  # a refused address ends it; the next is not tried
        self.assertEqual(self.logged(4)[1:], [("ask", "a.test", 80, "", 9, 2), ("ask", "a.test", 80, "127.0.0.1", 9, 3), ("done", 2, 0)])
        self.finish()

    def test_next_address_after_a_failure(self):
        server, port = self.origin()
        self.start("a.test=127.0.0.9,127.0.0.1")
        self.ask("a.test", port)
        self.assertEqual(self.answer()[1:3], ("socket", "127.0.0.1"))
        self.assertEqual([e[1:] for e in self.logged(6) if e[0] == "done"], [(2, 0), (3, 1), (1, 1)])
        self.finish()

    def test_failures_name_no_address(self):
        self.start("a.test=127.0.0.9;z.test=0.0.0.0,::,224.0.0.1,255.255.255.255,ff02::1")
        self.ask("a.test", 9)
        self.assertEqual(self.answer()[1:3], ("failed", "cannot connect to a.test: Connection refused"))
        self.ask("gone.test", 9)
        self.assertEqual(self.answer()[1:3], ("failed", "cannot resolve gone.test: Name or service not known"))
        self.ask("z.test", 9)
        self.assertEqual(self.answer()[1], "failed")
        self.assertEqual([e for e in self.logged(7) if e[0] == "ask" and e[3]], [("ask", "a.test", 9, "127.0.0.9", 9, 2)])
        self.finish()

    def test_floor(self):
        spellings = ["169.254.169.254", "169.254.1.1", "fe80::1", "febf::1", "fd00:ec2::254", "100.100.100.200", "::ffff:169.254.169.254",
                     "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::169.254.169.254", "::ffff:0:169.254.169.254",
                     "64:ff9b:1::a9fe:a9fe", "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:7:a9:fea9:fe00::"]
        self.start(";".join(f"n{i}.test={a}" for i, a in enumerate(spellings)))
        for i, a in enumerate(spellings):
            with self.subTest(a):
                before = len(self.log)
                self.ask(f"n{i}.test", 80)
                self.assertEqual(self.answer()[1:3], ("denied", FLOOR))
                log = self.logged(before + 3)[before:]
                self.assertEqual([e[0] for e in log], ["ask", "floor", "done"])
                self.assertEqual((log[1][2], log[1][5], log[2][2]), (f"n{i}.test", 9, 0))
        before = len(self.log)
        for host in ("metadata.google.internal", "metadata.azure.internal", "169.254.169.254", "fe80::1"):
            self.ask(host, 80)
            self.assertEqual(self.answer()[1:3], ("denied", FLOOR))
        self.assertEqual({e[0] for e in self.logged(before + 4)[before:]}, {"floor"})
        self.finish()

    def test_resolve_table(self):
        server, port = self.origin()
        self.start("a.test=127.0.0.9", [("a.test", 443, "127.0.0.1", port), ("m.test", 80, "169.254.169.254", 80)])
        self.ask("a.test", 443)
        self.assertEqual(self.answer()[1:3], ("socket", "127.0.0.1"))
        self.assertEqual(self.log[1][:4], ("ask", "a.test", 443, "127.0.0.1"))
        self.ask("a.test", 444)
        self.assertEqual(self.answer()[1], "failed")
        self.ask("m.test", 80)
        self.assertEqual(self.answer()[1:3], ("denied", FLOOR))
        self.finish()

    def test_literals(self):
        server, port = self.origin()
        self.start()
        self.ask("127.0.0.1", port)
        self.assertEqual(self.answer()[1:3], ("socket", "127.0.0.1"))
        self.finish()

    def test_what_is_not_canonical_ends_the_gateway(self):
        for host in ("A.test", "a.test.", "127.1", "::ffff:127.0.0.1", "a b", "", "[::1]"):
            with self.subTest(host):
                self.start()
                self.ask(host, 80)
                self.assertEqual(self.p.wait(rig.LIMIT), 1)
                self.mon.sock.close()
                self.gw.sock.close()

    def test_cancel(self):
        self.start("a.test=127.0.0.1", decide=lambda h, p, ip: "hold")
        self.ask("a.test", 80)
        self.logged(1)
        self.gw.send(rig.DIAL_CANCEL, 1)
        self.gw.send(rig.DIAL_CANCEL, 77)
        while self.held is None:
            pass
        self.mon.send(rig.MON_VERDICT, self.held[0], struct.pack(">BQ", 1, self.held[1]))
        self.assertEqual(self.logged(2)[1], ("done", 1, 0))
        self.decide = lambda h, p, ip: "no"
        self.ask("a.test", 80)  # the id is free again
        self.assertEqual(self.answer()[:3], (1, "denied", "no"))
        self.finish()

    def test_many_at_once(self):
        self.start("a.test=127.0.0.1", decide=lambda h, p, ip: "hold" if h == "a.test" else "no")
        for i in range(1, 513):
            self.ask("a.test", 80, i)
        self.logged(512)
        self.ask("a.test", 80, 600)
        self.assertEqual(self.answer()[:2], (600, "failed"))
        self.gw.send(rig.DIAL_CANCEL, 5)
        self.finish()


if __name__ == "__main__":
    unittest.main()
