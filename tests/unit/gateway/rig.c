/* rig: the gateway, box-dial or the run's CA as a plain program, for tests that play the other
 * side.
 *
 *   rig gateway FD   a gateway whose monitor channel is FD; not confined
 *   rig dial FD      a box-dial; names are looked up in the table of its environment,
 *                    RIG_NAMES="name=addr,addr;name=…"; not confined
 *   rig confined gateway|dial FD PROGRAM
 *                    the real program, started and confined as the monitor does it; its pid is
 *                    printed
 *   rig ca NAME      prints the CA's certificate (PEM) and an empty line, then answers lines on
 *                    standard input: "leaf HOST SPKI-hex" -> certificate DER in hex, or "error …";
 *                    "server HOST" -> certificate and key (PEM), an empty line */
#include <arpa/inet.h>
#include <event2/event.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "contain/worker.h"
#include "dial/dial.h"
#include "gateway/gw.h"
#include "monitor/ca.h"

#include "base/ban.h"

static int run_gateway(int fd)
{
	struct event_base *base = event_base_new();
	struct box_err err = { 0 };
	struct gw *g = gw_new(base, fd, clock_mono(), &err);
	int status = 1;

	if (g != NULL) {
		(void)event_base_dispatch(base);
		status = gw_error(g)->code != BOX_OK;
		err = *gw_error(g);
		gw_free(g);
	}
	event_base_free(base);
	if (status != 0)
		(void)fprintf(stderr, "rig: %s\n", err.msg);
	return status;
}

static void lookup(void *arg, const char *name, struct resolver_answer *out)
{
	sv table = sv_c(arg), entry, host, list, addr;

	while (table.n != 0) {
		(void)sv_cut(table, ';', &entry, &table);
		(void)sv_cut(entry, '=', &host, &list);
		if (!sv_eq(host, sv_c(name)))
			continue;
		while (list.n != 0 && out->n < DIAL_ADDRS_MAX) {
			char text[64];
			struct sockaddr_in in4 = { .sin_family = AF_INET };
			struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

			(void)sv_cut(list, ',', &addr, &list);
			(void)snprintf(text, sizeof(text), SV_FMT, SV_ARG(addr));
			if (inet_pton(AF_INET, text, &in4.sin_addr) == 1)
				memcpy(&out->addr[out->n++], &in4, sizeof(in4));
			else if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1)
				memcpy(&out->addr[out->n++], &in6, sizeof(in6));
		}
		return;
	}
	(void)snprintf(out->why, sizeof(out->why), "Name or service not known");
}

static int run_dial(int fd)
{
	struct event_base *base = event_base_new();
	struct box_err err = { 0 };
	struct dial *d = dial_new(base, fd, lookup, getenv("RIG_NAMES"), &err);
	int status = 1;

	if (d != NULL) {
		(void)event_base_dispatch(base);
		status = dial_error(d)->code != BOX_OK;
		err = *dial_error(d);
		dial_free(d);
	}
	event_base_free(base);
	if (status != 0)
		(void)fprintf(stderr, "rig: %s\n", err.msg);
	return status;
}

/* 77 when this machine cannot build the confinement. */
static int run_confined(enum worker_profile profile, int fd, const char *program)
{
	struct worker_spec spec = {
		.profile = profile, .program = program, .name = "worker", .channel = fd, .err_fd = 2
	};
	struct box_err err = { 0 };
	pid_t pid;
	int pidfd, status;

	if (worker_spawn(&spec, &pid, &pidfd, &err) < 0) {
		(void)fprintf(stderr, "rig: %s\n", err.msg);
		return 77;
	}
	(void)close(fd);
	(void)printf("%d\n", (int)pid);
	(void)fflush(stdout);
	if (waitpid(pid, &status, 0) != pid)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void print_hex(sv s)
{
	for (size_t i = 0; i < s.n; i++)
		(void)printf("%02x", (unsigned char)s.p[i]);
	(void)printf("\n");
}

static void ca_leaf(struct ca *c, sv host, sv hex)
{
	AUTO_BUF spki = buf_with(1024), der = buf_with(8192);
	struct box_err err = { 0 };
	uint64_t v;

	for (size_t i = 0; i + 1 < hex.n; i += 2) {
		if (sv_to_u64(sv_sub(hex, i, 2), 16, 255, &v))
			buf_put_byte(&spki, (uint8_t)v);
	}
	if (ca_issue(c, host, buf_sv(&spki), &der, &err) < 0)
		(void)printf("error %s\n", err.msg);
	else
		print_hex(buf_sv(&der));
}

static void ca_server(struct ca *c, sv host)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	unsigned char *spki = NULL;
	int n = i2d_PUBKEY(key, &spki);
	AUTO_BUF der = buf_with(8192);
	struct box_err err = { 0 };

	if (n > 0 && ca_issue(c, host, (sv){ (const char *)spki, (size_t)n }, &der, &err) == 0) {
		const unsigned char *p = der.p;
		X509 *x = d2i_X509(NULL, &p, (long)der.n);

		(void)PEM_write_X509(stdout, x);
		(void)PEM_write_PrivateKey(stdout, key, NULL, NULL, 0, NULL, NULL);
		X509_free(x);
	} else {
		(void)printf("error %s\n", err.msg);
	}
	(void)printf("\n");
	OPENSSL_free(spki);
	EVP_PKEY_free(key);
}

static int run_ca(const char *name)
{
	struct clock now = clock_wall();
	struct box_err err = { 0 };
	struct ca *c = ca_new(sv_c(name), &now, &err);
	char line[2048];

	if (c == NULL) {
		(void)fprintf(stderr, "rig: %s\n", err.msg);
		return 1;
	}
	(void)printf(SV_FMT "\n", SV_ARG(ca_cert_pem(c)));
	(void)fflush(stdout);
	while (fgets(line, sizeof(line), stdin) != NULL) {
		sv verb, rest, host, hex;

		(void)sv_cut(sv_trim(sv_c(line)), ' ', &verb, &rest);
		(void)sv_cut(rest, ' ', &host, &hex);
		if (sv_eq(verb, SV("leaf")))
			ca_leaf(c, host, hex);
		else
			ca_server(c, host);
		(void)fflush(stdout);
	}
	ca_free(c);
	return 0;
}

int main(int argc, char **argv)
{
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && sv_eq(sv_c(argv[1]), SV("gateway")))
		return run_gateway(atoi(argv[2]));
	if (argc == 3 && sv_eq(sv_c(argv[1]), SV("dial")))
		return run_dial(atoi(argv[2]));
	if (argc == 5 && sv_eq(sv_c(argv[1]), SV("confined")))
		return run_confined(sv_eq(sv_c(argv[2]), SV("dial")) ? WORKER_DIAL : WORKER_GATEWAY,
		    atoi(argv[3]), argv[4]);
	if (argc == 3 && sv_eq(sv_c(argv[1]), SV("ca")))
		return run_ca(argv[2]);
	(void)fprintf(stderr, "usage: rig gateway|dial FD, rig ca NAME\n");
	return 2;
}
