// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Exits with an error after too long a time without an event. It uses a timer, since a
 * time-out of each wait would cost a system call: the measurement counts them.
 */
#include "peer.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t happened;

void something_happened(void)
{
	happened = 1;
}

static void look(int signal)
{
	static const char text[] = "rdmacm-peer: no event within --timeout: is the peer still alive?\n";

	(void)signal;
	if (!happened) {
		if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
			_exit(4);
		_exit(1);
	}
	happened = 0;
}

void watch(unsigned int seconds)
{
	struct sigaction action = { .sa_handler = look, .sa_flags = SA_RESTART };
	struct itimerval every = { .it_value.tv_sec = seconds, .it_interval.tv_sec = seconds };

	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &every, NULL))
		fail_errno("setitimer");
}
