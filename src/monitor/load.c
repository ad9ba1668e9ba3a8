/* From the command line to a plan: the operator's home, the current directory, box.toml. Shared by
 * run, check and log. */
#include "monitor/load.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/config.h"
#include "base/ban.h"

/* The home folder of the account database, resolved. malloc'ed. HOME does not count: whoever starts
 * a box may have set it to anything. */
static char *operator_home(struct box_err *err)
{
	struct passwd pw, *found = NULL;
	char text[16384];
	char *real;

	if (getpwuid_r(getuid(), &pw, text, sizeof(text), &found) != 0 || found == NULL) {
		(void)box_fail(err, BOX_ECONFIG, 0,
		    "user %u has no entry in the account database, so it has no home folder",
		    getuid()); /* always -1 */
		return NULL;
	}
	real = realpath(pw.pw_dir, NULL);
	if (real == NULL)
		(void)box_fail(err, BOX_ESYS, errno, "home folder %s", pw.pw_dir); /* always -1 */
	return real;
}

int monitor_load(const struct monitor_options *o, struct plan *p, struct box_err *err)
{
	struct config_input in = { .config_path = o->config,
		.path_var = getenv("PATH"),
		.args = o->args,
		.uid = getuid(),
		.gid = getgid() };
	char *home = operator_home(err);
	char *cwd = home != NULL ? getcwd(NULL, 0) : NULL;
	int r = -1;

	*p = (struct plan){ 0 };
	if (home != NULL && cwd == NULL) {
		(void)box_fail(err, BOX_ESYS, errno, "the current directory"); /* always -1 */
	} else if (home != NULL) {
		in.home = home;
		in.start_dir = cwd;
		r = config_load(&in, p, err);
	}
	free(cwd);
	free(home);
	return r;
}
