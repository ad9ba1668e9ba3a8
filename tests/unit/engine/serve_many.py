#!/usr/bin/env python3
"""One `dogwood serve`, 64 clients of the data socket and 2 of the control socket at once, usage: serve_many.py DOGWOOD

Every submit is answered once and in order, stamps are all different and grow for each client, policy changes in between lose nothing, and
the store is whole afterwards, with exactly the records that were answered. Meant to run under ThreadSanitizer too: a report ends the server
with another status than 0.
"""
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

CLIENTS, EACH, CHANGES = 64, 12, 6
SCHEMA = """namespace App { entity User; entity Service;
  action "post" appliesTo { principal: [User], resource: [Service], context: { input: { text: String } } }; }
"""
POLICY = """permit (principal, action == App::Action::"post", resource);
@id("limit") forbid (principal, action == App::Action::"post", resource)
when temporal { (count for (t: Timepoint). where (formerly within 10m
  (App::Action::"post"::request{ input.text: context.input.text } && tp(t)))) >= 9 };
"""


class Client:
    def __init__(self, path):
        self.s = socket.socket(socket.AF_UNIX)
        self.s.settimeout(120)
        self.s.connect(path)

    def read(self, n):
        got = b""
        while len(got) < n:
            part = self.s.recv(n - len(got))
            if not part:
                raise EOFError
            got += part
        return got

    def ask(self, request):
        body = json.dumps(request).encode()
        self.s.sendall(struct.pack(">I", len(body)) + body)
        return json.loads(self.read(struct.unpack(">I", self.read(4))[0]))


def submitter(path, number, out, errors):
    try:
        c, stamps, denied = Client(path), [], 0
        bag = {"input": {"text": f"client {number}"}}
        for i in range(EACH):
            event = {"action": 'App::Action::"post"', "kind": "request", "principal": f'App::User::"u{number}"',
                     "resource": 'App::Service::"chat"', "logged": bag, "context": bag}
            request = {"op": "submit", "event": event}
            if i % 3 == 0:
                request["token"] = f"{number}-{i}"
            answer = c.ask(request)
            assert answer["status"] == "decision", answer
            stamps.append(answer["recorded_at_nanos"])
            denied += not answer["allowed"]
            if i % 3 == 0:  # the same again changes nothing
                again = c.ask(request)
                assert again == answer, (again, answer)
        assert stamps == sorted(stamps)
        out[number] = (stamps, denied)
    except Exception as e:  # in a thread: told to the main one
        errors.append(f"client {number}: {e!r}")


def controller(path, number, errors):
    try:
        c = Client(path)
        for i in range(CHANGES):
            if number == 0:
                answer = c.ask({"op": "batch", "verbs": [{"verb": "add", "policy": f'@id("x{i}") forbid (principal, action, resource) '
                                                          f'when {{ context.input.text == "nobody {i}" }};'}]})
                assert answer["status"] == "batched", answer
            else:
                assert c.ask({"op": "status"})["status"] == "status"
                assert c.ask({"op": "list"})["status"] == "policy_list"
                assert c.ask({"op": "checkpoint"})["status"] == "checkpointed"
    except Exception as e:
        errors.append(f"controller {number}: {e!r}")


def main():
    dogwood = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as tmp:
        where = os.path.join(tmp, "d")
        with subprocess.Popen([dogwood, "serve", "-n", "200", where], stderr=subprocess.PIPE) as server:
            data, control = os.path.join(where, "run/dogwood.sock"), os.path.join(where, "control.sock")
            for _ in range(600):
                try:
                    c = Client(control)
                    break
                except OSError:
                    time.sleep(0.1)
            answer = c.ask({"op": "install", "policy": POLICY, "action_schema": SCHEMA})
            assert answer["status"] == "applied", answer
            out, errors = {}, []
            threads = [threading.Thread(target=submitter, args=(data, i, out, errors)) for i in range(CLIENTS)]
            threads += [threading.Thread(target=controller, args=(control, i, errors)) for i in range(2)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            status = c.ask({"op": "status"})
            server.terminate()
            text = server.stderr.read().decode()
        assert not errors, (errors, text)
        assert server.returncode == 0, (server.returncode, text)
        stamps = [s for v in out.values() for s in v[0]]
        assert len(set(stamps)) == CLIENTS * EACH
        # Each client's own texts: the ninth request and those after it are refused.
        assert all(v[1] == EACH - 8 for v in out.values()), out
        assert status["log_offset"] == 1 + CHANGES + CLIENTS * EACH, status
        done = subprocess.run([dogwood, "fsck", os.path.join(where, "store")], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "OK" in done.stdout, done
    print("ok")


main()
