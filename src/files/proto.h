/* box-files: its START frame and what its clients say to it. Frames as in base/ipc.h, `str` as in
 * monitor/proto.h.
 *
 * Life: box-files is executed with MON_FD, confines itself (contain/worker.h), sends HELLO,
 * receives START, then serves. MON_CLIENT brings one client's channel (any SOCK_SEQPACKET end) and
 * its session number, which goes unchanged into every MON_ASK_FS. A client is hostile: a frame
 * outside the table below ends that client and nothing else. A client leaves by closing its
 * channel; what was permitted and not done by then is reported with MON_ABANDON.
 *
 * `/tmp` and everything below is the folder whose descriptor came with START, whatever the host has
 * there, but for roots that lie in the host's /tmp. It is spelled /tmp/… to policy; `..` of it is
 * `/`.
 *
 * Names outside the roots are never looked up (programs that FILES_LOCATE finds aside): such a path
 * is decided on its folded spelling and then refused by the floor, so it says nothing of the
 * host. */
#pragma once

#include "monitor/proto.h"

/* MON_START for box-files. 1 descriptor: the folder <box dir>/tmp (O_PATH or O_RDONLY,
 * O_DIRECTORY). All paths are canonical and absolute. Body:
 *   str home
 *       of the operator: "~" of policy spellings
 *   u16 n, n times { u8 FILES_ROOT_* bits, str path }
 *       what the floor lets through: the path itself and all below. Home, workspace, agent HOME
 *       (write), granted folders and files. /tmp and the harmless devices (/dev/null, zero, full,
 *       random, urandom, tty) need no entry
 *   u16 n, n times { u8 files_protect, str path, u64 dev, u64 ino }
 *       protected objects, by identity and by path; dev = ino = 0 when nothing is there. Hard links
 *       and other spellings are caught by identity, absent objects by path
 *   u16 n, n times str path
 *       [floor] allow: paths (each with all below) that FILES_PROT_CREDENTIAL does not cover */
#define FILES_ROOT_WRITE 1u /* without it: reading effects only */
#define FILES_ROOTS_MAX  512

enum files_protect {
	/* Box directory and other trusted state: nothing at or below is opened, nothing above is
	 * moved, removed or re-permissioned. */
	FILES_PROT_BOX = 1,
	/* box.toml, policy.dw: neither opened nor changed; the folders above as for BOX. */
	FILES_PROT_AUTHORITY,
	/* A credential store (box-config-and-policy 1.5): as BOX, unless [floor] allow names the
	 * path. */
	FILES_PROT_CREDENTIAL,
	/* Any other tree that configuration takes away. */
	FILES_PROT_DENY
};

/* The reasons of the floor, as clients print them behind "<path>: " (shell.md 6.5). */
#define FILES_TEXT_OUTSIDE "outside this box's home and every declared bind"
#define FILES_TEXT_BOX     "resolves into trusted Box state, which no policy may open"
#define FILES_TEXT_AUTHORITY                                                                       \
	"resolves to an authority source that this run loaded, which no policy may open or change"
#define FILES_TEXT_CREDENTIAL "resolves into a credential store, which no policy may open"
#define FILES_TEXT_DENY       "is denied by this box's configuration, which no policy may widen"
#define FILES_TEXT_DEVICE     "is a device that no box opens"
#define FILES_TEXT_CHANGED    "filesystem identity changed during effect admission"

/* Client frames. One request at a time: the next is read after the answer went out. Every request
 * is answered by exactly one FILES_DONE or FILES_FAIL with its id, before which the frames named
 * there may come. Paths are absolute, at most FILES_PATH_MAX - 1 bytes, without NUL. */
#define FILES_PATH_MAX 4096
#define FILES_OPEN_MAX 64u

enum files_type {
	/* client -> box-files */

