/* The operator's terminal: lent to an interactive agent, taken back when it stops or ends. See
 * terminal.c. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct terminal {
	bool ours;   /* descriptor 0 is a terminal and `box` was started in its foreground */
	bool given;  /* the agent's group is in the foreground */
	pid_t group; /* the group that was in the foreground when the terminal was taken */
	struct termios caller, agent;
};

/* Look at descriptor 0 and remember how the caller has set the terminal. Before the agent
 * starts. */
void terminal_open(struct terminal *t);
/* The agent was started: it moves itself into the foreground. */
void terminal_given(struct terminal *t);
/* Bring our own process group to the foreground and restore the caller's settings; the agent's are
 * kept for terminal_give. Nothing happens when the agent does not have the terminal. */
void terminal_take(struct terminal *t);
/* We were continued: in the foreground (fg) the agent gets the terminal back as it had set it; in
 * the background (bg) nothing happens. */
void terminal_give(struct terminal *t);
