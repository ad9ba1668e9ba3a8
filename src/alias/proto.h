/* The frames between an alias and the monitor, over the box's one socket (SOCK_SEQPACKET,
 * base/ipc.h). The alias runs inside the agent's sandbox and is hostile by assumption: it may be
 * any program that speaks these frames.
 *
 * One connection is one command:
 *   alias -> monitor   HELLO, then TEXT, ARG, ENV in any number and order, then RUN; later SIGNAL
 *   monitor -> alias   STOPPED after a SIGNAL that stops; EXIT or REFUSED, once; then the
 *                      connection closes */
#pragma once

#define ALIAS_VERSION 1
/* Where the agent's view shows the box's socket. */
#define ALIAS_SOCKET "/run/boxwood/box.sock"

#define ALIAS_NAME_MAX 64
#define ALIAS_CWD_MAX  4096
#define ALIAS_TEXT_MAX ((size_t)1 << 20) /* all TEXT frames of a command */
#define ALIAS_ARGS_MAX ((size_t)1 << 20) /* all ARG frames */
#define ALIAS_ENV_MAX  ((size_t)1 << 20) /* all ENV frames */

enum alias_type {
	/* u32 ALIAS_VERSION, str name (last component of argv[0]), str cwd ("" unknown), u32
	 * ALIAS_F_*, str zero ($0) */
	ALIAS_HELLO = 1,
	/* bytes of the command text of -c, in order */
	ALIAS_TEXT,
	/* str: one positional parameter, in order; several in a frame */
	ALIAS_ARG,
	/* str "NAME=value"; several in a frame */
	ALIAS_ENV,
	/* 3 fds: 0, 1, 2 of the caller; a 4th: the script file, open for reading */
	ALIAS_RUN,
	/* u8 signal number that the alias received */
	ALIAS_SIGNAL,
	/* u32 status 0..255 */
	ALIAS_EXIT = 16,
	/* str reason: the box could not serve; status 125 */
	ALIAS_REFUSED,
	/* after SIGNAL with SIGTSTP: the command has stopped, so the alias may stop too and leave
	 * the terminal to its caller */
	ALIAS_STOPPED
};

#define ALIAS_F_LOGIN    1u  /* -l */
#define ALIAS_F_ERREXIT  2u  /* -e */
#define ALIAS_F_NOUNSET  4u  /* -u */
#define ALIAS_F_XTRACE   8u  /* -x */
#define ALIAS_F_PIPEFAIL 16u /* -o pipefail */
#define ALIAS_F_STDIN    32u /* the script is read from descriptor 0 */
