/* Has what was told to stop stopped? The kernel tells only a parent, and that is the reaper in the
 * namespace below; so its children are looked at in /proc (proc(5): children, stat). */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "monitor/internal.h"
#include "base/ban.h"

/* The state letter of a process; 0 when it is gone. */
static char state_of(uint64_t pid)
{
	char path[64];
	AUTO_BUF b = buf_with(4096);
	ptrdiff_t end;

	(void)snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	if (fd_read_file(path, 4096, &b, NULL) != 0)
		return 0;
	/* "pid (name) S ...": the name may hold anything. */
	end = sv_rfind(buf_sv(&b), ')');
	return end >= 0 && (size_t)end + 2 < b.n ? (char)b.p[end + 2] : 0;
}

bool children_stopped(pid_t reaper)
{
	char path[64];
	AUTO_BUF b = buf_with(65536);
	sv rest, word;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)reaper, (int)reaper);
	if (fd_read_file(path, 65536, &b, NULL) != 0)
		return true;
	for (rest = buf_sv(&b); rest.n != 0;) {
		uint64_t pid;
		char c;

		(void)sv_cut(rest, ' ', &word, &rest);
		c = sv_to_u64(word, 10, INT32_MAX, &pid) ? state_of(pid) : 0;
		if (c != 0 && strchr("TtZX", c) == NULL)
			return false;
	}
	return true;
}