	/* u16 n (1..FILES_OPEN_MAX), n times { u32 flags (open(2)), u32 mode, str path }.
	 * FILES_FDS*, DONE with the rest of the descriptors. */
	FILES_OPEN = 300,
	FILES_STAT,     /* u8 follow, str path. DONE: stat */
	FILES_ACCESS,   /* u8 mode (R_OK|W_OK|X_OK), str path */
	FILES_LIST,     /* u8 stat_entries, str path. FILES_ENTRIES* */
	FILES_READLINK, /* str path. DONE: str text */
	FILES_REALPATH, /* u8 must_exist, str path. DONE: str canonical path (absolute) */
	FILES_CHDIR,    /* str path. DONE: str canonical path */
	FILES_MKDIR,    /* u32 mode, str path */
	FILES_CHMOD,    /* u32 mode, str path */
	/* u8 follow, 2 times { u64 seconds, u32 nanoseconds (UTIME_NOW, UTIME_OMIT too) }, str
	 * path */
	FILES_UTIMES,
	FILES_UNLINK,  /* str path */
	FILES_RMDIR,   /* str path */
	FILES_RENAME,  /* u8 no_replace, str from, str to */
	FILES_SYMLINK, /* u8 replace, str target text, str path */
	FILES_LINK,    /* u8 replace, str from, str to */
	FILES_MKTEMP,  /* u8 dir, str template. DONE: str path, 1 descriptor unless dir */
	/* str name, str path_var (ignored when name is an absolute path). DONE: str canonical
	 * path */
	FILES_LOCATE,
	/* u8 files_tree_op, u32 FILES_TF_*, u32 mode_set (x bits for folders << 16), u32
	 * mode_clear, str dst ("" for remove and chmod). Not answered. */
	FILES_TREE_BEGIN,
	FILES_TREE_ADD, /* u16 n, n times str path. Repeated as needed; not answered */
	FILES_TREE_GO,  /* empty. FILES_NOTE* */

	/* box-files -> client */

	FILES_DONE = 330, /* body per request; descriptors for OPEN and MKTEMP */
	/* fail := u8 files_why, u32 errno, u16 index (OPEN: which entry), str path, str text */
	FILES_FAIL,
	FILES_FDS,  /* 4 descriptors of an OPEN of more than 4 */
	FILES_WAIT, /* empty: the answer waits for somebody else (a FIFO that nobody reads) */
	/* u16 n, n times { u8 type, str name, u8 has_stat, [stat] }, in strcmp order */
	FILES_ENTRIES,
	/* u8 files_tree_event, u32 operand, str path below the operand ("" itself); with
	 * FILES_TREE_ERROR: fail; with FILES_TREE_DID: u8 is a folder */
	FILES_NOTE
};
/* stat := u32 mode, u64 size, ino, dev, nlink, blocks, rdev, u32 uid, gid, blksize,
 *         3 times { u64 seconds, u32 nanoseconds } (access, modify, change) */
#define FILES_STAT_LEN (4 + 6 * 8 + 3 * 4 + 3 * 12)

/* Bits of FILES_TREE_BEGIN, one for each bool of struct files_tree_opts. */
#define FILES_TF_RECURSIVE     0x001u
#define FILES_TF_FORCE         0x002u
#define FILES_TF_DIR           0x004u
#define FILES_TF_PRESERVE      0x008u
#define FILES_TF_NO_CLOBBER    0x010u
#define FILES_TF_UPDATE        0x020u
#define FILES_TF_NO_DEREF      0x040u
#define FILES_TF_TARGET_IS_DIR 0x080u
#define FILES_TF_ONE_FS        0x100u
#define FILES_TF_VERBOSE       0x200u

/* Limits of one request (README.md says why); plan bytes are of all clients together. */
#define FILES_CLIENTS_MAX    1024
#define FILES_TREE_ENTRIES   1000000
#define FILES_TREE_OPERANDS  100000
#define FILES_PLAN_BYTES_MAX ((size_t)256 << 20)
