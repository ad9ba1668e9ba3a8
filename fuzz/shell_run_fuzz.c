/* The shell behind its parser: the input is a script, run in this process on a monitor that permits
 * in-process commands and on a box-files that has a few small files. Nothing leaves the process:
 * the frames of both channels are answered here, forks fail (or, so that their code is seen, one of
 * them goes on as the child), signals are handed to the shell's handlers, waiting ends the run.
 *
 * Byte 0 of the input: options (see START_*). A run also ends after STEPS_MAX commands and rounds,
 * ALLOCS_MAX allocations or BYTES_MAX bytes. What it allocated is freed from a table, as a shell's
 * memory goes with its process. */
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <poll.h>
#include <regex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/ipc.h"
#include "files/proto.h"
#include "shell/run.h"

#define STEPS_MAX  200u
#define ALLOCS_MAX 60000u
#define BYTES_MAX  ((size_t)96 << 20)
#define SLOTS      (1u << 17)
#define FD_KEEP    900 /* our own descriptors, out of the shell's way */
#define DEPTH_MAX  3   /* of the folders that box-files shows */

#define START_EXTGLOB  1u
#define START_LASTPIPE 2u
#define START_NOUNSET  4u
#define START_CHILD    0x38u /* which fork goes on as the child; 0: none */
#define START_XTRACE   0x40u
#define START_POSIX    0x80u

static const char file_text[] =
    "a b c\nb:2:x\n10 one\n9 two\n\n  -5\tthree\nabc abc\nx=1\necho hi\n";

static struct {
	jmp_buf end;
	struct shell *sh;
	unsigned steps, forks, child;
	int64_t now;
	uint64_t ticket;
	/* the answer to come */
	uint16_t type;
	uint32_t id;
	struct buf body;
	int fd; /* that goes with it, or -1 */
	bool ready;
	void (*handler[SH_NSIG])(int);
	/* allocations */
	void *slot[SLOTS];
	uint32_t used[ALLOCS_MAX];
	uint32_t nused;
	size_t bytes;
	bool tracking;
} f;

_Noreturn static void end(void)
{
	longjmp(f.end, 1);
}

