/* The frames between the monitor and one box-launch (base/ipc framing, SOCK_SEQPACKET). box-launch
 * is started as pid 1 of its sandbox by launch_start, reads its spec from LAUNCH_SPEC_FD, builds
 * the view, starts the program as pid 2 and stays as reaper.
 *
 * Order: [LISTENER] then exactly one of READY or FAILED; after READY any number of STOPPED, then
 * EXITED. After FAILED or EXITED the process ends and with it everything in its pid namespace. When
 * the channel closes without FAILED or EXITED, box-launch was killed. When the monitor's end
 * closes, box-launch ends at once. */
#pragma once

#define LAUNCH_CONTROL_FD 3
#define LAUNCH_SPEC_FD    4

enum launch_type {
	/* box-launch -> monitor */

	/* 1 fd: listening TCP socket on 127.0.0.1:SANDBOX_PROXY_PORT of the sandbox's own network
	 * namespace. With SANDBOX_NET_PROXY only. */
	LAUNCH_LISTENER = 1,
	LAUNCH_READY,   /* empty: the program was executed */
	LAUNCH_FAILED,  /* u8 launch_stage, str text: one line, what, why, what to enable */
	LAUNCH_STOPPED, /* u8 signal: the program's process was stopped (job control) */
	LAUNCH_EXITED,  /* u32 wait status of the program, as from waitpid */

	/* monitor -> box-launch */

	/* u8 signal (1..31): to the program's process group. */
	LAUNCH_SIGNAL = 16
};

enum launch_stage {
	LAUNCH_STAGE_SPEC = 1, /* the spec is unreadable */
	LAUNCH_STAGE_NAMESPACE,
	LAUNCH_STAGE_NETWORK,
	LAUNCH_STAGE_VIEW,
	LAUNCH_STAGE_CONFINE, /* capabilities, Landlock, seccomp, limits */
	LAUNCH_STAGE_EXEC
};
