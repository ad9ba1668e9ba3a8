#!/usr/bin/env python3
"""Conformance scorer for a bash-compatible shell.

Runs every case of the data files with an oracle shell and with the shell under
test, each in a fresh scratch directory with a fixed environment, and counts the
cases in which standard output and exit status agree. Needs only the Python
standard library (3.11 or later) and Linux. See README.md beside this file.
"""
import argparse
import base64
import ctypes
import hashlib
import json
import multiprocessing as mp
import os
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

FORMAT = 6                     # part of the cache key: raise when runs change meaning
NOBODY = 65534
OUT_CAP = 1 << 20
ERR_CAP = 1 << 14
HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = ':/usr/local/bin:/usr/bin:/bin'
SUITES = ['oils', 'brush', 'toybox', 'just-bash', 'jq']

# ---------------------------------------------------------------- helper programs
# Re-implementations of the small helpers that cases call by name. They are bash
# scripts (the oracle is present by definition) in privileged mode, so that
# exported functions, SHELLOPTS and BASH_ENV of a case do not reach them.
HELPERS = {
    'argv.py': r'''
LC_ALL=C
out='['
sep=
for a in "$@"; do
  q=\'
  [[ $a == *\'* && $a != *\"* ]] && q=\"
  if [[ $a != *[!a-zA-Z0-9_\ .,:/=+@%-]* ]]; then
    r=$a
  else
    r=
    for ((i = 0; i < ${#a}; i++)); do
      c=${a:i:1}
      case $c in
        \\) r+='\\' ;;
        $'\n') r+='\n' ;;
        $'\r') r+='\r' ;;
        $'\t') r+='\t' ;;
        "$q") r+="\\$c" ;;
        [[:print:]]) r+=$c ;;
        *) printf -v n %d "'$c"; printf -v h '\\x%02x' $((n & 255)); r+=$h ;;
      esac
    done
  fi
  out+="$sep$q$r$q"
  sep=', '
done
printf '%s\n' "$out]"
''',
    'printenv.py': r'''
for n in "$@"; do
  /usr/bin/printenv -- "$n" || echo None
done
''',
    'stdout_stderr.py': r'''
printf '%s\n' "${1-STDOUT}"
printf '%s\n' "${2-STDERR}" >&2
exit "${3-0}"
''',
    'read_from_fd.py': r'''
out=
for fd in "$@"; do
  if ! { : <&"$fd"; } 2>/dev/null; then
    echo "FATAL: Error reading from fd $fd" >&2
    exit 1
  fi
  got=$(/bin/dd bs=1024 count=1 <&"$fd" 2>/dev/null; echo x)
  out+="$fd: ${got%x}"
done
printf %s "$out"
''',
    'foo=bar': "\necho HI\n",
}


def helper_text(name, oracle):
    return '#!%s -p\n%s' % (oracle, HELPERS[name].lstrip('\n'))


# ---------------------------------------------------------------- running one case
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWNET = 0x00020000, 0x08000000, 0x40000000
MS_REC, MS_PRIVATE, MS_BIND = 16384, 1 << 18, 4096


def children():
    me = os.getpid()
    try:
        with open('/proc/%d/task/%d/children' % (me, me)) as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def reap_all():
    """Kill and collect every process a case left behind (we are the subreaper)."""
    for _ in range(200):
        kids = children()
        for k in kids:
            try:
                os.kill(k, signal.SIGKILL)
            except OSError:
                pass
        try:
            while True:
                pid, _st = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
        except ChildProcessError:
            return
        time.sleep(0.002)


def wipe(path):
    """Remove a tree, also one whose directories a case made unreadable."""
    def fix(func, p, _exc):
        try:
            for q in (os.path.dirname(p), p):
                if not os.path.islink(q):
                    os.chmod(q, 0o700)
            func(p)
        except OSError:
            pass
    if os.path.lexists(path):
        shutil.rmtree(path, onerror=fix)
        if os.path.lexists(path):
            subprocess.run(['rm', '-rf', path], stderr=subprocess.DEVNULL)


