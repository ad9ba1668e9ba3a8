/* fake: box-files in a thread and a monitor that permits by callback and keeps a log, for tests.
 * A scratch tree <dir>/{home,ws,box,outside} is made per test; home is the operator's home, ws
 * the workspace below it. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "files/client.h"
#include "files/proto.h"
#include "files/server.h"

struct fake {
	char dir[128];     /* scratch folder, canonical */
	char home[160];    /* <dir>/home */
	char ws[160];      /* <dir>/home/ws */
	char outside[160]; /* <dir>/outside */
	char box[160];     /* <dir>/home/.box */
	struct files *f;

	/* May this effect happen? NULL: everything. Called in the monitor's thread. */
	bool (*permit)(void *arg, enum mon_fs_op op, sv path);
	void *arg;
	/* Called before each answer: the moment between decision and effect. */
	void (*between)(void *arg);

	int mon_fd;
	struct srv srv;
	pthread_t server, monitor;
	pthread_mutex_t lock;
	struct buf
	    log; /* one line an event: "read_content ~/ws/x", "done 1", "floor …", "abandon n" */
	uint64_t tickets, sync_ticket;
	struct box_err srv_err;
	int srv_ret;
};

int fake_setup(void **state);
/* The same below the host's /tmp, which the box's own /tmp hides but for the roots in it. */
int fake_setup_tmp(void **state);
int fake_teardown(void **state);
/* A new client. */
struct files *fake_client(struct fake *k);
/* Its raw channel. */
int fake_channel(struct fake *k);
/* The log since the last call, as a C string valid until the next. */
const char *fake_log(struct fake *k);
/* How often a text stands in the log; does not clear it. */
size_t fake_count(struct fake *k, const char *text);
/* "<ws>/<rest>" in static storage (sixteen in turn). */
const char *fake_path(struct fake *k, const char *rest);
/* Make files on the host, past box-files. */
void fake_write(const char *path, const char *text);
void fake_mkdir(const char *path);
void fake_symlink(const char *target, const char *path);
/* Whole content of a host file; NULL when it is absent. Static storage. */
const char *fake_read(const char *path);
bool fake_exists(const char *path);
