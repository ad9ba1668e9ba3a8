/* Diagnostics of our programs on stderr: one line each, "box: warning: …". Text from outside goes
 * through log_hostile or buf_put_escaped first. The level and the colour switch are the only
 * state. */
#pragma once

#include <stdbool.h>

enum log_level { LOG_ERROR, LOG_WARNING, LOG_INFO, LOG_DEBUG };

/* Set once in main. prefix is static ("box", "box-gateway"); colour is switched on only for a
 * terminal without NO_COLOR. */
void log_init(const char *prefix, enum log_level level);
/* "<prefix>: <text>" with no level word: status lines of `box run`. */
void log_line(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
