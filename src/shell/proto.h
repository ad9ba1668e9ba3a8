/* box-shell's START frame: one run of one command. 2 to 6 descriptors cannot travel in one frame
 * (IPC_FDS_MAX), so START carries the channels and STDIO the rest. */
#pragma once

#include "monitor/proto.h"

enum shell_type {
	/* monitor -> box-shell, in this order after HELLO */

	/* 2 fds: channel to box-files, the script file (absent when the text is given). Body:
	 *   str name      argv[0] of the alias ("sh", "bash", "zsh"): $0 for -c without a name
	 *   str text      the command text of -c; empty with a script descriptor
	 *   str zero      $0
	 *   u32 argc, argc times str
	 *                 positional parameters
	 *   str cwd       absolute; decided as change_dir before use
	 *   str workspace absolute
	 *   str home, str operator_home
	 *   str path      PATH for host programs
	 *   u32 flags     SHELL_F_* */
	SHELL_RUN = 200,
	/* u32 n, n times str "NAME=value": environment from the alias, already without reserved
	 * names; repeated as needed */
	SHELL_ENV,
	/* 3 fds: 0, 1, 2. The last frame: the run begins */
	SHELL_STDIO,
	/* u8 signal for the running command, at any later time */
	SHELL_SIGNAL
};
#define SHELL_F_LOGIN    1u /* -l */
#define SHELL_F_ERREXIT  2u /* -e, -u, -x, -o pipefail given to the alias */
#define SHELL_F_NOUNSET  4u
#define SHELL_F_XTRACE   8u
#define SHELL_F_PIPEFAIL 16u
#define SHELL_F_STDIN    32u /* -s, or no operand: the script is read from descriptor 0 */
