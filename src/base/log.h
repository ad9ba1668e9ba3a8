/* Diagnostics of our programs on stderr: one line each, "box: warning: …". Text from outside goes
 * through log_hostile or buf_put_escaped first. The level and the colour switch are the only
 * state. */
#pragma once

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* May what is written to fd be coloured? A terminal that takes it (TERM is not "dumb"), and no
 * NO_COLOR that is set and not empty (https://no-color.org). */
bool log_colour_on(int fd);
/* Set once in main. prefix is static ("box", "box-gateway"); colour as log_colour_on
 * says. */
void log_init(const char *prefix, enum log_level level);
/* "<prefix>: <text>" with no level word: status lines of `box run`. */
void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