class Runner:
    """One worker's scratch area: <base>/<n>/{w,home,tmp,files,repo}."""

    def __init__(self, conf, n):
        self.c = conf
        self.root = '%s/%d' % (conf['base'], n)
        os.makedirs(self.root, exist_ok=True)
        os.chmod(self.root, 0o755)
        self.isolated = False
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        if conf['root']:
            # No network, and a private /tmp, where the system lets us.
            if libc.unshare(CLONE_NEWNET | CLONE_NEWIPC) != 0:
                pass
            if libc.unshare(CLONE_NEWNS) == 0:
                libc.mount(None, b'/', None, MS_REC | MS_PRIVATE, None)
                self.isolated = not conf['base'].startswith('/tmp/')

    def prepare(self, case):
        wipe(self.root + '/w')
        for d in ('home', 'files', 'repo'):
            wipe(self.root + '/' + d)
        tmp = self.root + '/tmp'
        if self.isolated:
            os.makedirs(tmp, exist_ok=True)
            if not getattr(self, 'bound', False):
                os.chmod(tmp, 0o1777)
                self.bound = libc.mount(tmp.encode(), b'/tmp', None, MS_BIND, None) == 0
            for e in os.scandir(tmp):
                if e.is_dir(follow_symlinks=False):
                    wipe(e.path)
                else:
                    os.unlink(e.path)
        w = self.root + '/w'
        os.mkdir(w)
        os.mkdir(self.root + '/home')
        made = [w, self.root + '/home']
        late = []
        for e in case.get('files', ()):
            p = os.path.normpath(os.path.join(w, e['path']))
            if not p.startswith(self.root + '/'):
                continue
            parent = os.path.dirname(p)
            missing = []
            while not os.path.lexists(parent):
                missing.append(parent)
                parent = os.path.dirname(parent)
            for q in reversed(missing):
                os.mkdir(q)
                made.append(q)
            t = e.get('type', 'file')
            if t == 'dir':
                if not os.path.isdir(p):
                    os.mkdir(p)
            elif t == 'link':
                os.symlink(self.subst(e['target']), p)
            elif t == 'hard':
                os.link(os.path.join(w, e['target']), p)
            elif t == 'fifo':
                os.mkfifo(p)
            else:
                with open(p, 'wb') as f:
                    if 'zeros' in e:
                        f.truncate(e['zeros'])
                    elif 'zlib' in e:
                        f.write(zlib.decompress(base64.b64decode(e['zlib'])))
                    elif 'base64' in e:
                        f.write(base64.b64decode(e['base64']))
                    else:
                        f.write(self.subst(e.get('text', '')).encode())
            made.append(p)
            if t not in ('link', 'hard'):
                late.append((p, e))
        if os.path.isdir(self.root + '/repo/spec'):
            os.makedirs(self.root + '/repo/spec/bin', exist_ok=True)
            for n in HELPERS:
                os.symlink(self.c['base'] + '/bin/' + n, self.root + '/repo/spec/bin/' + n)
        if self.c['root']:
            for p in made:
                os.chown(p, NOBODY, NOBODY, follow_symlinks=False)
        for p, e in late:
            if e.get('type', 'file') != 'dir':
                os.chmod(p, int(e.get('mode', '0644'), 8))
        for p, e in reversed(late):
            if e.get('type', 'file') == 'dir':
                os.chmod(p, int(e.get('mode', '0755'), 8))
            if 'mtime' in e:
                os.utime(p, (e['mtime'], e['mtime']))

    def subst(self, s):
        return (s.replace('@CWD@', self.root + '/w').replace('@FILES@', self.root + '/files')
                 .replace('@ROOT@', self.root))

    def child_setup(self):
        os.setsid()
        for n in range(1, signal.NSIG):
            try:
                signal.signal(n, signal.SIG_DFL)
            except (OSError, ValueError):
                pass
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        t = int(self.c['timeout']) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (t, t + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 20, 64 << 20))
        n = 512 if self.c['root'] else 2048
        soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        if hard != resource.RLIM_INFINITY:
            n = min(n, hard)
        resource.setrlimit(resource.RLIMIT_NPROC, (n, n))
        os.umask(0o022)
        if self.c['root']:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            libc.prctl(38, 1, 0, 0, 0)          # no_new_privs

    def run(self, case, which):
        """which: 'oracle' or 'test'. Returns (stdout, status, flag, stderr)."""
        sh = self.c[which]
        self.prepare(case)
        w = self.root + '/w'
        env = {
            'LC_ALL': 'C.UTF-8', 'HOME': self.root + '/home', 'TMP': w,
            'PATH': self.c['base'] + '/bin' + sh['path'],
            'SH': sh['sh'], 'REPO_ROOT': self.root + '/repo', 'FILES': self.root + '/files',
        }
        for k, v in case.get('env', {}).items():
            env[k] = self.subst(v)
        argv = list(sh['argv'])
        args = [self.subst(a) for a in case.get('args', [])]
        if 'command' in case:
            cmd = (base64.b64decode(case['command_base64']) if 'command_base64' in case
                   else self.subst(case['command']).encode())
            argv += ['-c', cmd]
            data = (base64.b64decode(case['stdin_base64']) if 'stdin_base64' in case
                    else case.get('stdin', '').encode())
        else:
            data = self.subst(case['code']).encode('utf-8', 'surrogateescape')
            if args or self.c['feed'] == 'stdin':
                argv += args
            elif self.c['feed'] == 'file':
                with open(self.root + '/script.sh', 'wb') as f:
                    f.write(data)
                argv.append('../script.sh')
                data = b''
            else:
                argv += ['-c', data]
                data = b''
        # Pipes belong to the unprivileged user, so that /dev/stdout can be opened.
        pipes = [os.pipe() for _ in range(3)]
        if self.c['root']:
            for pr in pipes:
                for fd in pr:
                    os.fchown(fd, NOBODY, NOBODY)
        (ir, iw), (orr, ow), (er, ew) = pipes
        rest = b''
        os.set_blocking(iw, False)
        try:
            n = os.write(iw, data) if data else 0
        except BlockingIOError:
            n = 0
        rest = data[n:]
        try:
            p = subprocess.Popen(argv, cwd=w, env=env, stdin=ir, stdout=ow, stderr=ew,
                                 preexec_fn=self.child_setup, close_fds=True)
        except OSError as exc:
            for fd in (ir, iw, orr, ow, er, ew):
                os.close(fd)
            return b'', 127, 'start: %s' % exc, b''
        for fd in (ir, ow, ew):
            os.close(fd)
        if not rest:
            os.close(iw)
            iw = -1
        out, err = bytearray(), bytearray()
        start = time.monotonic()
        end = start + self.c['timeout']
        flag = ''
        status = None
        pidfd = os.pidfd_open(p.pid)
        poll = select.poll()
        poll.register(orr, select.POLLIN)
        poll.register(er, select.POLLIN)
        poll.register(pidfd, select.POLLIN)
        if iw >= 0:
            poll.register(iw, select.POLLOUT)
        open_out = {orr, er}
        while open_out or status is None:
            left = end - time.monotonic()
            if left <= 0:
                if status is None:
                    flag = 'timeout'
                break
            for fd, ev in poll.poll(left * 1000 + 1):
                if fd == pidfd:
                    status = p.wait()
                    poll.unregister(pidfd)
                    # Background processes may hold the pipes: grant them a second.
                    end = min(end, time.monotonic() + 1.0)
                elif fd == iw:
                    try:
                        k = os.write(iw, rest[:65536])
                        rest = rest[k:]
                    except BlockingIOError:
                        continue
                    except OSError:
                        rest = b''
                    if not rest:
                        poll.unregister(iw)
                        os.close(iw)
                        iw = -1
                else:
                    b = os.read(fd, 65536)
                    if not b:
                        poll.unregister(fd)
                        open_out.discard(fd)
                    elif fd == orr:
                        out += b
                    elif len(err) < ERR_CAP:
                        err += b
            if len(out) > OUT_CAP:
                flag = 'too much output'
                del out[OUT_CAP:]
                break
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except OSError:
            pass
        if status is None:
            status = p.wait()
        for fd in (orr, er, pidfd):
            os.close(fd)
        if iw >= 0:
            os.close(iw)
        reap_all()
        if status < 0:
            status = 128 - status
        return self.clean(bytes(out), sh), status, flag, bytes(err[:2000])

    def clean(self, b, sh):
        """Replace scratch paths, which differ from run to run, by fixed ones."""
        b = re.sub(re.escape(self.c['base'].encode()) + rb'/\d+', b'/S', b)
        return b.replace(self.c['base'].encode(), b'/S')


