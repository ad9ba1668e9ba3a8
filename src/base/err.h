/* Errors are values with context. A function that can fail takes a last argument `struct box_err
 * *err` and returns -1 (or NULL); on success *err is untouched. The lowest function names the
 * object (path, host, key, line and column), each layer above adds at most one phrase. Reporting
 * never allocates. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

enum box_code {
	BOX_OK = 0,
	BOX_EPARSE,  /* input does not have the form it must have */
	BOX_EDENIED, /* refused by a rule of ours (floor, protocol table), not by policy */
	BOX_ELIMIT,  /* a documented limit was reached */
	BOX_ESYS,    /* the system refused; sys holds errno */
	BOX_ENOMEM,  /* no memory */
	BOX_ECONFIG, /* the operator's configuration is wrong */
	BOX_ECORRUPT /* stored data is damaged */
};

#define BOX_ERR_MSG_MAX 1024

struct box_err {
	enum box_code code;
	int sys;                   /* errno, or 0 */
	char msg[BOX_ERR_MSG_MAX]; /* NUL-terminated, UTF-8, one line unless said otherwise */
};

/* Fill *err (which may be NULL) and return -1, so that a failure path is one statement. With sys !=
 * 0 the text gets ": <strerror>" appended. A message that does not fit is cut and ends in "...". */
int box_fail(struct box_err *err, enum box_code code, int sys, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int box_vfail(struct box_err *err, enum box_code code, int sys, const char *fmt, va_list ap)
    __attribute__((format(printf, 4, 0)));
/* Put "context: " in front of the message that is already there; returns -1. */
int box_wrap(struct box_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Thread-safe strerror for known numbers; "errno <n>" otherwise. Static storage. */
const char *box_strerror(int sys);
/* Shorthand for out of memory; names what was being made. Returns -1. */
int box_nomem(struct box_err *err, const char *what);
