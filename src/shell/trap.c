/* Signals and traps (POSIX 2.11). Handlers only set flags; actions run between commands.
 *
 * The first process learns of the alias's signals by frames and sends them to its own process
 * group, so that every subshell has them as from a terminal. It alone handles fatal signals itself:
 * it must report the status before it ends. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "shell/shell.h"
#include "base/ban.h"

/* The one object that handlers reach (c-style 2.9). `count` says whether anything is pending at
 * all. */
static struct {
	volatile sig_atomic_t count;
	volatile sig_atomic_t pending[SH_NSIG];
} signals;

static void on_signal(int sig)
{
	if (sig > 0 && sig < SH_NSIG) {
		signals.pending[sig] = 1;
		signals.count = 1;
	}
}

static void on_child(int sig)
{
	(void)sig; /* it only ends ppoll */
}

static void handle(int sig, void (*fn)(int))
{
	struct sigaction sa = { 0 };

	sa.sa_handler = fn;
	sigemptyset(&sa.sa_mask);
	(void)sigaction(sig, &sa, NULL); /* SIGKILL and SIGSTOP cannot be trapped */
}

static const struct {
	const char *name;
	int sig;
} names[] = { { "EXIT", 0 }, { "HUP", SIGHUP }, { "INT", SIGINT }, { "QUIT", SIGQUIT },
	{ "ILL", SIGILL }, { "TRAP", SIGTRAP }, { "ABRT", SIGABRT }, { "BUS", SIGBUS },
	{ "FPE", SIGFPE }, { "KILL", SIGKILL }, { "USR1", SIGUSR1 }, { "SEGV", SIGSEGV },
	{ "USR2", SIGUSR2 }, { "PIPE", SIGPIPE }, { "ALRM", SIGALRM }, { "TERM", SIGTERM },
	{ "STKFLT", 16 }, { "CHLD", SIGCHLD }, { "CONT", SIGCONT }, { "STOP", SIGSTOP },
	{ "TSTP", SIGTSTP }, { "TTIN", SIGTTIN }, { "TTOU", SIGTTOU }, { "URG", SIGURG },
	{ "XCPU", SIGXCPU }, { "XFSZ", SIGXFSZ }, { "VTALRM", SIGVTALRM }, { "PROF", SIGPROF },
	{ "WINCH", SIGWINCH }, { "IO", SIGIO }, { "PWR", SIGPWR }, { "SYS", SIGSYS } };

int sh_signal_number(const char *name)
{
	int64_t n;

	if (sv_to_i64(sv_c(name), 10, 0, SH_NSIG - 1, &n))
		return (int)n;
	if (strncasecmp(name, "SIG", 3) == 0)
		name += 3;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(names[i].name, name) == 0)
			return names[i].sig;
	}
	return strcasecmp(name, "POLL") == 0 ? SIGIO : -1;
}

const char *sh_signal_name(int sig)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (names[i].sig == sig)
			return names[i].name;
	}
	return NULL;
}

static const int fatal[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, 0 };

void sh_signals_init(struct shell *sh)
{
	sigset_t none;

	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int s = 1; s < SH_NSIG; s++) {
		struct sigaction sa;

		if (sigaction(s, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN && s != SIGPIPE)
			sh->ignored_at_start[s] = true;
	}
	handle(SIGPIPE, SIG_IGN);
	handle(SIGCHLD, on_child);
	for (size_t i = 0; sh->first && fatal[i] != 0; i++) {
		if (!sh->ignored_at_start[fatal[i]])
			handle(fatal[i], on_signal);
	}
}

void sh_signals_child(struct shell *sh, bool background)
{
	for (int s = 1; s < SH_NSIG; s++) {
		bool had = sh->trap[s] != NULL && sh->trap[s][0] != '\0';
		bool was_first = false;

		for (size_t i = 0; fatal[i] != 0; i++)
			was_first = was_first || fatal[i] == s;
		if (had || (was_first && (sh->trap[s] == NULL) && !sh->ignored_at_start[s]))
			handle(s, s == SIGCHLD ? on_child : SIG_DFL);
		signals.pending[s] = 0;
	}
	signals.count = 0;
	handle(SIGCHLD, on_child);
	sh->traps_inherited = true;
	if (background) {
		/* POSIX 2.11: an asynchronous list ignores interrupts when job control is off. */
		handle(SIGINT, SIG_IGN);
		handle(SIGQUIT, SIG_IGN);
	}
}