def worker(conf, n, inq, outq):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    r = Runner(conf, n)
    while True:
        job = inq.get()
        if job is None:
            break
        i, case, which = job
        try:
            res = r.run(case, which)
        except Exception as exc:                      # a broken case must not stop the run
            res = (b'', -1, 'scorer: %r' % exc, b'')
        outq.put((i, which, res))
    for d in ('w', 'home', 'files', 'repo'):
        wipe(r.root + '/' + d)


# ---------------------------------------------------------------- comparison
CLOCK_WORDS = re.compile(r'\bdate\b|EPOCH|SECONDS|\btimes?\b|%\(|\bls\b|\bstat\b|\bfind\b|\btar\b|\bdu\b')


def clock_dependent(case, out, now):
    """Output that carries the present time can agree twice and differ a third time."""
    text = case.get('code') or case.get('command') or ''
    if not CLOCK_WORDS.search(text):
        return False
    o = out.decode('utf-8', 'replace')
    for t in (now, now - 60):
        for off in (time.gmtime(t), time.localtime(t)):
            if re.search(r'(?<!\d)%s(?!\d)' % time.strftime('%H:%M', off), o):
                return True
    return str(int(now))[:7] in o


def names_pattern(words):
    return re.compile(rb'(?<![\w.-])(?:%s)(?![\w-])' % b'|'.join(
        re.escape(x) for x in sorted(words, key=len, reverse=True)))


