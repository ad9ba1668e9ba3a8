/* The operator's terminal. An interactive agent runs in a process group of its own in the
 * foreground (launch/main.c), so that Ctrl-C and Ctrl-Z reach it and not the monitor; here is the
 * way back: whatever the agent did to the terminal, its caller finds it as it left it, when the
 * agent stops and when it ends, kill -9 included. The caller's shell may also move the box into the
 * background: then the terminal is somebody else's and nothing here touches it. */
#include "monitor/terminal.h"

#include <unistd.h>

#include "base/ban.h"

void terminal_open(struct terminal *t)
{
	*t = (struct terminal){ 0 };
	t->ours = isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp() &&
	          tcgetattr(STDIN_FILENO, &t->caller) == 0;
	t->agent = t->caller;
}

void terminal_given(struct terminal *t)
{
	t->given = t->ours;
}

/* Failures below leave the terminal as it is: it is gone (hang-up), or another session's. SIGTTOU
 * is ignored in the monitor. */

void terminal_take(struct terminal *t)
{
	if (!t->given)
		return;
	t->given = false;
	t->group = tcgetpgrp(STDIN_FILENO);
	(void)tcgetattr(STDIN_FILENO, &t->agent);
	(void)tcsetpgrp(STDIN_FILENO, getpgrp());
	/* Not TCSADRAIN: output that Ctrl-S holds must not hold the monitor. */
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &t->caller);
}

void terminal_give(struct terminal *t)
{
	if (!t->ours || t->given || t->group <= 0 || tcgetpgrp(STDIN_FILENO) != getpgrp())
		return;
	/* The caller may have changed its own settings meanwhile (stty at its prompt): those are
	 * the ones to come back to. */
	(void)tcgetattr(STDIN_FILENO, &t->caller);
	(void)tcsetattr(STDIN_FILENO, TCSANOW, &t->agent);
	t->given = tcsetpgrp(STDIN_FILENO, t->group) == 0;
}
