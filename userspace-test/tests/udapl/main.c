// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The command line, and the results of cases. */
#include "consumer.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
"Usage: udapl-consumer CASE ADAPTER\n"
"\n"
"Tests an adapter with calls that Debian's uDAPL programs do not make: one of dat.conf, or with\n"
"libkdat a device.\n"
"\n"
"  attributes  limits and promises of the adapter and its provider\n"
"  calls     queries, contexts, resized EVDs, changed CNOs\n"
"  table     calls that libdat2 does not export, by its table\n"
"  exchange  both sides of a connection: every DTO, handoff, dup_connect\n"
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

int main(int argc, char **argv)
{
	struct place place;

	if (argc != 3) {
		fputs(help, stderr);
		return 2;
	}
	place.name = argv[2];
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		if (strcmp(argv[1], cases[i].name))
			continue;
		cases[i].run(&place);
		return 0;
	}
	fputs(help, stderr);
	return 2;
}
