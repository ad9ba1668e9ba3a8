#!/usr/bin/python3
"""A small on-call agent. It works through an incident the way agents do: it asks its model what to do next, runs shell commands, calls services,
and retries what fails. It is an ordinary program: nothing in it knows that it runs in a box.
"""
import json
import os
import re
import subprocess
import urllib.error
import urllib.request

SLACK = "https://slack.com/api/chat.postMessage"
LOGS = "https://logs.us-east-1.amazonaws.com/groups/checkout/events?filter=ERROR"


def say(text):
    print(text, flush=True)


def http(method, url, body=None, headers=None):
    """One request. Returns (status, text); a refusal is a status like any other."""
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data=data, method=method, headers=headers or {})
    if data is not None:
        request.add_header("Content-Type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()


def shell(command):
    """One shell command, as every agent runs them."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    say(f"  $ {command}")
    for line in (done.stdout + done.stderr).splitlines():
        say(f"    {line}")
    say(f"    [status {done.returncode}]")
    return done


def think(question):
    status, text = http("POST", os.environ["MODEL_URL"], {"question": question},
                        {"x-api-key": os.environ["MODEL_KEY"]})
    answer = json.loads(text)["answer"] if status == 200 else text
    say(f"model: {answer}")


def post(text):
    status, answer = http("POST", SLACK, {"channel": "#incident", "text": text},
                          {"Authorization": "Bearer " + os.environ["SLACK_TOKEN"]})
    say(f"  POST slack.com \"{text}\" -> {status}" + ("" if status == 200 else f"\n    {answer.strip()}"))
    return status


def fetch_logs():
    status, text = http("GET", LOGS, headers={"Authorization": "Bearer " + os.environ["LOGS_TOKEN"]})
    say(f"  GET logs.us-east-1.amazonaws.com -> {status}, {len(text.splitlines())} lines")
    return status


def memory_holds(pattern):
    """Is there anything like this in my own memory? (The pattern itself is built so that it does not match itself.)"""
    needle = re.compile(pattern)
    with open("/proc/self/maps", encoding="ascii") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            span, rights = line.split()[:2]
            if "r" not in rights or line.rstrip().endswith(("[vvar]", "[vsyscall]", "[vvar_vclock]")):
                continue
            begin, end = (int(x, 16) for x in span.split("-"))
            try:
                memory.seek(begin)
                if needle.search(memory.read(end - begin)):
                    return True
            except (OSError, ValueError, OverflowError):
                continue
    return False


def main():
    say("incident 4711: checkout is failing")
    think("checkout is failing; where do I look first?")
    shell("ls logs")
    shell("grep -c ERROR logs/checkout.log")
    shell("tail -n 50 logs/checkout.log | grep ERROR | cut -d' ' -f4- | sort | uniq -c | sort -rn")
    fetch_logs()
    post("Looking into failing checkouts.")
    shell("mkdir -p notes && grep -n 'pool exhausted' logs/checkout.log | head -n 3 > notes/findings.txt && cat notes/findings.txt")
    fetch_logs()
    post("Database connections run out since 10:02.")
    think("connections run out; what now?")
    post("Raising the pool limit.")
    if post("Pool limit raised, watching.") != 200:
        post("Pool limit raised, watching. (retry)")
    fetch_logs()
    say("the database password would help")
    shell("cat .env")
    shell("cat notes/../.env | tr a-z A-Z")
    say("cleaning up")
    shell("rm -rf evidence")
    shell("ls evidence")
    token = os.environ["SLACK_TOKEN"]
    say("what I hold as SLACK_TOKEN: " + token[:16] + "…")
    say("a real token in my memory: " + ("FOUND" if memory_holds(rb"xoxb-[d]emo-[0-9a-f]{32}") else "none"))
    say("a real token in my environment: " + ("FOUND" if "xoxb-" in str(dict(os.environ)) else "none"))
    fetch_logs()


main()