/* --- memory --- */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
void __wrap_free(void *p);
void __real_regfree(regex_t *re);
void __wrap_regfree(regex_t *re);
int __real_vasprintf(char **out, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
int __wrap_vasprintf(char **out, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
int __wrap_asprintf(char **out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static char gone; /* a slot that was used */

static uint32_t slot_of(const void *p)
{
	return (uint32_t)(((uintptr_t)p >> 4) * 2654435761u) & (SLOTS - 1);
}

/* In front of the allocation: nothing is lost when the run ends here. */
static void budget(size_t n)
{
	if (!f.tracking)
		return;
	if (f.nused == ALLOCS_MAX || n > BYTES_MAX - f.bytes)
		end();
	f.bytes += n;
}

static void *track(void *p)
{
	uint32_t i = slot_of(p);

	if (!f.tracking || p == NULL)
		return p;
	while (f.slot[i] != NULL)
		i = (i + 1) & (SLOTS - 1);
	f.slot[i] = p;
	f.used[f.nused++] = i;
	return p;
}

static void untrack(const void *p)
{
	for (uint32_t i = slot_of(p); p != NULL && f.slot[i] != NULL; i = (i + 1) & (SLOTS - 1)) {
		if (f.slot[i] == p) {
			f.slot[i] = &gone;
			return;
		}
	}
}

static void free_all(void)
{
	f.tracking = false;
	for (uint32_t k = 0; k < f.nused; k++) {
		void *p = f.slot[f.used[k]];

		if (p != &gone)
			__real_free(p);
		f.slot[f.used[k]] = NULL;
	}
	f.nused = 0;
	f.bytes = 0;
}

/* What libc allocates for the caller. */
int __wrap_vasprintf(char **out, const char *fmt, va_list ap)
{
	char *p;
	int n = __real_vasprintf(&p, fmt, ap);

	*out = NULL;
	if (n < 0)
		return n;
	if (f.tracking && (f.nused == ALLOCS_MAX || (size_t)n >= BYTES_MAX - f.bytes)) {
		__real_free(p);
		end();
	}
	*out = track(p);
	return n;
}

int __wrap_asprintf(char **out, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = __wrap_vasprintf(out, fmt, ap);
	va_end(ap);
	return n;
}

void *__wrap_malloc(size_t n)
{
	budget(n);
	return track(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	budget(size != 0 && n > BYTES_MAX / size ? SIZE_MAX : n * size);
	return track(__real_calloc(n, size));
}

void *__wrap_realloc(void *p, size_t n)
{
	size_t old = p != NULL ? malloc_usable_size(p) : 0;

	budget(n > old ? n - old : 0);
	untrack(p);
	return track(__real_realloc(p, n));
}

char *__wrap_strdup(const char *s)
{
	budget(strlen(s) + 1);
	return track(__real_strdup(s));
}

void __wrap_free(void *p)
{
	if (f.tracking && p != NULL) {
		size_t n = malloc_usable_size(p);

		f.bytes -= n < f.bytes ? n : f.bytes;
		untrack(p);
	}
	__real_free(p);
}

/* regcomp leaves it to its caller to allocate this, and regfree frees it. */
void __wrap_regfree(regex_t *re)
{
	if (f.tracking)
		untrack(re->fastmap);
	__real_regfree(re);
}

/* --- the ends of a run --- */

/* What is wrapped here is wrapped for the fuzzer's own code, too, which must get the real ones. */
_Noreturn void __real__exit(int status);
_Noreturn void __wrap__exit(int status);
_Noreturn void __wrap_sh_exit(struct shell *sh, int status);
void __wrap_sh_mon_glance(struct shell *sh);
int __wrap_ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *m);
int __wrap_poll(struct pollfd *p, nfds_t n, int ms);
int __real_poll(struct pollfd *p, nfds_t n, int ms);

_Noreturn void __wrap__exit(int status)
{
	if (!f.tracking)
		__real__exit(status);
	end();
}

_Noreturn void __wrap_sh_exit(struct shell *sh, int status)
{
	(void)sh;
	(void)status;
	end();
}

static void step(void)
{
	if (++f.steps > STEPS_MAX)
		end();
}

void __wrap_sh_mon_glance(struct shell *sh)
{
	(void)sh;
	step();
}

/* Time passes at once; who waits for ever has ended. */
int __wrap_ppoll(struct pollfd *p, nfds_t n, const struct timespec *t, const sigset_t *m)
{
	int r = __real_poll(p, n, 0);

	(void)m;
	step();
	if (r == 0 && t == NULL)
		end();
	return r;
}

int __wrap_poll(struct pollfd *p, nfds_t n, int ms)
{
	return __real_poll(p, n, f.tracking ? 0 : ms);
}

static int64_t now(void *arg)
{
	(void)arg;
	return f.now += NS_PER_MS;
}

/* --- processes, signals, limits --- */

pid_t __wrap_sh_fork(struct shell *sh, bool background);
int __real_sigaction(int sig, const struct sigaction *sa, struct sigaction *old);
int __wrap_sigaction(int sig, const struct sigaction *sa, struct sigaction *old);
int __real_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);
int __real_setrlimit(int what, const struct rlimit *r);
int __wrap_setrlimit(int what, const struct rlimit *r);
pid_t __real_waitpid(pid_t pid, int *w, int flags);
pid_t __wrap_waitpid(pid_t pid, int *w, int flags);

pid_t __wrap_sh_fork(struct shell *sh, bool background)
{
	(void)background;
	step();
	(void)sh_out_flush(&sh->out);
	if (++f.forks != f.child)
		return -1;
	sh->subshell++;
	sh_signals_child(sh, background);
	return 0;
}

int __wrap_sigaction(int sig, const struct sigaction *sa, struct sigaction *old)
{
	if (!f.tracking)
		return __real_sigaction(sig, sa, old);
	if (old != NULL)
		*old = (struct sigaction){ .sa_handler = SIG_DFL };
	if (sa != NULL && sig > 0 && sig < SH_NSIG)
		f.handler[sig] = sa->sa_handler;
	return 0;
}

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
	if (!f.tracking)
		return __real_sigprocmask(how, set, old);
	if (old != NULL)
		(void)sigemptyset(old);
	return 0;
}

int __wrap_kill(pid_t pid, int sig)
{
	if (!f.tracking)
		return __real_kill(pid, sig);
	if (pid != 0 && pid != f.sh->pid) {
		errno = ESRCH;
		return -1;
	}
	if (sig > 0 && sig < SH_NSIG && f.handler[sig] != SIG_DFL && f.handler[sig] != SIG_IGN)
		f.handler[sig](sig);
	return 0;
}

int __wrap_setrlimit(int what, const struct rlimit *r)
{
	return f.tracking ? 0 : __real_setrlimit(what, r);
}

pid_t __wrap_waitpid(pid_t pid, int *w, int flags)
{
	if (!f.tracking)
		return __real_waitpid(pid, w, flags);
	errno = ECHILD;
	return -1;
}

/* --- box-files --- */

static int depth_of(const char *path)
{
	int n = 0;

	for (; *path != '\0'; path++)
		n += *path == '/';
	return n;
}

/* Names that begin with d are folders, those with l links, n means nothing there. */
static char kind_of(const char *path)
{
	const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;

	if (*base == 'n')
		return 'n';
	if (*base == '\0' || *base == '.' || *base == 'd' || *base == 'w')
		return 'd';
	return *base == 'l' ? 'l' : 'f';
}

static void put_stat(char kind)
{
	bool dir = kind == 'd', link = kind == 'l';

	buf_put_u32(&f.body, dir ? S_IFDIR | 0755 : link ? S_IFLNK | 0777 : S_IFREG | 0644);
	buf_put_u64(&f.body, dir ? 4096 : sizeof(file_text) - 1);
	buf_put_u64(&f.body, 1000u + (unsigned char)kind);
	buf_put_u64(&f.body, 1);
	buf_put_u64(&f.body, dir ? 2 : 1);
	buf_put_u64(&f.body, 8);
	buf_put_u64(&f.body, 0);
	buf_put_u32(&f.body, 0);
	buf_put_u32(&f.body, 0);
	buf_put_u32(&f.body, 4096);
	for (int i = 0; i < 3; i++) {
		buf_put_u64(&f.body, 1700000000);
		buf_put_u32(&f.body, 5);
	}
}

static void fail(int e)
{
	buf_clear(&f.body);
	f.type = FILES_FAIL;
	buf_put_byte(&f.body, FILES_ERRNO);
	buf_put_u32(&f.body, (uint32_t)e);
	buf_put_u16(&f.body, 0);
	buf_put_str(&f.body, SV(""));
	buf_put_str(&f.body, sv_c(strerror(e)));
}

static int text_fd(bool content)
{
	int fd = memfd_create("f", MFD_CLOEXEC);

	if (fd < 0)
		end();
	if (content && (write(fd, file_text, sizeof(file_text) - 1) < 0 || lseek(fd, 0, 0) != 0))
		end();
	return fd;
}

static void on_open(struct rd *r)
{
	uint32_t flags;
	char path[FILES_PATH_MAX];
	sv s;

	if (rd_u16(r) != 1) { /* several at once: a pipeline's redirections */
		fail(EACCES);
		return;
	}
	flags = rd_u32(r);
	(void)rd_u32(r);
	s = rd_str(r, FILES_PATH_MAX - 1);
	memcpy(path, s.p, s.n);
	path[s.n] = '\0';
	if (kind_of(path) == 'd')
		fail(EISDIR);
	else if (kind_of(path) == 'n' && (flags & O_CREAT) == 0)
		fail(ENOENT);
	else
		f.fd = text_fd((flags & O_TRUNC) == 0);
}

static void put_entry(const char *name, unsigned char type, bool with_stat)
{
	buf_put_byte(&f.body, type);
	buf_put_str(&f.body, sv_c(name));
	buf_put_byte(&f.body, with_stat);
	if (with_stat)
		put_stat(kind_of(name));
}

static void queue(uint16_t type, uint32_t id)
{
	f.type = type;
	f.id = id;
	f.fd = -1;
	f.ready = true;
	buf_clear(&f.body);
}

/* The listing is two frames: the entries come first, DONE with the next receive. */
static bool listing;

static void on_path(uint16_t type, struct rd *r)
{
	bool flag = false;
	char path[FILES_PATH_MAX];
	sv s;

	if (type == FILES_STAT || type == FILES_ACCESS || type == FILES_LIST ||
	    type == FILES_REALPATH || type == FILES_MKTEMP)
		flag = rd_u8(r) != 0;
	s = rd_str(r, FILES_PATH_MAX - 1);
	memcpy(path, s.p, s.n);
	path[s.n] = '\0';
	if (type != FILES_REALPATH && type != FILES_MKTEMP && kind_of(path) == 'n') {
		fail(ENOENT);
		return;
	}
	switch (type) {
	case FILES_STAT:
		put_stat(flag && kind_of(path) == 'l' ? 'f' : kind_of(path));
		break;
	case FILES_LIST:
		if (kind_of(path) != 'd') {
			fail(ENOTDIR);
			break;
		}
		f.type = FILES_ENTRIES;
		listing = true;
		buf_put_u16(&f.body, depth_of(path) < DEPTH_MAX ? 4 : 3);
		put_entry(".h", 8, flag);
		put_entry("a b", 8, flag);
		if (depth_of(path) < DEPTH_MAX)
			put_entry("d", 4, flag);
		put_entry("l", 10, flag);
		break;
	case FILES_READLINK:
		buf_put_str(&f.body, SV("a b"));
		break;
	case FILES_REALPATH:
	case FILES_CHDIR:
		buf_put_str(&f.body, s);
		break;
	case FILES_MKTEMP:
		buf_put_str(&f.body, s);
		f.fd = flag ? -1 : text_fd(false);
		break;
	default:
		break;
	}
}

static void on_files(uint16_t type, uint32_t id, struct rd *r)
{
	if (type == FILES_TREE_BEGIN || type == FILES_TREE_ADD)
		return;
	queue(FILES_DONE, id);
	switch (type) {
	case FILES_OPEN:
		on_open(r);
		break;
	case FILES_LOCATE:
		fail(ENOENT);
		break;
	case FILES_STAT:
	case FILES_ACCESS:
	case FILES_LIST:
	case FILES_READLINK:
	case FILES_REALPATH:
	case FILES_CHDIR:
	case FILES_MKTEMP:
		on_path(type, r);
		break;
	default: /* everything that changes something is done */
		break;
	}
}

/* --- the channels --- */

int __wrap_ipc_send(int fd, uint16_t type, uint32_t id, const struct buf *body, const int *fds,
    size_t nfds, struct box_err *err);
int __wrap_ipc_recv(int fd, struct ipc_msg *m, struct box_err *err);

int __wrap_ipc_send(int fd, uint16_t type, uint32_t id, const struct buf *body, const int *fds,
    size_t nfds, struct box_err *err)
{
	struct rd r = rd_of(body != NULL ? body->p : NULL, body != NULL ? body->n : 0);

	(void)fd;
	(void)fds;
	(void)nfds;
	(void)err;
	step();
	if (type >= FILES_OPEN) {
		on_files(type, id, &r);
	} else if (type == MON_ASK_EXEC) {
		queue(MON_VERDICT, id);
		buf_put_byte(&f.body, 1);
		buf_put_u64(&f.body, ++f.ticket);
	} else if (type == MON_ASK_SPAWN) {
		queue(MON_VERDICT, id);
		buf_put_byte(&f.body, 0);
		buf_put_u16(&f.body, 0);
		buf_put_str(&f.body, SV("policy denied this operation on 'x' [policy: p]."));
	}
	return 0;
}

int __wrap_ipc_recv(int fd, struct ipc_msg *m, struct box_err *err)
{
	(void)fd;
	(void)err;
	if (!f.ready || !buf_ok(&f.body) || f.body.n > IPC_BODY_MAX)
		end(); /* it would wait for ever */
	if (m->data == NULL) {
		m->data = malloc(IPC_HDR + IPC_BODY_MAX);
		if (m->data == NULL)
			end();
	}
	if (f.body.n != 0)
		memcpy(m->data, f.body.p, f.body.n);
	m->type = f.type;
	m->id = f.id;
	m->body = rd_of(m->data, f.body.n);
	for (size_t i = 0; i < IPC_FDS_MAX; i++)
		m->fds[i] = -1;
	m->nfds = f.fd >= 0;
	m->fds[0] = f.fd;
	f.fd = -1;
	f.ready = listing;
	if (listing)
		queue(FILES_DONE, f.id);
	listing = false;
	return 1;
}

/* --- one run --- */

/* Of AddressSanitizer, where it is linked. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));
void __asan_on_error(void);
void __lsan_disable(void) __attribute__((weak));
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n);

enum { KEEP_ERR = FD_KEEP, KEEP_OUT, KEEP_IN, KEEP_NULL, KEEP_QUIET, KEEP_END };

/* Scripts close and replace descriptors 0, 1 and 2. */
static void own_stdio(void)
{
	(void)dup2(KEEP_IN, 0);
	(void)dup2(KEEP_OUT, 1);
	(void)dup2(KEEP_ERR, 2);
}

void __asan_on_error(void)
{
	own_stdio();
}

/* An input reaches thousands of features: libFuzzer would spend nine tenths of the time with their
 * frequencies. In front, so that the command line can say otherwise. */
static void no_entropic(int *argc, char ***argv)
{
	static char off[] = "-entropic=0";
	char **v = calloc((size_t)*argc + 2, sizeof(char *));

	if (v == NULL)
		abort();
	v[0] = (*argv)[0];
	v[1] = off;
	for (int i = 1; i < *argc; i++)
		v[i + 1] = (*argv)[i];
	(*argc)++;
	*argv = v;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	int p[2];

	no_entropic(argc, argv);
	if (__lsan_disable != NULL)
		__lsan_disable(); /* what a run that was cut off leaves in libc (regcomp) */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	(void)signal(SIGPIPE, SIG_IGN);
	if (dup2(2, KEEP_ERR) < 0 || dup2(1, KEEP_OUT) < 0 || dup2(0, KEEP_IN) < 0 ||
	    dup2(open("/dev/null", O_RDWR | O_CLOEXEC), KEEP_NULL) < 0 || pipe(p) != 0 ||
	    dup2(p[0], KEEP_QUIET) < 0) /* p[1] stays open: a channel that never says anything */
		abort();
	(void)dup2(p[1], KEEP_END);
	(void)close(p[0]);
	(void)close(p[1]);
	if (__sanitizer_set_report_fd != NULL)
		__sanitizer_set_report_fd((void *)(uintptr_t)KEEP_ERR);
	return 0;
}

static void run(uint8_t how, sv text)
{
	char path[] = "PATH=/bin", home[] = "HOME=/w";
	char *const env[] = { path, home, NULL };
	struct sh_start s = { .name = "sh",
		.script_fd = -1,
		.zero = "sh",
		.cwd = "/w",
		.workspace = "/w",
		.home = "/w",
		.operator_home = "/h",
		.path = "/bin",
		.env = env,
		.wall = { now, NULL },
		.mono = { now, NULL } };
	struct shell *sh = sh_shell_new(dup(KEEP_QUIET), dup(KEEP_QUIET), dup(KEEP_NULL), &s);

	f.sh = sh;
	sh_signals_child(sh, false); /* forgets what is pending from the run before */
	sh->traps_inherited = false;
	sh_signals_init(sh);
	sh->random = 1;
	sh->shopts |= (how & START_EXTGLOB) != 0 ? SH_S_EXTGLOB : 0u;
	sh->shopts |= (how & START_LASTPIPE) != 0 ? SH_S_LASTPIPE : 0u;
	sh->opts |= (how & START_NOUNSET) != 0 ? SH_O_NOUNSET : 0u;
	sh->opts |= (how & START_XTRACE) != 0 ? SH_O_XTRACE : 0u;
	sh->opts |= (how & START_POSIX) != 0 ? SH_O_POSIX : 0u;
	f.child = (how & START_CHILD) >> 3;
	(void)sh_run_text(sh, text, "");
	sh_run_traps(sh);
	sh_run_exit_trap(sh);
}

int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)
{
	if (n == 0)
		return 0;
	f.steps = f.forks = 0;
	f.now = (int64_t)1700000000 * NS_PER_SEC;
	f.ticket = 0;
	f.ready = listing = false;
	f.body = buf_with(IPC_BODY_MAX); /* of this run, as all that it allocates */
	f.fd = -1;
	if (setjmp(f.end) == 0) {
		(void)dup2(text_fd(true), 0);
		(void)dup2(KEEP_NULL, 1);
		(void)dup2(KEEP_NULL, 2);
		f.tracking = true;
		run(d[0], (sv){ (const char *)d + 1, n - 1 });
	}
	free_all();
	(void)uselocale(LC_GLOBAL_LOCALE); /* a utility may have been cut off in its own */
	own_stdio();
	(void)close_range(3, FD_KEEP - 1, 0);
	(void)close_range(KEEP_END + 1, ~0u, 0);
	return 0;
}
