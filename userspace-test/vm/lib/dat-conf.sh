# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
# The lines of a provider in /etc/dat.conf.

# Prints a line for a thread-safe provider, and one for a provider that is not: programs request
# either.
dat_conf_lines() { # NAME LIBRARY PARAMETERS
	local safety
	for safety in nonthreadsafe threadsafe; do
		printf '%s u2.0 %s default %s kdapl.1.0 "%s" ""\n' "$1" "$safety" "$2" "$3"
	done
}
