// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The tracepoints themselves, and a function for each that Rust can call. */
#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "kdapl_trace.h"
