// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What the compiler has a constructor call that the kernel does not run: linked into the kdapl.ko that counts. */
void __sanitizer_cov_8bit_counters_init(char *start, char *stop);
void __sanitizer_cov_pcs_init(const unsigned long *start, const unsigned long *stop);

void __sanitizer_cov_8bit_counters_init(char *start, char *stop)
{
}

void __sanitizer_cov_pcs_init(const unsigned long *start, const unsigned long *stop)
{
}
