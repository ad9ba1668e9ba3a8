"""SOCK-01 to SOCK-03, native parts: host sockets are out of reach, the one way out is the gateway's listener."""

import os
import socket
import subprocess
import threading
import unittest

from drive import EscapeTest

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK = 1, 2, 10, 16, 17, 38, 40


class Host(EscapeTest):
    """SOCK-01, SOCK-02"""

    def listeners(self, box):
        places = ["/run/escape-%d.sock" % os.getpid(), "/tmp/escape-%d.sock" % os.getpid(), box.home + "/.docker.sock",
            box.outside + "/s"]
        out = []
        for p in places:
            for kind, path in ((socket.SOCK_STREAM, p), (socket.SOCK_DGRAM, p + ".d")):
                s = socket.socket(socket.AF_UNIX, kind)
                try:
                    s.bind(path)
                except OSError:
                    s.close()
                    continue
                os.chmod(path, 0o777)
                if kind == socket.SOCK_STREAM:
                    s.listen(8)
                s.setblocking(False)
                self.addCleanup(lambda p=path: os.path.exists(p) and os.unlink(p))
                self.addCleanup(s.close)
                out.append((s, kind, path))
        return out

    def heard(self, s, kind):
        try:
            s.accept() if kind == socket.SOCK_STREAM else s.recv(10)
            return True
        except BlockingIOError:
            return False

    def test_pathname_sockets(self):
        for box in self.each():
            ls = self.listeners(box)
            self.assertGreaterEqual(len(ls), 4)
            conf = box.config({"read": [box.w]}, tool={"read": [box.w]})
            known = ["/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
                "/var/run/libvirt/libvirt-sock", "/run/dbus/system_bus_socket", "/run/systemd/private"]
            probes = [("connect-unix", p) for p in known + [l[2] for l in ls if l[1] == socket.SOCK_STREAM]]
            probes += [(v, l[2]) for l in ls if l[1] == socket.SOCK_DGRAM for v in ("send-unix", "sendmsg-unix")]
            for options in ((), ("--tool", "probe")):
                r = box.run(conf, *probes, options=options)
                self.assertEqual(r.status, 0, r.err)
                for q in probes:
                    self.assertEqual(r[q], "ENOENT", q)
            for s, kind, path in ls:
                self.assertFalse(self.heard(s, kind), path)

    def test_abstract_sockets(self):
        for box in self.each():
            name = "escape-%d-%d" % (os.getpid(), box.uid)
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.bind("\0" + name)
            s.listen(4)
            d = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            d.bind("\0" + name + "d")
            s.setblocking(False)
            d.setblocking(False)
            r = box.run(box.config({}), ("connect-unix", "@" + name), ("send-unix", "@" + name + "d"),
                ("sendmsg-unix", "@" + name + "d"), ("connect-unix", "@/tmp/.X11-unix/X0"))
            for q in (("connect-unix", "@" + name), ("send-unix", "@" + name + "d"), ("sendmsg-unix", "@" + name + "d"),
                    ("connect-unix", "@/tmp/.X11-unix/X0")):
                self.assertEqual(r[q], "ECONNREFUSED", q)
            self.assertFalse(self.heard(s, socket.SOCK_STREAM))
            self.assertFalse(self.heard(d, socket.SOCK_DGRAM))
            s.close()
            d.close()


