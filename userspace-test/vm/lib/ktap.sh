# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash
# Reports results in KTAP, version 1, after the helpers of the kernel's selftests
# (tools/testing/selftests/kselftest/ktap_helpers.sh).
ktap_tests=0

ktap_print_header() { echo 'KTAP version 1'; }

ktap_set_plan() { echo "1..$1"; }

# Prints the last lines of stdin. They come before the result of their test.
ktap_diagnostics() { # LINES
	tail -n "$1" | sed 's/^/# /'
}

# Prints a result. The time of a test, since SECONDS was START, is for readers.
ktap_result() { # STATUS NAME [START]
	local not='' time=''
	[ "$1" = 0 ] || not='not '
	[ -z "${3:-}" ] || time=" # time=$((SECONDS - $3))s"
	ktap_tests=$((ktap_tests + 1))
	echo "${not}ok $ktap_tests $2$time"
}
