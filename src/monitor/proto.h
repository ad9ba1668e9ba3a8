/* The frames between the monitor (`box run`) and its workers. Bodies are written with buf_put_* and
 * read with rd_*; `str` below is a u32 length and bytes (buf_put_str, rd_str).
 *
 * Life of a worker: it is executed with descriptor MON_FD as its channel to the monitor, confines
 * itself, sends HELLO, receives START, then asks. Every request carries an id chosen by the worker;
 * the answer carries the same id. Workers may have several requests outstanding.
 *
 * The monitor trusts nothing in a request beyond its form: a worker that lies about what it saw
 * gets decisions about the lie, and effects happen only in programs that ask for themselves
 * (box-files, box-dial) or in the monitor. */
#pragma once

#include <stdint.h>

#define MON_FD         3 /* a worker's channel to the monitor */
#define MON_VERSION    1
#define MON_PATH_MAX   4096   /* a path as policy sees it */
#define MON_NAME_MAX   1024   /* host names, methods */
#define MON_TEXT_MAX   100000 /* a command line as policy sees it */
#define MON_ARGS_MAX   8192   /* words of one command */
#define MON_REASON_MAX 8192   /* a denial text */
#define MON_BATCH_MAX  512    /* fs effects in one ASK_FS */

/* What is decided (box-config-and-policy 2.2). */
enum mon_fs_op {
	FS_READ_CONTENT = 1,
	FS_READ_METADATA,
	FS_ENUMERATE,
	FS_READ_LINK,
	FS_CHANGE_DIR,
	FS_EXEC,
	FS_WRITE_CONTENT,
	FS_CREATE_DIR,
	FS_SET_PERMISSIONS,
	FS_SYMLINK,
	FS_REMOVE_FILE,
	FS_REMOVE_DIR,
	FS_RENAME
};

/* How an fs effect ended: `output.result` of its ::response. */
enum mon_fs_result { FS_COMPLETED = 1, FS_DESCRIPTOR_ISSUED, FS_INDETERMINATE, FS_FAILED };

enum mon_type {
	/* --- worker -> monitor, every worker --- */

	/* u32 MON_VERSION, str program name */
	MON_HELLO = 1,
	/* str text: the worker cannot go on; the box stops */
	MON_FATAL,

	/* --- monitor -> worker --- */

	/* body per program: see its proto.h; descriptors likewise */
	MON_START = 16,
	/* box-files, 1 fd: a new client's channel. u32 session */
	MON_CLIENT,
	/* end cleanly */
	MON_STOP,

	/* --- decisions: worker -> monitor, answered by VERDICT ---
	 *
	 * command := str command, str program, u32 argc, argc times { u8 literal, str arg }, str
	 * cwd. The args exclude the program; `literal` is 1 when the word stood in the script as it
	 * is (for redaction in records only). */

	/* box-files: u32 session, u16 n (1..MON_BATCH_MAX), n times { u8 mon_fs_op, str path } */
	MON_ASK_FS = 32,
	/* box-shell: command */
	MON_ASK_EXEC,
	/* box-shell: command, str program_path ("~/…" or absolute) */
	MON_ASK_SPAWN,
	/* box-dial: str host, u16 port, str ip ("" before resolution) */
	MON_ASK_CONNECT,
	/* box-gateway: see src/gateway/proto.h */
	MON_ASK_HTTP,

	/* --- monitor -> worker --- */

	/* u8 permit; if permitted: u64 ticket (of the first effect; a batch has consecutive
	 * tickets); if denied: u16 index of the refused effect in the batch, str denial text (spec
	 * 3.1, whole: "policy denied this operation on …"). ASK_HTTP adds fields:
	 * src/gateway/proto.h */
	MON_VERDICT = 48,

	/* --- outcomes: worker -> monitor, not answered, each ticket once ---
	 *
	 * What is never reported is recorded as indeterminate when the channel closes. */

	/* u64 ticket, u8 mon_fs_result */
	MON_DONE_FS = 64,
	/* u64 ticket, i32 status (as u32). Of ASK_SPAWN the status that the program's launcher saw
	 * is recorded instead; without one, 0 is not believed */
	MON_DONE_EXEC,
	/* u64 ticket, u8 connected */
	MON_DONE_CONNECT,
	/* u64 ticket, u16 status (0: no reply came), u64 bytes of request body delivered */
	MON_DONE_HTTP,
	/* box-files: u64 first ticket, u16 n, u8 mon_fs_op, str path, str reason: the reach floor
	 * refused what policy permitted. Recorded (rule enforcement:reach-floor). The n tickets of
	 * that batch are dropped: they get no response */
	MON_FLOOR,
	/* u64 first ticket, u16 n: permitted but not done (an earlier leg failed). Not for a
	 * program that was started */
	MON_ABANDON,

	/* --- programs: box-shell -> monitor, and back --- */

	/* 3 fds: stdin, stdout, stderr of the program. u64 ticket of ASK_SPAWN, str cwd (absolute),
	 * u32 argc, argc times str (argv; in place of [0] the decided program stands), u32 envc,
	 * envc times str "NAME=value" that the shell exported. Once a ticket. Answered by
	 * TOOL_STARTED or TOOL_REFUSED */
	MON_START_TOOL = 80,
	/* u32 tool, u8 signal */
	MON_SIGNAL_TOOL,
	/* u32 tool */
	MON_TOOL_STARTED = 96,
	/* str text without prefix: "no tool runs …", or why the sandbox could not be built */
	MON_TOOL_REFUSED,
	/* u32 tool, i32 wait status (as u32, from waitpid); unsolicited */
	MON_TOOL_EXITED,

	/* --- box-shell -> monitor --- */

	/* 2 fds: the monitor's end of a new channel for a subshell, box-files' end of its files
	 * channel. Not answered: the sender keeps the other ends and may use them at once. Same
	 * session, same rules */
	MON_FORK = 112,
	/* i32 status (as u32): the command ended; the alias may exit. Sent by the shell's first
	 * process only. The worker may linger for background jobs */
	MON_EXIT
};
