/* files: the client side of box-files. Every file effect of an interpreter goes through here;
 * the interpreter itself has no file system.
 *
 * A call names an object by an absolute path ("" components, "." and ".." allowed, links
 * followed as the call says). box-files resolves it once to an object it holds, has the decision
 * made on that object's canonical path, applies the reach floor, and acts on the object it held.
 * What comes back is a result, a descriptor, or a struct files_err. Calls block. One `struct
 * files` serves one process; a fork gets its own channel (files_fork).
 *
 * Used by box-shell (and later box-python and box-trap). Not thread-safe. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"

struct files;

enum files_why {
	FILES_OK = 0,
	FILES_ERRNO, /* the system's answer: sys */
	/* policy; text is the whole denial: "policy denied this operation on '…' …" */
	FILES_DENIED,
	FILES_FLOOR, /* the reach floor, after a permit; text is "<path>: <reason>" */
	FILES_BROKEN /* box-files or the monitor is gone: the command ends with status 125 */
};

/* Why a call failed. text is owned by the struct files and lives until the next call. */
struct files_err {
	enum files_why why;
	int sys;          /* errno for FILES_ERRNO; EACCES for DENIED and FLOOR; EIO for BROKEN */
	const char *path; /* the object as policy sees it ("~/p/x"), for FLOOR; else NULL */
	const char *text; /* never NULL: strerror for FILES_ERRNO, "<path>: <reason>" for FLOOR */
};

struct files_stat {
	uint32_t mode; /* st_mode, type bits included */
	uint64_t size, ino, dev, nlink, blocks, rdev;
	uint32_t uid, gid, blksize;
	struct timespec atime, mtime, ctime;
};

struct files_entry {
	const char *name;
	uint8_t type; /* DT_* as the directory says, DT_UNKNOWN possible */
};

/* Take over a connected channel. NULL when there is no memory. */
struct files *files_new(int fd);
void files_free(struct files *f);
/* The error of the last failed call. */
const struct files_err *files_error(const struct files *f);
/* Make the ends for a forked child: *child_fd is to be used with files_new in the child;
 * *server_fd is to be sent to the monitor with MON_FORK. */
int files_fork(struct files *f, int *child_fd, int *server_fd, struct box_err *err);

/* How to wait where a call may take as long as somebody else likes (a FIFO without its other
 * end, a whole tree): until fd is readable. wait returns 0 then, or -1 to give the call up: it
 * fails with EINTR, and what the server still does for it is undone or goes on until the channel
 * is closed. NULL (the default): just wait. */
void files_on_wait(struct files *f, int (*wait)(void *arg, int fd), void *arg);

/* All calls below: 0 or a descriptor on success, -1 with files_error() set. */

/* Open a file. flags: O_RDONLY, O_WRONLY, O_RDWR with O_CREAT O_EXCL O_TRUNC O_APPEND O_NONBLOCK
 * O_DIRECTORY. Decided as read_content and/or write_content before anything is created or
 * truncated. O_NOFOLLOW refuses a final link. Outcome: descriptor_issued. /dev/null is opened
 * without a decision (design.md 10); /dev/stdin, /dev/fd/N and the like never reach this call. A
 * folder is EISDIR, O_DIRECTORY or not: no descriptor of one leaves box-files. */
int files_open(struct files *f, const char *path, int flags, mode_t mode);
/* Open several at once: everything is decided before the first is created or truncated; on
 * failure nothing was changed and *bad tells which one. fds[i] receives the descriptors. */
struct files_open_req {
	const char *path;
	int flags;
	mode_t mode;
};
int files_open_all(
    struct files *f, const struct files_open_req *req, size_t n, int *fds, size_t *bad);
/* read_metadata. follow = false judges the link itself. */
int files_stat(struct files *f, const char *path, bool follow, struct files_stat *st);
/* access(2) with R_OK, W_OK, X_OK, F_OK; X_OK is decided as exec, else read_metadata. */
int files_access(struct files *f, const char *path, int mode);
/* enumerate. Calls on() for every entry but "." and ".." in the order of strcmp; on() must not
 * call files_* (collect first). stat_entries also decides read_metadata for each entry and
 * passes st (NULL when that was refused or failed). */
int files_list(struct files *f, const char *path, bool stat_entries,
    void (*on)(void *arg, const struct files_entry *e, const struct files_stat *st), void *arg);
/* read_link; the text is appended to out. */
int files_readlink(struct files *f, const char *path, struct buf *out);
/* The canonical absolute path (realpath), decided as read_metadata. must_exist = false allows a
 * missing last component. */
