// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Unit tests and property tests, in one file for each file of the model.

mod allowance;
mod cno;
mod code;
mod completion;
mod driver;
mod dto;
mod effects;
mod ep_table;
mod ep_walk;
mod event;
mod extension;
mod footprint;
mod hand;
mod handle;
mod length;
mod operation;
mod outer;
mod qualifier;
mod retry;
mod ring;
mod room;
mod segments;
mod streams;
mod trace;
mod upcall;
mod vector;
mod wait;
mod wheel;
mod wr_id;
