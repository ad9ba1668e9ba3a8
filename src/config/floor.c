/* The table of refused grants and its two readings. See floor.h. */
#include "config/floor.h"

#include "config/path.h"

#include "base/ban.h"

enum class {
	WHOLE,
	HOMES,
	SYSTEM,
	LOADER,
	PASSWORDS,
	MACHINE,
	PRIVILEGE,
	STORE,
};

static const char *const reason_of[] = {
	[WHOLE] = "the whole filesystem is never a grantable tree",
	[HOMES] = "the home namespace is never a grantable tree",
	[SYSTEM] = "a system root is never a grantable tree",
	[LOADER] = "the loader's library directory reads as a tree, and nothing wider",
	[PASSWORDS] = "this file is a password database",
	[MACHINE] = "this path is a machine credential",
	[PRIVILEGE] = "this path says who gets privileges",
	[STORE] = "this path holds a credential store; only an entry that names it reaches it",
};

/* exact: refuses an entry that names the anchor itself. overlap: at, below or above it. */
enum match { EXACT, OVERLAP };

struct row {
	const char *anchor; /* absolute, or "~/…" */
	enum match match;
	enum class class;
	unsigned permits; /* bits 1 << enum plan_list that are let through */
};

#define LETS(list) (1U << (list))
/* Rows of the other platform stay in: they cost nothing and keep one table (box-design 6.4). */
static const struct row rows[] = {
	{ "/", EXACT, WHOLE, 0 },
	{ "/home", EXACT, HOMES, 0 },
	{ "/Users", EXACT, HOMES, 0 },
	{ "/bin", EXACT, SYSTEM, 0 },
	{ "/boot", EXACT, SYSTEM, 0 },
	{ "/dev", EXACT, SYSTEM, 0 },
	{ "/etc", EXACT, SYSTEM, 0 },
	{ "/opt", EXACT, SYSTEM, 0 },
	{ "/proc", EXACT, SYSTEM, 0 },
	{ "/root", EXACT, SYSTEM, 0 },
	{ "/run", EXACT, SYSTEM, 0 },
	{ "/sbin", EXACT, SYSTEM, 0 },
	{ "/srv", EXACT, SYSTEM, 0 },
	{ "/sys", EXACT, SYSTEM, 0 },
	{ "/tmp", EXACT, SYSTEM, LETS(PLAN_METADATA) },
	{ "/usr", EXACT, SYSTEM, 0 },
	{ "/usr/bin", EXACT, SYSTEM, 0 },
	{ "/usr/local", EXACT, SYSTEM, 0 },
	{ "/usr/sbin", EXACT, SYSTEM, 0 },
	{ "/usr/share", EXACT, SYSTEM, 0 },
	{ "/var", EXACT, SYSTEM, 0 },
	{ "/Library", EXACT, SYSTEM, 0 },
	{ "/System", EXACT, SYSTEM, 0 },
	{ "/opt/homebrew", EXACT, SYSTEM, 0 },
	{ "/private", EXACT, SYSTEM, 0 },
	{ "/private/etc", EXACT, SYSTEM, 0 },
	{ "/private/tmp", EXACT, SYSTEM, LETS(PLAN_METADATA) },
	{ "/private/var", EXACT, SYSTEM, 0 },
	{ "/lib", EXACT, LOADER, LETS(PLAN_READ) },
	{ "/lib64", EXACT, LOADER, LETS(PLAN_READ) },
	{ "/usr/lib", EXACT, LOADER, LETS(PLAN_READ) },
	{ "/usr/lib64", EXACT, LOADER, LETS(PLAN_READ) },
	{ "/etc/shadow", EXACT, PASSWORDS, 0 },
	{ "/etc/gshadow", EXACT, PASSWORDS, 0 },
	{ "/etc/shadow-", EXACT, PASSWORDS, 0 }, /* Debian's backups hold the same hashes */
	{ "/etc/gshadow-", EXACT, PASSWORDS, 0 },
	{ "/etc/master.passwd", EXACT, PASSWORDS, 0 },
	{ "/private/etc/master.passwd", EXACT, PASSWORDS, 0 },
	{ "/var/db/dslocal", OVERLAP, PASSWORDS, 0 },
	{ "/private/var/db/dslocal", OVERLAP, PASSWORDS, 0 },
	{ "/var/db/SystemKey", EXACT, MACHINE, 0 },
	{ "/private/var/db/SystemKey", EXACT, MACHINE, 0 },
	{ "/Library/Keychains", OVERLAP, MACHINE, 0 },
	{ "/etc/sudoers", EXACT, PRIVILEGE, 0 },
	{ "/private/etc/sudoers", EXACT, PRIVILEGE, 0 },
	{ "/etc/sudoers.d", OVERLAP, PRIVILEGE, 0 },
	{ "/private/etc/sudoers.d", OVERLAP, PRIVILEGE, 0 },
	{ "/Library/Application Support/com.apple.TCC", OVERLAP, PRIVILEGE, 0 },
	{ "~/.aws", OVERLAP, STORE, 0 },
	{ "~/.ssh", OVERLAP, STORE, 0 },
	{ "~/.gnupg", OVERLAP, STORE, 0 },
	{ "~/.netrc", OVERLAP, STORE, 0 },
	{ "~/.docker", OVERLAP, STORE, 0 },
	{ "~/.kube", OVERLAP, STORE, 0 },
	{ "~/.config/gcloud", OVERLAP, STORE, 0 },
	{ "~/.config/google-chrome", OVERLAP, STORE, 0 },
	{ "~/.mozilla", OVERLAP, STORE, 0 },
	{ "~/Library/Keychains", OVERLAP, STORE, 0 },
	{ "~/Library/Application Support/Google/Chrome", OVERLAP, STORE, 0 },
	{ "~/Library/Application Support/Firefox", OVERLAP, STORE, 0 },
};

