/* The form of a worker's card (worker_spawn.c writes it, worker_confine.c reads it): u32 version,
 * u32 profile, u32 uid, u32 gid, str name, u32 n, n times { str path, u32 rights }. Internal to
 * src/contain. */
#pragma once

#define WORKER_CARD_VERSION 1
#define WORKER_CARD_MAX     ((size_t)1 << 20)
