// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Memory that the kernel must not write, by each description of memory. */
#include <linux/bvec.h>
#include <linux/hex.h>
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <rdma/kdat_ib_extensions.h>

#include "fmr.h"

#define READS		(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)

/* One page, and two pages of which the first may be written: each description of both. */
struct lists {
	DAT_PADDR addresses[2];
	struct scatterlist list[2];
	struct bio_vec bvecs[2];
};

struct description {
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN length;
	/* As dat_lmr_fmr() counts; 0 if it has no such type. */
	u32 count;
};
#define DESCRIPTIONS	6

/* Describes 64 bytes before @page, which may be written, and the page. */
static void describe(struct lists *lists, struct description *all, u8 *before, struct page *page)
{
	lists->addresses[0] = page_to_phys(page);
	sg_init_table(lists->list, 2);
	sg_set_buf(&lists->list[0], before + PAGE_SIZE - 64, 64);
	sg_set_page(&lists->list[1], page, PAGE_SIZE, 0);
	bvec_set_virt(&lists->bvecs[0], before + PAGE_SIZE - 64, 64);
	bvec_set_page(&lists->bvecs[1], page, PAGE_SIZE, 0);
	all[0] = (struct description){ DAT_MEM_TYPE_VIRTUAL, { .for_va = page_address(page) },
				       PAGE_SIZE, 1 };
	all[1] = (struct description){ DAT_MEM_TYPE_PHYSICAL,
				       { .for_physical = lists->addresses }, 100, 1 };
	all[2] = (struct description){ DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
				       { .for_array = { PAGE_SIZE, lists->addresses } },
				       PAGE_SIZE };
	all[3] = (struct description){ DAT_MEM_TYPE_PLATFORM, { .for_platform = lists->list },
				       65, 2 };
	all[4] = (struct description){ DAT_MEM_TYPE_PLATFORM, { .for_platform = lists->list + 1 },
				       PAGE_SIZE, 1 };
	all[5] = (struct description){ KDAPL_MEM_TYPE_BVEC, { .for_platform = lists->bvecs },
				       64 + PAGE_SIZE, 2 };
}

/* LMRs of the memory are for reads only. */
static int create(struct scene *scene, const struct description *memory)
{
	const DAT_MEM_PRIV_FLAGS writes[] = { DAT_MEM_PRIV_LOCAL_WRITE_FLAG, LOCAL, ALL,
		DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_IB_MEM_PRIV_REMOTE_ATOMIC };
	DAT_RMR_HANDLE rmr;
	DAT_LMR_TRIPLET part;
	struct lmr lmr;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(writes); i++)
		if (is_iwarp && writes[i] & ~LOCAL)
			REFUSED(lmr_make(memory->type, memory->region, memory->length, writes[i],
					 DAT_VA_TYPE_VA, &lmr), DAT_MODEL_NOT_SUPPORTED, 0);
		else
			REFUSED(lmr_make(memory->type, memory->region, memory->length, writes[i],
					 DAT_VA_TYPE_VA, &lmr),
				DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	OK(lmr_make(memory->type, memory->region, memory->length,
		    is_iwarp ? DAT_MEM_PRIV_LOCAL_READ_FLAG : READS, DAT_VA_TYPE_VA, &lmr));
	/* No RMR opens it for writes. */
	OK(dat_rmr_create(pz, &rmr));
	part = (DAT_LMR_TRIPLET){ lmr.address, 1, lmr.local };
	REFUSED(dat_rmr_bind(rmr, lmr.handle, &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
			     DAT_VA_TYPE_VA, scene->pair.ep[1], cookie(1), DEFAULT, NULL),
		DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	OK(dat_rmr_free(rmr));
	OK(dat_lmr_free(lmr.handle));
	return 0;
}

static DAT_RETURN map(struct scene *scene, const struct description *memory,
		      DAT_MEM_PRIV_FLAGS privileges)
{
	return dat_lmr_fmr(scene->lmr, memory->type, memory->region, memory->count, privileges,
			   DAT_VA_TYPE_VA, scene->pair.ep[1], cookie(1), DEFAULT, &scene->local,
			   &scene->remote);
}

/* Requests register it for reads only. The peer reads its last bytes. */
static int map_for_reads(struct scene *scene, const struct description *memory, const u8 *page)
{
	const DAT_MEM_PRIV_FLAGS writes[] = { DAT_MEM_PRIV_LOCAL_WRITE_FLAG, LOCAL, ALL,
		DAT_MEM_PRIV_REMOTE_WRITE_FLAG };
	DAT_LMR_TRIPLET to = pair_place(&scene->pair, 0, 64);
	DAT_RMR_TRIPLET remote;
	DAT_LMR_PARAM param;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(writes); i++)
		REFUSED(map(scene, memory, writes[i]),
			DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	OK(map(scene, memory, READS));
	TRY(next_dto(scene->pair.dto[1], DAT_DTO_LMR_FMR, 1, 0));
	OK(dat_lmr_query(scene->lmr, 0, &param));
	remote = (DAT_RMR_TRIPLET){ param.registered_address + param.length - 64, 64,
				    scene->remote };
	memset(scene->pair.memory, 0x5a, 64);
	/* Over iWARP a read needs other memory: rdma_read_hides_rkey. */
	if (!is_iwarp) {
		OK(dat_ep_post_rdma_read(scene->pair.ep[0], 1, &to, cookie(6), &remote, DEFAULT));
		TRY(next_dto(scene->pair.dto[0], DAT_DTO_RDMA_READ, 6, 64));
		EXPECT(!memcmp(scene->pair.memory, page + PAGE_SIZE - 64, 64));
	}
	return fmr_invalidated(scene);
}

static int refuse_page(struct scene *scene, struct page *page)
{
	struct description all[DESCRIPTIONS];
	struct lists lists;
	unsigned int i;

	describe(&lists, all, scene->pages, page);
	for (i = 0; i < DESCRIPTIONS; i++) {
		TRY(ktest_where(create(scene, &all[i]), "description %u", i));
		if (all[i].count)
			TRY(ktest_where(map_for_reads(scene, &all[i], page_address(page)),
					"description %u, registered", i));
	}
	return 0;
}

/* Text, read-only data, and the zero page. */
static int refuse_pages(struct scene *scene)
{
	static const u8 constant[16] = { 1 };

	TRY(ktest_where(refuse_page(scene, ZERO_PAGE(0)), "the zero page"));
	TRY(ktest_where(refuse_page(scene, virt_to_page(memcpy)), "text of the kernel"));
	TRY(ktest_where(refuse_page(scene, virt_to_page(hex_asc)), "data of the kernel"));
	if (!IS_ENABLED(CONFIG_STRICT_MODULE_RWX))
		return 0;
	TRY(ktest_where(refuse_page(scene, vmalloc_to_page(refuse_pages)), "text of this module"));
	TRY(ktest_where(refuse_page(scene, vmalloc_to_page(constant)), "data of this module"));
	return 0;
}

static int region_read_only(void)
{
	return fmr_with_pages(refuse_pages);
}

const struct ktest read_only_tests[] = {
	{ "region_read_only", region_read_only },
	{}
};
