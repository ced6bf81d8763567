// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The command line, and the results of cases. */
#include "consumer.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
"Usage: udapl-consumer CASE ADAPTER [ARGUMENT...]\n"
"\n"
"Tests an adapter with calls that Debian's uDAPL programs do not make: one of dat.conf, or with\n"
"libkdat a device.\n"
"\n"
"  attributes  limits and promises of the adapter and its provider\n"
"  calls     queries, contexts, resized EVDs, changed CNOs\n"
"  table     calls that libdat2 does not export, by its table\n"
"  exchange  both sides of a connection: every DTO, handoff, dup_connect\n"
"  refusals  each connect that is refused for an argument or the handle\n"
"  states    each connect that is refused for the state of the Endpoint\n"
"  accepting  a connect of an Endpoint that accepts; another program connects and never confirms\n"
"  route ROW ADDRESS  a connect to an address without a way to it, after SIGUSR1\n"
"  asynchronous  a queue that overflows, and the end of a connection without a connect EVD\n"
"  failure   a queue pair that fails after 'ready'\n"
"  removal   a device that is removed after 'ready'\n"
"  keepalive [MS]  the time-outs of an Endpoint; MS is the default of the module\n"
"  idle PEER PORT [MS]  a connection to a peer that falls silent after 'connected'\n"
"  requests  requests whose service point was freed\n"
"  stale     handles of freed objects, and invented ones\n"
"  agent     a function that is called for each EVD that triggers a CNO\n"
"  agent-and-waiter  an agent and a thread that waits on the same CNO\n"
"  fork      a child that uses its parent's handles, and its own adapters\n"
"  exit      exits without freeing anything\n"
"  reopen    loads and unloads the provider many times\n"
"  safe      the thread-safe provider of the same name, from several threads\n"
"\n"
"Exit status: 0, or 1 with the error on standard error.\n";

static const struct {
	const char *name;
	void (*run)(struct place *place);
} cases[] = {
	{ "attributes", case_attributes },
#ifndef LIBKDAT
	{ "table", case_table },
#endif
	{ "calls", case_calls }, { "exchange", case_exchange },
	{ "refusals", case_refusals }, { "states", case_states },
	{ "accepting", case_accepting }, { "route", case_route },
	{ "asynchronous", case_asynchronous }, { "failure", case_failure },
	{ "removal", case_removal },
	{ "keepalive", case_keepalive }, { "idle", case_idle },
	{ "requests", case_requests }, { "stale", case_stale },
	{ "agent", case_agent }, { "agent-and-waiter", case_agent_and_waiter },
	{ "fork", case_fork }, { "exit", case_exit },
	{ "reopen", case_reopen }, { "safe", case_safe },
};

int threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int count = 0;

	CHECK(tasks);
	while (readdir(tasks))
		count++;
	closedir(tasks);
	return count - 2;	/* "." and ".." */
}

static sigset_t awaited(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return set;
}

void await_signal(void)
{
	sigset_t set = awaited();
	int number;

	puts("ready");
	CHECK(!sigwait(&set, &number));
}

int main(int argc, char **argv)
{
	sigset_t set = awaited();
	struct place place;

	if (argc < 3) {
		fputs(help, stderr);
		return 2;
	}
	place.name = argv[2];
	place.more = argv + 3;
	/* Before the provider starts a thread. */
	CHECK(!sigprocmask(SIG_BLOCK, &set, NULL));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run(&place);
		return 0;
	}
	fputs(help, stderr);
	return 2;
}
