/* fileutil: what the file commands (ls, cp, find, stat, …) share: messages in GNU's words, modes,
 * sizes, names, times. Nothing here keeps state. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "shell/command.h"

/* Why the last files_* call failed, in GNU's words: "<name>: <what> '<arg>': <strerror>"; a refusal
 * is printed as shcmd_files_err does. Returns 1, or 125. */
int shf_fail(struct sh_io *io, const char *what, const char *arg);
/* The same for an error that came another way. */
int shf_fail_err(struct sh_io *io, const char *what, const char *arg, const struct files_err *e);
/* rm and others that name the operand in a refusal too: "<name>: <arg>: policy denied …"
 * (box-config-and-policy 3.2). */
int shf_fail_named(struct sh_io *io, const char *what, const char *arg, const struct files_err *e);
/* The absolute path of an operand; NULL after "<name>: <what> '<arg>': <why>". */
const char *shf_path(struct sh_io *io, const char *what, const char *arg);

/* "drwxr-xr-x" (10 bytes and a NUL). */
void shf_mode_text(uint32_t mode, char out[11]);
/* "regular file", "directory", … as stat prints it. */
const char *shf_type_name(uint32_t mode, uint64_t size);
/* Sizes as ls -h and du -h print them: rounded up, one digit below 10. si: powers of 1000. */
void shf_human(uint64_t n, bool si, char out[24]);
/* A count of bytes in units of `unit`, rounded up. */
uint64_t shf_units(uint64_t bytes, uint64_t unit);
/* "1K", "10M", "2", "KB" (SIZE of --block-size): false when it is malformed. */
bool shf_size(const char *s, uint64_t *out);
/* The name of a user or group: root, the box's own user (USER), else the number. */
void shf_user(struct sh_io *io, uint32_t uid, char out[64]);
void shf_group(struct sh_io *io, uint32_t gid, char out[64]);
/* strftime with %N and %s too; times are UTC. Appends to out. */
void shf_time(struct buf *out, const char *format, struct timespec t);
/* A time as people write it for touch -d and find -newermt: "@N", "now", "YYYY-MM-DD[
 * T]HH:MM[:SS[.frac]][Z]", "YYYY-MM-DD", "N unit[s] ago", "yesterday", "today", "tomorrow". */
bool shf_parse_time(struct sh_io *io, const char *s, struct timespec *out);

/* chmod's MODE: octal, or [ugoa]*[+-=][rwxXst|ugo]*,… */
struct shf_mode;
/* Parse; NULL when it is malformed (no message). In the arena of io. umask counts where no one of
 * ugoa is named. */
struct shf_mode *shf_mode_parse(struct sh_io *io, const char *text, mode_t umask);
/* The mode that an object of this mode gets. */
uint32_t shf_mode_apply(const struct shf_mode *m, uint32_t old);
/* Does the same change fit all objects: new = old & ~clear | set, and x where there is one already?
 * */
bool shf_mode_is_plain(const struct shf_mode *m, mode_t *set, mode_t *clear, mode_t *x_if_dir);

/* The last name of a path, without slashes behind it: a view into path ("/" for the root). */
sv shf_base(const char *path);
/* "dir/name" in an arena, without doubling slashes; NULL without room. */
const char *shf_join(struct arena *a, const char *dir, sv name);
/* The operand without slashes at its end ("/" stays), in the arena. */
char *shf_strip(struct sh_io *io, const char *arg);
/* Ask on descriptor 2 and read a line of standard input: does it begin with y or Y? */
bool shf_confirm(struct sh_io *io, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One entry of a collected listing, in byte order of names. */
struct shf_entry {
	const char *name;
	uint8_t type; /* DT_* */
	bool has_stat;
	struct files_stat st;
};
struct shf_list {
	struct shf_entry *v;
	size_t n, cap;
	struct arena *a;
	bool full;
};
/* List a folder into *l, all of it in arena a: one per folder where folders are walked, so that
 * a walk holds only what is above it. -1: files_error() says why. */
int shf_list(
    struct sh_io *io, struct arena *a, const char *path, bool stat_entries, struct shf_list *l);
