// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A function that the compiler's constructors call. The kernel does not run them, but the
 * instrumented kdapl.ko must link.
 */
void __sanitizer_cov_8bit_counters_init(char *start, char *stop);
void __sanitizer_cov_pcs_init(const unsigned long *start, const unsigned long *stop);

void __sanitizer_cov_8bit_counters_init(char *start, char *stop)
{
}

void __sanitizer_cov_pcs_init(const unsigned long *start, const unsigned long *stop)
{
}
