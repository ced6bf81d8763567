// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The command line. */
#include "peer.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
"Usage: rdmacm-peer listen|connect [OPTION]...\n"
"\n"
"A plain program on librdmacm and libibverbs, without kDAPL: a peer for tests,\n"
"and the baseline for the cost of connections.\n"
"\n"
"  -a, --address ADDRESS    address to listen on (default: all), or to connect to\n"
"  -p, --port PORT          1 .. 65535 (default 7174)\n"
"      --timeout SECONDS    fail after so long without an event (default 30)\n"
"\n"
"One connection; prints each event on a line of standard output:\n"
"      --private-data TEXT  send TEXT with the request, or with the accept\n"
"      --reject TEXT        reject the request, with TEXT (listen)\n"
"      --exchange ROUNDS    in each round, send a message and an RDMA write in each\n"
"                           direction, and check every byte; both sides need it\n"
"      --immediate          also send the round of each message as immediate data\n"
"      --reads N            request N RDMA reads in flight each way, 1 .. 255, and\n"
"                           print the peer's numbers: 'reads TO-US BY-US'\n"
"      --early              send a message of 64 bytes right after the accept, before\n"
"                           the peer confirms it (listen)\n"
"      --late SECONDS       post the first receive so long after the connection is\n"
"                           established (listen)\n"
"      --rnr-retries N      let the peer repeat a message without a receive so often,\n"
"                           0 .. 7 (default 7: without limit)\n"
"      --disconnect         disconnect, instead of waiting for the peer's disconnect\n"
"      --never-confirm      read no answer, and so confirm no accept, until killed\n"
"                           or timed out (connect)\n"
"\n"
"Many connections, one after another, to measure their cost:\n"
"      --connections N      make N and print their times; serve N (listen)\n"
"      --ready              create the QPs before the measurement (connect)\n"
"      --data BYTES         send so many in both directions on each, 0 .. 4096\n"
"      --json               print one JSON value\n"
"\n"
"Exit status: 0, 1 after an error, 2 after a wrong command line, 3 if the\n"
"connection was rejected.\n"
"\n"
"Examples:\n"
"  rdmacm-peer listen --exchange 10\n"
"  rdmacm-peer connect -a 10.7.0.1 --exchange 10 --disconnect\n"
"  rdmacm-peer listen --connections 100\n"
"  rdmacm-peer connect -a 10.7.0.1 --connections 100 --json\n";

noreturn void fail(const char *format, ...)
{
	va_list args;

	fputs("rdmacm-peer: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

noreturn void fail_errno(const char *what)
{
	fail("%s: %s", what, strerror(errno));
}

static noreturn void misused(const char *why)
{
	fprintf(stderr, "rdmacm-peer: %s (see rdmacm-peer --help)\n", why);
	exit(2);
}

static unsigned int number(const char *text, unsigned int least, unsigned int most,
			   const char *option)
{
	char *end, why[100];
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || *end || end == text || *text == '-' || value < least || value > most) {
		snprintf(why, sizeof(why), "%s needs a number from %u to %u", option, least, most);
		misused(why);
	}
	return value;
}

enum { PRIVATE_DATA = 256, REJECT, EXCHANGE, IMMEDIATE, READS, EARLY, LATE, RNR_RETRIES, DISCONNECT,
       NEVER_CONFIRM, TIMEOUT, CONNECTIONS, READY, DATA, JSON };

static const struct option long_options[] = {
	{ "address", required_argument, NULL, 'a' },
	{ "port", required_argument, NULL, 'p' },
	{ "timeout", required_argument, NULL, TIMEOUT },
	{ "private-data", required_argument, NULL, PRIVATE_DATA },
	{ "reject", required_argument, NULL, REJECT },
	{ "exchange", required_argument, NULL, EXCHANGE },
	{ "immediate", no_argument, NULL, IMMEDIATE },
	{ "reads", required_argument, NULL, READS },
	{ "early", no_argument, NULL, EARLY },
	{ "late", required_argument, NULL, LATE },
	{ "rnr-retries", required_argument, NULL, RNR_RETRIES },
	{ "disconnect", no_argument, NULL, DISCONNECT },
	{ "never-confirm", no_argument, NULL, NEVER_CONFIRM },
	{ "connections", required_argument, NULL, CONNECTIONS },
	{ "ready", no_argument, NULL, READY },
	{ "data", required_argument, NULL, DATA },
	{ "json", no_argument, NULL, JSON },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static void take(struct options *options, int option)
{
	switch (option) {
	case 'a': options->address = optarg; break;
	case 'p': options->port = number(optarg, 1, 65535, "--port"); break;
	case TIMEOUT: options->timeout = number(optarg, 1, 3600, "--timeout"); break;
	case PRIVATE_DATA: options->private_data = optarg; break;
	case REJECT: options->reject = optarg; break;
	case EXCHANGE: options->exchange = number(optarg, 1, 1000000, "--exchange"); break;
	case IMMEDIATE: options->immediate = true; break;
	case READS: options->reads = number(optarg, 1, 255, "--reads"); break;
	case EARLY: options->early = true; break;
	case LATE: options->late = number(optarg, 1, 3600, "--late"); break;
	case RNR_RETRIES: options->rnr_retries = number(optarg, 0, 7, "--rnr-retries"); break;
	case DISCONNECT: options->disconnect = true; break;
	case NEVER_CONFIRM: options->never_confirm = true; break;
	case CONNECTIONS: options->connections = number(optarg, 1, 1000000, "--connections"); break;
	case READY: options->ready = true; break;
	case DATA: options->data = number(optarg, 0, 4096, "--data"); break;
	case JSON: options->json = true; break;
	case 'h': fputs(help, stdout); exit(0);
	default: exit(2);	/* getopt has printed the reason */
	}
}

int main(int argc, char **argv)
{
	struct options options = { .port = 7174, .timeout = 30, .rnr_retries = 7,
				   .private_data = "" };
	bool listens;
	int option;

	/* The parent process reads each line at once. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt_long(argc, argv, "a:p:h", long_options, NULL)) != -1)
		take(&options, option);
	if (optind != argc - 1)
		misused("'listen' or 'connect' is missing");
	listens = !strcmp(argv[optind], "listen");
	if (!listens && strcmp(argv[optind], "connect"))
		misused("the first argument must be 'listen' or 'connect'");
	if (!listens && !options.address)
		misused("connect needs --address");
	if (!listens && options.reject)
		misused("--reject goes with listen");
	if (options.never_confirm && (listens || options.connections || options.exchange ||
				      options.disconnect))
		misused("--never-confirm goes with one connect without further actions");
	if (options.early && !listens)
		misused("--early goes with listen");
	if (options.late && !listens)
		misused("--late goes with listen");
	if (strlen(options.private_data) > (listens ? 196 : PRIVATE_BYTES))
		misused("the private data is too long");
	if (options.reject && strlen(options.reject) > 148)
		misused("the private data of a reject is too long");
	if (options.ready && options.connections > SLOTS)
		misused("--ready takes at most 4096 connections");
	watch(options.timeout);
	if (options.connections)
		return listens ? serve(&options) : measure(&options);
	return listens ? listen_once(&options) : connect_once(&options);
}
