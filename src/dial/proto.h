/* The frames of box-dial. It has two peers: the monitor on MON_FD (trusted) and box-gateway on the
 * channel that START brings (hostile by assumption: it may ask for any name, and gets what policy
 * permits to be connected).
 *
 * Order for one CONNECT:
 *   1. floor by name (metadata hosts, literal addresses), then MON_ASK_CONNECT without ip. A denial
 *      ends it.
 *   2. resolution, or the [resolve] table, in which case no name is looked up. An IP literal is its
 *      own resolution.
 *   3. for each address in order: floor by address, MON_ASK_CONNECT with ip. A denial ends it
 *      (box-design 9.2 step 5); a permitted address is connected to, MON_DONE_CONNECT reports how
 *      that ended, and the first that connects is the answer.
 *   4. MON_DONE_CONNECT for the ticket of step 1, with the final result.
 * The address that is dialled is the address that was decided: nothing is resolved twice.
 *
 * `str` is a u32 length and bytes (buf_put_str, rd_str). A host is canonical (base/host.h): lower
 * case, no trailing dot, an IP literal in its canonical text and without brackets. box-dial ends a
 * gateway that sends another spelling. */
#pragma once

#include "monitor/proto.h"

enum dial_type {
	/* monitor -> box-dial: MON_START, 1 fd (the channel to box-gateway).
	 *   u32 n (0..256), n times { str host, u16 port, str addr, u16 addr_port }: [resolve]
	 *   u32 connect_ms   per address; 0: DIAL_CONNECT_MS
	 *   u32 resolve_ms   0: DIAL_RESOLVE_MS
	 *
	 * box-dial -> monitor: MON_ASK_CONNECT
	 *   str host, u16 port, str ip ("" before resolution), u32 sandbox
	 *   Answered by MON_VERDICT: u8 1, u64 ticket; or u8 0, u16 0, str denial text.
	 * and MON_DONE_CONNECT: u64 ticket, u8 connected. */

	/* box-gateway -> box-dial. The id of the frame names the attempt. */

	/* str host, u16 port, u32 sandbox. Answered once by SOCKET, DENIED or FAILED with the same
	 * id. */
	DIAL_CONNECT = 300,
	/* Empty: the asker lost interest. The attempt is not answered any more; its tickets are
	 * still reported. */
	DIAL_CANCEL,

	/* box-dial -> box-gateway */

	/* 1 fd: a connected non-blocking TCP socket. str ip (canonical text). */
	DIAL_SOCKET = 316,
	/* str text: the whole answer for the workload (a policy denial, or the floor's text). */
	DIAL_DENIED,
	/* u8 dial_why, str text: not resolvable or not reachable. Names no address. */
	DIAL_FAILED,

	/* box-dial -> monitor, not answered: the floor refused what policy had permitted, or would
	 * have been asked about. Recorded as a control refusal.
	 *   u64 ticket (of step 1; 0 when refused before it), str host, u16 port,
	 *   str ip ("" when refused before step 1), u32 sandbox, str text */
	DIAL_FLOOR = 332
};

enum dial_why { DIAL_WHY_RESOLVE = 1, DIAL_WHY_CONNECT, DIAL_WHY_LIMIT, DIAL_WHY_BROKEN };

#define DIAL_CONNECT_MS  10000u
#define DIAL_RESOLVE_MS  15000u
#define DIAL_PENDING_MAX 512u /* attempts at once; one more is FAILED (DIAL_WHY_LIMIT) */
#define DIAL_ADDRS_MAX   16u  /* addresses of one name that are tried */
#define DIAL_THREADS     8u   /* resolver threads */
#define DIAL_HOST_MAX    253u

/* The text of DENIED for a floored destination. It does not name the address, so that a peer cannot
 * map what a name points to. */
#define DIAL_FLOOR_TEXT                                                                            \
	"blocked by egress control: link-local and cloud metadata addresses are closed beneath "   \
	"policy"
