// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Unit tests and property tests, in one file for each file of the model.

mod adapter_name;
mod allowance;
mod cno;
mod cno_agent;
mod cno_check;
mod code;
mod completion;
mod cq_room;
mod direct_event;
mod driver;
mod dto;
mod effects;
mod ep_table;
mod ep_walk;
mod event;
mod extension;
mod fast_lmr;
mod footprint;
mod handle;
mod held_receives;
mod keepalive;
mod kernel_handle;
mod mapped_ring;
mod nvme_slots;
mod nvme_wire;
mod operation;
mod order;
mod pieces;
mod qualifier;
mod requests;
mod retry;
mod ring;
mod ring_size;
mod segments;
mod shared_receives;
mod shared_timer;
mod slot_contexts;
mod streams;
mod trace;
mod upcall;
mod vector;
mod wait;
mod watermarks;
mod wr_id;
