# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# shellcheck shell=bash disable=SC2034 # other scripts use these variables
# Shared by all scripts: paths, the output of steps, errors.

vm_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
checkout=$(cd "$vm_dir/../.." && pwd -P)
KDAPL_CACHE=${KDAPL_CACHE:-${HOME:-/root}/.cache/kdapl}
root_dir=$KDAPL_CACHE/root
log_dir=$KDAPL_CACHE/log
export KDAPL_CACHE
# Scripts read the messages of tools, so the locale is fixed. After su the sbin folders may be
# missing in PATH.
export LC_ALL=C.UTF-8 PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
# The caller may be make. The inner makes must not use its flags and job server.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

# Prints progress to stderr: stdout belongs to the requested command.
say() { printf 'kdapl: %s\n' "$*" >&2; }

die() {
	printf 'kdapl: error: %s\n' "$1" >&2
	shift
	for line in "$@"; do printf '       %s\n' "$line" >&2; done
	exit 1
}

# Prints the first comment block of a script, which is its help text.
show_help() { sed -n '/^# Usage:/,/^[^#]/{/^#/!d;s/^# \{0,1\}//;p}' "$1"; }

# Print the value of an option: smp=$(number_of "$@").
value_of() { # OPTION [VALUE]...
	case ${2:-} in
	'' | --*) die "$1 needs a value." "See: $0 --help" ;;
	esac
	printf '%s\n' "$2"
}

number_of() { # OPTION [VALUE]...
	local value
	value=$(value_of "$@") || exit
	[[ $value =~ ^[1-9][0-9]*$ ]] || die "$1 needs a number above 0, not '$value'."
	echo "$value"
}

# Runs "$@" as one step. Prints a line at its start, the elapsed time at its end, and the last lines
# of its log if it fails. Also prints a line every minute, for a CI that kills silent jobs. The
# variables are named step_*, since called functions see a function's local variables in bash.
step() {
	local step_title=$1 step_name step_start step_log step_rc step_pulse
	shift
	step_name=$(tr -cs 'a-zA-Z0-9.\n' - <<<"$step_title")
	mkdir -p "$log_dir"
	step_log=$log_dir/$step_name.log
	step_start=$SECONDS
	say "$step_title ..."
	(
		# Ends when its parent does, even if that is killed.
		# The sleep outlives it, so it must not hold our output or a lock.
		[ -z "${lock_fd:-}" ] || exec {lock_fd}>&-
		while sleep 60 >/dev/null 2>&1 && kill -0 "$$" 2>/dev/null; do
			say "  still running: $step_title ($((SECONDS - step_start)) s; $(wc -l <"$step_log") lines in $step_log)"
		done
	) &
	step_pulse=$!
	# `"$@" || step_rc=$?` would disable `set -e` within the step.
	set +e
	(
		set -e
		"$@"
	) >"$step_log" 2>&1 </dev/null
	step_rc=$?
	set -e
	kill "$step_pulse" 2>/dev/null || true
	wait "$step_pulse" 2>/dev/null || true
	if [ "$step_rc" != 0 ]; then
		say "  failed after $((SECONDS - step_start)) s; the last lines of $step_log:"
		tail -n 15 "$step_log" | sed 's/^/    | /' >&2
		explain_failure "$step_log"
		die "$step_title: failed (status $step_rc)."
	fi
	say "  done: $step_title ($((SECONDS - step_start)) s)"
}

# Runs "$@". Explains the failure if it has one of the most common reasons.
explained() {
	local log rc
	log=$(mktemp)
	set +e
	(
		set -e
		"$@"
	) 2>&1 | tee "$log"
	rc=${PIPESTATUS[0]}
	set -e
	# In a subshell, since explain_failure exits. The status is the command's.
	[ "$rc" = 0 ] || (explain_failure "$log") || true
	rm -f "$log"
	return "$rc"
}

# Explains the two most common reasons of a failure.
explain_failure() { # LOG
	local free folder
	# The disk with least free space. On a full disk the log may lack the error message.
	read -r free folder < <(
		for folder in "$checkout/build" "$KDAPL_CACHE" "${TMPDIR:-/tmp}"; do
			[ ! -d "$folder" ] || echo "$(df -Pm "$folder" | awk 'NR == 2 { print $4 }') $folder"
		done | sort -n
	)
	if grep -qE "Could(n't| not) (resolve|connect)|Failed to connect|Unable to connect|CONNECT tunnel failed" "$1" ||
		grep -qE 'Temporary failure|Network is unreachable|Connection timed out' "$1"; then
		die "A download server cannot be reached." \
			"Check the network (and http_proxy), then run the same command again: it continues where it stopped."
	fi
	if [ "$free" = 0 ] || grep -q 'No space left on device' "$1"; then
		die "The disk that holds $folder is full." \
			"Free some space (KDAPL_CACHE may name a folder on another disk), and run the same command again."
	fi
}

need_space() { # MEGABYTES WHAT-FOR
	local free
	free=$(df -Pm "$KDAPL_CACHE" | awk 'NR == 2 { print $4 }')
	[ "$free" -ge "$1" ] || die "$2 needs $1 MB in $KDAPL_CACHE, only $free MB are free." \
		"Free some space, or set KDAPL_CACHE to a folder on another disk."
}

need_root() { need_root_to "create a build root and mount folders into it"; }

need_root_to() { # WHAT
	[ "$(id -u)" = 0 ] || die "This needs root, to $1." "Run it with sudo."
}

# Takes a lock, before any other write to the cache. Two makes at once must not build the same
# files.
take_lock() { # NAME
	mkdir -p "$KDAPL_CACHE/lock" 2>/dev/null ||
		die "The cache folder $KDAPL_CACHE cannot be created or written to." "Set KDAPL_CACHE to another folder."
	exec {lock_fd}>"$KDAPL_CACHE/lock/$1"
	flock -n "$lock_fd" && return
	say "waiting for another run that builds: $1"
	flock "$lock_fd"
}

release_lock() { exec {lock_fd}>&-; }

# Prints the number of runnable threads for each processor, now or over the last minute, rounded up:
# 1 on an idle machine. Time limits grow with it.
runnable_per_processor() {
	awk -v processors="$(nproc)" '{ split($4, now, "/"); threads = $1 > now[1] ? $1 : now[1]
		each = threads / processors; print (each > 1 ? int(each + 0.999) : 1) }' /proc/loadavg
}

in_root() { "$vm_dir/in-root" "$@"; }