class Network(EscapeTest):
    def test_only_the_gateway(self):
        for box in self.each():
            host = socket.socket()
            host.bind(("127.0.0.1", 0))
            host.listen(4)
            host.setblocking(False)
            port = str(host.getsockname()[1])
            conf = box.config({}, tool={})
            for options in ((), ("--tool", "probe")):
                r = box.run(conf, ("connect", "127.0.0.1", "3128"), ("connect", "127.0.0.1", port), ("connect", "169.254.169.254", "80"),
                    ("connect", "1.1.1.1", "443"), ("udp", "1.1.1.1", "53"), ("udp", "127.0.0.1", "53"), ("self",), ("socketpair",),
                    options=options)
                self.assertIn("heard pong", r.out)
                self.assertEqual(r["connect", "127.0.0.1", "3128"], "OK")
                self.assertEqual(r["connect", "127.0.0.1", port], "ECONNREFUSED")
                self.assertEqual(r["connect", "169.254.169.254", "80"], "ENETUNREACH")
                self.assertEqual(r["connect", "1.1.1.1", "443"], "ENETUNREACH")
                self.assertEqual(r["udp", "1.1.1.1", "53"], "ENETUNREACH")
                self.assertEqual(r["self",], "OK")
                self.assertEqual(r["socketpair",], "OK")
            with self.assertRaises(BlockingIOError):
                host.accept()
            host.close()

    def test_families(self):
        for box in self.each():
            good = [(AF_UNIX, 1), (AF_UNIX, 2), (AF_UNIX, 5), (AF_INET, 1), (AF_INET, 2), (AF_INET, 1, 6), (AF_INET, 2, 17), (AF_INET6, 1, 6), (AF_INET6, 1), (AF_INET6, 2), (AF_NETLINK, 3, 0)]
            bad = [(AF_PACKET, 3), (AF_ALG, 5), (AF_VSOCK, 1), (AF_NETLINK, 3, 9), (AF_NETLINK, 3, 15), (AF_INET, 3, 1), (5, 1), (44, 3),
                # Transports that the kernel would load for the asking: SCTP, DCCP, MPTCP, UDP-Lite, L2TP; ping sockets.
                (AF_INET, 1, 132), (AF_INET6, 1, 132), (AF_INET, 5, 132), (AF_INET, 6, 33), (AF_INET, 1, 262), (AF_INET6, 1, 262), (AF_INET, 2, 136), (AF_INET, 2, 115),
                (AF_INET, 2, 1), (AF_INET6, 2, 58), (AF_INET, 1, 0x7fffffff)]
            r = box.run(box.config({}), *[("socket",) + tuple(str(x) for x in q) for q in good + bad])
            for q in good:
                self.assertEqual(r[("socket",) + tuple(str(x) for x in q)], "OK", q)
            for q in bad:
                self.assertIn(r[("socket",) + tuple(str(x) for x in q)], ("EAFNOSUPPORT", "EPERM", "ENOSYS", "EPROTONOSUPPORT"), q)

    def test_two_boxes_do_not_meet(self):
        """COMP-19, SOCK-02: a listener in one sandbox is not there in another."""
        for box in self.each():
            conf = box.config({"read": [box.w], "write": [box.w]})
            r = box.run(conf, ("self",), ("connect-unix", "@box"))
            self.assertEqual(r["self",], "OK")
            self.assertEqual(r["connect-unix", "@box"], "ECONNREFUSED")


class Broker(EscapeTest):
    """SOCK-03: the box's own socket is in the agent's view only."""

    def test_broker_socket(self):
        for box in self.each():
            path = box.top + "/broker.sock"
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.bind(path)
            s.listen(4)
            box.own()
            conf = box.config({}, tool={})
            seen = "/run/boxwood/box.sock"
            r = box.run(conf, ("connect-unix", seen), ("connect-unix", path), ("unlink", seen), ("list", "/run/boxwood"),
                options=("--broker", path))
            self.assertEqual(r["connect-unix", seen], "OK")
            self.assertEqual(r["connect-unix", path], "ENOENT")
            self.refused(r, "unlink", seen)
            r = box.run(conf, ("connect-unix", seen), ("stat", "/run/boxwood"), options=("--broker", path, "--tool", "probe"))
            self.assertEqual(r["connect-unix", seen], "ENOENT")
            self.assertEqual(r["stat", "/run/boxwood"], "ENOENT")
            s.close()


if __name__ == "__main__":
    unittest.main()
