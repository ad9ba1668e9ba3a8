/* ls: the order of items and the forms they are printed in. See ls.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "shell/ls.h"
#include "base/ban.h"

#define HALF_A_YEAR ((int64_t)31556952 / 2)
#define TAB         8 /* gaps between columns use tabs, as GNU ls does */

/* --- order --- */

static struct timespec stamp(const struct ls *l, const struct item *i)
{
	return l->time == 'a' ? i->st.atime : l->time == 'c' ? i->st.ctime : i->st.mtime;
}

static const char *extension(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL ? dot : "";
}

static int compare(const void *x, const void *y, void *arg)
{
	const struct ls *l = arg;
	const struct item *a = x, *b = y;
	struct timespec s, t;
	int r = 0;

	if (l->dirs_first) {
		uint32_t ma = a->link_mode != 0 ? a->link_mode : a->st.mode;
		uint32_t mb = b->link_mode != 0 ? b->link_mode : b->st.mode;

		if (S_ISDIR(ma) != S_ISDIR(mb))
			return S_ISDIR(ma) ? -1 : 1;
	}
	switch (l->order) {
	case BY_TIME:
		s = stamp(l, a);
		t = stamp(l, b);
		r = s.tv_sec != t.tv_sec ? (s.tv_sec < t.tv_sec) - (s.tv_sec > t.tv_sec)
		                         : (s.tv_nsec < t.tv_nsec) - (s.tv_nsec > t.tv_nsec);
		break;
	case BY_SIZE:
		r = (a->st.size < b->st.size) - (a->st.size > b->st.size);
		break;
	case BY_EXT:
		r = strcmp(extension(a->name), extension(b->name));
		break;
	case BY_VERSION:
		r = strverscmp(a->name, b->name);
		break;
	case BY_NAME:
	case UNSORTED:
		break;
	}
	if (r == 0)
		r = strcmp(a->name, b->name);
	return l->reverse ? -r : r;
}

void ls_sort_items(struct ls *l, struct item *v, size_t n)
{
	if (l->order != UNSORTED && n > 1)
		qsort_r(v, n, sizeof(*v), compare, l);
}

/* --- what is known of an item --- */

bool ls_needs_stat(const struct ls *l)
{
	return l->form == LONG || l->order == BY_TIME || l->order == BY_SIZE || l->inode ||
	       l->blocks || l->mark == MARK_ALL || l->mark == MARK_TYPE || l->follow_all;
}

bool ls_needs_type(const struct ls *l)
{
	return ls_needs_stat(l) || l->recursive || l->mark != MARK_NONE || l->dirs_first;
}

static char mark_of(const struct ls *l, uint32_t mode)
{
	if (l->mark == MARK_NONE)
		return 0;
	if (S_ISDIR(mode))
		return '/';
	if (l->mark == MARK_SLASH)
		return 0;
	switch (mode & S_IFMT) {
	case S_IFLNK:
		return '@';
	case S_IFIFO:
		return '|';
	case S_IFSOCK:
		return '=';
	}
	return l->mark == MARK_ALL && S_ISREG(mode) && (mode & 0111) != 0 ? '*' : 0;
}

/* -L, and the texts of links. */
void ls_look_further(struct ls *l, struct arena *a, struct item *i)
{
	AUTO_BUF text = buf_with(SHCMD_PATH_MAX);
	struct files_stat st;

	if (!S_ISLNK(i->st.mode))
		return;
	if (l->follow_all) {
		if (files_stat(l->io->files, i->path, true, &st) == 0) {
			i->st = st;
			return;
		}
	}
	if (l->form == LONG && files_readlink(l->io->files, i->path, &text) == 0)
		i->link = arena_dup(a, buf_sv(&text)).p;
	if ((l->form == LONG && l->mark != MARK_NONE) || l->dirs_first) {
		if (files_stat(l->io->files, i->path, true, &st) == 0)
			i->link_mode = st.mode;
	}
}