def agree(case, oracle, test, names):
    oo, ostat = oracle
    to, tstat = test
    if not case.get('ignore_exit_status') and ostat != tstat:
        return False
    if case.get('ignore_stdout'):
        return True
    if case.get('ignore_whitespace'):
        oo, to = b''.join(oo.split()), b''.join(to.split())
    return oo == to or names.sub(b'@SHELL@', oo) == names.sub(b'@SHELL@', to)


def json_values(text):
    dec = json.JSONDecoder(parse_int=float, parse_constant=lambda s: 'const ' + s)
    vals, i = [], 0
    text = text.strip()
    while i < len(text):
        v, i = dec.raw_decode(text, i)
        vals.append(v)
        while i < len(text) and text[i] in ' \t\r\n':
            i += 1
    return vals


def jq_agree(case, out, status):
    if case.get('expected_fail'):
        return status in (2, 3, 5)
    try:
        return json_values(out.decode('utf-8', 'replace')) == json_values(
            '\n'.join(x.replace('\ufeff', '') for x in case['expected_json']))
    except ValueError:
        return out.decode('utf-8', 'replace').split() == ' '.join(case['expected_json']).split()


# ---------------------------------------------------------------- set-up
def usable_by_nobody(path):
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
            os._exit(0 if os.access(path, os.X_OK | os.R_OK) else 1)
        except OSError:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def place_shell(spec, base, root, role, wrap):
    """Returns {'argv', 'sh', 'names'}. $SH is always <base>/<role>/bash, so that
    cases which look at the shell's name take the bash branch for every shell."""
    argv = shlex.split(spec)
    exe = shutil.which(argv[0])
    if not exe:
        sys.exit('score.py: no such shell: ' + argv[0])
    exe = os.path.abspath(exe)
    words = {os.path.basename(exe), os.path.basename(os.path.realpath(exe))} | {
        a for a in argv[1:] if re.fullmatch(r'[a-z]{2,}', a)}
    paths = {exe, os.path.realpath(exe)}
    if exe.startswith('/tmp/') or (root and not usable_by_nobody(exe)):
        os.makedirs(base + '/copy', exist_ok=True)
        os.chmod(base + '/copy', 0o755)
        new = base + '/copy/' + os.path.basename(exe)
        shutil.copy(exe, new)
        os.chmod(new, 0o755)
        exe = new
    # 's' and 'o' have one length, so ${#SH} and the like agree as well.
    d = '%s/%s' % (base, {'oracle': 'o', 'test': 's'}[role])
    os.mkdir(d)
    os.chmod(d, 0o755)
    sh = d + '/bash'
    if len(argv) > 1 or wrap:
        with open(sh, 'w') as f:
            f.write('#!/bin/sh\nexec %s "$@"\n' % ' '.join(shlex.quote(a) for a in [exe] + argv[1:]))
        os.chmod(sh, 0o755)
    else:
        os.symlink(exe, sh)
    return {'argv': [sh], 'sh': sh, 'words': words | paths | {exe}, 'exe': exe, 'args': argv[1:]}


