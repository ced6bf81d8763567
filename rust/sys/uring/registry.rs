// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

//! Pending commands of an open file, by their identity at the consumer.

use super::{
    Command,
    CommandRequest,
    Id,
    Pending, //
};
use kernel::{
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        Mutex, //
    },
};

/// Key of a pending command. Several commands of one ring may have the same identity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CommandKey {
    id: Id,
    /// No other pending command has this number.
    number: usize,
}

impl CommandKey {
    pub(super) fn new(id: Id, number: usize) -> Self {
        Self { id, number }
    }

    /// Returns the smallest key after this one.
    fn next(self) -> Option<Self> {
        let number = self.number.checked_add(1)?;
        Some(Self { number, ..self })
    }
}

/// A pending command in the tree.
type Node = RBTreeNode<CommandKey, Arc<Pending>>;

/// Pending commands of an open file.
#[pin_data]
pub(crate) struct Registry {
    #[pin]
    commands: Mutex<RBTree<CommandKey, Arc<Pending>>>,
}

impl Registry {
    /// Creates a registry without commands.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self { commands <- new_mutex!(RBTree::new(), "Registry::commands") }),
            GFP_KERNEL_ACCOUNT,
        )
    }

    /// Adds a command.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn insert(&self, key: CommandKey, command: Arc<Pending>) -> Result {
        let node = RBTreeNode::new(key, command, GFP_KERNEL_ACCOUNT)?;
        let replaced = self.commands.lock().insert(node);
        drop(replaced);
        Ok(())
    }

    /// Removes a command. The caller drops the node.
    pub(super) fn remove(&self, key: &CommandKey) -> Option<Node> {
        self.commands.lock().remove_node(key)
    }

    /// Returns the first command from a key on, if it has the same identity.
    fn first(&self, from: &CommandKey) -> Option<(CommandKey, Arc<Pending>)> {
        let commands = self.commands.lock();
        let cursor = commands.cursor_lower_bound(from)?;
        let (key, command) = cursor.current();
        (key.id == from.id).then(|| (*key, command.clone()))
    }

    /// Cancels the commands with this identity, on request of another one of the same ring. Returns
    /// their number.
    ///
    /// Context: process; sleeps.
    pub(crate) fn cancel(&self, id: Id, command: &Command<'_>, request: &CommandRequest) -> u32 {
        let mut found = 0_u32;
        let mut from = Some(CommandKey::new(id, 0));
        while let Some((key, pending)) = from.and_then(|from| self.first(&from)) {
            found = found.saturating_add(pending.cancel_by(command, request).into());
            from = key.next();
        }
        found
    }
}
