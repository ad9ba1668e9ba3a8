/* See fixture.h. */
#include "fixture.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"

void fixture_sh(const struct fixture *f, const char *command)
{
	AUTO_BUF b = buf_with(65536);

	buf_putf(&b, "H=%s; cd \"$H\" && %s", f->home, command);
	assert_int_equal(system(buf_cstr(&b)), 0);
}

void fixture_make(struct fixture *f)
{
	char template[] = "/tmp/box-config-test-XXXXXX", real[PATH_MAX];

	assert_non_null(mkdtemp(template));
	assert_non_null(realpath(template, real));
	assert_true(strlen(real) < sizeof(f->home));
	memcpy(f->home, real, strlen(real) + 1);
	(void)snprintf(f->path, sizeof(f->path), "%s/bin:/usr/bin:/bin", f->home);
	fixture_sh(f, "mkdir -p src/app/sub src/other boxes/t bin .ssh .aws data/tree/deep && "
	              "echo '# App' > src/app/README.md && echo K=v > src/app/.env && echo x > "
	              "src/app/sub/x.txt && "
	              "echo id > .ssh/id && echo f > data/file && echo p > boxes/t/policy.dw && "
	              "cp /bin/true bin/prog && chmod 755 bin/prog && echo data > bin/noexec && ln "
	              "-s tree data/link");
}

void fixture_remove(struct fixture *f)
{
	fixture_sh(f, "chmod -R u+rwX . && rm -rf \"$H\"");
}

const char *fixture_expand(const struct fixture *f, const char *text, struct buf *out)
{
	for (; *text != '\0'; text++) {
		if (strncmp(text, "$BD", 3) == 0) {
			buf_putf(out, "%s/boxes/t/state", f->home);
			text += 2;
		} else if (strncmp(text, "$H", 2) == 0) {
			buf_put_c(out, f->home);
			text++;
		} else {
			buf_put_byte(out, (uint8_t)*text);
		}
	}
	assert_non_null(buf_cstr(out));
	return buf_cstr(out);
}

int fixture_load(
    const struct fixture *f, const char *text, bool judge, struct plan *p, struct box_err *err)
{
	AUTO_BUF full = buf_with(65536);
	char config[256], start[256];
	struct config_input in = { .config_path = config,
		.start_dir = start,
		.home = f->home,
		.path_var = f->path,
		.uid = getuid(),
		.gid = getgid() };

	(void)snprintf(config, sizeof(config), "%s/boxes/t/box.toml", f->home);
	(void)snprintf(start, sizeof(start), "%s/src/app", f->home);
	(void)fixture_expand(f, text, &full);
	assert_int_equal(fd_write_file_atomic(config, 0644, buf_sv(&full), err), 0);
	if (config_load(&in, p, err) != 0)
		return -1;
	/* As `run` does before the judge. */
	if (judge && p->box_dir.n != 0)
		(void)mkdir(p->box_dir.p, 0700); /* exists from the second case on */
	return judge ? config_judge(p, err) : 0;
}
