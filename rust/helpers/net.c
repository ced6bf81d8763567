// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
#include <linux/capability.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <net/ip.h>
#include <net/net_namespace.h>

#include "helpers.h"

/* Returns the caller's network namespace, with a reference. */
struct net *kdapl_helper_current_net(void)
{
	return get_net(current->nsproxy->net_ns);
}

struct net *kdapl_helper_get_net(struct net *net)
{
	return get_net(net);
}

/* Returns NULL if the namespace has ended already. */
struct net *kdapl_helper_maybe_get_net(struct net *net)
{
	return maybe_get_net(net);
}

void kdapl_helper_put_net(struct net *net)
{
	put_net(net);
}

/* Writes no audit record: an ordinary user who lists adapters asks this of each foreign one. */
bool kdapl_helper_net_admin(struct net *net)
{
	return ns_capable_noaudit(net->user_ns, CAP_NET_ADMIN);
}

/* Returns the first and the last local port that are chosen for a connect. */
void kdapl_helper_local_ports(struct net *net, u16 *first, u16 *last)
{
	int low, high;

	inet_get_local_port_range(net, &low, &high);
	*first = low;
	*last = high;
}