/* The row's anchor as an absolute path; .p NULL when it does not apply (no such home) or there is
 * no memory. */
static sv anchor_at(struct arena *a, const struct row *r, sv home)
{
	sv anchor = sv_c(r->anchor);

	if (anchor.p[0] == '/')
		return anchor;
	if (home.n == 0)
		return (sv){ NULL, 0 };
	return sv_c(arena_printf(a, SV_FMT "%s", SV_ARG(home), r->anchor + 1));
}

static void judge_anchor(const struct row *r, sv anchor, sv path, enum plan_list list, bool is_dir,
    struct floor_hit *hit)
{
	bool at = sv_eq(path, anchor);
	bool below = path_below(path, anchor), above = is_dir && path_below(anchor, path);

	if (r->match == EXACT ? !at : !(at || below || above))
		return;
	if ((r->permits & LETS(list)) != 0)
		return;
	if (r->class == STORE && !above) {
		hit->store = true;
		return;
	}
	if (hit->reason == NULL)
		hit->reason = reason_of[r->class];
}

struct floor_hit floor_judge(struct arena *a, sv path, enum plan_list list, bool is_dir,
    struct floor_homes homes, bool canonical)
{
	sv home[] = { homes.account, homes.stated };
	struct floor_hit hit = { NULL, false };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t times = rows[i].anchor[0] == '~' ? 2 : 1;

		for (size_t h = 0; h < times; h++) {
			sv anchor = anchor_at(a, &rows[i], home[h]), real;

			if (anchor.p == NULL)
				continue;
			judge_anchor(&rows[i], anchor, path, list, is_dir, &hit);
			if (!canonical)
				continue;
			real = path_real(a, anchor);
			if (real.p != NULL && !sv_eq(real, anchor))
				judge_anchor(&rows[i], real, path, list, is_dir, &hit);
		}
	}
	return hit;
}

static bool add_place(sv *v, size_t *n, sv path)
{
	for (size_t i = 0; i < *n; i++)
		if (sv_eq(v[i], path))
			return true;
	v[(*n)++] = path;
	return path.p != NULL;
}

int floor_places(struct arena *a, struct floor_homes homes, const sv **out, size_t *n)
{
	sv home[] = { homes.account, homes.stated };
	/* A row has two anchors at most, and each of them one other name. */
	sv *v = ARENA_VEC(a, sv, 4 * sizeof(rows) / sizeof(rows[0]));
	bool ok = v != NULL;

	*n = 0;
	for (size_t i = 0; ok && i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t times = rows[i].anchor[0] == '~' ? 2 : 1;

		for (size_t h = 0; ok && rows[i].class >= PASSWORDS && h < times; h++) {
			sv anchor, real;

			if (times == 2 && home[h].n == 0)
				continue;
			anchor = anchor_at(a, &rows[i], home[h]);
			ok = anchor.p != NULL && add_place(v, n, anchor);
			real = ok ? path_real(a, anchor) : anchor;
			if (real.p != NULL) /* else: nothing is there */
				ok = ok && add_place(v, n, real);
		}
	}
	*out = v;
	return ok ? 0 : -1;
}