void ls_fill_columns(struct ls *l, struct item *i)
{
	uint64_t blocks = i->st.blocks * 512;

	if (l->human)
		shf_human(blocks, l->si, i->blocks);
	else
		(void)snprintf(i->blocks, sizeof(i->blocks), "%llu",
		    (unsigned long long)shf_units(blocks, l->unit));
	if (l->numeric) {
		(void)snprintf(i->user, sizeof(i->user), "%u", i->st.uid);
		(void)snprintf(i->group, sizeof(i->group), "%u", i->st.gid);
	} else {
		shf_user(l->io, i->st.uid, i->user);
		shf_group(l->io, i->st.gid, i->group);
	}
	if (!i->has_stat)
		(void)snprintf(i->size, sizeof(i->size), "0");
	else if (S_ISCHR(i->st.mode) || S_ISBLK(i->st.mode))
		(void)snprintf(
		    i->size, sizeof(i->size), "%u, %3u", major(i->st.rdev), minor(i->st.rdev));
	else if (l->human)
		shf_human(i->st.size, l->si, i->size);
	else
		(void)snprintf(i->size, sizeof(i->size), "%llu", (unsigned long long)i->st.size);
}

/* --- printing --- */

static void put_name(struct ls *l, struct buf *out, const char *name, uint32_t mode)
{
	char m = mark_of(l, mode);

	if (l->quote)
		buf_put_byte(out, '"');
	for (const char *p = name; *p != '\0'; p++) {
		if (l->quote && (*p == '"' || *p == '\\'))
			buf_put_byte(out, '\\');
		if (l->quote && *p == '\n')
			buf_put_c(out, "\\n");
		else
			buf_put_byte(out, (uint8_t)*p);
	}
	if (l->quote)
		buf_put_byte(out, '"');
	if (m != 0)
		buf_put_byte(out, (uint8_t)m);
}

static void put_time(struct ls *l, struct buf *out, const struct item *i)
{
	struct timespec t = stamp(l, i);
	int64_t now = clock_now(&l->io->wall) / NS_PER_SEC;
	const char *recent = "%b %e %H:%M", *old = "%b %e  %Y";

	if (l->style != NULL)
		shf_time(out, l->style, t);
	else
		shf_time(out, t.tv_sec > now - HALF_A_YEAR && t.tv_sec <= now ? recent : old, t);
}

struct widths {
	int inode, blocks, nlink, user, group, size;
};

static int digits(uint64_t n)
{
	int d = 1;

	for (; n >= 10; n /= 10)
		d++;
	return d;
}

static void widen(int *w, int n)
{
	if (n > *w)
		*w = n;
}

static struct widths measure(const struct item *v, size_t n)
{
	struct widths w = { 0 };

	for (size_t i = 0; i < n; i++) {
		widen(&w.inode, digits(v[i].st.ino));
		widen(&w.blocks, (int)strlen(v[i].blocks));
		widen(&w.nlink, digits(v[i].st.nlink));
		widen(&w.user, (int)strlen(v[i].user));
		widen(&w.group, (int)strlen(v[i].group));
		widen(&w.size, (int)strlen(v[i].size));
	}
	return w;
}

/* Inode and blocks come first in every form. */
static void put_prefix(struct ls *l, struct buf *out, const struct item *i, const struct widths *w)
{
	if (l->inode && i->has_stat)
		buf_putf(out, "%*llu ", w->inode, (unsigned long long)i->st.ino);
	else if (l->inode)
		buf_putf(out, "%*s ", w->inode, "?");
	if (l->blocks)
		buf_putf(out, "%*s ", w->blocks, i->has_stat ? i->blocks : "?");
}

