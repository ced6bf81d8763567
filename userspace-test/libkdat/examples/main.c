// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Runs an example. */
#include "examples.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	void (*run)(char *adapter);
} examples[] = {
	{ "ia", example_ia }, { "evd", example_evd }, { "cno", example_cno }, { "endpoint", example_endpoint },
	{ "connect", example_connect }, { "reserved", example_reserved }, { "common", example_common },
	{ "transfer", example_transfer }, { "memory", example_memory }, { "rmr", example_rmr },
	{ "srq", example_srq }, { "atomic", example_atomic },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof(examples) / sizeof(*examples); i++) {
		if (strcmp(argv[1], examples[i].name))
			continue;
		examples[i].run(argv[2]);
		printf("%s: done\n", argv[1]);
		return 0;
	}
	fputs("Usage: kdat-examples EXAMPLE ADAPTER\n\nRuns an example of libkdat's manual pages:", stderr);
	for (size_t i = 0; i < sizeof(examples) / sizeof(*examples); i++)
		fprintf(stderr, " %s", examples[i].name);
	fputs("\n", stderr);
	return 2;
}
