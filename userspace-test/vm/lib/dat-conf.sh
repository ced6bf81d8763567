# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
# What /etc/dat.conf says of a provider.

# A program asks for a provider that is safe for threads, or for one that is not: each is a line.
dat_conf_lines() { # NAME LIBRARY PARAMETERS
	local safety
	for safety in nonthreadsafe threadsafe; do
		printf '%s u2.0 %s default %s kdapl.1.0 "%s" ""\n' "$1" "$safety" "$2" "$3"
	done
}