def first_line(argv):
    try:
        p = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, timeout=5)
        return p.stdout.decode('utf-8', 'replace').split('\n')[0]
    except (OSError, subprocess.SubprocessError):
        return '-'


def fingerprint(oracle):
    """Version of the oracle shell and, as commands come from the machine, of those."""
    parts = [first_line([oracle['exe']] + oracle['args'] + ['--version'])]
    for t in ('ls', 'sed', 'grep', 'find', 'tar', 'diff', 'file', 'xxd', 'jq', 'hexdump', 'strings'):
        parts.append(first_line([t, '--version']) if shutil.which(t) else '-')
    awk = shutil.which('awk')
    parts.append(os.path.realpath(awk) if awk else '-')
    return parts


def load_cases(dirs, suites):
    out = []
    for d in dirs:
        sub = os.path.join(d, 'data')
        d = sub if os.path.isdir(sub) else d
        for s in suites:
            p = os.path.join(d, s + '.jsonl')
            if os.path.exists(p):
                with open(p, encoding='utf-8') as f:
                    out += [json.loads(line) for line in f if line.strip()]
    return out


def case_key(case, tag):
    run = {k: v for k, v in case.items() if k not in ('title', 'source', 'profile', 'expected_stdout',
                                                      'expected_status', 'expected_stdout_base64')}
    return hashlib.sha256((tag + json.dumps(run, sort_keys=True)).encode()).hexdigest()[:32]


def main():
    ap = argparse.ArgumentParser(description='Score a shell against an oracle shell.')
    ap.add_argument('--shell', required=True, help="shell under test: 'path args...'")
    ap.add_argument('--oracle', default='bash', help='oracle shell (default: bash)')
    ap.add_argument('--suite', nargs='+', default=SUITES, metavar='NAME', choices=SUITES)
    ap.add_argument('--data', nargs='+', default=[os.path.join(HERE, 'data', 'shell')], metavar='DIR', help='directories that hold the .jsonl files')
    ap.add_argument('--jobs', type=int, default=2)
    ap.add_argument('--failing', metavar='FILE', help='write disagreeing cases as JSON lines')
    ap.add_argument('--limit', type=int, metavar='N', help='only the first N cases of each suite')
    ap.add_argument('--match', metavar='REGEX', help='only cases whose id matches')
    ap.add_argument('--feed', choices=['stdin', 'file', 'c'], default='stdin',
                    help='how language cases without arguments reach the shell (default: stdin)')
    ap.add_argument('--timeout', type=float, default=5.0, metavar='SECONDS')
    ap.add_argument('--wrap', action='store_true', help='start the shell under test under its own name')
    ap.add_argument('--no-tools', action='store_true',
                    help="PATH of the shell under test holds the helpers only: its own commands alone count")
    ap.add_argument('--with-bugs', action='store_true', help='also count cases marked as bugs of bash')
    ap.add_argument('--by-file', action='store_true', help='also print a table by source file')
    ap.add_argument('--cache', metavar='FILE', help='oracle results (default: in the user cache directory)')
    ap.add_argument('--no-cache', action='store_true')
    a = ap.parse_args()

    cases = load_cases(a.data, a.suite)
    if a.match:
        cases = [c for c in cases if re.search(a.match, c['id'])]
    if a.limit:
        seen, kept = {}, []
        for c in cases:
            seen[c['suite']] = seen.get(c['suite'], 0) + 1
            if seen[c['suite']] <= a.limit:
                kept.append(c)
        cases = kept
    if not cases:
        sys.exit('score.py: no cases')

    root = os.geteuid() == 0
    top = '/var/tmp' if os.access('/var/tmp', os.W_OK) else tempfile.gettempdir()
    base = tempfile.mkdtemp(prefix='shs', dir=top)
    os.chmod(base, 0o755)
    try:
        return score(a, cases, base, root)
    finally:
        wipe(base)