static void put_long(struct ls *l, const struct item *i, const struct widths *w)
{
	AUTO_BUF out = buf_with((size_t)1 << 16);
	char mode[11] = "----------";

	if (i->has_stat)
		shf_mode_text(i->st.mode, mode);
	put_prefix(l, &out, i, w);
	buf_putf(&out, "%s %*llu ", mode, w->nlink, (unsigned long long)i->st.nlink);
	if (!l->no_owner)
		buf_putf(&out, "%-*s ", w->user, i->user);
	if (!l->no_group)
		buf_putf(&out, "%-*s ", w->group, i->group);
	buf_putf(&out, "%*s ", w->size, i->size);
	put_time(l, &out, i);
	buf_put_byte(&out, ' ');
	put_name(l, &out, i->name, i->link != NULL ? S_IFREG : i->st.mode);
	if (i->link != NULL) {
		buf_put_c(&out, " -> ");
		put_name(l, &out, i->link, i->link_mode);
	}
	buf_put_byte(&out, '\n');
	shcmd_put(l->io, out.p, out.n);
}

static void put_gap(struct ls *l, size_t from, size_t to)
{
	while (from < to) {
		if (to / TAB > (from + 1) / TAB) {
			shcmd_putc(l->io, '\t');
			from += TAB - from % TAB;
		} else {
			shcmd_putc(l->io, ' ');
			from++;
		}
	}
}

/* Cells of a table: the smallest number of rows that fits the width (-C down, -x across). */
static void put_table(struct ls *l, struct buf *cell, size_t n)
{
	size_t cols = 1, rows = n;
	size_t *width = shcmd_alloc(l->io, n + 1, sizeof(*width));

	if (width == NULL)
		return;
	for (size_t c = n; c > 1; c--) {
		size_t r = (n + c - 1) / c, sum = 0, used = 0;

		if (l->form == COLUMNS && (n + r - 1) / r != c)
			continue;
		for (size_t k = 0; k < c; k++) {
			size_t w = 0;

			for (size_t i = 0; i < n; i++) {
				size_t col = l->form == COLUMNS ? i / r : i % c;

				if (col == k && cell[i].n > w)
					w = cell[i].n;
			}
			width[k] = w;
			sum += w + (k + 1 < c ? 2 : 0);
			used++;
			if (sum > l->width)
				break;
		}
		if (sum <= l->width && used == c) {
			cols = c;
			rows = r;
			break;
		}
	}
	for (size_t r = 0; r < rows; r++) {
		size_t at = 0;

		for (size_t c = 0; c < cols; at += width[c++] + 2) {
			size_t i = l->form == COLUMNS ? c * rows + r : r * cols + c;
			size_t next = l->form == COLUMNS ? i + rows : i + 1;

			if (i >= n)
				break;
			shcmd_put(l->io, cell[i].p, cell[i].n);
			if (c + 1 < cols && next < n) {
				put_gap(l, at + cell[i].n, at + width[c] + 2);
			}
		}
		shcmd_putc(l->io, '\n');
	}
}

void ls_put_items(struct ls *l, const struct item *v, size_t n)
{
	struct widths w = measure(v, n);
	struct buf *cell;
	size_t at = 0;

	if (l->form == LONG) {
		for (size_t i = 0; i < n && !shcmd_out_dead(l->io); i++)
			put_long(l, &v[i], &w);
		return;
	}
	cell = n != 0 ? shcmd_alloc(l->io, n, sizeof(*cell)) : NULL;
	if (cell == NULL)
		return;
	for (size_t i = 0; i < n; i++) {
		cell[i] = buf_with(8192);
		put_prefix(l, &cell[i], &v[i], &w);
		put_name(l, &cell[i], v[i].name, v[i].st.mode);
	}
	if (l->form == COLUMNS || l->form == ACROSS) {
		put_table(l, cell, n);
	} else {
		for (size_t i = 0; i < n; i++) {
			if (l->form == COMMAS && i != 0) {
				bool wrap = at + 2 + cell[i].n + 1 > l->width;

				shcmd_puts(l->io, wrap ? ",\n" : ", ");
				at = wrap ? 0 : at + 2;
			}
			shcmd_put(l->io, cell[i].p, cell[i].n);
			at += cell[i].n;
			if (l->form == ONE || i + 1 == n)
				shcmd_putc(l->io, '\n');
		}
	}
	for (size_t i = 0; i < n; i++)
		buf_fini(&cell[i]);
}