int files_realpath(struct files *f, const char *path, bool must_exist, struct buf *out);
/* change_dir; out receives the canonical absolute path. */
int files_chdir(struct files *f, const char *path, struct buf *out);
int files_mkdir(struct files *f, const char *path, mode_t mode); /* create_dir */
int files_chmod(struct files *f, const char *path, mode_t mode); /* set_permissions */
int files_utimes(struct files *f, const char *path, const struct timespec ts[2],
    bool follow);                                    /* write_content */
int files_unlink(struct files *f, const char *path); /* remove_file */
int files_rmdir(struct files *f, const char *path);  /* remove_dir */
/* read source, move source, delete existing destination, move destination; all decided first.
 * no_replace: EEXIST when the destination exists. */
int files_rename(struct files *f, const char *from, const char *to, bool no_replace);
int files_symlink(struct files *f, const char *target, const char *path);
int files_link(struct files *f, const char *from, const char *to);
/* The same, replacing what is there (not a folder) in one step: its removal is decided with the
 * rest (ln -f). */
int files_symlink_over(struct files *f, const char *target, const char *path);
int files_link_over(struct files *f, const char *from, const char *to);
/* A unique new file (or folder) from a template ending in XXXXXX: created 0600 (0700); *fd is -1
 * for a folder. out receives the path. */
int files_mktemp(struct files *f, const char *template_path, bool dir, int *fd, struct buf *out);

/* Find a host program. name without '/': searched on path_var (undecided); with '/': that path.
 * Not decided: the spawn decision names what was found. out receives the canonical path;
 * *is_script and the first line's interpreter are NOT looked at here. ENOENT when no executable
 * file is found, whatever else stands there (files_access, which is decided, tells). */
int files_locate(struct files *f, const char *name, const char *path_var, struct buf *out);

/* Whole trees: planned, decided in full, then done (design.md 6). on() reports progress and
 * per-object errors; a refusal stops before the first change. */
enum files_tree_op { FILES_TREE_REMOVE, FILES_TREE_COPY, FILES_TREE_MOVE, FILES_TREE_CHMOD };
struct files_tree_opts {
	enum files_tree_op op;
	bool recursive;  /* rm -r, cp -r, chmod -R */
	bool force;      /* rm -f: absent operands are fine; cp -f */
	bool dir;        /* rm -d: empty folders too */
	bool preserve;   /* cp -p, mv across devices: mode and times */
	bool no_clobber; /* cp -n, mv -n */
	bool update;     /* cp -u, mv -u: only when newer */
	bool no_deref;   /* cp -P, -d, -a: copy links as links */
	/* decided by the command: the last path is an existing folder to copy into */
	bool target_is_dir;
	bool one_file_system;
	bool verbose; /* on() hears FILES_TREE_DID too */
	/* chmod: new = (old & ~mode_clear) | mode_set; copy: mode_clear is the umask */
	mode_t mode_set, mode_clear;
	mode_t mode_x_if_dir; /* chmod X: x bits to add to folders and to files that have one */
};
enum files_tree_event {
	FILES_TREE_DID,  /* done with this object: for -v */
	FILES_TREE_ERROR /* this object failed or was refused: e says why */
};
/* sys is EINVAL and text one of these for an operand that cannot be copied or moved where it
 * should go. */
#define FILES_SAME_FILE "source and destination are the same file"
#define FILES_INTO_SELF "the destination lies inside the source"
#define FILES_DANGLING  "not written through a dangling link"          /* sys ENOENT */
#define FILES_OVER_DIR  "a folder is in the way"                       /* sys EISDIR */
#define FILES_OVER_FILE "a folder cannot replace what is not a folder" /* sys ENOTDIR */
/* on() with FILES_TREE_DID has e->why FILES_OK and e->sys 1 for a folder, else 0. With
 * FILES_TREE_ERROR and FILES_ERRNO, e->path is set (policy spelling) when the destination is
 * what failed. */
/* src: operands as absolute paths; shown: the same as the user spelled them (prefix of what on()
 * gets). dst: for copy and move. Returns 0 when everything was done, -1 when on() got at least
 * one FILES_TREE_ERROR, with nothing changed if a decision refused. */
int files_tree(struct files *f, const struct files_tree_opts *o, const char *const *src,
    const char *const *shown, size_t n, const char *dst,
    void (*on)(void *arg, enum files_tree_event ev, const char *shown, const struct files_err *e),
    void *arg);