def score(a, cases, base, root):
    oracle = place_shell(a.oracle, base, root, 'oracle', False)
    test = place_shell(a.shell, base, root, 'test', a.wrap)
    names = names_pattern({x.encode() for x in oracle['words'] | test['words']})
    os.mkdir(base + '/bin')
    os.chmod(base + '/bin', 0o755)
    bash = shutil.which('bash') or oracle['exe']
    for n in HELPERS:
        with open(base + '/bin/' + n, 'w') as f:
            f.write(helper_text(n, bash))
        os.chmod(base + '/bin/' + n, 0o755)
    conf = {'base': base, 'root': root, 'feed': a.feed, 'timeout': a.timeout,
            'oracle': {'argv': oracle['argv'], 'sh': oracle['sh'], 'path': TOOLS},
            'test': {'argv': test['argv'], 'sh': test['sh'], 'path': '' if a.no_tools else TOOLS}}
    prints = fingerprint(oracle)
    tag = '\0'.join(prints + [str(FORMAT), a.feed, str(a.timeout), str(root), ' '.join(oracle['args'])])
    cache_file = a.cache
    if not cache_file:
        cdir = os.path.join(os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'shell-score')
        cache_file = os.path.join(cdir, 'oracle.jsonl')
    cache = {}
    if not a.no_cache and os.path.exists(cache_file):
        with open(cache_file, encoding='utf-8') as f:
            for line in f:
                try:
                    k, v = json.loads(line)
                    cache[k] = v
                except ValueError:
                    pass
    keys = [case_key(c, tag) for c in cases]

    ctx = mp.get_context('fork')
    jobs = max(1, a.jobs)

    def batch(todo, which, label):
        """New workers for each pass, so that process numbers differ between passes."""
        res = {}
        if not todo:
            return res
        inq, outq = ctx.Queue(), ctx.Queue()
        workers = [ctx.Process(target=worker, args=(conf, n, inq, outq), daemon=True) for n in range(jobs)]
        for wk in workers:
            wk.start()
        for i in todo:
            inq.put((i, cases[i], which))
        for _ in workers:
            inq.put(None)
        done = 0
        while done < len(todo):
            i, _w, r = outq.get()
            res[i] = r
            done += 1
            if sys.stderr.isatty() and done % 20 == 0:
                print('\r%s %d/%d ' % (label, done, len(todo)), end='', file=sys.stderr)
        if sys.stderr.isatty() and todo:
            print('\r\033[K', end='', file=sys.stderr)
        for wk in workers:
            wk.join(10)
        return res

    def skip(c):
        return c.get('bash_bug') and not a.with_bugs

    t0 = time.time()
    need = [i for i, c in enumerate(cases) if c['suite'] != 'jq' and not skip(c) and keys[i] not in cache]
    now = time.time()
    first = batch(need, 'oracle', 'oracle')
    again = [batch([i for i in need if not first[i][2]], 'oracle', 'oracle, pass %d' % n) for n in (2, 3)]
    fresh = []
    for i in need:
        out, st, flag, _e = first[i]
        why = ''
        if flag:
            why = 'oracle ' + flag
        elif any(x[i][:3] != (out, st, '') for x in again):
            why = 'unstable'
        elif clock_dependent(cases[i], out, now):
            why = 'clock'
        v = {'out': out.decode('latin-1') if not why else '', 'status': st, 'why': why}
        cache[keys[i]] = v
        fresh.append(json.dumps([keys[i], v]))
    if fresh and not a.no_cache:
        try:
            os.makedirs(os.path.dirname(os.path.abspath(cache_file)), exist_ok=True)
            with open(cache_file, 'a', encoding='utf-8') as f:
                f.write('\n'.join(fresh) + '\n')
        except OSError as exc:
            print('score.py: cache not written: %s' % exc, file=sys.stderr)
    t1 = time.time()
    todo = [i for i, c in enumerate(cases) if c['suite'] == 'jq' or (not skip(c) and not cache[keys[i]]['why'])]
    tested = batch(todo, 'test', 'shell')
    t2 = time.time()

    rows, files, why_n = {}, {}, {}
    failing = open(a.failing, 'w', encoding='utf-8') if a.failing else None
    for i, c in enumerate(cases):
        src = c['source'].rsplit(':', 1)[0]
        cells = [rows.setdefault((c['suite'], c['profile']), [0, 0, 0]),
                 files.setdefault((c['suite'], src), [0, 0, 0])]
        for cell in cells:
            cell[0] += 1
        if i not in tested:
            why = 'bug of bash' if skip(c) else cache[keys[i]]['why']
            why_n[why] = why_n.get(why, 0) + 1
            for cell in cells:
                cell[1] += 1
            continue
        out, st, flag, err = tested[i]
        if c['suite'] == 'jq':
            ok = not flag and jq_agree(c, out, st)
            want = {'json': c.get('expected_json'), 'fail': bool(c.get('expected_fail'))}
        else:
            o = cache[keys[i]]
            ok = not flag and agree(c, (o['out'].encode('latin-1').replace(b'/S/o/bash', b'/S/s/bash'), o['status']),
                                    (out, st), names)
            want = {'stdout': o['out'].encode('latin-1').decode('utf-8', 'replace')[:4000], 'status': o['status']}
        if ok:
            for cell in cells:
                cell[2] += 1
        elif failing:
            rec = {k: c[k] for k in ('id', 'source', 'title', 'profile', 'args', 'code', 'command', 'stdin') if k in c}
            rec['want'] = want
            rec['got'] = {'stdout': out.decode('utf-8', 'replace')[:4000], 'status': st, 'note': flag,
                          'stderr': err.decode('utf-8', 'replace')[:1000]}
            failing.write(json.dumps(rec, ensure_ascii=False) + '\n')
    if failing:
        failing.close()

    def table(data, width):
        print('%-*s %-10s %7s %9s %7s %8s' % (width, 'suite', 'profile', 'cases', 'excluded', 'agree', 'percent'))
        for (s, p), (n, x, ok) in data:
            print('%-*s %-10s %7d %9d %7d %7.1f%%' % (width, s, p, n, x, ok, 100.0 * ok / (n - x) if n > x else 0.0))

    print('shell:  %s' % a.shell)
    print('oracle: %s (%s)' % (a.oracle, prints[0]))
    total = [sum(r[k] for r in rows.values()) for k in range(3)]
    table(list(rows.items()) + [(('all', ''), total)], 10)
    if why_n:
        print('excluded: ' + ', '.join('%s %d' % kv for kv in sorted(why_n.items())))
    print('time: oracle %.0f s, shell %.0f s' % (t1 - t0, t2 - t1))
    if a.by_file:
        print()
        for (s, f), (n, x, ok) in files.items():
            print('%-10s %-56s %4d/%-4d' % (s, f, ok, n - x))
    return 0


if __name__ == '__main__':
    sys.exit(main())
