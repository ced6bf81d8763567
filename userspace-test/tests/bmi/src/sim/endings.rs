// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! The worker of a node, which disconnects and frees Endpoints while the node goes on.

use super::{
    network::{
        EndState,
        Step, //
    },
    node::{
        Ep,
        Node, //
    },
    world::World, //
};
use crate::bmi::engine::{
    Close,
    Error,
    Next,
    RailId,
    Task, //
};

impl World {
    /// Disconnects a rail, as an engine asks.
    pub(super) fn begin_disconnect(&mut self, node: usize, rail: RailId, how: Close) {
        let Some(ep) = self.find(node, rail) else {
            return;
        };
        match self.nodes[node].endings.disconnect(rail, ep, how) {
            Ok(()) => self.steps.push(Step::End(node)),
            Err(ep) => self.disconnect(ep, how),
        }
    }

    fn disconnect(&mut self, (connection, index): Ep, how: Close) {
        match how {
            Close::Abrupt => self.break_connection(connection),
            Close::Graceful => {
                self.ends[connection][index].closing = true;
                self.close_if_drained(connection, index);
            }
        }
    }

    /// Frees the Endpoint of a rail whose connection has ended.
    pub(super) fn begin_free(&mut self, node: usize, rail: RailId, ep: Ep, reason: Option<Error>) {
        match self.nodes[node].endings.free(rail, ep, reason) {
            Ok(()) => self.steps.push(Step::End(node)),
            Err(ep) => {
                self.free(ep);
                self.freed(node, rail, reason);
            }
        }
    }

    fn free(&mut self, (connection, index): Ep) {
        let end = &mut self.ends[connection][index];
        assert_eq!(end.state, EndState::Closed, "an Endpoint is freed in use");
        assert!(!end.freed, "an Endpoint is freed twice");
        end.freed = true;
    }

    /// Lets the worker of a node make its next call.
    pub(super) fn begin_task(&mut self, node: usize) {
        let Some((rail, task)) = self.nodes[node].endings.take() else {
            return;
        };
        match task {
            Task::Disconnect(ep, how) => self.disconnect(ep, how),
            Task::Free(ep) => self.free(ep),
        }
        self.steps.push(Step::Ended(node, rail));
    }

    /// Lets the call of the worker return.
    pub(super) fn end_task(&mut self, node: usize, rail: RailId) {
        match self.nodes[node].endings.done(rail, true) {
            Next::Wait => self.steps.push(Step::End(node)),
            Next::Close(_) => panic!("no disconnect is refused"),
            Next::Freed(rail, reason) => self.freed(node, rail, reason),
        }
    }

    fn freed(&mut self, node: usize, rail: RailId, reason: Option<Error>) {
        let (connection, index) = self.find(node, rail).expect("a connection");
        let end = &self.ends[connection][index];
        assert!(end.freed, "a rail is closed before its Endpoint is freed");
        let Node { engine, home, .. } = &mut self.nodes[node];
        engine.closed(home, rail, reason);
    }
}