/* Inherited traps are only shown; the first change forgets them. */
void sh_traps_own(struct shell *sh)
{
	if (!sh->traps_inherited)
		return;
	sh->traps_inherited = false;
	for (int s = 0; s < SH_NSIG; s++) {
		if (sh->trap[s] != NULL && sh->trap[s][0] != '\0') {
			free(sh->trap[s]);
			sh->trap[s] = NULL;
		}
	}
}

int sh_trap_set(struct shell *sh, int sig, const char *action)
{
	sh_traps_own(sh);
	if (sig < 0 || sig >= SH_NSIG)
		return -1;
	if (sig != 0 && sh->ignored_at_start[sig])
		return 0; /* POSIX: signals ignored on entry cannot be trapped */
	free(sh->trap[sig]);
	sh->trap[sig] = action != NULL ? sh_xstrdup(action) : NULL;
	if (sig == 0 || sig == SIGKILL || sig == SIGSTOP)
		return 0;
	if (action == NULL) {
		bool ours = sig == SIGPIPE;

		for (size_t i = 0; sh->first && fatal[i] != 0; i++) {
			if (fatal[i] == sig) {
				handle(sig, on_signal);
				return 0;
			}
		}
		handle(sig, ours ? SIG_IGN : sig == SIGCHLD ? on_child : SIG_DFL);
	} else if (action[0] == '\0') {
		handle(sig, sig == SIGCHLD ? on_child : SIG_IGN);
	} else {
		handle(sig, on_signal);
	}
	return 0;
}

bool sh_signal_pending(void)
{
	return signals.count != 0;
}

int sh_signal_fatal(struct shell *sh)
{
	for (int s = 1; s < SH_NSIG; s++) {
		if (signals.pending[s] != 0 && sh->trap[s] == NULL)
			return s;
	}
	return 0;
}

void sh_signals_defer(struct shell *sh)
{
	(void)sh;
	signals.count = 0;
}

void sh_signals_restore(struct shell *sh)
{
	(void)sh;
	for (int s = 1; s < SH_NSIG; s++) {
		if (signals.pending[s] != 0)
			signals.count = 1;
	}
}

static void run_action(struct shell *sh, const char *action)
{
	char *text = sh_xstrdup(action);
	int status = sh->status, line = sh->line;
	bool in_trap = sh->in_trap;

	sh->in_trap = true;
	(void)sh_run_text(sh, sv_c(text), "");
	sh->in_trap = in_trap;
	sh->line = line;
	if (sh->flow == SH_FLOW_NONE)
		sh->status = status;
	free(text);
}

void sh_run_traps(struct shell *sh)
{
	if (signals.count == 0)
		return;
	signals.count = 0;
	for (int s = 1; s < SH_NSIG && sh->flow != SH_FLOW_EXIT; s++) {
		if (signals.pending[s] == 0)
			continue;
		signals.pending[s] = 0;
		if (sh->trap[s] != NULL && sh->trap[s][0] != '\0' && !sh->traps_inherited) {
			run_action(sh, sh->trap[s]);
		} else if (sh->trap[s] == NULL) {
			sh->killed = s;
			sh->status = 128 + s;
			sh->flow = SH_FLOW_EXIT;
		}
	}
}

void sh_run_exit_trap(struct shell *sh)
{
	char *action = sh->trap[0];
	int status = sh->status;

	if (action == NULL || sh->traps_inherited)
		return;
	sh->trap[0] = NULL;
	sh->flow = SH_FLOW_NONE;
	sh->in_trap = true;
	sh->no_errexit++;
	(void)sh_run_text(sh, sv_c(action), "");
	sh->no_errexit--;
	sh->in_trap = false;
	/* `exit N` in the action decides; else the status the shell ended with stays. */
	if (sh->flow != SH_FLOW_EXIT)
		sh->status = status;
	free(action);
}

void sh_run_pseudo_trap(struct shell *sh, char *action)
{
	char *text;
	int status = sh->status;

	if (action == NULL || action[0] == '\0' || sh->in_trap)
		return;
	text = sh_xstrdup(action);
	sh->in_trap = true;
	sh->line_fixed = true; /* LINENO is that of the command, not of the action */
	sh->no_errexit++;
	(void)sh_run_text(sh, sv_c(text), "");
	sh->no_errexit--;
	sh->line_fixed = false;
	sh->in_trap = false;
	if (sh->flow == SH_FLOW_NONE)
		sh->status = status;
	free(text);
}

int sh_signal_first(void)
{
	for (int s = 1; s < SH_NSIG; s++) {
		if (signals.pending[s] != 0)
			return s;
	}
	return 0;
}
