// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tests the time-outs of an Endpoint, which are named attributes of the provider. */
#include "consumer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PEER_TIMEOUT "KDAPL_PEER_TIMEOUT_MS"
#define KEEPALIVE "KDAPL_KEEPALIVE_MS"
/* DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR. */
#define NAMED DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR

/* Creates an Endpoint of a side with these named attributes. */
static DAT_RETURN create(struct side *side, DAT_NAMED_ATTR *list, DAT_COUNT count,
			 DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = { .ep_provider_specific_count = count, .ep_provider_specific = list };

	return dat_ep_create(side->ia, side->pz, side->evd, side->evd, side->evd, &attr, ep);
}

/* Checks both attributes of an Endpoint; a NULL is not compared. */
static void has(DAT_EP_HANDLE ep, const char *peer_timeout, const char *keepalive)
{
	DAT_EP_PARAM param;
	DAT_NAMED_ATTR *list;

	OK(dat_ep_query(ep, NAMED, &param));
	CHECK(param.ep_attr.ep_provider_specific_count == 2);
	list = param.ep_attr.ep_provider_specific;
	CHECK(!strcmp(list[0].name, PEER_TIMEOUT) && !strcmp(list[1].name, KEEPALIVE));
	printf("%s %s\n", list[0].value, list[1].value);
	CHECK(!peer_timeout || !strcmp(list[0].value, peer_timeout));
	CHECK(!strcmp(list[1].value, keepalive));
}

static void refused(struct side *side, const char *name, const char *value)
{
	DAT_NAMED_ATTR attr = { (char *)name, (char *)value };
	DAT_EP_HANDLE ep;
	DAT_RETURN ret = create(side, &attr, 1, &ep);

	if (ret != (DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG6))
		fail(__FILE__, __LINE__, value, ret);
}

void case_keepalive(struct place *place)
{
	const char *default_keepalive = place->more[0] ? place->more[0] : "none";
	DAT_NAMED_ATTR both[] = { { KEEPALIVE, "6000" }, { PEER_TIMEOUT, "5000" } };
	DAT_NAMED_ATTR none = { KEEPALIVE, "none" };
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	DAT_EP_PARAM param = { 0 };
	struct side side;
	DAT_EP_HANDLE ep;

	open_side(&side, ia);
	has(side.ep, NULL, default_keepalive);
	OK(create(&side, both, 2, &ep));
	has(ep, "5000", "6000");
	param.ep_attr.ep_provider_specific = &none;
	param.ep_attr.ep_provider_specific_count = 1;
	OK(dat_ep_modify(ep, NAMED, &param));
	has(ep, "5000", "none");
	OK(dat_ep_free(ep));
	OK(create(&side, both + 1, 1, &ep));
	has(ep, "5000", default_keepalive);
	OK(dat_ep_free(ep));
	refused(&side, KEEPALIVE, "5999");
	refused(&side, KEEPALIVE, "3600001");
	refused(&side, KEEPALIVE, "soon");
	refused(&side, "KDAPL_NO_SUCH_NAME", "1");
	close_side(&side);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* Connects to a peer that falls silent, with nothing outstanding. */
void case_idle(struct place *place)
{
	struct sockaddr_in peer = { .sin_family = AF_INET };
	DAT_IA_HANDLE ia = open_ia(place->name, DAT_FALSE);
	DAT_NAMED_ATTR attr = { KEEPALIVE, place->more[2] };
	DAT_EP_HANDLE ep;
	struct side side;
	DAT_EVENT event;

	CHECK(inet_pton(AF_INET, place->more[0], &peer.sin_addr));
	open_side(&side, ia);
	OK(create(&side, &attr, attr.value ? 1 : 0, &ep));
	OK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&peer, strtoull(place->more[1], NULL, 10),
			  PATIENCE, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	expect(side.evd, DAT_CONNECTION_EVENT_ESTABLISHED);
	puts("connected");
	event = expect(side.evd, DAT_CONNECTION_EVENT_BROKEN);
	CHECK(event.event_data.connect_event_data.ep_handle == ep);
	OK(dat_ep_free(ep));
	close_side(&side);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}
