#!/usr/bin/python3
"""The services of the demo, as one TLS server on loopback: Slack, a log service, a model API. Told apart by the Host header.

usage: upstream.py DIR     certificate and key are DIR/server.pem; the port goes to DIR/port, what was received to DIR/received.jsonl
"""
import http.server
import json
import os
import ssl
import sys
import threading

ANSWERS = ["Read the checkout log and count the errors.", "Raise the connection pool's limit, then tell the channel."]
LOG_LINE = "2026-10-01T10:{:02d}:00Z ERROR checkout pool exhausted after 30s\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    asked = 0

    def log_message(self, *args):
        pass

    def note(self, host, body):
        entry = {"host": host, "method": self.command, "path": self.path, "body": body,
                 "authorization": self.headers.get("Authorization"), "x-api-key": self.headers.get("x-api-key")}
        with self.lock, open(os.path.join(self.server.folder, "received.jsonl"), "a", encoding="utf-8") as f:
            f.write(json.dumps(entry) + "\n")

    def answer(self, status, text, kind):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def serve(self):
        host = (self.headers.get("Host") or "").split(":")[0]
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        self.note(host, body)
        if host == "slack.com":
            ok = (self.headers.get("Authorization") or "") == "Bearer " + self.server.slack_token
            self.answer(200 if ok else 401, json.dumps({"ok": ok}), "application/json")
        elif host == "api.anthropic.com":
            with self.lock:
                text = ANSWERS[Handler.asked % len(ANSWERS)]
                Handler.asked += 1
            self.answer(200, json.dumps({"answer": text}), "application/json")
        elif host == "logs.us-east-1.amazonaws.com":
            self.answer(200, "".join(LOG_LINE.format(m) for m in range(2, 9)), "text/plain")
        else:
            self.answer(404, "no such service\n", "text/plain")

    do_GET = do_POST = serve


def main():
    folder = sys.argv[1]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.folder = folder
    server.slack_token = os.environ["SLACK_TOKEN"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "server.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with open(os.path.join(folder, "port.tmp"), "w", encoding="ascii") as f:
        f.write(str(server.server_address[1]))
    os.rename(os.path.join(folder, "port.tmp"), os.path.join(folder, "port"))
    server.serve_forever()


main()
