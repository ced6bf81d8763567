// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Adapters, and words of the program at handles. */
#include "examples.h"

#include <stdio.h>
#include <string.h>

/* --- */
void example_ia(char *adapter)
{
	DAT_PROVIDER_INFO infos[8], *list[8];
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
	DAT_CONTEXT context = { .as_ptr = "mine" };
	DAT_PROVIDER_ATTR provider;
	DAT_HA_RELATIONSHIP paths;
	const char *major, *minor;
	DAT_BOOLEAN related;
	DAT_HANDLE_TYPE type;
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR attr;
	DAT_COUNT count;

	for (int i = 0; i < 8; i++)
		list[i] = &infos[i];
	OK(dat_registry_list_providers(8, &count, list));
	for (int i = 0; i < count; i++)
		printf("adapter %s\n", infos[i].ia_name);

	OK(dat_ia_open(adapter, 8, &async_evd, &ia));
	OK(dat_ia_query(ia, &async_evd, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL,
			&provider));
	printf("%s: %d Endpoints, %d bytes of private data\n", attr.adapter_name, attr.max_eps,
	       provider.max_private_data_size);

	/* Adapters that are paths of each other: kDAPL has none. */
	REFUSED(DAT_MODEL_NOT_SUPPORTED, dat_ia_ha_related(ia, attr.adapter_name, &related));
	REFUSED(DAT_MODEL_NOT_SUPPORTED,
		dat_registry_providers_related(attr.adapter_name, attr.adapter_name, &paths));
	REFUSED(DAT_PROVIDER_NOT_FOUND, dat_ia_ha_related(ia, "none", &related));

	OK(dat_set_consumer_context(async_evd, context));
	OK(dat_get_consumer_context(async_evd, &context));
	CHECK(!strcmp(context.as_ptr, "mine"));
	OK(dat_get_handle_type(async_evd, &type));
	CHECK(type == DAT_HANDLE_TYPE_EVD);

	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	OK(dat_strerror(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), &major, &minor));
	printf("a second close: %s, %s\n", major, minor);
	CHECK(!strcmp(major, "DAT_INVALID_HANDLE") && !strcmp(minor, "DAT_INVALID_HANDLE_IA"));
}
