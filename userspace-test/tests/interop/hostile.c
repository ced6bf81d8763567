// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The command line of the hostile peer, its processes and its random numbers. */
#include "hostile.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char help[] =
"Usage: rdmacm-hostile --address ADDRESS --port PORT [--port PORT]... [OPTION]...\n"
"       rdmacm-hostile --listen --address ADDRESS --port PORT [OPTION]...\n"
"\n"
"Attacks the programs at the PORTs, or the callers of PORT: invalid\n"
"private data and parameters, operations with wrong keys, lengths and opcodes,\n"
"missing answers, connections that stay half open.\n"
"\n"
"      --seed N         seed of the random numbers (default 1)\n"
"      --processes N    processes that connect at the same time, each with its own seed (default 4)\n"
"      --attempts N     connects of each process (default: no limit)\n"
"      --seconds N      duration (default 10)\n"
"\n"
"Exit status: 0, 1 if it cannot listen, 2 if the command line is wrong.\n";

struct tally tally;
char memory[MEMORY];
static uint64_t state;

/* splitmix64 */
uint64_t chance(void)
{
	uint64_t z = (state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

unsigned int below(unsigned int limit)
{
	return limit ? chance() % limit : 0;
}

bool one_in(unsigned int n)
{
	return below(n) == 0;
}

void dawdle(unsigned int most_ms)
{
	usleep(below(most_ms * 1000 + 1));
}

static bool address_of(const char *text, struct sockaddr_storage *storage)
{
	struct sockaddr_in *v4 = (void *)storage;
	struct sockaddr_in6 *v6 = (void *)storage;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
		storage->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1)
		storage->ss_family = AF_INET6;
	return storage->ss_family;
}

static void tell(uint64_t seed)
{
	printf("seed %lu: attempts %lu, requests %lu, answered %lu, refused %lu, established %lu, "
	       "posted %lu, completed %lu, failed %lu\n", (unsigned long)seed, tally.attempts,
	       tally.requests, tally.answered, tally.refused, tally.established, tally.posted,
	       tally.completed, tally.failed);
	fflush(stdout);
}

static int play(const struct aim *aim, uint64_t seed, unsigned long attempts, unsigned int seconds)
{
	time_t end = time(NULL) + seconds;

	state = seed;
	while (tally.attempts < attempts && time(NULL) < end) {
		tally.attempts++;
		attack(aim);
	}
	tell(seed);
	return 0;
}

/* Listens, and exits without a disconnect. */
static int wait_for_callers(const struct aim *aim, uint64_t seed, unsigned int seconds)
{
	time_t end;

	state = seed;
	if (!lie_in_wait(aim))
		return 1;
	printf("listening %u\n", aim->ports[0]);
	fflush(stdout);
	end = time(NULL) + seconds;
	while (time(NULL) < end)
		receive_and_attack();
	tell(seed);
	return 0;
}

/* Runs the processes. Each exits without a disconnect, and the kernel releases its connections. */
static int play_all(const struct aim *aim, uint64_t seed, unsigned int processes,
		    unsigned long attempts, unsigned int seconds)
{
	int status, worst = 0;
	unsigned int i;

	for (i = 0; i < processes; i++) {
		if (fork() == 0)
			_exit(play(aim, seed + i, attempts, seconds));
	}
	while (wait(&status) > 0) {
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			worst = 1;
	}
	return worst;
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "help", no_argument, NULL, 'h' }, { "address", required_argument, NULL, 'a' },
		{ "port", required_argument, NULL, 'p' }, { "seed", required_argument, NULL, 's' },
		{ "processes", required_argument, NULL, 'n' },
		{ "attempts", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 't' }, { "listen", no_argument, NULL, 'l' },
		{},
	};
	unsigned int processes = 4, seconds = 10;
	unsigned long attempts = ~0ul;
	struct aim aim = { 0 };
	bool listens = false;
	uint64_t seed = 1;
	int option;

	while ((option = getopt_long(argc, argv, "ha:p:", long_options, NULL)) != -1) {
		switch (option) {
		case 'h': fputs(help, stdout); return 0;
		case 'a': if (!address_of(optarg, &aim.address)) return 2; break;
		case 'p': if (aim.count < 8) aim.ports[aim.count++] = atoi(optarg); break;
		case 's': seed = strtoull(optarg, NULL, 0); break;
		case 'n': processes = atoi(optarg); break;
		case 'c': attempts = strtoul(optarg, NULL, 0); break;
		case 't': seconds = atoi(optarg); break;
		case 'l': listens = true; break;
		default: return 2;
		}
	}
	if (!aim.count || !aim.address.ss_family) {
		fputs(help, stderr);
		return 2;
	}
	if (listens)
		return wait_for_callers(&aim, seed, seconds);
	return play_all(&aim, seed, processes, attempts, seconds);
}
