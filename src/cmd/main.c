/* box: the command line. Finds the verb and runs it. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/verb.h"
#include "base/ban.h"

#define BOX_VERSION "0.1.0"

static const struct verb *const verbs[] = { &verb_run, &verb_check, &verb_log };
#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

static void print_help(FILE *f)
{
	(void)fputs("box: run an AI agent in a sandbox, under a policy with memory\n"
	            "\n"
	            "usage: box VERB [OPTION...]\n"
	            "\n",
	    f);
	for (size_t i = 0; i < VERBS; i++)
		(void)fprintf(f, "  %-8s %s\n", verbs[i]->name, verbs[i]->summary);
	(void)fputs("\n"
	            "  box VERB --help      options and examples of a verb\n"
	            "  box --version\n"
	            "\n"
	            "examples:\n"
	            "  box run --config box.toml\n"
	            "  box run --config box.toml -- --resume \"fix the failing test\"\n"
	            "  box log --config box.toml\n",
	    f);
}

int verb_usage(const struct verb *v, const char *fmt, ...)
{
	va_list ap;

	(void)fputs("box: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "\nbox: try `box %s --help`\n", v->name);
	return 2;
}

/* Cut the last component off. */
static bool parent(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash == NULL || slash == path)
		return false;
	*slash = '\0';
	return true;
}

int verb_stray(const struct verb *v, const char *arg, const char *hint)
{
	if (arg[0] == '-' && arg[1] != '\0')
		return verb_usage(v, "unknown option \"%s\"", arg);
	return verb_usage(v, "unexpected argument \"%s\"%s", arg, hint);
}

const char *verb_program_dir(void)
{
	static char dir[4096], beside[4096 + 32];
	ssize_t n = readlink("/proc/self/exe", dir, sizeof(dir) - 1);

	if (n <= 0)
		return "";
	dir[n] = '\0';
	if (!parent(dir))
		return "";
	(void)snprintf(beside, sizeof(beside), "%s/box-launch", dir); /* fits */
	if (access(beside, F_OK) == 0 || !parent(dir))
		return dir; /* a build's bin/, or an unpacked archive */
	(void)snprintf(beside, sizeof(beside), "%s/libexec/boxwood", dir); /* fits: installed */
	return beside;
}

const char *verb_option(int argc, char **argv, int *i, const char *name, int *missing)
{
	const char *s = argv[*i];
	size_t n = strlen(name);

	if (strncmp(s, name, n) != 0)
		return NULL;
	if (s[n] == '=')
		return s + n + 1;
	if (s[n] != '\0')
		return NULL;
	if (*i + 1 >= argc) {
		*missing = 1;
		return NULL;
	}
	return argv[++*i];
}

/* A closed 0, 1 or 2 must not become one of our own descriptors. */
static int fill_stdio(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", O_RDWR) != fd)
			return -1;
	return 0;
}

/* End without the libraries' own clean-up: everything of ours is closed, and the rest takes longer
 * than a short run. */
static int leave(int status)
{
	if (fflush(stdout) != 0 && status == 0)
		status = 1;
#ifndef __SANITIZE_ADDRESS__
	_exit(status);
#endif
	return status;
}

int main(int argc, char **argv)
{
	if (fill_stdio() != 0)
		return 1;
	log_init("box", LOG_INFO);
	if (argc < 2) {
		print_help(stderr);
		return 2;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		print_help(stdout);
		return 0;
	}
	if (strcmp(argv[1], "--version") == 0) {
		(void)puts("box " BOX_VERSION);
		return 0;
	}
	for (size_t i = 0; i < VERBS; i++) {
		if (strcmp(argv[1], verbs[i]->name) != 0)
			continue;
		for (int k = 2; k < argc && strcmp(argv[k], "--") != 0; k++)
			if (strcmp(argv[k], "--help") == 0) {
				(void)fputs(verbs[i]->help, stdout);
				return 0;
			}
		return leave(verbs[i]->run(argc - 1, argv + 1));
	}
	(void)fprintf(stderr, "box: unknown verb \"%s\"; `box --help` lists them\n", argv[1]);
	return 2;
}
